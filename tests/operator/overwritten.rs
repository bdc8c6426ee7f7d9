//! Another controller reverts dbplane's writes as fast as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dbplane::decide::names::RECORD;
use dbplane::decide::write_contention::AT_ONCE;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::creates::reader;
use crate::fixture::{Fixture, condition};
use crate::support::objects;

/// Upper bound of writes to one field in less than a minute: before the conflict is reported, and
/// once with the report.
const MOST: usize = 2 * AT_ONCE;

/// Text and Base64.
const ELSEWHERE: &str = "ZWxzZXdoZXJl";

/// A controller that changes an object whenever dbplane has reconciled it.
struct Other {
    stop: Arc<AtomicBool>,
    changes: Arc<AtomicUsize>,
}

impl Other {
    fn start(
        fixture: &Fixture,
        object: &str,
        subresource: Option<&'static str>,
        is_right: fn(&Value) -> bool,
        patch: Value,
    ) -> Self {
        let (kind, name) = object.split_once('/').unwrap();
        let (api, name) = (
            objects(fixture.client(), fixture.namespace(), kind),
            name.to_owned(),
        );
        let other = Self {
            stop: Arc::default(),
            changes: Arc::default(),
        };
        let (stop, changes) = (other.stop.clone(), other.changes.clone());
        tokio::spawn(async move {
            let params = PatchParams {
                field_manager: Some("busybody".to_owned()),
                ..PatchParams::default()
            };
            while !stop.load(Ordering::SeqCst) {
                let found = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
                if is_right(&found) {
                    let patch = Patch::Merge(&patch);
                    match subresource {
                        Some(part) => drop(
                            api.patch_subresource(part, &name, &params, &patch)
                                .await
                                .unwrap(),
                        ),
                        None => drop(api.patch(&name, &params, &patch).await.unwrap()),
                    }
                    changes.fetch_add(1, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        other
    }

    fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

const OBJECTS: [&str; 3] = ["compute/annotated", "compute/connected", "compute/reported"];

fn is_annotated(seen: &Value) -> bool {
    seen["metadata"]["annotations"][RECORD].is_string()
}

fn has_host_in_data(seen: &Value) -> bool {
    seen["data"]["host"] != ELSEWHERE
}

fn has_host_in_status(seen: &Value) -> bool {
    seen["status"]["host"] != ELSEWHERE
}

async fn declare(fixture: &Fixture) {
    let manifests = [
        reader("annotated", ""),
        reader("connected", "  connection: {secretName: connected-db}\n"),
        reader("reported", ""),
    ];
    for manifest in &manifests {
        fixture.apply(manifest).await;
    }
    for object in OBJECTS {
        fixture.until_ready(object).await;
    }
    fixture
        .until("secret/connected-db", "written", |seen| {
            seen["data"]["host"].is_string()
        })
        .await;
    // Writes by kubectl within the last two seconds would be taken for the cause.
    let applied =
        fixture.get("compute/reported").await.unwrap()["metadata"]["creationTimestamp"].clone();
    let applied: Timestamp = applied.as_str().unwrap().parse().unwrap();
    let is_over = async || Timestamp::now().duration_since(applied) > SignedDuration::from_secs(4);
    fixture
        .wait_until("kubectl's writes to be some time ago", is_over)
        .await;
}

/// Controllers that revert an annotation, a Secret and a status.
fn start_others(fixture: &Fixture) -> [Other; 3] {
    let without = json!({"metadata": {"annotations": {RECORD: null}}});
    let other_data = json!({"data": {"host": ELSEWHERE}});
    let other_status = json!({"status": {"host": ELSEWHERE}});
    [
        Other::start(fixture, "compute/annotated", None, is_annotated, without),
        Other::start(
            fixture,
            "secret/connected-db",
            None,
            has_host_in_data,
            other_data,
        ),
        Other::start(
            fixture,
            "compute/reported",
            Some("status"),
            has_host_in_status,
            other_status,
        ),
    ]
}

/// The number of changes by the other controller when the operator reports it.
async fn changes_until_reported(
    fixture: &Fixture,
    other: &Other,
    object: &str,
    cause: &str,
) -> usize {
    let seen = fixture
        .until_condition(object, "Overwritten", "True", "Overwritten")
        .await;
    let message = condition(&seen, "Overwritten").unwrap()["message"]
        .as_str()
        .unwrap();
    let changes = other.changes();
    assert!(message.starts_with(cause), "{message}");
    assert_eq!(fixture.event(object, "Overwritten").await, message);
    changes
}

#[tokio::test]
async fn writes_that_another_controller_reverts_are_slowed_down_and_reported() {
    let fixture = Fixture::new("overwritten").await;
    declare(&fixture).await;
    let others = start_others(&fixture);

    let [annotated, connected, reported] = &others;
    let changes = tokio::join!(
        // A removal leaves no field manager that could be named.
        changes_until_reported(
            &fixture,
            annotated,
            "compute/annotated",
            "Something else changes the annotation dbplane.dev/record",
        ),
        changes_until_reported(
            &fixture,
            connected,
            "compute/connected",
            "busybody (a field manager) changes Secret connected-db",
        ),
        changes_until_reported(
            &fixture,
            reported,
            "compute/reported",
            "busybody (a field manager) changes the status",
        ),
    );
    assert!(
        <[usize; 3]>::from(changes)
            .iter()
            .all(|count| (AT_ONCE..=MOST).contains(count)),
        "{changes:?}"
    );

    drop(others);
    fixture
        .until("compute/annotated", "annotated again", is_annotated)
        .await;
    fixture
        .until("secret/connected-db", "written again", has_host_in_data)
        .await;
    fixture
        .until("compute/reported", "reported again", has_host_in_status)
        .await;
    for object in OBJECTS {
        let is_over = |seen: &Value| {
            condition(seen, "Overwritten").is_none() && condition(seen, "Ready").is_some()
        };
        fixture.until(object, "left alone", is_over).await;
        fixture.until_ready(object).await;
    }
}
