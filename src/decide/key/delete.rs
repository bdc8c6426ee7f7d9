//! A ProjectKey that is being deleted: every key that it ever had is revoked first.

use super::super::identity::{KeyBook, KeyIntent};
use super::super::{AccountView, Action, Decision, Health, Reason, Report, later};
use super::manual_revocation::{acknowledged, left};
use super::outcome::{CreateOutcome, Named, Revocation, create_outcome, given_up, keys, revocation, stray, without};
use super::{Case, Choice, KeySecretView, KeyStep, Probe, SecretContents};
use crate::api::KeyDeletion;

pub(super) fn decide(case: &Case) -> Choice {
    if !case.observed.meta.has_finalizer {
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
    // The Secret goes with the resource that owns it. Where it cannot be taken back, it stays.
    if let Some(step) = case.taking_back()
        && case.backoff(Action::WriteSecret).is_none()
    {
        return Decision::act(step, deleting());
    }
    if case.identity.intent.is_none()
        && let Some(choice) = acknowledged(case)
    {
        return choice;
    }
    let none =
        book.current.is_none() && book.previous.is_empty() && book.lost.is_empty() && case.identity.intent.is_none();
    if case.spec.deletion == KeyDeletion::Orphan || none {
        return Decision::act(KeyStep::RemoveFinalizer, deleting());
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
    let intent = match &case.identity.intent {
        Some(intent) if intent.name == key.name => intent.clone(),
        Some(_) => return Some(case.leaving(key)),
        None => KeyIntent {
            name: key.name.clone(),
            at: key.at,
            organization: case.organization().map(str::to_owned),
            ..KeyIntent::default()
        },
    };
    Some(KeyStep::Record { book: book.succeeded_by(key.clone(), &intent), event: None })
}

/// A creation that was begun and not recorded as done: a key that arrived is recorded, and then revoked like any other.
fn resolve(case: &Case, intent: &KeyIntent) -> Choice {
    let book = &case.identity.book;
    if let KeySecretView::Ours(SecretContents::Key { key, .. }) = &case.secret
        && key.name == intent.name
    {
        let book = book.succeeded_by(key.clone(), intent);
        return Decision::act(KeyStep::Record { book, event: None }, deleting());
    }
    match create_outcome(case, intent) {
        CreateOutcome::NotRead => case.act(Action::ListKeys, KeyStep::ListKeys, deleting()),
        CreateOutcome::NotCreated => Decision::act(KeyStep::Record { book: book.clone(), event: None }, deleting()),
        CreateOutcome::NotKnownYet(until) => Decision::wait(deleting(), until),
        CreateOutcome::Exists(id) | CreateOutcome::Other(id) => {
            Decision::act(given_up(case, Some(id), intent), deleting())
        }
        CreateOutcome::CannotTell => Decision::act(given_up(case, None, intent), deleting()),
    }
}

/// One key after the other; those that are to be left alone do not keep the others.
fn revoke_next(case: &Case, book: &KeyBook) -> Choice {
    if case.cannot_revoke() {
        return without_call(case, book);
    }
    if let Some(key) = stray(case) {
        let step = KeyStep::Revoke { id: key.id, name: key.name.clone(), book: book.clone() };
        return case.act(Action::Revoke, step, deleting());
    }
    let (mut others, mut not_ours) = (Vec::new(), Vec::new());
    for key in keys(book) {
        match revocation(case, key) {
            Revocation::Step(Some(action), step) => return case.act(action, *step, deleting()),
            Revocation::Step(None, step) => return Decision::act(*step, deleting()),
            Revocation::NotOurs(message) => not_ours.push(message),
            Revocation::OfAnotherCluster | Revocation::NotOffered => others.push(key.1),
        }
    }
    let told = left(case, others);
    if told.is_none() && not_ours.is_empty() {
        return Decision::act(KeyStep::RemoveFinalizer, deleting());
    }
    let reason = told.as_ref().map_or(Reason::BindingConflict, |(reason, _)| *reason);
    not_ours.extend(told.map(|(_, message)| message));
    Decision::rest(or_orphan(Report::stalled(reason, not_ours.join(" "))))
}

/// No call to revoke: the key itself is asked until the platform refuses it.
fn without_call(case: &Case, book: &KeyBook) -> Choice {
    let asked = book.current.as_ref().filter(|current| case.at_hand().is_some_and(|key| key.id == current.id));
    if asked.is_none() {
        return Decision::rest(by_hand(case));
    }
    match case.observed.probe {
        Probe::Revoked(_) => {
            let book = asked.map_or_else(|| book.clone(), |key| without(book, &key.name));
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
    let all: Vec<Named> = keys(&case.identity.book).collect();
    let at_hand = case.at_hand().map(|key| key.id);
    let unseen: Vec<&str> =
        all.iter().filter(|(id, _)| id.is_none() || *id != at_hand).map(|(_, name)| *name).collect();
    let message = |told: String| {
        let outlook = if unseen.is_empty() {
            "The resource goes once the platform refuses the key.".to_owned()
        } else {
            format!(
                "Whether that was done dbplane cannot see for {}, whose secret it does not have.",
                unseen.join(", ")
            )
        };
        format!("This platform offers no call to revoke keys, or not to these credentials. {told} {outlook}")
    };
    match left(case, all.iter().map(|(_, name)| *name)) {
        Some((reason, told)) => or_orphan(Report::stalled(reason, message(told))),
        None => deleting(),
    }
}
