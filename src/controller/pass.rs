//! One pass over one resource: observe, decide, perform at most one step, or report.

mod brake;
pub mod calls;
mod copy;
mod effects;
mod events;
pub mod outcome;
pub mod refused;
mod write_contention;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use tracing::{debug, info, warn};

use self::calls::{Recording, record};
use self::copy::Copy;
use super::access;
use super::environment::{
    Change, Environment, Kind, Observation, Occurrence, StepError, account_of,
};
use super::labels;
use super::object::{Managed, Status, namespace, uid};
use super::state::Wait;
use crate::cluster::{Cluster, resource_version};
use crate::decide::memory::ActionProblem;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Action, Decision, Observed, Reason, Report, Wake, later, names};
use crate::spans;

/// The reason of the event for a resource that is released because its project no longer exists.
pub const PROJECT_GONE: &str = "ProjectGone";

#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    pub next: Next,
    /// The state of the resource, if the pass decided on it.
    pub report: Option<Report>,
}

/// When the next pass is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: a step was performed, and its result has to be decided on.
    Now,
    /// When the watch shows the process's own last write.
    OnOwnWrite,
    On(Wake),
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::OnOwnWrite => f.write_str("on own write"),
            Self::On(Wake::OnChange) => f.write_str("on a change"),
            Self::On(Wake::At(time)) => write!(f, "at {time}"),
        }
    }
}

impl Pass {
    fn only(next: Next) -> Self {
        Self { next, report: None }
    }
}

/// One pass.
///
/// # Errors
/// If the API server was unavailable or refused.
pub async fn pass<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
) -> Result<Pass, kube::Error> {
    let uid = uid(object);
    if is_outdated::<K, E>(env, object) {
        return Ok(Pass::only(Next::OnOwnWrite));
    }
    env.state()
        .version_seen(uid, resource_version(object), object.recorded_text());
    if restore_record::<K, E>(env, object).await? {
        return Ok(Pass::only(after_step::<K, E>(env, object)));
    }
    invalidate::<K, E>(env, object);
    let now = env.now();
    let Observation {
        mut observed,
        effects,
    } = K::observe(env, object, now).await?;
    effects::apply::<K, E>(env, object, effects);
    let mut decision = decide::<K, E>(env, object, &mut observed, now);
    if let Some(step) = decision.step.take() {
        match take_step::<K, E>(env, object, &mut observed, &step).await? {
            TakenStep::Ended(pass) => return Ok(pass),
            TakenStep::Failed(at) => decision = K::decide(object, &observed, at),
        }
    }
    if decision.step.is_some() {
        return Ok(Pass::only(Next::Now));
    }
    let wake = rest::<K, E>(env, object, &observed, &mut decision, now).await?;
    Ok(Pass {
        next: Next::On(wake),
        report: decision.report,
    })
}

/// The pause after a step whose record could not be read.
const RECORD_PAUSE: Duration = Duration::from_secs(1);

/// How a pass continues after a step.
enum TakenStep {
    /// It ends.
    Ended(Pass),
    /// It decides again, with the failure at this time in the observed memory.
    Failed(Timestamp),
}

async fn take_step<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &mut Observed<K::Facts>,
    step: &K::Step,
) -> Result<TakenStep, kube::Error> {
    let uid = uid(object);
    let repair = match K::change(object, step) {
        Change::Repair(repair) => Some(repair),
        Change::Delete(_) | Change::DeleteStray(_) | Change::Other => None,
    };
    if let Some(repair) = &repair
        && let Some(pass) = write_contention::postpone::<K, E>(env, object, repair).await?
    {
        return Ok(TakenStep::Ended(pass));
    }
    debug!(?step, "performing");
    spans::step(step);
    match perform::<K, E>(env, object, observed, step).await {
        Ok(()) => {
            if let Some(repair) = repair {
                env.state().repaired(uid, repair, env.now());
            }
            Ok(TakenStep::Ended(Pass::only(after_step::<K, E>(
                env, object,
            ))))
        }
        Err(StepError::Cluster(error)) => Err(error),
        // The next pass reports that.
        Err(StepError::Record(_)) => {
            let soon = Wake::At(later(env.now(), RECORD_PAUSE));
            Ok(TakenStep::Ended(Pass::only(Next::On(soon))))
        }
        Err(StepError::Failed(action, problem)) => {
            Ok(step_failed::<K, E>(env, object, observed, action, problem))
        }
    }
}

/// Reports and remembers the failure. If the step changed the object before it failed, the report
/// needs the changed object, so the pass ends.
fn step_failed<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &mut Observed<K::Facts>,
    action: Action,
    problem: ActionProblem,
) -> TakenStep {
    warn!(
        action = labels::action(action),
        reason = labels::problem(&problem),
        error = labels::text(&problem),
        "a step failed"
    );
    let failed = Occurrence::StepFailed {
        action,
        problem: &problem,
    };
    env.record(object, failed);
    let now = env.now();
    let generation = object.meta().generation.unwrap_or_default();
    let memory = env.state().change_memory(uid(object), |memory| {
        memory.failed(action, problem, generation, now);
    });
    let next = after_step::<K, E>(env, object);
    if next == Next::OnOwnWrite {
        return TakenStep::Ended(Pass::only(next));
    }
    observed.memory = memory;
    TakenStep::Failed(now)
}

/// Writes the newest record again if storage was rolled back to a status that may lack it. This
/// precedes any decision: the record is still true on the platform. Returns whether there was one.
async fn restore_record<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
) -> Result<bool, kube::Error> {
    let Some(text) = env.state().lost_record(uid(object)) else {
        return Ok(false);
    };
    // The recorded objects need the finalizer, which the restored object may lack.
    let held = object.meta().deletion_timestamp.is_none();
    record(
        env,
        object,
        Recording {
            held,
            ..Recording::of(text)
        },
    )
    .await?;
    env.state().record_restored(uid(object));
    Ok(true)
}

/// Ends a pass without a step: writes the status, and the copy of the record.
async fn rest<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &Observed<K::Facts>,
    decision: &mut Decision<K::Step>,
    now: Timestamp,
) -> Result<Wake, kube::Error> {
    let copy = Copy::of::<K, E>(env, object, observed).await?;
    if let Some(until) = copy.waits() {
        decision.wake = decision.wake.earlier(Wake::At(until));
    }
    if let (Some(report), Some(message)) = (&mut decision.report, &copy.refused) {
        report
            .notices
            .push((Reason::RequestRefused, message.clone()));
    }
    let holder = decision
        .report
        .as_ref()
        .and_then(|report| report.holder.as_ref());
    if env.state().waits_for_holder(uid(object), holder)
        && let Some(holder) = holder
    {
        info!(holder, "another resource has what this one is to have");
    }
    if let Some(report) = decision.report.take() {
        let (report, wake) = write_contention::with_notice(env, uid(object), report, decision.wake);
        (decision.report, decision.wake) = (Some(report), wake);
    }
    let (wake, written) = report::<K, E>(env, object, observed, decision, now).await?;
    let again = copy
        .write::<K, E>(env, written.as_ref().unwrap_or(object))
        .await?;
    Ok(wake.earlier(again))
}

/// Decides what to do. If the brake holds the step, decides again with the brake set.
fn decide<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &mut Observed<K::Facts>,
    now: Timestamp,
) -> Decision<K::Step> {
    let mut decision = K::decide(object, observed, now);
    if let Some(brake) = decision
        .step
        .as_ref()
        .and_then(|step| brake::held::<K, E>(env, object, step, now))
    {
        observed.meta.brake = brake;
        decision = K::decide(object, observed, now);
    }
    let waits = match &decision.step {
        Some(_) => None,
        None => decision.report.as_ref().and_then(Report::waits_for),
    };
    let waits = waits.map(|reason| Wait {
        kind: K::Object::kind(&()).into_owned(),
        namespace: namespace(object).to_owned(),
        reason,
    });
    env.state().waits(uid(object), waits);
    decision
}

/// After a step that wrote to its object, the next pass waits until the watch shows that. Otherwise
/// it follows at once.
fn after_step<K: Kind, E: Environment>(env: &E, object: &K::Object) -> Next {
    if env
        .state()
        .is_outdated(uid(object), resource_version(object))
    {
        Next::OnOwnWrite
    } else {
        Next::Now
    }
}

/// True if our own last write is newer, or if the object is gone with all that was remembered of
/// it.
pub(super) fn is_outdated<K: Kind, E: Environment>(env: &E, object: &K::Object) -> bool {
    let there = env.object(&ObjectRef::from_obj(object));
    there.is_none_or(|there| uid(there.as_ref()) != uid(object))
        || env
            .state()
            .is_outdated(uid(object), resource_version(object))
}

/// If a user requests it by an annotation, from now on only newer observations of the platform
/// count.
fn invalidate<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    let Some(requested) = object.request(names::RECONCILE) else {
        return;
    };
    let handled = object.status().and_then(Status::handled_reconcile);
    if handled != Some(&requested) && env.state().reconcile_requested(uid(object), &requested) {
        K::invalidate(env, object);
    }
}

/// Performs a step, unless the object is gone or outdated, or has lost its account since the
/// decision.
async fn perform<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &Observed<K::Facts>,
    step: &K::Step,
) -> Result<(), StepError> {
    let _in_step = env.state().begin_step(uid(object));
    if is_outdated::<K, E>(env, object) || access::is_lost_since::<K, E>(env, object, observed) {
        return Ok(());
    }
    K::perform(env, object, step).await
}

/// Writes the status if it differs, and events for what is new in it. Returns when to decide again,
/// and the object as written.
async fn report<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &Observed<K::Facts>,
    decision: &Decision<K::Step>,
    now: Timestamp,
) -> Result<(Wake, Option<K::Object>), kube::Error> {
    let Decision {
        report: Some(report),
        wake,
        ..
    } = decision
    else {
        return Ok((decision.wake, None));
    };
    let status = K::status(report, object, observed, now);
    // If other operators report on the object too, only a report that is new to this one is
    // written. Otherwise two operators with different views would overwrite each other forever.
    let shared = env
        .settings()
        .is_shared(object)
        .then(|| (object.meta().generation, report.clone()));
    let was_reported = |shared| env.state().was_reported(uid(object), shared);
    if object.status() == Some(&status) || shared.as_ref().is_some_and(was_reported) {
        return Ok((*wake, None));
    }
    let repair = Repair::of(
        WrittenPart::Status,
        serde_json::to_string(&status).unwrap_or_default(),
    );
    if let Some(until) = write_contention::waits_until::<K, E>(env, object, &repair).await? {
        return Ok((wake.earlier(Wake::At(until)), None));
    }
    let written = match env.cluster().apply_status(object, &status).await {
        // The object was deleted during the pass.
        Err(kube::Error::Api(error)) if error.code == 404 => return Ok((*wake, None)),
        Err(error) if refused::is_refused(&error) => {
            let again = refused::report_refused_status::<K, E>(env, object, report, &error).await?;
            return Ok((wake.earlier(again), None));
        }
        other => other?,
    };
    env.state()
        .wrote_version(uid(object), resource_version(&written));
    env.state().repaired(uid(object), repair, now);
    if let Some(reported) = shared {
        env.state().reported(uid(object), reported);
    }
    for event in events::of(object, report) {
        env.cluster().publish(object, &event).await;
    }
    Ok((*wake, Some(written)))
}

/// A resource is gone. Forgets it and wakes its account, which may have waited for that to be
/// deleted.
pub fn forget<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    env.state().forget(uid(object));
    wake_account::<K, E>(env, object);
}

/// The finalizer of a resource was removed. Wakes its account, which may have waited for that to be
/// deleted.
pub fn released<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    env.state().waits(uid(object), None);
    env.state().released(uid(object), resource_version(object));
    wake_account::<K, E>(env, object);
}

fn wake_account<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    if let Some(account) = account_of::<K>(object) {
        access::wake(env, &account);
    }
}

/// The kind, namespace and name of an object, for users.
pub fn label<K: Resource<DynamicType = ()>>(object: &K) -> String {
    label_of::<K>(object.namespace().as_deref(), &object.name_any())
}

/// Like `label`, by namespace and name.
pub fn label_of<K: Resource<DynamicType = ()>>(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}
