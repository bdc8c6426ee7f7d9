//! Regular restarts: one for each time of the schedule, unless the compute has started since the
//! previous time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::ComputeCase;
use crate::api::{ComputeSpec, Duration as Length, MaintenanceStatus};
use crate::decide::cron::Cron;
use crate::decide::identity::{Maintained, RestartRecord};
use crate::decide::{Wake, later};
use crate::domain::{Compute, ComputeId};

/// The starting deadline of a restart if the spec declares none.
const STARTING_DEADLINE: Duration = Duration::from_secs(3600);
/// A recorded time further ahead than this came from a wrong clock, and is ignored.
const AHEAD: Duration = Duration::from_secs(24 * 3600);

/// The schedule of one compute.
struct MaintenancePlan {
    cron: Cron,
    /// The schedule as declared, with its time zone. A different schedule starts its own record.
    text: String,
    jitter: Duration,
    deadline: Duration,
}

impl MaintenancePlan {
    /// `None` if no regular restarts are declared, or their schedule cannot be followed.
    fn of(spec: &ComputeSpec, compute: &ComputeId) -> Option<Self> {
        let restart = &spec.maintenance.as_ref()?.restart;
        let text = match &restart.time_zone {
            Some(zone) => format!("{} {zone}", restart.schedule),
            None => restart.schedule.clone(),
        };
        let jitter_most = restart.jitter.as_ref().and_then(Length::value);
        let deadline = restart.starting_deadline.as_ref().and_then(Length::value);
        Some(Self {
            cron: Cron::examine(&restart.schedule, restart.time_zone.as_deref()).ok()?,
            text,
            jitter: jitter(jitter_most.unwrap_or_default(), compute),
            deadline: deadline.unwrap_or(STARTING_DEADLINE),
        })
    }

    /// The last time of the schedule that is due.
    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.cron.last(earlier(now, self.jitter))
    }

    /// The record of this schedule, if there is one.
    fn known<'a>(
        &self,
        record: Option<&'a RestartRecord>,
        now: Timestamp,
    ) -> Option<&'a Maintained> {
        let known = record.and_then(|record| record.maintained.as_ref());
        known.filter(|known| known.schedule == self.text && known.time < later(now, AHEAD))
    }

    /// The next time of the schedule that is not due yet.
    fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.cron.next(earlier(now, self.jitter))
    }
}

/// A part of `most` that is constant for one compute.
fn jitter(most: Duration, compute: &ComputeId) -> Duration {
    let digest = Sha256::digest(compute.as_bytes());
    let number = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Duration::from_secs(number.checked_rem(most.as_secs()).unwrap_or_default())
}

fn earlier(time: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    time.checked_sub(length).unwrap_or(Timestamp::MIN)
}

/// The state of the regular restarts.
pub(super) enum RestartTurn {
    /// Nothing is due.
    No,
    /// A restart is due for the time in this record.
    Due(Maintained),
    /// No restart could be made for this time before its deadline.
    Missed(Timestamp),
}

pub(super) fn turn(case: &ComputeCase, record: &RestartRecord, compute: &Compute) -> RestartTurn {
    let Some(plan) = MaintenancePlan::of(case.spec, &compute.id) else {
        return RestartTurn::No;
    };
    let (Some(time), Some(known)) = (plan.due(case.now), plan.known(Some(record), case.now)) else {
        return RestartTurn::No;
    };
    let started = last_start(record, compute);
    if time <= known.time || has_started(case, &plan, known, time, started) {
        return RestartTurn::No;
    }
    if case.now < later(later(time, plan.jitter), plan.deadline) {
        return RestartTurn::Due(Maintained {
            schedule: plan.text,
            time,
            made: Some(case.now),
        });
    }
    RestartTurn::Missed(time)
}

/// The last time of the schedule that is done with. A new schedule counts from now on.
pub(super) fn followed(
    spec: &ComputeSpec,
    record: Option<&RestartRecord>,
    now: Timestamp,
) -> Option<Maintained> {
    match MaintenancePlan::of(spec, &ComputeId::default()) {
        Some(plan) if plan.known(record, now).is_none() => Some(Maintained {
            time: plan.cron.last(now)?,
            schedule: plan.text,
            made: None,
        }),
        _ => record?.maintained.clone(),
    }
}

/// True if the compute has started since the previous time of the schedule. The restart made for
/// that previous time does not count.
fn has_started(
    case: &ComputeCase,
    plan: &MaintenancePlan,
    known: &Maintained,
    time: Timestamp,
    started: Option<Timestamp>,
) -> bool {
    let Some(before) = plan.cron.last(earlier(time, Duration::from_secs(1))) else {
        return false;
    };
    let since = match known.made {
        Some(made) if known.time >= before => later(made, case.observed.limits.start),
        _ => later(before, plan.jitter),
    };
    started.is_some_and(|started| started > since)
}

/// The last start, by the platform's answer or the record.
fn last_start(record: &RestartRecord, compute: &Compute) -> Option<Timestamp> {
    compute.started_at.max(record.started())
}

pub(super) fn wake(case: &ComputeCase, compute: &Compute) -> Wake {
    next_restart(case, compute).map_or(Wake::OnChange, Wake::At)
}

/// The next restart to announce. A time that will be skipped, because the compute has started since
/// the previous one, is not announced.
fn next_restart(case: &ComputeCase, compute: &Compute) -> Option<Timestamp> {
    let plan = MaintenancePlan::of(case.spec, &compute.id)?;
    let mut time = plan.next(case.now)?;
    let record = case.identity.restart.as_ref();
    if let (Some(record), Some(known)) = (record, plan.known(record, case.now))
        && has_started(case, &plan, known, time, last_start(record, compute))
    {
        time = plan.cron.next(time)?;
    }
    Some(later(time, plan.jitter))
}

/// The maintenance part of the status; `None` if no regular restarts are declared.
pub(super) fn status(case: &ComputeCase, compute: &Compute) -> Option<MaintenanceStatus> {
    case.spec.maintenance.as_ref()?;
    let record = case.identity.restart.as_ref();
    let missed = match record.map(|record| turn(case, record, compute)) {
        Some(RestartTurn::Missed(time)) => Some(time),
        Some(RestartTurn::No | RestartTurn::Due(_)) | None => None,
    };
    Some(MaintenanceStatus {
        next_restart: next_restart(case, compute),
        missed,
    })
}
