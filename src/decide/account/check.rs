//! What a check of an account's credentials found, and when they count as refused.

use std::time::Duration;

use jiff::Timestamp;

use super::super::{YOUNG_KEY, later};
use crate::api::AccountCapabilities;
use crate::domain::{Fault, Unreadable};

/// How long credentials that were accepted before have to be refused until they count as refused.
const REFUSED_AFTER: Duration = Duration::from_secs(20);

/// What a check of the credentials found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub at: Timestamp,
    pub verdict: Verdict,
    pub capabilities: AccountCapabilities,
    /// How many keys the organization has, where the platform lists them.
    pub keys: Option<usize>,
    /// The projects that cannot be read.
    pub unreadable: Unreadable,
    pub answers: Answers,
}

/// What earlier checks of the same credentials were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The platform accepted the credentials before.
    pub accepted: bool,
    /// Since when it has refused them.
    pub refused_since: Option<Timestamp>,
    /// How often it has done so since then.
    pub refusals: usize,
}

impl Check {
    /// The time of a check that is to be made anew: it still counts until then.
    pub const WANTED: Timestamp = Timestamp::MIN;

    /// The same check, after those before it. An answer that is neither acceptance nor refusal changes nothing.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let Answers { accepted, refused_since, refusals } = before.map(|before| before.answers).unwrap_or_default();
        let answers = match &self.verdict {
            Verdict::Projects(_) | Verdict::Restricted(_) => Answers { accepted: true, ..Answers::default() },
            Verdict::Failed(Fault::Unauthorized { .. }) => {
                Answers { accepted, refused_since: refused_since.or(Some(self.at)), refusals: refusals + 1 }
            }
            Verdict::Failed(_) => Answers { accepted, refused_since, refusals },
        };
        Self { answers, ..self }
    }

    /// Whether the credentials count as refused: one refusal may be a mistake of a moment.
    pub fn is_refused(&self) -> bool {
        let patience = if self.answers.accepted { REFUSED_AFTER } else { YOUNG_KEY };
        let is_refusal = matches!(self.verdict, Verdict::Failed(Fault::Unauthorized { .. }));
        is_refusal && self.answers.refused_since.is_some_and(|since| self.at >= later(since, patience))
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The platform lists these projects.
    Projects(Vec<String>),
    /// The platform accepts the credential, and which projects it reaches is not known, with a sentence that says why.
    Restricted(String),
    Failed(Fault),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(second: i64, verdict: Verdict) -> Check {
        let (capabilities, answers) = (AccountCapabilities::default(), Answers::default());
        let (at, unreadable) = (Timestamp::from_second(second).unwrap(), Unreadable::default());
        Check { at, verdict, capabilities, keys: None, unreadable, answers }
    }

    fn accepted(second: i64) -> Check {
        check(second, Verdict::Projects(Vec::new()))
    }

    fn refused(second: i64) -> Check {
        check(second, Verdict::Failed(Fault::Unauthorized { message: String::new() }))
    }

    fn silent(second: i64) -> Check {
        check(second, Verdict::Failed(Fault::Server { status: 502, message: String::new() }))
    }

    #[test]
    fn credentials_count_as_refused_after_refusals_alone_for_long_enough() {
        for (checks, expected) in [
            (vec![refused(0), refused(59)], false),
            (vec![refused(0), refused(60)], true),
            (vec![accepted(-9), refused(0), refused(19)], false),
            (vec![accepted(-9), refused(0), refused(20)], true),
            (vec![accepted(-9), refused(0), silent(25)], false),
            (vec![accepted(-9), refused(0), silent(25), refused(26)], true),
            (vec![accepted(-9), refused(0), accepted(10), refused(25)], false),
        ] {
            let last =
                checks.iter().fold(None, |before: Option<Check>, check| Some(check.clone().after(before.as_ref())));
            assert_eq!(last.unwrap().is_refused(), expected, "{checks:?}");
        }
    }
}
