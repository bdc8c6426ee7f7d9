//! Helpers for the steps of all kinds: writes with remembered versions, calls that are too late,
//! and Secrets.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use tracing::{info, warn};

use super::refused::is_request_refused;
use crate::api::{Known, Uid};
use crate::cluster::{
    Cluster, Event, MetadataPatch, SecretContent, WriteError, explained, is_unavailable,
    resource_version,
};
use crate::controller::environment::{Environment, Occurrence, StepError};
use crate::controller::labels;
use crate::controller::object::{Managed, Status, uid};
use crate::decide::identity::written;
use crate::decide::memory::{ActionProblem, NO_GENERATION};
use crate::decide::released::has_finalizer;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{Action, Recorded, Report, later};
use crate::domain::{ComputeId, Fault, KeyId, ProjectId};
use crate::telemetry::metrics::CreateOutcome;

/// For `map_err`: adds what was to be written, since the API server's message does not always say
/// it.
pub fn writing(what: &str) -> impl Fn(kube::Error) -> kube::Error {
    move |error| match error {
        kube::Error::Api(mut status) => {
            let said = if status.message.is_empty() {
                &status.reason
            } else {
                &status.message
            };
            status.message = format!("{what}: {said}");
            kube::Error::Api(status)
        }
        error => error,
    }
}

/// Patches `object` if it still has the given version. Older versions are no longer reconciled.
///
/// Without an answer, the finalizer may have been added. The object then counts as busy until a
/// later version is seen, so that its account is not released meanwhile.
pub async fn patch_metadata<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    patch: &MetadataPatch,
) -> Result<K, kube::Error> {
    let patched = env.cluster().patch_metadata(object, patch).await;
    let patched = patched
        .map_err(writing("the finalizer"))
        .inspect_err(|error| {
            if !is_refusal(error) {
                env.state()
                    .patch_unanswered(uid(object), resource_version(object));
            }
        })?;
    env.state()
        .wrote_version(uid(object), resource_version(&patched));
    Ok(patched)
}

/// The log line of an action, with the objects that it changed. The span of the pass names the
/// resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActionLine<'a> {
    /// An action from [`labels`].
    pub action: &'static str,
    pub project: Option<&'a ProjectId>,
    pub compute: Option<&'a ComputeId>,
    pub key: Option<&'a str>,
    pub key_id: Option<KeyId>,
    pub secret: Option<&'a str>,
    /// The Compute of a set.
    pub replica: Option<&'a str>,
}

impl<'a> ActionLine<'a> {
    pub fn of(action: &'static str) -> Self {
        Self {
            action,
            ..Self::default()
        }
    }

    pub fn wrote_secret(name: &'a str) -> Self {
        Self {
            secret: Some(name),
            ..Self::of(labels::action(Action::WriteSecret))
        }
    }

    /// Logs an action that has no event.
    pub fn log(&self, text: &str) {
        self.line(None, text);
    }

    fn line(&self, event: Option<&str>, text: &str) {
        let Self {
            action,
            project,
            compute,
            key,
            key_id,
            secret,
            replica,
        } = self;
        let project = project.map(ProjectId::as_str);
        let compute = compute.map(ComputeId::as_str);
        let key_id = key_id.map(|id| id.0);
        info!(
            action,
            event, project, compute, key, key_id, secret, replica, "{text}"
        );
    }
}

/// Reports an action in the log and as an event.
pub async fn acted<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    done: ActionLine<'_>,
    event: &Event,
) {
    done.line(Some(&event.reason), &event.text);
    env.cluster().publish(object, event).await;
}

/// Reports a finding, or the reason for an action, in the log and as an event.
pub async fn publish<K: Managed, E: Environment>(env: &E, object: &K, event: &Event) {
    if event.warning {
        warn!(event = event.reason, "{}", event.text)
    } else {
        info!(event = event.reason, "{}", event.text)
    }
    env.cluster().publish(object, event).await;
}

/// Restores the lost finalizer of an object, and the copy of its record.
pub async fn restore<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    record: Option<&str>,
) -> Result<(), StepError> {
    let finalizer = MetadataPatch::new().finalizer(true);
    let both = record.into_iter().fold(finalizer.clone(), |patch, text| {
        patch.record(text.to_owned())
    });
    let restored = match patch_metadata(env, object, &both).await {
        // The API server may refuse only the copy, if annotations are near their limit. The
        // finalizer is needed in any case.
        Err(error) if record.is_some() && is_request_refused(&error) => {
            patch_metadata(env, object, &finalizer).await
        }
        restored => restored,
    };
    restored?;
    Ok(())
}

/// A record to write into the status of an object.
#[derive(Debug)]
pub struct Recording<'a> {
    pub text: String,
    /// True if the object needs the finalizer from now on.
    pub held: bool,
    /// The conditions to write with it.
    pub report: Option<&'a Report>,
}

impl Recording<'_> {
    pub fn of(text: String) -> Self {
        Self {
            text,
            held: false,
            report: None,
        }
    }
}

/// The record of an object with a change applied.
///
/// # Errors
/// If the record cannot be read.
pub fn recording<'a, K: Recorded>(
    object: &Known<K>,
    change: impl FnOnce(K::Identity) -> K::Identity,
) -> Result<Recording<'a>, InvalidAnnotation> {
    let changed = change(object.identity()?);
    Ok(Recording::of(written(&changed, object.meta())))
}

/// Writes a record into the status of `object`. Adds the finalizer first if the record needs it.
pub async fn record<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    recording: Recording<'_>,
) -> Result<K, kube::Error> {
    let object = if recording.held {
        hold(env, object).await?
    } else {
        object.clone()
    };
    let mut status = object.status().cloned().unwrap_or_default();
    if let Some(report) = recording.report {
        status.tell(
            report,
            object.meta().generation.unwrap_or_default(),
            env.now(),
        );
    }
    if let Some(record) = status.record_mut() {
        *record = Some(recording.text);
    }
    if object.status() == Some(&status) {
        return Ok(object);
    }
    let recorded = env
        .cluster()
        .apply_status(&object, &status)
        .await
        .map_err(writing("the record in the status"))?;
    env.state()
        .wrote_version(uid(&object), resource_version(&recorded));
    Ok(recorded)
}

/// Adds the finalizer if it is missing.
pub async fn hold<K: Managed, E: Environment>(env: &E, object: &K) -> Result<K, kube::Error> {
    if has_finalizer(object.meta()) {
        Ok(object.clone())
    } else {
        patch_metadata(env, object, &MetadataPatch::new().finalizer(true)).await
    }
}

/// True if the API server has refused a write. After a conflict or a 5xx, it may have been written.
pub fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code < 500 && status.code != 409)
}

/// Records a call that is about to be sent.
pub async fn record_call<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    action: Action,
    at: Timestamp,
    recording: Recording<'_>,
) -> Result<K, StepError> {
    env.state().call_recorded(uid(object), action, at);
    let recorded = record(env, object, recording)
        .await
        .map_err(not_recorded(env, object, action))?;
    in_time(env, action, at)?;
    Ok(recorded)
}

/// Fails if recording took longer than the slack. The call could then still run when a successor
/// takes its absence as proof.
pub fn in_time<E: Environment>(env: &E, action: Action, at: Timestamp) -> Result<(), StepError> {
    if env.now() < later(at, env.settings().slack()) {
        return Ok(());
    }
    let message = "The API server took too long to record the call, so it was not made. dbplane tries it again.";
    Err(StepError::Failed(
        action,
        ActionProblem::NotRecorded(message.to_owned()),
    ))
}

/// For `map_err`: the API server did not record the call, so it is not sent. After a conflict the
/// next pass decides on the newer version. If the API server was unavailable, the record may have
/// been written.
pub fn not_recorded<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    action: Action,
) -> impl Fn(kube::Error) -> StepError {
    move |error| {
        if matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409)) {
            return StepError::Cluster(error);
        }
        let message = format!(
            "The API server did not record the call, so it was not made: {}",
            explained(&error)
        );
        let problem = ActionProblem::NotRecorded(message);
        if is_unavailable(&error) {
            // It causes no backoff: the next pass records the call again.
            env.state().change_memory(uid(object), |memory| {
                memory.failed(action, problem, NO_GENERATION, env.now());
            });
            return StepError::Cluster(error);
        }
        StepError::Failed(action, problem)
    }
}

/// Counts a create for `object` by its answer.
pub fn count_create<K: Managed, E: Environment, T>(env: &E, object: &K, answer: &Result<T, Fault>) {
    let outcome = match answer {
        Ok(_) => CreateOutcome::Answered,
        Err(fault) if fault.may_have_happened() => CreateOutcome::Unresolved,
        Err(_) => CreateOutcome::Refused,
    };
    env.record(object, Occurrence::Create(outcome));
}

/// For `map_err`: an action that the platform did not carry out.
pub fn failed(action: Action) -> impl Fn(Fault) -> StepError {
    move |fault| StepError::Failed(action, ActionProblem::Platform(fault))
}

/// Reports the parts of a Secret that were not stored as sent, and what to do. A webhook or policy
/// that changes them would do so again.
pub fn altered(
    name: &str,
    sent: &SecretContent,
    written: &Result<Secret, WriteError>,
) -> Option<String> {
    let differing = sent.differing(written.as_ref().ok()?);
    let what = differing.join(", ");
    (!differing.is_empty()).then(|| {
        format!(
            "Secret {name} is not stored as dbplane writes it: {what}. Find what changes it on the way (a mutating webhook or policy), and \
             exempt it."
        )
    })
}

/// The result of a step that wrote a Secret. The next pass retries after a conflict, or if the API
/// server was unavailable. Any other error is reported.
pub fn secret_written<E: Environment>(
    env: &E,
    uid: &Uid,
    written: Result<(), WriteError>,
    name: &str,
) -> Result<(), StepError> {
    match written {
        Ok(()) => {
            env.state().action_succeeded(uid, Action::WriteSecret);
            Ok(())
        }
        Err(WriteError::Cluster(kube::Error::Api(status))) if status.code == 409 => {
            Err(StepError::Cluster(kube::Error::Api(status)))
        }
        Err(WriteError::Cluster(error)) if is_unavailable(&error) => Err(StepError::Cluster(error)),
        Err(error) => {
            let message = format!("Secret {name} could not be written: {error}");
            Err(StepError::Failed(
                Action::WriteSecret,
                ActionProblem::Secret(message),
            ))
        }
    }
}
