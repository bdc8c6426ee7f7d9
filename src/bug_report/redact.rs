//! Removes private data from a report: names become distinct placeholders, and text in the form of
//! a token is removed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words::{Meaning, meaning};
use crate::api::GROUP;
use crate::platform::{replace_runs, without_tokens};
use crate::telemetry::metrics::OTHER;

const HIDDEN: &str = "[hidden]";
/// Names that are the same in many clusters.
const PUBLIC: [&str; 4] = ["default", "dbplane", "dbplane-system", "kube-system"];
/// Digests of images look like tokens.
const IMAGE: &str = "image";

/// The names of a cluster's objects, and their placeholders.
#[derive(Debug, Default)]
pub struct Names {
    words: BTreeMap<String, String>,
    /// Number of names of each kind.
    counts: BTreeMap<&'static str, usize>,
}

impl Names {
    /// Collects the names in an object.
    pub fn add_from(&mut self, value: &Value) {
        self.add_from_field("", value);
    }

    /// Collects the names in the labels of metrics.
    pub fn add_from_metrics(&mut self, text: &str) {
        for (label, sort) in [("namespace=\"", "namespace"), ("account=\"", "account")] {
            for (start, _) in text.match_indices(label) {
                let rest = &text[start + label.len()..];
                let name = rest.split('"').next().unwrap_or_default();
                // The rest of the accounts has this label.
                if name != OTHER {
                    self.add(sort, name);
                }
            }
        }
    }

    fn add_from_field(&mut self, field: &str, value: &Value) {
        match value {
            Value::String(text) => match meaning(field) {
                Some(Meaning::Name(sort)) => self.add(sort, text),
                Some(Meaning::Address) => self.add("host", host(text)),
                Some(Meaning::Hidden | Meaning::Plain) | None => self.add_ids(text),
            },
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.add_from_field(field, item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    // The entries of a map count as values of its field.
                    let known = meaning(name).is_some() || !value.is_string();
                    self.add_from_field(if known { name } else { field }, value);
                }
            }
            _ => {}
        }
    }

    /// Adds the platform's identifiers in a text: no resource has those of deleted computes.
    fn add_ids(&mut self, text: &str) {
        for run in text.split(|c| !is_of_name(c)) {
            let name = run.trim_matches(is_joint);
            let id = name.split('.').next().unwrap_or(name);
            if let Some(sort) = id_sort(id) {
                self.add(if id == name { sort } else { "host" }, name);
            }
        }
    }

    fn add(&mut self, sort: &'static str, name: &str) {
        if name.is_empty() || PUBLIC.contains(&name) || self.words.contains_key(name) {
            return;
        }
        let count = self.counts.entry(sort).or_default();
        *count += 1;
        self.words
            .insert(name.to_owned(), format!("{sort}-{count}"));
    }

    /// The same value without names, tokens and hidden texts.
    pub fn redact(&self, value: &Value) -> Value {
        self.redact_field("", value)
    }

    fn redact_field(&self, field: &str, value: &Value) -> Value {
        match value {
            Value::String(text) if meaning(field) == Some(Meaning::Hidden) && !text.is_empty() => {
                HIDDEN.into()
            }
            Value::String(text) if field == IMAGE => self.without_names(text).into(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items
                .iter()
                .map(|item| self.redact_field(field, item))
                .collect(),
            Value::Object(fields) => {
                let hidden = meaning(field) == Some(Meaning::Hidden);
                let redacted = fields.iter().map(|(name, value)| {
                    let inner = if hidden && value.is_string() {
                        field
                    } else {
                        name
                    };
                    (name.clone(), self.redact_field(inner, value))
                });
                Value::Object(redacted.collect())
            }
            other => other.clone(),
        }
    }

    /// A text without names and tokens.
    pub fn text(&self, text: &str) -> String {
        without_tokens(&self.without_names(text))
    }

    fn without_names(&self, text: &str) -> String {
        replace_runs(text, is_of_name, |run| self.run(run))
    }

    /// Replaces a run of letters, digits and joining characters, if it is a name. A part of a word
    /// is none: `dev` is a namespace, and also the end of a group of Kubernetes.
    fn run(&self, run: &str) -> String {
        let name = run.trim_end_matches(is_joint);
        let end = &run[name.len()..];
        if is_public(name) {
            return run.to_owned();
        }
        let whole = self.words.get(name).or_else(|| self.words.get(run));
        if let Some(word) = whole {
            let end = if self.words.contains_key(name) {
                end
            } else {
                ""
            };
            return format!("{word}{end}");
        }
        match self.generated(name) {
            Some(text) => text + end,
            None => run.to_owned(),
        }
    }

    /// A name that was made of another one, as those of Pods, replicas and keys: `orders-read-x7k2p`.
    fn generated(&self, name: &str) -> Option<String> {
        let ends = name.match_indices('-').map(|(end, _)| end);
        ends.rev().find_map(|end| {
            let word = self.words.get(&name[..end])?;
            let mut parts = name[end + 1..].split('-');
            parts
                .all(is_generated)
                .then(|| format!("{word}{}", &name[end..]))
        })
    }
}

/// The group of our own kinds, and names in it: no name of a user.
fn is_public(name: &str) -> bool {
    name == GROUP || name.ends_with(&format!(".{GROUP}"))
}

/// A part of a name that a program has made: long enough, and no word.
fn is_generated(part: &str) -> bool {
    let is_word =
        !part.contains(|c: char| c.is_ascii_digit()) && part.contains(['a', 'e', 'i', 'o', 'u']);
    part.len() >= 5 && !is_word
}

/// The kind of object with an identifier of this form: `ep-cool-darkness-123456`, `br-main-42` or,
/// for a project, `aged-wind-123456`.
fn id_sort(id: &str) -> Option<&'static str> {
    let parts: Vec<&str> = id.split('-').collect();
    let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase());
    match parts.as_slice() {
        ["ep", _, ..] => Some("compute"),
        ["br", _, ..] => Some("branch"),
        ["org", _, ..] => Some("organization"),
        [first, second, number]
            if is_word(first)
                && is_word(second)
                && number.len() >= 6
                && number.contains(|c: char| c.is_ascii_digit()) =>
        {
            Some("project")
        }
        _ => None,
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || is_joint(c)
}

fn is_joint(c: char) -> bool {
    matches!(c, '-' | '.' | '_' | '@')
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', ':', '?']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(objects: &[Value]) -> Names {
        let mut names = Names::default();
        objects.iter().for_each(|object| names.add_from(object));
        names
    }

    #[test]
    fn names_in_the_labels_of_metrics_are_replaced() {
        let text = r#"dbplane_account_info{namespace="shop",kind="Account",account="prod"} 1
dbplane_account_info{namespace="shop",kind="Account",account="other"} 2"#;
        let mut names = Names::default();
        names.add_from_metrics(text);
        let expected = r#"dbplane_account_info{namespace="namespace-1",kind="Account",account="account-1"} 1
dbplane_account_info{namespace="namespace-1",kind="Account",account="other"} 2"#;
        assert_eq!(names.text(text), expected);
    }

    #[test]
    fn a_name_is_the_same_word_wherever_it_stands() {
        let compute = json!({
            "kind": "Compute",
            "metadata": {"namespace": "bank", "name": "orders", "ownerReferences": [{"kind": "ReadReplicaSet", "name": "reports"}]},
            "spec": {"accountRef": {"name": "prod"}, "projectID": "aged-wind-1", "branchID": "br-main-42"},
            "status": {"host": "ep-cool-1.eu.platform.example", "conditions": [
                {"type": "Ready", "message": "branch br-main-42 of project aged-wind-1 (orders, bank/orders) is not there."},
            ]},
        });
        let redacted = names(std::slice::from_ref(&compute)).redact(&compute);
        assert_eq!(redacted["kind"], "Compute");
        let (branch, project) = (
            &redacted["spec"]["branchID"],
            &redacted["spec"]["projectID"],
        );
        let (namespace, name) = (
            &redacted["metadata"]["namespace"],
            &redacted["metadata"]["name"],
        );
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let expected = format!(
            "branch {} of project {} ({name}, {}/{name}) is not there.",
            text(branch),
            text(project),
            text(namespace),
            name = text(name),
        );
        assert_eq!(redacted["status"]["conditions"][0]["message"], expected);
        let whole = redacted.to_string();
        for name in [
            "bank",
            "orders",
            "reports",
            "prod",
            "aged-wind",
            "br-main",
            "ep-cool",
            "platform.example",
        ] {
            assert!(!whole.contains(name), "{name} is in {whole}");
        }
    }

    #[test]
    fn names_that_are_joined_to_others_are_found() {
        let objects = [
            json!({"metadata": {"name": "ci", "namespace": "shop"}, "spec": {"baseURL": "https://api.platform.example:8443/v2"}}),
        ];
        let names = names(&objects);
        for (text, redacted) in [
            ("ci-k3j9ab", "name-1-k3j9ab"),
            ("Lease dbplane of shop.", "Lease dbplane of namespace-1."),
            (
                "GET https://api.platform.example:8443/v2 failed",
                "GET https://host-1:8443/v2 failed",
            ),
            (
                "ci-c1u57e-vpzc5qrz22arf-000000ff",
                "name-1-c1u57e-vpzc5qrz22arf-000000ff",
            ),
            ("cities are not meant", "cities are not meant"),
            (
                "a workshop, the ci-system and shop-window",
                "a workshop, the ci-system and shop-window",
            ),
        ] {
            assert_eq!(names.text(text), redacted);
        }
    }

    #[test]
    fn our_own_group_is_no_name() {
        let objects =
            ["dev", "dbplane.dev", "accounts"].map(|name| json!({"metadata": {"namespace": name}}));
        let names = names(&objects);
        for text in [
            "accounts.dbplane.dev is forbidden",
            "dbplane.dev/v1alpha1",
            "deployments.apps",
        ] {
            assert_eq!(names.text(text), text);
        }
        assert_eq!(names.text("in namespace dev."), "in namespace namespace-1.");
    }

    #[test]
    fn an_identifier_that_no_resource_has_is_replaced() {
        let note = "deleted ep-cool-darkness-123456 (ep-cool-darkness-123456.eu.platform.example) of br-old-7 in aged-wind-654321";
        let event = json!({"note": note, "type": "Normal"});
        let redacted = names(std::slice::from_ref(&event)).redact(&event);
        assert_eq!(
            redacted["note"],
            "deleted compute-1 (host-1) of branch-1 in project-1"
        );
    }

    #[test]
    fn what_may_be_a_secret_is_left_out() {
        let key = json!({
            "spec": {"secret": {"template": {"url": "https://user:hunter2@example.com"}, "labels": {"team": "gold"}}},
            "status": {"conditions": [{"message": "refused napi_3kd9s0qwlx82mzn4", "reason": "Refused"}]},
            "image": "registry.example/dbplane@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        });
        let redacted = Names::default().redact(&key);
        assert_eq!(
            redacted["spec"]["secret"],
            json!({"template": {"url": HIDDEN}, "labels": {"team": HIDDEN}})
        );
        assert_eq!(
            redacted["status"]["conditions"][0],
            json!({"message": "refused [redacted]", "reason": "Refused"})
        );
        assert_eq!(redacted["image"], key["image"]);
    }
}
