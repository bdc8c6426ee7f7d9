//! The brake on mass deletion: deletions beyond the allowed rate wait for a user's confirmation or
//! for their turn.
//!
//! A paused resource stays paused at any later rate and in any process, because its status records
//! the pause.

mod window;

use std::time::Duration;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::json;

pub use self::window::{DeletionRequest, DeletionWindow, PER_ACCOUNT, Rules, SPACING};
use super::{Decision, Limits, Meta, Reason, Report, later, names};
use crate::api::Condition;

/// The state of the brake for one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Brake {
    /// The deletion is neither paused nor confirmed.
    #[default]
    Free,
    /// It was not paused, and the annotation confirms deletions requested until this time.
    ConfirmedUntil(Timestamp),
    /// It was paused, and a user has confirmed it since.
    Confirmed,
    /// It is paused, with this message.
    Paused(String),
    /// It waits for its turn in the account's queue, with this message, and asks again at this
    /// time.
    Slowed(String, Timestamp),
}

/// How far ahead a confirmation may be: clocks differ, and a set confirms its own deletions for a
/// minute.
const AHEAD: Duration = Duration::from_secs(120);

impl Brake {
    /// Reads the state from the annotation and the conditions of a resource in deletion. A
    /// confirmation covers deletions requested until its time, so one that stays confirms no later
    /// deletion. A time in the future counts as the present: it confirms a deletion that was paused
    /// before, and none that is requested later.
    pub fn of(
        annotation: Option<&str>,
        deleting_since: Option<Timestamp>,
        conditions: &[Condition],
    ) -> Self {
        let until = annotation.and_then(|time| time.trim().parse::<Timestamp>().ok());
        let until = until
            .zip(deleting_since)
            .and_then(|(until, since)| (since <= until).then_some(until));
        let paused = conditions
            .iter()
            .find(|condition| condition.reason == Reason::DeletionPaused.as_str());
        match (paused, until) {
            (Some(paused), Some(until)) if !paused.message.contains(&too_early(until)) => {
                Self::Confirmed
            }
            (Some(paused), _) => Self::Paused(paused.message.clone()),
            (None, Some(until)) => Self::ConfirmedUntil(until),
            (None, None) => Self::Free,
        }
    }

    /// Returns true if a user has confirmed the deletion.
    pub fn is_confirmed(&self, now: Timestamp) -> bool {
        match self {
            Self::Confirmed => true,
            Self::ConfirmedUntil(until) => *until <= later(now, AHEAD),
            Self::Free | Self::Paused(_) | Self::Slowed(..) => false,
        }
    }
}

/// The part of a pause message about an earlier confirmation in the future. It keeps that
/// confirmation void later too.
fn too_early(until: Timestamp) -> String {
    format!(
        "{} was set to {until} before, which is in the future and confirms nothing",
        names::CONFIRM_DELETION
    )
}

/// Holds a resource whose deletion waits. This has to come before all other decisions: another
/// report would replace the condition that records the pause.
pub(super) fn held<S>(meta: &Meta, limits: &Limits) -> Option<Decision<S>> {
    if !meta.deleting || !meta.has_finalizer || limits.deletes_per_minute == 0 {
        return None;
    }
    match &meta.brake {
        Brake::Paused(message) => Some(Decision::rest(Report::stalled(
            Reason::DeletionPaused,
            message.clone(),
        ))),
        Brake::Slowed(message, until) => Some(Decision::wait(
            Report::progressing(Reason::DeletionSlowed, message.clone()),
            *until,
        )),
        Brake::Free | Brake::Confirmed | Brake::ConfirmedUntil(_) => None,
    }
}

/// Why a deletion has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionRefusal {
    /// The number of deletions through the account in the namespace within a minute has reached
    /// this limit.
    Full(usize),
    /// The number of deletions through the account in all namespaces has reached this limit, and
    /// the account's policy is to pause.
    AccountFull(usize),
    /// Other deletions of the account and namespace are paused.
    OthersWait,
    /// The account has reached its limit. The deletion is made at about `turn`, and asks again at
    /// `ask`.
    Slowed { turn: Timestamp, ask: Timestamp },
}

impl DeletionRefusal {
    /// The resulting state of the brake, with a message that says what to do.
    pub fn brake(self, kind: &str, meta: &Meta) -> Brake {
        let Meta { namespace, .. } = meta;
        match self {
            Self::Full(count) => paused(
                &format!(
                    "{count} deletions through one account in one namespace within a minute are the limit of --deletes-per-minute"
                ),
                kind,
                meta,
            ),
            Self::AccountFull(count) => paused(
                &format!(
                    "{count} deletions through one account in all namespaces within a minute are the limit, {PER_ACCOUNT} times --deletes-per-minute, and its spec.massDeletionPolicy is Pause"
                ),
                kind,
                meta,
            ),
            Self::OthersWait => paused(
                &format!(
                    "other deletions in namespace {namespace} through the same account wait to be confirmed"
                ),
                kind,
                meta,
            ),
            Self::Slowed { turn, ask } => Brake::Slowed(slowed(turn), ask),
        }
    }
}

fn paused(why: &str, kind: &str, meta: &Meta) -> Brake {
    let Meta {
        namespace, name, ..
    } = meta;
    let kind = kind.to_lowercase();
    let confirm = names::CONFIRM_DELETION;
    let before = match &meta.brake {
        Brake::ConfirmedUntil(until) => format!(" ({})", too_early(*until)),
        Brake::Free | Brake::Confirmed | Brake::Paused(_) | Brake::Slowed(..) => String::new(),
    };
    Brake::Paused(format!(
        "Deletion is paused: {why}{before}. To confirm it: kubectl annotate --overwrite {kind} {name} -n {namespace} {confirm}=$(date -u +%FT%TZ) \
         (--all instead of the name confirms all that was deleted until now). To delete the resource and keep what it has on the platform: {}.",
        meta.correction(&kind, &json!({"deletion": "Orphan"}))
    ))
}

/// Rounded to whole minutes, so that the message stays the same while the deletion waits.
fn slowed(turn: Timestamp) -> String {
    let minute = TimestampRound::new()
        .smallest(Unit::Minute)
        .mode(RoundMode::Ceil);
    let turn = turn.round(minute).unwrap_or(turn);
    format!(
        "The deletion waits its turn, which comes before {turn}: more than {PER_ACCOUNT} times --deletes-per-minute were made through the account within a \
         minute, so further ones are made one every {} seconds, each namespace in turn.",
        SPACING.as_secs()
    )
}

#[cfg(test)]
mod tests;
