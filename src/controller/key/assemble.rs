//! Assembles the input of a decision about a ProjectKey from the facts. Pure.

use kube::{Resource, ResourceExt};

use super::super::object::{Managed, meta_observed, rank, uid};
use super::super::state::UnsavedKey;
use super::gather::{Facts, Rival};
use super::listing::RelevantKeys;
use super::secret;
use crate::api::ProjectKey;
use crate::cluster::{SecretState, owned_by};
use crate::decide::identity::KeyRecords;
use crate::decide::key::{KeyListing, KeyObserved, KeySecretView, Probe};
use crate::decide::names;

pub(super) fn assemble<P>(object: &ProjectKey, facts: &Facts<P>) -> KeyObserved {
    let records = facts
        .record
        .as_ref()
        .map(|record| record.clone().known().records)
        .unwrap_or_default();
    let (secret, secret_deleting) = secret_view(object, &facts.secret, &records, &facts.base_url);
    let (remembered, platforms) = (&facts.remembered, &facts.settings.platforms);
    let RelevantKeys {
        listing,
        listed,
        known,
        not_offered_until,
    } = facts
        .listed
        .relevant((&remembered.key, remembered.wrote_at()), facts.now);
    let probe = probe(facts, &known);
    KeyObserved {
        meta: meta_observed(object, facts.record.as_ref()),
        uid: uid(object),
        created: object
            .meta()
            .creation_timestamp
            .as_ref()
            .map_or(facts.now, |time| time.0),
        identity: facts
            .record
            .clone()
            .map(|record| record.known().with_platforms(|url| platforms.of(url))),
        is_wish: facts
            .record
            .as_ref()
            .is_ok_and(|record| record.wish.is_some()),
        account: facts.access.view.clone(),
        platform: facts
            .access
            .connection
            .as_ref()
            .map(|connection| facts.settings.platform(connection)),
        project_gone: facts.access.project_gone,
        accounts: facts.accounts.clone(),
        rival: rival(object, &facts.rivals, &secret),
        secret,
        secret_deleting,
        revoked: object.annotations().get(names::REVOKED_KEYS).cloned(),
        rotate: object.request(names::ROTATE),
        listing,
        listed,
        known,
        not_offered_until,
        probe,
        unsaved: remembered
            .key
            .unsaved
            .as_ref()
            .map(|unsaved| unsaved.key.clone()),
        unsaved_probe: unsaved_probe(remembered.key.unsaved.as_deref()),
        memory: remembered.memory.clone(),
        limits: facts.settings.limits,
        cluster: facts.settings.cluster.clone(),
        random: facts.random,
    }
}

/// The Secret as it was read, and whether it is being deleted.
fn secret_view(
    object: &ProjectKey,
    state: &SecretState,
    records: &KeyRecords,
    base_url: &str,
) -> (KeySecretView, bool) {
    match state {
        SecretState::Absent => (KeySecretView::Absent, false),
        SecretState::Foreign(who) => (KeySecretView::Foreign(who.clone()), false),
        SecretState::Restored(found) => (secret::restored(object, found, base_url), false),
        SecretState::Ours(found) => {
            let deleting = found.metadata.deletion_timestamp.is_some();
            (
                KeySecretView::Ours(
                    secret::secret_contents(&object.spec, found, records, base_url).0,
                ),
                deleting,
            )
        }
    }
}

/// The platform's last answer about the key in use. A list from before the key's creation says
/// nothing about it.
fn probe<P>(facts: &Facts<P>, known: &KeyListing) -> Probe {
    let probe = facts.remembered.key.probe.unwrap_or(Probe::NotAsked(None));
    let identity = facts.record.clone().unwrap_or_default().known();
    let (Some(current), KeyListing::Read { at, .. }) = (&identity.records.current, known) else {
        return probe;
    };
    let has_it = known.has(current).filter(|_| *at > current.at);
    has_it.map_or(probe, |has_it| probe.listed(*at, has_it))
}

/// The platform's last answer about a key that only memory holds.
fn unsaved_probe(unsaved: Option<&UnsavedKey>) -> Probe {
    unsaved
        .and_then(|unsaved| unsaved.trial)
        .unwrap_or(Probe::NotAsked(None))
}

/// A resource that names the same Secret and is older, or owns that Secret.
fn rival(object: &ProjectKey, rivals: &[Rival], secret: &KeySecretView) -> Option<String> {
    let has_it =
        |rival: &Rival| *secret == KeySecretView::Foreign(owned_by(&rival.kind, &rival.name));
    let first = rivals
        .iter()
        .find(|rival| rival.rank < rank(object) || has_it(rival));
    first.map(|rival| format!("{} {}", rival.kind, rival.name))
}
