//! Performs the steps for a ProjectKey, and records each so that a successor can continue. The
//! platform shows a secret only once, so it is kept until it is saved.

use kube::ResourceExt;
use secrecy::SecretString;

use super::super::access;
use super::super::environment::{Environment, StepError};
use super::super::labels;
use super::super::object::uid;
use super::super::pass::calls::{
    ActionLine, Recording, acted, count_create, failed, publish, record, record_call, restore,
    secret_written,
};
use super::super::state::{Connection, SharedConnection, UnsavedKey};
use super::listing::{interest, is_not_offered};
use super::record::{recording, recording_keys, release, stored, wrote_key};
use super::save::{GIVEN_UP, Saved, write_unsaved};
use super::secret;
use super::secret::Previous;
use super::turn::turn_to_ask;
use crate::api::ProjectKey;
use crate::cluster::{Event, Owner, SecretState, WriteError, secrets};
use crate::decide::Action;
use crate::decide::identity::{self, KeyIdentity, KeyIntent, KeyRecords, ProjectKeyIdentity};
use crate::decide::key::{KeyStep, Probe, SecretContents, tried};
use crate::decide::memory::Problem;
use crate::domain::Fault;
use crate::platform::{Platform, PlatformClient};
use crate::telemetry::metrics::KeyChange;

/// The length of the stand-in for a key in a dry run; keys of the platform are shorter.
const KEY_LENGTH: usize = 256;

pub async fn perform<E: Environment>(
    env: &E,
    object: &ProjectKey,
    step: &KeyStep,
) -> Result<(), StepError> {
    let work = Work {
        env,
        object,
        identity: identity::of_key(object).unwrap_or_default().known(),
    };
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
        } => work.revoke((*id, name), records, in_use.as_deref()).await,
        KeyStep::ListKeys => work.list().await,
        KeyStep::Probe => work.probe().await,
        KeyStep::RemoveFinalizer => release(env, object, None).await,
        KeyStep::ReleaseWithProject { event } => release(env, object, Some(event)).await,
    }
}

struct Work<'a, E> {
    env: &'a E,
    object: &'a ProjectKey,
    identity: ProjectKeyIdentity,
}

impl<E: Environment> Work<'_, E> {
    async fn prepare(&self) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else {
            return Ok(());
        };
        let name = &self.object.spec.secret.name;
        let type_ = Some(self.object.spec.secret.type_.as_str());
        let created = secrets::create_empty(self.env.cluster(), &owner, name, type_).await;
        secret_written(
            self.env,
            &self.uid(),
            created.map_err(WriteError::from),
            name,
        )?;
        ActionLine::wrote_secret(name).log(&format!("Created Secret {name}, for the key to come."));
        Ok(())
    }

    async fn adopt_secret(&self, key: Option<&str>, version: &str) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else {
            return Ok(());
        };
        let name = &self.object.spec.secret.name;
        let adopted = secrets::adopt(self.env.cluster(), &owner, name, version).await;
        secret_written(
            self.env,
            &self.uid(),
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
        let acknowledged = recording(self.object, |known| ProjectKeyIdentity { records, ..known });
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
            ..recording(self.object, |_| identity.clone())
        };
        Ok(record(self.env, self.object, recording).await.map(drop)?)
    }

    /// Intent, call, Secret, record: after a crash in between, a successor can find out the result.
    async fn create_key(
        &self,
        intent: &KeyIntent,
        because: Option<&str>,
        try_first: bool,
    ) -> Result<(), StepError> {
        let connection = self.connection_to(intent.platform.as_deref(), Action::CreateKey)?;
        let organization = organization(&connection, Action::CreateKey)?;
        let admitted = self
            .env
            .admit_key_creation(&self.platform(&connection))
            .await;
        let Some(platform) = admitted.map_err(failed(Action::CreateKey))? else {
            return Ok(());
        };
        // Waiting for room comes first, so that this answer is recent when the key arrives.
        self.dry_run(intent, &connection.access.base_url).await?;
        if let Some(why) = because {
            publish(self.env, self.object, &Event::warning("KeyReplaced", why)).await;
        }
        let intent = &KeyIntent {
            at: self.env.now(),
            ..intent.clone()
        };
        let intended = |known| ProjectKeyIdentity {
            intent: Some(intent.clone()),
            ..known
        };
        let call = (Action::CreateKey, intent.at);
        let intended = record_call(
            self.env,
            self.object,
            call,
            recording(self.object, intended),
        )
        .await?;
        let created = platform
            .create_key(&organization, &intent.name, &self.object.spec.project_id)
            .await;
        count_create(self.env, self.object, &created);
        self.keys_changed();
        let created = created.map_err(failed(Action::CreateKey))?;
        let key = KeyIdentity {
            id: created.id,
            name: intent.name.clone(),
            at: intent.at,
            created_at: created.created_at,
            created_by: created.created_by,
        };
        let unsaved = UnsavedKey {
            key: key.clone(),
            intent: intent.clone(),
            secret: created.secret,
            trial: try_first.then_some(Probe::NotAsked(None)),
            namespace: self.object.namespace().unwrap_or_default(),
            name: self.object.name_any(),
        };
        self.env.state().key_created(&self.uid(), unsaved);
        self.env
            .state()
            .action_succeeded(&self.uid(), Action::CreateKey);
        // The Secret comes first. The event follows even if the Secret could not be written.
        let saved = match self.try_unsaved().await {
            Ok(Probe::Accepted(_)) => self.save(&intended).await,
            Ok(Probe::Refused { .. } | Probe::NotAsked(_)) => Ok(()),
            Err(error) => Err(error),
        };
        let made = ActionLine {
            key: Some(&key.name),
            key_id: Some(key.id),
            ..self.did(Action::CreateKey)
        };
        self.done(
            made,
            &Event::once(
                "KeyCreated",
                format!("Created key {} ({}).", key.name, key.id),
            ),
        )
        .await;
        saved
    }

    /// Asks whether the Secret would be accepted: a key that cannot be kept must not be created.
    async fn dry_run(&self, intent: &KeyIntent, base_url: &str) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else {
            return Ok(());
        };
        let name = &self.object.spec.secret.name;
        let key = KeyIdentity {
            id: i64::MAX,
            name: intent.name.clone(),
            at: intent.at,
            created_at: None,
            created_by: None,
        };
        // As long as a key, so that a Secret that is too large is found too.
        let stand_in = SecretString::from("-".repeat(KEY_LENGTH));
        let previous = Previous {
            id: i64::MAX,
            name: intent.name.clone(),
            secret: stand_in.clone(),
        };
        let content = secret::content(
            &self.object.spec,
            (&key, &stand_in),
            Some(&previous),
            base_url,
        );
        let accepted = secrets::dry_run(self.env.cluster(), &owner, name, &content).await;
        stored(self.env, self.object, accepted, &content)
    }

    /// Writes the key that is in memory, then records it.
    async fn save(&self, object: &ProjectKey) -> Result<(), StepError> {
        let Some(unsaved) = self.env.state().unsaved_key(&self.uid()) else {
            return Ok(());
        };
        if write_unsaved(self.env, object, &unsaved).await? == Saved::GivenUp {
            let (secret, key) = (&self.object.spec.secret.name, &unsaved.key.name);
            let message =
                format!("Secret {secret} was not written: another process has given up key {key}");
            return Err(StepError::Failed(
                Action::WriteSecret,
                Problem::Secret(message),
            ));
        }
        wrote_key(&self.object.spec.secret.name, &unsaved.key);
        let records = self
            .identity
            .records
            .succeeded_by(unsaved.key.clone(), &unsaved.intent);
        record(self.env, object, recording_keys(object, &records)).await?;
        self.env.state().take_unsaved_key(&self.uid());
        if unsaved.intent.rotates {
            self.env.count_key(KeyChange::Rotated);
        }
        Ok(())
    }

    /// Asks the platform whether it accepts the key in memory, if that is required before saving.
    async fn try_unsaved(&self) -> Result<Probe, StepError> {
        let Some(unsaved) = self.env.state().unsaved_key(&self.uid()) else {
            return Ok(Probe::NotAsked(None));
        };
        let Some(before) = unsaved.trial else {
            return Ok(Probe::Accepted(self.env.now()));
        };
        let connection = self.connection_to(unsaved.intent.platform.as_deref(), Action::TryKey)?;
        let answer = self
            .platform(&connection)
            .probe_key(&unsaved.secret, &self.object.spec.project_id)
            .await;
        let probe = tried(before, answer, self.env.now()).map_err(failed(Action::TryKey))?;
        self.env.state().unsaved_key_tried(&self.uid(), probe);
        if matches!(probe, Probe::Accepted(_)) {
            self.env
                .state()
                .action_succeeded(&self.uid(), Action::TryKey);
        }
        Ok(probe)
    }

    async fn give_up_refused(&self, records: &KeyRecords, message: &str) -> Result<(), StepError> {
        record(self.env, self.object, recording_keys(self.object, records)).await?;
        self.count_lost(records);
        self.env.state().take_unsaved_key(&self.uid());
        publish(
            self.env,
            self.object,
            &Event::warning("NewKeyRefused", message),
        )
        .await;
        Err(StepError::Failed(
            Action::TryKey,
            Problem::NewKey(message.to_owned()),
        ))
    }

    /// Keeps in the record what another process has begun since.
    async fn give_up_unsaved(&self, records: &KeyRecords) -> Result<(), StepError> {
        let lost = recording(self.object, |known| ProjectKeyIdentity {
            records: records.clone(),
            ..known
        });
        record(self.env, self.object, lost).await?;
        self.count_lost(records);
        if let Some(unsaved) = self.env.state().take_unsaved_key(&self.uid()) {
            unsaved.log_loss(GIVEN_UP);
        }
        Ok(())
    }

    async fn rewrite(&self) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else {
            return Ok(());
        };
        let url = access::base_url(self.env, self.object);
        let name = &self.object.spec.secret.name;
        let cluster = self.env.cluster();
        let SecretState::Ours(found) = secrets::state(cluster, &owner, name).await? else {
            return Ok(());
        };
        let (spec, records) = (&self.object.spec, &self.identity.records);
        let (SecretContents::Key { key, .. }, Some(value)) =
            secret::secret_contents(spec, &found, records, &url)
        else {
            return Ok(());
        };
        let previous = secret::previous(&found, records);
        let content = secret::content(spec, (&key, &value), previous.as_ref(), &url);
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
            let lost = records.lost.len() > self.identity.records.lost.len();
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
        record(self.env, self.object, recording_keys(self.object, records)).await?;
        self.count_lost(records);
        self.env.state().probe_outdated(&self.uid());
        // A key that is recorded as gone has no use in memory.
        let unsaved = self.env.state().unsaved_key(&self.uid());
        if unsaved.is_some_and(|unsaved| records.names().all(|name| name != unsaved.key.name)) {
            self.env.state().take_unsaved_key(&self.uid());
        }
        Ok(())
    }

    async fn revoke(
        &self,
        (id, name): (i64, &str),
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
                    .revocation_not_offered(&self.uid(), self.env.now());
                return Ok(());
            }
            Err(fault) => return Err(failed(Action::Revoke)(fault)),
        }
        self.keys_changed();
        self.env
            .state()
            .action_succeeded(&self.uid(), Action::Revoke);
        self.env.count_key(KeyChange::Revoked);
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

    async fn list(&self) -> Result<(), StepError> {
        let connection = access::connection(self.env, self.object, Action::ListKeys)?;
        organization(&connection, Action::ListKeys)?;
        let interest = interest(self.object, &self.identity, &self.env.settings().cluster);
        let latest = self.env.read_keys(self.object, &connection, interest).await;
        match latest.fault {
            Some(fault) if !is_not_offered(&fault) => return Err(failed(Action::ListKeys)(fault)),
            None if latest.snapshot.is_none() => {
                let message = "the list was not read".to_owned();
                return Err(failed(Action::ListKeys)(Fault::Transport { message }));
            }
            _ => {}
        }
        self.env
            .state()
            .action_succeeded(&self.uid(), Action::ListKeys);
        Ok(())
    }

    async fn probe(&self) -> Result<(), StepError> {
        let now = self.env.now();
        if let Some(postponed) = turn_to_ask(self.env, self.object, &self.identity, now) {
            self.env.state().key_probed(&self.uid(), postponed);
            return Ok(());
        }
        let project = &self.object.spec.project_id;
        let probe = match self.current_secret().await? {
            None => Probe::NotAsked(Some(now)),
            Some((connection, value)) => {
                match self.platform(&connection).probe_key(&value, project).await {
                    Err(Fault::Unauthorized { .. }) => self
                        .env
                        .state()
                        .resource(&self.uid())
                        .key
                        .probe
                        .unwrap_or(Probe::NotAsked(None))
                        .refused(now),
                    Ok(()) => Probe::Accepted(now),
                    // Any other fault says nothing about the key.
                    Err(_) => Probe::NotAsked(Some(now)),
                }
            }
        };
        self.env.state().key_probed(&self.uid(), probe);
        Ok(())
    }

    /// The secret of the key in use, from memory or from its Secret.
    async fn current_secret(
        &self,
    ) -> Result<Option<(SharedConnection<E::Client>, SecretString)>, StepError> {
        let Ok(connection) = self.connection(Action::TryKey) else {
            return Ok(None);
        };
        let (Some(current), Some(owner)) = (&self.identity.records.current, Owner::of(self.object))
        else {
            return Ok(None);
        };
        let unsaved = self.env.state().unsaved_key(&self.uid());
        if let Some(unsaved) = unsaved.filter(|unsaved| unsaved.key.id == current.id) {
            return Ok(Some((connection, unsaved.secret)));
        }
        let state =
            secrets::state(self.env.cluster(), &owner, &self.object.spec.secret.name).await?;
        let SecretState::Ours(found) = state else {
            return Ok(None);
        };
        let (spec, records) = (&self.object.spec, &self.identity.records);
        Ok(
            match secret::secret_contents(spec, &found, records, &connection.access.base_url) {
                (SecretContents::Key { key, .. }, Some(value)) if key.id == current.id => {
                    Some((connection, value))
                }
                _ => None,
            },
        )
    }

    /// Counts the lost keys that these records add.
    fn count_lost(&self, records: &KeyRecords) {
        let before = self.identity.records.lost.len();
        (before..records.lost.len()).for_each(|_| self.env.count_key(KeyChange::Lost));
    }

    fn uid(&self) -> String {
        uid(self.object)
    }

    /// The client, with its calls counted for the namespace of the resource.
    fn platform(&self, connection: &Connection<E::Client>) -> E::Client {
        connection
            .platform
            .for_namespace(&self.object.namespace().unwrap_or_default())
    }

    /// A connection to the platform of the recorded keys.
    fn connection(&self, action: Action) -> Result<SharedConnection<E::Client>, StepError> {
        self.connection_to(self.identity.platform(), action)
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
        self.env.state().keys_outdated(&self.uid(), self.env.tick());
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

fn organization<P>(connection: &Connection<P>, action: Action) -> Result<String, StepError> {
    connection.access.organization_id.clone().ok_or_else(|| {
        let message = "the account has no organizationID".to_owned();
        failed(action)(Fault::Rejected {
            status: 400,
            message,
        })
    })
}
