//! A Compute's connection Secret: what is read for it.

use super::super::environment::Environment;
use super::super::{connection, hand_over};
use crate::api::{Compute, Management};
use crate::cluster::{Owner, SecretState, secrets};
use crate::decide::connection::CredentialsView;
use crate::decide::identity;

/// Whether a Compute that is being deleted and hands over still owns its connection Secret: the Secret would go with it.
pub(super) async fn is_left_to_successor<E: Environment>(env: &E, object: &Compute) -> Result<bool, kube::Error> {
    let released = || identity::of_compute(object).is_ok_and(|record| record.identity.hand_over.released.is_some());
    let declared = object.spec.connection.as_deref().filter(|_| object.spec.hand_over_to.is_some() || released());
    let (Some(connection), Some(owner), true) =
        (declared, Owner::of(object), object.metadata.deletion_timestamp.is_some())
    else {
        return Ok(false);
    };
    Ok(matches!(secrets::state(env.cluster(), &owner, &connection.secret_name).await?, SecretState::Ours(_)))
}

pub(super) async fn of<E: Environment>(env: &E, object: &Compute) -> Result<Option<(Owner, SecretState)>, kube::Error> {
    connection::of(env, object, object.spec.connection.as_deref(), hand_over::owner(object)).await
}

/// The user and the password, where they are to be written.
pub(super) async fn credentials<E: Environment>(env: &E, object: &Compute) -> Result<CredentialsView, kube::Error> {
    let declared = object.spec.connection.as_deref().filter(|_| object.spec.management == Management::Full);
    connection::credentials(env, object, declared).await
}

/// Secrets that it wrote while spec.connection named them.
pub(super) async fn unused<E: Environment>(env: &E, object: &Compute) -> Result<Vec<String>, kube::Error> {
    let Some(status) = &object.status else { return Ok(Vec::new()) };
    let wrote: Vec<&String> = status.unused_secrets.iter().chain(&status.connection_secret).collect();
    connection::unused(env, object, object.spec.connection.as_deref(), &wrote).await
}
