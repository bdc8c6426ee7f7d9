//! Slows down repairs that something else undoes each time, and reports what undoes them.

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};

use super::{Next, Pass};
use crate::api::{Condition, Uid};
use crate::cluster::{Cluster, Event, resource_version};
use crate::controller::environment::{Environment, Kind};
use crate::controller::object::{Status, uid};
use crate::decide::names::FIELD_MANAGER;
use crate::decide::write_contention::{self, Repair, WrittenPart};
use crate::decide::{Reason, Report, Wake};

/// The pass that replaces a repair that has to wait; `None` if the repair may be made.
///
/// # Errors
/// If the API server was unavailable or refused.
pub async fn postpone<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    repair: &Repair,
) -> Result<Option<Pass>, kube::Error> {
    let Some(until) = waits_until::<K, E>(env, object, repair).await? else {
        return Ok(None);
    };
    let (uid, now) = (uid(object), env.now());
    let is_noticed = |condition: &Condition| condition.type_ == Reason::Overwritten.as_str();
    let mut status = object.status().cloned().unwrap_or_default();
    if let (Some((message, _)), false) = (
        env.state().reported_contention(uid, now),
        status.conditions().iter().any(is_noticed),
    ) {
        let generation = object.meta().generation.unwrap_or_default();
        *status.conditions_mut() = Report::noticed(
            status.conditions(),
            Reason::Overwritten,
            &message,
            generation,
            now,
        );
        let written = env.cluster().apply_status(object, &status).await?;
        env.state().wrote_version(uid, resource_version(&written));
    }
    Ok(Some(Pass::only(Next::On(Wake::At(until)))))
}

/// When a repair may be made, if it has to wait. Reports the wait once.
///
/// # Errors
/// If the API server was unavailable or refused.
pub async fn waits_until<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    repair: &Repair,
) -> Result<Option<Timestamp>, kube::Error> {
    let (uid, now) = (uid(object), env.now());
    let until = env.state().repair_waits_until(uid, repair, now);
    if until.is_some() && env.state().reported_contention(uid, now).is_none() {
        let by = last_other_manager::<K, E>(env, object, &repair.what, now).await?;
        let message = write_contention::message(&repair.what, by.as_deref());
        env.state().contention_reported(uid, message.clone());
        env.cluster()
            .publish(
                object,
                &Event::warning(Reason::Overwritten.as_str(), message),
            )
            .await;
    }
    Ok(until)
}

/// The last manager to change it, according to the managed fields. They do not show removals.
async fn last_other_manager<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    what: &WrittenPart,
    now: Timestamp,
) -> Result<Option<String>, kube::Error> {
    let fields = match what {
        WrittenPart::Metadata | WrittenPart::Status => {
            Some(env.cluster().managed_fields(object).await?)
        }
        WrittenPart::Secret(name) => {
            let namespace = object.namespace().unwrap_or_default();
            env.cluster()
                .secret(&namespace, name)
                .await?
                .and_then(|secret| secret.metadata.managed_fields)
        }
        WrittenPart::Compute(_) => None,
    };
    let others = fields
        .into_iter()
        .flatten()
        .filter(|entry| entry.manager.as_deref() != Some(FIELD_MANAGER));
    let last = others
        .filter_map(|entry| Some((entry.time?.0, entry.manager?)))
        .max();
    Ok(last
        .filter(|(time, _)| write_contention::is_recent(*time, now))
        .map(|(_, manager)| manager))
}

/// The report with a notice about the undone repair, as long as that continues, and when to check
/// again.
pub fn with_notice<E: Environment>(
    env: &E,
    uid: &Uid,
    report: Report,
    wake: Wake,
) -> (Report, Wake) {
    let Some((message, until)) = env.state().reported_contention(uid, env.now()) else {
        return (report, wake);
    };
    let notices = report
        .notices
        .iter()
        .cloned()
        .chain([(Reason::Overwritten, message)])
        .collect();
    (Report { notices, ..report }, wake.earlier(Wake::At(until)))
}
