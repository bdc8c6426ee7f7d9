//! Conditions: merges the proposed ones with the existing ones.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Reason;
use crate::api::Condition;
use crate::text::line;

/// In bytes. The definitions of the resources admit eight times as many characters.
const LONGEST_MESSAGE: usize = 4096;

/// The usability of the platform's object: the Ready condition, and Reconciling or Stalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can be used.
    Ready(Reason, String),
    /// It cannot be used yet; work is in progress.
    Progressing(Reason, String),
    /// It cannot be used, and needs attention.
    Stalled(Reason, String),
    /// Unknown at present; dbplane retries.
    Unknown(Reason, String),
    /// A user has paused the resource. The Ready condition keeps its last value.
    Paused(String),
}

impl Health {
    /// Appends a sentence to the message.
    pub fn saying_also(self, sentence: &str) -> Self {
        // A longer message is cut anyway.
        self.with_message(|message| match message.len() {
            0..LONGEST_MESSAGE => format!("{message} {sentence}"),
            _ => message,
        })
    }

    /// Puts a sentence before the message.
    pub fn saying_first(self, sentence: &str) -> Self {
        self.with_message(|message| format!("{sentence} {message}"))
    }

    fn with_message(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Ready(reason, message) => Self::Ready(reason, change(message)),
            Self::Progressing(reason, message) => Self::Progressing(reason, change(message)),
            Self::Stalled(reason, message) => Self::Stalled(reason, change(message)),
            Self::Unknown(reason, message) => Self::Unknown(reason, change(message)),
            Self::Paused(message) => Self::Paused(change(message)),
        }
    }
}

/// The Synced condition: the declared fields are in force or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    InSync,
    OutOfSync(Reason, String),
    /// They are not in force, and the resource needs attention.
    Refused(Reason, String),
    /// Unknown at present.
    Unknown(Reason, String),
    NotApplicable,
}

/// The input of the conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub health: Health,
    pub sync: Sync,
    /// Changes that wait for a time that the spec allows.
    pub waiting: Option<PostponedChanges>,
    /// Notices although nothing is wrong yet. Each is a condition of that name, present only while
    /// it is true.
    pub notices: Vec<(Reason, String)>,
    /// The resource that holds what this one claims. For the log only: users of another namespace
    /// must not learn its name.
    pub holder: Option<String>,
}

/// Waiting changes, and the latest time at which they are made, if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostponedChanges {
    pub changes: String,
    pub until: Option<Timestamp>,
}

impl Report {
    /// A report whose Synced condition follows from its health.
    pub fn of(health: Health) -> Self {
        let sync = match &health {
            Health::Ready(..) => Sync::InSync,
            Health::Progressing(reason, message) | Health::Stalled(reason, message) => {
                Sync::OutOfSync(*reason, message.clone())
            }
            Health::Unknown(reason, message) => Sync::Unknown(*reason, message.clone()),
            Health::Paused(message) => Sync::Unknown(Reason::Paused, message.clone()),
        };
        Self {
            health,
            sync,
            waiting: None,
            notices: Vec::new(),
            holder: None,
        }
    }

    pub fn ready(message: impl Into<String>) -> Self {
        Self::of(Health::Ready(Reason::Available, message.into()))
    }

    pub fn progressing(reason: Reason, message: impl Into<String>) -> Self {
        Self::of(Health::Progressing(reason, message.into()))
    }

    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self::of(Health::Stalled(reason, message.into()))
    }

    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self::of(Health::Unknown(reason, message.into()))
    }

    /// Adds a problem. A usable object stays Ready, and an unknown state stays unknown.
    pub fn beside(self, other: Health) -> Self {
        match (&self.health, other) {
            (Health::Ready(..) | Health::Unknown(..), Health::Stalled(reason, message)) => {
                self.with_sync(Sync::Refused(reason, message))
            }
            (_, other) => Self::of(other),
        }
    }

    /// The generation that the status is about. A paused resource keeps the old one: its spec is
    /// not read.
    pub fn observed_generation(&self, old: Option<i64>, current: i64) -> Option<i64> {
        match self.health {
            Health::Paused(_) => old,
            _ => Some(current),
        }
    }

    /// Sets the resource that holds what this one claims.
    pub fn held_by(self, holder: &impl fmt::Display) -> Self {
        Self {
            holder: Some(holder.to_string()),
            ..self
        }
    }

    /// Something is still to be done, so the declared fields do not count as in force. A status
    /// with such a report is written together with the record of the step before.
    pub(super) fn before_a_step(self) -> Self {
        match self.sync {
            Sync::InSync => {
                let message = "The declared fields are being put into force.".to_owned();
                self.with_sync(Sync::OutOfSync(Reason::Updating, message))
            }
            _ => self,
        }
    }

    /// Replaces the Synced condition.
    pub fn with_sync(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// The most telling reason and message: of the Ready condition, or of the pause.
    pub fn headline(&self) -> (Reason, &str) {
        match &self.health {
            Health::Paused(message) => (Reason::Paused, message),
            Health::Ready(reason, message)
            | Health::Progressing(reason, message)
            | Health::Stalled(reason, message)
            | Health::Unknown(reason, message) => (*reason, message),
        }
    }

    /// The reason for an intended wait: for a declared time or for a user's confirmation. Nothing
    /// is wrong then.
    pub fn waits_for(&self) -> Option<Reason> {
        let of_sync = match &self.sync {
            Sync::OutOfSync(reason, _) | Sync::Refused(reason, _) => Some(*reason),
            Sync::InSync | Sync::Unknown(..) | Sync::NotApplicable => None,
        };
        let waiting = [
            Reason::DeletionPaused,
            Reason::DeletionSlowed,
            Reason::DeletionProtected,
            Reason::WaitingForDisruption,
        ];
        [Some(self.headline().0), of_sync]
            .into_iter()
            .flatten()
            .find(|reason| waiting.contains(reason))
    }

    /// Adds this notice to the existing conditions.
    pub fn noticed(
        old: &[Condition],
        reason: Reason,
        message: &str,
        generation: i64,
        now: Timestamp,
    ) -> Vec<Condition> {
        let others = old
            .iter()
            .filter(|condition| condition.type_ != reason.as_str())
            .cloned();
        let notice = ProposedCondition {
            type_: reason.as_str(),
            status: "True",
            reason,
            message,
        };
        others
            .chain([notice.condition(old, generation, now)])
            .collect()
    }

    /// Adds an obstacle that needs attention to the existing conditions. A usable object stays
    /// Ready, and an earlier Stalled condition stays.
    pub fn hindered(
        old: &[Condition],
        reason: Reason,
        message: &str,
        generation: i64,
        now: Timestamp,
    ) -> Vec<Condition> {
        let known = |kind: &str| {
            old.iter()
                .find(|condition| condition.type_ == kind && condition.status == "True")
        };
        if known("Stalled").is_some_and(|stalled| stalled.reason != reason.as_str()) {
            return Self::noticed(old, reason, message, generation, now);
        }
        let stalled = Health::Stalled(reason, message.to_owned());
        let ready = known("Ready").map(|ready| {
            Health::Ready(
                Reason::of(&ready.reason).unwrap_or(Reason::Available),
                ready.message.clone(),
            )
        });
        let report = match ready {
            Some(ready) => Self::of(ready).beside(stalled),
            None => Self::of(stalled),
        };
        report.conditions(old, generation, now)
    }

    /// The conditions of this report. A transition time changes only when the condition's status
    /// does. `old` are the existing conditions.
    pub fn conditions(&self, old: &[Condition], generation: i64, now: Timestamp) -> Vec<Condition> {
        let paused = matches!(self.health, Health::Paused(_));
        let mut conditions = Vec::new();
        for proposed in self.proposed() {
            let known = old.iter().find(|condition| condition.type_ == "Ready");
            match known {
                Some(known) if paused && proposed.type_ == "Ready" => {
                    conditions.push(known.clone());
                }
                _ => conditions.push(proposed.condition(old, generation, now)),
            }
        }
        conditions
    }

    fn proposed(&self) -> Vec<ProposedCondition<'_>> {
        let (reason, message) = self.headline();
        let (ready, present) = match self.health {
            Health::Ready(..) => ("True", None),
            Health::Progressing(..) => ("False", Some("Reconciling")),
            Health::Stalled(..) => ("False", Some("Stalled")),
            Health::Unknown(..) => ("Unknown", None),
            Health::Paused(_) => ("Unknown", Some("Paused")),
        };
        let mut proposed = Vec::new();
        let mut add = |type_, status, reason, message| {
            proposed.push(ProposedCondition {
                type_,
                status,
                reason,
                message,
            });
        };
        add("Ready", ready, reason, message);
        if let Some(type_) = present {
            add(type_, "True", reason, message);
        }
        match &self.sync {
            Sync::InSync => {
                let message = "The declared fields are in force.";
                add("Synced", "True", Reason::InSync, message);
            }
            Sync::OutOfSync(reason, message) => add("Synced", "False", *reason, message),
            Sync::Refused(reason, message) => {
                add("Stalled", "True", *reason, message);
                add("Synced", "False", *reason, message);
            }
            Sync::Unknown(reason, message) => add("Synced", "Unknown", *reason, message),
            Sync::NotApplicable => {}
        }
        for (reason, message) in &self.notices {
            add(reason.as_str(), "True", *reason, message);
        }
        proposed
    }
}

struct ProposedCondition<'a> {
    type_: &'static str,
    status: &'static str,
    reason: Reason,
    message: &'a str,
}

impl ProposedCondition<'_> {
    fn condition(&self, old: &[Condition], generation: i64, now: Timestamp) -> Condition {
        let unchanged = old
            .iter()
            .find(|condition| condition.type_ == self.type_ && condition.status == self.status);
        let last_transition_time = match unchanged {
            Some(condition) => condition.last_transition_time.clone(),
            None => Time(to_seconds(now)),
        };
        Condition {
            last_transition_time,
            message: line(self.message, LONGEST_MESSAGE).into_owned(),
            observed_generation: Some(generation),
            reason: self.reason.to_string(),
            status: self.status.to_owned(),
            type_: self.type_.to_owned(),
        }
    }
}

/// The API server keeps whole seconds. Fractions would differ from the stored status each time.
fn to_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
