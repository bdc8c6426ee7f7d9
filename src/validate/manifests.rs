//! A text of several manifests: those of dbplane are checked, and what is wrong with them is found in the text.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::document::{Node, Position, chunks};
use super::{Check, Checker, Problem};
use crate::api::GROUP;

/// What was found in one text.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The objects of dbplane, and the documents that may have been some.
    pub checked: Vec<Checked>,
    /// How many objects of other kinds there are.
    pub skipped: usize,
}

/// An object and what is wrong with it.
#[derive(Debug)]
pub struct Checked {
    /// Kind, namespace and name, such as `Compute shop/orders`; nothing of a document that cannot be read.
    pub object: Option<String>,
    /// Where it begins.
    pub position: Position,
    pub findings: Vec<Finding>,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Finding {
    #[serde(flatten)]
    pub position: Position,
    /// Where in the object, such as `spec.size.fixed`; empty where it is the object as a whole.
    pub path: String,
    pub message: String,
    /// What to do, where the message does not say it.
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
    /// Checks the manifests of dbplane in a stream of YAML or JSON, those in lists too.
    pub fn check_text(&self, text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        for chunk in chunks(text) {
            match chunk.parse() {
                Ok(nodes) => nodes.iter().for_each(|node| self.visit(node, &mut outcome)),
                // Templates of other tools, for instance: what does not name the group holds nothing of it.
                Err(_) if !chunk.text.contains(GROUP) => outcome.skipped += 1,
                Err(unreadable) => {
                    let finding = Finding {
                        position: unreadable.position,
                        path: String::new(),
                        message: format!("cannot be read as YAML: {}", unreadable.message),
                        help: None,
                        check: Check::Yaml,
                    };
                    let position = unreadable.position;
                    outcome.checked.push(Checked { object: None, position, findings: vec![finding] });
                }
            }
        }
        outcome
    }

    fn visit(&self, node: &Node, outcome: &mut Outcome) {
        let (api_version, kind) = (node.text("apiVersion").unwrap_or_default(), node.text("kind").unwrap_or_default());
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let is_list = kind == "List" && group.is_empty() || kind.ends_with("List") && group == GROUP;
        if let Some(items) = node.get("items").and_then(Node::items).filter(|_| is_list) {
            items.iter().for_each(|item| self.visit(item, outcome));
        } else if group == GROUP || (group.is_empty() && self.kinds.iter().any(|known| known.kind == kind)) {
            outcome.checked.push(self.judge(node));
        } else {
            outcome.skipped += 1;
        }
    }

    fn judge(&self, node: &Node) -> Checked {
        let manifest = node.value();
        let problems = self.check(&manifest, None).err().unwrap_or_default();
        let mut findings: Vec<Finding> = problems.into_iter().map(|problem| found(node, problem)).collect();
        findings.sort_by_key(|finding| (finding.position.line, finding.position.column));
        Checked { object: Some(title(&manifest)), position: node.position(), findings }
    }
}

/// The objects in a stream of YAML or JSON, those in lists too, without documents that cannot be read.
pub fn objects(text: &str) -> Vec<Value> {
    chunks(text).iter().filter_map(|chunk| chunk.parse().ok()).flatten().flat_map(|node| each(node.value())).collect()
}

fn each(mut value: Value) -> Vec<Value> {
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().flat_map(each).collect(),
        _ => vec![value],
    }
}

fn found(node: &Node, problem: Problem) -> Finding {
    let position = match problem.check {
        Check::UnknownField => node.locate_key(&problem.path),
        _ => node.locate(&problem.path),
    };
    let Problem { path, message, help, check } = problem;
    Finding { position, path, message, help, check }
}

fn title(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &manifest["metadata"];
    let generated = || text(&metadata["generateName"]).map(|prefix| format!("{prefix}*"));
    let name = text(&metadata["name"]).or_else(generated).unwrap_or_else(|| "without a name".to_owned());
    let name = text(&metadata["namespace"]).map_or(name.clone(), |namespace| format!("{namespace}/{name}"));
    format!("{} {name}", manifest["kind"].as_str().unwrap_or("object"))
}

#[cfg(test)]
#[path = "manifests_tests.rs"]
mod tests;
