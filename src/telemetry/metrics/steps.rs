//! Metrics of steps on the platform, successful and failed.

use std::sync::Arc;

use super::counters::Counters;

/// The outcome of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    Answered,
    /// It was not carried out: the platform refused it, or there was no connection.
    Refused,
    /// It may have been carried out.
    Unresolved,
    /// Its result was found later.
    Recovered,
}

impl CreateOutcome {
    fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Unresolved => "unresolved",
            Self::Recovered => "recovered",
        }
    }
}

/// A change of a key's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// The Secret has a new key, instead of one that could still be used.
    Rotated,
    Revoked,
    /// A user has to revoke it.
    Lost,
}

impl KeyChange {
    fn label(self) -> &'static str {
        match self {
            Self::Rotated => "rotated",
            Self::Revoked => "revoked",
            Self::Lost => "lost",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Steps {
    failed: Arc<Counters>,
    creates: Arc<Counters>,
    deletes: Arc<Counters>,
    corrected: Arc<Counters>,
    keys: Arc<Counters>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            failed: Counters::new(
                "failed_steps",
                &["kind", "action", "reason"],
                "Steps that could not be performed, by namespace and kind of the resource, what was tried, and why not: the platform's \
                 fault, as of requests, or what the API server did not accept",
            ),
            creates: Counters::new(
                "creates",
                &["kind", "outcome"],
                "Creations on the platform, by namespace and kind of the resource and outcome: answered, refused, unresolved (without an \
                 answer: it may have been carried out), and recovered (what it had created was found later, without a second creation). \
                 Where only a user can decide which, dbplane_resources has the reason AmbiguousCreate",
            ),
            deletes: Counters::new(
                "platform_deletes",
                &["kind"],
                "Deletions and revocations begun on the platform because a resource was deleted, by its namespace and kind",
            ),
            corrected: Counters::new(
                "drift_corrected",
                &["field"],
                "Corrections of declared fields that somebody else had changed on the platform, by namespace of the resource and field",
            ),
            keys: Counters::new(
                "key_changes",
                &["change"],
                "API keys that were rotated (replaced while they could be used), revoked, or lost (left for a user to revoke), by namespace",
            ),
        }
    }
}

impl Steps {
    pub(super) fn counters(&self) -> [Arc<Counters>; 5] {
        [
            &self.failed,
            &self.creates,
            &self.deletes,
            &self.corrected,
            &self.keys,
        ]
        .map(Arc::clone)
    }

    /// Counts a failed step for a resource of `kind`. `action` and `reason` are from closed sets.
    pub fn failed(&self, namespace: &str, kind: &str, action: &'static str, reason: &'static str) {
        self.failed.add(namespace, &[kind, action, reason]);
    }

    pub fn created(&self, namespace: &str, kind: &str, outcome: CreateOutcome) {
        self.creates.add(namespace, &[kind, outcome.label()]);
    }

    /// Counts a deletion on the platform because a resource of `kind` was deleted.
    pub fn deletes(&self, namespace: &str, kind: &str) {
        self.deletes.add(namespace, &[kind]);
    }

    /// Counts the correction of a declared field that someone else had changed.
    pub fn corrected(&self, namespace: &str, field: &str) {
        self.corrected.add(namespace, &[field]);
    }

    pub fn key(&self, namespace: &str, change: KeyChange) {
        self.keys.add(namespace, &[change.label()]);
    }
}
