//! The further entries of a key's Secret.

use std::collections::BTreeMap;

use super::super::identity::KeyIdentity;
use crate::api::ProjectKeySpec;

/// The further entries of the Secret's data, with their placeholders replaced.
pub fn template(spec: &ProjectKeySpec, key: &KeyIdentity, secret: &str, base_url: &str) -> BTreeMap<String, String> {
    let id = key.id.to_string();
    let value = |name: &str| match name {
        "key" => Some(secret),
        "keyID" => Some(id.as_str()),
        "keyName" => Some(key.name.as_str()),
        "projectID" => Some(spec.project_id.as_str()),
        "baseURL" => Some(base_url),
        _ => None,
    };
    spec.secret.template.iter().map(|(entry, text)| (entry.clone(), filled(text, value))).collect()
}

/// Replaces placeholders once: inserted values are not searched again. Anything else between braces stays.
fn filled<'a>(text: &'a str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let known = after.split_once("}}").and_then(|(name, behind)| Some((value(name.trim_matches(' '))?, behind)));
        match known {
            Some((value, behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}
