//! A ProjectKey that is being deleted: every key that it ever had is revoked first.

use super::super::memory::of_fault;
use super::super::{AccountView, Decision, Reason, Report};
use super::{Case, Choice, KeyStep, Lost, Probe, lost, revoke, without_lost, without_previous};
use crate::api::KeyDeletion;
use crate::decide::identity::KeyBook;

pub(super) fn decide(case: &Case) -> Choice {
    if !case.observed.meta.finalized {
        return Decision::rest(deleting());
    }
    if case.observed.meta.paused {
        return Decision::rest(Report::unknown(
            Reason::Paused,
            "Paused by the annotation dbplane.dev/paused; the deletion waits.",
        ));
    }
    let book = &case.identity.book;
    let none =
        book.current.is_none() && book.previous.is_empty() && book.lost.is_empty() && case.identity.intent.is_none();
    if case.spec.deletion == KeyDeletion::Orphan || none {
        return Decision::act(KeyStep::Release, deleting());
    }
    if case.observed.account == AccountView::Pending {
        return Decision::silent();
    }
    if let Some(obstacle) = case.observed.account.obstacle() {
        return Decision::rest(Report::of(obstacle));
    }
    if let Some(intent) = &case.identity.intent {
        return match lost(case, intent) {
            Lost::NotRead => Decision::act(KeyStep::ListKeys, deleting()),
            Lost::Nothing => Decision::act(KeyStep::Record { book: book.clone(), event: None }, deleting()),
            Lost::NotKnownYet(until) => Decision::wait(deleting(), until),
            Lost::Exists(id) => revoke(case, (id, &intent.name), book.clone(), deleting()),
            Lost::CannotTell => Decision::rest(by_hand(case)),
            Lost::Failed(fault) => Decision::rest(Report::of(of_fault(&fault))),
        };
    }
    revoke_next(case, book)
}

fn revoke_next(case: &Case, book: &KeyBook) -> Choice {
    let current =
        book.current.as_ref().map(|key| (key.id, key.name.as_str(), KeyBook { current: None, ..book.clone() }));
    let previous = book.previous.first().map(|key| (key.id, key.name.as_str(), without_previous(book, key.id)));
    if case.cannot_revoke() {
        return without_call(case, book);
    }
    if let Some((id, name, without)) = previous.or(current) {
        return revoke(case, (id, name), without, deleting());
    }
    match book.lost.first() {
        Some(key) => {
            let id = key.id.or_else(|| listed(case, &key.name));
            match id {
                Some(id) => revoke(case, (id, &key.name), without_lost(book, &key.name), deleting()),
                None if matches!(case.observed.listing, super::KeyListing::NotRead) => {
                    Decision::act(KeyStep::ListKeys, deleting())
                }
                None => Decision::act(KeyStep::Record { book: without_lost(book, &key.name), event: None }, deleting()),
            }
        }
        None => Decision::act(KeyStep::Release, deleting()),
    }
}

fn listed(case: &Case, name: &str) -> Option<i64> {
    match &case.observed.listing {
        super::KeyListing::Read { keys, .. } => keys.iter().find(|key| key.name == name).map(|key| key.id),
        _ => None,
    }
}

/// No call to revoke: the key itself is asked until the platform refuses it.
fn without_call(case: &Case, book: &KeyBook) -> Choice {
    let only_current = book.previous.is_empty() && book.lost.is_empty();
    match (case.observed.probe, &book.current) {
        (Probe::Revoked(_), Some(_)) if only_current => Decision::act(KeyStep::Release, deleting()),
        (Probe::Revoked(_), Some(_)) => Decision::act(
            KeyStep::Record { book: KeyBook { current: None, ..book.clone() }, event: None },
            by_hand(case),
        ),
        (Probe::Accepted(at) | Probe::NotAsked(Some(at)), Some(_)) if case.now < super::super::later(at, ASK_AGAIN) => {
            Decision::wait(by_hand(case), super::super::later(at, ASK_AGAIN))
        }
        (_, Some(_)) => Decision::act(KeyStep::Probe, by_hand(case)),
        (_, None) => Decision::rest(by_hand(case)),
    }
}

/// How often a key that is to be revoked in the console is asked.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_secs(15);

fn deleting() -> Report {
    Report::progressing(Reason::Deleting, "The key is being revoked.")
}

fn by_hand(case: &Case) -> Report {
    let book = &case.identity.book;
    let names: Vec<String> = book
        .current
        .iter()
        .map(|key| format!("{} ({})", key.name, key.id))
        .chain(book.previous.iter().map(|key| format!("{} ({})", key.name, key.id)))
        .chain(book.lost.iter().map(|key| key.name.clone()))
        .chain(case.identity.intent.iter().map(|intent| intent.name.clone()))
        .collect();
    Report::stalled(
        Reason::RevocationUnsupported,
        format!(
            "This platform offers no call to revoke keys. Revoke in its console: {}; the resource goes once the platform refuses the key. \
             To leave keys valid, set spec.deletion to Orphan.",
            names.join(", ")
        ),
    )
}
