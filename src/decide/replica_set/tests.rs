//! Table tests of the decisions about a set.

mod cost;
mod numbers;
mod reports;
mod secrets;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::api::Compute;
use crate::decide::{AccountView, Limits, Memory, Meta};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const SET: &str = "5e700000-0000";

/// A set called `reads`, and its observation.
#[derive(Clone)]
struct GivenSet {
    spec: ReadReplicaSetSpec,
    observed: SetObserved,
}

/// The spec of a set with this number of replicas, and with additions to it and to its template.
fn spec(replicas: u32, more: &Value, of_template: &Value) -> ReadReplicaSetSpec {
    let mut template =
        json!({"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": "br-1"});
    template
        .as_object_mut()
        .unwrap()
        .extend(of_template.as_object().unwrap().clone());
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "reads"}},
        "template": {"metadata": {"labels": {"app": "reads"}}, "spec": template},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

/// A ready Compute of the set, with this merged into it.
fn replica(number: u32, more: &Value) -> Arc<Known<Compute>> {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z"});
    let mut compute = json!({
        "metadata": {
            "namespace": "shop", "name": format!("reads-{number}"), "uid": format!("uid-{number}"), "resourceVersion": "7", "generation": 1,
            "labels": {"app": "reads"},
            "ownerReferences": [{"apiVersion": "dbplane.dev/v1alpha1", "kind": "ReadReplicaSet", "name": "reads", "uid": SET, "controller": true}],
        },
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": "br-1", "type": "ReadOnly"},
        "status": {
            "computeID": format!("ep-{number}"), "host": format!("ep-{number}.example"), "state": "idle",
            "lastSeenServing": true,
            "observedGeneration": 1, "conditions": [condition("Ready"), condition("Synced")],
        },
    });
    merge(&mut compute, more);
    Arc::new(serde_json::from_value(compute).unwrap())
}

/// The merge patch of RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let (Some(members), Some(fields)) = (patch.as_object(), object.as_object_mut()) else {
        *object = patch.clone();
        return;
    };
    for (name, value) in members {
        match value {
            Value::Null => drop(fields.remove(name)),
            value => merge(fields.entry(name).or_insert(Value::Null), value),
        }
    }
}

fn merged(mut one: Value, other: Value) -> Value {
    merge(&mut one, &other);
    one
}

/// This number of ready replicas.
fn ready(count: u32) -> Vec<Arc<Known<Compute>>> {
    (0..count)
        .map(|number| replica(number, &json!({})))
        .collect()
}

/// The patch for a replica on another branch.
fn former() -> Value {
    json!({"spec": {"branchID": "br-0"}})
}

/// The patch for a starting replica.
fn starting() -> Value {
    let starts = conditioned("Ready", "False", "Starting", "It starts.");
    json!({"status": {"lastSeenServing": false, "conditions": [starts]}})
}

/// The patch for a replica that cannot be observed, and that served when it was last observed.
fn unseen() -> Value {
    let unknown = conditioned(
        "Ready",
        "Unknown",
        "PlatformUnreachable",
        "The platform answered 503.",
    );
    json!({"status": {"unseenSince": "2026-11-20T10:00:00Z", "conditions": [unknown]}})
}

/// All variants of a replica that cannot be observed, or whose status lacks the last observation.
fn blind() -> Vec<Value> {
    let with = |ready: &str, reason: &str, serving: Value, since: Value| {
        let conditions = [conditioned("Ready", ready, reason, "")];
        json!({"status": {"lastSeenServing": serving, "unseenSince": since, "conditions": conditions}})
    };
    let since = || json!("2026-11-20T10:00:00Z");
    vec![
        with("Unknown", "PlatformUnreachable", json!(true), since()),
        with("Unknown", "Unauthorized", json!(true), since()),
        with("False", "PlatformBusy", json!(true), since()),
        with("False", "NamespaceNotAllowed", json!(true), since()),
        // It was starting when it was last observed, and may serve by now.
        with("Unknown", "PlatformUnreachable", json!(false), since()),
        // The status is from a version without that field.
        with("Unknown", "PlatformUnreachable", Value::Null, Value::Null),
        with("False", "Starting", Value::Null, Value::Null),
        json!({"status": null}),
        odd(json!({"state": "failed"})),
        odd(json!({"state": "active", "pendingState": "degraded"})),
        odd(json!({"state": "failed", "lastSeenServing": false})),
    ]
}

/// The patch for a replica in a state that dbplane does not know.
fn odd(status: Value) -> Value {
    let unknown = conditioned(
        "Ready",
        "Unknown",
        "StateUnknown",
        "The state is not known.",
    );
    let mut odd = json!({"status": {"conditions": [unknown]}});
    merge(&mut odd["status"], &status);
    odd
}

fn conditioned(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-20T10:00:00Z"})
}

impl GivenSet {
    fn new(
        spec: ReadReplicaSetSpec,
        computes: impl IntoIterator<Item = Arc<Known<Compute>>>,
    ) -> Self {
        let computes: Vec<_> = computes.into_iter().collect();
        let names = computes
            .iter()
            .filter_map(|compute| compute.metadata.name.clone())
            .collect();
        let found = |compute: Arc<Known<Compute>>| {
            Some(FoundReplica {
                relation: relation(&spec, &SET.into(), &compute)?,
                compute,
            })
        };
        let observed = SetObserved {
            meta: Meta {
                namespace: "shop".into(),
                name: "reads".into(),
                generation: 3,
                ..Meta::default()
            },
            uid: SET.into(),
            account: AccountView::NotNeeded,
            memory: Memory::default(),
            limits: Limits::default(),
            cluster: "c1u57e".parse().unwrap(),
            random: 7,
            facts: SetFacts {
                computes: computes.into_iter().filter_map(found).collect(),
                settled: true,
                unreadable: 0,
                names,
                secret: SecretView::NotWanted,
                credentials: CredentialsView::NotWanted,
                connection_secret: None,
                unused_secrets: Vec::new(),
            },
        };
        Self { spec, observed }
    }

    fn of(replicas: u32, computes: impl IntoIterator<Item = Arc<Known<Compute>>>) -> Self {
        Self::new(spec(replicas, &json!({}), &json!({})), computes)
    }

    fn observing(mut self, change: impl FnOnce(&mut SetObserved)) -> Self {
        change(&mut self.observed);
        self
    }

    fn decide(&self) -> SetDecision {
        decide(&self.spec, &self.observed, NOW)
    }

    /// The step in one word, and the name of its Compute.
    fn does(&self) -> String {
        match self.decide().step {
            None => "rests".to_owned(),
            Some(SetStep::Create { name }) => format!("creates {name}"),
            Some(SetStep::Adopt(member)) => format!("adopts {}", member.name),
            Some(SetStep::Release(member)) => format!("releases {}", member.name),
            Some(SetStep::Update(member)) => format!("updates {}", member.name),
            Some(SetStep::UseAccount(member)) => format!("moves {}", member.name),
            Some(SetStep::Retire(member)) => format!("retires {}", member.name),
            Some(SetStep::WriteConnection { .. }) => "writes".to_owned(),
        }
    }
}

#[test]
fn nothing_is_done_while_a_set_goes_is_paused_or_has_not_seen_its_own_work() {
    let few = || GivenSet::of(3, ready(1));
    assert_eq!(few().does(), "creates reads-1");
    let deleting = few().observing(|seen| seen.meta.deleting = true).decide();
    assert_eq!(
        (deleting.step, deleting.report.unwrap().headline().0),
        (None, Reason::Deleting)
    );
    let paused = few().observing(|seen| seen.meta.paused = true).decide();
    assert_eq!(
        (paused.step, paused.report.unwrap().headline().0),
        (None, Reason::Paused)
    );
    let blind = few().observing(|seen| seen.settled = false).decide();
    assert_eq!(
        blind,
        Decision {
            step: None,
            report: None,
            wake: Wake::At(later(NOW, SHOWN_AFTER))
        }
    );
}

#[test]
fn what_the_api_server_refuses_is_tried_again_later() {
    use crate::decide::memory::ActionProblem;
    let failed = |seen: &mut SetObserved| {
        seen.memory.failed(
            Action::Create,
            ActionProblem::Object("quota exceeded".into()),
            3,
            NOW,
        );
    };
    let refused = GivenSet::of(1, []).observing(failed).decide();
    let report = refused.report.unwrap();
    assert_eq!(refused.step, None);
    assert_eq!(report.headline(), (Reason::Refused, "quota exceeded"));
    assert!(matches!(refused.wake, Wake::At(until) if until > NOW));
}
