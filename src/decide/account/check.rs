//! The result of a check of an account's credentials, and when they count as refused.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::{YOUNG_KEY, later};
use crate::api::AccountCapabilities;
use crate::domain::{Fault, Unreadable};

/// How long the platform has to refuse previously accepted credentials until they count as refused.
const REFUSED_AFTER: Duration = Duration::from_secs(20);

/// The result of one check, with the history of earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
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
    pub absent: BTreeMap<String, Absence>,
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
}

impl Check {
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
            },
            Verdict::Failed(_) => Answers {
                accepted,
                refused_since,
                refusals,
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
    fn absent_after(&self, before: Option<&Self>) -> BTreeMap<String, Absence> {
        let known = before
            .map(|before| before.absent.clone())
            .unwrap_or_default();
        if self.listed().is_empty() {
            return known;
        }
        let since = |(project, absence): (&String, &Absence)| {
            let since = known
                .get(project)
                .map_or(absence.since, |known| known.since);
            (project.clone(), Absence { since, ..*absence })
        };
        self.absent.iter().map(since).collect()
    }

    pub fn listed(&self) -> &[String] {
        if let Verdict::Projects(listed) = &self.verdict {
            listed
        } else {
            &[]
        }
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

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The platform lists these projects.
    Projects(Vec<String>),
    /// The platform accepts the credential, but its projects are unknown, for the reason in the
    /// sentence.
    Restricted(String),
    Failed(Fault),
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::decide::account) fn check(second: i64, verdict: Verdict) -> Check {
        let (capabilities, answers) = (AccountCapabilities::default(), Answers::default());
        let (at, unreadable) = (
            Timestamp::from_second(second).unwrap(),
            Unreadable::default(),
        );
        Check {
            began: at,
            at,
            verdict,
            capabilities,
            keys: None,
            unreadable,
            answers,
            absent: BTreeMap::new(),
        }
    }

    fn accepted(second: i64) -> Check {
        check(second, Verdict::Projects(Vec::new()))
    }

    fn refused(second: i64) -> Check {
        check(
            second,
            Verdict::Failed(Fault::Unauthorized {
                message: String::new(),
            }),
        )
    }

    fn silent(second: i64) -> Check {
        check(
            second,
            Verdict::Failed(Fault::Server {
                status: 502,
                message: String::new(),
            }),
        )
    }

    fn lists(second: i64, listed: &[&str], absent: &[&str]) -> Check {
        let at = Timestamp::from_second(second).unwrap();
        let found = |project: &&str| {
            (
                (*project).to_owned(),
                Absence {
                    since: at,
                    again: at,
                },
            )
        };
        let listed = listed.iter().map(|project| (*project).to_owned()).collect();
        Check {
            absent: absent.iter().map(found).collect(),
            ..check(second, Verdict::Projects(listed))
        }
    }

    #[test]
    fn a_project_is_absent_since_the_first_of_the_checks_that_all_found_it_so() {
        let restricted = || check(50, Verdict::Restricted(String::new()));
        for (checks, expected) in [
            (vec![lists(0, &["kept"], &["p"])], Some((0, 0))),
            (
                vec![lists(0, &["kept"], &["p"]), lists(60, &["kept"], &["p"])],
                Some((0, 60)),
            ),
            // A check that could not look shows no absence.
            (vec![lists(0, &["kept"], &["p"]), silent(50)], Some((0, 0))),
            (
                vec![lists(0, &["kept"], &["p"]), restricted()],
                Some((0, 0)),
            ),
            (
                vec![lists(0, &["kept"], &["p"]), lists(50, &[], &[])],
                Some((0, 0)),
            ),
            (
                vec![
                    lists(0, &["kept"], &["p"]),
                    silent(50),
                    lists(60, &["kept"], &["p"]),
                ],
                Some((0, 60)),
            ),
            // The project was listed meanwhile, or its computes did not return 404.
            (
                vec![lists(0, &["kept"], &["p"]), lists(50, &["kept", "p"], &[])],
                None,
            ),
            (
                vec![
                    lists(0, &["kept"], &["p"]),
                    lists(50, &["kept"], &[]),
                    lists(60, &["kept"], &["p"]),
                ],
                Some((60, 60)),
            ),
        ] {
            let last = checks.iter().fold(None, |before: Option<Check>, check| {
                Some(check.clone().after(before.as_ref()))
            });
            let absence = last.unwrap().absent.get("p").copied();
            let seconds = absence.map(|it| (it.since.as_second(), it.again.as_second()));
            assert_eq!(seconds, expected, "{checks:?}");
        }
    }

    #[test]
    fn credentials_count_as_refused_after_refusals_alone_for_long_enough() {
        for (checks, expected) in [
            (vec![refused(0), refused(59)], false),
            (vec![refused(0), refused(60)], true),
            (vec![accepted(-9), refused(0), refused(19)], false),
            (vec![accepted(-9), refused(0), refused(20)], true),
            (vec![accepted(-9), refused(0), silent(25)], false),
            (
                vec![accepted(-9), refused(0), silent(25), refused(26)],
                true,
            ),
            (
                vec![accepted(-9), refused(0), accepted(10), refused(25)],
                false,
            ),
        ] {
            let last = checks.iter().fold(None, |before: Option<Check>, check| {
                Some(check.clone().after(before.as_ref()))
            });
            assert_eq!(last.unwrap().is_refused(), expected, "{checks:?}");
        }
    }
}
