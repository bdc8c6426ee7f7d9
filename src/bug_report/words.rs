//! Lists the fields of resources that contain private names, and those whose text may be a secret.

/// The meaning of a field's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A name of this kind, with the same placeholder everywhere.
    Name(&'static str),
    /// A URL, whose host is a name.
    Address,
    /// Private text that explains nothing, so it is left out.
    Hidden,
    /// Text without private data that helps to understand a problem.
    Plain,
}

use self::Meaning::{Address, Hidden, Name, Plain};

/// Fields whose text helps to understand a problem.
const PLAIN: &[&str] = &[
    "action",
    "after",
    "applies",
    "changes",
    "checkedAt",
    "cluster",
    "completedAt",
    "createdAt",
    "deadline",
    "declared",
    "deletion",
    "disruption",
    "duration",
    "end",
    "error",
    "every",
    "existing",
    "ignore",
    "jitter",
    "key",
    "kind",
    "lastActive",
    "lastHandledReconcileAt",
    "lastHandledRotate",
    "lastTransitionTime",
    "lastUsedAt",
    "localFileCache",
    "management",
    "massDeletionPolicy",
    "memory",
    "message",
    "missed",
    "mode",
    "next",
    "nextRestart",
    "onMissing",
    "onRevoked",
    "operator",
    "organizationKeysAt",
    "overlap",
    "overridden",
    "passwordKey",
    "pendingState",
    "policy",
    "pollInterval",
    "postgresSettings",
    "previousKey",
    "reason",
    "record",
    "region",
    "requestedAt",
    "restartToken",
    "revokeAt",
    "revokePrevious",
    "rotatedAt",
    "schedule",
    "secretUID",
    "secretVersion",
    "setting",
    "since",
    "size",
    "start",
    "startingDeadline",
    "state",
    "status",
    "timeZone",
    "token",
    "type",
    "unseenSince",
    "until",
    "unusedFor",
    "usernameKey",
    "vcpu",
];

/// The meaning of a field, by its name in the definitions. The elements of a list and the values of
/// a map have the meaning of their field. `None` if no definition has the field.
pub fn meaning(field: &str) -> Option<Meaning> {
    Some(match field {
        "name" => Name("name"),
        "namespace" | "names" => Name("namespace"),
        "organizationID" | "organization" => Name("organization"),
        "projectID" | "projects" | "project" => Name("project"),
        "branchID" | "branch" => Name("branch"),
        "computeID" => Name("compute"),
        "id" => Name("operation"),
        "database" => Name("database"),
        "secretName" | "connectionSecret" | "unusedSecrets" => Name("secret"),
        "keyName" | "acknowledgedKeys" => Name("key"),
        "host" | "pooledHost" => Name("host"),
        "createdBy" => Name("person"),
        "lastUsedFrom" => Name("address"),
        "baseURL" => Address,
        "annotations" | "labels" | "matchLabels" | "template" | "values" | "selector" => Hidden,
        plain if PLAIN.contains(&plain) => Plain,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::controller::definitions;

    fn texts(schema: &Value, field: &str, found: &mut BTreeSet<String>) {
        if schema["type"] == "string" {
            found.insert(field.to_owned());
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            texts(schema, name, found);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                texts(&schema[inner], field, found);
            }
        }
    }

    #[test]
    fn every_text_of_the_definitions_has_a_meaning() {
        let mut found = BTreeSet::new();
        for definition in definitions() {
            let definition = serde_json::to_value(definition).unwrap();
            for version in definition["spec"]["versions"].as_array().unwrap() {
                texts(&version["schema"]["openAPIV3Schema"], "", &mut found);
            }
        }
        assert!(
            found.contains("projectID") && found.contains("template"),
            "{found:?}"
        );
        found.retain(|field| meaning(field).is_none());
        assert_eq!(found, BTreeSet::new(), "say in `meaning` what these hold");
    }
}
