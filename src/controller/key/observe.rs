//! What is seen of a ProjectKey: its annotations, its account, its Secret, and what was asked of the platform before.

use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::super::accounts::Entry;
use super::super::kind::{Managed, uid};
use super::super::{Context, account_view};
use super::secret;
use crate::api::{ProjectKey, ProjectKeySpec};
use crate::cluster::{Owner, SecretState, owned_by};
use crate::decide::identity;
use crate::decide::key::{KeyListing, KeyObserved, KeySecretView, Probe};
use crate::decide::{later, names};

/// How long a reading of the organization's keys is decided on.
const LISTING_LIFETIME: Duration = Duration::from_secs(10);
/// How long it is remembered that the platform offers no such list.
const VERDICT_LIFETIME: Duration = Duration::from_secs(600);

pub(super) async fn observe(
    context: &Context,
    object: &ProjectKey,
    now: Timestamp,
) -> Result<KeyObserved, kube::Error> {
    let uid = uid(object);
    let (account, entry) = account_view::of(context, &object.spec.account_ref, object);
    let meta = object.meta_observed();
    let identity = identity::of_key(object.annotations(), meta.object_key());
    let intended = identity.as_ref().ok().and_then(|identity| identity.intent.as_ref()).map(|intent| intent.at);
    let trace = context.traces.update(&uid, |trace| {
        trace.memory.note_unresolved(intended, now);
        trace.clone()
    });
    let (secret, secret_deleting) = secret_view(context, object, &base_url(entry.as_ref())).await?;
    Ok(KeyObserved {
        meta,
        account,
        rival: rival(context, object, &secret),
        secret,
        secret_deleting,
        revoked: object.annotations().get(names::REVOKED_KEYS).cloned(),
        created: object.meta().creation_timestamp.as_ref().map_or(now, |time| time.0),
        identity,
        listing: key_listing(trace.key.listing, now),
        probe: trace.key.probe.unwrap_or(Probe::NotAsked(None)),
        unsaved: context.unsaved.get(&uid).map(|unsaved| unsaved.key),
        memory: trace.memory,
        limits: context.settings.limits,
        cluster: context.cluster.clone(),
        draw: rand::random(),
        uid,
    })
}

pub(super) fn base_url(entry: Option<&Entry>) -> String {
    entry.and_then(|entry| entry.handle.as_ref()).map(|handle| handle.access.base_url.clone()).unwrap_or_default()
}

/// The Secret, and whether it is being deleted.
async fn secret_view(
    context: &Context,
    object: &ProjectKey,
    base_url: &str,
) -> Result<(KeySecretView, bool), kube::Error> {
    let Some(owner) = Owner::of(object) else { return Ok((KeySecretView::Absent, false)) };
    let state = context.secrets.state(&owner, &object.spec.secret.name).await?;
    Ok(key_secret_view(&object.spec, state, base_url))
}

/// The Secret as it was read, and whether it is being deleted.
pub fn key_secret_view(spec: &ProjectKeySpec, state: SecretState, base_url: &str) -> (KeySecretView, bool) {
    match state {
        SecretState::Absent => (KeySecretView::Absent, false),
        SecretState::Foreign(who) => (KeySecretView::Foreign(who), false),
        SecretState::Restored(found) => (secret::restored(spec, &found, base_url), false),
        SecretState::Ours(found) => {
            let going = found.metadata.deletion_timestamp.is_some();
            (KeySecretView::Ours(secret::secret_contents(spec, &found, base_url).0), going)
        }
    }
}

/// What an earlier reading of the organization's keys is still worth.
pub fn key_listing(known: Option<(Timestamp, KeyListing)>, now: Timestamp) -> KeyListing {
    match known {
        Some((at, listing @ KeyListing::NotOffered)) if now < later(at, VERDICT_LIFETIME) => listing,
        Some((at, listing)) if now < later(at, LISTING_LIFETIME) => listing,
        _ => KeyListing::NotRead,
    }
}

/// A resource of the namespace that names the same Secret and is older, or has it: two of one second have no other order.
fn rival(context: &Context, object: &ProjectKey, secret: &KeySecretView) -> Option<String> {
    let (me, namespace, name) = (uid(object), object.namespace(), &object.spec.secret.name);
    let keys = context
        .stores
        .keys
        .filter(|other| uid(other) != me && other.namespace() == namespace && other.spec.secret.name == *name);
    let computes = context.stores.computes.filter(|other| {
        other.namespace() == namespace
            && other.spec.connection.as_ref().is_some_and(|connection| connection.secret_name == *name)
    });
    let keys = keys.iter().map(|key| ("ProjectKey", key.name_any(), rank(key.as_ref())));
    let computes = computes.iter().map(|compute| ("Compute", compute.name_any(), rank(compute.as_ref())));
    let has_it = |kind: &str, name: &str| *secret == KeySecretView::Foreign(owned_by(kind, name));
    keys.chain(computes)
        .find(|(kind, name, rank_of_other)| *rank_of_other < rank(object) || has_it(kind, name))
        .map(|(kind, name, _)| format!("{kind} {name}"))
}

fn rank<K: Resource>(object: &K) -> (Option<Timestamp>, String) {
    (object.meta().creation_timestamp.as_ref().map(|time| time.0), object.name_any())
}
