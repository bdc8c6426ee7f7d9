//! What something else changes back each time: it is written again at a measured pace, and people are told what it is.

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};

use super::super::environment::{Environment, Kind};
use super::super::object::{Status, uid};
use super::{Next, Pass};
use crate::api::Condition;
use crate::cluster::{Cluster, Event, resource_version};
use crate::decide::names::FIELD_MANAGER;
use crate::decide::repairs::{self, Repair, What};
use crate::decide::{Reason, Report, Wake};

/// What is to be done in place of a repair that has to wait; `None` where it need not.
///
/// # Errors
/// Where the API server could not be asked, or refused.
pub async fn instead<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    repair: &Repair,
) -> Result<Option<Pass>, kube::Error> {
    let Some(until) = waits_until::<K, E>(env, object, repair).await? else { return Ok(None) };
    let (uid, now) = (uid(object), env.now());
    let is_noticed = |condition: &Condition| condition.type_ == Reason::Overwritten.as_str();
    let mut status = object.status().cloned().unwrap_or_default();
    if let (Some((message, _)), false) = (env.state().undone(&uid, now), status.conditions().iter().any(is_noticed)) {
        let notice = (Reason::Overwritten, message.as_str());
        let generation = object.meta().generation.unwrap_or_default();
        *status.conditions_mut() = Report::noticed(status.conditions(), notice, generation, now);
        let written = env.cluster().apply_status(object, &status).await?;
        env.state().wrote_version(&uid, resource_version(&written));
    }
    Ok(Some(Pass::only(Next::On(Wake::At(until)))))
}

/// From when on a repair may be made, where it has to wait. People are told once.
///
/// # Errors
/// Where the API server could not be asked, or refused.
pub async fn waits_until<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    repair: &Repair,
) -> Result<Option<Timestamp>, kube::Error> {
    let (uid, now) = (uid(object), env.now());
    let until = env.state().repair_waits_until(&uid, repair, now);
    if until.is_some() && env.state().undone(&uid, now).is_none() {
        let by = who::<K, E>(env, object, &repair.what, now).await?;
        let message = repairs::message(&repair.what, by.as_deref());
        env.state().told_of_undone(&uid, message.clone());
        env.cluster().publish(object, &Event::warning(Reason::Overwritten.as_str(), message)).await;
    }
    Ok(until)
}

/// Who has changed it last, as far as its managed fields tell: they say nothing of who has removed what.
async fn who<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    what: &What,
    now: Timestamp,
) -> Result<Option<String>, kube::Error> {
    let fields = match what {
        What::Metadata | What::Status => Some(env.cluster().managed_fields(object).await?),
        What::Secret(name) => {
            let namespace = object.namespace().unwrap_or_default();
            env.cluster().secret(&namespace, name).await?.and_then(|secret| secret.metadata.managed_fields)
        }
        What::Compute(_) => None,
    };
    let others = fields.into_iter().flatten().filter(|entry| entry.manager.as_deref() != Some(FIELD_MANAGER));
    let last = others.filter_map(|entry| Some((entry.time?.0, entry.manager?))).max();
    Ok(last.filter(|(time, _)| repairs::is_recent(*time, now)).map(|(_, manager)| manager))
}

/// The report, with what people were told of what is undone as long as that goes on, and when to look whether it does.
pub fn beside<E: Environment>(env: &E, uid: &str, report: Report, wake: Wake) -> (Report, Wake) {
    let Some((message, until)) = env.state().undone(uid, env.now()) else { return (report, wake) };
    let notices = report.notices.iter().cloned().chain([(Reason::Overwritten, message)]).collect();
    (Report { notices, ..report }, wake.earlier(Wake::At(until)))
}
