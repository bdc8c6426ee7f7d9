//! The simulated platform as a pure state machine with requests and times as input.
//!
//! It reads no clock, uses no outside randomness and does no I/O. [`World::respond`] is the API,
//! and the methods in [`console`] are the platform's console. [`World::advance_to`] processes
//! everything that happens by itself over time.

mod account;
mod api;
mod branches;
mod computes;
pub mod console;
mod keys;
pub mod model;
mod operations;
mod projects;
mod setup;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use api::access::Caller;
use api::errors::Refusal;
use api::message::{Reply, Request, Response};
use api::rate::Meters;
use api::routes::{Call, Ids};
use computes::agenda::Agenda;
use keys::ring::KeyRing;
use model::{Compute, DeletedProject, FailureOrder, Operation, Organization, Project, User};
use setup::settings::Settings;
use store::ids::Generator;
use store::tracked::Tracked;

pub use api::{errors, message, routes};
pub use computes::sizes;
pub use console::inventory;
pub use keys::secret;
pub use setup::{file, settings};
pub use store::rows;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Follows every statement of the specification, and adds calls, fields and parameters where it
    /// is silent.
    #[default]
    Default,
    /// The public API of this family of platforms, even where it contradicts the specification.
    Public,
    /// Only what the specification shows.
    Minimal,
}

impl Profile {
    pub const ALL: [Profile; 3] = [Profile::Default, Profile::Public, Profile::Minimal];

    /// True if the profile offers calls, fields and parameters beyond the specification.
    pub fn adds(self) -> bool {
        self != Profile::Minimal
    }

    /// True if the profile follows the specification where the public API contradicts it.
    pub fn obeys(self) -> bool {
        self != Profile::Public
    }
}

/// Project id and compute id.
pub type ComputeKey = (String, String);

/// The small part of a world that is always saved as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Head {
    settings: Settings,
    organizations: BTreeMap<String, Organization>,
    users: BTreeMap<String, User>,
    generator: Generator,
    next_operation: u64,
    /// The last change of a plan or of a project's owner. Older state files lack this.
    #[serde(default)]
    plans_changed_at: Option<Timestamp>,
    /// By id. Only the public profile uses it.
    #[serde(default)]
    deleted_projects: BTreeMap<String, DeletedProject>,
}

/// A simulated platform. It is cheap to clone and reproducible from its seed and requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    profile: Profile,
    head: Head,
    projects: Tracked<String, Project>,
    computes: Tracked<ComputeKey, Compute>,
    /// By project and number, which orders the operations of a project.
    operations: Tracked<(String, u64), Operation>,
    keys: KeyRing,
    /// The latest time that the world was advanced to.
    now: Timestamp,
    #[serde(skip)]
    head_touched: bool,
    #[serde(skip)]
    meters: Meters,
    #[serde(skip)]
    agenda: Agenda,
    /// Operations that were ordered to fail.
    #[serde(skip)]
    failures: Vec<FailureOrder>,
    #[serde(skip)]
    answered: u64,
    /// How far the clock of the server is ahead that handles the current request.
    #[serde(skip)]
    clock_off: SignedDuration,
}

/// The input of a call.
struct Context<'a> {
    request: &'a Request,
    caller: &'a Caller,
    ids: &'a Ids,
    now: Timestamp,
}

impl World {
    pub fn profile(&self) -> Profile {
        self.profile
    }

    pub fn settings(&self) -> &Settings {
        &self.head.settings
    }

    /// The latest time that the world was advanced to.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Answers one API request. Time never goes back: an earlier `now` counts as the latest one
    /// seen.
    pub fn respond(&mut self, request: &Request, now: Timestamp) -> Response {
        self.advance_to(now);
        let request_id = self.request_id(request);
        let caller = self.authenticate(request);
        self.clock_off = request.clock_off;
        let outcome = caller.and_then(|caller| self.answer(request, &caller));
        self.clock_off = SignedDuration::ZERO;
        match outcome {
            Ok(reply) => Response {
                status: reply.status,
                request_id,
                retry_after: None,
                body: reply.body,
            },
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
            let admitted =
                self.meters
                    .admit(caller.reach.account(), call, &limit, request.received_at);
            admitted.map_err(|retry_after| Refusal::TooManyRequests { retry_after })?;
        }
        self.perform(
            call,
            &Context {
                request,
                caller,
                ids: &ids,
                now: self.now,
            },
        )
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

    /// The time to record for a change.
    fn dated(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.clock_off).unwrap_or(now)
    }

    /// The request's own id, or a practically unique one. It does not use the saved generator,
    /// because reads must not change the state.
    fn request_id(&mut self, request: &Request) -> String {
        self.answered += 1;
        match &request.request_id {
            Some(id) => id.clone(),
            None => {
                let mixed =
                    self.now.as_microsecond().cast_unsigned() ^ self.answered.rotate_left(40);
                Generator::new(mixed).uuid()
            }
        }
    }
}
