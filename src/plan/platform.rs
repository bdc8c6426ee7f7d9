//! The platform of a plan: read once, and changed only in memory. Changes succeed at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use super::steps::{Field, Step};
use super::trail::Trail;
use crate::decide::drift;
use crate::domain::{
    Compute, ComputeChange, ComputeId, ComputeState, CreatedKey, Fault, KeyEntry, Listed,
    NameSupport, NewCompute, Operation, Project, Role, Settings, Shown, Support,
};
use crate::platform::{Answer, Computes, KeyList, Keys, Latest, Platform, Reading, Tick};

/// IDs of planned keys: larger than those of any platform, and still exact in JSON.
const FIRST_NUMBER: i64 = 9_000_000_000_000_000;
/// The placeholder for the secret of a planned key.
const NO_SECRET: &str = "known-once-the-key-is-made";

/// The platform of one account.
pub struct InMemoryPlatform {
    source: Arc<dyn Platform>,
    trail: Arc<Trail>,
    now: Timestamp,
    state: Mutex<State>,
}

impl fmt::Debug for InMemoryPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryPlatform")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    projects: Option<Result<Listed<Project>, Fault>>,
    computes: BTreeMap<String, Result<Known<Compute>, Fault>>,
    keys: BTreeMap<String, Result<Known<KeyEntry>, Fault>>,
    /// The latest readings, with the number of changes that they show.
    shown: BTreeMap<String, (u64, Arc<Reading<Computes>>)>,
    shown_keys: Option<(u64, Arc<KeyList>)>,
    made: i64,
    changes: u64,
}

/// A list as it was read, and with the changes so far.
#[derive(Clone, Debug)]
struct Known<T> {
    before: Vec<T>,
    now: Listed<T>,
}

impl<T: Clone> Known<T> {
    fn read(listed: Listed<T>) -> Self {
        Self {
            before: listed.shown().to_vec(),
            now: listed,
        }
    }
}

/// A compute before and after the plan.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub before: Option<Compute>,
    pub after: Option<Compute>,
}

impl InMemoryPlatform {
    pub fn new(source: Arc<dyn Platform>, trail: Arc<Trail>, now: Timestamp) -> Self {
        Self {
            source,
            trail,
            now,
            state: Mutex::default(),
        }
    }

    fn with<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state of a project, or `None` if it was not read.
    pub fn snapshot(
        &self,
        project: &str,
        tick: Tick,
        after: Option<Tick>,
    ) -> Option<Latest<Computes>> {
        self.with(|state| {
            let computes = match state.computes.get(project)? {
                Err(fault) => return Some(failed(fault, tick)),
                Ok(listed) => &listed.now,
            };
            let is_current = |shown: &&(u64, Arc<Reading<Computes>>)| {
                shown.0 == state.changes && after.is_none_or(|after| shown.1.began > after)
            };
            let reading = match state.shown.get(project).filter(is_current) {
                Some((_, reading)) => reading.clone(),
                None => Arc::new(Reading::new(tick, (self.now, self.now), computes.clone())),
            };
            state
                .shown
                .insert(project.to_owned(), (state.changes, reading.clone()));
            Some(read(reading))
        })
    }

    /// The state of the keys of an organization, or `None` if they were not read.
    pub fn keys(
        &self,
        organization: &str,
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
            let reading = match state.shown_keys.as_ref().filter(is_current) {
                Some((_, reading)) => reading.clone(),
                None => Arc::new(Reading::new(tick, (self.now, self.now), keys.clone())),
            };
            state.shown_keys = Some((state.changes, reading.clone()));
            Some(read(reading))
        })
    }

    /// The change of a compute in this plan.
    pub fn change_of(&self, project: &str, id: &str) -> Change {
        self.with(|state| {
            let Some(Ok(listed)) = state.computes.get(project) else {
                return Change::default();
            };
            let find = |all: &[Compute]| all.iter().find(|compute| compute.id == id).cloned();
            Change {
                before: find(&listed.before),
                after: find(listed.now.shown()),
            }
        })
    }

    /// Changes a compute in a project that was read.
    fn change<T>(
        &self,
        project: &str,
        id: &str,
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
                    .find(|compute| compute.id == id)
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

/// Unknown properties of a new compute have placeholders.
fn imagined(
    project: &str,
    new: &NewCompute,
    others: &[Compute],
    (number, now): (i64, Timestamp),
) -> Compute {
    let id = format!("new-compute-{number}");
    let support = Support::among(others);
    let names = if new.name.is_some() {
        NameSupport::Kept
    } else {
        support.names
    };
    let pooled = others.iter().any(|other| other.pooled_host.is_some());
    Compute {
        project_id: project.to_owned(),
        branch_id: new.branch_id.clone(),
        region: others.first().and_then(|other| other.region.clone()),
        role: new.role,
        host: Some(format!("{id}.host-known-once-it-is-made")),
        pooled_host: pooled.then(|| format!("{id}-pooler.host-known-once-it-is-made")),
        name: new.name.clone(),
        current_state: ComputeState::Active,
        pending_state: None,
        settings: new.settings.clone(),
        last_active: None,
        created_at: Some(now),
        updated_at: Some(now),
        started_at: Some(now),
        support: Support { names, ..support },
        id,
    }
}

/// The fields that a change sets, with their previous values.
fn fields(change: &ComputeChange, compute: Option<&Compute>) -> Vec<Field> {
    let before = compute
        .map(|compute| drift::shown(&compute.settings))
        .unwrap_or_default();
    let set = drift::shown(&change.settings)
        .into_iter()
        .map(|(field, after)| {
            let before = before
                .iter()
                .find(|(known, _)| *known == field)
                .map(|(_, value)| value.clone());
            Field {
                field,
                before,
                after,
            }
        });
    let branch = change.branch_id.iter().map(|branch| Field {
        field: "branchID".to_owned(),
        before: compute.map(|compute| compute.branch_id.clone()),
        after: branch.clone(),
    });
    // A change sends all database settings, although most stay the same.
    branch
        .chain(set)
        .filter(|field| field.before.as_ref() != Some(&field.after))
        .collect()
}

/// The settings after a change.
fn set(settings: &mut Settings, change: &Settings) {
    let Settings {
        min,
        max,
        suspend_after,
        pooler_enabled,
        pooler_mode,
        postgres,
        passwordless_access,
        disabled,
    } = change.clone();
    settings.min = min.or(settings.min);
    settings.max = max.or(settings.max);
    settings.suspend_after = suspend_after.or(settings.suspend_after);
    settings.pooler_enabled = pooler_enabled.or(settings.pooler_enabled);
    settings.pooler_mode = pooler_mode.or_else(|| settings.pooler_mode.take());
    settings.passwordless_access = passwordless_access.or(settings.passwordless_access);
    settings.disabled = disabled.or(settings.disabled);
    if !postgres.is_empty() {
        settings.postgres = postgres;
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

    async fn list_computes(&self, project: &str) -> Result<Listed<Compute>, Fault> {
        let known = |state: &mut State| {
            Some(
                state
                    .computes
                    .get(project)?
                    .as_ref()
                    .map(|it| it.now.clone())
                    .map_err(Fault::clone),
            )
        };
        if let Some(known) = self.with(known) {
            return known;
        }
        let read = self.source.list_computes(project).await;
        self.with(|state| {
            state
                .computes
                .insert(project.to_owned(), read.clone().map(Known::read))
        });
        read
    }

    /// Uses the list: a platform without a call to read one compute could answer only a change.
    async fn has_compute(&self, project: &str, compute: &str) -> Result<bool, Fault> {
        let listed = self.list_computes(project).await?;
        Ok(!matches!(
            listed.find(Some(compute), |listed| listed.id == compute),
            Shown::Absent
        ))
    }

    async fn create_compute(
        &self,
        project: &str,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        let others = self.list_computes(project).await?;
        let compute = self.with(|state| {
            (state.made, state.changes) = (state.made + 1, state.changes + 1);
            let compute = imagined(project, new, others.shown(), (state.made, self.now));
            if let Some(Ok(listed)) = state.computes.get_mut(project) {
                listed.now.shown_mut().push(compute.clone());
            }
            compute
        });
        let type_ = match new.role {
            Role::Primary => "ReadWrite",
            Role::Replica => "ReadOnly",
        };
        self.trail.note(Step::CreateCompute {
            project: project.to_owned(),
            branch: new.branch_id.clone(),
            type_: type_.to_owned(),
            compute: compute.id.clone(),
            fields: fields(
                &ComputeChange {
                    branch_id: None,
                    settings: new.settings.clone(),
                },
                None,
            ),
        });
        Ok((compute, Vec::new()))
    }

    async fn update_compute(
        &self,
        project: &str,
        compute: &str,
        change: &ComputeChange,
    ) -> Result<Answer, Fault> {
        let (before, after) = self.change(project, compute, |compute| {
            let before = compute.clone();
            set(&mut compute.settings, &change.settings);
            compute.branch_id = change
                .branch_id
                .clone()
                .unwrap_or_else(|| compute.branch_id.clone());
            compute.updated_at = Some(self.now);
            if drift::interrupts(change, &before) {
                compute.started_at = Some(self.now);
            }
            (before, compute.clone())
        })?;
        let interrupts =
            drift::interrupts(change, &before) && before.current_state != ComputeState::Idle;
        let fields = fields(change, Some(&before));
        let (project, compute) = (project.to_owned(), compute.to_owned());
        self.trail.note(Step::ChangeCompute {
            project,
            compute,
            fields,
            interrupts,
        });
        Ok(Answer {
            compute: Some(after),
            operations: Vec::new(),
        })
    }

    async fn delete_compute(&self, project: &str, compute: &ComputeId) -> Result<(), Fault> {
        // It is sent even if a list does not show the compute.
        self.trail.note(Step::DeleteCompute {
            project: project.to_owned(),
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

    async fn restart_compute(&self, project: &str, compute: &ComputeId) -> Result<Answer, Fault> {
        let after = self.change(project, compute, |compute| {
            (compute.started_at, compute.updated_at) = (Some(self.now), Some(self.now));
            compute.clone()
        })?;
        self.trail.note(Step::RestartCompute {
            project: project.to_owned(),
            compute: compute.clone(),
        });
        Ok(Answer {
            compute: Some(after),
            operations: Vec::new(),
        })
    }

    async fn create_key(
        &self,
        organization: &str,
        name: &str,
        project: &str,
    ) -> Result<CreatedKey, Fault> {
        let id = self.with(|state| {
            (state.made, state.changes) = (state.made + 1, state.changes + 1);
            let id = FIRST_NUMBER + state.made;
            if let Some(Ok(listed)) = state.keys.get_mut(organization) {
                listed.now.shown_mut().push(KeyEntry {
                    id,
                    name: name.to_owned(),
                    project_id: Some(project.to_owned()),
                    created_at: Some(self.now),
                    last_used_at: None,
                    last_used_from: None,
                });
            }
            id
        });
        self.trail.note(Step::CreateKey {
            project: project.to_owned(),
        });
        Ok(CreatedKey {
            id,
            name: name.to_owned(),
            secret: SecretString::from(format!("{NO_SECRET}-{id}")),
            created_at: Some(self.now),
            created_by: None,
            project_id: Some(project.to_owned()),
        })
    }

    /// Planned keys count as accepted. Other keys are checked with a read, as the operator does.
    async fn probe_key(&self, secret: &SecretString, project: &str) -> Result<(), Fault> {
        if secret.expose_secret().starts_with(NO_SECRET) {
            return Ok(());
        }
        self.source.probe_key(secret, project).await
    }

    async fn list_operations(
        &self,
        project: &str,
        compute: &str,
    ) -> Result<Listed<Operation>, Fault> {
        self.source.list_operations(project, compute).await
    }

    async fn list_keys(&self, organization: &str) -> Result<Listed<KeyEntry>, Fault> {
        let known = |state: &mut State| {
            Some(
                state
                    .keys
                    .get(organization)?
                    .as_ref()
                    .map(|it| it.now.clone())
                    .map_err(Fault::clone),
            )
        };
        if let Some(known) = self.with(known) {
            return known;
        }
        let read = self.source.list_keys(organization).await;
        self.with(|state| {
            state
                .keys
                .insert(organization.to_owned(), read.clone().map(Known::read))
        });
        read
    }

    async fn revoke_key(&self, organization: &str, id: i64) -> Result<(), Fault> {
        let key = if id > FIRST_NUMBER {
            "a new one".to_owned()
        } else {
            id.to_string()
        };
        match self.list_keys(organization).await {
            // A platform without a list of keys may lack this call, too, which only a real call
            // would show.
            Err(fault @ Fault::Unsupported { .. }) => return Err(fault),
            Err(_) => self.trail.note(Step::RevokeKey { key }),
            Ok(listed) => {
                self.trail.note(Step::RevokeKey { key });
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
