//! The platform as the steps see it: every call is an effect.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dbplane::platform::{
    Answer as PlatformAnswer, ComputeChange, CreatedKey, Fault, KeyEntry, NewCompute, Platform, Project,
};
use secrecy::{ExposeSecret, SecretString};

use super::mutation::Mutation;
use super::tape::{Answer, Effect, Tape, effect};

/// The platform as the steps see it.
#[derive(Clone, Debug)]
pub struct Remote(pub Arc<Mutex<Tape>>, pub Option<Mutation>);

impl Remote {
    async fn call(&self, asked: Effect) -> Result<Answer, Fault> {
        match effect(&self.0, asked).await {
            Answer::Fault(Fault::Unknown { message }) if self.1 == Some(Mutation::UnknownIsNotDone) => {
                Err(Fault::Transport { message })
            }
            Answer::Fault(fault) => Err(fault),
            answer => Ok(answer),
        }
    }
}

fn number(id: &str) -> u8 {
    id.trim_start_matches("ep-").parse().unwrap()
}

#[async_trait]
impl Platform for Remote {
    async fn create_compute(&self, project: &str, new: &NewCompute) -> Result<PlatformAnswer, Fault> {
        let Answer::Made(id) = self.call(Effect::CreateCompute { name: new.name.clone() }).await? else {
            unreachable!("a create makes something")
        };
        let made = super::effects::compute(id, new.name.clone(), true, project);
        Ok(PlatformAnswer { compute: Some(made), operations: Vec::new() })
    }

    async fn delete_compute(&self, _: &str, compute: &String) -> Result<(), Fault> {
        self.call(Effect::DeleteCompute(number(compute))).await.map(drop)
    }

    async fn create_key(&self, _: &str, name: &str, _: &str) -> Result<CreatedKey, Fault> {
        let Answer::Made(id) = self.call(Effect::CreateKey(name.to_owned())).await? else {
            unreachable!("a create makes something")
        };
        let secret = SecretString::from(super::effects::secret_of(id));
        let id = i64::from(id);
        Ok(CreatedKey { id, name: name.to_owned(), secret, created_at: None, created_by: None, project_id: None })
    }

    async fn probe_key(&self, secret: &SecretString, _: &str) -> Result<(), Fault> {
        self.call(Effect::ProbeKey(secret.expose_secret().to_owned())).await.map(drop)
    }

    async fn list_keys(&self, _: &str) -> Result<Vec<KeyEntry>, Fault> {
        match self.call(Effect::ListKeys).await? {
            Answer::Keys(keys) => Ok(keys),
            other => unreachable!("{other:?}"),
        }
    }

    async fn revoke_key(&self, _: &str, id: i64) -> Result<(), Fault> {
        self.call(Effect::RevokeKey(u8::try_from(id).unwrap())).await.map(drop)
    }

    async fn list_projects(&self) -> Result<Vec<Project>, Fault> {
        unreachable!("no step lists projects")
    }

    async fn list_computes(&self, _: &str) -> Result<Vec<dbplane::platform::Compute>, Fault> {
        unreachable!("the project's reader lists computes")
    }

    async fn update_compute(&self, _: &str, id: &str, _: &ComputeChange) -> Result<PlatformAnswer, Fault> {
        unreachable!("{id} is as declared")
    }

    async fn restart_compute(&self, _: &str, id: &String) -> Result<PlatformAnswer, Fault> {
        unreachable!("no restart of {id} is asked for")
    }
}
