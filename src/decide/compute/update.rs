//! Changes of a compute: makes those that are allowed now, and postpones the others.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::postponed::postponed;
use super::restart;
use super::{ComputeCase, ComputeDecision, ComputeStep, schedules};
use crate::decide::disruption::Permit;
use crate::decide::drift::{self, Difference};
use crate::decide::{Action, Decision, Reason, Report, Sync};
use crate::domain::Compute;

/// Makes the changes that are allowed now. If there are none, reports the postponed ones.
pub(super) fn update(
    case: &ComputeCase,
    compute: &Compute,
    differences: &[Difference],
    report: &Report,
) -> ComputeDecision {
    let permit = case.permit(compute);
    let mut now = Vec::new();
    let mut deferred = Deferred::default();
    for difference in differences {
        let repeated =
            case.observed
                .memory
                .repeated(&difference.field, &difference.change, case.now);
        match repeated {
            Some((reason, until)) => deferred.pause(difference, reason, until),
            None if difference.disruptive
                && permit != Permit::Now
                && !is_immediate(case, compute, difference) =>
            {
                deferred.undisrupted.push(difference);
            }
            None => now.push(difference),
        }
    }
    let restart = restart::requested(case, compute);
    if now.is_empty() {
        return deferred.choice(
            &permit,
            restart.map(|record| restart::named(case, &record)),
            report,
        );
    }
    let interrupts = now.iter().any(|difference| difference.disruptive);
    let restart = if interrupts { restart } else { None };
    let parts: BTreeMap<_, _> = now
        .iter()
        .map(|difference| (difference.field.clone(), difference.change.clone()))
        .collect();
    let because = drift::text(&now);
    let drift = case
        .observed
        .memory
        .was_in_force(&drift::enforced(case.spec));
    let step = ComputeStep::Change {
        id: compute.id.clone(),
        change: drift::change(&now),
        parts,
        because,
        drift,
        restart,
    };
    case.act_beside(report, Action::Change, step, report.clone())
}

/// True if a schedule sets the field at once, regardless of spec.disruption.
fn is_immediate(case: &ComputeCase, compute: &Compute, difference: &Difference) -> bool {
    difference.field == "size" && schedules::is_immediate(case.spec, case.agenda, compute)
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

    fn choice(&self, permit: &Permit, restart: Option<&str>, report: &Report) -> ComputeDecision {
        let waiting = (!self.undisrupted.is_empty()).then(|| {
            let also = restart
                .map(|restart| format!("; {restart}"))
                .unwrap_or_default();
            postponed(permit, drift::text(&self.undisrupted) + &also, report)
        });
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
    ) -> Option<ComputeDecision> {
        if differences.is_empty() {
            return None;
        }
        let until = self.until?;
        let sync = Sync::OutOfSync(reason, message(drift::text(differences)));
        Some(Decision::wait(report.clone().with_sync(sync), until))
    }
}
