//! Finds fields and words in the platform's answers that dbplane does not know. Values are not
//! repeated, except for words that look like those of a closed set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The known fields of a list's entries.
struct KnownList {
    list: &'static str,
    /// Fields that dbplane needs or shows to users.
    expected: &'static [&'static str],
    /// Optional fields, and fields that dbplane ignores.
    optional: &'static [&'static str],
    /// The known words of a field.
    words: &'static [(&'static str, &'static [&'static str])],
}

/// The list of keys is an array without a name.
const KEYS: &str = "keys";
const STATES: &[&str] = &["init", "active", "idle"];

const KNOWN: [KnownList; 4] = [
    KnownList {
        list: "projects",
        expected: &["id", "name"],
        optional: &[
            "org_id",
            "org_name",
            "locked",
            "owner_id",
            "platform_id",
            "region_id",
            "provisioner",
            "default_endpoint_settings",
            "settings",
            "pg_version",
            "proxy_host",
            "branch_logical_size_limit",
            "branch_logical_size_limit_bytes",
            "store_passwords",
            "active_time",
            "cpu_used_sec",
            "creation_source",
            "created_at",
            "updated_at",
            "synthetic_storage_size",
            "quota_reset_at",
            "compute_last_active_at",
            "maintenance_starts_at",
            "maintenance_scheduled_for",
            "history_retention_seconds",
            "hipaa_enabled_at",
            "deleted_at",
            "recoverable_until",
        ],
        words: &[],
    },
    KnownList {
        list: "endpoints",
        expected: &[
            "id",
            "branch_id",
            "type",
            "host",
            "current_state",
            "autoscaling_limit_min_cu",
            "autoscaling_limit_max_cu",
            "disabled",
            "created_at",
            "updated_at",
        ],
        optional: &[
            "project_id",
            "region_id",
            "hosts",
            "name",
            "pending_state",
            "suspend_timeout_seconds",
            "settings",
            "pooler_enabled",
            "pooler_mode",
            "passwordless_access",
            "last_active",
            "started_at",
            "suspended_at",
            "creation_source",
            "proxy_host",
            "provisioner",
            "compute_release_version",
            "slug",
            "branch_slug",
            "project_slug",
            "group",
        ],
        words: &[
            ("type", &["read_write", "read_only"]),
            ("current_state", STATES),
            ("pending_state", STATES),
            ("pooler_mode", &["transaction"]),
        ],
    },
    KnownList {
        list: "operations",
        expected: &["id", "action", "status"],
        optional: &[
            "project_id",
            "branch_id",
            "endpoint_id",
            "failures_count",
            "error",
            "retry_at",
            "created_at",
            "updated_at",
            "total_duration_ms",
        ],
        words: &[(
            "status",
            &[
                "scheduling",
                "running",
                "finished",
                "failed",
                "error",
                "cancelling",
                "cancelled",
                "skipped",
            ],
        )],
    },
    KnownList {
        list: KEYS,
        expected: &["id", "name"],
        optional: &[
            "project_id",
            "created_at",
            "created_by",
            "last_used_at",
            "last_used_from_addr",
            "revoked",
        ],
        words: &[],
    },
];

/// One line for each unknown or missing field and for each unknown word, with the number of
/// entries.
pub fn differences(bodies: &[Value]) -> Vec<String> {
    KNOWN
        .iter()
        .flat_map(|known| known.differences(&entries(known.list, bodies)))
        .collect()
}

fn entries<'a>(list: &str, bodies: &'a [Value]) -> Vec<&'a Map<String, Value>> {
    let listed = bodies.iter().filter_map(|body| {
        if list == KEYS {
            body.as_array()
        } else {
            body[list].as_array()
        }
    });
    listed.flatten().filter_map(Value::as_object).collect()
}

impl KnownList {
    fn differences(&self, entries: &[&Map<String, Value>]) -> Vec<String> {
        let Self { list, expected, .. } = self;
        let mut counted = BTreeMap::<String, usize>::new();
        for entry in entries {
            let missing = expected
                .iter()
                .filter(|field| entry.get(**field).is_none_or(Value::is_null));
            let missing = missing.map(|field| format!("`{field}` is missing"));
            let unknown = entry.keys().filter(|field| !self.knows(field));
            let unknown = unknown.map(|field| format!("`{}` is not known", printable(field)));
            let lines: BTreeSet<String> = missing
                .chain(unknown)
                .chain(self.other_words(entry))
                .collect();
            lines
                .into_iter()
                .for_each(|line| *counted.entry(line).or_default() += 1);
        }
        let all = entries.len();
        counted
            .into_iter()
            .map(|(line, count)| format!("{list}: {line} in {count} of {all}"))
            .collect()
    }

    fn knows(&self, field: &str) -> bool {
        self.expected.contains(&field) || self.optional.contains(&field)
    }

    fn other_words(&self, entry: &Map<String, Value>) -> impl Iterator<Item = String> {
        self.words.iter().filter_map(|(field, words)| {
            let word = entry
                .get(*field)?
                .as_str()
                .filter(|word| !word.is_empty() && !words.contains(word))?;
            Some(format!(
                "`{field}` is `{}`, which is not known,",
                printable(word)
            ))
        })
    }
}

/// A field name or a word. Text of any other form may be anything.
fn printable(text: &str) -> &str {
    let is_word = text.len() <= 40 && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_word { text } else { "(of another form)" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_known_is_no_difference() {
        let compute = json!({
            "id": "ep-1", "branch_id": "br-1", "type": "read_only", "host": "h", "current_state": "idle", "pending_state": "",
            "autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 2, "disabled": false, "created_at": "t",
            "updated_at": "t", "pooler_mode": "transaction",
        });
        let key = json!({"id": 1, "name": "ci", "last_used_at": null});
        assert_eq!(
            differences(&[
                json!({"endpoints": [compute]}),
                json!([key]),
                json!({"operations": []})
            ]),
            [""; 0]
        );
    }

    #[test]
    fn fields_and_words_are_counted_and_values_are_not_repeated() {
        let entry =
            |word: &str| json!({"id": "1", "action": "a", "status": word, "Secret-9": "canary-1"});
        let other = json!({"id": "canary-2", "status": "finished", "weight": 1});
        let found =
            differences(&[json!({"operations": [entry("paused"), entry("9f86d081"), other]})]);
        assert_eq!(
            found,
            [
                "operations: `(of another form)` is not known in 2 of 3",
                "operations: `action` is missing in 1 of 3",
                "operations: `status` is `(of another form)`, which is not known, in 1 of 3",
                "operations: `status` is `paused`, which is not known, in 1 of 3",
                "operations: `weight` is not known in 1 of 3",
            ]
        );
    }
}
