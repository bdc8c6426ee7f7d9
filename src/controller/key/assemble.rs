//! What a decision about a ProjectKey rests on, put together from what was looked at. Pure.

use kube::{Resource, ResourceExt};

use super::super::object::{meta_observed, uid};
use super::gather::{Facts, Rival, rank};
use super::listing::Excerpt;
use super::secret;
use crate::api::ProjectKey;
use crate::cluster::{SecretState, owned_by};
use crate::decide::key::{KeyObserved, KeySecretView, Probe};
use crate::decide::names;

pub(super) fn assemble<P>(object: &ProjectKey, facts: &Facts<P>) -> KeyObserved {
    let (secret, secret_deleting) = secret_view(object, &facts.secret, &facts.base_url);
    let remembered = &facts.remembered;
    let Excerpt { listing, known, not_offered_until } =
        facts.listed.excerpt((&remembered.key, remembered.wrote), facts.now);
    KeyObserved {
        meta: meta_observed(object, facts.record.as_ref()),
        uid: uid(object),
        created: object.meta().creation_timestamp.as_ref().map_or(facts.now, |time| time.0),
        identity: facts.record.clone().map(|record| record.identity),
        account: facts.access.view.clone(),
        hand_over: facts.hand_over.clone(),
        claims: facts.claims.clone(),
        rival: rival(object, &facts.rivals, &secret),
        secret,
        secret_deleting,
        revoked: object.annotations().get(names::REVOKED_KEYS).cloned(),
        listing,
        known,
        not_offered_until,
        probe: remembered.key.probe.unwrap_or(Probe::NotAsked(None)),
        unsaved: remembered.key.unsaved.as_ref().map(|unsaved| unsaved.key.clone()),
        memory: remembered.memory.clone(),
        limits: facts.settings.limits,
        cluster: facts.settings.cluster.clone(),
        draw: facts.draw,
    }
}

/// The Secret as it was read, and whether it is being deleted.
fn secret_view(object: &ProjectKey, state: &SecretState, base_url: &str) -> (KeySecretView, bool) {
    match state {
        SecretState::Absent => (KeySecretView::Absent, false),
        SecretState::Foreign(who) => (KeySecretView::Foreign(who.clone()), false),
        SecretState::Restored(found) => (secret::restored(object, found, base_url), false),
        SecretState::Ours(found) => {
            let deleting = found.metadata.deletion_timestamp.is_some();
            (KeySecretView::Ours(secret::secret_contents(&object.spec, found, base_url).0), deleting)
        }
    }
}

/// A resource that names the same Secret and is older, or has it.
fn rival(object: &ProjectKey, rivals: &[Rival], secret: &KeySecretView) -> Option<String> {
    let has_it = |rival: &Rival| *secret == KeySecretView::Foreign(owned_by(&rival.kind, &rival.name));
    let first = rivals.iter().find(|rival| rival.rank < rank(object) || has_it(rival));
    first.map(|rival| format!("{} {}", rival.kind, rival.name))
}
