//! The result of a check of an account's credentials, and when they count as refused.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::api::AccountCapabilities;
use crate::decide::memory::of_fault;
use crate::decide::{Health, Reason, YOUNG_KEY, later};
use crate::domain::{Fault, ProjectId, Unreadable};

/// How long the platform has to refuse previously accepted credentials until they count as refused.
const REFUSED_AFTER: Duration = Duration::from_secs(20);

/// How long a platform that never answered may be away until that is reported as a mistake.
const NEVER_REACHED_AFTER: Duration = Duration::from_secs(300);

/// The result of one check, with the history of earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountCheck {
    /// When it began.
    pub began: Timestamp,
    pub at: Timestamp,
    pub verdict: Verdict,
    pub capabilities: AccountCapabilities,
    /// The number of keys in the organization, if the platform lists them.
    pub keys: Option<usize>,
    /// The projects that cannot be read.
    pub unreadable: Unreadable,
    pub answers: Answers,
    /// Absent projects of resources in deletion: the list shows other projects but not this one,
    /// and reading its computes returns 404.
    pub absent: BTreeMap<ProjectId, Absence>,
}

/// The absence of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The end of the first check in the unbroken sequence that found it absent.
    pub since: Timestamp,
    /// The start of the newest check of that sequence.
    pub again: Timestamp,
}

/// The answers to earlier checks of the same credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The platform accepted the credentials before.
    pub accepted: bool,
    /// Since when it has refused them.
    pub refused_since: Option<Timestamp>,
    /// The number of refusals since then.
    pub refusals: usize,
    /// Since when no check has reached the platform.
    pub unreached_since: Option<Timestamp>,
}

impl AccountCheck {
    /// The time that marks a check as due again. Its result still counts until then.
    pub const WANTED: Timestamp = Timestamp::MIN;

    /// Adds the history of the check before. An answer that is neither acceptance nor refusal
    /// changes no history.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let absent = self.absent_after(before);
        let Answers {
            accepted,
            refused_since,
            refusals,
            unreached_since,
        } = before.map(|before| before.answers).unwrap_or_default();
        let answers = match &self.verdict {
            Verdict::Projects(_) | Verdict::Restricted(_) => Answers {
                accepted: true,
                ..Answers::default()
            },
            Verdict::Failed(Fault::Unauthorized { .. }) => Answers {
                accepted,
                refused_since: refused_since.or(Some(self.at)),
                refusals: refusals + 1,
                unreached_since: None,
            },
            Verdict::Failed(fault) => Answers {
                accepted,
                refused_since,
                refusals,
                unreached_since: is_unreached(fault).then(|| unreached_since.unwrap_or(self.at)),
            },
        };
        Self {
            answers,
            absent,
            ..self
        }
    }

    /// The absent projects, and since when. A check without a list, or with an empty one, shows no
    /// absence.
    fn absent_after(&self, before: Option<&Self>) -> BTreeMap<ProjectId, Absence> {
        let known = before
            .map(|before| before.absent.clone())
            .unwrap_or_default();
        if self.listed().is_empty() {
            return known;
        }
        let since = |(project, absence): (&ProjectId, &Absence)| {
            let since = known
                .get(project)
                .map_or(absence.since, |known| known.since);
            (project.clone(), Absence { since, ..*absence })
        };
        self.absent.iter().map(since).collect()
    }

    pub fn listed(&self) -> &[ProjectId] {
        if let Verdict::Projects(listed) = &self.verdict {
            listed
        } else {
            &[]
        }
    }

    /// Returns true if no check has reached the platform for some minutes.
    pub fn is_long_unreached(&self) -> bool {
        self.answers
            .unreached_since
            .is_some_and(|since| self.at >= later(since, NEVER_REACHED_AFTER))
    }

    /// Returns true if the credentials count as refused. A single refusal may be a momentary error.
    pub fn is_refused(&self) -> bool {
        let patience = if self.answers.accepted {
            REFUSED_AFTER
        } else {
            YOUNG_KEY
        };
        let is_refusal = matches!(self.verdict, Verdict::Failed(Fault::Unauthorized { .. }));
        is_refusal
            && self
                .answers
                .refused_since
                .is_some_and(|since| self.at >= later(since, patience))
    }
}

/// True if the answer is not the platform's, or none came.
fn is_unreached(fault: &Fault) -> bool {
    matches!(
        of_fault(fault),
        Health::Unknown(Reason::PlatformUnreachable, _)
    )
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The platform lists these projects.
    Projects(Vec<ProjectId>),
    /// The platform accepts the credential, but its projects are unknown, for the reason in the
    /// sentence.
    Restricted(String),
    Failed(Fault),
}

#[cfg(test)]
pub(super) mod tests;
