//! Checks `metadata`, for which the API server has the same rules for every kind: its fields, the
//! name, labels and annotations.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{Check, ManifestProblem};

/// The schema of `metadata` that Kubernetes publishes.
pub(super) fn schema() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<ObjectMeta>()
        .to_value();
    // fieldsV1 contains the fields of its own object, so any field is allowed.
    schema["properties"]["managedFields"]["items"]["properties"]["fieldsV1"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    schema
}

/// The problems of the metadata of `object`, except for its schema.
pub(super) fn problems(object: &Value) -> Vec<ManifestProblem> {
    let metadata = &object["metadata"];
    let mut problems = Vec::from_iter(name(metadata));
    if let Some(namespace) = metadata["namespace"]
        .as_str()
        .filter(|name| !is_label(name))
    {
        problems.push(invalid(
            "metadata.namespace",
            namespace,
            "a lowercase RFC 1123 label must consist of lower case \
            alphanumeric characters or '-', and must start and end with an alphanumeric character",
        ));
    }
    for field in ["labels", "annotations"] {
        for (key, value) in metadata[field].as_object().into_iter().flatten() {
            let path = format!("metadata.{field}.{key}");
            if !is_qualified(key) {
                problems.push(invalid(
                    &path,
                    key,
                    "name part must consist of alphanumeric characters, '-', '_' or \
                    '.', and must start and end with an alphanumeric character",
                ));
            }
            if let Some(value) = value
                .as_str()
                .filter(|value| field == "labels" && !is_value(value))
            {
                problems.push(invalid(
                    &path,
                    value,
                    "a valid label must be an empty string or consist of \
                    alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
                ));
            }
        }
    }
    problems
}

fn name(metadata: &Value) -> Option<ManifestProblem> {
    match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) if is_subdomain(name) => None,
        (Some(name), _) => Some(invalid(
            "metadata.name",
            name,
            "a lowercase RFC 1123 subdomain must consist of lower \
            case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        )),
        (None, Some(_)) => None,
        // The schema rejects a name that is not a text.
        (None, None) if metadata["name"].is_null() => Some(problem(
            "metadata.name",
            "Required value: name or generateName is required".to_owned(),
        )),
        (None, None) => None,
    }
}

fn invalid(path: &str, value: &str, why: &str) -> ManifestProblem {
    problem(path, format!("Invalid value: {value:?}: {why}"))
}

fn problem(path: &str, message: String) -> ManifestProblem {
    ManifestProblem {
        path: path.to_owned(),
        message,
        help: None,
        check: Check::Schema,
    }
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_part)
}

fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

fn is_dns_part(label: &str) -> bool {
    label.starts_with(is_lower_or_digit)
        && label.ends_with(is_lower_or_digit)
        && label.chars().all(|c| is_lower_or_digit(c) || c == '-')
}

fn is_lower_or_digit(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_qualified(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    // The API server allows capitals in the prefix of an annotation, but not of a label. This check
    // allows both, because nobody writes such labels.
    prefix.is_none_or(|prefix| is_subdomain(&prefix.to_ascii_lowercase()))
        && !name.is_empty()
        && is_value(name)
}

fn is_value(text: &str) -> bool {
    text.is_empty()
        || text.len() <= 63
            && text.starts_with(is_alphanumeric)
            && text.ends_with(is_alphanumeric)
            && text
                .chars()
                .all(|c| is_alphanumeric(c) || ['-', '_', '.'].contains(&c))
}

fn is_alphanumeric(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(metadata: Value) -> Vec<String> {
        problems(&json!({"metadata": metadata}))
            .into_iter()
            .map(|problem| problem.path)
            .collect()
    }

    #[test]
    fn metadata_is_judged_as_kubernetes_does() {
        for (metadata, expected) in [
            (
                json!({"name": "a.b-1", "namespace": "shop", "labels": {"a.io/b_c": "", "x": "A.b"}}),
                vec![],
            ),
            (json!({"generateName": "a-"}), vec![]),
            (
                json!({"name": "a", "annotations": {"a": "any text\n"}}),
                vec![],
            ),
            (json!({}), vec!["metadata.name"]),
            (json!({"name": "-a"}), vec!["metadata.name"]),
            (
                json!({"name": "a", "namespace": "a.b"}),
                vec!["metadata.namespace"],
            ),
            (
                json!({"name": "a", "labels": {"a": "b c"}}),
                vec!["metadata.labels.a"],
            ),
            (
                json!({"name": "a", "labels": {"a/b/c": ""}}),
                vec!["metadata.labels.a/b/c"],
            ),
            (
                json!({"name": "a", "annotations": {"": "x"}}),
                vec!["metadata.annotations."],
            ),
        ] {
            assert_eq!(paths(metadata.clone()), expected, "{metadata}");
        }
    }
}
