//! What the steps of all kinds have in common: writes that are remembered, calls that come too late, Secrets.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use tracing::{info, warn};

use super::super::environment::{Environment, StepError};
use super::super::labels;
use super::super::object::{Managed, Status, uid};
use crate::cluster::{Cluster, Event, MetadataPatch, SecretContent, WriteError, explained, resource_version};
use crate::decide::memory::Problem;
use crate::decide::names::RECORD;
use crate::decide::{Action, Report, later};
use crate::domain::Fault;
use crate::telemetry::metrics::CreateOutcome;

/// Patches `object` if it is still as given, and remembers the version: older ones are not decided on.
pub async fn patch_metadata<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    patch: &MetadataPatch,
) -> Result<K, StepError> {
    let patched = env.cluster().patch_metadata(object, patch).await?;
    env.state().wrote_version(&uid(object), resource_version(&patched));
    Ok(patched)
}

/// What was done, and to what, for the one line in the log that each action has. The pass names the resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActionLine<'a> {
    /// A word of [`labels`].
    pub action: &'static str,
    pub project: Option<&'a str>,
    pub compute: Option<&'a str>,
    pub key: Option<&'a str>,
    pub key_id: Option<i64>,
    pub secret: Option<&'a str>,
    /// The Compute of a set.
    pub replica: Option<&'a str>,
}

impl<'a> ActionLine<'a> {
    pub fn of(action: &'static str) -> Self {
        Self { action, ..Self::default() }
    }

    pub fn wrote_secret(name: &'a str) -> Self {
        Self { secret: Some(name), ..Self::of(labels::action(Action::WriteSecret)) }
    }

    /// Where no event tells of it.
    pub fn log(&self, text: &str) {
        self.line(None, text);
    }

    fn line(&self, event: Option<&str>, text: &str) {
        let Self { action, project, compute, key, key_id, secret, replica } = self;
        info!(action, event, project, compute, key, key_id, secret, replica, "{text}");
    }
}

/// Tells what was done, in the log and as an event.
pub async fn acted<K: Managed, E: Environment>(env: &E, object: &K, done: ActionLine<'_>, event: &Event) {
    done.line(Some(&event.reason), &event.text);
    env.cluster().publish(object, event).await;
}

/// Tells what was found, or why something is done.
pub async fn publish<K: Managed, E: Environment>(env: &E, object: &K, event: &Event) {
    match event.warning {
        true => warn!(event = event.reason, "{}", event.text),
        false => info!(event = event.reason, "{}", event.text),
    }
    env.cluster().publish(object, event).await;
}

/// Writes the record of an object anew where it was lost, and the finalizer.
pub async fn restore<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    record: Option<&str>,
    finalizer: bool,
) -> Result<(), StepError> {
    let patch = MetadataPatch::new().finalizer(finalizer);
    let patch = record.into_iter().fold(patch, |patch, text| patch.record(text.to_owned()));
    patch_metadata(env, object, &patch).await.map(drop)
}

/// A call is recorded in the annotation of `object`, and about to be made. Its record is copied to the status first. The call must
/// have ended when a successor takes its absence for a proof: where recording it took too long it is not made. Whoever waits for what the
/// call makes is told so meanwhile.
pub async fn confirm_record<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    (action, at): (Action, Timestamp),
    told: Option<&Report>,
) -> Result<K, StepError> {
    env.state().call_recorded(&uid(object), action, at);
    let confirmed = write_copy(env, object, action, told).await?;
    if env.now() < later(at, env.settings().slack()) {
        return Ok(confirmed);
    }
    let message = "The API server took too long to record the call, so it was not made. dbplane tries it again.";
    Err(StepError::Failed(action, Problem::NotRecorded(message.to_owned())))
}

/// Copies the record of `object` to its status, where no manifest replaces it, before a call is made that rests on it.
pub async fn copy_record<K: Managed, E: Environment>(env: &E, object: &K, action: Action) -> Result<K, StepError> {
    write_copy(env, object, action, None).await
}

async fn write_copy<K: Managed, E: Environment>(
    env: &E,
    object: &K,
    action: Action,
    told: Option<&Report>,
) -> Result<K, StepError> {
    let mut status = object.status().cloned().unwrap_or_default();
    if let Some(report) = told {
        status.tell(report, object.meta().generation.unwrap_or_default(), env.now());
    }
    if let Some(copy) = status.record_mut() {
        *copy = object.annotations().get(RECORD).cloned();
    }
    if object.status() == Some(&status) {
        return Ok(object.clone());
    }
    let copied = env.cluster().apply_status(object, &status).await.map_err(|error| {
        let message = format!("The API server did not record the call, so it was not made: {}", explained(&error));
        StepError::Failed(action, Problem::NotRecorded(message))
    })?;
    env.state().wrote_version(&uid(object), resource_version(&copied));
    Ok(copied)
}

/// Counts a create for `object`, as it was answered or not.
pub fn count_create<K: Managed, E: Environment, T>(env: &E, _object: &K, answer: &Result<T, Fault>) {
    let outcome = match answer {
        Ok(_) => CreateOutcome::Answered,
        Err(fault) if fault.may_have_happened() => CreateOutcome::Unresolved,
        Err(_) => CreateOutcome::Refused,
    };
    env.count_create(&K::kind(&()), outcome);
}

/// For `map_err`: an action that the platform did not carry out.
pub fn failed(action: Action) -> impl Fn(Fault) -> StepError {
    move |fault| StepError::Failed(action, Problem::Platform(fault))
}

/// What of a Secret was not stored as it was sent, where that is so, and what to do. A webhook or a policy that changes it on the way would do
/// so again.
pub fn altered(name: &str, sent: &SecretContent, written: &Result<Secret, WriteError>) -> Option<String> {
    let differing = sent.differing(written.as_ref().ok()?);
    let what = differing.join(", ");
    (!differing.is_empty()).then(|| {
        format!(
            "Secret {name} is not stored as dbplane writes it: {what}. Find what changes it on the way (a mutating webhook or policy), and \
             exempt it."
        )
    })
}

/// What the write of a Secret means for its resource: a conflict is looked at again, anything else is reported.
pub fn secret_written<E: Environment>(
    env: &E,
    uid: &str,
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
        Err(error) => {
            let message = format!("Secret {name} could not be written: {error}");
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
    }
}
