//! What the steps of all kinds have in common: writes that are remembered, calls that come too late, Secrets.

use jiff::Timestamp;
use kube::ResourceExt;
use tracing::info;

use super::super::environment::{Environment, StepError};
use super::super::object::{Managed, uid};
use crate::cluster::{Cluster, Event, MetadataPatch, WriteError, resource_version};
use crate::decide::memory::Problem;
use crate::decide::{Action, later};
use crate::domain::Fault;

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

/// Tells what was done, in the log and as an event.
pub async fn publish<K: Managed, E: Environment>(env: &E, object: &K, event: &Event) {
    info!(reason = event.reason, text = event.text, name = object.name_any(), "done");
    env.cluster().publish(object, event).await;
}

/// A call is recorded, and about to be made. It must have ended when a successor takes its absence for a proof: where
/// recording it took too long it is not made.
pub fn recorded<E: Environment>(env: &E, uid: &str, action: Action, at: Timestamp) -> Result<(), StepError> {
    env.state().call_recorded(uid, action, at);
    if env.now() < later(at, env.settings().slack()) {
        return Ok(());
    }
    let message = "recording the call took too long, so it was not made".to_owned();
    Err(failed(action)(Fault::Transport { message }))
}

/// For `map_err`: an action that the platform did not carry out.
pub fn failed(action: Action) -> impl Fn(Fault) -> StepError {
    move |fault| StepError::Failed(action, Problem::Platform(fault))
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
        Err(WriteError::Cluster(kube::Error::Api(status))) => {
            let message = format!("Secret {name} could not be written: {}", status.message);
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
        Err(error) => {
            let message = format!("Secret {name} could not be written: {error}");
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
    }
}
