//! Checks the manifests of dbplane in a text, and locates their problems in it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::document::{Node, Position, chunks};
use super::{Check, Checker, ManifestProblem};
use crate::api::GROUP;

const OF_TEMPLATE: &str =
    "if it is a template, check what it becomes, such as: helm template CHART | dbplane validate -";

/// The results for one text.
#[derive(Debug, Default)]
pub struct CheckOutcome {
    /// The objects of dbplane, and the unreadable documents that may contain some.
    pub checked: Vec<Checked>,
    /// Number of objects of other kinds.
    pub skipped: usize,
}

/// An object and its problems.
#[derive(Debug)]
pub struct Checked {
    /// Kind, namespace and name, such as `Compute shop/orders`; `None` for an unreadable document.
    pub object: Option<String>,
    /// The beginning of the object.
    pub position: Position,
    pub findings: Vec<Finding>,
}

/// A problem and its position.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Finding {
    #[serde(flatten)]
    pub position: Position,
    /// The path in the object, such as `spec.size.fixed`; empty for the whole object.
    pub path: String,
    pub message: String,
    /// Advice, if the message contains none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    pub check: Check,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.check.fmt(&self.path, &self.message, f)
    }
}

impl Checker {
    /// Checks the manifests of dbplane in a stream of YAML or JSON, including those in lists.
    pub fn check_text(&self, text: &str) -> CheckOutcome {
        let mut outcome = CheckOutcome::default();
        for chunk in chunks(text) {
            match chunk.parse() {
                Ok(nodes) => nodes.iter().for_each(|node| self.visit(node, &mut outcome)),
                // A template of another tool, for instance: a text without the group contains no
                // manifest of dbplane.
                Err(_) if !chunk.text.contains(GROUP) => outcome.skipped += 1,
                Err(unreadable) => {
                    let finding = Finding {
                        position: unreadable.position,
                        path: String::new(),
                        message: format!("cannot be read as YAML: {}", unreadable.message),
                        help: chunk.text.contains("{{").then(|| OF_TEMPLATE.to_owned()),
                        check: Check::Yaml,
                    };
                    let position = unreadable.position;
                    outcome.checked.push(Checked {
                        object: None,
                        position,
                        findings: vec![finding],
                    });
                }
            }
        }
        outcome
    }

    fn visit(&self, node: &Node, outcome: &mut CheckOutcome) {
        let api_version = node.text("apiVersion").unwrap_or_default();
        let kind = node.text("kind").unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let is_list =
            kind == "List" && group.is_empty() || kind.ends_with("List") && group == GROUP;
        let items = node.get("items").and_then(Node::items);
        if let Some(items) = items
            && is_list
        {
            for item in items {
                self.visit(item, outcome);
            }
        } else if group == GROUP
            || (group.is_empty() && self.kinds.iter().any(|known| known.kind == kind))
        {
            outcome.checked.push(self.judge(node));
        } else {
            outcome.skipped += 1;
        }
    }

    fn judge(&self, node: &Node) -> Checked {
        let manifest = node.value();
        let problems = self.check(&manifest, None).err().unwrap_or_default();
        let mut findings: Vec<Finding> = problems
            .into_iter()
            .map(|problem| found(node, problem))
            .collect();
        findings.sort_by_key(|finding| (finding.position.line, finding.position.column));
        Checked {
            object: Some(title(&manifest)),
            position: node.position(),
            findings,
        }
    }
}

/// The objects in a stream of YAML or JSON, including those in lists. Unreadable documents are left
/// out.
pub fn objects(text: &str) -> Vec<Value> {
    chunks(text)
        .iter()
        .filter_map(|chunk| chunk.parse().ok())
        .flatten()
        .flat_map(|node| each(node.value()))
        .collect()
}

fn each(mut value: Value) -> Vec<Value> {
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().flat_map(each).collect(),
        _ => vec![value],
    }
}

fn found(node: &Node, problem: ManifestProblem) -> Finding {
    let position = match problem.check {
        Check::UnknownField => node.locate_key(&problem.path),
        _ => node.locate(&problem.path),
    };
    let ManifestProblem {
        path,
        message,
        help,
        check,
    } = problem;
    Finding {
        position,
        path,
        message,
        help,
        check,
    }
}

fn title(manifest: &Value) -> String {
    let kind = manifest["kind"].as_str().unwrap_or("object");
    let metadata = &manifest["metadata"];
    let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => "without a name".to_owned(),
    };
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests;
