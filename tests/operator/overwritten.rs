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

#[tokio::test]
async fn what_is_changed_back_each_time_is_written_at_a_measured_pace_and_reported() {
    let fixture = Fixture::new("overwritten").await;
    let manifests = [
        reader("annotated", ""),
        reader("connected", "  connection: {secretName: connected-db}\n"),
        reader("reported", ""),
    ];
    for manifest in &manifests {
        fixture.apply(manifest).await;
    }
    for object in ["compute/annotated", "compute/connected", "compute/reported"] {
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
    let is_annotated = |seen: &Value| seen["metadata"]["annotations"][RECORD].is_string();
    let without = json!({"metadata": {"annotations": {RECORD: null}}});
    let annotations = Other::start(&fixture, "compute/annotated", None, is_annotated, without);
    let is_written = |seen: &Value| seen["data"]["host"] != ELSEWHERE;
    let other_host = json!({"data": {"host": ELSEWHERE}});
    let secrets = Other::start(
        &fixture,
        "secret/connected-db",
        None,
        is_written,
        other_host,
    );
    let is_told = |seen: &Value| seen["status"]["host"] != ELSEWHERE;
    let other_host = json!({"status": {"host": ELSEWHERE}});
    let statuses = Other::start(
        &fixture,
        "compute/reported",
        Some("status"),
        is_told,
        other_host,
    );

    for (object, what) in [
        // A removal leaves no field manager that could be named.
        (
            "compute/annotated",
            "Something else changes the annotation dbplane.dev/record",
        ),
        (
            "compute/connected",
            "busybody (a field manager) changes Secret connected-db",
        ),
        (
            "compute/reported",
            "busybody (a field manager) changes the status",
        ),
    ] {
        let seen = fixture
            .until_condition(object, "Overwritten", "True", "Overwritten")
            .await;
        let message = condition(&seen, "Overwritten").unwrap()["message"]
            .as_str()
            .unwrap();
        assert!(message.starts_with(what), "{message}");
        assert_eq!(fixture.event(object, "Overwritten").await, message);
    }
    let before = [&annotations, &secrets, &statuses].map(Other::changes);
    assert!(
        before
            .iter()
            .all(|changes| (AT_ONCE..=MOST).contains(changes)),
        "{before:?}"
    );

    drop((annotations, secrets, statuses));
    fixture
        .until("compute/annotated", "annotated again", is_annotated)
        .await;
    fixture
        .until("secret/connected-db", "written again", is_written)
        .await;
    fixture
        .until("compute/reported", "reported again", is_told)
        .await;
    for object in ["compute/annotated", "compute/connected", "compute/reported"] {
        let is_over = |seen: &Value| {
            condition(seen, "Overwritten").is_none() && condition(seen, "Ready").is_some()
        };
        fixture.until(object, "left alone", is_over).await;
        fixture.until_ready(object).await;
    }
}
