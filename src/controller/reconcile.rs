//! One pass over one resource: observe, decide, perform at most one step, or say how things stand.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::runtime::controller::Action as Requeue;
use kube::{Resource, ResourceExt};
use thiserror::Error;
use tracing::{Instrument, debug, info_span, warn};

use super::Context;
use super::kind::{Kind, Managed, Shared, Status, StepError, uid};
use crate::api::Condition;
use crate::clock;
use crate::cluster::{Note, apply_status, resource_version};
use crate::decide::{Decision, Health, Reason, Report, Sync, Wake};

/// Every resource is looked at again after this time even when nothing seems to change.
const RESYNC: Duration = Duration::from_secs(900);
/// The shortest wait, so that no time that has just passed makes a loop.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Could not look or could not act: the API server did not answer as needed.
#[derive(Debug, Error)]
#[error("the API server: {0}")]
pub struct Error(#[from] kube::Error);

/// One pass.
pub async fn reconcile<K: Kind>(object: Shared<K>, context: Arc<Context>) -> Result<Requeue, Error> {
    tokio::select! {
        () = context.synced.cancelled() => {}
        () = context.stop.cancelled() => return Ok(Requeue::await_change()),
    }
    let kind = K::Object::kind(&());
    let span =
        info_span!("reconcile", %kind, namespace = object.namespace().unwrap_or_default(), name = object.name_any());
    let timer = context.metrics.reconcile_begins(&kind);
    let result = pass::<K>(&object, &context).instrument(span).await;
    timer.ended(result.is_ok());
    if result.is_ok() {
        context.traces.update(&uid(object.as_ref()), |trace| trace.errors = 0);
    }
    Ok(result?)
}

async fn pass<K: Kind>(object: &K::Object, context: &Context) -> Result<Requeue, kube::Error> {
    let uid = uid(object);
    let known = context.traces.version(&uid);
    if known > resource_version(object) {
        // Our own write has not come back yet; its event brings the next pass.
        return Ok(Requeue::requeue(RESYNC));
    }
    let now = clock::now();
    let mut observed = K::observe(context, object, now).await?;
    let mut decision = decide::<K>(context, object, &mut observed, now);
    K::conclude(context, object, &observed);
    if let Some(step) = decision.step.take() {
        debug!(?step, "performing");
        match K::perform(context, object, &observed, &step).await {
            Ok(()) => return Ok(Requeue::requeue(Duration::ZERO)),
            Err(StepError::Cluster(error)) => return Err(error),
            Err(StepError::Failed(action, problem)) => {
                warn!(?action, ?problem, "a step failed");
                let now = clock::now();
                let generation = object.meta().generation.unwrap_or_default();
                let (memory, version) = context.traces.update(&uid, |trace| {
                    trace.memory.failed(action, problem, generation, now);
                    (trace.memory.clone(), trace.version)
                });
                if version > resource_version(object) {
                    // The step has changed the object before it failed; how things stand is said of what it is now.
                    return Ok(Requeue::requeue(RESYNC));
                }
                K::remember(&mut observed, memory);
                decision = K::decide(object, &observed, now);
            }
        }
    }
    if decision.step.is_some() {
        return Ok(Requeue::requeue(Duration::ZERO));
    }
    say::<K>(context, object, &observed, &decision, now).await?;
    Ok(wake(decision.wake, clock::now()))
}

/// What to do; where that deletes on the platform, as far as the brake allows.
fn decide<K: Kind>(
    context: &Context,
    object: &K::Object,
    observed: &mut K::Observed,
    now: Timestamp,
) -> Decision<K::Step> {
    let mut decision = K::decide(object, observed, now);
    if let Some(told) = decision.step.as_ref().and_then(|step| context.braked::<K>(object, step, now)) {
        K::hold(observed, told);
        decision = K::decide(object, observed, now);
    }
    context.waits::<K>(object, &decision);
    decision
}

/// Writes the status if it differs, and an event where its headline is news.
async fn say<K: Kind>(
    context: &Context,
    object: &K::Object,
    observed: &K::Observed,
    decision: &Decision<K::Step>,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let Some(report) = &decision.report else { return Ok(()) };
    let status = K::status(report, object, observed, now);
    if object.status() == Some(&status) {
        return Ok(());
    }
    let written = match apply_status(&object.api(&context.client), object, &status).await {
        // The object went while we looked at it.
        Err(kube::Error::Api(error)) if error.code == 404 => return Ok(()),
        other => other?,
    };
    let version = resource_version(&written);
    context.traces.update(&uid(object), |trace| trace.version = trace.version.max(version));
    let before = object.status().map(Status::conditions).unwrap_or_default();
    for note in news(before, report).into_iter().chain(found(before, report)) {
        context.events.publish(object, &note).await;
    }
    Ok(())
}

/// The event that goes with a new headline. What is merely under way has none: the steps it takes have their own.
fn news(before: &[Condition], report: &Report) -> Option<Note> {
    let (reason, text) = report.headline();
    let known = before.iter().find(|condition| condition.type_ == "Ready").map(|condition| condition.reason.as_str());
    if known == Some(reason.as_str()) {
        return None;
    }
    match report.health {
        Health::Ready(..) | Health::Unknown(..) => Some(Note::normal(reason.as_str(), text)),
        Health::Stalled(..) => Some(Note::warning(reason.as_str(), text)),
        Health::Progressing(..) => None,
    }
}

/// The event that goes with something that a person has to decide although the resource is ready.
fn found(before: &[Condition], report: &Report) -> Option<Note> {
    let Sync::OutOfSync(reason @ Reason::StrayCompute, text) = &report.sync else { return None };
    let known = before.iter().find(|condition| condition.type_ == "Synced").map(|condition| condition.reason.as_str());
    (known != Some(reason.as_str())).then(|| Note::warning(reason.as_str(), text))
}

fn wake(wake: Wake, now: Timestamp) -> Requeue {
    match wake {
        Wake::OnChange => Requeue::requeue(RESYNC),
        Wake::At(time) => {
            let wait = Duration::try_from(time.duration_since(now)).unwrap_or_default();
            Requeue::requeue(wait.clamp(SHORTEST_WAIT, RESYNC))
        }
    }
}

/// When a pass that ended with an error is made again: soon after a conflict, otherwise later each time.
pub fn error_policy<K: Kind>(object: Shared<K>, error: &Error, context: Arc<Context>) -> Requeue {
    if let Error(kube::Error::Api(status)) = error
        && status.code == 409
    {
        return Requeue::requeue(CONFLICT_PAUSE);
    }
    let errors = context.traces.update(&uid(object.as_ref()), |trace| {
        trace.errors = trace.errors.saturating_add(1);
        trace.errors
    });
    warn!(%error, kind = %K::Object::kind(&()), namespace = object.namespace(), name = object.name_any(), "a pass failed");
    let pause = Duration::from_secs(1).saturating_mul(1 << errors.min(6));
    Requeue::requeue(pause.min(LONGEST_PAUSE))
}
