//! A ProjectKey that is not being deleted: its key is created, kept in the Secret, and replaced when it is lost or revoked.

use jiff::Timestamp;

use super::super::identity::{KeyIdentity, KeyIntent, KeyRecords};
use super::super::memory::Backoff;
use super::super::{Action, Decision, Reason, Report, later};
use super::intent::{Retiring, intent};
use super::outcome::{CreateOutcome, create_outcome, give_up, is_lost};
use super::upkeep;
use super::{Case, Choice, KeyListing, KeySecretView, KeyStep, Probe, SecretContents};
use crate::api::OnRevoked;

pub(super) fn decide(case: &Case) -> Choice {
    match &case.secret {
        // A Secret stays with its owner; where there is none yet, the older resource creates it.
        KeySecretView::Ours(_) => {}
        KeySecretView::Restored { key, .. } => return restored(case, key),
        KeySecretView::Foreign(owner) if case.observed.rival.is_none() => return foreign(case, owner),
        KeySecretView::Absent | KeySecretView::Foreign(_) => {
            if let Some(other) = &case.observed.rival {
                return claimed(case, other);
            }
        }
    }
    if !case.observed.meta.has_finalizer {
        return case.restore();
    }
    if let Some(intent) = &case.identity.intent {
        return resolve(case, intent);
    }
    match (&case.identity.records.current, &case.secret) {
        (None, KeySecretView::Absent) => case.act(Action::WriteSecret, KeyStep::PrepareSecret, creating()),
        // The record was removed; the Secret still identifies its key.
        (None, KeySecretView::Ours(SecretContents::Key { key, .. })) if !is_lost(&case.identity.records, &key.name) => {
            let records = KeyRecords { current: Some(key.clone()), ..case.identity.records.clone() };
            Decision::act(KeyStep::Record { records, event: None }, creating())
        }
        (None, _) => create_key(case, (None, None), creating()),
        (Some(current), KeySecretView::Absent) => {
            if let Some(until) = case.may_be_restored(current) {
                return Decision::wait(awaiting_backup(case, current), until);
            }
            case.act(Action::WriteSecret, KeyStep::PrepareSecret, replacing(&gone(case, current)))
        }
        (Some(current), KeySecretView::Ours(SecretContents::Key { key, as_declared })) if key.id == current.id => {
            match case.observed.probe {
                Probe::Revoked(at) => revoked(case, current, at),
                _ => upkeep::decide(case, current, *as_declared),
            }
        }
        (Some(current), _) => replace(case, Retiring::At(case.now), &gone(case, current)),
    }
}

/// The Secret of a resource that was restored from a backup: dbplane adopts it.
fn restored(case: &Case, key: &KeyIdentity) -> Choice {
    let name = &case.spec.secret.name;
    let report = Report::progressing(Reason::Creating, format!("dbplane adopts Secret {name} with key {}.", key.name));
    match case.adopt_step() {
        Some(step) => case.act(Action::WriteSecret, step, report),
        None => Decision::rest(report),
    }
}

fn awaiting_backup(case: &Case, current: &KeyIdentity) -> Report {
    Report::progressing(
        Reason::Creating,
        format!(
            "Secret {} with key {} does not exist. This resource was restored from a backup, and its Secret may still be restored. If not, dbplane replaces the key.",
            case.spec.secret.name, current.name
        ),
    )
}

fn claimed(case: &Case, other: &str) -> Choice {
    Decision::rest(Report::stalled(
        Reason::ClaimedByAnother,
        format!(
            "{other} writes Secret {}. Delete one of the two; spec.secret.name cannot be changed.",
            case.spec.secret.name
        ),
    ))
}

fn foreign(case: &Case, owner: &str) -> Choice {
    Decision::rest(Report::stalled(
        Reason::SecretNotOurs,
        format!(
            "Secret {} exists and is {owner}. dbplane does not change it. Delete it, or delete this resource and create one with another spec.secret.name.",
            case.spec.secret.name
        ),
    ))
}

pub(super) fn creating() -> Report {
    Report::progressing(Reason::Creating, "The key is being created.")
}

fn replacing(why: &str) -> Report {
    Report::progressing(Reason::Creating, why)
}

fn gone(case: &Case, current: &KeyIdentity) -> String {
    format!(
        "Secret {} was deleted or altered and no longer contains key {}. The key is being replaced.",
        case.spec.secret.name, current.name
    )
}

fn create_key(case: &Case, (retiring, because): (Option<Retiring>, Option<&str>), report: Report) -> Choice {
    if case.observed.secret_deleting {
        let name = &case.spec.secret.name;
        let message = format!("Secret {name} is being deleted. dbplane creates the key when that is done.");
        return Decision::rest(Report::progressing(Reason::Creating, message));
    }
    match case.key_creation_backoff() {
        Some(Backoff { health, until }) => Decision::wait(Report::of(health), until),
        None => {
            let step = KeyStep::CreateKey { intent: intent(case, retiring), because: because.map(str::to_owned) };
            Decision::act(step, report)
        }
    }
}

/// Creates a successor, and reports why.
fn replace(case: &Case, retiring: Retiring, why: &str) -> Choice {
    create_key(case, (Some(retiring), Some(why)), replacing(why))
}

/// A creation that was begun and not recorded as done.
fn resolve(case: &Case, intent: &KeyIntent) -> Choice {
    let records = &case.identity.records;
    if let KeySecretView::Ours(SecretContents::Key { key, .. }) = &case.secret
        && key.name == intent.name
    {
        let records = records.succeeded_by(key.clone(), intent);
        return Decision::act(KeyStep::Record { records, event: None }, creating());
    }
    let finding_out = || {
        Report::progressing(
            Reason::ConfirmingCreate,
            format!("The creation of key {} was not answered. dbplane checks whether the key exists.", intent.name),
        )
    };
    match create_outcome(case, intent) {
        CreateOutcome::NotRead => case.act(Action::ListKeys, KeyStep::ListKeys, finding_out()),
        CreateOutcome::NotCreated => {
            Decision::act(KeyStep::Record { records: records.clone(), event: None }, creating())
        }
        CreateOutcome::NotKnownYet(until) => Decision::wait(finding_out(), until),
        CreateOutcome::Exists(id) | CreateOutcome::Other(id) => {
            Decision::act(give_up(case, Some(id), intent), finding_out())
        }
        CreateOutcome::ListNotOffered => Decision::act(give_up(case, None, intent), creating()),
    }
}

/// How often a key is checked that the platform refuses although it lists it.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_secs(15);

/// The platform refused the key itself. Where keys can be listed, the list has to confirm that it is revoked: replacing a key
/// by mistake would revoke one in use.
fn revoked(case: &Case, current: &KeyIdentity, at: Timestamp) -> Choice {
    let unconfirmed = Report::unknown(
        Reason::KeyRevoked,
        format!("The platform does not accept key {}. dbplane checks whether it was revoked.", current.name),
    );
    match &case.observed.listing {
        KeyListing::NotRead => return case.act(Action::ListKeys, KeyStep::ListKeys, unconfirmed),
        KeyListing::Read { keys, .. } if keys.iter().any(|key| key.id == current.id) => {
            let again = later(at, ASK_AGAIN);
            return if case.now < again {
                Decision::wait(unconfirmed, again)
            } else {
                Decision::act(KeyStep::Probe, unconfirmed)
            };
        }
        KeyListing::Read { .. } | KeyListing::NotOffered => {}
    }
    match case.spec.on_revoked {
        OnRevoked::Recreate => {
            let why = format!("Key {} was revoked on the platform. It is being replaced.", current.name);
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
