//! Removes private data from a report: names become distinct placeholders, and text in the form of
//! a token is removed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words::{Meaning, meaning};
use crate::platform::{replace_runs, without_tokens};

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

    fn add_from_field(&mut self, field: &str, value: &Value) {
        match value {
            Value::String(text) => match meaning(field) {
                Some(Meaning::Name(sort)) => self.add(sort, text),
                Some(Meaning::Address) => self.add("host", host(text)),
                Some(Meaning::Hidden | Meaning::Plain) | None => {}
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

    /// Replaces the names in a run of letters, digits and joining characters. The run may contain
    /// several names.
    fn run(&self, run: &str) -> String {
        let parts: Vec<&str> = run.split_inclusive(is_joint).collect();
        let (mut clean, mut from) = (String::new(), 0);
        while let Some(part) = parts.get(from) {
            let longest = (from + 1..=parts.len()).rev().find_map(|to| {
                let joined = parts[from..to].concat();
                let name = joined.trim_end_matches(is_joint);
                let word = self.words.get(name).or_else(|| self.words.get(&joined))?;
                let joint = if self.words.contains_key(name) {
                    &joined[name.len()..]
                } else {
                    ""
                };
                Some((to, format!("{word}{joint}")))
            });
            let (to, text) = longest.unwrap_or_else(|| (from + 1, (*part).to_owned()));
            clean.push_str(&text);
            from = to;
        }
        clean
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
            ("cities are not meant", "cities are not meant"),
        ] {
            assert_eq!(names.text(text), redacted);
        }
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
