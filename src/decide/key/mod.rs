//! Project keys: create, keep in a Secret, replace, revoke.

mod delete;
mod intent;
mod keep;
mod manual_revocation;
mod outcome;
mod template;
#[cfg(test)]
mod tests;
mod upkeep;

use jiff::Timestamp;

pub use self::template::template;
use super::identity::{Doubtful, KeyBook, KeyIdentity, KeyIntent, ProjectKeyIdentity};
use super::names::{ClusterId, Mark};
use super::{AccountView, Action, Decision, Limits, Memory, Meta, Reason, Report, brake, later, memory};
use crate::api::{KeyDeletion, KeyRecord, ProjectKeySpec, ProjectKeyStatus};
use crate::domain::KeyEntry;

/// Everything that a decision about a ProjectKey rests on, besides its spec and the time.
#[derive(Clone, Debug)]
pub struct KeyObserved {
    pub meta: Meta,
    pub uid: String,
    pub created: Timestamp,
    pub identity: Result<ProjectKeyIdentity, Doubtful>,
    pub account: AccountView,
    pub secret: KeySecretView,
    /// A resource that names the same Secret and is older, or has it.
    pub rival: Option<String>,
    /// The Secret is being deleted: what is written into it goes with it.
    pub secret_going: bool,
    /// The keys that people say they have revoked, as the annotation names them.
    pub revoked: Option<String>,
    /// The organization's keys, read only where a decision needs them.
    pub listing: KeyListing,
    /// What the key itself was last told.
    pub probe: Probe,
    /// A key that was created and whose secret is not in its Secret yet.
    pub unsaved: Option<KeyIdentity>,
    pub memory: Memory,
    pub limits: Limits,
    /// The cluster that the operator runs for.
    pub cluster: ClusterId,
    /// A number drawn for this decision, for unique names.
    pub draw: u32,
}

/// The Secret that is to hold the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySecretView {
    Absent,
    /// It exists and is not this resource's; who has it.
    Foreign(String),
    /// It holds this key as dbplane wrote it, for a resource of this name that is no more: both may come from a backup.
    Restored {
        key: KeyIdentity,
        version: String,
    },
    /// It is this resource's.
    Ours(SecretContents),
}

/// What a Secret of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretContents {
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
    /// Make a Secret from a backup, as it was read in that version, this resource's again.
    TakeBack { key: String, version: String },
    /// Write the intent, create the key, write the Secret, record the key. `because` is told where nobody asked for it.
    CreateKey { intent: KeyIntent, because: Option<String> },
    /// Write the key that is held in memory into its Secret, then record it.
    SaveSecret,
    /// Record a key in memory that another leader has given up meanwhile, and forget its secret.
    Leave { book: KeyBook },
    /// Write the Secret's declared parts anew around the key it holds.
    RewriteSecret,
    /// Record these keys, and the end of the intent.
    Record { book: KeyBook, event: Option<String> },
    /// Forget the keys that people have revoked, and the annotation that says so.
    Acknowledge { book: KeyBook, event: String },
    /// Revoke a key, then record.
    Revoke { id: i64, name: String, book: KeyBook },
    /// Read the organization's keys.
    ListKeys,
    /// Ask the platform whether it accepts the key.
    Probe,
    /// Let the resource go.
    RemoveFinalizer,
}

type Choice = Decision<KeyStep>;

/// What to do about a ProjectKey.
pub fn decide(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> Choice {
    let left = spec.deletion == KeyDeletion::Orphan;
    if let Some(paused) = brake::paused(&observed.meta, &observed.limits).filter(|_| !left) {
        return Decision::rest(paused);
    }
    let identity = match &observed.identity {
        Ok(identity) => identity,
        Err(doubtful) => return disbelieved(spec, observed, doubtful),
    };
    let case = Case { spec, observed, identity, secret: believed(&observed.secret, identity), now };
    if observed.meta.deleting {
        return delete::decide(&case);
    }
    // A secret in memory comes before everything: it is shown once.
    if let Some(key) = observed.unsaved.as_ref().filter(|_| !matches!(case.secret, KeySecretView::Foreign(_))) {
        if !case.awaits(key) {
            return Decision::act(case.leaving(key), saving());
        }
        if let Some(step) = case.taking_back() {
            return case.act(Action::WriteSecret, step, saving());
        }
        return case.act(Action::WriteSecret, KeyStep::SaveSecret, saving());
    }
    if observed.meta.paused {
        return Decision::rest(Report::unknown(
            Reason::Paused,
            "Paused by the annotation dbplane.dev/paused; nothing is written.",
        ));
    }
    if identity.intent.is_none()
        && let Some(choice) = manual_revocation::acknowledged(&case)
    {
        return choice;
    }
    match &observed.account {
        AccountView::Usable { organization: None } => Decision::rest(case.no_organization()),
        AccountView::Usable { organization: Some(_) } => {
            case.elsewhere().map_or_else(|| keep::decide(&case), Decision::rest)
        }
        account => account.obstacle().map_or_else(Decision::silent, |obstacle| Decision::rest(Report::of(obstacle))),
    }
}

/// Nothing is decided on links that are not understood, but for letting go of what is left alone anyway.
fn disbelieved(spec: &ProjectKeySpec, observed: &KeyObserved, doubtful: &Doubtful) -> Choice {
    let meta = &observed.meta;
    let left = spec.deletion == KeyDeletion::Orphan || doubtful.is_copy();
    if meta.deleting && meta.has_finalizer && !meta.paused && left {
        return Decision::act(
            KeyStep::RemoveFinalizer,
            Report::progressing(Reason::Deleting, "The keys, if there are any, are left as they are."),
        );
    }
    Decision::rest(Report::stalled(Reason::BindingConflict, doubtful.explain("projectkey", meta.object_key())))
}

fn saving() -> Report {
    Report::progressing(Reason::Creating, "The key is being written to its Secret.")
}

/// A Secret from a backup is believed where it holds a key that the annotations know: the two were written together.
fn believed(secret: &KeySecretView, identity: &ProjectKeyIdentity) -> KeySecretView {
    let KeySecretView::Restored { key, .. } = secret else { return secret.clone() };
    let intended = identity.intent.as_ref().is_some_and(|intent| intent.name == key.name);
    let known = outcome::keys(&identity.book).any(|known| known == (Some(key.id), key.name.as_str()));
    if intended || known {
        return secret.clone();
    }
    KeySecretView::Foreign("what an earlier resource left, with a key that the annotations here do not name".to_owned())
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

/// Everything at hand.
struct Case<'a> {
    spec: &'a ProjectKeySpec,
    observed: &'a KeyObserved,
    identity: &'a ProjectKeyIdentity,
    /// The Secret, as far as it is believed.
    secret: KeySecretView,
    now: Timestamp,
}

impl Case<'_> {
    /// A step, unless its last try failed too recently.
    fn act(&self, action: Action, step: KeyStep, report: Report) -> Choice {
        match self.backoff(action) {
            Some(memory::Backoff { health, until }) => Decision::wait(Report::of(health), until),
            None => Decision::act(step, report),
        }
    }

    fn backoff(&self, action: Action) -> Option<memory::Backoff> {
        self.observed.memory.backoff(action, self.observed.meta.generation, self.now)
    }

    /// Why no key can be created now.
    fn key_creation_backoff(&self) -> Option<memory::Backoff> {
        self.backoff(Action::WriteSecret).or_else(|| self.backoff(Action::CreateKey))
    }

    /// Whether a key in memory is the one that the annotations wait for. Where they were removed altogether, it is.
    fn awaits(&self, key: &KeyIdentity) -> bool {
        let intended = self.identity.intent.as_ref().is_some_and(|intent| intent.name == key.name);
        let in_use = self.identity.book.current.as_ref().is_some_and(|current| current.name == key.name);
        intended || in_use || *self.identity == ProjectKeyIdentity::default()
    }

    fn leaving(&self, key: &KeyIdentity) -> KeyStep {
        KeyStep::Leave { book: outcome::with_lost(&self.identity.book, Some(key.id), &key.name, key.at) }
    }

    /// Whether revoking was tried and is not offered.
    fn cannot_revoke(&self) -> bool {
        matches!(self.observed.listing, KeyListing::NotOffered)
    }

    /// The step that takes back a Secret from a backup.
    fn taking_back(&self) -> Option<KeyStep> {
        match &self.secret {
            KeySecretView::Restored { key, version } => {
                Some(KeyStep::TakeBack { key: key.name.clone(), version: version.clone() })
            }
            _ => None,
        }
    }

    /// Until when the Secret of a key is waited for that was created under another UID: a backup may restore it after its
    /// resource.
    fn may_be_restored(&self, key: &KeyIdentity) -> Option<Timestamp> {
        let until = later(self.observed.created, self.observed.limits.settle);
        let restored = Mark::of(&key.name).is_some_and(|mark| !mark.is_of(&self.observed.uid));
        (restored && self.now < until).then_some(until)
    }

    /// The key whose secret is at hand, in its Secret or in memory: the platform can be asked whether it accepts it.
    fn at_hand(&self) -> Option<&KeyIdentity> {
        match (&self.secret, &self.observed.unsaved) {
            (_, Some(key)) | (KeySecretView::Ours(SecretContents::Key { key, .. }), None) => Some(key),
            _ => None,
        }
    }

    fn organization(&self) -> Option<&str> {
        match &self.observed.account {
            AccountView::Usable { organization } => organization.as_deref(),
            _ => None,
        }
    }

    /// The account was exchanged for one of another organization, which knows nothing of the keys: there they would all seem revoked.
    fn elsewhere(&self) -> Option<Report> {
        let (theirs, found) = (self.identity.organization()?, self.organization()?);
        (theirs != found).then(|| {
            Report::stalled(
                Reason::BindingConflict,
                format!(
                    "The keys of this resource are of the organization {theirs}, and {} is of {found}. Set spec.accountRef to an account \
                     of {theirs}; for a key of another organization create another ProjectKey.",
                    self.spec.account_ref.name
                ),
            )
        })
    }

    fn no_organization(&self) -> Report {
        Report::stalled(
            Reason::OrganizationMissing,
            format!(
                "{} has no organizationID, which creating and revoking keys needs. Set it there.",
                self.spec.account_ref.name
            ),
        )
    }
}
