//! What became of keys: of one whose creation was begun and never recorded, and of those that are to be revoked.

use jiff::Timestamp;

use super::super::identity::{KeyBook, KeyIntent, LostKey, RetiredKey};
use super::super::{Action, later};
use super::{Case, KeyListing, KeyStep};
use crate::platform::Fault;

/// What became of a key whose creation was begun and whose secret never arrived.
pub(super) enum Fate {
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
}

pub(super) fn fate(case: &Case, intent: &KeyIntent) -> Fate {
    if not_created(case) {
        return Fate::NotCreated;
    }
    let settled = later(intent.at, case.observed.limits.settle);
    match &case.observed.listing {
        KeyListing::NotRead => Fate::NotRead,
        KeyListing::NotOffered => Fate::CannotTell,
        KeyListing::Read { at, keys } => match keys.iter().find(|key| key.name == intent.name) {
            Some(key) => Fate::Exists(key.id),
            None if *at >= settled => Fate::NotCreated,
            None if settled <= case.now => Fate::NotRead,
            None => Fate::NotKnownYet(settled),
        },
    }
}

/// Whether this process was told that its last try created nothing.
fn not_created(case: &Case) -> bool {
    match case.observed.memory.fault(Action::Mint) {
        // The name is unique: where somebody on the way repeated the request, the first one may have created the key.
        Some(Fault::Conflict { .. }) => case.cannot_revoke(),
        Some(fault) => !fault.may_have_happened(),
        None => false,
    }
}

/// How a key is revoked.
pub(super) enum Revocation {
    /// With this step, unless the last try of that action failed too recently.
    Step(Option<Action>, Box<KeyStep>),
    /// Not at all: its identifier belongs to another key. A text says so.
    NotOurs(String),
    /// The platform offers no call for it.
    NotOffered,
}

/// Revokes one key where the platform can; `without` is the book once that is done. Keys that a list lacks are gone already.
pub(super) fn revocation(case: &Case, (id, name): (i64, &str), without: KeyBook) -> Revocation {
    let keys = match &case.observed.listing {
        KeyListing::NotRead => return Revocation::Step(Some(Action::ListKeys), Box::new(KeyStep::ListKeys)),
        KeyListing::NotOffered => return Revocation::NotOffered,
        KeyListing::Read { keys, .. } => keys,
    };
    match keys.iter().find(|key| key.id == id) {
        None => {
            let event = Some(format!("Key {name} ({id}) is revoked."));
            Revocation::Step(None, Box::new(KeyStep::Record { book: without, event }))
        }
        // Only a key that carries the name we gave it is ever revoked.
        Some(key) if key.name != name => Revocation::NotOurs(format!(
            "Key {id} is called {} on the platform and not {name}; it is left alone. Revoke it in the console if it is yours.",
            key.name
        )),
        Some(_) => {
            let step = KeyStep::Revoke { id, name: name.to_owned(), book: without };
            Revocation::Step(Some(Action::Revoke), Box::new(step))
        }
    }
}

pub(super) fn without_previous(book: &KeyBook, id: i64) -> KeyBook {
    let mut book = book.clone();
    book.previous.retain(|key: &RetiredKey| key.id != id);
    book
}

pub(super) fn with_lost(book: &KeyBook, id: Option<i64>, name: &str, since: Timestamp) -> KeyBook {
    let mut book = book.clone();
    if book.lost.iter().all(|key| key.name != name) {
        book.lost.push(LostKey { id, name: name.to_owned(), since });
    }
    book
}

pub(super) fn without_lost(book: &KeyBook, name: &str) -> KeyBook {
    let mut book = book.clone();
    book.lost.retain(|key| key.name != name);
    book
}

/// The intent's key as one that may exist, with what to tell people.
pub(super) fn given_up(book: &KeyBook, intent: &KeyIntent) -> KeyStep {
    let event = format!(
        "The secret of key {} never arrived, and this platform offers no call to find or revoke it. \
         If the platform's console shows that key, revoke it there.",
        intent.name
    );
    KeyStep::Record { book: with_lost(&book.of(intent), None, &intent.name, intent.at), event: Some(event) }
}
