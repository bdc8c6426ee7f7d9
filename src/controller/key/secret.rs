//! A key's Secret: what is written into it, and what is read back.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};

use super::super::hand_over;
use crate::api::{ProjectKey, ProjectKeySpec};
use crate::cluster::{SecretContent, digest, secrets};
use crate::decide::identity::KeyIdentity;
use crate::decide::key::{KeySecretView, SecretContents, template};
use crate::decide::names::{MANAGED_BY, SECRET_DIGEST, SECRET_KEY, SECRET_KEY_ID, SECRET_SHAPE, shape};

/// Everything that the Secret of a key holds.
pub(super) fn content(
    spec: &ProjectKeySpec,
    key: &KeyIdentity,
    secret: &SecretString,
    base_url: &str,
) -> SecretContent {
    let templates = template(spec, key, secret.expose_secret(), base_url);
    let mut data: BTreeMap<String, SecretString> =
        templates.into_iter().map(|(entry, text)| (entry, SecretString::from(text))).collect();
    data.insert(spec.secret.key.clone(), secret.clone());
    let mut annotations = spec.secret.annotations.clone();
    annotations.insert(SECRET_KEY_ID.to_owned(), key.id.to_string());
    annotations.insert(SECRET_DIGEST.to_owned(), digest(secret));
    annotations.insert(SECRET_KEY.to_owned(), serde_json::to_string(key).unwrap_or_default());
    let mut labels = spec.secret.labels.clone();
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let shape = shape([data.keys().collect(), labels.keys().collect(), spec.secret.annotations.keys().collect()]);
    annotations.insert(SECRET_SHAPE.to_owned(), shape);
    SecretContent { data, labels, annotations }
}

/// What a Secret of ours holds, and the key's secret where it is as it was written.
pub fn secret_contents(
    spec: &ProjectKeySpec,
    secret: &Secret,
    base_url: &str,
) -> (SecretContents, Option<SecretString>) {
    let Some(key) =
        secret.annotations().get(SECRET_KEY).and_then(|text| serde_json::from_str::<KeyIdentity>(text).ok())
    else {
        return (SecretContents::Nothing, None);
    };
    let Some(value) = text(secret, &spec.secret.key) else { return (SecretContents::Altered, None) };
    if secret.annotations().get(SECRET_DIGEST) != Some(&digest(&value)) {
        return (SecretContents::Altered, None);
    }
    let wanted = content(spec, &key, &value, base_url);
    let as_declared = wanted.differing(secret).is_empty();
    (SecretContents::Key { key, as_declared }, Some(value))
}

/// A Secret that dbplane made for a resource that is no more, as far as it holds a key as it was written, or nothing yet.
pub(super) fn restored(object: &ProjectKey, secret: &Secret, base_url: &str) -> KeySecretView {
    let version = secret.resource_version().unwrap_or_default();
    let is_empty = secret.data.as_ref().is_none_or(BTreeMap::is_empty);
    let owner = hand_over::owner(object);
    let inherited = owner.as_ref().is_some_and(|owner| owner.inherits(secret));
    match secret_contents(&object.spec, secret, base_url).0 {
        SecretContents::Key { key, .. } => KeySecretView::Restored { key, version, inherited },
        SecretContents::Nothing if is_empty && owner.is_some_and(|owner| owner.formerly_owned(secret)) => {
            KeySecretView::Unowned { version }
        }
        // What the other one has left is replaced.
        SecretContents::Nothing | SecretContents::Altered if inherited => KeySecretView::Unowned { version },
        SecretContents::Nothing | SecretContents::Altered => KeySecretView::Foreign(secrets::FROM_BEFORE.to_owned()),
    }
}

fn text(secret: &Secret, entry: &str) -> Option<SecretString> {
    let bytes = secret.data.as_ref()?.get(entry)?;
    String::from_utf8(bytes.0.clone()).ok().map(SecretString::from)
}
