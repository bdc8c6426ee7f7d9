//! Helpers for the steps of a ProjectKey: records, the finalizer, and the result of writing the
//! Secret.

use k8s_openapi::api::core::v1::Secret;

use super::ProjectKeys;
use crate::api::{Known, ProjectKey};
use crate::cluster::{Event, MetadataPatch, SecretContent, WriteError};
use crate::controller::environment::{Environment, StepError};
use crate::controller::object::uid;
use crate::controller::pass::calls::{
    ActionLine, Recording, altered, patch_metadata, publish, recording, secret_written,
};
use crate::controller::pass::{PROJECT_GONE, released};
use crate::decide::Action;
use crate::decide::identity::{KeyIdentity, KeyRecords, ProjectKeyIdentity};
use crate::decide::memory::ActionProblem;
use crate::decide::seal::InvalidAnnotation;

/// A record of these keys, without an open create.
pub(super) fn recording_keys<'a>(
    object: &Known<ProjectKey>,
    records: &KeyRecords,
) -> Result<Recording<'a>, InvalidAnnotation> {
    recording(object, |_| ProjectKeyIdentity {
        records: records.clone().tidied(),
        intent: None,
    })
}

/// Logs that a key is in its Secret.
pub(super) fn wrote_key(secret: &str, key: &KeyIdentity) {
    let done = ActionLine {
        key: Some(&key.name),
        key_id: Some(key.id),
        ..ActionLine::wrote_secret(secret)
    };
    done.log(&format!("Wrote key {} into Secret {secret}.", key.name));
}

/// Removes the finalizer. `gone` is the text of the event if the project no longer exists.
pub(super) async fn release<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    gone: Option<&str>,
) -> Result<(), StepError> {
    if let Some(text) = gone {
        publish(env, object, &Event::warning(PROJECT_GONE, text)).await;
    }
    patch_metadata(env, object, &MetadataPatch::new().finalizer(false)).await?;
    released::<ProjectKeys, E>(env, object);
    Ok(())
}

/// The result of writing a Secret. Fails if the stored content differs: a webhook or policy that
/// changes it would do so again.
pub(super) fn stored<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    written: Result<Secret, WriteError>,
    sent: &SecretContent,
) -> Result<(), StepError> {
    let name = &object.spec.secret.name;
    let Some(message) = altered(name, sent, &written) else {
        return secret_written(env, uid(object), written.map(drop), name);
    };
    let message = format!("{message} No other key is created meanwhile.");
    Err(StepError::Failed(
        Action::WriteSecret,
        ActionProblem::Secret(message),
    ))
}
