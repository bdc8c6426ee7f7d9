//! What is done for a ProjectKey: one step, recorded where a successor finds it. A secret is shown once and is kept until it is saved.

use std::time::Duration;

use futures::future::join_all;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use secrecy::SecretString;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;

use super::super::Context;
use super::super::hands::{self, Hands, Usable, in_time, secret_outcome, write_own};
use super::super::kind::{StepError, uid};
use super::super::traces::UnsavedKey;
use super::secret;
use crate::api::ProjectKey;
use crate::cluster::{MetadataPatch, Note, Owner, SecretState, WriteError};
use crate::decide::identity::{KeyIdentity, KeyIntent, KeyRecords, ProjectKeyIdentity};
use crate::decide::key::{KeyListing, KeyObserved, KeyStep, Probe, SecretContents};
use crate::decide::memory::Problem;
use crate::decide::{Action, names};
use crate::platform::{Fault, Platform};

/// The length of the stand-in that is rehearsed with; keys of the platform are shorter.
const KEY_LENGTH: usize = 256;

/// Performs one step.
pub async fn perform<H: Hands>(
    hands: &H,
    object: &ProjectKey,
    observed: &KeyObserved,
    step: &KeyStep,
) -> Result<(), StepError> {
    let identity = observed.identity.clone().unwrap_or_default();
    let work = Work { hands, object, identity };
    match step {
        KeyStep::AddFinalizer => work.link(object, MetadataPatch::new().finalizer(true)).await.map(drop),
        KeyStep::PrepareSecret => work.prepare().await,
        KeyStep::AdoptSecret { key, version } => work.take_back(key, version).await,
        KeyStep::CreateKey { intent, because } => work.create_key(intent, because.as_deref()).await,
        KeyStep::SaveSecret => work.save(object).await,
        KeyStep::GiveUpUnsaved { records } => work.leave(records).await,
        KeyStep::RewriteSecret => work.rewrite().await,
        KeyStep::Record { records, event } => work.record(records, event.as_deref()).await,
        KeyStep::Acknowledge { records, event } => work.acknowledge(records, event).await,
        KeyStep::Revoke { id, name, records } => work.revoke(*id, name, records).await,
        KeyStep::ListKeys => work.list().await,
        KeyStep::Probe => work.probe().await,
        KeyStep::RemoveFinalizer => work.release().await,
    }
}

struct Work<'a, H> {
    hands: &'a H,
    object: &'a ProjectKey,
    identity: ProjectKeyIdentity,
}

impl<H: Hands> Work<'_, H> {
    async fn prepare(&self) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else { return Ok(()) };
        let created = self.hands.create_secret(&owner, &self.object.spec.secret.name).await;
        secret_outcome(self.hands, &self.uid(), created.map_err(WriteError::from), &self.object.spec.secret.name)
    }

    async fn take_back(&self, key: &str, version: &str) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else { return Ok(()) };
        let name = &self.object.spec.secret.name;
        let taken = self.hands.adopt_secret(&owner, name, version).await;
        secret_outcome(self.hands, &self.uid(), taken.map_err(WriteError::from), name)?;
        self.note(&Note::normal("Linked", format!("Took back Secret {name}, which holds key {key}."))).await;
        Ok(())
    }

    async fn acknowledge(&self, records: &KeyRecords, event: &str) -> Result<(), StepError> {
        let links = MetadataPatch::new().set(names::KEYS, records).remove(names::REVOKED_KEYS);
        self.link(self.object, links).await?;
        self.note(&Note::normal("KeyForgotten", event)).await;
        Ok(())
    }

    /// Intent, call, Secret, record: whatever happens in between, a successor finds out what became of it.
    async fn create_key(&self, intent: &KeyIntent, because: Option<&str>) -> Result<(), StepError> {
        let account = self.account(Action::CreateKey)?;
        let organization = organization(&account)?;
        let admitted = self.hands.admit_key_creation(&account.platform).await;
        let admitted = admitted.map_err(|fault| StepError::Failed(Action::CreateKey, Problem::Platform(fault)))?;
        let Some(platform) = admitted else { return Ok(()) };
        // Room is waited for first: what is rehearsed now is not long ago when the key arrives.
        self.rehearse(intent, &account.base_url).await?;
        if let Some(why) = because {
            self.note(&Note::warning("KeyReplaced", why)).await;
        }
        let intent = &KeyIntent { at: self.hands.now(), ..intent.clone() };
        let intended = self.link(self.object, MetadataPatch::new().set(names::KEY_INTENT, intent)).await?;
        self.forget_readings();
        self.hands.traces().update(&self.uid(), |trace| trace.memory.recorded(Action::CreateKey, intent.at));
        in_time(self.hands, Action::CreateKey, intent.at)?;
        let created = platform.create_key(&organization, &intent.name, &self.object.spec.project_id).await;
        let created = created.map_err(|fault| StepError::Failed(Action::CreateKey, Problem::Platform(fault)))?;
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
            namespace: self.object.namespace().unwrap_or_default(),
            name: self.object.name_any(),
        };
        self.hands.unsaved().keep(&self.uid(), unsaved);
        self.hands.traces().update(&self.uid(), |trace| trace.memory.succeeded(Action::CreateKey));
        // The Secret comes first, and the event even when it could not be written.
        let saved = self.save(&intended).await;
        self.note(&Note::normal("KeyCreated", format!("Created key {} ({}).", key.name, key.id))).await;
        saved
    }

    /// Has the API server say whether it would take the Secret: a key that cannot be kept must not be created.
    async fn rehearse(&self, intent: &KeyIntent, base_url: &str) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else { return Ok(()) };
        let name = &self.object.spec.secret.name;
        let key =
            KeyIdentity { id: i64::MAX, name: intent.name.clone(), at: intent.at, created_at: None, created_by: None };
        // As long as keys are, so that what is too large is found too.
        let stand_in = SecretString::from("-".repeat(KEY_LENGTH));
        let content = secret::content(&self.object.spec, &key, &stand_in, base_url);
        let rehearsed = hands::rehearse(self.hands, &owner, name, &content).await;
        secret_outcome(self.hands, &self.uid(), rehearsed, name)
    }

    /// Writes the key that is held in memory, then records it.
    async fn save(&self, object: &ProjectKey) -> Result<(), StepError> {
        let Some(unsaved) = self.hands.unsaved().get(&self.uid()) else { return Ok(()) };
        write_unsaved(self.hands, object, &unsaved).await?;
        let records = self.identity.records.succeeded_by(unsaved.key.clone(), &unsaved.intent);
        self.link(object, MetadataPatch::new().set(names::KEYS, &records).remove(names::KEY_INTENT)).await?;
        self.hands.unsaved().take(&self.uid());
        Ok(())
    }

    /// What another process has begun since stays recorded.
    async fn leave(&self, records: &KeyRecords) -> Result<(), StepError> {
        self.link(self.object, MetadataPatch::new().set(names::KEYS, records)).await?;
        if let Some(unsaved) = self.hands.unsaved().take(&self.uid()) {
            unsaved.tell_loss("another process took its creation for interrupted; the key is replaced");
        }
        Ok(())
    }

    async fn rewrite(&self) -> Result<(), StepError> {
        let Some(owner) = Owner::of(self.object) else { return Ok(()) };
        let url = self.hands.base_url(&self.object.spec.account_ref, self.object);
        let name = &self.object.spec.secret.name;
        let SecretState::Ours(found) = self.hands.secret(&owner, name).await? else { return Ok(()) };
        let (SecretContents::Key { key, .. }, Some(value)) = secret::secret_contents(&self.object.spec, &found, &url)
        else {
            return Ok(());
        };
        let content = secret::content(&self.object.spec, &key, &value, &url);
        let written = self.hands.write_secret(&owner, name, found.metadata.uid.as_deref(), &content).await;
        let kept = match &written {
            Ok(written) => {
                secret::secret_contents(&self.object.spec, written, &url).0
                    == SecretContents::Key { key, as_declared: true }
            }
            Err(_) => true,
        };
        secret_outcome(self.hands, &self.uid(), written.map(drop).map_err(WriteError::from), name)?;
        if kept {
            return Ok(());
        }
        // Written again at once it would be changed again at once.
        let message =
            format!("Secret {name} was written and does not hold what was written; something changes it on the way.");
        Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
    }

    async fn record(&self, records: &KeyRecords, event: Option<&str>) -> Result<(), StepError> {
        self.link(self.object, MetadataPatch::new().set(names::KEYS, records).remove(names::KEY_INTENT)).await?;
        self.hands.traces().update(&self.uid(), |trace| trace.key.probe = None);
        // A key that is recorded as gone is kept in memory for nobody.
        if self
            .hands
            .unsaved()
            .get(&self.uid())
            .is_some_and(|unsaved| records.names().all(|name| name != unsaved.key.name))
        {
            self.hands.unsaved().take(&self.uid());
        }
        if let Some(text) = event {
            let lost = records.lost.len() > self.identity.records.lost.len();
            let note = if lost { Note::warning("KeyLeft", text) } else { Note::normal("KeyRevoked", text) };
            self.note(&note).await;
        }
        Ok(())
    }

    async fn revoke(&self, id: i64, name: &str, records: &KeyRecords) -> Result<(), StepError> {
        let account = self.account(Action::Revoke)?;
        let organization = organization(&account)?;
        match account.platform.revoke_key(&organization, id).await {
            Ok(()) | Err(Fault::NotFound { .. }) => {}
            Err(Fault::Unsupported { .. }) => {
                self.remember_listing(KeyListing::NotOffered);
                return Ok(());
            }
            Err(fault) => return Err(StepError::Failed(Action::Revoke, Problem::Platform(fault))),
        }
        self.forget_readings();
        self.hands.traces().update(&self.uid(), |trace| trace.memory.succeeded(Action::Revoke));
        self.record(records, Some(&format!("Revoked key {name} ({id})."))).await
    }

    async fn list(&self) -> Result<(), StepError> {
        let account = self.account(Action::ListKeys)?;
        let organization = organization(&account)?;
        let at = self.hands.now();
        let listing = match account.platform.list_keys(&organization).await {
            Ok(keys) => KeyListing::Read { at, keys },
            Err(Fault::Unsupported { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }) => KeyListing::NotOffered,
            Err(fault) => return Err(StepError::Failed(Action::ListKeys, Problem::Platform(fault))),
        };
        self.hands.traces().update(&self.uid(), |trace| trace.memory.succeeded(Action::ListKeys));
        self.remember_listing(listing);
        Ok(())
    }

    async fn probe(&self) -> Result<(), StepError> {
        let now = self.hands.now();
        let probe = match self.held_secret().await? {
            None => Probe::NotAsked(Some(now)),
            Some((account, value)) => match account.platform.probe_key(&value, &self.object.spec.project_id).await {
                Err(Fault::Unauthorized { .. }) => Probe::Revoked(now),
                Ok(()) => Probe::Accepted(now),
                // Anything else says nothing about the key.
                Err(_) => Probe::NotAsked(Some(now)),
            },
        };
        self.hands.traces().update(&self.uid(), |trace| trace.key.probe = Some(probe));
        Ok(())
    }

    /// The secret of the key in use, where it is in its Secret or still in memory.
    async fn held_secret(&self) -> Result<Option<(Usable<H::Platform>, SecretString)>, StepError> {
        let Some(account) = self.hands.account(&self.object.spec.account_ref, self.object) else { return Ok(None) };
        let (Some(current), Some(owner)) = (&self.identity.records.current, Owner::of(self.object)) else {
            return Ok(None);
        };
        if let Some(unsaved) = self.hands.unsaved().get(&self.uid()).filter(|unsaved| unsaved.key.id == current.id) {
            return Ok(Some((account, unsaved.secret)));
        }
        let SecretState::Ours(found) = self.hands.secret(&owner, &self.object.spec.secret.name).await? else {
            return Ok(None);
        };
        let held = match secret::secret_contents(&self.object.spec, &found, &account.base_url) {
            (SecretContents::Key { key, .. }, value) if key.id == current.id => value,
            _ => None,
        };
        Ok(held.map(|value| (account, value)))
    }

    async fn release(&self) -> Result<(), StepError> {
        self.link(self.object, MetadataPatch::new().finalizer(false)).await?;
        self.hands.unsaved().take(&self.uid());
        self.hands.traces().forget(&self.uid());
        self.hands.account_may_go(&self.object.spec.account_ref, self.object);
        Ok(())
    }

    fn uid(&self) -> String {
        uid(self.object)
    }

    fn account(&self, action: Action) -> Result<Usable<H::Platform>, StepError> {
        hands::account_of(self.hands, &self.object.spec.account_ref, self.object, action)
    }

    fn remember_listing(&self, listing: KeyListing) {
        self.hands.traces().update(&self.uid(), |trace| trace.key.listing = Some((self.hands.now(), listing)));
    }

    fn forget_readings(&self) {
        self.hands.traces().update(&self.uid(), |trace| {
            trace.key.probe = None;
            if !matches!(trace.key.listing, Some((_, KeyListing::NotOffered))) {
                trace.key.listing = None;
            }
        });
    }

    async fn link(&self, object: &ProjectKey, links: MetadataPatch) -> Result<ProjectKey, StepError> {
        hands::link(self.hands, object, links).await
    }

    async fn note(&self, note: &Note) {
        hands::note(self.hands, self.object, note).await;
    }
}

fn organization<P>(account: &Usable<P>) -> Result<String, StepError> {
    account.organization.clone().ok_or_else(|| {
        let message = "the account has no organizationID".to_owned();
        StepError::Failed(Action::CreateKey, Problem::Platform(Fault::Rejected { status: 400, message }))
    })
}

/// Writes a key that is held in memory into its Secret.
pub async fn write_unsaved<H: Hands>(hands: &H, object: &ProjectKey, unsaved: &UnsavedKey) -> Result<(), StepError> {
    let Some(owner) = Owner::of(object) else { return Ok(()) };
    let url = hands.base_url(&object.spec.account_ref, object);
    let content = secret::content(&object.spec, &unsaved.key, &unsaved.secret, &url);
    let written = write_own(hands, &owner, &object.spec.secret.name, &content).await;
    secret_outcome(hands, &uid(object), written, &object.spec.secret.name)
}

/// The pause between two tries to save a key while the process is being stopped.
const FLUSH_PAUSE: Duration = Duration::from_millis(500);

/// How long one such try may take: an API server that does not answer must not use up the time of all keys.
const FLUSH_TRY: Duration = Duration::from_secs(5);

/// Saves the keys that are still in memory, until all are saved or `grace` is over.
pub async fn flush(context: &Context, grace: Duration) {
    let deadline = Instant::now() + grace;
    loop {
        let unsaved = context.unsaved.all();
        if unsaved.is_empty() {
            return;
        }
        let until = deadline.min(Instant::now() + FLUSH_TRY);
        join_all(unsaved.iter().map(|(id, key)| flush_one(context, (id, key), until))).await;
        if Instant::now() >= deadline {
            for (_, key) in context.unsaved.all() {
                key.tell_loss(
                    "its Secret could not be written before the end; the next process revokes and replaces it",
                );
            }
            return;
        }
        sleep(FLUSH_PAUSE).await;
    }
}

async fn flush_one(context: &Context, (id, key): (&str, &UnsavedKey), until: Instant) {
    let reference = ObjectRef::new(&key.name).within(&key.namespace);
    let Some(object) = context.stores.keys.get(&reference).filter(|object| uid(object.as_ref()) == id) else {
        key.tell_loss("its ProjectKey is gone; revoke it in the platform's console");
        context.unsaved.take(id);
        return;
    };
    match timeout_at(until, write_unsaved(context, &object, key)).await {
        Ok(Ok(())) => drop(context.unsaved.take(id)),
        Ok(Err(error)) => warn!(?error, name = key.name, namespace = key.namespace, "a key is not saved yet"),
        Err(_) => warn!(name = key.name, namespace = key.namespace, "a key is not saved yet: no answer"),
    }
}
