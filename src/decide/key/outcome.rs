//! Outcomes of unrecorded key creations, and of revocations.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::naming::readable;
use super::{KeyCase, KeyListing, KeyStep};
use crate::decide::identity::{KeyIntent, KeyRecords, LostBecause, LostKey};
use crate::decide::{Action, Reason, Report, later, names};
use crate::domain::{Fault, KeyEntry, KeyId, Shown, UnreadableEntry};

/// The outcome of the creation of a key whose secret dbplane never received.
pub(super) enum KeyCreation<'a> {
    NotCreated,
    /// No list shows it, long after it began.
    NotListed,
    /// It exists under the recorded name.
    Exists(KeyId),
    /// It may still be carried out, or a later list will show it.
    NotKnownYet(Timestamp),
    /// The keys have to be listed first.
    NotRead,
    /// The platform offers no list of keys, so the outcome cannot be determined.
    ListNotOffered,
    /// The platform answered with this key, and lists none with the recorded name.
    Other(KeyId),
    /// An unreadable entry of the list may be it.
    Unclear(&'a UnreadableEntry),
}

pub(super) fn create_outcome<'a>(case: &'a KeyCase, intent: &KeyIntent) -> KeyCreation<'a> {
    if not_created(case, intent) {
        return KeyCreation::NotCreated;
    }
    let settled = case
        .observed
        .memory
        .settles_at(intent.at, case.observed.limits.settle);
    let other = case.observed.memory.other_key(intent.at);
    match &case.observed.listing {
        KeyListing::NotRead => KeyCreation::NotRead,
        KeyListing::NotOffered => match other {
            Some(id) => KeyCreation::Other(id),
            // Another process that recorded it may still create the key, and save it.
            None if !case.observed.memory.is_own(Action::CreateKey, intent.at)
                && case.now < settled =>
            {
                KeyCreation::NotKnownYet(settled)
            }
            None => KeyCreation::ListNotOffered,
        },
        KeyListing::Read { at, keys } => match keys.find(None, |key| key.name == intent.name) {
            Shown::Entry(key) => KeyCreation::Exists(key.id),
            // It may be ours, so it is recorded at once: only this process knows about it.
            _ if let Some(id) = other => KeyCreation::Other(id),
            Shown::Absent if *at >= settled => KeyCreation::NotListed,
            Shown::Unclear(entry) if *at >= settled => KeyCreation::Unclear(entry),
            _ if settled <= case.now => KeyCreation::NotRead,
            _ => KeyCreation::NotKnownYet(settled),
        },
    }
}

/// Returns true if this process made the attempt and knows that it created nothing.
fn not_created(case: &KeyCase, intent: &KeyIntent) -> bool {
    let memory = &case.observed.memory;
    // The name is unique. If a proxy repeated the request, the first one may have created the key.
    let repeated = matches!(
        memory.fault(Action::CreateKey),
        Some(Fault::Conflict { .. })
    );
    memory.not_done(Action::CreateKey, intent.at) && (!repeated || case.cannot_revoke())
}

/// The way to revoke a key.
pub(super) enum Revocation<'a> {
    /// With this step, unless the last attempt of that action failed too recently. The step copies
    /// all other records, maybe hundreds, so it is built only when it is taken.
    Step(Option<Action>, Box<dyn FnOnce() -> KeyStep + 'a>),
    /// Not at all: the identifier belongs to another key, as the message says.
    NotOurs(String),
    /// Not here: the name was issued in another cluster, or for another resource, which may use the
    /// key.
    OfAnotherCluster,
    NotOffered,
    /// Not yet: an unreadable entry of the list may be the key.
    Unclear(Box<Report>),
}

/// A key: its number, if known, and its unique name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedKey<'a> {
    pub id: Option<KeyId>,
    pub name: &'a str,
}

impl<'a> NamedKey<'a> {
    pub fn of(id: KeyId, name: &'a str) -> Self {
        Self { id: Some(id), name }
    }

    pub fn lost(key: &'a LostKey) -> Self {
        Self {
            id: key.id,
            name: &key.name,
        }
    }
}

/// All recorded keys: first the replaced ones, last those whose secret never arrived.
pub(super) fn keys(records: &KeyRecords) -> impl Iterator<Item = NamedKey<'_>> {
    let previous = records
        .previous
        .iter()
        .map(|key| NamedKey::of(key.id, &key.name));
    let current = records
        .current
        .iter()
        .map(|key| NamedKey::of(key.id, &key.name));
    previous
        .chain(current)
        .chain(records.lost.iter().map(NamedKey::lost))
}

/// Revokes one key if the platform offers that and this cluster issued its name. A listed key has
/// to have that name. A list without the key proves nothing; the answer to the revocation does.
pub(super) fn revocation<'a>(case: &'a KeyCase, key: NamedKey<'a>) -> Revocation<'a> {
    let NamedKey { id, name } = key;
    let keys = match &case.observed.listing {
        KeyListing::NotRead => {
            return Revocation::Step(Some(Action::ListKeys), Box::new(|| KeyStep::ListKeys));
        }
        KeyListing::NotOffered => return Revocation::NotOffered,
        KeyListing::Read { keys, .. } => keys,
    };
    let hidden = keys
        .unreadable()
        .hiding(id.map(|id| id.to_string()).as_deref());
    match keys
        .shown()
        .iter()
        .find(|key| id.map_or(key.name == name, |id| key.id == id))
    {
        None if case.is_restored(name)
            && id.is_some()
            && keys.shown().iter().any(|key| key.name == name) =>
        {
            not_ours(
                case,
                name,
                format!("The platform lists key {name} under another number than the record."),
            )
        }
        // A revocation request by this number is not allowed. A key that no list shows needs no
        // action.
        None if is_other(&case.identity.records, name)
            && is_settled(case, name)
            && keys.unreadable().is_empty() =>
        {
            forget(case, name, Some(not_listed(name)))
        }
        None if is_other(&case.identity.records, name) => not_ours(
            case,
            name,
            format!("The platform answered the creation of key {name} with another key."),
        ),
        // The entry has the number, and perhaps another name.
        None if let Some(entry) = hidden.filter(|entry| entry.id.is_some()) => {
            not_seen(case, entry, name)
        }
        None => match id {
            Some(id) if case.issued(name) && !case.is_restored(name) => revoke(case, id, name),
            _ if let Some(entry) = hidden => not_seen(case, entry, name),
            // Only the operator that recorded the number may revoke by it.
            _ => forget(case, name, id.map(|_| not_listed(name))),
        },
        Some(key) if key.name != name => not_ours(
            case,
            name,
            format!("Key {} is not called {name} on the platform.", key.id),
        ),
        Some(_) if !case.issued(name) => Revocation::OfAnotherCluster,
        Some(key) => revoke(case, key.id, name),
    }
}

fn not_seen<'a>(case: &KeyCase, entry: &UnreadableEntry, name: &str) -> Revocation<'a> {
    if !case.issued(name) {
        return Revocation::OfAnotherCluster;
    }
    let question = format!("whether key {name} has to be revoked");
    Revocation::Unclear(Box::new(unclear(entry, &question)))
}

/// The report while an unreadable entry of the list leaves a question open.
pub(super) fn unclear(entry: &UnreadableEntry, question: &str) -> Report {
    Report::unknown(
        Reason::UnreadableEntries,
        format!(
            "The list of the organization's keys has an entry that dbplane cannot read: {entry}. So it is not known {question}. dbplane waits \
             until the platform lists that entry otherwise, or not any more. Ask the platform about it."
        ),
    )
}

/// The report while an unreadable entry leaves the outcome of a creation open.
pub(super) fn not_resolved(entry: &UnreadableEntry, intent: &KeyIntent) -> Report {
    unclear(entry, &format!("whether key {} exists", intent.name))
}

fn revoke<'a>(case: &'a KeyCase, id: KeyId, name: &'a str) -> Revocation<'a> {
    let records = move || without(&case.identity.records, name);
    let step = move || KeyStep::Revoke {
        id,
        name: name.to_owned(),
        records: records(),
        in_use: None,
    };
    Revocation::Step(Some(Action::Revoke), Box::new(step))
}

/// A key with another number. No list is read for names of other clusters or resources, so the
/// report about them is the same without a list.
fn not_ours<'a>(case: &KeyCase, name: &str, why: String) -> Revocation<'a> {
    if !case.issued(name) {
        return Revocation::OfAnotherCluster;
    }
    Revocation::NotOurs(format!(
        "{why} dbplane does not revoke it. Revoke it in the platform's console if it is yours."
    ))
}

/// Drops the record of a key that the list lacks.
fn forget<'a>(case: &'a KeyCase, name: &'a str, event: Option<String>) -> Revocation<'a> {
    let step = move || KeyStep::Record {
        records: without(&case.identity.records, name),
        event,
    };
    Revocation::Step(None, Box::new(step))
}

fn not_listed(name: &str) -> String {
    format!("Key {name} is not listed any more: nobody has to revoke it.")
}

/// Returns true if the number recorded with a name belongs to another key, according to the
/// platform's answer.
fn is_other(records: &KeyRecords, name: &str) -> bool {
    records
        .lost
        .iter()
        .any(|key| key.name == name && key.because == LostBecause::OtherKey)
}

/// Returns true if the list began late enough after the loss of a key to show it.
fn is_settled(case: &KeyCase, name: &str) -> bool {
    let KeyListing::Read { at, .. } = &case.observed.listing else {
        return false;
    };
    let since = case
        .identity
        .records
        .lost
        .iter()
        .find(|key| key.name == name)
        .map(|key| key.since);
    since.is_some_and(|since| *at >= later(since, case.observed.limits.settle))
}

/// A key of this resource that the record lacks. Its call was repeated, or created it after the
/// attempt was given up.
pub(super) fn stray<'a>(case: &'a KeyCase) -> Option<&'a KeyEntry> {
    let KeyListing::Read { keys, .. } = &case.observed.listing else {
        return None;
    };
    let readable = readable(case);
    let attempt = |name: &str| {
        names::is_attempt(
            name,
            &readable,
            &case.observed.cluster,
            case.observed.meta.object_key(),
        ) && case.identity.names().all(|known| known != name)
    };
    keys.shown()
        .iter()
        .find(|key| attempt(&key.name))
        .or_else(|| twin(case))
}

/// A second key with a recorded name and another number. A proxy repeated the creation, on a
/// platform that allows duplicate names. Records from an annotation or a Secret do not count,
/// because their number may be wrong.
pub(super) fn twin<'a>(case: &'a KeyCase) -> Option<&'a KeyEntry> {
    let KeyListing::Read { keys: listed, .. } = &case.observed.listing else {
        return None;
    };
    let mut own = keys(&case.identity.records)
        .filter(|key| case.issued(key.name) && !case.is_restored(key.name));
    own.find_map(|NamedKey { id, name }| {
        let named = || listed.shown().iter().filter(|key| key.name == name);
        let recorded = named().find(|key| id.is_none_or(|id| key.id == id))?;
        named().find(|key| key.id != recorded.id)
    })
}

/// Revokes a key that is not recorded. Its secret was never stored.
pub(super) fn revoke_unrecorded(case: &KeyCase, key: &KeyEntry) -> KeyStep {
    KeyStep::Revoke {
        id: key.id,
        name: key.name.clone(),
        records: case.identity.records.clone(),
        in_use: None,
    }
}

pub(super) fn without(records: &KeyRecords, name: &str) -> KeyRecords {
    without_all(records, &BTreeSet::from([name]))
}

pub(super) fn without_all(records: &KeyRecords, names: &BTreeSet<&str>) -> KeyRecords {
    let mut records = records.clone();
    records.current = records
        .current
        .filter(|key| !names.contains(key.name.as_str()));
    records
        .previous
        .retain(|key| !names.contains(key.name.as_str()));
    records
        .lost
        .retain(|key| !names.contains(key.name.as_str()));
    records
}

pub(super) fn with_lost(records: &KeyRecords, key: LostKey) -> KeyRecords {
    let mut records = records.clone();
    if !is_lost(&records, &key.name) {
        records.lost.push(key);
    }
    records
}

/// Records the intent's key as lost: it exists or may exist, and its secret is not stored. An event
/// reports a key that dbplane cannot revoke. This comes first: another leader that is just saving
/// the key then fails to record it as current. Otherwise it would keep a key that is being revoked.
pub(super) fn give_up(case: &KeyCase, id: Option<KeyId>, intent: &KeyIntent) -> KeyStep {
    let (records, name) = (&case.identity.records, &intent.name);
    let listed = matches!(&case.observed.listing, KeyListing::Read { keys, .. } if keys.shown().iter().any(|key| key.name == *name));
    let other = case
        .observed
        .memory
        .other_key(intent.at)
        .filter(|other| id == Some(*other) && !listed);
    let event = match (case.issued(name), id) {
        (true, Some(id)) if other.is_some() => Some(format!(
            "The platform answered the creation of key {name} with key {id}, which is not what was asked for. dbplane does not \
             use its secret and does not revoke it. If nobody needs it, revoke it in the platform's console."
        )),
        (true, Some(_)) => None,
        (true, None) => Some(format!(
            "dbplane never received the secret of key {name}, and this platform offers no call to find or revoke the key. \
             If the platform's console shows it, revoke it there."
        )),
        (false, _) => Some(format!(
            "The creation of key {name} was begun in another cluster, or for another resource, which may use it. It is not revoked here."
        )),
    };
    let because = if other.is_some() {
        LostBecause::OtherKey
    } else {
        LostBecause::Unanswered
    };
    let lost = LostKey {
        id,
        name: name.clone(),
        since: intent.at,
        because,
        unlisted: None,
    };
    KeyStep::Record {
        records: with_lost(&records.of(intent), lost),
        event,
    }
}

pub(super) fn is_lost(records: &KeyRecords, name: &str) -> bool {
    records.lost.iter().any(|key| key.name == name)
}
