//! The brake on mass deletion: deletions beyond the allowed rate wait until a person confirms them.
//!
//! A resource that was paused once stays paused, whatever the rate is later and whichever process runs: its status holds
//! that.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::{Limits, Meta, Reason, Report, later, names};
use crate::api::Condition;

/// The state of the brake for one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Brake {
    /// The resource was not paused.
    #[default]
    Free,
    /// A person has confirmed the deletion.
    Confirmed,
    /// The deletion is paused, with this message.
    Paused(String),
}

impl Brake {
    /// As the annotation of a resource that is being deleted since then, and its conditions show it. The annotation confirms what was
    /// requested until the time in it: one that stays confirms no later deletion.
    pub fn of(annotation: Option<&str>, deleting_since: Option<Timestamp>, conditions: &[Condition]) -> Self {
        let until = annotation.and_then(|time| time.trim().parse::<Timestamp>().ok());
        let confirmed = until.zip(deleting_since).is_some_and(|(until, since)| since <= until);
        let paused = |condition: &&Condition| condition.reason == Reason::DeletionPaused.as_str();
        match conditions.iter().find(paused) {
            _ if confirmed => Self::Confirmed,
            Some(condition) => Self::Paused(condition.message.clone()),
            None => Self::Free,
        }
    }
}

/// The report of a resource whose deletion is paused. It is checked before everything else, since any other report would
/// replace the condition that records the pause.
pub(super) fn paused(meta: &Meta, limits: &Limits) -> Option<Report> {
    match &meta.brake {
        Brake::Paused(message) if meta.deleting && meta.has_finalizer && limits.deletes_per_minute > 0 => {
            Some(Report::stalled(Reason::DeletionPaused, message.clone()))
        }
        _ => None,
    }
}

/// Why a deletion has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// So many were made through the account within the last minute, which is the limit.
    Full(usize),
    /// Others of the namespace wait already.
    OthersWait,
}

impl Refusal {
    /// The message of the condition, with what a person can do.
    pub fn text(self, kind: &str, meta: &Meta) -> String {
        let Meta { namespace, name, .. } = meta;
        let why = match self {
            Self::Full(count) => {
                format!("{count} deletions through one account within a minute are the limit of --deletes-per-minute")
            }
            Self::OthersWait => format!("other deletions in namespace {namespace} wait to be confirmed"),
        };
        let kind = kind.to_lowercase();
        let confirm = names::CONFIRM_DELETION;
        format!(
            "Deletion is paused: {why}. To confirm it: kubectl annotate --overwrite {kind} {name} -n {namespace} {confirm}=$(date -u +%FT%TZ) \
             (--all instead of the name confirms all that was deleted until now). To delete the resource and keep what it has on the platform: kubectl patch {kind} {name} -n \
             {namespace} --type merge -p '{{\"spec\":{{\"deletion\":\"Orphan\"}}}}'."
        )
    }
}

const WINDOW: Duration = Duration::from_secs(60);

/// The deletions of the last minute, by the account and by what was deleted: one that has to be tried again counts once.
#[derive(Clone, Debug, Default)]
pub struct Window(VecDeque<Deletion>);

#[derive(Clone, Debug)]
struct Deletion {
    at: Timestamp,
    account: String,
    target: String,
}

impl Window {
    /// Admits and counts the deletion of `target` through an account, or returns why it has to wait. Each account has its own limit.
    pub fn admit(
        &mut self,
        (account, target): (&str, &str),
        limit: u32,
        others_wait: bool,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        // Concurrent passes may come here in another order than they began. An entry further in the future was counted before
        // the clock was put back.
        self.0.retain(|known| known.at < later(now, WINDOW) && now < later(known.at, WINDOW));
        let mut own = self.0.iter().filter(|known| known.account == account);
        let count = own.clone().count();
        if own.any(|known| known.target == target) {
            return Ok(());
        }
        if others_wait {
            return Err(Refusal::OthersWait);
        }
        if count >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Refusal::Full(count));
        }
        self.0.push_back(Deletion { at: now, account: account.to_owned(), target: target.to_owned() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn paused_with(text: &str) -> Vec<Condition> {
        Report::stalled(Reason::DeletionPaused, text).conditions(&[], 1, at(0))
    }

    #[test]
    fn a_minute_takes_as_many_as_are_allowed() {
        let mut window = Window::default();
        assert_eq!(window.admit(("shop/prod", "ep-1"), 2, false, at(0)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-2"), 2, false, at(30)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-3"), 2, false, at(59)), Err(Refusal::Full(2)));
        assert_eq!(window.admit(("shop/prod", "ep-3"), 2, false, at(60)), Ok(()), "the first is a minute ago");
        assert_eq!(window.admit(("shop/prod", "ep-4"), 2, false, at(89)), Err(Refusal::Full(2)), "it slides");
        assert_eq!(window.admit(("shop/prod", "ep-4"), 2, false, at(90)), Ok(()));
    }

    #[test]
    fn the_deletions_of_one_account_stop_no_other() {
        let mut window = Window::default();
        assert_eq!(window.admit(("shop/prod", "ep-1"), 1, false, at(0)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-2"), 1, false, at(1)), Err(Refusal::Full(1)));
        assert_eq!(window.admit(("bank/prod", "ep-3"), 1, false, at(2)), Ok(()));
        assert_eq!(window.admit(("bank/prod", "ep-4"), 1, false, at(3)), Err(Refusal::Full(1)));
    }

    #[test]
    fn what_is_tried_again_counts_once() {
        let mut window = Window::default();
        for second in 0..20 {
            assert_eq!(window.admit(("shop/prod", "ep-1"), 2, false, at(second)), Ok(()));
        }
        assert_eq!(window.admit(("shop/prod", "ep-2"), 2, false, at(20)), Ok(()));
        assert_eq!(
            window.admit(("shop/prod", "ep-1"), 2, true, at(21)),
            Ok(()),
            "it was admitted before the others had to wait"
        );
        assert_eq!(window.admit(("shop/prod", "ep-3"), 2, false, at(22)), Err(Refusal::Full(2)));
    }

    #[test]
    fn while_others_of_the_namespace_wait_so_does_the_next() {
        let mut window = Window::default();
        assert_eq!(window.admit(("shop/prod", "ep-1"), 2, true, at(0)), Err(Refusal::OthersWait));
        assert_eq!(window.admit(("shop/prod", "ep-1"), 2, false, at(1)), Ok(()));
    }

    #[test]
    fn a_pass_that_began_earlier_does_not_forget_one_that_was_admitted_before_it() {
        let mut window = Window::default();
        assert_eq!(window.admit(("shop/prod", "ep-1"), 1, false, at(10)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-2"), 1, false, at(9)), Err(Refusal::Full(1)));
    }

    #[test]
    fn a_clock_that_is_put_back_delays_nothing_for_long() {
        let mut window = Window::default();
        assert_eq!(window.admit(("shop/prod", "ep-1"), 1, false, at(7200)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-2"), 1, false, at(3600)), Ok(()));
        assert_eq!(window.admit(("shop/prod", "ep-3"), 1, false, at(3540)), Ok(()), "a whole minute");
        assert_eq!(window.admit(("shop/prod", "ep-4"), 1, false, at(3481)), Err(Refusal::Full(1)));
    }

    #[test]
    fn the_status_remembers_and_the_annotation_confirms() {
        let (wait, since) = (paused_with("wait"), Some(at(60)));
        assert_eq!(Brake::of(None, since, &wait), Brake::Paused("wait".into()));
        for confirmed in ["1970-01-01T00:01:00Z", " 1970-01-01T01:01:30+01:00 ", "1970-01-02T00:00:00Z"] {
            assert_eq!(Brake::of(Some(confirmed), since, &wait), Brake::Confirmed, "{confirmed}");
            assert_eq!(Brake::of(Some(confirmed), since, &[]), Brake::Confirmed, "{confirmed}");
        }
        // It stays from an earlier deletion, or is no time.
        for other in ["1970-01-01T00:00:59Z", "true", "", "2000-13-01T00:00:00Z"] {
            assert_eq!(Brake::of(Some(other), since, &wait), Brake::Paused("wait".into()), "{other}");
            assert_eq!(Brake::of(Some(other), since, &[]), Brake::Free, "{other}");
        }
        assert_eq!(Brake::of(Some("1970-01-02T00:00:00Z"), None, &[]), Brake::Free, "nothing is deleted");
        let other = Report::stalled(Reason::Refused, "no").conditions(&[], 1, at(0));
        assert_eq!(Brake::of(None, since, &other), Brake::Free);
    }

    #[test]
    fn only_a_paused_deletion_is_reported_as_paused() {
        let paused_meta =
            Meta { deleting: true, has_finalizer: true, brake: Brake::Paused("wait".into()), ..Meta::default() };
        let limits = Limits::default();
        assert_eq!(paused(&paused_meta, &limits), Some(Report::stalled(Reason::DeletionPaused, "wait")));
        assert_eq!(paused(&Meta { deleting: false, ..paused_meta.clone() }, &limits), None);
        assert_eq!(paused(&Meta { has_finalizer: false, ..paused_meta.clone() }, &limits), None);
        for brake in [Brake::Free, Brake::Confirmed] {
            assert_eq!(paused(&Meta { brake, ..paused_meta.clone() }, &limits), None);
        }
        assert_eq!(paused(&paused_meta, &Limits { deletes_per_minute: 0, ..limits }), None, "there is no brake");
    }

    #[test]
    fn the_message_names_the_cause_and_the_commands() {
        let meta = Meta { namespace: "shop".into(), name: "ci".into(), ..Meta::default() };
        let full = Refusal::Full(30).text("ProjectKey", &meta);
        for words in [
            "30 deletions",
            "--deletes-per-minute",
            "kubectl annotate --overwrite projectkey ci -n shop dbplane.dev/confirm-deletion=$(date -u +%FT%TZ)",
            r#"kubectl patch projectkey ci -n shop --type merge -p '{"spec":{"deletion":"Orphan"}}'"#,
        ] {
            assert!(full.contains(words), "{words:?} is not in {full:?}");
        }
        assert!(Refusal::OthersWait.text("Compute", &meta).contains("other deletions in namespace shop wait"));
    }
}
