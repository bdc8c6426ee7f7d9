//! What became of keys: of one whose creation was begun and never recorded, and of those that are to be revoked.

use jiff::Timestamp;

use super::super::identity::{KeyBook, KeyIntent, LostKey};
use super::super::{Action, names};
use super::{Case, KeyListing, KeyStep};
use crate::domain::{Fault, KeyEntry};

/// What became of a key whose creation was begun and whose secret never arrived.
pub(super) enum CreateOutcome {
    /// It was not created.
    NotCreated,
    /// It exists under the name that was recorded.
    Exists(i64),
    /// A later reading will tell.
    NotKnownYet(Timestamp),
    /// The keys have to be read first.
    NotRead,
    /// The platform cannot tell.
    CannotTell,
    /// The platform answered with this key, and knows none of the name that was recorded.
    Other(i64),
}

pub(super) fn create_outcome(case: &Case, intent: &KeyIntent) -> CreateOutcome {
    if not_created(case, intent) {
        return CreateOutcome::NotCreated;
    }
    let settled = case.observed.memory.settled(intent.at, case.observed.limits.settle);
    let other = case.observed.memory.other_key(intent.at);
    match &case.observed.listing {
        KeyListing::NotRead => CreateOutcome::NotRead,
        KeyListing::NotOffered => other.map_or(CreateOutcome::CannotTell, CreateOutcome::Other),
        KeyListing::Read { at, keys } => match keys.iter().find(|key| key.name == intent.name) {
            Some(key) => CreateOutcome::Exists(key.id),
            // It may be ours, so it is recorded at once: only this process knows of it.
            None if let Some(id) = other => CreateOutcome::Other(id),
            None if *at >= settled => CreateOutcome::NotCreated,
            None if settled <= case.now => CreateOutcome::NotRead,
            None => CreateOutcome::NotKnownYet(settled),
        },
    }
}

/// Whether this process made the try, and was told that it created nothing.
fn not_created(case: &Case, intent: &KeyIntent) -> bool {
    let memory = &case.observed.memory;
    // The name is unique: where somebody on the way repeated the request, the first one may have created the key.
    let repeated = matches!(memory.fault(Action::CreateKey), Some(Fault::Conflict { .. }));
    memory.not_done(Action::CreateKey, intent.at) && (!repeated || case.cannot_revoke())
}

/// How a key is revoked.
pub(super) enum Revocation {
    /// With this step, unless the last try of that action failed too recently.
    Step(Option<Action>, Box<KeyStep>),
    /// Not at all: its identifier belongs to another key. A text says so.
    NotOurs(String),
    /// Not here: another cluster gave its name, and may use it.
    OfAnotherCluster,
    /// The platform offers no call for it.
    NotOffered,
}

/// A key, by its number where that is known, and its unique name.
pub(super) type Named<'a> = (Option<i64>, &'a str);

/// All keys of a book: first those that were replaced, last those that nobody has.
pub(super) fn keys(book: &KeyBook) -> impl Iterator<Item = Named<'_>> {
    let previous = book.previous.iter().map(|key| (Some(key.id), key.name.as_str()));
    let current = book.current.iter().map(|key| (Some(key.id), key.name.as_str()));
    previous.chain(current).chain(book.lost.iter().map(|key| (key.id, key.name.as_str())))
}

/// Revokes one key where the platform can. One that a list lacks is gone already. Only a key that carries the name that it
/// was given, and that was given in this cluster, is ever revoked.
pub(super) fn revocation(case: &Case, (id, name): Named) -> Revocation {
    let keys = match &case.observed.listing {
        KeyListing::NotRead => return Revocation::Step(Some(Action::ListKeys), Box::new(KeyStep::ListKeys)),
        KeyListing::NotOffered => return Revocation::NotOffered,
        KeyListing::Read { keys, .. } => keys,
    };
    let book = without(&case.identity.book, name);
    match keys.iter().find(|key| id.map_or(key.name == name, |id| key.id == id)) {
        None => {
            let event = id.map(|id| format!("Key {name} ({id}) is revoked."));
            Revocation::Step(None, Box::new(KeyStep::Record { book, event }))
        }
        Some(key) if key.name != name => Revocation::NotOurs(format!(
            "Key {} is called {} on the platform and not {name}; it is left alone. Revoke it in the console if it is yours.",
            key.id, key.name
        )),
        Some(_) if !case.observed.cluster.gave(name) => Revocation::OfAnotherCluster,
        Some(key) => {
            let step = KeyStep::Revoke { id: key.id, name: name.to_owned(), book };
            Revocation::Step(Some(Action::Revoke), Box::new(step))
        }
    }
}

/// A key of this very resource that its annotations do not know: a call brought it forth after it was given up.
pub(super) fn stray<'a>(case: &'a Case) -> Option<&'a KeyEntry> {
    let KeyListing::Read { keys, .. } = &case.observed.listing else { return None };
    let attempt = |name: &str| {
        names::is_attempt(name, &case.spec.key_name, &case.observed.cluster, &case.observed.uid)
            && case.identity.names().all(|known| known != name)
    };
    keys.iter().find(|key| attempt(&key.name))
}

/// The book without the key of that name.
pub(super) fn without(book: &KeyBook, name: &str) -> KeyBook {
    let mut book = book.clone();
    book.current = book.current.filter(|key| key.name != name);
    book.previous.retain(|key| key.name != name);
    book.lost.retain(|key| key.name != name);
    book
}

pub(super) fn with_lost(book: &KeyBook, id: Option<i64>, name: &str, since: Timestamp) -> KeyBook {
    let mut book = book.clone();
    if !is_lost(&book, name) {
        book.lost.push(LostKey { id, name: name.to_owned(), since });
    }
    book
}

/// The intent's key as one that exists, or may exist, and whose secret nobody has; with what to tell people where it cannot
/// be revoked. It is recorded as lost before anything else: another leader that is just saving it then fails to record it as
/// the one in use, instead of keeping a key that is being revoked.
pub(super) fn given_up(case: &Case, id: Option<i64>, intent: &KeyIntent) -> KeyStep {
    let (book, name) = (&case.identity.book, &intent.name);
    let other = case.observed.memory.other_key(intent.at).filter(|other| id == Some(*other));
    let event = match (case.observed.cluster.gave(name), id) {
        (true, Some(id)) if other.is_some() => Some(format!(
            "The platform answered the creation of key {name} with key {id}, which is not what was asked for. Its secret is \
             not used, and it is left alone. If nobody needs it, revoke it in the platform's console."
        )),
        (true, Some(_)) => None,
        (true, None) => Some(format!(
            "The secret of key {name} never arrived, and this platform offers no call to find or revoke it. \
             If the platform's console shows that key, revoke it there."
        )),
        (false, _) => {
            Some(format!("Key {name} was begun in another cluster, which may use it; it is left alone here."))
        }
    };
    KeyStep::Record { book: with_lost(&book.of(intent), id, name, intent.at), event }
}

/// Whether a key is recorded as one whose secret never arrived.
pub(super) fn is_lost(book: &KeyBook, name: &str) -> bool {
    book.lost.iter().any(|key| key.name == name)
}
