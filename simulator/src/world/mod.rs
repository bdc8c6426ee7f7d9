//! The simulated platform as a pure state machine: requests and the time go in, answers come out.
//!
//! Nothing in here reads a clock, draws randomness from outside or does I/O. [`World::respond`] is the API,
//! the methods in [`console`] are what people do in the platform's console, [`World::advance_to`] is what
//! happens by itself as time goes by.

mod access;
mod account;
mod agenda;
mod branch_changes;
mod branches;
mod branching;
mod computes;
mod config;
mod connections;
pub mod console;
mod declare;
pub mod errors;
pub mod file;
mod ids;
pub mod inventory;
mod keyring;
mod keys;
mod lifecycle;
pub mod message;
pub mod model;
mod operations;
mod paging;
mod project_attributes;
mod projects;
#[cfg(test)]
mod properties;
mod rate;
mod recovery;
mod restoring;
pub mod routes;
pub mod rows;
pub mod secret;
pub mod settings;
mod shapes;
pub mod sizes;
mod tracked;
mod updates;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use access::Caller;
use agenda::Agenda;
use errors::Refusal;
use ids::Generator;
use keyring::KeyRing;
use message::{Reply, Request, Response};
use model::{Compute, DeletedProject, FailureOrder, Operation, Organization, Project, User};
use rate::Meters;
use routes::{Call, Ids};
use settings::Settings;
use tracked::Tracked;

/// Which platform is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Obeys every statement of the specification, and adds calls, fields and parameters where it is silent.
    #[default]
    Default,
    /// The public API of this family of platforms, also where it contradicts the specification.
    Public,
    /// What the specification shows, and nothing more.
    Minimal,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 3] = [Profile::Default, Profile::Public, Profile::Minimal];

    /// Whether calls, fields and parameters are offered that the specification does not show.
    pub fn adds(self) -> bool {
        self != Profile::Minimal
    }

    /// Whether the specification is obeyed where the public API contradicts it.
    pub fn obeys(self) -> bool {
        self != Profile::Public
    }
}

/// Project id and compute id.
pub type ComputeKey = (String, String);

/// The small part of a world that is saved as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Head {
    settings: Settings,
    organizations: BTreeMap<String, Organization>,
    users: BTreeMap<String, User>,
    generator: Generator,
    next_operation: u64,
    /// When a plan or the owner of a project last changed. State files of before do not have it.
    #[serde(default)]
    plans_changed_at: Option<Timestamp>,
    /// By id. Only the public profile keeps them.
    #[serde(default)]
    deleted_projects: BTreeMap<String, DeletedProject>,
}

/// A simulated platform: cheap to clone, the same from the same seed and the same requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    profile: Profile,
    head: Head,
    projects: Tracked<String, Project>,
    computes: Tracked<ComputeKey, Compute>,
    /// By project and number, so that a project's operations are in order.
    operations: Tracked<(String, u64), Operation>,
    keys: KeyRing,
    /// How far the world has been advanced.
    now: Timestamp,
    #[serde(skip)]
    head_touched: bool,
    #[serde(skip)]
    meters: Meters,
    #[serde(skip)]
    agenda: Agenda,
    /// Operations that people have ordered to fail.
    #[serde(skip)]
    failures: Vec<FailureOrder>,
    #[serde(skip)]
    answered: u64,
    /// How fast the clock of the machine is that answers the present request.
    #[serde(skip)]
    clock_off: SignedDuration,
}

/// What a call has at hand.
struct Context<'a> {
    request: &'a Request,
    caller: &'a Caller,
    ids: &'a Ids,
    now: Timestamp,
}

impl World {
    /// Which platform this world is.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The settings that the world was made with.
    pub fn settings(&self) -> &Settings {
        &self.head.settings
    }

    /// How far the world has been advanced.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Answers one request to the API. Time does not go backwards: an earlier `now` counts as the latest seen.
    pub fn respond(&mut self, request: &Request, now: Timestamp) -> Response {
        self.advance_to(now);
        let request_id = self.request_id(request);
        let caller = self.authenticate(request);
        self.clock_off = request.clock_off;
        let outcome = caller.and_then(|caller| self.answer(request, &caller));
        self.clock_off = SignedDuration::ZERO;
        match outcome {
            Ok(reply) => Response { status: reply.status, request_id, retry_after: None, body: reply.body },
            Err(refusal) => Response {
                status: refusal.status(self.profile),
                retry_after: refusal.retry_after(),
                body: refusal.body(self.profile, &request_id),
                request_id,
            },
        }
    }

    fn answer(&mut self, request: &Request, caller: &Caller) -> Result<Reply, Refusal> {
        let (call, ids) = routes::resolve(request.method, &request.path, self.profile)?;
        if let Some(limit) = self.head.settings.rate_limit(self.profile) {
            let admitted = self.meters.admit(caller.reach.account(), call, &limit, request.received_at);
            admitted.map_err(|retry_after| Refusal::TooManyRequests { retry_after })?;
        }
        self.perform(call, &Context { request, caller, ids: &ids, now: self.now })
    }

    fn perform(&mut self, call: Call, context: &Context<'_>) -> Result<Reply, Refusal> {
        match call {
            Call::ListProjects => self.list_projects(context),
            Call::CreateProject => self.create_project(context),
            Call::ListSharedProjects => self.list_shared_projects(context),
            Call::GetProject => self.get_project(context),
            Call::UpdateProject => self.update_project(context),
            Call::DeleteProject => self.delete_project(context),
            Call::RecoverProject => self.recover_project(context),
            Call::GetConnectionUri => self.get_connection_uri(context),
            Call::ListBranches => self.list_branches(context),
            Call::CreateBranch => self.create_branch(context),
            Call::UpdateBranch => self.update_branch(context),
            Call::DeleteBranch => self.delete_branch(context),
            Call::SetDefaultBranch => self.set_default_branch(context),
            Call::RestoreBranch => self.restore_branch(context),
            Call::GetBranchSchema => self.get_branch_schema(context),
            Call::RevealPassword => self.reveal_password(context),
            Call::GetBranch => self.get_branch(context),
            Call::ListBranchComputes => self.list_branch_computes(context),
            Call::ListBranchDatabases => self.list_branch_databases(context),
            Call::ListBranchRoles => self.list_branch_roles(context),
            Call::ListComputes => self.list_computes(context),
            Call::CreateCompute => self.create_compute(context),
            Call::GetCompute => self.get_compute(context),
            Call::UpdateCompute => self.update_compute(context),
            Call::DeleteCompute => self.delete_compute(context),
            Call::StartCompute => self.start_compute(context),
            Call::SuspendCompute => self.suspend_compute(context),
            Call::RestartCompute => self.restart_compute(context),
            Call::ListOperations => self.list_operations(context),
            Call::GetOperation => self.get_operation(context),
            Call::ListPersonalKeys => self.list_personal_keys(context),
            Call::CreatePersonalKey => self.create_personal_key(context),
            Call::RevokePersonalKey => self.revoke_personal_key(context),
            Call::ListOrganizationKeys => self.list_organization_keys(context),
            Call::CreateOrganizationKey => self.create_organization_key(context),
            Call::RevokeOrganizationKey => self.revoke_organization_key(context),
            Call::GetOrganization => self.get_organization(context),
            Call::ListMembers => self.list_members(context),
            Call::GetMe => self.get_me(context),
            Call::ListMyOrganizations => self.list_my_organizations(context),
            Call::GetAuth => self.get_auth(context),
            Call::ListRegions => self.list_regions(context),
        }
    }

    /// What is written down as the time of a change.
    fn dated(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.clock_off).unwrap_or(now)
    }

    /// The request's own id, or one that is unlikely to be met again. Not drawn from the saved generator:
    /// reading must leave no trace in the state.
    fn request_id(&mut self, request: &Request) -> String {
        self.answered += 1;
        match &request.request_id {
            Some(id) => id.clone(),
            None => {
                let mixed = self.now.as_microsecond().cast_unsigned() ^ self.answered.rotate_left(40);
                Generator::new(mixed).uuid()
            }
        }
    }
}
