//! Decisions about ProjectKeys: create a key, keep it in a Secret, replace it, revoke it.

mod belonging;
mod conflict;
mod delete;
mod in_use;
mod intent;
mod keep;
mod lost;
mod manual_revocation;
mod naming;
mod outcome;
mod pace;
mod rotation;
mod secret;
mod status;
mod step;
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
pub use self::naming::attempts;
pub use self::pace::list_interval;
pub use self::rotation::{MOST as MOST_REPLACED, due_regularly};
use self::secret::trusted;
pub use self::secret::{KeySecretView, SecretContents};
pub use self::status::status;
pub use self::step::KeyStep;
pub use self::template::template;
pub use self::trial::tried;
use super::advice::{self, Call};
use super::gates::{self, Gates};
use super::identity::{KeyIdentity, LostBecause, LostKey, ProjectKeyIdentity};
use super::names::Mark;
use super::seal::InvalidAnnotation;
use super::{Action, Decision, Observed, Reason, Report, Wake, YOUNG_KEY, later, memory};
use crate::api::{KeyDeletion, ProjectKeySpec};
use crate::domain::{KeyEntry, Listed, Shown};

/// The input of a decision about a ProjectKey, besides its spec and the time.
pub type KeyObserved = Observed<KeyFacts>;

#[derive(Clone, Debug)]
pub struct KeyFacts {
    pub created: Timestamp,
    pub identity: Result<ProjectKeyIdentity, InvalidAnnotation>,
    /// The identity is from a backup, or looks like it, and the status does not have it yet.
    pub is_wish: bool,
    /// The base URL of the account's platform, if the account can be used.
    pub platform: Option<String>,
    /// The account's checks show that the project no longer exists.
    pub project_gone: bool,
    pub secret: KeySecretView,
    /// The accounts whose credentials are in the Secret.
    pub accounts: Vec<KeyAccount>,
    /// A resource that names the same Secret and is older, or owns the Secret.
    pub rival: Option<String>,
    /// The Secret is being deleted; anything written into it is lost.
    pub secret_deleting: bool,
    /// The keys that a user has revoked, as named in the annotation.
    pub revoked: Option<String>,
    /// The annotation that requests another key.
    pub rotate: Option<String>,
    /// The organization's keys that concern the resource, from a list fresh enough to show absence.
    pub listing: KeyListing,
    /// The same list, even if keys cannot be revoked.
    pub listed: KeyListing,
    /// The last such list of any age. It is for messages, and for the time of the next read.
    pub known: KeyListing,
    /// Until when the platform is believed to offer no call to revoke keys.
    pub not_offered_until: Option<Timestamp>,
    /// The platform's last answer about the key in use: to the key itself, or in a list.
    pub probe: Probe,
    /// A created key that is not in its Secret yet.
    pub unsaved: Option<KeyIdentity>,
    /// The platform's last answer to that key.
    pub unsaved_probe: Probe,
}

/// The organization's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyListing {
    NotRead,
    /// The platform offers no such list, or not to this credential.
    NotOffered,
    Read {
        at: Timestamp,
        keys: Listed<KeyEntry>,
    },
}

impl KeyListing {
    /// `None` without a list, or if an unreadable entry may be the key.
    pub fn has(&self, key: &KeyIdentity) -> Option<bool> {
        let Self::Read { keys, .. } = self else {
            return None;
        };
        match keys.find(Some(&key.id.to_string()), |entry| {
            entry.id == key.id && entry.name == key.name
        }) {
            Shown::Entry(_) => Some(true),
            Shown::Absent => Some(false),
            Shown::Unclear(_) => None,
        }
    }
}

/// The platform's answer to the key in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Unknown. The time is that of the last check, which gave no answer.
    NotAsked(Option<Timestamp>),
    Accepted(Timestamp),
    /// The last refusal, and the first one since the key was last accepted.
    Refused {
        at: Timestamp,
        since: Timestamp,
        /// This process saw the platform accept the key before.
        was_accepted: bool,
    },
}

/// The interval between checks of a refused key. Two refusals this far apart are a revocation.
const REFUSED_AGAIN: Duration = Duration::from_secs(15);
/// The interval for a key that this process never saw accepted: the key may be new.
const YOUNG_AGAIN: Duration = Duration::from_secs(5);

impl Probe {
    /// Requests a check at once.
    pub const WANTED: Self = Self::NotAsked(Some(Timestamp::MIN));

    #[must_use]
    pub fn refused(self, at: Timestamp) -> Self {
        match self {
            Self::Refused {
                since,
                was_accepted,
                ..
            } => Self::Refused {
                at,
                since,
                was_accepted,
            },
            Self::NotAsked(_) => Self::Refused {
                at,
                since: at,
                was_accepted: false,
            },
            Self::Accepted(_) => Self::Refused {
                at,
                since: at,
                was_accepted: true,
            },
        }
    }

    /// Applies a list of the organization's keys that began at `at`. A list without the key is a
    /// reason to try the key itself. A list with the key does not disprove a refusal.
    #[must_use]
    pub fn listed(self, at: Timestamp, has_it: bool) -> Self {
        match self {
            Self::Refused { .. } => self,
            Self::Accepted(last) | Self::NotAsked(Some(last)) if last >= at => self,
            Self::Accepted(_) | Self::NotAsked(_) if has_it => Self::Accepted(at),
            Self::Accepted(_) | Self::NotAsked(_) => Self::WANTED,
        }
    }

    /// Returns true if the key is revoked. A single refusal may be a momentary error.
    fn is_revoked(self) -> bool {
        let Self::Refused {
            at,
            since,
            was_accepted,
        } = self
        else {
            return false;
        };
        at >= later(
            since,
            if was_accepted {
                REFUSED_AGAIN
            } else {
                YOUNG_KEY
            },
        )
    }

    /// The pause between a check and the next one.
    fn again_after(self) -> Duration {
        if matches!(
            self,
            Self::Refused {
                was_accepted: false,
                ..
            }
        ) {
            YOUNG_AGAIN
        } else {
            REFUSED_AGAIN
        }
    }
}

type KeyDecision = Decision<KeyStep>;

/// Decides about a ProjectKey. The answer that the platform offers no list of keys may be
/// temporary, so the decision expires with it.
pub fn decide(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> KeyDecision {
    let choice = choose(spec, observed, now);
    match observed.not_offered_until {
        Some(until) => choice.no_later(Wake::At(until)),
        None => choice,
    }
}

fn choose(spec: &ProjectKeySpec, observed: &KeyObserved, now: Timestamp) -> KeyDecision {
    let case = match &observed.identity {
        Ok(identity) => Ok(KeyCase {
            spec,
            observed,
            identity,
            secret: trusted(&observed.secret, identity),
            now,
        }),
        Err(invalid) => Err(invalid_record(spec, observed, invalid)),
    };
    gates::decide(observed, spec.deletion != KeyDeletion::Orphan, case)
}

impl Gates for KeyCase<'_> {
    type Step = KeyStep;

    /// Records the identity from an annotation first, before anything depends on it.
    fn before_deletion(&self) -> Option<KeyDecision> {
        self.record_identity()
    }

    fn deletion(&self) -> KeyDecision {
        delete::decide(self)
    }

    /// Saves a secret in memory first: the platform shows it only once.
    fn before_pause(&self) -> Option<KeyDecision> {
        let key = self.observed.unsaved.as_ref()?;
        match self.secret {
            KeySecretView::Foreign(_) => None,
            _ => Some(save(self, key)),
        }
    }

    /// Keys that a user has revoked leave the record even if the account cannot be used.
    fn before_account(&self) -> Option<KeyDecision> {
        if !self.observed.meta.has_finalizer && is_held(self.identity) {
            return Some(self.restore());
        }
        match self.identity.intent {
            Some(_) => None,
            None => manual_revocation::acknowledged(self),
        }
    }

    fn decision(&self) -> KeyDecision {
        if self.organization().is_none() {
            return Decision::rest(self.no_organization());
        }
        self.wrong_account()
            .or_else(|| unlisted::noted(self))
            .unwrap_or_else(|| keep::decide(self))
    }
}

/// Saves a created key that is only in memory.
fn save(case: &KeyCase, key: &KeyIdentity) -> KeyDecision {
    if !case.identity.expects(&key.name) {
        return Decision::act(case.give_up_unsaved(key), saving());
    }
    if let Some(choice) = trial::before_switch(case, key) {
        return choice;
    }
    let step = case.adopt_step().unwrap_or(KeyStep::SaveSecret);
    case.act(Action::WriteSecret, step, saving())
}

/// Returns true if keys exist or may exist, so that the finalizer has to keep the resource.
pub fn is_held(identity: &ProjectKeyIdentity) -> bool {
    identity.names().next().is_some()
}

/// An invalid record only allows removing the finalizer, if the keys stay valid anyway.
fn invalid_record(
    spec: &ProjectKeySpec,
    observed: &KeyObserved,
    invalid: &InvalidAnnotation,
) -> KeyDecision {
    let meta = &observed.meta;
    let orphaned = spec.deletion == KeyDeletion::Orphan || invalid.is_copy();
    if meta.deleting && meta.has_finalizer && !meta.paused && orphaned {
        return Decision::act(
            KeyStep::RemoveFinalizer,
            Report::progressing(Reason::Deleting, "The keys, if there are any, stay valid."),
        );
    }
    Decision::rest(Report::stalled(
        Reason::BindingConflict,
        invalid.explain("projectkey", meta.object_key()),
    ))
}

fn saving() -> Report {
    Report::progressing(Reason::Creating, "The key is being written to its Secret.")
}

/// The input of one decision.
struct KeyCase<'a> {
    spec: &'a ProjectKeySpec,
    observed: &'a KeyObserved,
    identity: &'a ProjectKeyIdentity,
    /// `Foreign` if it is not trusted.
    secret: KeySecretView,
    now: Timestamp,
}

impl KeyCase<'_> {
    /// Records the identity from an annotation first, before anything depends on it.
    fn record_identity(&self) -> Option<KeyDecision> {
        let meta = &self.observed.meta;
        let is_released = meta.deleting && !meta.has_finalizer;
        if !self.observed.is_wish || meta.paused || is_released {
            return None;
        }
        let step = KeyStep::RecordIdentity {
            identity: Box::new(self.identity.clone()),
        };
        let message = "The keys that the annotation names are being recorded.";
        Some(Decision::act(
            step,
            Report::progressing(Reason::Updating, message),
        ))
    }

    /// A step, unless its last attempt failed too recently.
    fn act(&self, action: Action, step: KeyStep, report: Report) -> KeyDecision {
        match self.backoff(action) {
            Some(memory::Backoff { health, until }) => Decision::wait(Report::of(health), until),
            None => Decision::act(step, report),
        }
    }

    /// Restores the finalizer and the copy of the record. Replacing a resource by its manifest
    /// removes both, but keys need the finalizer.
    fn restore(&self) -> KeyDecision {
        let record = self.observed.meta.lost_record();
        Decision::act(KeyStep::Restore { record }, keep::creating())
    }

    /// Why an action has to wait, with advice about the fields of the spec that it is for.
    fn backoff(&self, action: Action) -> Option<memory::Backoff> {
        let memory = &self.observed.memory;
        let backoff = memory.backoff(action, self.observed.meta.generation, self.now)?;
        let call = match (action, self.organization()) {
            (Action::CreateKey, Some(organization)) => Some(Call::CreateKey {
                project: &self.spec.project_id,
                organization,
            }),
            (Action::ListKeys, Some(organization)) => Some(Call::ListKeys { organization }),
            _ => None,
        };
        Some(advice::backoff(
            backoff,
            memory.fault(action),
            call.as_ref(),
        ))
    }

    /// Why no key can be created now.
    fn key_creation_backoff(&self) -> Option<memory::Backoff> {
        [Action::WriteSecret, Action::CreateKey, Action::TryKey]
            .into_iter()
            .find_map(|action| self.backoff(action))
    }

    fn give_up_unsaved(&self, key: &KeyIdentity) -> KeyStep {
        let lost = LostKey {
            id: Some(key.id),
            name: key.name.clone(),
            since: key.at,
            because: LostBecause::Unanswered,
            unlisted: None,
        };
        KeyStep::GiveUpUnsaved {
            records: outcome::with_lost(&self.identity.records, lost),
        }
    }

    /// Returns true if this cluster issued the name of a key for this very resource. Only then may
    /// the operator revoke it. Names of earlier versions lack the namespace, so they count only if
    /// the operator itself recorded them.
    fn issued(&self, name: &str) -> bool {
        if !self.observed.cluster.issued(name) {
            return false;
        }
        match Mark::of(name) {
            Some(mark) if mark.is_of_earlier_version() => !self.is_restored(name),
            Some(mark) => mark.is_for(self.observed.meta.object_key()),
            None => false,
        }
    }

    /// Returns true if only an annotation or a Secret claims that this is a key of the resource.
    fn is_restored(&self, name: &str) -> bool {
        self.identity.records.restored.contains(name)
    }

    /// Returns true if the platform is known to offer no call to revoke keys.
    fn cannot_revoke(&self) -> bool {
        matches!(self.observed.listing, KeyListing::NotOffered)
    }

    /// The step that adopts a Secret from a backup.
    fn adopt_step(&self) -> Option<KeyStep> {
        match &self.secret {
            KeySecretView::Restored { key, version, .. } => Some(KeyStep::AdoptSecret {
                key: Some(key.name.clone()),
                version: version.clone(),
            }),
            KeySecretView::Unowned { version } => Some(KeyStep::AdoptSecret {
                key: None,
                version: version.clone(),
            }),
            _ => None,
        }
    }

    /// Until when a restored resource waits for the Secret of a key: a backup may restore it later.
    fn may_be_restored(&self, key: &KeyIdentity) -> Option<Timestamp> {
        let until = later(self.observed.created, self.observed.limits.settle);
        (self.is_restored(&key.name) && self.now < until).then_some(until)
    }

    /// The key whose secret is in its Secret or in memory, so that the platform can be asked with
    /// it.
    fn key_with_secret(&self) -> Option<&KeyIdentity> {
        match (&self.secret, &self.observed.unsaved) {
            (_, Some(key)) | (KeySecretView::Ours(SecretContents::Key { key, .. }), None) => {
                Some(key)
            }
            _ => None,
        }
    }
}
