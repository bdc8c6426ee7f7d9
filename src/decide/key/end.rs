//! A ProjectKey that is being deleted: every key that it ever had is revoked first.

use super::super::identity::{KeyBook, KeyIntent};
use super::super::{AccountView, Action, Decision, Health, Reason, Report, later};
use super::fate::{Fate, Revocation, fate, given_up, revocation, without_lost, without_previous};
use super::{Case, Choice, Holding, KeyListing, KeySecretView, KeyStep, Probe};
use crate::api::KeyDeletion;

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
    if let Some(recorded) = unrecorded(case) {
        return Decision::act(recorded, deleting());
    }
    let none =
        book.current.is_none() && book.previous.is_empty() && book.lost.is_empty() && case.identity.intent.is_none();
    // Keys that another resource has are its own to revoke.
    if case.spec.deletion == KeyDeletion::Orphan || none || case.observed.twin.is_some() {
        return Decision::act(KeyStep::Release, deleting());
    }
    match &case.observed.account {
        AccountView::Pending => return Decision::silent(),
        AccountView::Usable { organization: None } => return Decision::rest(or_orphan(case.no_organization())),
        account => {
            if let Some(obstacle) = account.obstacle() {
                return Decision::rest(or_orphan(Report::of(obstacle)));
            }
        }
    }
    if let Some(report) = case.elsewhere() {
        return Decision::rest(or_orphan(report));
    }
    match &case.identity.intent {
        Some(intent) => resolve(case, intent),
        None => revoke_next(case, book),
    }
}

/// A key of this process that the annotations do not tell of. What will be revoked need not reach its Secret any more.
fn unrecorded(case: &Case) -> Option<KeyStep> {
    let key = case.observed.unsaved.as_ref()?;
    let book = &case.identity.book;
    if book.names().any(|name| name == key.name) {
        return None;
    }
    let intent = case.identity.intent.clone().filter(|intent| intent.name == key.name).unwrap_or_else(|| KeyIntent {
        name: key.name.clone(),
        at: key.at,
        organization: case.organization().map(str::to_owned),
        ..KeyIntent::default()
    });
    Some(KeyStep::Record { book: book.succeeded_by(key.clone(), &intent), event: None })
}

/// A creation that was begun and not recorded as done: a key that arrived is recorded, and then revoked like any other.
fn resolve(case: &Case, intent: &KeyIntent) -> Choice {
    let book = &case.identity.book;
    if let KeySecretView::Ours(Holding::Key { key, .. }) = &case.observed.secret
        && key.name == intent.name
    {
        let book = book.succeeded_by(key.clone(), intent);
        return Decision::act(KeyStep::Record { book, event: None }, deleting());
    }
    match fate(case, intent) {
        Fate::NotRead => case.act(Action::ListKeys, KeyStep::ListKeys, deleting()),
        Fate::NotCreated => Decision::act(KeyStep::Record { book: book.clone(), event: None }, deleting()),
        Fate::NotKnownYet(until) => Decision::wait(deleting(), until),
        Fate::Exists(id) => revoke(case, (id, &intent.name), book.clone()),
        Fate::CannotTell => Decision::act(given_up(book, intent), deleting()),
    }
}

fn revoke_next(case: &Case, book: &KeyBook) -> Choice {
    if case.cannot_revoke() {
        return without_call(case, book);
    }
    if let Some(key) = book.previous.first() {
        return revoke(case, (key.id, &key.name), without_previous(book, key.id));
    }
    if let Some(key) = &book.current {
        return revoke(case, (key.id, &key.name), KeyBook { current: None, ..book.clone() });
    }
    match (book.lost.first(), &case.observed.listing) {
        (None, _) => Decision::act(KeyStep::Release, deleting()),
        (Some(lost), KeyListing::Read { keys, .. }) => {
            let without = without_lost(book, &lost.name);
            match keys.iter().find(|key| key.name == lost.name) {
                Some(key) => revoke(case, (key.id, &lost.name), without),
                None => Decision::act(KeyStep::Record { book: without, event: None }, deleting()),
            }
        }
        (Some(_), _) => case.act(Action::ListKeys, KeyStep::ListKeys, deleting()),
    }
}

fn revoke(case: &Case, key: (i64, &str), without: KeyBook) -> Choice {
    match revocation(case, key, without) {
        Revocation::Step(Some(action), step) => case.act(action, *step, deleting()),
        Revocation::Step(None, step) => Decision::act(*step, deleting()),
        Revocation::NotOurs(message) => Decision::rest(or_orphan(Report::stalled(Reason::BindingConflict, message))),
        Revocation::NotOffered => Decision::rest(by_hand(case)),
    }
}

/// No call to revoke: the key itself is asked until the platform refuses it.
fn without_call(case: &Case, book: &KeyBook) -> Choice {
    let asked = book.current.as_ref().filter(|current| case.at_hand().is_some_and(|key| key.id == current.id));
    if asked.is_none() {
        return Decision::rest(by_hand(case));
    }
    match case.observed.probe {
        Probe::Revoked(_) => {
            let book = KeyBook { current: None, ..book.clone() };
            Decision::act(KeyStep::Record { book, event: None }, deleting())
        }
        Probe::Accepted(at) | Probe::NotAsked(Some(at)) if case.now < later(at, ASK_AGAIN) => {
            Decision::wait(by_hand(case), later(at, ASK_AGAIN))
        }
        Probe::Accepted(_) | Probe::NotAsked(_) => Decision::act(KeyStep::Probe, by_hand(case)),
    }
}

/// How often a key that is to be revoked in the console is asked.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_secs(15);

fn deleting() -> Report {
    Report::progressing(Reason::Deleting, "The key is being revoked.")
}

/// The same, with the way out.
fn or_orphan(report: Report) -> Report {
    const WAY_OUT: &str = "To let the resource go and leave its keys as they are, set spec.deletion to Orphan.";
    let with = |message: String| format!("{message} {WAY_OUT}");
    Report::of(match report.health {
        Health::Ready(reason, message) => Health::Ready(reason, with(message)),
        Health::Progressing(reason, message) => Health::Progressing(reason, with(message)),
        Health::Stalled(reason, message) => Health::Stalled(reason, with(message)),
        Health::Unknown(reason, message) => Health::Unknown(reason, with(message)),
    })
}

fn by_hand(case: &Case) -> Report {
    let book = &case.identity.book;
    let current = book.current.as_ref().map(|key| (format!("{} ({})", key.name, key.id), key.id));
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    match current {
        Some((text, id)) if case.at_hand().is_some_and(|key| key.id == id) => seen.push(text),
        Some((text, _)) => unseen.push(text),
        None => {}
    }
    unseen.extend(book.previous.iter().map(|key| format!("{} ({})", key.name, key.id)));
    unseen.extend(book.lost.iter().map(|key| key.name.clone()));
    let all: Vec<&str> = seen.iter().chain(&unseen).map(String::as_str).collect();
    let mut message = format!(
        "This platform offers no call to revoke keys, or not to these credentials. Revoke in its console: {}.",
        all.join(", ")
    );
    if unseen.is_empty() {
        message.push_str(" The resource goes once the platform refuses the key.");
    } else {
        message.push_str(&format!(
            " Whether that was done dbplane cannot see for {}, whose secret it does not have.",
            unseen.join(", ")
        ));
    }
    or_orphan(Report::stalled(Reason::RevocationUnsupported, message))
}
