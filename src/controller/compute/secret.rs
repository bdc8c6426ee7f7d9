//! Reads what the connection Secret of a Compute needs.

use crate::api::{Compute, Known, Management};
use crate::cluster::{Owner, SecretState};
use crate::controller::connection;
use crate::controller::environment::Environment;
use crate::decide::connection::CredentialsView;

pub(super) async fn of<E: Environment>(
    env: &E,
    object: &Known<Compute>,
) -> Result<Option<(Owner, SecretState)>, kube::Error> {
    connection::of(env, object, object.spec.connection.as_deref()).await
}

/// The user and the password, if they are to be written.
pub(super) async fn credentials<E: Environment>(
    env: &E,
    object: &Known<Compute>,
) -> Result<CredentialsView, kube::Error> {
    let declared = match object.spec.management {
        Management::Full => object.spec.connection.as_deref(),
        Management::Observe => None,
    };
    connection::credentials(env, object, declared).await
}

/// The Secrets that it wrote while spec.connection named them.
pub(super) async fn unused<E: Environment>(
    env: &E,
    object: &Known<Compute>,
) -> Result<Vec<String>, kube::Error> {
    let Some(status) = &object.status else {
        return Ok(Vec::new());
    };
    let wrote: Vec<&String> = status
        .unused_secrets
        .iter()
        .chain(&status.connection_secret)
        .collect();
    connection::unused(env, object, object.spec.connection.as_deref(), &wrote).await
}
