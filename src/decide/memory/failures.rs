//! Failed actions: how long to back off, and the resulting health of the resource.

use std::time::Duration;

use jiff::Timestamp;

use crate::decide::{Health, Reason, doubled};
use crate::domain::Fault;
use crate::text::sentence;

/// Why an action failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionProblem {
    /// The platform's answer, or the missing answer.
    Platform(Fault),
    /// Why the API server rejected a Secret.
    Secret(String),
    /// Why the API server rejected another object.
    Object(String),
    /// The platform does not accept the key that it created.
    NewKey(String),
    /// The call could not be recorded, and was not sent.
    NotRecorded(String),
}

/// The last attempt of an action, if it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAction {
    pub problem: ActionProblem,
    pub at: Timestamp,
    /// Failed attempts in a row.
    pub count: u32,
    pub generation: i64,
}

const REFUSED_FIRST: Duration = Duration::from_secs(30);
pub(super) const REFUSED_MOST: Duration = Duration::from_secs(3600);
const FAILED_FIRST: Duration = Duration::from_secs(1);
const FAILED_MOST: Duration = Duration::from_secs(60);

impl FailedAction {
    pub(super) fn pause(&self) -> Duration {
        let tries = self.count.saturating_sub(1);
        match &self.problem {
            // A platform that renames keys does so each time, and each attempt leaves one more key.
            ActionProblem::Platform(fault)
                if fault.is_refusal() || matches!(fault, Fault::OtherKey { .. }) =>
            {
                doubled(REFUSED_FIRST, tries, REFUSED_MOST)
            }
            // The platform's `Retry-After` is used as it is, without doubling.
            ActionProblem::Platform(fault) => fault.retry_after().map_or_else(
                || doubled(FAILED_FIRST, tries, FAILED_MOST),
                |wait| wait.max(FAILED_FIRST),
            ),
            ActionProblem::Secret(_) | ActionProblem::Object(_) | ActionProblem::NotRecorded(_) => {
                doubled(FAILED_FIRST, tries, FAILED_MOST)
            }
            // Each attempt costs a key.
            ActionProblem::NewKey(_) => doubled(REFUSED_FIRST, tries, REFUSED_MOST),
        }
    }

    /// The resulting health of the resource.
    pub fn health(&self) -> Health {
        match &self.problem {
            ActionProblem::Platform(fault) => of_fault(fault),
            ActionProblem::Secret(message) => {
                Health::Stalled(Reason::SecretNotWritten, message.clone())
            }
            ActionProblem::Object(message) => Health::Stalled(Reason::Refused, message.clone()),
            ActionProblem::NewKey(message) => {
                Health::Stalled(Reason::NewKeyRefused, message.clone())
            }
            ActionProblem::NotRecorded(message) => {
                Health::Unknown(Reason::CallNotRecorded, message.clone())
            }
        }
    }
}

pub fn of_fault(fault: &Fault) -> Health {
    let message = sentence(&fault.to_string());
    match fault {
        Fault::Unauthorized { .. } | Fault::KeyInDoubt { .. } => {
            Health::Unknown(Reason::Unauthorized, message)
        }
        Fault::Forbidden { .. } => Health::Stalled(Reason::Forbidden, message),
        Fault::NotFound { .. }
        | Fault::Unsupported { .. }
        | Fault::Conflict { .. }
        | Fault::Rejected { .. }
        | Fault::OtherKey { .. } => Health::Stalled(Reason::Refused, message),
        Fault::TooLarge { .. } => Health::Stalled(Reason::AnswerTooLarge, message),
        Fault::Busy { .. } | Fault::Throttled { .. } => {
            Health::Progressing(Reason::PlatformBusy, message)
        }
        Fault::Gateway { .. }
        | Fault::Server { .. }
        | Fault::Transport { .. }
        | Fault::Unknown { .. }
        | Fault::Undecodable { .. } => Health::Unknown(Reason::PlatformUnreachable, message),
    }
}
