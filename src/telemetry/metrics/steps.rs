//! Metrics of steps on the platform, successful and failed.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::OfKind;

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    kind: String,
    action: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CreateLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfField {
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfChange {
    change: &'static str,
}

#[derive(Clone, Debug)]
pub struct Steps {
    failed: Family<FailureLabels, Counter>,
    creates: Family<CreateLabels, Counter>,
    deletes: Family<OfKind, Counter>,
    corrected: Family<OfField, Counter>,
    keys: Family<OfChange, Counter>,
}

impl Steps {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let steps = Self {
            failed: Family::default(),
            creates: Family::default(),
            deletes: Family::default(),
            corrected: Family::default(),
            keys: Family::default(),
        };
        let text = "Steps that could not be performed, by kind of the resource, what was tried, and why not: the platform's fault, as of \
                    requests, or what the API server did not accept";
        registry.register("failed_steps", text, steps.failed.clone());
        let text = "Creations on the platform, by kind of the resource and outcome: answered, refused, unresolved (without an answer: it may \
                    have been carried out), and recovered (what it had created was found later, without a second creation). Where only a \
                    person can tell, dbplane_resources has the reason AmbiguousCreate";
        registry.register("creates", text, steps.creates.clone());
        let text = "Deletions and revocations begun on the platform because a resource was deleted, by its kind";
        registry.register("platform_deletes", text, steps.deletes.clone());
        let text = "Corrections of declared fields that somebody else had changed on the platform, by field";
        registry.register("drift_corrected", text, steps.corrected.clone());
        let text = "API keys that were rotated (replaced while they could be used), revoked, or lost (left for a person to revoke)";
        registry.register("key_changes", text, steps.keys.clone());
        steps
    }

    /// Counts a failed step for a resource of `kind`. `action` and `reason` are from closed sets.
    pub fn failed(&self, kind: &str, action: &'static str, reason: &'static str) {
        self.failed
            .get_or_create(&FailureLabels {
                kind: kind.to_owned(),
                action,
                reason,
            })
            .inc();
    }

    pub fn created(&self, kind: &str, outcome: CreateOutcome) {
        self.creates
            .get_or_create(&CreateLabels {
                kind: kind.to_owned(),
                outcome: outcome.label(),
            })
            .inc();
    }

    /// Counts a deletion on the platform because a resource of `kind` was deleted.
    pub fn deletes(&self, kind: &str) {
        self.deletes
            .get_or_create(&OfKind {
                kind: kind.to_owned(),
            })
            .inc();
    }

    /// Counts the correction of a declared field that someone else had changed.
    pub fn corrected(&self, field: &str) {
        self.corrected
            .get_or_create(&OfField {
                field: field.to_owned(),
            })
            .inc();
    }

    pub fn key(&self, change: KeyChange) {
        self.keys
            .get_or_create(&OfChange {
                change: change.label(),
            })
            .inc();
    }
}
