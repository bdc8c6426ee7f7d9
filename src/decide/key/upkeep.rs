//! Maintenance of an accepted key in its Secret: the other parts of the Secret, rotation, and
//! earlier keys. Obstacles are reported on Synced, while Ready stays True, and do not delay the
//! rest.

use jiff::Timestamp;

use super::in_use;
use super::intent::{Retiring, intent};
use super::lost;
use super::manual_revocation::to_revoke_by_hand;
use super::outcome::{
    NamedKey, Revocation, revocation, revoke_unrecorded, stray, twin, with_lost, without,
};
use super::rotation::{self, RevocationTurn, RotationDue, turn};
use super::{KeyCase, KeyDecision, KeyListing, KeyStep, Probe};
use crate::decide::identity::{KeyIdentity, KeyRecords, LostBecause, LostKey, RetiredKey};
use crate::decide::memory::Backoff;
use crate::decide::{Action, Decision, Reason, Report, Sync, WATCHED, later};
use crate::domain::KeyEntry;

pub(super) fn decide(case: &KeyCase, current: &KeyIdentity, as_declared: bool) -> KeyDecision {
    let mut upkeep = Upkeep {
        case,
        report: ready(case, current),
        wakes: Vec::new(),
    };
    let step = upkeep
        .rewrite(as_declared)
        .or_else(|| upkeep.revoke_twin())
        .or_else(|| upkeep.retire())
        .or_else(|| upkeep.forget_lost())
        .or_else(|| upkeep.look_for_late_key())
        .or_else(|| upkeep.rotate(current))
        .or_else(|| upkeep.ask(current));
    match (step, upkeep.wakes.iter().min()) {
        (Some(step), _) => Decision::act(step, upkeep.report),
        (None, Some(next)) => Decision::wait(upkeep.report, *next),
        (None, None) => Decision::rest(upkeep.report),
    }
}

struct Upkeep<'a> {
    case: &'a KeyCase<'a>,
    report: Report,
    wakes: Vec<Timestamp>,
}

impl Upkeep<'_> {
    /// The step, unless its last attempt failed too recently. That failure is reported then.
    fn unless_backing_off(
        &mut self,
        backoff: Option<Backoff>,
        step: impl FnOnce() -> KeyStep,
    ) -> Option<KeyStep> {
        let Some(Backoff { health, until }) = backoff else {
            return Some(step());
        };
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
        self.unless_backing_off(self.case.backoff(Action::WriteSecret), || {
            KeyStep::RewriteSecret
        })
    }

    fn rotate(&mut self, current: &KeyIdentity) -> Option<KeyStep> {
        let overlap_ends = match rotation::due(self.case, current) {
            RotationDue::Now(overlap_ends) => overlap_ends,
            RotationDue::At(time) => {
                self.wakes.push(time);
                return None;
            }
            RotationDue::Never => return None,
        };
        if self.case.observed.secret_deleting || lost::too_many(self.case).is_some() {
            return None;
        }
        if in_use::keeps_replaced(self.case) {
            return None;
        }
        if let Some((reason, message)) = rotation::postponed(self.case) {
            self.report_out_of_sync(reason, message);
            return None;
        }
        let intent = intent(self.case, Some(Retiring::Rotated(overlap_ends)));
        let step = KeyStep::CreateKey {
            intent,
            because: None,
            try_first: true,
        };
        self.unless_backing_off(self.case.key_creation_backoff(), || step)
    }

    /// Revokes replaced keys in their turn. A key that dbplane cannot revoke is reported and listed
    /// as lost.
    fn retire(&mut self) -> Option<KeyStep> {
        let case = self.case;
        let turns = case
            .identity
            .records
            .previous
            .iter()
            .map(|key| (key, turn(case, key)));
        let behind = in_use::behind(case);
        let mut looks = false;
        for (key, turn) in turns {
            let step = match (turn, &behind) {
                (RevocationTurn::Now(_), Some(accounts)) => {
                    self.keep(key, accounts);
                    None
                }
                (RevocationTurn::Now(in_use), None) => self.retire_now(key, in_use),
                (RevocationTurn::At(time), _) => {
                    self.wakes.push(time);
                    None
                }
                (RevocationTurn::Look, _) => {
                    looks = true;
                    None
                }
                (RevocationTurn::Watch(watched), _) => Some(self.watch(watched)),
            };
            if step.is_some() {
                return step;
            }
        }
        looks
            .then(|| self.unless_backing_off(case.backoff(Action::ListKeys), || KeyStep::ListKeys))
            .flatten()
    }

    /// Records the observed use of a replaced key.
    fn watch(&self, watched: RetiredKey) -> KeyStep {
        let mut records = self.case.identity.records.clone();
        records
            .previous
            .iter_mut()
            .filter(|key| key.name == watched.name)
            .for_each(|key| *key = watched.clone());
        KeyStep::Record {
            records,
            event: None,
        }
    }

    fn retire_now(&mut self, key: &RetiredKey, in_use: Option<String>) -> Option<KeyStep> {
        let event = match revocation(self.case, NamedKey::of(key.id, &key.name)) {
            Revocation::NotOffered => format!(
                "Key {} ({}) was replaced, but this platform offers no call to revoke it. Revoke it in the console.",
                key.name, key.id
            ),
            Revocation::OfAnotherCluster => format!(
                "Key {} ({}) was replaced. Another cluster or resource created it and may use it. It is not revoked here.",
                key.name, key.id
            ),
            other => {
                let step = self.revoke(other)?;
                return Some(match step {
                    KeyStep::Revoke {
                        id, name, records, ..
                    } => KeyStep::Revoke {
                        id,
                        name,
                        records,
                        in_use,
                    },
                    step => step,
                });
            }
        };
        let because = LostBecause::Retired;
        let lost = LostKey {
            id: Some(key.id),
            name: key.name.clone(),
            since: key.since,
            because,
            unlisted: None,
        };
        let records = with_lost(&without(&self.case.identity.records, &key.name), lost);
        Some(KeyStep::Record {
            records,
            event: Some(event),
        })
    }

    /// Reports that a replaced key is kept because these accounts may still use it.
    fn keep(&mut self, key: &RetiredKey, accounts: &str) {
        self.report.health = self
            .report
            .health
            .clone()
            .saying_also(&in_use::kept(&key.name, accounts));
        self.wakes.push(later(self.case.now, in_use::LOOK_AGAIN));
    }

    /// Revokes the second key of a repeated creation. Its secret was never stored.
    fn revoke_twin(&mut self) -> Option<KeyStep> {
        let key = twin(self.case)?;
        self.revoke_unrecorded(key)
    }

    fn revoke_unrecorded(&mut self, key: &KeyEntry) -> Option<KeyStep> {
        let case = self.case;
        self.unless_backing_off(case.backoff(Action::Revoke), || {
            revoke_unrecorded(case, key)
        })
    }

    /// Revokes lost keys once the platform lists keys.
    fn forget_lost(&mut self) -> Option<KeyStep> {
        let records = &self.case.identity.records;
        // Keys of another cluster are never revoked, so a list is not read only for them.
        let read = matches!(self.case.observed.listing, KeyListing::Read { .. });
        records
            .lost
            .iter()
            .filter(|key| read || self.case.issued(&key.name))
            .find_map(|key| self.revoke(revocation(self.case, NamedKey::lost(key))))
    }

    fn revoke(&mut self, revocation: Revocation) -> Option<KeyStep> {
        match revocation {
            Revocation::Step(Some(action), step) => {
                self.unless_backing_off(self.case.backoff(action), step)
            }
            Revocation::Step(None, step) => Some(step()),
            Revocation::NotOurs(message) => {
                self.report_out_of_sync(Reason::BindingConflict, message);
                None
            }
            Revocation::Unclear(report) => {
                let (reason, message) = report.headline();
                self.report_out_of_sync(reason, message.to_owned());
                None
            }
            Revocation::OfAnotherCluster | Revocation::NotOffered => None,
        }
    }

    /// Checks periodically whether the platform still has the key. A list is preferred, because a
    /// request with the key would make it seem in use. The key itself is tried if the list does not
    /// show it, or if no list is offered.
    fn ask(&mut self, current: &KeyIdentity) -> Option<KeyStep> {
        let last = match self.case.observed.probe {
            Probe::Accepted(at) | Probe::Refused { at, .. } | Probe::NotAsked(Some(at)) => at,
            // A key that was just created is accepted; the first check comes after one period.
            Probe::NotAsked(None) => current.at,
        };
        let due = later(last, self.case.observed.limits.key_check);
        if due > self.case.now {
            self.wakes.push(due);
            return None;
        }
        let listing = &self.case.observed.listing;
        let shows_it = listing.has(current) == Some(true);
        if matches!(listing, KeyListing::NotOffered | KeyListing::Read { .. }) && !shows_it {
            return Some(KeyStep::Probe);
        }
        let backoff = self.case.backoff(Action::ListKeys);
        self.wakes
            .extend(backoff.iter().map(|backoff| backoff.until));
        backoff.is_none().then_some(KeyStep::ListKeys)
    }

    /// An unanswered creation may be carried out late. For `WATCHED`, each list is searched for its
    /// key.
    fn look_for_late_key(&mut self) -> Option<KeyStep> {
        let records = &self.case.identity.records;
        let begun = records.unanswered?;
        if later(begun, WATCHED) <= self.case.now {
            let records = KeyRecords {
                unanswered: None,
                ..records.clone()
            };
            return Some(KeyStep::Record {
                records,
                event: None,
            });
        }
        let key = stray(self.case)?;
        self.revoke_unrecorded(key)
    }
}

pub(super) fn ready(case: &KeyCase, current: &KeyIdentity) -> Report {
    let mut message = format!(
        "Secret {} contains key {}.",
        case.spec.secret.name, current.name
    );
    if let Some(outlook) = rotation::outlook(case) {
        message = format!("{message} {outlook}");
    }
    let report = Report::ready(message);
    match to_revoke_by_hand(
        case,
        case.identity
            .records
            .lost
            .iter()
            .map(|key| key.name.as_str()),
    ) {
        Some((reason, message)) => report.with_sync(Sync::OutOfSync(reason, message)),
        None => report,
    }
}
