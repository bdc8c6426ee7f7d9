//! A platform that is not read. Its state comes from the records and statuses of resources.

use std::collections::BTreeMap;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::api::{self, ComputeType};
use crate::decide::{drift, identity};
use crate::domain::{
    Compute, ComputeChange, ComputeId, ComputeState, ComputeUnits, CreatedKey, Fault, KeyEntry,
    Listed, NewCompute, Operation, Project, Role, Settings, Support,
};
use crate::platform::{Answer, Platform};

/// The state that was recorded through one account.
#[derive(Debug, Default)]
pub struct RecordedPlatform {
    /// By project.
    computes: BTreeMap<String, Vec<Compute>>,
    keys: Vec<KeyEntry>,
}

impl RecordedPlatform {
    /// Adds the compute that a resource is bound to, as it was last observed.
    pub fn add_compute(&mut self, object: &api::Compute) {
        let project = &object.spec.project_id;
        let known = self.computes.entry(project.clone()).or_default();
        let Ok(record) = identity::of_compute(object) else {
            return;
        };
        let (Some(binding), Some(status)) = (record.identity.binding, &object.status) else {
            return;
        };
        let role = match status.type_.unwrap_or(object.spec.type_) {
            ComputeType::ReadWrite => Role::Primary,
            ComputeType::ReadOnly => Role::Replica,
        };
        known.push(Compute {
            id: binding.id,
            project_id: project.clone(),
            branch_id: object.spec.branch_id.clone(),
            region: status.region.clone(),
            role,
            host: status.host.clone(),
            pooled_host: status.pooled_host.clone(),
            name: None,
            current_state: state(status.state.as_ref()),
            pending_state: None,
            settings: settings(object, status),
            last_active: status.last_active,
            created_at: status.created_at,
            updated_at: None,
            started_at: None,
            support: Support::default(),
        });
    }

    /// Adds the keys of a resource.
    pub fn add_key(&mut self, object: &api::ProjectKey) {
        let Ok(record) = identity::of_key(object) else {
            return;
        };
        let records = record.known().records;
        let mut keys = Vec::new();
        if let Some(key) = &records.current {
            keys.push((key.id, key.name.clone()));
        }
        for key in &records.previous {
            keys.push((key.id, key.name.clone()));
        }
        for key in &records.lost {
            if let Some(id) = key.id {
                keys.push((id, key.name.clone()));
            }
        }
        for (id, name) in keys {
            self.keys.push(KeyEntry {
                id,
                name,
                project_id: Some(object.spec.project_id.clone()),
                created_at: None,
                last_used_at: None,
                last_used_from: None,
            });
        }
    }
}

/// A status without a state is treated as that of an active compute.
fn state(word: Option<&String>) -> ComputeState {
    word.map_or(ComputeState::Active, |word| word.clone().into())
}

/// The status shows the size. Other settings are as declared, if the resource is synced with its
/// current spec.
fn settings(object: &api::Compute, status: &api::ComputeStatus) -> Settings {
    let is_synced = status.conditions.iter().any(|condition| {
        condition.type_ == "Synced"
            && condition.status == "True"
            && condition.observed_generation == object.metadata.generation
    });
    let size = status.size.as_deref().and_then(size);
    let declared = if is_synced {
        drift::declared(&object.spec)
    } else {
        Settings::default()
    };
    Settings {
        min: size.map(|(min, _)| min).or(declared.min),
        max: size.map(|(_, max)| max).or(declared.max),
        ..declared
    }
}

/// Parses one number, or a range.
fn size(text: &str) -> Option<(ComputeUnits, ComputeUnits)> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let units = |text: &str| ComputeUnits::new(text.trim().parse().ok()?);
    Some((units(min)?, units(max)?))
}

fn nowhere() -> Fault {
    Fault::Transport {
        message: "the platform is not called for a plan without an API key".to_owned(),
    }
}

#[async_trait]
impl Platform for RecordedPlatform {
    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        let project = |id: &String| Project {
            id: id.clone(),
            ..Project::default()
        };
        Ok(self.computes.keys().map(project).collect())
    }

    async fn list_computes(&self, project: &str) -> Result<Listed<Compute>, Fault> {
        Ok(self
            .computes
            .get(project)
            .cloned()
            .unwrap_or_default()
            .into())
    }

    async fn has_compute(&self, _: &str, _: &str) -> Result<bool, Fault> {
        Err(nowhere())
    }

    async fn create_compute(
        &self,
        _: &str,
        _: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        Err(nowhere())
    }

    async fn update_compute(&self, _: &str, _: &str, _: &ComputeChange) -> Result<Answer, Fault> {
        Err(nowhere())
    }

    async fn delete_compute(&self, _: &str, _: &ComputeId) -> Result<(), Fault> {
        Err(nowhere())
    }

    async fn restart_compute(&self, _: &str, _: &ComputeId) -> Result<Answer, Fault> {
        Err(nowhere())
    }

    async fn create_key(&self, _: &str, _: &str, _: &str) -> Result<CreatedKey, Fault> {
        Err(nowhere())
    }

    async fn probe_key(&self, _: &SecretString, _: &str) -> Result<(), Fault> {
        Ok(())
    }

    async fn list_operations(&self, _: &str, _: &str) -> Result<Listed<Operation>, Fault> {
        Ok(Listed::default())
    }

    async fn list_keys(&self, _: &str) -> Result<Listed<KeyEntry>, Fault> {
        Ok(self.keys.clone().into())
    }

    async fn revoke_key(&self, _: &str, _: i64) -> Result<(), Fault> {
        Err(nowhere())
    }
}
