//! The client of the platform that the passes use. Every call is an effect.

use async_trait::async_trait;
use dbplane::domain::{
    Compute, ComputeChange, ComputeId, CreatedKey, Fault, KeyEntry, KeyId, Listed, NewCompute,
    Operation, OrganizationId, Project, ProjectId,
};
use dbplane::platform::{ChangeAnswer, Platform, PlatformClient};
use secrecy::{ExposeSecret, SecretString};

use super::mutation::Mutation;
use super::replay::{Answer, Call, Effect, effect, mutation, resource};

/// The platform, called with one of the account's API keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    pub key: u8,
}

impl Remote {
    async fn call(&self, call: Call) -> Result<Answer, Fault> {
        match effect(Effect::Platform(self.key, call)).await {
            Answer::Fault(Fault::Unknown { message })
                if mutation() == Some(Mutation::UnknownIsNotDone) =>
            {
                Err(Fault::Transport { message })
            }
            Answer::Fault(fault) => Err(fault),
            answer => Ok(answer),
        }
    }
}

/// The number of a compute, from its id.
pub fn number(id: &str) -> u8 {
    id.trim_start_matches("ep-").parse().unwrap()
}

impl PlatformClient for Remote {
    fn with_place(&self) -> Self {
        self.clone()
    }

    fn probing(&self) -> Self {
        self.clone()
    }

    fn for_namespace(&self, _: &str) -> Self {
        self.clone()
    }

    fn refused(&self) {}

    fn suspended(&self) -> Option<Fault> {
        None
    }

    /// The model's accounts use keys that no ProjectKey created.
    fn is_held_elsewhere(&self) -> bool {
        false
    }
}

#[async_trait]
impl Platform for Remote {
    async fn create_compute(
        &self,
        project: &ProjectId,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        let Answer::Made(id) = self
            .call(Call::CreateCompute(resource(), new.name.clone()))
            .await?
        else {
            unreachable!("a create makes something")
        };
        let made = super::effects::compute(id, new.name.clone(), true, project);
        Ok((
            Compute {
                role: new.role,
                ..made
            },
            Vec::new(),
        ))
    }

    async fn has_compute(&self, _: &ProjectId, compute: &ComputeId) -> Result<bool, Fault> {
        match self.call(Call::HasCompute(number(compute))).await {
            Ok(_) => Ok(true),
            Err(Fault::NotFound { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    async fn delete_compute(&self, _: &ProjectId, compute: &ComputeId) -> Result<(), Fault> {
        self.call(Call::DeleteCompute(number(compute)))
            .await
            .map(drop)
    }

    async fn create_key(
        &self,
        _: &OrganizationId,
        name: &str,
        _: &ProjectId,
    ) -> Result<CreatedKey, Fault> {
        let Answer::Made(id) = self.call(Call::CreateKey(name.to_owned())).await? else {
            unreachable!("a create makes something")
        };
        let secret = SecretString::from(super::effects::secret_of(id));
        let id = KeyId(id.into());
        Ok(CreatedKey {
            id,
            name: name.to_owned(),
            secret,
            created_at: None,
            created_by: None,
            project_id: None,
        })
    }

    async fn probe_key(&self, secret: &SecretString, _: &ProjectId) -> Result<(), Fault> {
        self.call(Call::ProbeKey(secret.expose_secret().to_owned()))
            .await
            .map(drop)
    }

    async fn list_keys(&self, _: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        match self.call(Call::ListKeys).await? {
            Answer::Keys(keys) => Ok(keys.into()),
            other => unreachable!("{other:?}"),
        }
    }

    async fn revoke_key(&self, _: &OrganizationId, id: KeyId) -> Result<(), Fault> {
        self.call(Call::RevokeKey(u8::try_from(id.0).unwrap()))
            .await
            .map(drop)
    }

    async fn list_operations(
        &self,
        _: &ProjectId,
        id: &ComputeId,
    ) -> Result<Listed<Operation>, Fault> {
        unreachable!("{id} is settled")
    }

    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        self.call(Call::ListProjects).await?;
        Ok(vec![Project {
            id: "p-1".into(),
            ..Project::default()
        }]
        .into())
    }

    async fn list_computes(
        &self,
        _: &ProjectId,
    ) -> Result<Listed<dbplane::domain::Compute>, Fault> {
        self.call(Call::ListComputes)
            .await
            .map(|_| Listed::default())
    }

    async fn update_compute(
        &self,
        _: &ProjectId,
        id: &ComputeId,
        _: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault> {
        unreachable!("{id} is as declared")
    }

    async fn restart_compute(&self, _: &ProjectId, id: &ComputeId) -> Result<ChangeAnswer, Fault> {
        unreachable!("no restart of {id} is asked for")
    }
}
