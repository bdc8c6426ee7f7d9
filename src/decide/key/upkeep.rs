//! Maintenance of a key that is in its Secret and accepted: the other parts of the Secret, rotation, and earlier keys. What
//! cannot be done at present is reported on Synced, while Ready stays True, and does not delay the rest.

use jiff::Timestamp;

use super::super::identity::{KeyIdentity, KeyRecords, LostBecause, LostKey};
use super::super::memory::Backoff;
use super::super::{Action, Decision, Reason, Report, Sync, WATCHED, later};
use super::intent::{Retiring, intent};
use super::lost;
use super::manual_revocation::to_revoke_by_hand;
use super::outcome::{Named, Revocation, revocation, stray, with_lost, without};
use super::{Case, Choice, KeyListing, KeyStep, Probe};

pub(super) fn decide(case: &Case, current: &KeyIdentity, as_declared: bool) -> Choice {
    let mut upkeep = Upkeep { case, report: ready(case, current), wakes: Vec::new() };
    let step = upkeep
        .rewrite(as_declared)
        .or_else(|| upkeep.retire())
        .or_else(|| upkeep.forget_lost())
        .or_else(|| upkeep.rotate(current))
        .or_else(|| upkeep.ask(current));
    match (step, upkeep.wakes.iter().min()) {
        (Some(step), _) => Decision::act(step, upkeep.report),
        (None, Some(next)) => Decision::wait(upkeep.report, *next),
        (None, None) => Decision::rest(upkeep.report),
    }
}

struct Upkeep<'a> {
    case: &'a Case<'a>,
    report: Report,
    wakes: Vec<Timestamp>,
}

impl Upkeep<'_> {
    /// The step, unless its last try failed too recently; then that failure is reported.
    fn unless_backing_off(&mut self, backoff: Option<Backoff>, step: KeyStep) -> Option<KeyStep> {
        let Some(Backoff { health, until }) = backoff else { return Some(step) };
        self.wakes.push(until);
        let failed = Report::of(health);
        let (reason, message) = failed.headline();
        self.report_out_of_sync(reason, message.to_owned());
        None
    }

    fn report_out_of_sync(&mut self, reason: Reason, message: String) {
        self.report.sync = Sync::OutOfSync(reason, message);
    }

    fn rewrite(&mut self, as_declared: bool) -> Option<KeyStep> {
        if as_declared {
            return None;
        }
        self.unless_backing_off(self.case.backoff(Action::WriteSecret), KeyStep::RewriteSecret)
    }

    fn rotate(&mut self, current: &KeyIdentity) -> Option<KeyStep> {
        let rotation = self.case.spec.rotation.as_ref()?;
        let due = later(current.at, rotation.every.value()?);
        if self.case.now < due {
            self.wakes.push(due);
            return None;
        }
        if self.case.observed.secret_deleting || lost::too_many(self.case).is_some() {
            return None;
        }
        let retiring = Retiring::At(later(self.case.now, rotation.overlap.value()?));
        let step = KeyStep::CreateKey { intent: intent(self.case, Some(retiring)), because: None };
        self.unless_backing_off(self.case.key_creation_backoff(), step)
    }

    /// Revokes a replaced key at the end of its overlap; where dbplane cannot, reports the key and lists it as lost.
    fn retire(&mut self) -> Option<KeyStep> {
        let records = &self.case.identity.records;
        let Some(key) = records.previous.iter().find(|key| key.retire_at <= self.case.now) else {
            self.wakes.extend(records.previous.iter().map(|key| key.retire_at).min());
            return None;
        };
        let event = match revocation(self.case, (Some(key.id), &key.name)) {
            Revocation::NotOffered => format!(
                "Key {} ({}) was replaced, but this platform offers no call to revoke it. Revoke it in the console.",
                key.name, key.id
            ),
            Revocation::OfAnotherCluster => format!(
                "Key {} ({}) was replaced. Another cluster created it and may use it. It is not revoked here.",
                key.name, key.id
            ),
            other => return self.revoke(other),
        };
        let because = LostBecause::Retired;
        let lost = LostKey { id: Some(key.id), name: key.name.clone(), since: key.since, because };
        let records = with_lost(&without(records, &key.name), lost);
        Some(KeyStep::Record { records, event: Some(event) })
    }

    /// Revokes lost keys once the platform lists keys.
    fn forget_lost(&mut self) -> Option<KeyStep> {
        let records = &self.case.identity.records;
        let ours = |key: &Named| self.case.issued(key.1);
        let lost: Vec<Named> = records.lost.iter().map(|key| (key.id, key.name.as_str())).collect();
        // Keys of another cluster are never revoked, so no list is read for them alone.
        let read = matches!(self.case.observed.listing, KeyListing::Read { .. });
        lost.into_iter().filter(|key| read || ours(key)).find_map(|key| self.revoke(revocation(self.case, key)))
    }

    fn revoke(&mut self, revocation: Revocation) -> Option<KeyStep> {
        match revocation {
            Revocation::Step(Some(action), step) => self.unless_backing_off(self.case.backoff(action), *step),
            Revocation::Step(None, step) => Some(*step),
            Revocation::NotOurs(message) => {
                self.report_out_of_sync(Reason::BindingConflict, message);
                None
            }
            Revocation::OfAnotherCluster | Revocation::NotOffered => None,
        }
    }

    /// Checks from time to time whether the platform still accepts the key.
    fn ask(&mut self, current: &KeyIdentity) -> Option<KeyStep> {
        let last = match self.case.observed.probe {
            Probe::Accepted(at) | Probe::Refused { at, .. } | Probe::NotAsked(Some(at)) => at,
            // A key that was just created is accepted; the first check comes after one period.
            Probe::NotAsked(None) => current.at,
        };
        let due = later(last, self.case.observed.limits.key_check);
        if due <= self.case.now {
            return self.look_for_late_key().or(Some(KeyStep::Probe));
        }
        self.wakes.push(due);
        None
    }

    /// A creation that was never answered may be carried out late: its key is looked for with each check, for a while.
    fn look_for_late_key(&mut self) -> Option<KeyStep> {
        let records = &self.case.identity.records;
        let begun = records.unanswered?;
        if later(begun, WATCHED) <= self.case.now {
            let records = KeyRecords { unanswered: None, ..records.clone() };
            return Some(KeyStep::Record { records, event: None });
        }
        if let Some(key) = stray(self.case) {
            let records = records.clone();
            let step = KeyStep::Revoke { id: key.id, name: key.name.clone(), records };
            return self.unless_backing_off(self.case.backoff(Action::Revoke), step);
        }
        let unread = self.case.observed.listing == KeyListing::NotRead && self.case.backoff(Action::ListKeys).is_none();
        unread.then_some(KeyStep::ListKeys)
    }
}

fn ready(case: &Case, current: &KeyIdentity) -> Report {
    let report = Report::ready(format!("Secret {} contains key {}.", case.spec.secret.name, current.name));
    match to_revoke_by_hand(case, case.identity.records.lost.iter().map(|key| key.name.as_str())) {
        Some((reason, message)) => report.with_sync(Sync::OutOfSync(reason, message)),
        None => report,
    }
}
