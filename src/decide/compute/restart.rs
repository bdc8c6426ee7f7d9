//! Restarts: one for each token, and one for each time of a schedule.

use jiff::Timestamp;

use super::maintenance::{self, RestartTurn};
use super::postponed::postponed;
use super::restart_evidence::{RestartOutcome, after_in_vain, answered, call_again_at, outcome};
use super::{ComputeCase, ComputeDecision, ComputeStep, is_settled};
use crate::decide::disruption::Permit;
use crate::decide::drift;
use crate::decide::identity::{BeforeRestart, RestartRecord};
use crate::decide::names::RESTART;
use crate::decide::{Action, Decision, Health, Reason, Report, Sync};
use crate::domain::{Compute, ComputeId, ComputeState};

/// The next choice for a restart that is due, or whose call is open.
pub(super) fn restart(
    case: &ComputeCase,
    compute: &Compute,
    report: &Report,
) -> Option<ComputeDecision> {
    let Some(record) = case.identity.restart.as_ref() else {
        // Without a record, an older version bound the resource: record the tokens, restart
        // nothing.
        let record = RestartRecord {
            noted: true,
            ..case.restart_asked(None)
        };
        return Some(note(record, None, report));
    };
    let is_idle = compute.current_state == ComputeState::Idle && compute.pending_state.is_none();
    Some(match due(case, record, compute) {
        RestartDue::No => return None,
        RestartDue::Note(record) => note(*record, None, report),
        RestartDue::Made(before) => note(completed(record), restarted(before, compute), report),
        RestartDue::Open(before, until) => open(before, compute, until, report),
        RestartDue::Unclear(before) => {
            Decision::rest(unconfirmed(report, unclear(case, before, compute)))
        }
        // Waking an idle compute would cost the user, and the next connection starts it anyway.
        RestartDue::Yes | RestartDue::Later(_) if is_idle => {
            note(asked(case, record, compute), None, report)
        }
        RestartDue::Later(until) => Decision::wait(
            unconfirmed(report, in_vain(standing(record), compute, Some(until))),
            until,
        ),
        RestartDue::Yes
            if !is_settled(compute)
                || compute.current_state != ComputeState::Active
                || comes_with_change(case, compute) =>
        {
            Decision::rest(report.clone())
        }
        RestartDue::Yes => call(case, record, compute, report),
    })
}

fn note(record: RestartRecord, restarted: Option<ComputeId>, report: &Report) -> ComputeDecision {
    Decision::act(
        ComputeStep::RecordRestart { record, restarted },
        report.clone(),
    )
}

/// True if the outcome of a call is still to be recorded. Until then dbplane makes no other change:
/// its effect would look like a trace of the restart.
pub(super) fn is_open(case: &ComputeCase, compute: &Compute) -> bool {
    case.identity.restart.as_ref().is_some_and(|record| {
        record.calling.is_some()
            && matches!(
                due(case, record, compute),
                RestartDue::Note(_) | RestartDue::Made(_) | RestartDue::Open(..)
            )
    })
}

/// The name of a waiting restart in reports.
pub(super) fn named(case: &ComputeCase, asked: &RestartRecord) -> &'static str {
    let record = case.identity.restart.as_ref().map(standing);
    let is_requested = record.is_none_or(|record| !has_tokens_of(record, asked));
    if is_requested {
        "the requested restart"
    } else {
        "the regular restart"
    }
}

fn has_tokens_of(record: &RestartRecord, other: &RestartRecord) -> bool {
    (&record.token, &record.annotation) == (&other.token, &other.annotation)
}

/// The record in force while the outcome of a call is open: the one from before the call.
fn standing(record: &RestartRecord) -> &RestartRecord {
    record
        .calling
        .as_ref()
        .and_then(|before| before.record.as_deref())
        .unwrap_or(record)
}

/// The record of the restart to make. None if no restart is due, or a call for it may still be
/// carried out.
pub(super) fn requested(case: &ComputeCase, compute: &Compute) -> Option<RestartRecord> {
    let record = case.identity.restart.as_ref()?;
    matches!(
        due(case, record, compute),
        RestartDue::Yes | RestartDue::Later(_)
    )
    .then(|| begun(case, record, compute))
}

/// True if a failed change that restarts the compute anyway is retried soon. The restart is then
/// part of that change. A refused change delays no restart.
fn comes_with_change(case: &ComputeCase, compute: &Compute) -> bool {
    let memory = &case.observed.memory;
    let backoff = memory.backoff(Action::Change, case.generation(), case.now);
    backoff.is_some_and(|backoff| !matches!(backoff.health, Health::Stalled(..)))
        && drift::differences(case.spec, compute)
            .iter()
            .any(|it| it.disruptive && memory.repeated(&it.field, &it.change, case.now).is_none())
}

fn begun(case: &ComputeCase, record: &RestartRecord, compute: &Compute) -> RestartRecord {
    let before = BeforeRestart::of(compute, standing(record));
    RestartRecord {
        calling: Some(before),
        ..asked(case, record, compute)
    }
}

/// The due restart, as if it were made now.
fn asked(case: &ComputeCase, record: &RestartRecord, compute: &Compute) -> RestartRecord {
    let record = standing(record);
    let asked = case.restart_asked(Some(record));
    match maintenance::turn(case, record, compute) {
        RestartTurn::Due(maintained) => RestartRecord {
            maintained: Some(maintained),
            ..asked
        },
        RestartTurn::No | RestartTurn::Missed(_) => asked,
    }
}

fn completed(record: &RestartRecord) -> RestartRecord {
    RestartRecord {
        calling: None,
        ..record.clone()
    }
}

/// The compute for which an event reports the restart. None if a change restarted it, which has its
/// own event.
fn restarted(before: &BeforeRestart, compute: &Compute) -> Option<ComputeId> {
    (!before.was_changed(compute)).then(|| compute.id.clone())
}

enum RestartDue<'a> {
    No,
    Yes,
    /// It was called in vain, and is called again at this time.
    Later(Timestamp),
    /// No call: only this record is to be written.
    Note(Box<RestartRecord>),
    /// It was called, and was carried out.
    Made(&'a BeforeRestart),
    /// It was called, and may be carried out until this time.
    Open(&'a BeforeRestart, Timestamp),
    /// It was called, and nothing shows whether it was carried out.
    Unclear(&'a BeforeRestart),
}

fn due<'a>(case: &ComputeCase, record: &'a RestartRecord, compute: &Compute) -> RestartDue<'a> {
    let Some(before) = &record.calling else {
        return wanted(case, record, compute);
    };
    match outcome(case, record, before, compute) {
        RestartOutcome::Made => RestartDue::Made(before),
        RestartOutcome::Open(until) => RestartDue::Open(before, until),
        RestartOutcome::Unclear => match wanted(case, record, compute) {
            RestartDue::No if before.unclear => RestartDue::Unclear(before),
            RestartDue::No => {
                let answered = answered(case, record, before);
                let unclear = BeforeRestart {
                    unclear: true,
                    answered,
                    ..before.clone()
                };
                RestartDue::Note(Box::new(RestartRecord {
                    calling: Some(unclear),
                    ..record.clone()
                }))
            }
            due => due,
        },
        RestartOutcome::NotMade => match &before.record {
            None => RestartDue::Yes,
            Some(standing) => match wanted(case, standing, compute) {
                RestartDue::No => RestartDue::Note(Box::new(RestartRecord::clone(standing))),
                due => due,
            },
        },
        RestartOutcome::InVain => match &before.record {
            None => RestartDue::Yes,
            Some(standing) => RestartDue::Note(Box::new(after_in_vain(record, standing))),
        },
    }
}

/// The restart that is due after this record, if no call of the record is open.
fn wanted<'a>(case: &ComputeCase, record: &RestartRecord, compute: &Compute) -> RestartDue<'a> {
    let asked = case.restart_asked(Some(record));
    if !has_tokens_of(record, &asked)
        || matches!(
            maintenance::turn(case, record, compute),
            RestartTurn::Due(_)
        )
    {
        if let Some(calls) = &record.in_vain {
            let again = call_again_at(calls, case.observed.limits.settle);
            if case.now < again {
                return RestartDue::Later(again);
            }
        }
        return RestartDue::Yes;
    }
    if asked.maintained != record.maintained || record.in_vain.is_some() {
        return RestartDue::Note(Box::new(RestartRecord {
            maintained: asked.maintained,
            in_vain: None,
            ..record.clone()
        }));
    }
    RestartDue::No
}

fn call(
    case: &ComputeCase,
    record: &RestartRecord,
    compute: &Compute,
    report: &Report,
) -> ComputeDecision {
    match case.permit(compute) {
        Permit::Now => {
            let step = ComputeStep::Restart {
                id: compute.id.clone(),
                record: begun(case, record, compute),
            };
            let restarting =
                Report::progressing(Reason::Restarting, "The compute is being restarted.");
            case.act_beside(report, Action::Restart, step, restarting)
        }
        other => postponed(
            &other,
            named(case, &asked(case, record, compute)).to_owned(),
            report,
        ),
    }
}

/// The report until the outcome is known. A compute that served after calls in vain still serves.
fn open(
    before: &BeforeRestart,
    compute: &Compute,
    until: Timestamp,
    report: &Report,
) -> ComputeDecision {
    let in_vain = before
        .record
        .as_ref()
        .filter(|standing| standing.in_vain.is_some() && is_settled(compute));
    let report = match in_vain {
        Some(standing) => unconfirmed(report, self::in_vain(standing, compute, None)),
        None => Report::progressing(
            Reason::Restarting,
            "A restart was sent. dbplane checks whether it was carried out.",
        ),
    };
    if is_settled(compute) {
        Decision::wait(report, until)
    } else {
        Decision::rest(report)
    }
}

fn unconfirmed(report: &Report, message: String) -> Report {
    report
        .clone()
        .with_sync(Sync::OutOfSync(Reason::RestartUnconfirmed, message))
}

fn in_vain(record: &RestartRecord, compute: &Compute, again: Option<Timestamp>) -> String {
    let calls = record.in_vain.as_ref().map_or(0, |known| known.calls);
    let again = again
        .map(|at| format!(" dbplane calls it again at {at}."))
        .unwrap_or_default();
    format!(
        "The restart of compute {} was called, and the compute does not show that it was made: {calls} times so far.{again} Find out \
         what answers in the platform's place, or ask the platform.",
        compute.id
    )
}

fn unclear(case: &ComputeCase, before: &BeforeRestart, compute: &Compute) -> String {
    let why = match before.answered {
        None => {
            "the call was not answered by the platform, and what the compute shows since may have another cause"
        }
        Some(_) => "the platform accepted the call, and the compute does not show a start since",
    };
    let meta = &case.observed.meta;
    format!(
        "Whether compute {} was restarted is not known: {why}. To restart it: kubectl -n {} annotate --overwrite compute {} \
         {RESTART}=<any new value>.",
        compute.id, meta.namespace, meta.name
    )
}
