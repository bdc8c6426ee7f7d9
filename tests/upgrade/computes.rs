//! The states of Computes and ReadReplicaSets.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::calls::Call::{ChangeCompute, CreateCompute, DeleteCompute, Restart};
use super::states::{CONFLICT, Deed, Moment, READY, Says, State};

fn compute(name: &'static str, more: Value) -> State {
    let mut spec = json!({"branchID": "{branch}", "type": "ReadWrite"});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    State::new("Compute", name, spec)
}

fn sized(name: &'static str, more: Value) -> State {
    let mut spec = json!({"size": {"fixed": 1}});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    compute(name, spec)
}

fn spec(fields: Value) -> Deed {
    Deed::Change(json!({"spec": fields}))
}

pub fn states() -> Vec<State> {
    [
        settled(),
        changed(),
        stalled(),
        unanswered(),
        leaving(),
        in_the_midst(),
        sets(),
    ]
    .concat()
}

fn settled() -> Vec<State> {
    vec![
        compute("primary", json!({})).times(8),
        compute("replica", json!({"type": "ReadOnly", "size": {"fixed": 1}})).times(8),
        compute(
            "full",
            json!({
                "size": {"autoscaling": {"min": 0.5, "max": 2}}, "scaleToZero": {"after": "10m"},
                "pooler": {"enabled": true}, "connection": {"secretName": "to-{object}"},
            }),
        )
        // Other profiles do not apply the whole spec.
        .only(Profile::Default)
        .times(4),
        compute("adopted", json!({"existing": "Adopt"}))
            .with_a_foreign_primary()
            .times(3),
        compute("imported", json!({"computeID": "ep-foreign-{object}"}))
            .with_a_foreign_primary()
            .times(3),
        compute("observed", json!({"management": "Observe"}))
            .with_a_foreign_primary()
            .times(2),
        compute(
            "drifted",
            json!({"management": "Observe", "size": {"fixed": 8}}),
        )
        .with_a_foreign_primary()
        .times(2),
        compute("protected", json!({"deletionProtection": true})),
        compute("orphan", json!({"deletion": "Orphan"})),
        compute("disabled", json!({"disabled": true})).times(2),
        sized(
            "scheduled",
            json!({"schedules": [{"name": "never", "start": "0 0 29 2 *", "duration": "1h", "size": {"fixed": 2}}]}),
        ),
        sized(
            "maintained",
            json!({"maintenance": {"restart": {"schedule": "0 0 29 2 *"}}}),
        )
        .times(2),
    ]
}

fn changed() -> Vec<State> {
    let once = || spec(json!({"restartToken": "once"}));
    let closed =
        json!({"policy": "Window", "window": {"schedule": "0 0 29 2 *", "duration": "1m"}});
    let waits: Says = ("Synced", "WaitingForDisruption");
    let larger = || spec(json!({"size": {"fixed": 2}}));
    vec![
        sized("restarted", json!({})).then(once(), READY).times(4),
        sized("restarted-by-annotation", json!({}))
            .then(Deed::Change(json!({"metadata": {"annotations": {"dbplane.dev/restart": "please"}}})), READY),
        sized("resized", json!({})).then(larger(), READY).times(2),
        sized("moved", json!({"type": "ReadOnly"})).then(spec(json!({"branchID": "{other}"})), READY),
        sized("waits-for-window", json!({"disruption": closed})).then(larger(), waits).times(2),
        sized("restart-waits", json!({"disruption": closed})).then(once(), waits).times(2),
        sized("paused", json!({}))
            .then(Deed::Change(json!({"metadata": {"annotations": {"dbplane.dev/paused": "true"}}, "spec": {"size": {"fixed": 4}}})), ("Paused", "Paused")),
        sized("released", json!({}))
            .then(spec(json!({"handOverTo": {"name": "released-to-{copy}"}})), ("Ready", "HandingOver"))
            .next(&[], Some(CONFLICT))
            .times(2),
        sized("released-to", json!({"branchID": "br-released-{copy}", "accountRef": {"name": "none"}, "takeOverFrom": {"name": "released-{copy}"}}))
            .says(("Ready", "AccountNotFound"))
            .times(2),
        sized("handed", json!({}))
            .then(spec(json!({"handOverTo": {"name": "handed-to-{copy}"}})), ("Ready", "HandedOver"))
            .next(&[], Some(CONFLICT))
            .times(2),
        sized("handed-to", json!({"branchID": "br-handed-{copy}", "takeOverFrom": {"name": "handed-{copy}"}}))
            .first(("Ready", "HandingOver"))
            .next(&[], Some(CONFLICT))
            .times(2),
    ]
}

fn stalled() -> Vec<State> {
    let stalled = |reason| ("Stalled", reason);
    vec![
        compute("refused-primary", json!({}))
            .with_a_foreign_primary()
            .says(stalled("PrimaryExists"))
            .times(2),
        compute(
            "import-of-nothing",
            json!({"computeID": "ep-nowhere-{copy}"}),
        )
        .says(stalled("ComputeNotFound")),
        compute("without-account", json!({"accountRef": {"name": "none"}}))
            .says(stalled("AccountNotFound")),
        compute(
            "account-not-ready",
            json!({"accountRef": {"name": "empty"}}),
        )
        .says(("Ready", "AccountNotReady")),
        compute("missing", json!({"onMissing": "Report"}))
            .then(Deed::ComputeDeleted, stalled("ComputeNotFound")),
        compute("never-created", json!({}))
            .annotated(json!({"dbplane.dev/paused": "true"}))
            .says(("Paused", "Paused")),
        compute("copied", json!({}))
            .annotated(json!({"dbplane.dev/record": "{\"of\":\"shop/other\",\"seal\":\"no\"}"}))
            .says(stalled("BindingConflict")),
    ]
}

/// A compute that an unanswered create may have made stays in the record.
fn unanswered() -> Vec<State> {
    let stray: Says = ("Synced", "StrayCompute");
    vec![
        compute(
            "unanswered",
            json!({"type": "ReadOnly", "size": {"fixed": 1}}),
        )
        .declared(Moment::Unanswered)
        .times(3),
        compute("stray", json!({"type": "ReadOnly", "size": {"fixed": 1}}))
            .declared(Moment::Stray)
            .says(stray)
            .times(2),
    ]
}

fn leaving() -> Vec<State> {
    let refused = |name| {
        sized(name, json!({}))
            .then(Deed::Delete, READY)
            .done(Moment::Refused)
    };
    vec![
        refused("deleting").next(&[DeleteCompute], None).times(3),
        sized("deletion-protected", json!({"deletionProtection": true}))
            .then(Deed::Delete, ("Stalled", "DeletionProtected"))
            .times(2),
        sized("changing", json!({}))
            .then(spec(json!({"size": {"fixed": 2}})), READY)
            .done(Moment::Refused)
            .next(&[ChangeCompute], Some(READY))
            .times(2),
    ]
}

/// The previous version was killed before the outcome of a call was known.
fn in_the_midst() -> Vec<State> {
    let once = || spec(json!({"restartToken": "once"}));
    vec![
        sized("create-dropped", json!({}))
            .declared(Moment::Dropped)
            .next(&[CreateCompute], Some(READY))
            .times(4),
        sized("create-replica-dropped", json!({"type": "ReadOnly"}))
            .declared(Moment::Dropped)
            .next(&[CreateCompute], Some(READY))
            .times(4),
        sized("create-late", json!({}))
            .declared(Moment::Late)
            .times(4),
        sized(
            "create-replica-late",
            json!({"type": "ReadOnly", "connection": {"secretName": "to-{object}"}}),
        )
        .declared(Moment::Late)
        .times(4),
        sized("restart-dropped", json!({}))
            .then(once(), READY)
            .done(Moment::Dropped)
            .next(&[Restart], Some(READY))
            .times(2),
        sized("restart-late", json!({}))
            .then(once(), READY)
            .done(Moment::Late)
            .times(2),
    ]
}

fn sets() -> Vec<State> {
    let set = |name, replicas: u32| {
        let labels = json!({"app": "{object}"});
        State::new(
            "ReadReplicaSet",
            name,
            json!({
                "replicas": replicas, "selector": {"matchLabels": labels}, "connection": {"secretName": "to-{object}"},
                "template": {"metadata": {"labels": labels}, "spec": {"branchID": "{branch}", "size": {"fixed": 1}}},
            }),
        )
    };
    let scaled = |replicas: u32| spec(json!({"replicas": replicas}));
    vec![
        set("set", 3).times(2),
        set("set-of-none", 0).says(("Synced", "InSync")),
        set("set-grows", 1)
            .then(scaled(2), READY)
            .done(Moment::Dropped)
            .next(&[CreateCompute], Some(READY)),
        set("set-grew-late", 1)
            .then(scaled(2), READY)
            .done(Moment::Late),
        set("set-shrinks", 2)
            .then(scaled(1), READY)
            .done(Moment::Refused)
            .next(&[DeleteCompute], Some(READY)),
    ]
}
