//! Lost keys that dbplane cannot revoke and that somebody else has revoked. A list may lack an
//! existing key, so two lists at least the settle time apart have to lack it.

use jiff::Timestamp;

use super::outcome::without;
use super::{KeyCase, KeyDecision, KeyListing, KeyStep};
use crate::decide::identity::{KeyRecords, LostKey};
use crate::decide::{Action, Decision, Reason, Report, later};

/// Records the evidence of the list, or drops a key; `None` if the list shows nothing new.
pub(super) fn noted(case: &KeyCase) -> Option<KeyDecision> {
    let KeyListing::Read { at, .. } = &case.observed.listed else {
        return None;
    };
    // Records are written without an open creation, so it has to be resolved first.
    if case.identity.intent.is_some() || !is_left_to_people(case) || !shows_the_key_in_use(case) {
        return None;
    }
    let step = case
        .identity
        .records
        .lost
        .iter()
        .find_map(|key| note(case, key, *at))?;
    Some(Decision::act(
        step,
        Report::progressing(
            Reason::Updating,
            "What the list of keys shows is being recorded.",
        ),
    ))
}

/// The platform offers no call to revoke keys, or refuses it.
fn is_left_to_people(case: &KeyCase) -> bool {
    let refused = case
        .observed
        .memory
        .fault(Action::Revoke)
        .is_some_and(crate::domain::Fault::is_refusal);
    case.cannot_revoke() || refused
}

/// A list without the key in use is incomplete, or that key was revoked as well.
fn shows_the_key_in_use(case: &KeyCase) -> bool {
    let current = case.identity.records.current.as_ref();
    case.observed.meta.deleting
        || current.is_none_or(|current| case.observed.listed.has(current) == Some(true))
}

fn note(case: &KeyCase, key: &LostKey, at: Timestamp) -> Option<KeyStep> {
    let settle = case.observed.limits.settle;
    let KeyListing::Read { keys, .. } = &case.observed.listed else {
        return None;
    };
    let is_listed = keys
        .shown()
        .iter()
        .any(|entry| Some(entry.id) == key.id || entry.name == key.name);
    // The key is matched by number or by name, so any unreadable entry may be it.
    if !is_listed && !keys.unreadable().is_empty() {
        return None;
    }
    let records = &case.identity.records;
    match (is_listed, key.unlisted) {
        (true, Some(_)) => Some(record(records, key, None)),
        // A list shows only keys that were created before it.
        (false, None) if at >= later(key.since, settle) => Some(record(records, key, Some(at))),
        (false, Some(first)) if at >= later(first, settle) => {
            let event = Some(format!(
                "Key {} is not listed any more: nobody has to revoke it.",
                key.name
            ));
            Some(KeyStep::Record {
                records: without(records, &key.name),
                event,
            })
        }
        (true | false, _) => None,
    }
}

fn record(records: &KeyRecords, key: &LostKey, unlisted: Option<Timestamp>) -> KeyStep {
    let mut records = records.clone();
    records
        .lost
        .iter_mut()
        .filter(|lost| lost.name == key.name)
        .for_each(|lost| lost.unlisted = unlisted);
    KeyStep::Record {
        records,
        event: None,
    }
}
