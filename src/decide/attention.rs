//! Derives from the conditions what a resource waits for: a user, a time, or work in progress.
//! Users look for that first in a fleet.

use super::Reason;
use crate::api::Condition;

/// The kind of action that a resource waits for, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// A user: nothing improves until somebody acts.
    User,
    /// Time: a window, a pause, or a retry of dbplane.
    Time,
    /// Only the work in progress.
    Work,
    Nothing,
}

/// The need of a resource, and the condition that shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need<'a> {
    pub what: Attention,
    /// The most telling condition; `None` if there are no conditions yet.
    pub condition: Option<&'a Condition>,
}

impl Attention {
    /// Derives the need of a resource from its conditions.
    pub fn of(conditions: &[Condition]) -> Need<'_> {
        let stalled = conditions
            .iter()
            .find(|condition| condition.type_ == "Stalled" && condition.status == "True");
        if stalled.is_some() {
            return Need {
                what: Self::User,
                condition: stalled,
            };
        }
        let said = conditions
            .iter()
            .filter(|condition| !is_well(condition))
            .map(|condition| (of(condition), condition));
        match said.min_by_key(|(needs, _)| *needs) {
            Some((what, condition)) => Need {
                what,
                condition: Some(condition),
            },
            None if conditions.is_empty() => Need {
                what: Self::Work,
                condition: None,
            },
            None => {
                let ready = conditions
                    .iter()
                    .find(|condition| condition.type_ == "Ready");
                Need {
                    what: Self::Nothing,
                    condition: ready,
                }
            }
        }
    }
}

/// Returns true for a healthy condition: Ready and Synced are true, all others are not.
fn is_well(condition: &Condition) -> bool {
    match condition.type_.as_str() {
        "Ready" | "Synced" => condition.status == "True",
        _ => condition.status != "True",
    }
}

fn of(condition: &Condition) -> Attention {
    // The reason is from another version of dbplane.
    let unknown = if condition.type_ == "Reconciling" {
        Attention::Work
    } else {
        Attention::User
    };
    Reason::of(&condition.reason).map_or(unknown, Reason::needs)
}

impl Reason {
    /// Parses the reason of a condition, if this version knows it.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == text)
    }

    /// The need of a resource with this reason that is not stalled. docs/conditions.md says what to
    /// do.
    pub fn needs(self) -> Attention {
        use Reason as R;
        match self {
            R::Available | R::InSync => Attention::Nothing,
            R::Pending
            | R::Creating
            | R::ConfirmingCreate
            | R::Starting
            | R::Updating
            | R::Restarting
            | R::Deleting => Attention::Work,
            R::PlatformBusy
            | R::DeletionSlowed
            | R::WaitingForDisruption
            | R::PlatformUnreachable
            | R::CallNotRecorded
            | R::NewKeyRefused
            | R::RotationWaiting => Attention::Time,
            // The condition of the account or of the replica shows its own need.
            R::AccountNotReady | R::ReplicaNotReady => Attention::Time,
            R::DeletionPaused | R::DeletionProtected | R::InvalidSchedule | R::Paused => {
                Attention::User
            }
            R::Drifted
            | R::SettingNotApplied
            | R::DriftPersists
            | R::Overwritten
            | R::StatusRefused
            | R::RequestRefused
            | R::Unreadable => Attention::User,
            R::AccountNotFound
            | R::NamespaceNotAllowed
            | R::ProjectNotAllowed
            | R::CredentialsMissing
            | R::Unauthorized
            | R::Forbidden
            | R::InvalidBaseUrl
            | R::PlatformNotAllowed
            | R::OrganizationMissing
            | R::InUse
            | R::ManyKeys
            | R::ListsTooLarge
            | R::UnreadableEntries => Attention::User,
            R::AnswerTooLarge
            | R::Refused
            | R::PrimaryExists
            | R::ClaimedByAnother
            | R::ComputeNotFound
            | R::AmbiguousCreate
            | R::StrayCompute
            | R::BindingConflict
            | R::StartTimeout
            | R::StateUnknown
            | R::RestartUnconfirmed
            | R::OperationFailed => Attention::User,
            R::SecretNotOurs
            | R::ConnectionIncomplete
            | R::SecretNotWritten
            | R::KeyRevoked
            | R::RevocationUnsupported
            | R::KeyOfAnotherCluster => Attention::User,
        }
    }
}

#[cfg(test)]
mod tests;
