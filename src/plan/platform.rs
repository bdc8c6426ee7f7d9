//! The platform of a plan: read once, and changed only in memory. Changes succeed at once.

mod compute;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use super::steps::PlannedStep;
use super::trail::StepTrail;
use crate::decide::drift;
use crate::domain::{
    Compute, ComputeChange, ComputeId, ComputeState, CreatedKey, Fault, KeyEntry, KeyId, Listed,
    NewCompute, Operation, OrganizationId, Project, ProjectId, Role, Shown,
};
use crate::platform::{
    ChangeAnswer, KeyList, Keys, Latest, Platform, ProjectComputes, Reading, Tick,
};

/// IDs of planned keys: larger than those of any platform, and still exact in JSON.
const FIRST_NUMBER: i64 = 9_000_000_000_000_000;
/// The placeholder for the secret of a planned key.
const NO_SECRET: &str = "known-once-the-key-is-made";

/// The platform of one account.
pub struct InMemoryPlatform {
    source: Arc<dyn Platform>,
    trail: Arc<StepTrail>,
    now: Timestamp,
    state: Mutex<PlatformState>,
}

impl fmt::Debug for InMemoryPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryPlatform")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct PlatformState {
    projects: Option<Result<Listed<Project>, Fault>>,
    computes: BTreeMap<ProjectId, Result<PlannedList<Compute>, Fault>>,
    keys: BTreeMap<OrganizationId, Result<PlannedList<KeyEntry>, Fault>>,
    /// The latest readings, with the number of changes that they show.
    shown: BTreeMap<ProjectId, (u64, Arc<Reading<ProjectComputes>>)>,
    latest_keys: Option<(u64, Arc<KeyList>)>,
    made: i64,
    changes: u64,
}

impl PlatformState {
    /// Counts a create, and numbers what it creates.
    fn number_of_new(&mut self) -> i64 {
        self.made += 1;
        self.changes += 1;
        self.made
    }
}

/// A list as it was read, and with the changes so far.
#[derive(Clone, Debug)]
struct PlannedList<T> {
    before: Vec<T>,
    now: Listed<T>,
}

impl<T: Clone> PlannedList<T> {
    fn read(listed: Listed<T>) -> Self {
        Self {
            before: listed.shown().to_vec(),
            now: listed,
        }
    }
}

/// The list of a project or an organization with the changes so far, or `None` if it was not read.
fn known<Of: Ord, T: Clone>(
    lists: &BTreeMap<Of, Result<PlannedList<T>, Fault>>,
    of: &Of,
) -> Option<Result<Listed<T>, Fault>> {
    match lists.get(of)? {
        Ok(list) => Some(Ok(list.now.clone())),
        Err(fault) => Some(Err(fault.clone())),
    }
}

/// A compute before and after the plan.
#[derive(Clone, Debug, Default)]
pub struct BeforeAndAfter {
    pub before: Option<Compute>,
    pub after: Option<Compute>,
}

impl InMemoryPlatform {
    pub fn new(source: Arc<dyn Platform>, trail: Arc<StepTrail>, now: Timestamp) -> Self {
        Self {
            source,
            trail,
            now,
            state: Mutex::default(),
        }
    }

    fn with<T>(&self, run: impl FnOnce(&mut PlatformState) -> T) -> T {
        run(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state of a project, or `None` if it was not read.
    pub fn snapshot(
        &self,
        project: &ProjectId,
        tick: Tick,
        after: Option<Tick>,
    ) -> Option<Latest<ProjectComputes>> {
        self.with(|state| {
            let computes = match state.computes.get(project)? {
                Err(fault) => return Some(failed(fault, tick)),
                Ok(listed) => &listed.now,
            };
            let is_current = |shown: &&(u64, Arc<Reading<ProjectComputes>>)| {
                shown.0 == state.changes && after.is_none_or(|after| shown.1.began > after)
            };
            let reading = match state.shown.get(project).filter(is_current) {
                Some((_, reading)) => reading.clone(),
                None => Arc::new(Reading::new(tick, self.now, self.now, computes.clone())),
            };
            state
                .shown
                .insert(project.clone(), (state.changes, reading.clone()));
            Some(read(reading))
        })
    }

    /// The state of the keys of an organization, or `None` if they were not read.
    pub fn keys(
        &self,
        organization: &OrganizationId,
        tick: Tick,
        after: Option<Tick>,
    ) -> Option<Latest<Keys>> {
        self.with(|state| {
            let keys = match state.keys.get(organization)? {
                Err(fault) => return Some(failed(fault, tick)),
                Ok(listed) => &listed.now,
            };
            let is_current = |shown: &&(u64, Arc<KeyList>)| {
                shown.0 == state.changes && after.is_none_or(|after| shown.1.began > after)
            };
            let reading = match state.latest_keys.as_ref().filter(is_current) {
                Some((_, reading)) => reading.clone(),
                None => Arc::new(Reading::new(tick, self.now, self.now, keys.clone())),
            };
            state.latest_keys = Some((state.changes, reading.clone()));
            Some(read(reading))
        })
    }

    /// The change of a compute in this plan.
    pub fn change_of(&self, project: &ProjectId, id: &ComputeId) -> BeforeAndAfter {
        self.with(|state| {
            let Some(Ok(listed)) = state.computes.get(project) else {
                return BeforeAndAfter::default();
            };
            let find = |all: &[Compute]| all.iter().find(|compute| compute.id == *id).cloned();
            BeforeAndAfter {
                before: find(&listed.before),
                after: find(listed.now.shown()),
            }
        })
    }

    /// Changes a compute in a project that was read.
    fn change<T>(
        &self,
        project: &ProjectId,
        id: &ComputeId,
        change: impl FnOnce(&mut Compute) -> T,
    ) -> Result<T, Fault> {
        self.with(|state| {
            state.changes += 1;
            let listed = state
                .computes
                .get_mut(project)
                .and_then(|listed| listed.as_mut().ok());
            let found = listed.and_then(|listed| {
                listed
                    .now
                    .shown_mut()
                    .iter_mut()
                    .find(|compute| compute.id == *id)
            });
            found.map(change).ok_or_else(|| not_found("compute", id))
        })
    }
}

fn failed<L: crate::platform::Listing>(fault: &Fault, tick: Tick) -> Latest<L> {
    Latest {
        snapshot: None,
        fault: Some(fault.clone()),
        attempted: Some(tick),
    }
}

fn read<L: crate::platform::Listing>(reading: Arc<Reading<L>>) -> Latest<L> {
    Latest {
        attempted: Some(reading.began),
        snapshot: Some(reading),
        fault: None,
    }
}

fn not_found(what: &str, id: &str) -> Fault {
    Fault::NotFound {
        message: format!("there is no {what} {id}"),
    }
}

#[async_trait]
impl Platform for InMemoryPlatform {
    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        if let Some(known) = self.with(|state| state.projects.clone()) {
            return known;
        }
        let read = self.source.list_projects().await;
        self.with(|state| state.projects = Some(read.clone()));
        read
    }

    async fn list_computes(&self, project: &ProjectId) -> Result<Listed<Compute>, Fault> {
        if let Some(known) = self.with(|state| known(&state.computes, project)) {
            return known;
        }
        let read = self.source.list_computes(project).await;
        self.with(|state| {
            state
                .computes
                .insert(project.clone(), read.clone().map(PlannedList::read))
        });
        read
    }

    /// Uses the list: a platform without a call to read one compute could answer only a change.
    async fn has_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<bool, Fault> {
        let listed = self.list_computes(project).await?;
        Ok(!matches!(
            listed.find(Some(compute), |listed| listed.id == *compute),
            Shown::Absent
        ))
    }

    async fn create_compute(
        &self,
        project: &ProjectId,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        let others = self.list_computes(project).await?;
        // An answer that cannot be read does not show that the branch is missing.
        if let Ok(false) = self.source.has_branch(project, &new.branch_id).await {
            return Err(not_found("branch", &new.branch_id));
        }
        let compute = self.with(|state| {
            let id = format!("new-compute-{}", state.number_of_new()).into();
            let compute = compute::created(id, project, new, others.shown(), self.now);
            if let Some(Ok(listed)) = state.computes.get_mut(project) {
                listed.now.shown_mut().push(compute.clone());
            }
            compute
        });
        let type_ = match new.role {
            Role::Primary => "ReadWrite",
            Role::Replica => "ReadOnly",
        };
        let settings = ComputeChange {
            branch_id: None,
            settings: new.settings.clone(),
        };
        self.trail.record(PlannedStep::CreateCompute {
            project: project.clone(),
            branch: new.branch_id.clone(),
            type_: type_.to_owned(),
            compute: compute.id.clone(),
            fields: compute::changed_fields(&settings, None),
        });
        Ok((compute, Vec::new()))
    }

    async fn update_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
        change: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault> {
        let (before, after) = self.change(project, compute, |compute| {
            let before = compute.clone();
            compute::apply(compute, change, self.now);
            (before, compute.clone())
        })?;
        self.trail.record(PlannedStep::ChangeCompute {
            project: project.clone(),
            compute: compute.clone(),
            fields: compute::changed_fields(change, Some(&before)),
            interrupts: drift::interrupts(change, &before)
                && before.current_state != ComputeState::Idle,
        });
        Ok(ChangeAnswer {
            compute: Some(after),
            operations: Vec::new(),
        })
    }

    async fn delete_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<(), Fault> {
        // It is sent even if a list does not show the compute.
        self.trail.record(PlannedStep::DeleteCompute {
            project: project.clone(),
            compute: compute.clone(),
        });
        self.list_computes(project).await?;
        self.with(|state| {
            state.changes += 1;
            let Some(Ok(listed)) = state.computes.get_mut(project) else {
                return Ok(());
            };
            if matches!(
                listed.now.find(Some(compute), |known| known.id == *compute),
                Shown::Absent
            ) {
                return Err(not_found("compute", compute));
            }
            listed.now.shown_mut().retain(|known| known.id != *compute);
            Ok(())
        })
    }

    async fn restart_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<ChangeAnswer, Fault> {
        let after = self.change(project, compute, |compute| {
            compute.started_at = Some(self.now);
            compute.updated_at = Some(self.now);
            compute.clone()
        })?;
        self.trail.record(PlannedStep::RestartCompute {
            project: project.clone(),
            compute: compute.clone(),
        });
        Ok(ChangeAnswer {
            compute: Some(after),
            operations: Vec::new(),
        })
    }

    async fn create_key(
        &self,
        organization: &OrganizationId,
        name: &str,
        project: &ProjectId,
    ) -> Result<CreatedKey, Fault> {
        let id = self.with(|state| {
            let id = KeyId(FIRST_NUMBER + state.number_of_new());
            if let Some(Ok(listed)) = state.keys.get_mut(organization) {
                listed.now.shown_mut().push(KeyEntry {
                    id,
                    name: name.to_owned(),
                    project_id: Some(project.clone()),
                    created_at: Some(self.now),
                    last_used_at: None,
                    last_used_from: None,
                });
            }
            id
        });
        self.trail.record(PlannedStep::CreateKey {
            project: project.clone(),
        });
        Ok(CreatedKey {
            id,
            name: name.to_owned(),
            secret: SecretString::from(format!("{NO_SECRET}-{id}")),
            created_at: Some(self.now),
            created_by: None,
            project_id: Some(project.clone()),
        })
    }

    /// Planned keys count as accepted. Other keys are checked with a read, as the operator does.
    async fn probe_key(&self, secret: &SecretString, project: &ProjectId) -> Result<(), Fault> {
        if secret.expose_secret().starts_with(NO_SECRET) {
            return Ok(());
        }
        self.source.probe_key(secret, project).await
    }

    async fn list_operations(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<Listed<Operation>, Fault> {
        self.source.list_operations(project, compute).await
    }

    async fn list_keys(&self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        if let Some(known) = self.with(|state| known(&state.keys, organization)) {
            return known;
        }
        let read = self.source.list_keys(organization).await;
        self.with(|state| {
            state
                .keys
                .insert(organization.clone(), read.clone().map(PlannedList::read))
        });
        read
    }

    async fn revoke_key(&self, organization: &OrganizationId, id: KeyId) -> Result<(), Fault> {
        let key = if id.0 > FIRST_NUMBER {
            "a new one".to_owned()
        } else {
            id.to_string()
        };
        match self.list_keys(organization).await {
            // A platform without a list of keys may lack this call, too, which only a real call
            // would show.
            Err(fault @ Fault::Unsupported { .. }) => return Err(fault),
            Err(_) => self.trail.record(PlannedStep::RevokeKey { key }),
            Ok(listed) => {
                self.trail.record(PlannedStep::RevokeKey { key });
                if matches!(
                    listed.find(Some(&id.to_string()), |entry| entry.id == id),
                    Shown::Absent
                ) {
                    return Err(not_found("key", &id.to_string()));
                }
            }
        }
        self.with(|state| {
            state.changes += 1;
            if let Some(Ok(listed)) = state.keys.get_mut(organization) {
                listed.now.shown_mut().retain(|entry| entry.id != id);
            }
        });
        Ok(())
    }
}
