//! Records the result of a call and the report that follows from it in one write.

use kube::core::object::HasStatus;

use super::calls::{Recording, record};
use super::{events, refused, write_contention};
use crate::cluster::{Cluster, Event, resource_version};
use crate::controller::environment::{Environment, Kind, Observation};
use crate::controller::object::{Status, uid};

/// Writes the result of a call, and the report that the next pass would make, into the status of
/// `object`. Returns the events of that report. The caller publishes them after the event of the
/// call.
///
/// # Errors
/// If the API server refuses.
pub async fn conclude<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    recording: Recording<'_>,
) -> Result<Vec<Event>, kube::Error> {
    let text = recording.text;
    let mut known = object.clone();
    if let Some(record) = known.status_mut().get_or_insert_default().record_mut() {
        *record = Some(text.clone());
    }
    let (status, events) = status_as_known::<K, E>(env, &known).await;
    let written = match env.cluster().apply_status(object, &status).await {
        // The record has to be kept even if the API server refuses the rest. The next pass reports
        // the refusal.
        Err(error) if refused::is_refused(&error) => {
            return record(env, object, Recording::of(text))
                .await
                .map(|_| Vec::new());
        }
        written => written?,
    };
    env.state()
        .wrote_version(uid(object), resource_version(&written));
    Ok(events)
}

/// The status to write for an object as known now. If it cannot be observed, the previous status
/// with the new record.
async fn status_as_known<K: Kind, E: Environment>(
    env: &E,
    known: &K::Object,
) -> (<K::Object as HasStatus>::Status, Vec<Event>) {
    let before = || (known.status().cloned().unwrap_or_default(), Vec::new());
    let now = env.now();
    let Ok(Observation { observed, effects }) = K::observe(env, known, now).await else {
        return before();
    };
    // The object as known here is not in the cache yet: the next pass applies the other effects.
    if let Some(memory) = effects.memory {
        env.state().remember(uid(known), memory);
    }
    let decision = K::decide(known, &observed, now);
    let Some(report) = decision.report else {
        return before();
    };
    let (report, _) = write_contention::with_notice(env, uid(known), report, decision.wake);
    (
        K::status(&report, known, &observed, now),
        events::of(known, &report),
    )
}
