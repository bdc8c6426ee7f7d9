//! Performs the steps for a ProjectKey, and records each so that a successor can continue. The
//! platform shows a secret only once, so it is kept until it is saved.

mod create;
mod probe;

use super::record::{recording_keys, release, stored, wrote_key};
use super::secret;
use crate::api::{Known, ProjectKey};
use crate::cluster::{Event, Owner, SecretState, WriteError, secrets};
use crate::controller::access;
use crate::controller::environment::{Environment, Occurrence, StepError};
use crate::controller::labels;
use crate::controller::pass::calls::{
    ActionLine, Recording, acted, failed, publish, record, recording, restore, secret_written,
};
use crate::controller::state::{AccountConnection, SharedConnection};
use crate::decide::Action;
use crate::decide::identity::{KeyRecords, ProjectKeyIdentity};
use crate::decide::key::{KeyStep, SecretContents};
use crate::domain::{Fault, KeyId, OrganizationId};
use crate::platform::{Platform, PlatformClient};
use crate::telemetry::metrics::KeyChange;

pub async fn perform<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    step: &KeyStep,
) -> Result<(), StepError> {
    let work = KeyWork { env, object };
    match step {
        KeyStep::Restore { record } => restore(env, object, record.as_deref()).await,
        KeyStep::PrepareSecret => work.prepare().await,
        KeyStep::AdoptSecret { key, version } => work.adopt_secret(key.as_deref(), version).await,
        KeyStep::CreateKey {
            intent,
            because,
            try_first,
        } => {
            work.create_key(intent, because.as_deref(), *try_first)
                .await
        }
        KeyStep::TryUnsaved => work.try_unsaved().await.map(drop),
        KeyStep::GiveUpRefused { records, message } => work.give_up_refused(records, message).await,
        KeyStep::SaveSecret => work.save(object).await,
        KeyStep::GiveUpUnsaved { records } => work.give_up_unsaved(records).await,
        KeyStep::RewriteSecret => work.rewrite().await,
        KeyStep::Record { records, event } => work.record(records, event.as_deref()).await,
        KeyStep::RecordIdentity { identity } => work.record_identity(identity).await,
        KeyStep::Acknowledge { records, event } => work.acknowledge(records, event).await,
        KeyStep::Revoke {
            id,
            name,
            records,
            in_use,
        } => work.revoke(*id, name, records, in_use.as_deref()).await,
        KeyStep::ListKeys => work.list().await,
        KeyStep::Probe => work.probe().await,
        KeyStep::RemoveFinalizer => release(env, object, None).await,
        KeyStep::ReleaseWithProject { event } => release(env, object, Some(event)).await,
    }
}

struct KeyWork<'a, E> {
    env: &'a E,
    object: &'a Known<ProjectKey>,
}

impl<E: Environment> KeyWork<'_, E> {
    async fn prepare(&self) -> Result<(), StepError> {
        let owner = Owner::of(self.object);
        let name = &self.object.spec.secret.name;
        let type_ = Some(self.object.spec.secret.type_.as_str());
        let created = secrets::create_empty(self.env.cluster(), &owner, name, type_).await;
        secret_written(
            self.env,
            self.object.uid(),
            created.map_err(WriteError::from),
            name,
        )?;
        ActionLine::wrote_secret(name).log(&format!("Created Secret {name}, for the key to come."));
        Ok(())
    }

    async fn adopt_secret(&self, key: Option<&str>, version: &str) -> Result<(), StepError> {
        let owner = Owner::of(self.object);
        let name = &self.object.spec.secret.name;
        let adopted = secrets::adopt(self.env.cluster(), &owner, name, version).await;
        secret_written(
            self.env,
            self.object.uid(),
            adopted.map_err(WriteError::from),
            name,
        )?;
        let content = key.map_or_else(|| "is empty".to_owned(), |key| format!("holds key {key}"));
        let adopted = ActionLine {
            key,
            secret: Some(name),
            ..ActionLine::of(labels::ADOPT_SECRET)
        };
        self.done(
            adopted,
            &Event::once("Linked", format!("Adopted Secret {name}, which {content}.")),
        )
        .await;
        Ok(())
    }

    async fn acknowledge(&self, records: &KeyRecords, event: &str) -> Result<(), StepError> {
        let records = records.clone();
        let acknowledged = recording(self.object, |known| ProjectKeyIdentity { records, ..known })?;
        record(self.env, self.object, acknowledged).await?;
        self.done(
            ActionLine::of(labels::FORGET_KEY),
            &Event::normal("KeyForgotten", event),
        )
        .await;
        Ok(())
    }

    async fn record_identity(&self, identity: &ProjectKeyIdentity) -> Result<(), StepError> {
        // An earlier list may be older than the key.
        self.keys_changed();
        let recording = Recording {
            held: true,
            ..recording(self.object, |_| identity.clone())?
        };
        Ok(record(self.env, self.object, recording).await.map(drop)?)
    }

    async fn rewrite(&self) -> Result<(), StepError> {
        let owner = Owner::of(self.object);
        let url = access::base_url(self.env, self.object);
        let name = &self.object.spec.secret.name;
        let cluster = self.env.cluster();
        let SecretState::Ours(found) = secrets::state(cluster, &owner, name).await? else {
            return Ok(());
        };
        let (spec, records) = (&self.object.spec, &self.object.identity()?.records);
        let (SecretContents::Key { key, .. }, Some(value)) =
            secret::secret_contents(spec, &found, records, &url)
        else {
            return Ok(());
        };
        let previous = secret::previous(&found, records);
        let content = secret::content(spec, &key, &value, previous.as_ref(), &url);
        let left = secret::leftover(&found, &content);
        let written = secrets::write(cluster, &owner, name, Some(&found), &content).await;
        if let (Ok(stands), Some(entry)) = (&written, &left) {
            secrets::remove(cluster, &owner.namespace, stands, [entry]).await?;
        }
        stored(
            self.env,
            self.object,
            written.map_err(WriteError::from),
            &content,
        )?;
        wrote_key(name, &key);
        Ok(())
    }

    async fn record(&self, records: &KeyRecords, event: Option<&str>) -> Result<(), StepError> {
        self.write_records(records).await?;
        if let Some(text) = event {
            let lost = records.lost.len() > self.object.identity()?.records.lost.len();
            let event = if lost {
                Event::warning("KeyLeft", text)
            } else {
                Event::once("KeyRevoked", text)
            };
            publish(self.env, self.object, &event).await;
        }
        Ok(())
    }

    async fn write_records(&self, records: &KeyRecords) -> Result<(), StepError> {
        record(self.env, self.object, recording_keys(self.object, records)?).await?;
        self.count_lost(records)?;
        self.env.state().probe_outdated(self.object.uid());
        // A key that is recorded as gone has no use in memory.
        let unsaved = self.env.state().unsaved_key(self.object.uid());
        if unsaved.is_some_and(|unsaved| records.names().all(|name| name != unsaved.key.name)) {
            self.env.state().take_unsaved_key(self.object.uid());
        }
        Ok(())
    }

    async fn revoke(
        &self,
        id: KeyId,
        name: &str,
        records: &KeyRecords,
        in_use: Option<&str>,
    ) -> Result<(), StepError> {
        let connection = self.connection(Action::Revoke)?;
        let organization = organization(&connection, Action::Revoke)?;
        match self
            .platform(&connection)
            .revoke_key(&organization, id)
            .await
        {
            Ok(()) | Err(Fault::NotFound { .. }) => {}
            Err(Fault::Unsupported { .. }) => {
                self.env
                    .state()
                    .revocation_not_offered(self.object.uid(), self.env.now());
                return Ok(());
            }
            Err(fault) => return Err(failed(Action::Revoke)(fault)),
        }
        self.keys_changed();
        self.env
            .state()
            .action_succeeded(self.object.uid(), Action::Revoke);
        self.env
            .record(self.object, Occurrence::KeyChanged(KeyChange::Revoked));
        self.write_records(records).await?;
        let revoked = ActionLine {
            key: Some(name),
            key_id: Some(id),
            ..self.did(Action::Revoke)
        };
        let done = format!("Revoked key {name} ({id}).");
        let event = in_use.map_or_else(
            || Event::once("KeyRevoked", done.clone()),
            |why| {
                Event::warning(
                    "KeyRevokedInUse",
                    format!("{done} It may still be in use: {why}"),
                )
            },
        );
        self.done(revoked, &event).await;
        Ok(())
    }

    /// Counts the lost keys that these records add.
    fn count_lost(&self, records: &KeyRecords) -> Result<(), StepError> {
        for _ in self.object.identity()?.records.lost.len()..records.lost.len() {
            self.env
                .record(self.object, Occurrence::KeyChanged(KeyChange::Lost));
        }
        Ok(())
    }

    /// The client, with its calls counted for the namespace of the resource.
    fn platform(&self, connection: &AccountConnection<E::Client>) -> E::Client {
        connection.platform.for_namespace(self.object.namespace())
    }

    /// A connection to the platform of the recorded keys.
    fn connection(&self, action: Action) -> Result<SharedConnection<E::Client>, StepError> {
        self.connection_to(self.object.identity()?.platform(), action)
    }

    /// Fails if the account leads to another platform by now, which must not see the key.
    fn connection_to(
        &self,
        platform: Option<&str>,
        action: Action,
    ) -> Result<SharedConnection<E::Client>, StepError> {
        // A record without a platform leads nowhere.
        access::connection_to(self.env, self.object, platform.unwrap_or_default(), action)
    }

    /// Lists that began before now do not show the change.
    fn keys_changed(&self) {
        self.env
            .state()
            .keys_outdated(self.object.uid(), self.env.tick());
    }

    fn did(&self, action: Action) -> ActionLine<'_> {
        ActionLine {
            project: Some(&self.object.spec.project_id),
            ..ActionLine::of(labels::action(action))
        }
    }

    async fn done(&self, what: ActionLine<'_>, event: &Event) {
        acted(self.env, self.object, what, event).await;
    }
}

fn organization<P>(
    connection: &AccountConnection<P>,
    action: Action,
) -> Result<OrganizationId, StepError> {
    connection.access.organization_id.clone().ok_or_else(|| {
        let message = "the account has no organizationID".to_owned();
        failed(action)(Fault::Rejected {
            status: 400,
            message,
        })
    })
}
