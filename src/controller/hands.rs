//! What steps are performed with: a clock, the cluster, the platform, this process's memory. The controller lends its own;
//! the model checker lends simulated ones, and runs the very same steps.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::accounts::AccountName;
use super::creating::Creating;
use super::kind::{Managed, StepError};
use super::traces::{Traces, Unsaved};
use super::{Context, account_view};
use crate::api::{AccountRef, Compute};
use crate::clock;
use crate::cluster::{MetadataPatch, Note, Owner, SecretContent, SecretState, WriteError, resource_version};
use crate::decide::memory::Problem;
use crate::decide::{Action, later};
use crate::platform::{Fault, Platform, RateLimited, Tick};

/// An account that can be acted through.
#[derive(Clone, Debug)]
pub struct Usable<P> {
    pub platform: P,
    pub base_url: String,
    pub organization: Option<String>,
}

/// What steps are performed with.
pub trait Hands: Sync {
    type Platform: Platform;

    fn now(&self) -> Timestamp;
    /// How long after it was recorded a call may still be made.
    fn slack(&self) -> Duration;
    /// A moment that readings which are to show what was just done begin after.
    fn tick(&self) -> Tick;
    fn traces(&self) -> &Traces;
    fn unsaved(&self) -> &Unsaved;
    fn creating(&self) -> &Creating;

    /// The account that `object` refers to, where `object` may use it and its credentials are at hand.
    fn account<K: Managed>(&self, reference: &AccountRef, object: &K) -> Option<Usable<Self::Platform>>;
    /// Where the account's platform is; empty while that is not known.
    fn base_url<K: Managed>(&self, reference: &AccountRef, object: &K) -> String;
    /// Room for one change, to be made through what is returned; `None` where the operator stops meanwhile.
    fn admit_change(
        &self,
        platform: &Self::Platform,
    ) -> impl Future<Output = Result<Option<Self::Platform>, Fault>> + Send;
    /// The same for the creation of one key.
    fn admit_key_creation(
        &self,
        platform: &Self::Platform,
    ) -> impl Future<Output = Result<Option<Self::Platform>, Fault>> + Send;

    /// Patches `object` if it is still as given.
    fn patch<K: Managed>(
        &self,
        object: &K,
        links: &MetadataPatch,
    ) -> impl Future<Output = Result<K, kube::Error>> + Send;
    fn note<K: Managed>(&self, object: &K, note: &Note) -> impl Future<Output = ()> + Send;

    /// As [`Secrets::state`](crate::cluster::Secrets::state).
    fn secret(&self, owner: &Owner, name: &str) -> impl Future<Output = Result<SecretState, kube::Error>> + Send;
    /// As [`Secrets::create_empty`](crate::cluster::Secrets::create_empty).
    fn create_secret(&self, owner: &Owner, name: &str) -> impl Future<Output = Result<(), kube::Error>> + Send;
    /// As [`Secrets::write`](crate::cluster::Secrets::write).
    fn write_secret(
        &self,
        owner: &Owner,
        name: &str,
        uid: Option<&str>,
        content: &SecretContent,
    ) -> impl Future<Output = Result<Secret, kube::Error>> + Send;
    /// As [`Secrets::adopt`](crate::cluster::Secrets::adopt).
    fn adopt_secret(
        &self,
        owner: &Owner,
        name: &str,
        version: &str,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;
    /// As [`Secrets::dry_run`](crate::cluster::Secrets::dry_run).
    fn dry_run_secret(
        &self,
        owner: &Owner,
        name: &str,
        content: &SecretContent,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;

    /// The project is no longer read for this resource.
    fn unwatch(&self, compute: &Compute);
    /// A resource no longer needs its account.
    fn account_may_go<K: Managed>(&self, reference: &AccountRef, object: &K);
}

/// The account, or why nothing can be done without it.
pub fn account_of<H: Hands, K: Managed>(
    hands: &H,
    reference: &AccountRef,
    object: &K,
    action: Action,
) -> Result<Usable<H::Platform>, StepError> {
    hands.account(reference, object).ok_or_else(|| {
        let message = "the account's credentials are gone".to_owned();
        StepError::Failed(action, Problem::Platform(Fault::Transport { message }))
    })
}

/// Patches `object` if it is still as given, and remembers the version: older ones are not decided on.
pub async fn link<H: Hands, K: Managed>(hands: &H, object: &K, links: MetadataPatch) -> Result<K, StepError> {
    let patched = hands.patch(object, &links).await?;
    hands.traces().update(&super::kind::uid(object), |trace| trace.version = resource_version(&patched));
    Ok(patched)
}

/// Tells what was done, in the log and as an event.
pub async fn note<H: Hands, K: Managed>(hands: &H, object: &K, note: &Note) {
    tracing::info!(reason = note.reason, text = note.text, name = object.name_any(), "done");
    hands.note(object, note).await;
}

/// A call that was recorded at `begun` must have ended when a successor takes its absence for a proof. Where recording it
/// took too long it is not made.
pub fn in_time<H: Hands>(hands: &H, action: Action, begun: Timestamp) -> Result<(), StepError> {
    if hands.now() < later(begun, hands.slack()) {
        return Ok(());
    }
    let message = "recording the call took too long, so it was not made".to_owned();
    Err(StepError::Failed(action, Problem::Platform(Fault::Transport { message })))
}

/// Writes a Secret that is absent or `owner`'s; one that is somebody else's by now is refused.
pub async fn write_own<H: Hands>(
    hands: &H,
    owner: &Owner,
    name: &str,
    content: &SecretContent,
) -> Result<(), WriteError> {
    match hands.secret(owner, name).await? {
        SecretState::Foreign(who) => Err(WriteError::Foreign(who)),
        SecretState::Restored(_) => Err(WriteError::Foreign(FROM_BEFORE.to_owned())),
        SecretState::Ours(secret) => {
            Ok(hands.write_secret(owner, name, secret.metadata.uid.as_deref(), content).await.map(drop)?)
        }
        SecretState::Absent => {
            // Created, not applied: a Secret that appears in between is not written over.
            hands.create_secret(owner, name).await?;
            Ok(hands.write_secret(owner, name, None, content).await.map(drop)?)
        }
    }
}

/// The same for a Secret that holds nothing irreplaceable: what an earlier resource of this name left is taken back first.
pub async fn write_replaceable<H: Hands>(
    hands: &H,
    owner: &Owner,
    name: &str,
    content: &SecretContent,
) -> Result<(), WriteError> {
    if let SecretState::Restored(secret) = hands.secret(owner, name).await?
        && owner.formerly_owned(&secret)
    {
        hands.adopt_secret(owner, name, &secret.resource_version().unwrap_or_default()).await?;
    }
    write_own(hands, owner, name, content).await
}

/// Makes sure that a Secret is `owner`'s, and that the API server would take this into it.
pub async fn rehearse<H: Hands>(
    hands: &H,
    owner: &Owner,
    name: &str,
    content: &SecretContent,
) -> Result<(), WriteError> {
    match hands.secret(owner, name).await? {
        SecretState::Ours(secret) if secret.metadata.deletion_timestamp.is_none() => {
            Ok(hands.dry_run_secret(owner, name, content).await?)
        }
        SecretState::Ours(_) | SecretState::Absent => Err(WriteError::Gone),
        SecretState::Foreign(who) => Err(WriteError::Foreign(who)),
        SecretState::Restored(_) => Err(WriteError::Foreign(FROM_BEFORE.to_owned())),
    }
}

const FROM_BEFORE: &str = "what an earlier resource left";

/// What the write of a Secret means for its resource: a conflict is looked at again, anything else is told.
pub fn secret_outcome<H: Hands>(
    hands: &H,
    uid: &str,
    written: Result<(), WriteError>,
    name: &str,
) -> Result<(), StepError> {
    match written {
        Ok(()) => {
            hands.traces().update(uid, |trace| trace.memory.succeeded(Action::WriteSecret));
            Ok(())
        }
        Err(WriteError::Cluster(kube::Error::Api(status))) if status.code == 409 => {
            Err(StepError::Cluster(kube::Error::Api(status)))
        }
        Err(WriteError::Cluster(kube::Error::Api(status))) => {
            let message = format!("Secret {name} could not be written: {}", status.message);
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
        Err(error) => {
            let message = format!("Secret {name} could not be written: {error}");
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
    }
}

impl Hands for Context {
    type Platform = RateLimited;

    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn slack(&self) -> Duration {
        self.settings.limits.settle.saturating_sub(self.settings.request_timeout)
    }

    fn tick(&self) -> Tick {
        self.observers.tick()
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }

    fn unsaved(&self) -> &Unsaved {
        &self.unsaved
    }

    fn creating(&self) -> &Creating {
        &self.creating
    }

    fn account<K: Managed>(&self, reference: &AccountRef, object: &K) -> Option<Usable<RateLimited>> {
        let handle = account_view::of(self, reference, object).1?.handle?;
        Some(Usable {
            platform: RateLimited::clone(&handle.platform),
            base_url: handle.access.base_url.clone(),
            organization: handle.access.organization_id.clone(),
        })
    }

    fn base_url<K: Managed>(&self, reference: &AccountRef, object: &K) -> String {
        let name = AccountName::referred(reference, &object.namespace().unwrap_or_default());
        let handle = self.accounts.get(&name).and_then(|entry| entry.handle);
        handle.map(|handle| handle.access.base_url.clone()).unwrap_or_default()
    }

    async fn admit_change(&self, platform: &RateLimited) -> Result<Option<RateLimited>, Fault> {
        self.unless_stopped(platform.admit_change()).await.transpose()
    }

    async fn admit_key_creation(&self, platform: &RateLimited) -> Result<Option<RateLimited>, Fault> {
        self.unless_stopped(platform.admit_key_creation()).await.transpose()
    }

    async fn patch<K: Managed>(&self, object: &K, links: &MetadataPatch) -> Result<K, kube::Error> {
        links.apply(&object.api(&self.client), object).await
    }

    async fn note<K: Managed>(&self, object: &K, note: &Note) {
        self.events.publish(object, note).await;
    }

    async fn secret(&self, owner: &Owner, name: &str) -> Result<SecretState, kube::Error> {
        self.secrets.state(owner, name).await
    }

    async fn create_secret(&self, owner: &Owner, name: &str) -> Result<(), kube::Error> {
        self.secrets.create_empty(owner, name).await
    }

    async fn write_secret(
        &self,
        owner: &Owner,
        name: &str,
        uid: Option<&str>,
        content: &SecretContent,
    ) -> Result<Secret, kube::Error> {
        self.secrets.write(owner, name, uid, content).await
    }

    async fn adopt_secret(&self, owner: &Owner, name: &str, version: &str) -> Result<(), kube::Error> {
        self.secrets.adopt(owner, name, version).await
    }

    async fn dry_run_secret(&self, owner: &Owner, name: &str, content: &SecretContent) -> Result<(), kube::Error> {
        self.secrets.dry_run(owner, name, content).await
    }

    fn unwatch(&self, compute: &Compute) {
        self.observers.forget(&ObjectRef::from_obj(compute));
    }

    fn account_may_go<K: Managed>(&self, reference: &AccountRef, object: &K) {
        self.triggers.account(&AccountName::referred(reference, &object.namespace().unwrap_or_default()));
    }
}
