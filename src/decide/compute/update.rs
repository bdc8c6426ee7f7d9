//! Changes of a compute: which may be made now, and which have to wait.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::disruption::{Permit, permit};
use super::super::drift::{self, Difference};
use super::super::{Action, Decision, Health, Reason, Report, Sync};
use super::{Case, Choice, ComputeStep};
use crate::domain::{Compute, ComputeState};

/// Makes the changes that are allowed now; if there are none, reports those that have to wait.
pub(super) fn update(case: &Case, compute: &Compute, differences: &[Difference], report: &Report) -> Choice {
    let idle = compute.current_state == ComputeState::Idle;
    let permit = permit(case.spec.disruption.as_ref(), idle, case.now);
    let mut now = Vec::new();
    let mut deferred = Deferred::default();
    for difference in differences {
        let repeated = case.observed.memory.repeated(&difference.field, &difference.change, case.now);
        match repeated {
            Some((reason, until)) => deferred.pause(difference, reason, until),
            None if difference.disruptive && permit != Permit::Now => deferred.undisrupted.push(difference),
            None => now.push(difference),
        }
    }
    if now.is_empty() {
        return deferred.choice(&permit, report);
    }
    let parts: BTreeMap<_, _> =
        now.iter().map(|difference| (difference.field.clone(), difference.change.clone())).collect();
    let because = drift::text(&now);
    let drift = case.observed.memory.was_in_force(&drift::enforced(case.spec));
    let step = ComputeStep::Change { id: compute.id.clone(), change: drift::change(&now), parts, because, drift };
    case.act_beside(report, Action::Change, step, report.clone())
}

/// Differences that are not corrected now.
#[derive(Default)]
struct Deferred<'a> {
    undisrupted: Vec<&'a Difference>,
    unapplied: Vec<&'a Difference>,
    persistent: Vec<&'a Difference>,
    until: Option<Timestamp>,
}

impl<'a> Deferred<'a> {
    fn pause(&mut self, difference: &'a Difference, reason: Reason, until: Timestamp) {
        match reason {
            Reason::DriftPersists => self.persistent.push(difference),
            _ => self.unapplied.push(difference),
        }
        self.until = Some(self.until.map_or(until, |before| before.min(until)));
    }

    fn choice(&self, permit: &Permit, report: &Report) -> Choice {
        let waiting =
            (!self.undisrupted.is_empty()).then(|| postponed(permit, &drift::text(&self.undisrupted), report));
        let unapplied = self.paused(&self.unapplied, report, Reason::SettingNotApplied, |text| {
            format!(
                "The platform accepted the change but does not apply it: {text}. Remove the field from the spec if \
                 this platform or plan does not offer it."
            )
        });
        let persistent = self.paused(&self.persistent, report, Reason::DriftPersists, |text| {
            format!("Someone else changes the compute back again and again: {text}. Find out who, or remove the field.")
        });
        Decision::first_step([waiting, unapplied, persistent].into_iter().flatten())
    }

    fn paused(
        &self,
        differences: &[&Difference],
        report: &Report,
        reason: Reason,
        message: impl FnOnce(String) -> String,
    ) -> Option<Choice> {
        let until = self.until.filter(|_| !differences.is_empty())?;
        let sync = Sync::OutOfSync(reason, message(drift::text(differences)));
        Some(Decision::wait(report.clone().with_sync(sync), until))
    }
}

/// The report of a change that interrupts connections and is not allowed now.
pub(super) fn postponed(permit: &Permit, what: &str, report: &Report) -> Choice {
    let waiting = |when: &str| Sync::OutOfSync(Reason::WaitingForDisruption, format!("Waiting {when}: {what}."));
    match permit {
        Permit::At(opening) => {
            let waiting = waiting(&format!("for the window that opens at {opening}"));
            Decision::wait(report.clone().with_sync(waiting), *opening)
        }
        Permit::Never(error) => Decision::rest(report.clone().beside(Health::Stalled(
            Reason::WaitingForDisruption,
            format!("spec.disruption never allows the change, because {error}. Correct it. Waiting: {what}."),
        ))),
        Permit::WhenIdle | Permit::Now => {
            Decision::rest(report.clone().with_sync(waiting("until the compute is idle")))
        }
    }
}
