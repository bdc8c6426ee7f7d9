//! Tests of rejections, of the written requests, and of recognized outcomes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{RequestOutcome, ResourceRequest, helpful_commands};
use crate::cli::resource::ObservedResource;
use crate::decide::names;

fn resource(kind: &str, object: &Value) -> ObservedResource {
    ObservedResource {
        kind: kind.to_owned(),
        meta: serde_json::from_value(object["metadata"].clone()).unwrap(),
        spec: object["spec"].clone(),
        status: object["status"].clone(),
        conditions: serde_json::from_value(object["status"]["conditions"].clone())
            .unwrap_or_default(),
    }
}

fn with_condition(kind: &str, type_: &str, reason: &str) -> Value {
    let condition = json!({"type": type_, "status": "True", "reason": reason, "message": "it is ep-1",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({"metadata": {"name": "a", "namespace": "shop", "uid": kind}, "status": {"conditions": [condition]}})
}

#[test]
fn what_cannot_work_is_refused() {
    let paused = json!({"metadata": {"name": "a", "annotations": {names::PAUSED: "true"}}, "status": {"computeID": "ep-1"}});
    let observing = json!({"metadata": {"name": "a"}, "spec": {"management": "Observe"}, "status": {"computeID": "ep-1"}});
    let bound = json!({"metadata": {"name": "a"}, "status": {"computeID": "ep-1"}});
    let ambiguous = with_condition("Compute", "Stalled", "AmbiguousCreate");
    let adopt_ep_1 = ResourceRequest::Adopt(Some("ep-1".into()));
    for (request, object, refused) in [
        (ResourceRequest::Restart, &paused, Some("it is paused")),
        (
            ResourceRequest::Restart,
            &observing,
            Some("it only observes"),
        ),
        (ResourceRequest::Restart, &bound, None),
        (
            ResourceRequest::Restart,
            &ambiguous,
            Some("it has no compute yet"),
        ),
        (
            ResourceRequest::Adopt(None),
            &bound,
            Some("it has compute ep-1 already"),
        ),
        (
            ResourceRequest::Adopt(None),
            &ambiguous,
            Some("it has found no compute to adopt"),
        ),
        (adopt_ep_1, &ambiguous, None),
        (
            ResourceRequest::ConfirmDeletion,
            &bound,
            Some("it is not being deleted"),
        ),
        (
            ResourceRequest::NotCreated(vec!["ep-1".into()]),
            &ambiguous,
            None,
        ),
        (
            ResourceRequest::NotCreated(vec!["ep-2".into()]),
            &ambiguous,
            Some("ep-2 is not in question"),
        ),
        (ResourceRequest::Resume, &paused, None),
        (
            ResourceRequest::Rotate,
            &bound,
            Some("rotate is for ProjectKey"),
        ),
    ] {
        let description = request
            .refusal(&resource("Compute", object))
            .unwrap_or_default();
        assert!(
            refused.map_or(description.is_empty(), |text| description.contains(text)),
            "{request:?}: {description}"
        );
    }
}

#[test]
fn a_compute_id_in_the_spec_alone_is_no_compute() {
    let refusal = |object: &Value| {
        ResourceRequest::Adopt(Some("ep-1".into())).refusal(&resource("Compute", object))
    };
    let misnamed = json!({"metadata": {"name": "a"}, "spec": {"computeID": "ep-typo"}});
    assert_eq!(refusal(&misnamed), None);
    let bound = json!({"metadata": {"name": "a"}, "status": {"computeID": "ep-1"}});
    assert!(
        refusal(&bound)
            .unwrap()
            .contains("it has compute ep-1 already")
    );
}

#[test]
fn what_was_said_before_is_said_anew_or_kept() {
    let object = json!({"metadata": {"name": "a", "annotations": {names::REVOKED_KEYS: "all", names::NOT_CREATED: "ep-2, ep-1"}}});
    let now = Timestamp::UNIX_EPOCH;
    let written = |request: &ResourceRequest, annotation: &str| {
        request.patch(&resource("ProjectKey", &object), now)["metadata"]["annotations"][annotation]
            .clone()
    };
    assert_eq!(
        written(
            &ResourceRequest::Revoked(vec!["all".to_owned()]),
            names::REVOKED_KEYS
        ),
        "all,"
    );
    assert_eq!(
        written(
            &ResourceRequest::Revoked(vec!["7".to_owned()]),
            names::REVOKED_KEYS
        ),
        "7"
    );
    assert_eq!(
        written(
            &ResourceRequest::NotCreated(vec!["ep-3".into()]),
            names::NOT_CREATED
        ),
        "ep-1,ep-2,ep-3"
    );
    assert_eq!(
        written(&ResourceRequest::Resume, names::PAUSED),
        Value::Null
    );
}

#[test]
fn what_is_gone_is_done_only_where_that_was_asked() {
    let deleting = resource(
        "Compute",
        &with_condition("one", "Stalled", "DeletionPaused"),
    );
    let another = resource("Compute", &with_condition("another", "Ready", "Available"));
    for now in [None, Some(&another)] {
        let done = ResourceRequest::ConfirmDeletion.outcome(&deleting, &deleting, now);
        assert_eq!(done, RequestOutcome::Done("deleted".to_owned()));
        assert!(matches!(
            ResourceRequest::Restart.outcome(&deleting, &deleting, now),
            RequestOutcome::Failed(_)
        ));
    }
    assert!(matches!(
        ResourceRequest::ConfirmDeletion.outcome(&deleting, &deleting, Some(&deleting)),
        RequestOutcome::Waits(_)
    ));
}

#[test]
fn the_commands_that_help_answer_the_reason() {
    for (reason, command) in [
        (
            "AmbiguousCreate",
            "dbplane not-created -n shop compute/a --compute-id ID,…",
        ),
        ("PrimaryExists", "dbplane adopt -n shop compute/a"),
        (
            "DeletionPaused",
            "dbplane confirm-deletion -n shop compute/a",
        ),
        ("Refused", "dbplane reconcile -n shop compute/a"),
    ] {
        assert_eq!(
            helpful_commands(&resource(
                "Compute",
                &with_condition("a", "Stalled", reason)
            )),
            [command],
            "{reason}"
        );
    }
    assert!(
        helpful_commands(&resource(
            "Compute",
            &with_condition("a", "Ready", "Available")
        ))
        .is_empty()
    );
}

#[test]
fn a_rotation_that_cannot_happen_now_names_the_command_that_helps() {
    let condition = |type_: &str, reason: &str| {
        json!([{"type": type_, "status": if type_ == "Stalled" { "True" } else { "False" },
        "reason": reason, "message": "it is so", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    let replaced = |count: usize| json!(vec![json!({"name": "ci-old", "id": 7}); count]);
    for (status, helps) in [
        (json!({"previousKeys": replaced(2)}), None),
        (
            json!({"previousKeys": replaced(3)}),
            Some("dbplane revoked -n shop projectkey/ci --key 'ci-old'"),
        ),
        (
            json!({"conditions": condition("Ready", "AccountNotReady")}),
            Some("dbplane status -n shop account/prod"),
        ),
        (
            json!({"conditions": condition("Stalled", "Refused")}),
            Some("dbplane reconcile -n shop projectkey/ci"),
        ),
        (
            json!({"conditions": condition("Stalled", "Forbidden")}),
            Some("dbplane reconcile -n shop projectkey/ci"),
        ),
        (
            json!({"conditions": condition("Ready", "ProjectNotAllowed")}),
            Some("dbplane status -n shop projectkey/ci"),
        ),
        (
            json!({"conditions": condition("Synced", "NewKeyRefused")}),
            Some("dbplane reconcile -n shop projectkey/ci"),
        ),
        (
            json!({"conditions": condition("Ready", "PlatformBusy")}),
            None,
        ),
        (json!({"conditions": condition("Ready", "Creating")}), None),
        (
            json!({"conditions": condition("Synced", "RevocationUnsupported")}),
            None,
        ),
    ] {
        let key = json!({"metadata": {"name": "ci", "namespace": "shop"},
            "spec": {"accountRef": {"name": "prod"}}, "status": status});
        let refused = ResourceRequest::Rotate.refusal(&resource("ProjectKey", &key));
        match (helps, &refused) {
            (None, refused) => assert_eq!(*refused, None, "{status}"),
            (Some(command), Some(refused)) => assert!(refused.ends_with(command), "{refused}"),
            (Some(command), None) => panic!("{command}: {status}"),
        }
    }
}
