//! Answers with an entry that is not as it should be, or with a state that nobody knows: what ordered faults make of the right answer.

use serde_json::Value;

use super::faults::{Fault, FaultKind};

/// The lists that are members of an answer. The list of keys is the answer itself.
const LISTS: [&str; 4] = ["projects", "branches", "endpoints", "operations"];
const STATE: &str = "current_state";

/// The body with what the fault orders; as it is where it has nothing of that kind.
pub fn altered(body: &[u8], fault: &Fault) -> Vec<u8> {
    let Ok(mut answer) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    let wanted = |entry: &Value| fault.entry.as_ref().is_none_or(|wanted| id(entry) == *wanted);
    match fault.kind {
        FaultKind::OddEntry => {
            let found = entries(&mut answer).into_iter().find(|entry| wanted(entry));
            if let Some(entry) = found {
                put(entry, fault.field.as_deref().unwrap_or_default(), fault.body.clone());
            }
        }
        FaultKind::State => {
            let state = fault.body.clone().unwrap_or_else(|| "failed".into());
            let field = fault.field.as_deref().unwrap_or(STATE);
            let found = computes(&mut answer).into_iter().filter(|entry| wanted(entry));
            found.for_each(|entry| put(entry, field, Some(state.clone())));
        }
        _ => return body.to_vec(),
    }
    answer.to_string().into_bytes()
}

/// Without a value, removes the field. Without a field, replaces the entry itself.
fn put(entry: &mut Value, field: &str, value: Option<Value>) {
    match (entry.as_object_mut(), value) {
        (Some(members), None) => drop(members.remove(field)),
        (Some(members), Some(value)) if !field.is_empty() => drop(members.insert(field.to_owned(), value)),
        (_, value) => *entry = value.unwrap_or_default(),
    }
}

fn entries(answer: &mut Value) -> Vec<&mut Value> {
    match answer {
        Value::Array(keys) => keys.iter_mut().collect(),
        Value::Object(members) => {
            let lists = members.iter_mut().filter(|(name, _)| LISTS.contains(&name.as_str()));
            lists.filter_map(|(_, list)| list.as_array_mut()).flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Finds the computes of a list, or the single compute of an answer.
fn computes(answer: &mut Value) -> Vec<&mut Value> {
    let Some(members) = answer.as_object_mut() else { return Vec::new() };
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
