//! Passes as reconciles of kube-runtime's controller.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use thiserror::Error;
use tracing::field::Empty;
use tracing::{Instrument, Span, debug, error_span, warn};

use super::lanes::Lanes;
use super::slots::Slots;
use super::withdrawn::is_forbidden;
use crate::cluster::{explained, is_unavailable, resource_version};
use crate::controller::access;
use crate::controller::environment::{Environment, Kind, Objects};
use crate::controller::labels;
use crate::controller::live::Live;
use crate::controller::object::{Managed, namespace, uid};
use crate::controller::pass::{Next, Pass, is_outdated, label, pass, refused};
use crate::decide::Wake;
use crate::decide::circuit::PROBE_PAUSE;
use crate::spans;

/// Every resource is reconciled again after this time, or up to a tenth less, even without a
/// change. The random part spreads resources that were reconciled together.
const RESYNC: Duration = Duration::from_secs(900);
/// The shortest wait, so that a time that has just passed causes no busy loop.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A pass failed at the API server.
#[derive(Debug, Error)]
#[error("the API server: {}", explained(.0))]
pub struct Error(#[from] kube::Error);

/// The state that all passes share.
pub struct Shared {
    pub env: Arc<Live>,
    pub slots: Slots,
    pub lanes: Lanes,
}

impl Shared {
    pub fn of(env: &Arc<Live>) -> Self {
        Self {
            slots: Slots::new(env.settings.concurrency),
            lanes: Lanes::default(),
            env: env.clone(),
        }
    }
}

/// One pass after the first lists, if there is a free slot for it. Otherwise the object is woken
/// when there is one. The future is boxed: thousands of reconciles may be pending at start, and
/// kube-runtime's buffer never shrinks.
pub fn reconcile<K: Kind>(
    object: Arc<K::Object>,
    shared: Arc<Shared>,
) -> BoxFuture<'static, Result<Requeue, Error>> {
    made::<K>(object, shared).boxed()
}

async fn made<K: Kind>(object: Arc<K::Object>, shared: Arc<Shared>) -> Result<Requeue, Error> {
    let env = &shared.env;
    if env
        .stop
        .run_until_cancelled(env.synced.cancelled())
        .await
        .is_none()
    {
        return Ok(Requeue::await_change());
    }
    if is_outdated::<K, Live>(env, &object) {
        shared.slots.leave(&label(object.as_ref()));
        env.is_doubted(object.as_ref());
        return Ok(requeue(Next::OnOwnWrite, env.now(), resync(env.random())));
    }
    let (woken, reference) = (env.clone(), ObjectRef::from_obj(object.as_ref()));
    let Some(slot) = shared
        .slots
        .take::<K>(&object, move || woken.wake(reference))
    else {
        return Ok(Requeue::await_change());
    };
    let env = env.clone();
    // In a lane, because the controller's task also reads the watch and would run all passes one by
    // one.
    let namespace = object.namespace().unwrap_or_default();
    let made = shared.lanes.run(&namespace, async move {
        let _slot = slot;
        run::<K>(&object, &env).await
    });
    made.await
}

async fn run<K: Kind>(object: &K::Object, env: &Live) -> Result<Requeue, Error> {
    if object.stands() && access::is_pending::<K, Live>(env, object) {
        return Ok(requeue(
            Next::On(Wake::OnChange),
            env.now(),
            resync(env.random()),
        ));
    }
    let kind = K::Object::kind(&());
    let traced = spans::pass(&kind, object.meta());
    let lines = in_lines(&kind, object);
    let timer = env.metrics.passes.begins(namespace(object), &kind);
    let result = pass::<K, Live>(env, object)
        .instrument(lines)
        .instrument(traced.clone())
        .await;
    timer.ended(result.as_ref().map_or_else(labels::api_server, |_| "ok"));
    came_to(&traced, result.as_ref());
    if let Err(error) = &result {
        refused::report_refused_request::<K, Live>(env, object, error).await;
    }
    let pass = result?;
    env.state.pass_succeeded(uid(object));
    env.is_doubted(object);
    Ok(requeue(pass.next, env.now(), resync(env.random())))
}

/// The span with the fields of every log line of a pass. Its level is error, so that no line lacks
/// it.
fn in_lines(kind: &str, object: &impl ResourceExt) -> Span {
    let (namespace, name) = (object.namespace(), object.name_any());
    error_span!("reconcile", %kind, namespace, name, request_id = Empty)
}

/// Records the end of a pass in its trace.
fn came_to(traced: &Span, result: Result<&Pass, &kube::Error>) {
    match result {
        Ok(pass) => {
            traced.record("dbplane.next", pass.next.to_string());
            traced.record(
                "dbplane.reason",
                pass.report
                    .as_ref()
                    .map(|report| report.headline().0.as_str()),
            );
        }
        Err(error) => spans::failed(traced, labels::api_server(error)),
    }
}

fn requeue(next: Next, now: Timestamp, resync: Duration) -> Requeue {
    Requeue::requeue(wait(next, now, resync))
}

fn wait(next: Next, now: Timestamp, resync: Duration) -> Duration {
    match next {
        Next::Now => Duration::ZERO,
        Next::OnOwnWrite | Next::On(Wake::OnChange) => resync,
        Next::On(Wake::At(time)) => {
            let wait = Duration::try_from(time.duration_since(now)).unwrap_or_default();
            wait.clamp(SHORTEST_WAIT, resync)
        }
    }
}

/// `RESYNC`, shortened at random by up to a tenth.
fn resync(random: u32) -> Duration {
    RESYNC - (RESYNC / 10).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// When a failed pass is retried: soon after a conflict, or if the API server was unavailable,
/// since requests then wait for it. Otherwise with a growing pause.
pub fn error_policy<K: Kind>(
    object: Arc<K::Object>,
    error: &Error,
    shared: Arc<Shared>,
) -> Requeue {
    if let Error(kube::Error::Api(status)) = error
        && status.code == 409
    {
        shared
            .env
            .state
            .write_conflicted(uid(object.as_ref()), resource_version(object.as_ref()));
        shared.env.is_doubted(object.as_ref());
        return Requeue::requeue(CONFLICT_PAUSE);
    }
    if is_unavailable(&error.0) {
        debug!(%error, kind = %K::Object::kind(&()), namespace = object.namespace(), name = object.name_any(), "a pass failed");
        return Requeue::requeue(PROBE_PAUSE);
    }
    if is_forbidden(&error.0) {
        shared.env.is_refused_in(object.meta().namespace.as_deref());
    }
    let errors = shared.env.state.pass_failed(uid(object.as_ref()));
    warn!(%error, kind = %K::Object::kind(&()), namespace = object.namespace(), name = object.name_any(), "a pass failed");
    let pause = Duration::from_secs(1).saturating_mul(1 << errors.min(6));
    Requeue::requeue(pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_looked_at_together_drift_apart() {
        assert_eq!(
            [0, u32::MAX].map(resync).map(|time| time.as_secs()),
            [900, 810]
        );
        let now = Timestamp::UNIX_EPOCH;
        let at = |seconds| Next::On(Wake::At(now + Duration::from_secs(seconds)));
        for (next, expected) in [
            (Next::Now, 0),
            (Next::OnOwnWrite, 850_000),
            (Next::On(Wake::OnChange), 850_000),
            (at(0), 500),
            (at(7), 7000),
            (at(9000), 850_000),
        ] {
            let asked = requeue(next, now, Duration::from_secs(850));
            assert_eq!(
                asked,
                Requeue::requeue(Duration::from_millis(expected)),
                "{next:?}"
            );
        }
    }
}
