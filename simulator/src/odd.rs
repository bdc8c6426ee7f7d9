//! Answers with a malformed list entry, or with an unknown compute state.

use serde_json::Value;

use super::faults::Fault;

/// The lists that are members of an answer. The list of keys is the answer itself.
const LISTS: [&str; 4] = ["projects", "branches", "endpoints", "operations"];
const STATE: &str = "current_state";

/// Changes or removes a field of one list entry, or replaces the entry.
pub fn with_odd_entry(answer: &mut Value, fault: &Fault) {
    if let Some(entry) = entries(answer)
        .into_iter()
        .find(|entry| is_wanted(entry, fault))
    {
        put(
            entry,
            fault.field.as_deref().unwrap_or_default(),
            fault.body.clone(),
        );
    }
}

/// Sets the state of one or all computes.
pub fn with_state(answer: &mut Value, fault: &Fault) {
    let state = fault.body.clone().unwrap_or_else(|| "failed".into());
    let field = fault.field.as_deref().unwrap_or(STATE);
    for entry in computes(answer)
        .into_iter()
        .filter(|entry| is_wanted(entry, fault))
    {
        put(entry, field, Some(state.clone()));
    }
}

fn is_wanted(entry: &Value, fault: &Fault) -> bool {
    fault
        .entry
        .as_ref()
        .is_none_or(|wanted| id(entry) == *wanted)
}

/// Without a value, removes the field. Without a field, replaces the entry itself.
fn put(entry: &mut Value, field: &str, value: Option<Value>) {
    match (entry.as_object_mut(), value) {
        (Some(members), None) => drop(members.remove(field)),
        (Some(members), Some(value)) if !field.is_empty() => {
            drop(members.insert(field.to_owned(), value))
        }
        (_, value) => *entry = value.unwrap_or_default(),
    }
}

fn entries(answer: &mut Value) -> Vec<&mut Value> {
    match answer {
        Value::Array(keys) => keys.iter_mut().collect(),
        Value::Object(members) => {
            let lists = members
                .iter_mut()
                .filter(|(name, _)| LISTS.contains(&name.as_str()));
            lists
                .filter_map(|(_, list)| list.as_array_mut())
                .flatten()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Finds the computes of a list, or the single compute of an answer.
fn computes(answer: &mut Value) -> Vec<&mut Value> {
    let Some(members) = answer.as_object_mut() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, member) in members.iter_mut() {
        match (name.as_str(), member) {
            ("endpoints", Value::Array(list)) => found.extend(list.iter_mut()),
            ("endpoint", one) => found.push(one),
            _ => {}
        }
    }
    found
}

/// Ids of keys are numbers.
fn id(entry: &Value) -> String {
    match &entry["id"] {
        Value::String(id) => id.clone(),
        other => other.to_string(),
    }
}
