//! A ProjectKey that is not in deletion: create its key, keep it in the Secret, and replace it when
//! it is lost or revoked.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::conflict::{claimed, foreign};
use super::intent::{Retiring, intent};
use super::lost::before_another;
use super::outcome::{KeyCreation, create_outcome, give_up, not_resolved};
use super::{KeyCase, KeyDecision, KeyListing, KeySecretView, KeyStep, Probe, SecretContents};
use super::{rotation, upkeep};
use crate::api::OnRevoked;
use crate::decide::identity::{KeyIdentity, KeyIntent, KeyRecords};
use crate::decide::memory::Backoff;
use crate::decide::{Action, Decision, Reason, Report, later};
use crate::domain::{KeyEntry, Listed, Shown};

pub(super) fn decide(case: &KeyCase) -> KeyDecision {
    if let Some(choice) = settle_secret(case) {
        return choice;
    }
    if !case.observed.meta.has_finalizer {
        return case.restore();
    }
    if let Some(intent) = &case.identity.intent {
        return resolve(case, intent);
    }
    match &case.identity.records.current {
        Some(current) => keep_current(case, current),
        None => first_key(case),
    }
}

/// A Secret stays with its owner. Without an owner, the older resource creates it.
fn settle_secret(case: &KeyCase) -> Option<KeyDecision> {
    match &case.secret {
        KeySecretView::Ours(_) => None,
        KeySecretView::Restored { key, .. } => {
            Some(restored(case, &format!(" with key {}", key.name)))
        }
        KeySecretView::Unowned { .. } => Some(restored(case, ", which does not hold its key")),
        KeySecretView::Foreign(owner) if case.observed.rival.is_none() => {
            Some(foreign(case, owner))
        }
        KeySecretView::Absent | KeySecretView::Foreign(_) => {
            let other = case.observed.rival.as_ref()?;
            Some(claimed(case, other))
        }
    }
}

/// No key is recorded as current.
fn first_key(case: &KeyCase) -> KeyDecision {
    match &case.secret {
        KeySecretView::Absent => case.act(Action::WriteSecret, KeyStep::PrepareSecret, creating()),
        // The record is gone; the Secret still identifies its key.
        KeySecretView::Ours(SecretContents::Key { key, .. })
            if case.observed.meta.record.is_none() =>
        {
            record(KeyRecords {
                current: Some(key.clone()),
                rotated_for: rotation::request(case),
                restored: BTreeSet::from([key.name.clone()]),
                ..KeyRecords::default()
            })
        }
        _ => create_key(case, None, None, creating()),
    }
}

/// Writes the records without an event.
fn record(records: KeyRecords) -> KeyDecision {
    let step = KeyStep::Record {
        records,
        event: None,
    };
    Decision::act(step, creating())
}

fn keep_current(case: &KeyCase, current: &KeyIdentity) -> KeyDecision {
    match &case.secret {
        KeySecretView::Absent => {
            if let Some(until) = case.may_be_restored(current) {
                return Decision::wait(awaiting_backup(case, current), until);
            }
            let report = replacing(&gone(case, current));
            let choice = case.act(Action::WriteSecret, KeyStep::PrepareSecret, report);
            report_first(case, choice)
        }
        KeySecretView::Ours(SecretContents::Key { key, as_declared }) if key.id == current.id => {
            match case.observed.probe {
                Probe::Refused { at, .. } => revoked(case, current, at),
                _ => upkeep::decide(case, current, *as_declared),
            }
        }
        _ => match replaced_lately(case) {
            Some(until) => Decision::wait(altered_again(case, current, until), until),
            None => replace(case, Retiring::At(case.now), &gone(case, current)),
        },
    }
}

/// The minimum age of a key before an altered Secret causes its replacement. A program that keeps
/// altering the Secret must not cost one key each time.
const REPLACE_AGAIN: Duration = Duration::from_secs(300);

fn replaced_lately(case: &KeyCase) -> Option<Timestamp> {
    let until = later(case.identity.records.rotated_at?, REPLACE_AGAIN);
    (case.now < until).then_some(until)
}

fn altered_again(case: &KeyCase, current: &KeyIdentity, until: Timestamp) -> Report {
    Report::stalled(
        Reason::SecretNotWritten,
        format!(
            "Secret {} was deleted or altered soon after key {} was written into it. Find what changes it. The key is replaced at {until}.",
            case.spec.secret.name, current.name
        ),
    )
}

/// Adopts the Secret of a resource that was restored from a backup.
fn restored(case: &KeyCase, content: &str) -> KeyDecision {
    let name = &case.spec.secret.name;
    let report = Report::progressing(
        Reason::Creating,
        format!("dbplane adopts Secret {name}{content}."),
    );
    match case.adopt_step() {
        Some(step) => case.act(Action::WriteSecret, step, report),
        None => Decision::rest(report),
    }
}

fn awaiting_backup(case: &KeyCase, current: &KeyIdentity) -> Report {
    Report::progressing(
        Reason::Creating,
        format!(
            "Secret {} with key {} does not exist. This resource was restored from a backup, and its Secret may still be restored. If not, dbplane replaces the key.",
            case.spec.secret.name, current.name
        ),
    )
}

pub(super) fn creating() -> Report {
    Report::progressing(Reason::Creating, "The key is being created.")
}

fn replacing(why: &str) -> Report {
    Report::progressing(Reason::Creating, why)
}

fn gone(case: &KeyCase, current: &KeyIdentity) -> String {
    format!(
        "Secret {} was deleted or altered and no longer contains key {}. The key is being replaced.",
        case.spec.secret.name, current.name
    )
}

fn create_key(
    case: &KeyCase,
    retiring: Option<Retiring>,
    because: Option<&str>,
    report: Report,
) -> KeyDecision {
    if case.observed.secret_deleting {
        let name = &case.spec.secret.name;
        let message =
            format!("Secret {name} is being deleted. dbplane creates the key when that is done.");
        return Decision::rest(Report::progressing(Reason::Creating, message));
    }
    if let Some(choice) = before_another(case, &report) {
        return choice;
    }
    match case.key_creation_backoff() {
        Some(Backoff { health, until }) => Decision::wait(Report::of(health), until),
        None => {
            let step = KeyStep::CreateKey {
                intent: intent(case, retiring),
                because: because.map(str::to_owned),
                try_first: false,
            };
            Decision::act(step, report)
        }
    }
}

/// Creates a successor, and reports why.
fn replace(case: &KeyCase, retiring: Retiring, why: &str) -> KeyDecision {
    let choice = create_key(case, Some(retiring), Some(why), replacing(why));
    report_first(case, choice)
}

/// The key in the Secret is not usable, and the step may take long. The status reports that first,
/// and its change triggers the next pass.
fn report_first(case: &KeyCase, choice: KeyDecision) -> KeyDecision {
    match choice {
        Decision {
            step: Some(_),
            report: Some(report),
            ..
        } if case.observed.meta.ready => Decision::rest(report),
        choice => choice,
    }
}

/// Resolves a creation that began and was not recorded as done.
fn resolve(case: &KeyCase, intent: &KeyIntent) -> KeyDecision {
    let records = &case.identity.records;
    if let KeySecretView::Ours(SecretContents::Key { key, .. }) = &case.secret
        && key.name == intent.name
    {
        return record(records.found_in_secret(key, intent));
    }
    match create_outcome(case, intent) {
        KeyCreation::NotRead => case.act(
            Action::ListKeys,
            KeyStep::ListKeys,
            confirming(case, intent),
        ),
        KeyCreation::NotCreated => record(records.clone()),
        KeyCreation::NotListed => {
            let unanswered = if case.issued(&intent.name) {
                Some(intent.at)
            } else {
                records.unanswered
            };
            record(KeyRecords {
                unanswered,
                ..records.clone()
            })
        }
        KeyCreation::NotKnownYet(until) => Decision::wait(confirming(case, intent), until),
        KeyCreation::Unclear(entry) => Decision::rest(not_resolved(entry, intent)),
        KeyCreation::Exists(id) | KeyCreation::Other(id) => {
            Decision::act(give_up(case, Some(id), intent), confirming(case, intent))
        }
        KeyCreation::ListNotOffered => Decision::act(give_up(case, None, intent), creating()),
    }
}

/// The report while the result of an unrecorded creation is not known.
fn confirming(case: &KeyCase, intent: &KeyIntent) -> Report {
    let answer = case
        .observed
        .memory
        .open_answer(Action::CreateKey, intent.at);
    let answer = answer
        .map(|answer| format!("{answer} "))
        .unwrap_or_default();
    Report::progressing(
        Reason::ConfirmingCreate,
        format!(
            "The creation of key {} was begun and not recorded. {answer}dbplane finds out whether the key exists.",
            intent.name
        ),
    )
}

/// The platform refused the key itself. It has to do so for a while, and a list has to confirm the
/// revocation if keys can be listed. A key that is replaced by mistake stays valid without being
/// known to anybody.
fn revoked(case: &KeyCase, current: &KeyIdentity, at: Timestamp) -> KeyDecision {
    let unconfirmed = Report::unknown(
        Reason::KeyRevoked,
        format!(
            "The platform does not accept key {}. dbplane checks whether it was revoked.",
            current.name
        ),
    );
    if case.observed.probe.is_revoked() {
        match &case.observed.listing {
            KeyListing::NotRead => {
                return case.act(Action::ListKeys, KeyStep::ListKeys, unconfirmed);
            }
            // A record from an annotation may have another number than the platform.
            KeyListing::Read { keys, .. } if !lacks(keys, current) => {}
            KeyListing::Read { .. } | KeyListing::NotOffered => {
                return replace_revoked(case, current);
            }
        }
    }
    let again = later(at, case.observed.probe.again_after());
    if case.now < again {
        Decision::wait(unconfirmed, again)
    } else {
        Decision::act(KeyStep::Probe, unconfirmed)
    }
}

/// Returns true if no entry is or may be the key, by its number or its name.
fn lacks(keys: &Listed<KeyEntry>, current: &KeyIdentity) -> bool {
    matches!(
        keys.find(None, |key| key.id == current.id || key.name == current.name),
        Shown::Absent
    )
}

fn replace_revoked(case: &KeyCase, current: &KeyIdentity) -> KeyDecision {
    if rotation::is_requested(case) {
        let why = format!(
            "Key {} was revoked on the platform. It is being replaced, as requested.",
            current.name
        );
        return replace(case, Retiring::Done, &why);
    }
    match case.spec.on_revoked {
        OnRevoked::Recreate => {
            let why = format!(
                "Key {} was revoked on the platform. It is being replaced.",
                current.name
            );
            replace(case, Retiring::Done, &why)
        }
        OnRevoked::Report => Decision::rest(Report::stalled(
            Reason::KeyRevoked,
            format!(
                "Key {} was revoked on the platform. Set spec.onRevoked to Recreate to have it replaced.",
                current.name
            ),
        )),
    }
}
