//! The additional entries of a key's Secret.

use std::collections::BTreeMap;

use crate::api::ProjectKeySpec;
use crate::decide::identity::KeyIdentity;
use crate::decide::template::Filler;

/// The additional entries with their placeholders replaced.
pub fn template(
    spec: &ProjectKeySpec,
    key: &KeyIdentity,
    secret: &str,
    base_url: &str,
) -> BTreeMap<String, String> {
    let id = key.id.to_string();
    let value = |name: &str| match name {
        "key" => Some(secret),
        "keyID" => Some(id.as_str()),
        "keyName" => Some(key.name.as_str()),
        "projectID" => Some(spec.project_id.as_str()),
        "baseURL" => Some(base_url),
        _ => None,
    };
    let mut filler = Filler::default();
    spec.secret
        .template
        .iter()
        .map(|(entry, text)| (entry.clone(), filler.fill(text, value)))
        .collect()
}
