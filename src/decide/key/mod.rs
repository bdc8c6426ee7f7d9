//! Project keys: create, keep in a Secret, replace, revoke.

mod belonging;
mod conflict;
mod delete;
mod in_use;
mod intent;
mod keep;
mod lost;
mod manual_revocation;
mod outcome;
mod pace;
mod rotation;
mod secret;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod trial;
mod unlisted;
mod upkeep;

use std::time::Duration;

use jiff::Timestamp;

pub use self::delete::may_miss_its_project;
pub use self::in_use::KeyAccount;
pub use self::intent::attempts;
pub use self::pace::list_interval;
pub use self::rotation::due_regularly;
use self::secret::trusted;
pub use self::secret::{KeySecretView, SecretContents};
pub use self::status::status;
pub use self::template::template;
pub use self::trial::tried;
use super::identity::{KeyIdentity, KeyIntent, KeyRecords, LostBecause, LostKey, ProjectKeyIdentity};
use super::names::{ClusterId, Mark};
use super::seal::InvalidAnnotation;
use super::{
    AccountView, Action, Decision, Limits, Memory, Meta, Reason, Report, Wake, YOUNG_KEY, brake, later, memory, paused,
};
use crate::api::{KeyDeletion, ProjectKeySpec};
use crate::domain::{KeyEntry, Listed, Shown};

/// Everything that a decision about a ProjectKey rests on, besides its spec and the time.
#[derive(Clone, Debug)]
pub struct KeyObserved {
    pub meta: Meta,
    pub uid: String,
    pub created: Timestamp,
    pub identity: Result<ProjectKeyIdentity, InvalidAnnotation>,
    /// Whether the identity is from a backup, or looks so, and the status does not have it yet.
    pub is_wish: bool,
    pub account: AccountView,
    /// The base URL of the account's platform, where the account can be used.
    pub platform: Option<String>,
    /// The project does not exist any more, as the account's checks show.
    pub project_gone: bool,
    pub secret: KeySecretView,
    /// The accounts whose credentials are in the Secret.
    pub accounts: Vec<KeyAccount>,
    /// A resource that names the same Secret and is older, or owns it.
    pub rival: Option<String>,
    /// The Secret is being deleted, and with it whatever is written into it.
    pub secret_deleting: bool,
    /// The keys that a person has revoked, as named in the annotation.
    pub revoked: Option<String>,
    /// What people ask for another key with.
    pub rotate: Option<String>,
    /// Those of the organization's keys that concern the resource, where they were listed so recently that it counts what the list lacks.
    pub listing: KeyListing,
    /// The same list, also where keys cannot be revoked.
    pub listed: KeyListing,
    /// The last such list, however old: what it shows is told to people, and says when to look again.
    pub known: KeyListing,
    /// Until when it is believed that the platform offers no call to revoke keys.
    pub not_offered_until: Option<Timestamp>,
    /// What the platform last said of the key in use: to the key itself, or with a list.
    pub probe: Probe,
    /// A key that was created and that is not in its Secret yet.
    pub unsaved: Option<KeyIdentity>,
    /// What the platform last said to that one.
    pub unsaved_probe: Probe,
    pub memory: Memory,
    pub limits: Limits,
    /// The cluster that the operator runs for.
    pub cluster: ClusterId,
    /// A number drawn for this decision, for unique names.
    pub draw: u32,
}

/// The organization's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyListing {
    /// Not read.
    NotRead,
    /// The platform offers no such list, or not to this credential.
    NotOffered,
    /// As it was at that time.
    Read { at: Timestamp, keys: Listed<KeyEntry> },
}

impl KeyListing {
    /// Whether the list has the key; `None` where there is no list, or an entry that cannot be read may be it.
    pub fn has(&self, key: &KeyIdentity) -> Option<bool> {
        let Self::Read { keys, .. } = self else { return None };
        match keys.find(Some(&key.id.to_string()), |entry| entry.id == key.id && entry.name == key.name) {
            Shown::Entry(_) => Some(true),
            Shown::Absent => Some(false),
            Shown::Unclear(_) => None,
        }
    }
}

/// Whether the platform accepts the key in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It is not known: the last check, if there was one, was at that time and gave no answer.
    NotAsked(Option<Timestamp>),
    Accepted(Timestamp),
    /// It was refused at that time, and each time since `since`.
    Refused {
        at: Timestamp,
        since: Timestamp,
        /// This process saw the platform accept it before that.
        was_accepted: bool,
    },
}

/// So far apart are two checks that refuse a key, before it counts as revoked. How often to check such a key.
const REFUSED_AGAIN: Duration = Duration::from_secs(15);
/// How often to check one that this process never saw accepted: it may be new.
const YOUNG_AGAIN: Duration = Duration::from_secs(5);

impl Probe {
    /// A check is to be made at once.
    pub const WANTED: Self = Self::NotAsked(Some(Timestamp::MIN));

    /// The platform has refused the key.
    #[must_use]
    pub fn refused(self, at: Timestamp) -> Self {
        match self {
            Self::Refused { since, was_accepted, .. } => Self::Refused { at, since, was_accepted },
            Self::NotAsked(_) => Self::Refused { at, since: at, was_accepted: false },
            Self::Accepted(_) => Self::Refused { at, since: at, was_accepted: true },
        }
    }

    /// The same after a list of the organization's keys, begun at that time, that has the key or lacks it. A list that lacks it is a
    /// reason to ask the key itself. One that has it says nothing of a key that was refused.
    #[must_use]
    pub fn listed(self, at: Timestamp, has_it: bool) -> Self {
        match self {
            Self::Refused { .. } => self,
            Self::Accepted(last) | Self::NotAsked(Some(last)) if last >= at => self,
            Self::Accepted(_) | Self::NotAsked(_) if has_it => Self::Accepted(at),
            Self::Accepted(_) | Self::NotAsked(_) => Self::WANTED,
        }
    }

    /// Whether the key is revoked: one refusal may be a mistake of a moment.
    fn is_revoked(self) -> bool {
        let Self::Refused { at, since, was_accepted } = self else { return false };
        at >= later(since, if was_accepted { REFUSED_AGAIN } else { YOUNG_KEY })
    }

    /// How long after a check to make the next one.
    fn again_after(self) -> Duration {
        if matches!(self, Self::Refused { was_accepted: false, .. }) { YOUNG_AGAIN } else { REFUSED_AGAIN }
    }
}

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyStep {
    /// Write the record again, and the finalizer, so that the resource stays until its keys are revoked or orphaned.
    Restore { record: Option<String> },
    /// Create the Secret, empty: whatever could fail after the creation of the key is tried before.
    PrepareSecret,
    /// Make this resource the owner of a Secret from a backup, if the Secret still has that version. `key` is what it holds.
    AdoptSecret { key: Option<String>, version: String },
    /// Write the intent, create the key, write the Secret, record the key. `because` is the text of an event, where nobody
    /// requested the new key. `try_first`: the platform has to accept the key before it is written over one that works.
    CreateKey { intent: KeyIntent, because: Option<String>, try_first: bool },
    /// Ask the platform whether it accepts the key in memory.
    TryUnsaved,
    /// Record the key in memory as lost, because the platform does not accept it, drop its secret, and end the attempt.
    GiveUpRefused { records: KeyRecords, message: String },
    /// Write the key in memory into its Secret, then record it.
    SaveSecret,
    /// Record a key in memory as lost, because another leader has given it up meanwhile, and drop its secret.
    GiveUpUnsaved { records: KeyRecords },
    /// Write the Secret's declared parts again and keep the key in it.
    RewriteSecret,
    /// Write these key records and remove the intent.
    Record { records: KeyRecords, event: Option<String> },
    /// Record the keys as they are known now, with an open creation.
    RecordIdentity { identity: Box<ProjectKeyIdentity> },
    /// Drop the keys that a person has revoked from the records, and record what that person said.
    Acknowledge { records: KeyRecords, event: String },
    /// Revoke a key, then write these key records. `in_use`: why that is done although it may be in use.
    Revoke { id: i64, name: String, records: KeyRecords, in_use: Option<String> },
    /// Read the organization's keys.
    ListKeys,
    /// Ask the platform whether it accepts the key.
    Probe,
    /// Remove the finalizer.
    RemoveFinalizer,
    /// Report by an event with this text that the project is gone, then remove the finalizer.
    ReleaseWithProject { event: String },
}

type Choice = Decision<KeyStep>;

/// What to do about a ProjectKey. That the platform offers no list of keys may have been the answer of a moment.
pub fn decide(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> Choice {
    let choice = choose(spec, observed, now);
    match observed.not_offered_until {
        Some(until) => choice.no_later(Wake::At(until)),
        None => choice,
    }
}

fn choose(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> Choice {
    let orphaned = spec.deletion == KeyDeletion::Orphan;
    let braked = brake::held(&observed.meta, &observed.limits).filter(|_| !orphaned);
    let identity = match &observed.identity {
        Ok(identity) => identity,
        Err(invalid) => return braked.unwrap_or_else(|| invalid_record(spec, observed, invalid)),
    };
    let case = Case { spec, observed, identity, secret: trusted(&observed.secret, identity), now };
    if let Some(braked) = braked {
        return braked;
    }
    let Meta { deleting, has_finalizer, paused: is_paused, .. } = observed.meta;
    if observed.is_wish && !is_paused && (has_finalizer || !deleting) {
        let report = Report::progressing(Reason::Updating, "The keys that the annotation names are being recorded.");
        return Decision::act(KeyStep::RecordIdentity { identity: Box::new(identity.clone()) }, report);
    }
    if deleting {
        return delete::decide(&case);
    }
    // A secret in memory comes first: the platform shows it only once.
    if let Some(key) = observed.unsaved.as_ref().filter(|_| !matches!(case.secret, KeySecretView::Foreign(_))) {
        if !identity.expects(&key.name) {
            return Decision::act(case.give_up_unsaved(key), saving());
        }
        if let Some(choice) = trial::before_switch(&case, key) {
            return choice;
        }
        if let Some(step) = case.adopt_step() {
            return case.act(Action::WriteSecret, step, saving());
        }
        return case.act(Action::WriteSecret, KeyStep::SaveSecret, saving());
    }
    if let Some(paused) = paused(&observed.meta) {
        return Decision::rest(paused);
    }
    if !observed.meta.has_finalizer && is_held(identity) {
        return case.restore();
    }
    if identity.intent.is_none()
        && let Some(choice) = manual_revocation::acknowledged(&case)
    {
        return choice;
    }
    match &observed.account {
        AccountView::Usable { organization: None } => Decision::rest(case.no_organization()),
        AccountView::Usable { organization: Some(_) } => {
            let first = case.wrong_account().or_else(|| unlisted::noted(&case));
            first.unwrap_or_else(|| keep::decide(&case))
        }
        account => account.obstacle().map_or_else(Decision::silent, |obstacle| Decision::rest(Report::of(obstacle))),
    }
}

/// Whether the finalizer keeps the resource, because there are keys, or may be.
pub fn is_held(identity: &ProjectKeyIdentity) -> bool {
    identity.names().next().is_some()
}

/// With an invalid record nothing is done, except for removing the finalizer where the keys stay valid anyway.
fn invalid_record(spec: &ProjectKeySpec, observed: &KeyObserved, invalid: &InvalidAnnotation) -> Choice {
    let meta = &observed.meta;
    let orphaned = spec.deletion == KeyDeletion::Orphan || invalid.is_copy();
    if meta.deleting && meta.has_finalizer && !meta.paused && orphaned {
        return Decision::act(
            KeyStep::RemoveFinalizer,
            Report::progressing(Reason::Deleting, "The keys, if there are any, stay valid."),
        );
    }
    Decision::rest(Report::stalled(Reason::BindingConflict, invalid.explain("projectkey", meta.object_key())))
}

fn saving() -> Report {
    Report::progressing(Reason::Creating, "The key is being written to its Secret.")
}

/// The input of one decision.
struct Case<'a> {
    spec: &'a ProjectKeySpec,
    observed: &'a KeyObserved,
    identity: &'a ProjectKeyIdentity,
    /// The Secret, if it is trusted.
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

    /// Whatever has keys is held by the finalizer: whoever replaces a resource by its manifest removes it, and the copy of the record.
    fn restore(&self) -> Choice {
        let meta = &self.observed.meta;
        let record = meta.record.clone().filter(|_| meta.record_lost);
        Decision::act(KeyStep::Restore { record }, keep::creating())
    }

    fn backoff(&self, action: Action) -> Option<memory::Backoff> {
        self.observed.memory.backoff(action, self.observed.meta.generation, self.now)
    }

    /// Why no key can be created now.
    fn key_creation_backoff(&self) -> Option<memory::Backoff> {
        [Action::WriteSecret, Action::CreateKey, Action::TryKey].into_iter().find_map(|action| self.backoff(action))
    }

    fn give_up_unsaved(&self, key: &KeyIdentity) -> KeyStep {
        let lost = LostKey {
            id: Some(key.id),
            name: key.name.clone(),
            since: key.at,
            because: LostBecause::Unanswered,
            unlisted: None,
        };
        KeyStep::GiveUpUnsaved { records: outcome::with_lost(&self.identity.records, lost) }
    }

    /// Whether this cluster issued the name of a key for this very resource: only then may the key be revoked here. Names of earlier
    /// versions do not show the namespace, so they count only where the operator recorded them itself.
    fn issued(&self, name: &str) -> bool {
        let is_own = |mark: Mark| match mark.is_of_earlier_version() {
            true => !self.is_restored(name),
            false => mark.is_for(self.observed.meta.object_key()),
        };
        self.observed.cluster.issued(name) && Mark::of(name).is_some_and(is_own)
    }

    /// Whether only an annotation, or a Secret, said that this is a key of the resource.
    fn is_restored(&self, name: &str) -> bool {
        self.identity.records.restored.contains(name)
    }

    /// Whether the platform is known to offer no call to revoke keys.
    fn cannot_revoke(&self) -> bool {
        matches!(self.observed.listing, KeyListing::NotOffered)
    }

    /// The step that adopts a Secret from a backup.
    fn adopt_step(&self) -> Option<KeyStep> {
        match &self.secret {
            KeySecretView::Restored { key, version, .. } => {
                Some(KeyStep::AdoptSecret { key: Some(key.name.clone()), version: version.clone() })
            }
            KeySecretView::Unowned { version } => Some(KeyStep::AdoptSecret { key: None, version: version.clone() }),
            _ => None,
        }
    }

    /// For a key of a restored resource: until when to wait for its Secret, which a backup may restore after its
    /// resource.
    fn may_be_restored(&self, key: &KeyIdentity) -> Option<Timestamp> {
        let until = later(self.observed.created, self.observed.limits.settle);
        (self.is_restored(&key.name) && self.now < until).then_some(until)
    }

    /// The key whose secret is available, in its Secret or in memory: with it the platform can be asked whether it accepts the
    /// key.
    fn key_with_secret(&self) -> Option<&KeyIdentity> {
        match (&self.secret, &self.observed.unsaved) {
            (_, Some(key)) | (KeySecretView::Ours(SecretContents::Key { key, .. }), None) => Some(key),
            _ => None,
        }
    }
}
