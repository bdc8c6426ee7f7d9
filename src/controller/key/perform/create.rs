//! Creates a key, and saves it in its Secret. The platform shows the secret only once.

use kube::ResourceExt;
use secrecy::SecretString;

use super::{KeyWork, organization};
use crate::api::{Known, ProjectKey};
use crate::cluster::{Event, Owner, secrets};
use crate::controller::environment::{AdmittedCall, Environment, Occurrence, StepError};
use crate::controller::key::record::{recording_keys, stored, wrote_key};
use crate::controller::key::save::{GIVEN_UP, Saved, write_unsaved};
use crate::controller::key::secret::{self, Previous};
use crate::controller::pass::calls::{
    ActionLine, count_create, failed, publish, record, record_call, recording,
};
use crate::controller::state::UnsavedKey;
use crate::decide::Action;
use crate::decide::identity::{KeyIdentity, KeyIntent, KeyRecords, ProjectKeyIdentity};
use crate::decide::key::{Probe, tried};
use crate::decide::memory::ActionProblem;
use crate::domain::KeyId;
use crate::platform::Platform;
use crate::telemetry::metrics::KeyChange;

/// The length of the placeholder for a key in a dry run; keys of the platform are shorter.
const KEY_LENGTH: usize = 256;

impl<E: Environment> KeyWork<'_, E> {
    /// Intent, call, Secret, record: after a crash in between, a successor can find out the result.
    pub(super) async fn create_key(
        &self,
        intent: &KeyIntent,
        because: Option<&str>,
        try_first: bool,
    ) -> Result<(), StepError> {
        let connection = self.connection_to(intent.platform.as_deref(), Action::CreateKey)?;
        let organization = organization(&connection, Action::CreateKey)?;
        let admitted = self
            .env
            .admit(&self.platform(&connection), AdmittedCall::KeyCreation)
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
        let intended = recording(self.object, |known| ProjectKeyIdentity {
            intent: Some(intent.clone()),
            ..known
        })?;
        let intended = record_call(
            self.env,
            self.object,
            Action::CreateKey,
            intent.at,
            intended,
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
        self.keep_unsaved(intent, &key, created.secret, try_first);
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
        let text = format!("Created key {} ({}).", key.name, key.id);
        self.done(made, &Event::once("KeyCreated", text)).await;
        saved
    }

    fn keep_unsaved(
        &self,
        intent: &KeyIntent,
        key: &KeyIdentity,
        secret: SecretString,
        try_first: bool,
    ) {
        let (state, uid) = (self.env.state(), self.object.uid());
        let unsaved = UnsavedKey {
            key: key.clone(),
            intent: intent.clone(),
            secret,
            trial: try_first.then_some(Probe::NotAsked(None)),
            namespace: self.object.namespace().to_owned(),
            name: self.object.name_any(),
        };
        state.key_created(uid, unsaved);
        state.action_succeeded(uid, Action::CreateKey);
    }

    /// Asks whether the Secret would be accepted: a key that cannot be kept must not be created.
    async fn dry_run(&self, intent: &KeyIntent, base_url: &str) -> Result<(), StepError> {
        let owner = Owner::of(self.object);
        let name = &self.object.spec.secret.name;
        let key = KeyIdentity {
            id: KeyId(i64::MAX),
            name: intent.name.clone(),
            at: intent.at,
            created_at: None,
            created_by: None,
        };
        // As long as a key, so that a Secret that is too large is found too.
        let placeholder = SecretString::from("-".repeat(KEY_LENGTH));
        let previous = Previous {
            id: KeyId(i64::MAX),
            name: intent.name.clone(),
            secret: placeholder.clone(),
        };
        let content = secret::content(
            &self.object.spec,
            &key,
            &placeholder,
            Some(&previous),
            base_url,
        );
        let accepted = secrets::dry_run(self.env.cluster(), &owner, name, &content).await;
        stored(self.env, self.object, accepted, &content)
    }

    /// Writes the key that is in memory, then records it.
    pub(super) async fn save(&self, object: &Known<ProjectKey>) -> Result<(), StepError> {
        let Some(unsaved) = self.env.state().unsaved_key(self.object.uid()) else {
            return Ok(());
        };
        if write_unsaved(self.env, object, &unsaved).await? == Saved::GivenUp {
            let (secret, key) = (&self.object.spec.secret.name, &unsaved.key.name);
            let message =
                format!("Secret {secret} was not written: another process has given up key {key}");
            return Err(StepError::Failed(
                Action::WriteSecret,
                ActionProblem::Secret(message),
            ));
        }
        wrote_key(&self.object.spec.secret.name, &unsaved.key);
        let records = self
            .object
            .identity()?
            .records
            .succeeded_by(unsaved.key.clone(), &unsaved.intent);
        record(self.env, object, recording_keys(object, &records)?).await?;
        self.env.state().take_unsaved_key(self.object.uid());
        if unsaved.intent.rotates {
            self.env
                .record(self.object, Occurrence::KeyChanged(KeyChange::Rotated));
        }
        Ok(())
    }

    /// Asks the platform whether it accepts the key in memory, if that is required before saving.
    pub(super) async fn try_unsaved(&self) -> Result<Probe, StepError> {
        let Some(unsaved) = self.env.state().unsaved_key(self.object.uid()) else {
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
        self.env.state().unsaved_key_tried(self.object.uid(), probe);
        if matches!(probe, Probe::Accepted(_)) {
            self.env
                .state()
                .action_succeeded(self.object.uid(), Action::TryKey);
        }
        Ok(probe)
    }

    pub(super) async fn give_up_refused(
        &self,
        records: &KeyRecords,
        message: &str,
    ) -> Result<(), StepError> {
        record(self.env, self.object, recording_keys(self.object, records)?).await?;
        self.count_lost(records)?;
        self.env.state().take_unsaved_key(self.object.uid());
        publish(
            self.env,
            self.object,
            &Event::warning("NewKeyRefused", message),
        )
        .await;
        Err(StepError::Failed(
            Action::TryKey,
            ActionProblem::NewKey(message.to_owned()),
        ))
    }

    /// Keeps in the record what another process has begun since.
    pub(super) async fn give_up_unsaved(&self, records: &KeyRecords) -> Result<(), StepError> {
        let lost = recording(self.object, |known| ProjectKeyIdentity {
            records: records.clone(),
            ..known
        })?;
        record(self.env, self.object, lost).await?;
        self.count_lost(records)?;
        if let Some(unsaved) = self.env.state().take_unsaved_key(self.object.uid()) {
            unsaved.log_loss(GIVEN_UP);
        }
        Ok(())
    }
}
