//! Saves a key that only memory holds.

use super::record::stored;
use super::secret;
use crate::api::{Known, ProjectKey};
use crate::cluster::{Cluster, Owner, secrets};
use crate::controller::access;
use crate::controller::environment::{Environment, StepError};
use crate::controller::pass::calls::secret_written;
use crate::controller::state::UnsavedKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    Written,
    /// Another process has given up the key.
    GivenUp,
}

/// Why the secret of a key that was given up is lost.
pub(super) const GIVEN_UP: &str =
    "another process took its creation for interrupted; the key is replaced";

/// Writes a key from memory into its Secret, unless another process has given up the key meanwhile.
/// The Secret is read before the record: a process that gives up the key writes its successor
/// later, and that write is not overwritten.
pub(super) async fn write_unsaved<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    unsaved: &UnsavedKey,
) -> Result<Saved, StepError> {
    let owner = Owner::of(object);
    // The platform of the key: the account may lead to another one by now.
    let url = match access::base_url(env, object) {
        url if unsaved.intent.platform.as_ref() == Some(&env.settings().platforms.of(&url)) => url,
        url => unsaved.intent.platform.clone().unwrap_or(url),
    };
    let name = &object.spec.secret.name;
    let cluster = env.cluster();
    let own = match secrets::own(cluster, &owner, name).await {
        Ok(own) => own,
        Err(error) => {
            return secret_written(env, object.uid(), Err(error), name).map(|()| Saved::Written);
        }
    };
    let now = match cluster.current(object).await? {
        Some(now) => Some(now.identity()?),
        None => None,
    };
    if now
        .as_ref()
        .is_some_and(|identity| !identity.expects(&unsaved.key.name))
    {
        return Ok(Saved::GivenUp);
    }
    let records = now.unwrap_or_default().records;
    let mut before = None;
    if let Some(found) = own.as_deref() {
        if !unsaved.intent.previous_revoked {
            before = secret::about_to_be_previous(object, found, &records, &url);
        }
        before = before.or_else(|| secret::previous(found, &records));
    }
    let content = secret::content(
        &object.spec,
        &unsaved.key,
        &unsaved.secret,
        before.as_ref(),
        &url,
    );
    let written = secrets::write_own(cluster, &owner, name, own.as_deref(), &content).await;
    stored(env, object, written, &content).map(|()| Saved::Written)
}
