//! The status of one resource, as a document.

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use serde::Serialize;
use serde_json::{Value, json};

use super::collect::{FoundOne, NotRead, OperatorStatus, is_account, last_seen};
use super::fleet::{AccountLine, ListedResource, StatusGroup};
use crate::api::{Condition, Rotation};
use crate::cli::act;
use crate::cli::advice;
use crate::cli::resource::ObservedResource;
use crate::cli::screen::one_line;
use crate::decide::Reason;
use crate::decide::key::due_regularly;

/// Fields are only ever added.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePage {
    pub kind: &'static str,
    pub resource: ListedResource,
    pub needs: StatusGroup,
    pub declared: Value,
    /// The status, without the parts that other fields show and those that only dbplane reads.
    pub there: Value,
    /// The settings that are not applied, according to the conditions.
    pub differs: Option<String>,
    pub conditions: Vec<ShownCondition>,
    pub next: Vec<ComingChange>,
    pub last_operation: Option<Value>,
    /// Newest first.
    pub events: Vec<ShownEvent>,
    pub account: Option<AccountLine>,
    pub operator: Option<OperatorStatus>,
    /// The advice of docs/conditions.md for the reason.
    pub advice: Option<String>,
    pub commands: Vec<String>,
    pub not_read: Vec<NotRead>,
}

/// A condition, without the parts that only programs compare.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub since: Timestamp,
}

/// The next thing to happen.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComingChange {
    pub what: String,
    /// The latest time; absent if it is part of the text.
    pub at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownEvent {
    pub at: Option<Timestamp>,
    pub times: i32,
    pub reason: Option<String>,
    pub note: Option<String>,
}

/// Parts of a status that the page shows elsewhere, or that are only for dbplane and other tools.
const ELSEWHERE: [&str; 6] = [
    "conditions",
    "lastOperation",
    "record",
    "observedGeneration",
    "lastHandledReconcileAt",
    "waiting",
];

impl ResourcePage {
    pub fn of(found: FoundOne) -> Self {
        let FoundOne {
            resource,
            account,
            events,
            operator,
            metrics,
            not_read,
        } = found;
        let need = resource.need();
        let state = StatusGroup::from(need.what);
        let reason = need
            .condition
            .and_then(|condition| Reason::of(&condition.reason));
        let advice = match reason {
            Some(reason) if state != StatusGroup::Well => Some(advice::about(reason)),
            _ => None,
        };
        let of_itself = is_account(&resource.kind).then_some(&resource);
        Self {
            kind: "ResourceStatus",
            needs: state,
            declared: resource.spec.clone(),
            there: there(&resource.status),
            differs: differs(&resource),
            conditions: resource.conditions.iter().map(ShownCondition::of).collect(),
            next: next(&resource),
            last_operation: resource.status.get("lastOperation").cloned(),
            events: events.iter().map(ShownEvent::of).collect(),
            account: account
                .as_ref()
                .or(of_itself)
                .map(|account| AccountLine::of(account, None, metrics.as_deref())),
            operator,
            advice,
            commands: commands(&resource),
            not_read,
            resource: ListedResource::of(&resource),
        }
    }
}

impl ShownCondition {
    fn of(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        }
    }
}

impl ShownEvent {
    fn of(event: &Event) -> Self {
        Self {
            at: last_seen(event),
            times: event.series.as_ref().map_or(1, |series| series.count),
            reason: event.reason.as_deref().map(one_line),
            note: event.note.as_deref().map(one_line),
        }
    }
}

fn there(status: &Value) -> Value {
    let mut fields = status.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    Value::Object(fields)
}

fn differs(resource: &ObservedResource) -> Option<String> {
    match resource.condition("Synced") {
        Some(synced) if synced.status == "False" => Some(synced.message.clone()),
        _ => resource.text("/waiting/changes").map(str::to_owned),
    }
}

/// The changes that will happen without any action of the user, and their times.
fn next(resource: &ObservedResource) -> Vec<ComingChange> {
    let mut next = Vec::new();
    if let Some(changes) = resource.text("/waiting/changes") {
        next.push(ComingChange {
            what: format!("what waits is done: {changes}"),
            at: resource.time("/waiting/until"),
        });
    }
    if let Some(change) = resource.text("/schedule/next") {
        next.push(ComingChange {
            what: format!("the schedule: {change}"),
            at: None,
        });
    }
    if let Some(at) = resource.time("/maintenance/nextRestart") {
        next.push(ComingChange {
            what: "the regular restart".to_owned(),
            at: Some(at),
        });
    }
    let rotation: Option<Rotation> = serde_json::from_value(resource.spec["rotation"].clone()).ok();
    let created = resource
        .time("/rotatedAt")
        .or_else(|| resource.time("/createdAt"));
    if let Some(at) = created.and_then(|created| due_regularly(rotation.as_ref(), created)) {
        next.push(ComingChange {
            what: "the key is replaced".to_owned(),
            at: Some(at),
        });
    }
    for key in resource.status["previousKeys"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let name = key["name"].as_str().unwrap_or_default();
        let at = key["revokeAt"].as_str().and_then(|text| text.parse().ok());
        next.push(ComingChange {
            what: format!("the replaced key {name} is revoked"),
            at,
        });
    }
    next
}

/// The commands that help, the most specific first.
fn commands(resource: &ObservedResource) -> Vec<String> {
    let namespace = resource
        .meta
        .namespace
        .as_deref()
        .map(|name| format!(" -n {name}"))
        .unwrap_or_default();
    let describe = format!(
        "kubectl{namespace} describe {} {}",
        resource.kind.to_lowercase(),
        resource.name()
    );
    act::helpful_commands(resource)
        .into_iter()
        .chain([describe])
        .collect()
}

/// The scalars of a value, each with its path.
pub fn flat(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    flatten(String::new(), value, &mut rows);
    rows
}

fn flatten(place: String, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let below = if place.is_empty() {
                    name.clone()
                } else {
                    format!("{place}.{name}")
                };
                flatten(below, value, rows);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, value) in items.iter().enumerate() {
                flatten(format!("{place}[{index}]"), value, rows);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            rows.push((place, items.join(", ")));
        }
        Value::Null => {}
        other => rows.push((place, scalar(other))),
    }
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| json!(value).to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::resource::ResourceKind;

    #[test]
    fn a_value_is_shown_by_its_scalars() {
        let value =
            json!({"size": {"fixed": 1}, "names": ["a", "b"], "keys": [{"id": 7}], "none": null});
        let rows = flat(&value);
        let expected = [("size.fixed", "1"), ("names", "a, b"), ("keys[0].id", "7")];
        assert_eq!(rows.len(), 3);
        for (place, text) in expected {
            assert!(
                rows.contains(&(place.to_owned(), text.to_owned())),
                "{place}: {rows:?}"
            );
        }
    }

    /// Untrusted texts in a resource, its account and its events stay on their own lines of the
    /// page, and do not move the cursor.
    #[test]
    fn nobody_hides_anything_on_a_page() {
        let nasty = "a\nforged\u{1b}[2J\u{1b}[31m\u{9b}\u{202e}";
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "Refused", "message": nasty, "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let resource = |kind: &str| {
            let object = json!({
                "apiVersion": "dbplane.dev/v1alpha1", "kind": kind, "metadata": {"name": "orders", "namespace": "shop"},
                "spec": {"restartToken": nasty, "postgresSettings": {nasty: nasty}},
                "status": {"conditions": [condition], "state": nasty, "waiting": {"changes": nasty}, "lastOperation": {"action": nasty}},
            });
            ObservedResource::of(
                &ResourceKind::named(kind).unwrap(),
                serde_json::from_value(object).unwrap(),
            )
        };
        let event = json!({"metadata": {}, "eventTime": null, "reason": "Refused", "note": nasty});
        let page = ResourcePage::of(FoundOne {
            resource: resource("Compute"),
            account: Some(resource("Account")),
            events: vec![serde_json::from_value(event).unwrap()],
            operator: None,
            metrics: None,
            not_read: Vec::new(),
        });
        let mut shown = Vec::new();
        let layout = crate::cli::status::text::Layout {
            wide: true,
            width: None,
            now: Timestamp::UNIX_EPOCH,
        };
        let plain = &mut anstream::StripStream::new(&mut shown);
        crate::cli::status::text::page(&page, plain, layout).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.matches("forged").count() > 5, "{shown}");
        let document = serde_json::to_value(&page).unwrap();
        assert_eq!(crate::text::document(document.clone()), document);
        for line in shown.lines() {
            assert!(!line.chars().any(crate::text::is_hidden), "{line:?}");
            assert!(!line.trim_start().starts_with("forged"), "{shown}");
        }
    }

    #[test]
    fn nothing_that_only_dbplane_reads_is_shown() {
        let status = json!({"computeID": "ep-1", "record": "sealed", "conditions": []});
        assert_eq!(there(&status), json!({"computeID": "ep-1"}));
    }
}
