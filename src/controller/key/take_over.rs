//! Taking over the key of another resource, with its Secret.

use kube::runtime::reflector::ObjectRef;

use super::super::access;
use super::super::environment::{Environment, StepError};
use super::super::labels;
use super::super::object::uid;
use super::super::pass::calls::{ActionLine, acted, patch_metadata, secret_written};
use super::record::{recording, stored, wrote_key};
use super::secret;
use crate::api::ProjectKey;
use crate::cluster::{Cluster, Event, Owner, secrets};
use crate::decide::identity::{HandOverRecord, KeyRecords, Place, Predecessor, ProjectKeyIdentity};
use crate::decide::key::SecretContents;

/// The Secret first: from the record on, a Secret without the key is a reason to replace it.
pub(super) async fn take_over<E: Environment>(
    env: &E,
    object: &ProjectKey,
    records: &KeyRecords,
    predecessor: &Predecessor,
    copy: bool,
) -> Result<(), StepError> {
    if copy {
        copy_secret(env, object, records, &predecessor.place).await?;
    }
    let key = records.current.as_ref().map(|key| key.name.clone());
    let text = format!("Took over key {} from ProjectKey {}.", key.as_deref().unwrap_or_default(), predecessor.place);
    let hand_over = HandOverRecord { released: None, predecessor: Some(predecessor.clone()) };
    let records = records.clone();
    let taken = recording(object, |_| ProjectKeyIdentity { records, intent: None, hand_over });
    patch_metadata(env, object, &taken.finalizer(true)).await?;
    env.state().keys_outdated(&uid(object), env.tick());
    let linked = ActionLine { key: key.as_deref(), ..ActionLine::of(labels::LINK) };
    acted(env, object, linked, &Event::once("Linked", text)).await;
    Ok(())
}

/// Writes the key into the Secret, where the Secret of the other resource still holds it. Otherwise it is replaced, as any key whose
/// Secret is lost.
async fn copy_secret<E: Environment>(
    env: &E,
    object: &ProjectKey,
    records: &KeyRecords,
    from: &Place,
) -> Result<(), StepError> {
    let reference = ObjectRef::<ProjectKey>::new(&from.name).within(&from.namespace);
    let (Some(other), Some(owner)) = (env.object(&reference), Owner::of(object)) else { return Ok(()) };
    let url = access::base_url(env, &other.spec.account_ref, other.as_ref());
    let found = env.cluster().secret(&from.namespace, &other.spec.secret.name).await?;
    let Some(found) = found else { return Ok(()) };
    let (SecretContents::Key { key, .. }, Some(value)) = secret::secret_contents(&other.spec, &found, records, &url)
    else {
        return Ok(());
    };
    let previous = secret::previous(&found, records);
    if records.current.as_ref().is_none_or(|current| current.id != key.id) {
        return Ok(());
    }
    let url = access::base_url(env, &object.spec.account_ref, object);
    let content = secret::content(&object.spec, (&key, &value), previous.as_ref(), &url);
    let name = &object.spec.secret.name;
    let own = match secrets::own(env.cluster(), &owner, name).await {
        Ok(own) => own,
        Err(error) => return secret_written(env, &uid(object), Err(error), name),
    };
    let written = secrets::write_own(env.cluster(), &owner, (name, own.as_deref()), &content).await;
    stored(env, object, written, &content)?;
    wrote_key(name, &key);
    Ok(())
}
