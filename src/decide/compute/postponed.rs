//! Changes and restarts that have to wait, because they interrupt connections.

use super::ComputeDecision;
use crate::decide::conditions::PostponedChanges;
use crate::decide::disruption::Permit;
use crate::decide::{Decision, Health, Reason, Report, Sync};

/// Reports changes that interrupt connections and are not allowed now.
pub(super) fn postponed(permit: &Permit, changes: String, report: &Report) -> ComputeDecision {
    let waiting = |when: &str, until| Report {
        sync: Sync::OutOfSync(
            Reason::WaitingForDisruption,
            format!("Waiting {when}: {changes}."),
        ),
        waiting: Some(PostponedChanges {
            changes: changes.clone(),
            until,
        }),
        ..report.clone()
    };
    match permit {
        Permit::At(opening) => {
            Decision::wait(waiting(&format!("for the window that opens at {opening}"), Some(*opening)), *opening)
        }
        Permit::Never(error) => Decision::rest(report.clone().beside(Health::Stalled(
            Reason::InvalidSchedule,
            format!("spec.disruption.window never opens: {error}. Waiting for it: {changes}."),
        ))),
        Permit::NotSoon(error) => Decision::rest(report.clone().beside(Health::Stalled(
            Reason::WaitingForDisruption,
            format!("spec.disruption does not allow the change, because {error}. Correct it. Waiting: {changes}."),
        ))),
        Permit::WhenIdle(Some(deadline)) => {
            let when = format!("until the compute is idle, and until {deadline} at the latest");
            Decision::wait(waiting(&when, Some(*deadline)), *deadline)
        }
        Permit::WhenIdle(None) | Permit::Now => Decision::rest(waiting("until the compute is idle", None)),
    }
}
