//! The calls on computes.

pub mod agenda;
pub mod config;
pub mod lifecycle;
pub mod sizes;
pub mod updates;

use jiff::Timestamp;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::{ComputeAndOperations, ComputeList, OneCompute};
use crate::world::computes::config::{ComputeRequest, Rules};
use crate::world::computes::lifecycle::work_done;
use crate::world::computes::updates::{Difference, Operations, operations_for};
use crate::world::model::{Action, Compute, ComputeConfig, ComputeKind, Operation, Project, State};
use crate::world::setup::settings::ConflictScope;
use crate::world::{ComputeKey, Context, Profile, World};

const ABSENT: Refusal = Refusal::Absent { what: "endpoint" };

impl World {
    pub(super) fn list_computes(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        let endpoints = self
            .computes_of(&project.id)
            .map(|compute| self.compute_shape(compute))
            .collect();
        Ok(Reply::ok(&ComputeList { endpoints }))
    }

    pub(super) fn list_branch_computes(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let (project, branch) = self.branch(context)?;
        let of_branch = self
            .computes_of(&project.id)
            .filter(|compute| compute.config.branch_id == branch.id);
        Ok(Reply::ok(&ComputeList {
            endpoints: of_branch
                .map(|compute| self.compute_shape(compute))
                .collect(),
        }))
    }

    pub(super) fn get_compute(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let key = self.compute_key(context)?;
        let compute = self.computes.get(&key).ok_or(ABSENT)?;
        Ok(Reply::ok(&OneCompute {
            endpoint: self.compute_shape(compute),
        }))
    }

    pub(super) fn create_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project_id = self.project(context)?.id.clone();
        let request = ComputeRequest::parse(&context.request.body, self.profile)?;
        let (key, operations) = self.make_compute(&project_id, &request, context.now)?;
        self.compute_and_operations(&key, &operations, context.now)
            .map(|body| Reply::created(&body))
    }

    /// Creates a compute. It starts at once; a disabled one ends up suspended.
    pub(super) fn make_compute(
        &mut self,
        project_id: &str,
        request: &ComputeRequest,
        now: Timestamp,
    ) -> Result<(ComputeKey, Vec<Operation>), Refusal> {
        let project = self
            .projects
            .get(project_id)
            .ok_or(Refusal::Absent { what: "project" })?;
        let (branch_id, kind) = request.identity(self.profile)?;
        self.check_place(project, &branch_id, kind == ComputeKind::ReadWrite)?;
        self.check_room(project, &branch_id)?;
        let config = request.create(project, branch_id, self.rules(project))?;
        let region_id = project.region_id.clone();
        let id = self.head.generator.compute_id();
        let key = (project_id.to_owned(), id.clone());
        let first: &[Action] = match (config.disabled, self.profile.obeys()) {
            (false, _) => &[Action::StartCompute],
            // In the specification every compute starts when it is created; a disabled one is then
            // suspended.
            (true, true) => &[Action::StartCompute, Action::SuspendCompute],
            (true, false) => &[Action::SuspendCompute],
        };
        let compute = Compute {
            host: format!("{id}.{region_id}.{}", self.head.settings.host_domain),
            id,
            project_id: project_id.to_owned(),
            region_id,
            kind,
            current_size: config.range.min,
            config,
            state: State::Init,
            steps: Vec::new(),
            interruptions: 0,
            creation_source: "console".to_owned(),
            last_active: None,
            started_at: None,
            suspended_at: None,
            created_at: self.dated(now),
            updated_at: self.dated(now),
        };
        self.computes.insert(key.clone(), compute);
        let operations = self.schedule(&key, first, now);
        Ok((key, operations))
    }

    /// Checks that the branch exists and, if `alone`, that it has no primary yet.
    fn check_place(&self, project: &Project, branch_id: &str, alone: bool) -> Result<(), Refusal> {
        if !project.branches.contains_key(branch_id) {
            return Err(Refusal::Absent { what: "branch" });
        }
        let is_primary = |other: &Compute| {
            other.kind == ComputeKind::ReadWrite && other.config.branch_id == branch_id
        };
        if alone && self.computes_of(&project.id).any(is_primary) {
            Err(Refusal::PrimaryExists)
        } else {
            Ok(())
        }
    }

    fn check_room(&self, project: &Project, branch_id: &str) -> Result<(), Refusal> {
        if !self.profile.adds() {
            return Ok(());
        }
        let Some(limit) = self.head.settings.max_computes_per_branch else {
            return Ok(());
        };
        let present = self
            .computes_of(&project.id)
            .filter(|compute| compute.config.branch_id == branch_id)
            .count();
        if present < limit {
            Ok(())
        } else {
            Err(Refusal::LimitReached {
                code: "ENDPOINTS_LIMIT_EXCEEDED",
                message: format!("a branch may have {limit} endpoints"),
            })
        }
    }

    pub(super) fn update_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let key = self.compute_key(context)?;
        let request = ComputeRequest::parse(&context.request.body, self.profile)?;
        let operations = self.change_compute(&key, &request, context.now)?;
        self.compute_and_operations(&key, &operations, context.now)
            .map(|body| Reply::ok(&body))
    }

    /// Changes a compute's configuration and starts the necessary operations.
    pub(super) fn change_compute(
        &mut self,
        key: &ComputeKey,
        request: &ComputeRequest,
        now: Timestamp,
    ) -> Result<Vec<Operation>, Refusal> {
        let compute = self.computes.get(key).ok_or(ABSENT)?;
        let project = self
            .projects
            .get(&key.0)
            .ok_or(Refusal::Absent { what: "project" })?;
        // The public API's update has no type, and it ignores unknown attributes.
        if self.profile.obeys() && request.kind()?.is_some_and(|kind| kind != compute.kind) {
            return Err(Refusal::invalid("endpoint.type cannot be changed"));
        }
        let config = request.apply(&compute.config, &project.region_id, self.rules(project))?;
        let difference = Difference::between(&compute.config, &config, self.profile);
        if difference.moved {
            // The specification forbids this to all computes, the public API only to a primary.
            let alone = self.profile.obeys() || compute.kind == ComputeKind::ReadWrite;
            self.check_place(project, &config.branch_id, alone)?;
        }
        if config == compute.config {
            return Ok(Vec::new());
        }
        self.refuse_when_busy(key)?;
        let operations = operations_for(difference, compute.target_state(), self.profile);
        self.set_config(key, config, now);
        Ok(match operations {
            Operations::Nothing => Vec::new(),
            Operations::AtOnce(actions) => self.schedule(key, actions, now),
            Operations::AfterOthers(actions) => self.append(key, actions, now),
        })
    }

    fn set_config(&mut self, key: &ComputeKey, config: ComputeConfig, now: Timestamp) {
        let updated_at = self.dated(now);
        if let Some(compute) = self.compute_mut(key) {
            compute.current_size = compute
                .current_size
                .clamp(config.range.min, config.range.max);
            compute.config = config;
            compute.updated_at = updated_at;
        }
    }

    pub(super) fn delete_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project_id = self.project(context)?.id.clone();
        let key = (project_id, context.ids.endpoint.clone());
        match (self.computes.get(&key).is_some(), self.profile.obeys()) {
            (true, _) => {}
            // The specification knows no answer without the deleted compute.
            (false, true) => return Err(ABSENT),
            (false, false) => return Ok(Reply::no_content()),
        }
        self.refuse_when_protected(&key)?;
        self.refuse_when_busy(&key)?;
        self.remove_compute(&key, context.now)
    }

    /// Deletes a compute. For a running one, the public API also reports a suspend operation.
    pub(super) fn remove_compute(
        &mut self,
        key: &ComputeKey,
        now: Timestamp,
    ) -> Result<Reply, Refusal> {
        let running = self.computes.get(key).ok_or(ABSENT)?.state == State::Active;
        let actions: &[Action] = match (self.profile, running) {
            (Profile::Public, true) => &[Action::SuspendCompute],
            _ => &[],
        };
        let operations = self.schedule(key, actions, now);
        let body = self
            .compute_and_operations(key, &operations, now)
            .map(|body| Reply::ok(&body))?;
        self.agenda.stale(key);
        if let Some(compute) = self.computes.remove(key)
            && running
            && let Some(project) = self.projects.get_mut(&key.0)
        {
            project.cpu_used_sec += work_done(&compute, now);
        }
        Ok(body)
    }

    /// Removes the computes of a deleted project or branch.
    pub(super) fn take_out_computes(&mut self, project_id: &str, which: impl Fn(&Compute) -> bool) {
        let gone = self
            .computes_of(project_id)
            .filter(|compute| which(compute));
        let keys: Vec<_> = gone
            .map(|compute| (project_id.to_owned(), compute.id.clone()))
            .collect();
        for key in keys {
            self.agenda.stale(&key);
            self.computes.remove(&key);
        }
    }

    pub(super) fn restart_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let key = self.compute_key(context)?;
        let operations = self.restart(&key, context.now)?;
        self.compute_and_operations(&key, &operations, context.now)
            .map(|body| Reply::ok(&body))
    }

    pub(super) fn restart(
        &mut self,
        key: &ComputeKey,
        now: Timestamp,
    ) -> Result<Vec<Operation>, Refusal> {
        let compute = self.computes.get(key).ok_or(ABSENT)?;
        // The specification restarts a compute in any state, disabled or not. The status of the
        // public API's refusal is undocumented; 409 fits, since the state conflicts.
        if !self.profile.obeys() && compute.state == State::Idle {
            return Err(Refusal::NotActive);
        }
        self.refuse_when_busy(key)?;
        Ok(self.schedule(key, &[Action::SuspendCompute, Action::StartCompute], now))
    }

    pub(super) fn start_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let key = self.compute_key(context)?;
        let compute = self.computes.get(&key).ok_or(ABSENT)?;
        if compute.config.disabled {
            return Err(Refusal::Disabled);
        }
        let actions: &[Action] = if compute.target_state() == State::Active {
            &[]
        } else {
            &[Action::StartCompute]
        };
        self.refuse_when_busy(&key)?;
        self.act(&key, actions, context.now)
    }

    pub(super) fn suspend_compute(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let key = self.compute_key(context)?;
        let compute = self.computes.get(&key).ok_or(ABSENT)?;
        let actions: &[Action] = match (compute.state, compute.steps.is_empty()) {
            (_, false) if self.head.settings.serialises_operations(self.profile) => {
                return Err(Refusal::InTransition);
            }
            (State::Idle, true) => &[],
            (_, _) => &[Action::SuspendCompute],
        };
        self.act(&key, actions, context.now)
    }

    fn act(
        &mut self,
        key: &ComputeKey,
        actions: &[Action],
        now: Timestamp,
    ) -> Result<Reply, Refusal> {
        let operations = if actions.is_empty() {
            Vec::new()
        } else {
            self.schedule(key, actions, now)
        };
        self.compute_and_operations(key, &operations, now)
            .map(|body| Reply::ok(&body))
    }

    pub(super) fn refuse_when_busy(&self, key: &ComputeKey) -> Result<(), Refusal> {
        let settings = &self.head.settings;
        if !settings.serialises_operations(self.profile) {
            return Ok(());
        }
        let busy = match settings.conflict_scope {
            ConflictScope::Compute => self
                .computes
                .get(key)
                .is_some_and(|compute| !compute.steps.is_empty()),
            ConflictScope::Project => self
                .computes_of(&key.0)
                .any(|compute| !compute.steps.is_empty()),
        };
        if busy { Err(Refusal::Busy) } else { Ok(()) }
    }

    /// The specification allows this on any branch.
    fn refuse_when_protected(&self, key: &ComputeKey) -> Result<(), Refusal> {
        let branch = self
            .computes
            .get(key)
            .map(|compute| compute.config.branch_id.as_str());
        let branch = branch.and_then(|id| self.projects.get(&key.0)?.branches.get(id));
        if !self.profile.obeys() && branch.is_some_and(|branch| branch.protected) {
            Err(Refusal::BranchProtected)
        } else {
            Ok(())
        }
    }

    fn compute_key(&self, context: &Context<'_>) -> Result<ComputeKey, Refusal> {
        let project = self.project(context)?;
        let key = (project.id.clone(), context.ids.endpoint.clone());
        self.computes.get(&key).map(|_| key).ok_or(ABSENT)
    }

    pub(super) fn computes_of(&self, project_id: &str) -> impl Iterator<Item = &Compute> {
        let first = (project_id.to_owned(), String::new());
        let of_project = self
            .computes
            .range(first..)
            .take_while(move |((project, _), _)| project == project_id);
        of_project.map(|(_, compute)| compute)
    }

    pub(super) fn rules(&self, project: &Project) -> Rules {
        Rules {
            profile: self.profile,
            plan: self.plan_of(&project.owner),
        }
    }

    fn compute_and_operations<'a>(
        &'a self,
        key: &ComputeKey,
        operations: &'a [Operation],
        now: Timestamp,
    ) -> Result<ComputeAndOperations<'a>, Refusal> {
        let endpoint = self.compute_shape(self.computes.get(key).ok_or(ABSENT)?);
        let operations = operations
            .iter()
            .map(|operation| self.operation_shape(operation, now))
            .collect();
        Ok(ComputeAndOperations {
            endpoint,
            operations,
        })
    }
}
