//! A ProjectKey in use: its key is created, kept in the Secret, replaced when it is lost, revoked or due.

use jiff::Timestamp;

use super::super::identity::{KeyIdentity, KeyIntent};
use super::super::memory::of_fault;
use super::super::{Action, Decision, Reason, Report, Sync, later, names};
use super::{
    Case, Choice, Holding, KeyListing, KeySecretView, KeyStep, Lost, Probe, lost, revoke, with_lost, without_lost,
    without_previous,
};
use crate::api::OnRevoked;

pub(super) fn decide(case: &Case) -> Choice {
    if let Some(other) = &case.observed.rival {
        return Decision::rest(Report::stalled(
            Reason::ClaimedByAnother,
            format!("{other} already writes Secret {}. Choose another spec.secret.name.", case.spec.secret.name),
        ));
    }
    if let KeySecretView::Foreign(owner) = &case.observed.secret {
        return Decision::rest(Report::stalled(
            Reason::SecretNotOurs,
            format!(
                "Secret {} exists and is {owner}; it is left alone. Delete it, or use another name.",
                case.spec.secret.name
            ),
        ));
    }
    if !case.observed.meta.finalized {
        return Decision::act(KeyStep::AddFinalizer, creating());
    }
    if let Some(intent) = &case.identity.intent {
        return resolve(case, intent);
    }
    match (&case.identity.book.current, &case.observed.secret) {
        (None, KeySecretView::Absent) => case.act(Action::WriteSecret, KeyStep::PrepareSecret, creating()),
        (None, _) => mint(case, None, creating()),
        (Some(current), KeySecretView::Absent) => {
            let report = Report::progressing(
                Reason::Creating,
                format!(
                    "Secret {} was deleted, and with it key {}; the key is being replaced.",
                    case.spec.secret.name, current.name
                ),
            );
            case.act(Action::WriteSecret, KeyStep::PrepareSecret, report)
        }
        (Some(current), KeySecretView::Ours(Holding::Key { key, as_declared })) if key.id == current.id => {
            in_use(case, current, *as_declared)
        }
        (Some(current), _) => {
            let why = format!(
                "Secret {} no longer holds key {}; the key is being replaced.",
                case.spec.secret.name, current.name
            );
            replace(case, case.now, &why)
        }
    }
}

fn creating() -> Report {
    Report::progressing(Reason::Creating, "The key is being created.")
}

fn mint(case: &Case, retire_previous_at: Option<Timestamp>, report: Report) -> Choice {
    let name = names::key_name(&case.spec.key_name, &case.observed.uid, case.observed.draw);
    let step = KeyStep::Mint { intent: KeyIntent { name, at: case.now, retire_previous_at } };
    case.act(Action::Mint, step, report)
}

/// Creates a successor; the key before is revoked at `retire_at`.
fn replace(case: &Case, retire_at: Timestamp, why: &str) -> Choice {
    mint(case, Some(retire_at), Report::progressing(Reason::Creating, why))
}

/// A creation that was begun and not recorded as done.
fn resolve(case: &Case, intent: &KeyIntent) -> Choice {
    let book = &case.identity.book;
    if let KeySecretView::Ours(Holding::Key { key, .. }) = &case.observed.secret
        && key.name == intent.name
    {
        let book = book.succeeded_by(key.clone(), intent);
        return Decision::act(KeyStep::Record { book, event: None }, creating());
    }
    let lost_key = |what: &str| {
        Report::progressing(Reason::Creating, format!("The secret of key {} never arrived; {what}", intent.name))
    };
    match lost(case, intent) {
        Lost::NotRead => Decision::act(KeyStep::ListKeys, lost_key("its fate is being found out.")),
        Lost::Nothing => Decision::act(KeyStep::Record { book: book.clone(), event: None }, creating()),
        Lost::NotKnownYet(until) => Decision::wait(lost_key("its fate is being found out."), until),
        Lost::Exists(id) => {
            revoke(case, (id, &intent.name), book.clone(), lost_key("it is being revoked and replaced."))
        }
        Lost::CannotTell => Decision::act(
            KeyStep::Record {
                book: with_lost(book, None, &intent.name, intent.at),
                event: Some(format!(
                    "The secret of key {} never arrived. Revoke that key in the platform's console.",
                    intent.name
                )),
            },
            creating(),
        ),
        Lost::Failed(fault) => Decision::rest(Report::of(of_fault(&fault))),
    }
}

/// The Secret holds the key: keep it so, and see to its age and to the keys before it.
fn in_use(case: &Case, current: &KeyIdentity, as_declared: bool) -> Choice {
    if let Probe::Revoked(_) = case.observed.probe {
        return match case.spec.on_revoked {
            OnRevoked::Recreate => {
                replace(case, case.now, &format!("Key {} was revoked; it is being replaced.", current.name))
            }
            OnRevoked::Report => Decision::rest(Report::stalled(
                Reason::KeyRevoked,
                format!(
                    "The platform no longer accepts key {}. Set spec.onRevoked to Recreate to have it replaced.",
                    current.name
                ),
            )),
        };
    }
    let ready = ready(case, current);
    if !as_declared {
        return case.act(Action::WriteSecret, KeyStep::RewriteSecret, ready);
    }
    if let Some(choice) = rotate(case, current) {
        return choice;
    }
    if let Some(choice) = retire(case, &ready) {
        return choice;
    }
    if let Some(choice) = forget_lost(case, &ready) {
        return choice;
    }
    let asked = match case.observed.probe {
        Probe::Accepted(at) | Probe::Revoked(at) | Probe::NotAsked(Some(at)) => {
            later(at, case.observed.limits.key_check)
        }
        // A key that was just created is accepted; the first question comes after one period.
        Probe::NotAsked(None) => later(current.at, case.observed.limits.key_check),
    };
    if asked <= case.now {
        return Decision::act(KeyStep::Probe, ready);
    }
    let next = [Some(asked), rotation_due(case, current), next_retirement(case)].into_iter().flatten().min();
    next.map_or_else(|| Decision::rest(ready.clone()), |next| Decision::wait(ready.clone(), next))
}

fn ready(case: &Case, current: &KeyIdentity) -> Report {
    let report = Report::ready(format!("Secret {} holds key {}.", case.spec.secret.name, current.name));
    let left: Vec<&str> = case.identity.book.lost.iter().map(|key| key.name.as_str()).collect();
    if left.is_empty() {
        return report;
    }
    report.with_sync(Sync::OutOfSync(
        Reason::RevocationUnsupported,
        format!("Revoke in the platform's console, since dbplane cannot: {}.", left.join(", ")),
    ))
}

fn rotation_due(case: &Case, current: &KeyIdentity) -> Option<Timestamp> {
    let every = case.spec.rotation.as_ref()?.every.value()?;
    Some(later(current.at, every))
}

fn rotate(case: &Case, current: &KeyIdentity) -> Option<Choice> {
    let due = rotation_due(case, current)?;
    let overlap = case.spec.rotation.as_ref()?.overlap.value()?;
    (due <= case.now).then(|| {
        replace(case, later(case.now, overlap), &format!("Key {} is due; it is being replaced.", current.name))
    })
}

fn next_retirement(case: &Case) -> Option<Timestamp> {
    case.identity.book.previous.iter().map(|key| key.retire_at).min()
}

/// Revokes a key whose time is over; where the platform cannot, says so and lists it.
fn retire(case: &Case, ready: &Report) -> Option<Choice> {
    let book = &case.identity.book;
    let key = book.previous.iter().find(|key| key.retire_at <= case.now)?;
    let without = without_previous(book, key.id);
    if case.cannot_revoke() {
        let event = format!(
            "Key {} ({}) was replaced, and this platform offers no call to revoke it. Revoke it in the console.",
            key.name, key.id
        );
        let book = with_lost(&without, Some(key.id), &key.name, key.since);
        return Some(Decision::act(KeyStep::Record { book, event: Some(event) }, ready.clone()));
    }
    Some(revoke(case, (key.id, &key.name), without, ready.clone()))
}

/// A key that was listed as lost and that the platform can be asked about after all.
fn forget_lost(case: &Case, ready: &Report) -> Option<Choice> {
    let KeyListing::Read { keys, .. } = &case.observed.listing else {
        return None;
    };
    let lost = case.identity.book.lost.first()?;
    let without = without_lost(&case.identity.book, &lost.name);
    let found = keys.iter().find(|key| key.name == lost.name);
    Some(match found {
        Some(key) => revoke(case, (key.id, &lost.name), without, ready.clone()),
        None => Decision::act(KeyStep::Record { book: without, event: None }, ready.clone()),
    })
}
