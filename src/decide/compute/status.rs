//! The status that belongs to a decision.

use jiff::Timestamp;

use super::sight::{Sight, sight};
use super::{
    ComputeCase, ComputeObserved, SnapshotState, is_settled, maintenance, restart, schedules,
};
use crate::api::{
    ComputeSpec, ComputeStatus, ComputeType, LastOperation, Management, NotApplied, RestartStatus,
    ServiceBinding, WaitingChanges,
};
use crate::decide::identity::RestartRecord;
use crate::decide::operations::is_in_progress;
use crate::decide::{Report, drift, sizes};
use crate::domain::{Compute, ComputeState, Role};

/// The status: the observed compute and the conditions.
pub fn status(
    report: &Report,
    spec: &ComputeSpec,
    observed: &ComputeObserved,
    old: &ComputeStatus,
    now: Timestamp,
) -> ComputeStatus {
    let agenda = schedules::agenda(
        spec,
        observed.memory.agenda.as_ref(),
        observed.meta.generation,
        now,
    );
    let agenda = agenda.as_deref();
    let mut status = match &observed.identity {
        Ok(identity) => seen(
            report,
            &ComputeCase {
                spec,
                observed,
                identity,
                agenda,
                now,
            },
            old,
        ),
        // The last observed state and the record stay: a user has to decide about both.
        Err(_) => ComputeStatus {
            waiting: None,
            ..unseen(old, now)
        },
    };
    status.conditions = report.conditions(&old.conditions, observed.meta.generation, now);
    status.observed_generation =
        report.observed_generation(old.observed_generation, observed.meta.generation);
    let looked = matches!(observed.snapshot, SnapshotState::Taken { .. });
    let handled = old.last_handled_reconcile_at.as_ref();
    status.last_handled_reconcile_at = observed.meta.handled_reconcile(looked, handled);
    status
}

/// The last observed state, while nothing can be observed.
fn unseen(old: &ComputeStatus, now: Timestamp) -> ComputeStatus {
    ComputeStatus {
        unseen_since: old.unseen_since.or_else(|| to_the_second(now)),
        ..old.clone()
    }
}

/// The observed compute, and the record.
fn seen(report: &Report, case: &ComputeCase, old: &ComputeStatus) -> ComputeStatus {
    let ComputeCase {
        observed,
        identity,
        agenda,
        now,
        ..
    } = *case;
    let binding = identity.binding.as_ref();
    let mut status = match sight(case) {
        Sight::Found(compute) => ComputeStatus {
            restart: last_restart(case, compute, old.restart.as_deref()).map(Box::new),
            maintenance: maintenance::status(case, compute).map(Box::new),
            not_applied: not_applied(case, compute),
            ..observed_status(compute, old)
        },
        Sight::Unbound | Sight::Gone => ComputeStatus {
            compute_id: binding.map(|binding| binding.id.clone()),
            last_seen_serving: Some(false),
            ..ComputeStatus::default()
        },
        Sight::Pending => old.clone(),
        Sight::Unseen => unseen(old, now),
    };
    status.last_operation = last_operation(case, old);
    let waiting = report.waiting.as_ref().map(|waiting| WaitingChanges {
        changes: waiting.changes.clone(),
        since: observed
            .waiting_since
            .or_else(|| to_the_second(now))
            .unwrap_or(now),
        until: waiting.until,
    });
    status.waiting = waiting.map(Box::new);
    status.schedule = agenda.map(|agenda| Box::new(schedules::status(agenda)));
    if observed.meta.deleting {
        status.connection_secret = old.connection_secret.clone();
        status.unused_secrets = old.unused_secrets.clone();
    } else {
        status.connection_secret = observed.connection_secret.clone();
        status.unused_secrets = observed.unused_secrets.clone();
    }
    status.binding = status
        .connection_secret
        .clone()
        .map(|name| ServiceBinding { name });
    status.record = old.record.clone();
    status
}

/// The last known operation of the bound compute. A settled compute has none in progress, even if
/// nobody has asked for its end.
fn last_operation(case: &ComputeCase, old: &ComputeStatus) -> Option<LastOperation> {
    case.identity.binding.as_ref()?;
    let memory = &case.observed.memory;
    let is_over =
        !memory.changing && matches!(sight(case), Sight::Found(compute) if is_settled(compute));
    memory
        .last_operation
        .as_ref()
        .or(old.last_operation.as_ref())
        .filter(|operation| !(is_over && is_in_progress(operation)))
        .cloned()
}

/// The settings that the platform was sent and does not apply.
fn not_applied(case: &ComputeCase, compute: &Compute) -> Vec<NotApplied> {
    let of = |difference: drift::Difference| {
        let drift::Difference {
            field,
            declared,
            change,
            ..
        } = difference;
        let since = case
            .observed
            .memory
            .not_applied_since(&field, &change, case.now)?;
        Some(NotApplied {
            setting: field,
            declared,
            since: to_the_second(since)?,
        })
    };
    drift::differences(case.spec, compute)
        .into_iter()
        .filter_map(of)
        .collect()
}

/// The last requested restart.
fn last_restart(
    case: &ComputeCase,
    compute: &Compute,
    old: Option<&RestartStatus>,
) -> Option<RestartStatus> {
    if case.spec.management != Management::Full {
        return None;
    }
    let record = case.identity.restart.as_ref()?;
    let due = restart::requested(case, compute);
    let token = asked(due.as_ref().unwrap_or(record));
    if token.is_empty() {
        return None;
    }
    // The tokens from the time of the binding have restarted nothing.
    if due.is_none() && record.noted {
        return None;
    }
    // Statuses written by older versions lack these times.
    let known = old.filter(|old| old.token == token && old.requested_at.is_some());
    let time = |known: bool| to_the_second(if known { case.now } else { record.at });
    let is_open = due.is_some()
        || record.calling.is_some()
        || !is_settled(compute)
        || compute.unknown_state().is_some();
    let completed_at = match known {
        _ if is_open => None,
        Some(known) => known.completed_at.or_else(|| time(true)),
        None => time(false),
    };
    let requested_at = known
        .and_then(|known| known.requested_at)
        .or_else(|| time(due.is_some()));
    Some(RestartStatus {
        token,
        requested_at,
        completed_at,
    })
}

/// The origin of a restart request: the spec's token, the annotation, the time of a schedule.
fn asked(record: &RestartRecord) -> String {
    let maintained = record
        .maintained
        .as_ref()
        .filter(|maintained| maintained.made.is_some());
    let time = maintained
        .map(|maintained| maintained.time.to_string())
        .unwrap_or_default();
    let asked = [
        record.token.as_str(),
        record.annotation.as_str(),
        time.as_str(),
    ];
    asked
        .into_iter()
        .filter(|asked| !asked.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The observed fields of a compute.
fn observed_status(compute: &Compute, old: &ComputeStatus) -> ComputeStatus {
    let size = compute.settings.min.zip(compute.settings.max);
    ComputeStatus {
        compute_id: Some(compute.id.clone()),
        type_: Some(match compute.role {
            Role::Primary => ComputeType::ReadWrite,
            Role::Replica => ComputeType::ReadOnly,
        }),
        region: compute.region.clone(),
        created_at: compute.created_at.and_then(to_the_second),
        host: compute.host.clone(),
        pooled_host: compute.pooled_host.clone(),
        state: Some(compute.current_state.to_string()),
        pending_state: compute.pending_state.as_ref().map(ComputeState::to_string),
        size: size.map(|(min, max)| sizes::text(min, max)),
        capacity: size
            .and_then(|(min, max)| sizes::capacity(min, max))
            .map(Box::new),
        last_active: last_active(compute, old.last_active),
        last_seen_serving: match compute.unknown_state() {
            None => Some(compute.current_state != ComputeState::Init),
            Some(_) => old.last_seen_serving,
        },
        ..ComputeStatus::default()
    }
}

/// Rounded down to the hour while the compute is active, so that activity causes no writes. Never
/// set to an earlier time.
fn last_active(compute: &Compute, old: Option<Timestamp>) -> Option<Timestamp> {
    let exact = to_the_second(compute.last_active?)?;
    if compute.current_state != ComputeState::Active {
        return Some(exact);
    }
    let hour =
        Timestamp::from_second(exact.as_second() - exact.as_second().rem_euclid(3600)).ok()?;
    Some(
        old.filter(|old| (hour..=exact).contains(old))
            .unwrap_or(hour),
    )
}

pub(super) fn to_the_second(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second()).ok()
}
