//! Composes the content of a key's Secret, and reads it back.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::api::{Known, ProjectKey, ProjectKeySpec};
use crate::cluster::{Owner, SecretContent, digest, secrets};
use crate::decide::identity::{KeyIdentity, KeyRecords};
use crate::decide::key::{KeySecretView, SecretContents, template};
use crate::decide::names::{
    MANAGED_BY, SECRET_DIGEST, SECRET_KEY, SECRET_KEY_ID, SECRET_PREVIOUS, SECRET_SHAPE, shape,
};
use crate::domain::KeyId;

/// The previous key, which the Secret holds beside the key in use.
#[derive(Clone, Debug)]
pub struct Previous {
    pub id: KeyId,
    pub name: String,
    pub secret: SecretString,
}

/// The annotation of the Secret about its previous key.
#[derive(Serialize, Deserialize)]
struct PreviousMark {
    entry: String,
    id: KeyId,
    name: String,
    digest: String,
}

/// The whole content of a key's Secret.
pub(super) fn content(
    spec: &ProjectKeySpec,
    key: &KeyIdentity,
    secret: &SecretString,
    previous: Option<&Previous>,
    base_url: &str,
) -> SecretContent {
    let templates = template(spec, key, secret.expose_secret(), base_url);
    let mut data: BTreeMap<String, SecretString> = templates
        .into_iter()
        .map(|(entry, text)| (entry, SecretString::from(text)))
        .collect();
    data.insert(spec.secret.key.clone(), secret.clone());
    let mut annotations = spec.secret.annotations.clone();
    annotations.insert(SECRET_KEY_ID.to_owned(), key.id.to_string());
    annotations.insert(SECRET_DIGEST.to_owned(), digest(secret));
    annotations.insert(
        SECRET_KEY.to_owned(),
        serde_json::to_string(key).unwrap_or_default(),
    );
    if let (Some(entry), Some(previous)) = (&spec.secret.previous_key, previous) {
        let (entry, id, name) = (entry.clone(), previous.id, previous.name.clone());
        data.insert(entry.clone(), previous.secret.clone());
        let mark = PreviousMark {
            entry,
            id,
            name,
            digest: digest(&previous.secret),
        };
        annotations.insert(
            SECRET_PREVIOUS.to_owned(),
            serde_json::to_string(&mark).unwrap_or_default(),
        );
    }
    let mut labels = spec.secret.labels.clone();
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let shape = shape([
        data.keys().collect(),
        labels.keys().collect(),
        spec.secret.annotations.keys().collect(),
    ]);
    annotations.insert(SECRET_SHAPE.to_owned(), shape);
    SecretContent {
        type_: Some(spec.secret.type_.clone()),
        data,
        labels,
        annotations,
    }
}

/// The content of a Secret of ours, and the key's secret if it is unaltered. `records` contain the
/// previous keys that are still valid.
pub fn secret_contents(
    spec: &ProjectKeySpec,
    secret: &Secret,
    records: &KeyRecords,
    base_url: &str,
) -> (SecretContents, Option<SecretString>) {
    let Some(key) = secret
        .annotations()
        .get(SECRET_KEY)
        .and_then(|text| serde_json::from_str::<KeyIdentity>(text).ok())
    else {
        return (SecretContents::Nothing, None);
    };
    let Some(value) = text(secret, &spec.secret.key) else {
        return (SecretContents::Altered, None);
    };
    if secret.annotations().get(SECRET_DIGEST) != Some(&digest(&value)) {
        return (SecretContents::Altered, None);
    }
    let wanted = content(
        spec,
        &key,
        &value,
        previous(secret, records).as_ref(),
        base_url,
    );
    let as_declared = wanted.differing(secret).is_empty() && leftover(secret, &wanted).is_none();
    (SecretContents::Key { key, as_declared }, Some(value))
}

/// The previous key in the Secret, as long as it is valid.
pub(super) fn previous(secret: &Secret, records: &KeyRecords) -> Option<Previous> {
    let PreviousMark {
        entry,
        id,
        name,
        digest: written,
    } = mark(secret)?;
    let value = text(secret, &entry).filter(|value| digest(value) == written)?;
    let is_previous = records
        .previous
        .iter()
        .any(|key| key.id == id && key.name == name);
    // Another key has replaced it in the Secret, and that is not recorded yet.
    let is_about_to_be = records
        .current
        .as_ref()
        .is_some_and(|key| key.id == id && key.name == name);
    (is_previous || is_about_to_be).then_some(Previous {
        id,
        name,
        secret: value,
    })
}

/// The key in the Secret, which is about to become the previous one.
pub(super) fn about_to_be_previous(
    object: &Known<ProjectKey>,
    found: &Secret,
    records: &KeyRecords,
    base_url: &str,
) -> Option<Previous> {
    let (SecretContents::Key { key, .. }, Some(secret)) =
        secret_contents(&object.spec, found, records, base_url)
    else {
        return None;
    };
    let is_in_use = records
        .current
        .as_ref()
        .is_some_and(|current| current.id == key.id);
    is_in_use.then_some(Previous {
        id: key.id,
        name: key.name,
        secret,
    })
}

/// The entry of a previous key that should no longer be there.
pub(super) fn leftover(found: &Secret, wanted: &SecretContent) -> Option<String> {
    let entry = mark(found)?.entry;
    (text(found, &entry).is_some() && !wanted.data.contains_key(&entry)).then_some(entry)
}

fn mark(secret: &Secret) -> Option<PreviousMark> {
    serde_json::from_str(secret.annotations().get(SECRET_PREVIOUS)?).ok()
}

/// A Secret that dbplane wrote for a resource that is gone, if it holds an unaltered key, or
/// nothing yet.
pub(super) fn restored(
    object: &Known<ProjectKey>,
    secret: &Secret,
    base_url: &str,
) -> KeySecretView {
    let version = secret.resource_version().unwrap_or_default();
    let is_empty = secret.data.as_ref().is_none_or(BTreeMap::is_empty);
    match secret_contents(&object.spec, secret, &KeyRecords::default(), base_url).0 {
        SecretContents::Key { key, .. } => KeySecretView::Restored { key, version },
        SecretContents::Nothing if is_empty && Owner::of(object).formerly_owned(secret) => {
            KeySecretView::Unowned { version }
        }
        SecretContents::Nothing | SecretContents::Altered => {
            KeySecretView::Foreign(secrets::FROM_BEFORE.to_owned())
        }
    }
}

fn text(secret: &Secret, entry: &str) -> Option<SecretString> {
    let bytes = secret.data.as_ref()?.get(entry)?;
    String::from_utf8(bytes.0.clone())
        .ok()
        .map(SecretString::from)
}
