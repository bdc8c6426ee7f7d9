//! Project keys: create, keep in a Secret, replace, revoke.

mod end;
mod life;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::identity::{KeyBook, KeyIdentity, KeyIntent, LostKey, ProjectKeyIdentity, RetiredKey, Unreadable};
use super::{AccountView, Action, Decision, Limits, Memory, Meta, Reason, Report, memory};
use crate::api::{KeyRecord, ProjectKeySpec, ProjectKeyStatus};
use crate::platform::{Fault, KeyEntry};

/// Everything that a decision about a ProjectKey rests on, besides its spec and the time.
#[derive(Clone, Debug)]
pub struct KeyObserved {
    pub meta: Meta,
    pub uid: String,
    pub identity: Result<ProjectKeyIdentity, Unreadable>,
    pub account: AccountView,
    pub secret: KeySecretView,
    /// An older resource that names the same Secret.
    pub rival: Option<String>,
    /// The organization's keys, read only where a decision needs them.
    pub listing: KeyListing,
    /// What the key itself was last told.
    pub probe: Probe,
    /// A key that was created and whose secret is not in its Secret yet.
    pub unsaved: Option<KeyIdentity>,
    pub memory: Memory,
    pub limits: Limits,
    /// A number drawn for this decision, for unique names.
    pub draw: u32,
}

/// The Secret that is to hold the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySecretView {
    Absent,
    /// It exists and is not this resource's; who has it.
    Foreign(String),
    /// It is this resource's.
    Ours(Holding),
}

/// What a Secret of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// No key yet.
    Nothing,
    /// A key as dbplane wrote it; whether the rest of the Secret is as declared.
    Key { key: KeyIdentity, as_declared: bool },
    /// Data that dbplane did not write.
    Altered,
}

/// The organization's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyListing {
    /// Not read.
    NotRead,
    /// The platform offers no such list, or not to this credential.
    NotOffered,
    Failed(Fault),
    Read {
        at: Timestamp,
        keys: Vec<KeyEntry>,
    },
}

/// What the platform said to the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Not asked since then, or never.
    NotAsked(Option<Timestamp>),
    Accepted(Timestamp),
    Revoked(Timestamp),
}

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyStep {
    /// Hold the resource until its keys have been dealt with.
    AddFinalizer,
    /// Create the Secret, empty: what can fail after the key is created is made to fail before.
    PrepareSecret,
    /// Write the intent, create the key, write the Secret, record the key.
    Mint { intent: KeyIntent },
    /// Write the key that is held in memory into its Secret, then record it.
    SaveSecret,
    /// Write the Secret's declared parts anew around the key it holds.
    RewriteSecret,
    /// Record these keys, and the end of the intent.
    Record { book: KeyBook, event: Option<String> },
    /// Revoke a key, then record.
    Revoke { id: i64, name: String, book: KeyBook },
    /// Read the organization's keys.
    ListKeys,
    /// Ask the platform whether it accepts the key.
    Probe,
    /// Let the resource go.
    Release,
}

type Choice = Decision<KeyStep>;

/// What to do about a ProjectKey.
pub fn decide(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> Choice {
    let identity = match &observed.identity {
        Ok(identity) => identity,
        Err(Unreadable { annotation, error }) => {
            return Decision::rest(Report::stalled(
                Reason::BindingConflict,
                format!(
                    "The annotation {annotation} cannot be read ({error}). Restore its value; removing it makes dbplane forget the keys."
                ),
            ));
        }
    };
    let case = Case { spec, observed, identity, now };
    // A secret in memory comes before everything: it is shown once.
    if observed.unsaved.is_some() && !matches!(observed.secret, KeySecretView::Foreign(_)) {
        return case.act(
            Action::WriteSecret,
            KeyStep::SaveSecret,
            Report::progressing(Reason::Creating, "The key is being written to its Secret."),
        );
    }
    if observed.meta.deleting {
        return end::decide(&case);
    }
    if observed.meta.paused {
        return Decision::rest(Report::unknown(
            Reason::Paused,
            "Paused by the annotation dbplane.dev/paused; nothing is written.",
        ));
    }
    match &observed.account {
        AccountView::Usable { organization: None } => Decision::rest(Report::stalled(
            Reason::OrganizationMissing,
            format!("{} has no organizationId, which creating keys needs. Set it there.", spec.account_ref.name),
        )),
        AccountView::Usable { organization: Some(_) } => life::decide(&case),
        account => account.obstacle().map_or_else(Decision::silent, |obstacle| Decision::rest(Report::of(obstacle))),
    }
}

/// The status that goes with a decision.
pub fn status(
    report: &Report,
    observed: &KeyObserved,
    old: &ProjectKeyStatus,
    spec: &ProjectKeySpec,
    now: Timestamp,
) -> ProjectKeyStatus {
    let book = observed.identity.as_ref().map(|identity| identity.book.clone()).unwrap_or_default();
    let current = book.current.as_ref();
    ProjectKeyStatus {
        key_id: current.map(|key| key.id),
        key_name: current.map(|key| key.name.clone()),
        created_at: current.and_then(|key| key.created_at),
        created_by: current.and_then(|key| key.created_by.clone()),
        secret_name: current.map(|_| spec.secret.name.clone()),
        rotated_at: book.rotated_at,
        previous_keys: book
            .previous
            .iter()
            .map(|key| KeyRecord { id: Some(key.id), name: key.name.clone(), since: key.since })
            .collect(),
        lost_keys: book
            .lost
            .iter()
            .map(|key| KeyRecord { id: key.id, name: key.name.clone(), since: key.since })
            .collect(),
        conditions: report.conditions(&old.conditions, observed.meta.generation, now),
        observed_generation: Some(observed.meta.generation),
    }
}

/// The further entries of the Secret's data, with their placeholders replaced.
pub fn template(spec: &ProjectKeySpec, key: &KeyIdentity, secret: &str, base_url: &str) -> BTreeMap<String, String> {
    let id = key.id.to_string();
    let values = [
        ("key", secret),
        ("keyId", id.as_str()),
        ("keyName", key.name.as_str()),
        ("projectId", spec.project_id.as_str()),
        ("baseUrl", base_url),
    ];
    let fill = |text: &String| {
        values.iter().fold(text.clone(), |text, (name, value)| {
            text.replace(&format!("{{{{ {name} }}}}"), value).replace(&format!("{{{{{name}}}}}"), value)
        })
    };
    spec.secret.template.iter().map(|(entry, text)| (entry.clone(), fill(text))).collect()
}

/// Everything at hand.
struct Case<'a> {
    spec: &'a ProjectKeySpec,
    observed: &'a KeyObserved,
    identity: &'a ProjectKeyIdentity,
    now: Timestamp,
}

impl Case<'_> {
    /// A step, unless its last try failed too recently.
    fn act(&self, action: Action, step: KeyStep, report: Report) -> Choice {
        match self.observed.memory.hold(action, self.observed.meta.generation, self.now) {
            Some(memory::Hold { health, until }) => Decision::wait(Report::of(health), until),
            None => Decision::act(step, report),
        }
    }

    /// Whether revoking was tried and is not offered.
    fn cannot_revoke(&self) -> bool {
        matches!(self.observed.listing, KeyListing::NotOffered)
    }
}

/// Revokes one key where the platform can; `without` is the book once that is done. Keys that a list lacks are gone already.
fn revoke(case: &Case, (id, name): (i64, &str), without: KeyBook, report: Report) -> Choice {
    match &case.observed.listing {
        KeyListing::NotRead => Decision::act(KeyStep::ListKeys, report),
        KeyListing::Read { keys, .. } if keys.iter().all(|key| key.id != id) => Decision::act(
            KeyStep::Record { book: without, event: Some(format!("Key {name} ({id}) is revoked.")) },
            report,
        ),
        // Only a key that carries the name we gave it is ever revoked.
        KeyListing::Read { keys, .. } if keys.iter().any(|key| key.id == id && key.name != name) => {
            Decision::rest(Report::stalled(
                Reason::BindingConflict,
                format!(
                    "Key {id} is not called {name} on the platform; it is left alone. Revoke it in the console if it is yours."
                ),
            ))
        }
        KeyListing::Read { .. } => {
            case.act(Action::Revoke, KeyStep::Revoke { id, name: name.to_owned(), book: without }, report)
        }
        KeyListing::Failed(fault) => Decision::rest(Report::of(memory::of_fault(fault))),
        KeyListing::NotOffered => Decision::rest(report),
    }
}

/// What became of a key whose creation was begun and whose secret never arrived.
enum Lost {
    /// It was not created.
    Nothing,
    /// It exists under the name that was recorded.
    Exists(i64),
    /// A later reading will tell.
    NotKnownYet(Timestamp),
    /// The keys have to be read first.
    NotRead,
    /// The platform cannot tell.
    CannotTell,
    Failed(Fault),
}

fn lost(case: &Case, intent: &KeyIntent) -> Lost {
    if case.observed.memory.not_done(Action::Mint) {
        return Lost::Nothing;
    }
    let settled = super::later(intent.at, case.observed.limits.settle);
    match &case.observed.listing {
        KeyListing::NotRead => Lost::NotRead,
        KeyListing::NotOffered => Lost::CannotTell,
        KeyListing::Failed(fault) => Lost::Failed(fault.clone()),
        KeyListing::Read { at, keys } => match keys.iter().find(|key| key.name == intent.name) {
            Some(key) => Lost::Exists(key.id),
            None if *at >= settled => Lost::Nothing,
            None => Lost::NotKnownYet(settled),
        },
    }
}

fn without_previous(book: &KeyBook, id: i64) -> KeyBook {
    let mut book = book.clone();
    book.previous.retain(|key: &RetiredKey| key.id != id);
    book
}

fn with_lost(book: &KeyBook, id: Option<i64>, name: &str, since: Timestamp) -> KeyBook {
    let mut book = book.clone();
    if book.lost.iter().all(|key| key.name != name) {
        book.lost.push(LostKey { id, name: name.to_owned(), since });
    }
    book
}

fn without_lost(book: &KeyBook, name: &str) -> KeyBook {
    let mut book = book.clone();
    book.lost.retain(|key| key.name != name);
    book
}
