//! What is seen of a ProjectKey: its annotations, its account, its Secret, and what was asked of the platform before.

use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::super::accounts::Entry;
use super::super::kind::{Managed, uid};
use super::super::{Context, account_view};
use super::secret;
use crate::api::ProjectKey;
use crate::cluster::{Owner, SecretState, owned_by};
use crate::decide::identity::{self, ProjectKeyIdentity};
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
    let trace = context.traces.get(&uid);
    let meta = object.meta_observed();
    let identity = identity::of_key(object.annotations(), meta.holder());
    let secret = secret_view(context, object, &base_url(entry.as_ref())).await?;
    Ok(KeyObserved {
        meta,
        account,
        rival: rival(context, object, &secret),
        secret,
        twin: twin(context, object, identity.as_ref().ok()),
        identity,
        listing: listing(trace.key.listing, now),
        probe: trace.key.probe.unwrap_or(Probe::NotAsked(None)),
        unsaved: context.unsaved.get(&uid).map(|unsaved| unsaved.key),
        memory: trace.memory,
        limits: context.settings.limits,
        draw: rand::random(),
        uid,
    })
}

pub(super) fn base_url(entry: Option<&Entry>) -> String {
    entry.and_then(|entry| entry.handle.as_ref()).map(|handle| handle.access.base_url.clone()).unwrap_or_default()
}

async fn secret_view(context: &Context, object: &ProjectKey, base_url: &str) -> Result<KeySecretView, kube::Error> {
    let Some(owner) = Owner::of(object) else { return Ok(KeySecretView::Absent) };
    Ok(match context.secrets.state(&owner, &object.spec.secret.name).await? {
        SecretState::Absent => KeySecretView::Absent,
        SecretState::Foreign(who) => KeySecretView::Foreign(who),
        SecretState::Ours(found) => KeySecretView::Ours(secret::holding(&object.spec, &found, base_url).0),
    })
}

fn listing(known: Option<(Timestamp, KeyListing)>, now: Timestamp) -> KeyListing {
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

/// An older resource whose annotations name keys that this one's name too: these were copied along with its manifest.
fn twin(context: &Context, object: &ProjectKey, identity: Option<&ProjectKeyIdentity>) -> Option<String> {
    let identity = identity?;
    let names: Vec<&str> = identity.names().collect();
    let mentions = |other: &ProjectKey| {
        let texts = [names::KEYS, names::KEY_INTENT].map(|annotation| other.annotations().get(annotation));
        names.iter().any(|name| texts.iter().flatten().any(|text| text.contains(name)))
    };
    let me = uid(object);
    let others = context.stores.keys.filter(|other| {
        other.spec.project_id == object.spec.project_id && uid(other) != me && rank(other) < rank(object)
    });
    let twin = others.iter().find(|other| mentions(other))?;
    Some(format!("ProjectKey {}/{}", twin.namespace().unwrap_or_default(), twin.name_any()))
}

fn rank<K: Resource>(object: &K) -> (Option<Timestamp>, String) {
    (object.meta().creation_timestamp.as_ref().map(|time| time.0), object.name_any())
}
