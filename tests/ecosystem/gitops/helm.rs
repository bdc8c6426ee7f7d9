//! Helm: it waits for a chart's resources on a real control plane with the operator.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{changes, examples};
use crate::chart::Helm;
use crate::fixture::{Fixture, condition};
use crate::support::PATIENCE;

/// Longer than Helm's poll plus the operator's first reaction.
const SLOW_START: u32 = 15_000;

/// Much longer than any test, so a command that returns has not timed out.
const TIMEOUT: &str = "--timeout=30m";

const NAMES: [&str; 3] = ["account/prod", "compute/orders", "projectkey/ci"];

/// A chart with the Account, the Compute and the ProjectKey of deploy/examples and their Secrets,
/// and its release in the namespace of the fixture.
struct Release<'a> {
    fixture: &'a Fixture,
    helm: Helm,
    chart: PathBuf,
}

impl<'a> Release<'a> {
    fn new(fixture: &'a Fixture) -> Self {
        let helm = Helm::new();
        let chart = helm.folder().join("shop");
        std::fs::create_dir_all(chart.join("templates")).unwrap();
        std::fs::write(
            chart.join("Chart.yaml"),
            "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        )
        .unwrap();
        std::fs::write(
            chart.join("values.yaml"),
            "branch: br-main-42\nsize: 1\nprotected: false\n",
        )
        .unwrap();
        for (name, text) in examples(fixture) {
            if ["account.yaml", "compute.yaml", "project-key.yaml"].contains(&name.as_str()) {
                std::fs::write(chart.join("templates").join(name), of_chart(&text)).unwrap();
            }
        }
        Self {
            fixture,
            helm,
            chart,
        }
    }

    /// The output of helm or its error. It must return before its own timeout.
    async fn helm(&self, args: &[&str]) -> Result<String, String> {
        let kubeconfig = self
            .fixture
            .shared
            .cluster
            .kubeconfig_path()
            .display()
            .to_string();
        let chart = self.chart.display().to_string();
        let of_chart: &[&str] = if ["install", "upgrade"].contains(&args[0]) {
            &[&chart]
        } else {
            &[]
        };
        let target = [
            "--namespace",
            self.fixture.namespace(),
            "--kubeconfig",
            &kubeconfig,
        ];
        let all = [&args[..1], &["shop"], of_chart, &args[1..], &target].concat();
        let ended = tokio::time::timeout(2 * PATIENCE, self.helm.run_async(&all)).await;
        ended.unwrap_or_else(|_| panic!("helm {all:?} waits on"))
    }

    /// Helm's status of the release.
    async fn status(&self) -> String {
        let told = self.helm(&["status", "--output=json"]).await.unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        told["info"]["status"].as_str().unwrap().to_owned()
    }

    async fn assert_ready(&self) {
        for name in NAMES {
            let object = self.fixture.get(name).await.unwrap();
            assert_eq!(
                condition(&object, "Ready").unwrap()["status"],
                "True",
                "{name} when helm had ended: {object}"
            );
            assert_eq!(
                object["status"]["observedGeneration"], object["metadata"]["generation"],
                "{name}"
            );
        }
    }

    async fn size(&self) -> Value {
        self.fixture.get("compute/orders").await.unwrap()["status"]["size"].clone()
    }

    /// The existing compute and key.
    async fn bound(&self) -> [Value; 2] {
        let (computes, keys) = (
            self.fixture.computes().await,
            self.fixture.live_keys().await,
        );
        assert_eq!(
            (computes.len(), keys.len()),
            (1, 1),
            "{:?}",
            changes(self.fixture)
        );
        [computes[0]["id"].clone(), keys[0]["id"].clone()]
    }
}

/// Escapes dbplane's own templates, so that Helm does not expand them.
fn of_chart(manifests: &str) -> String {
    let text = manifests.replace("{{", "{{ \"{{").replace("}}", "}}\" }}");
    text.replace(
        "size:\n    autoscaling: {min: 0.25, max: 2}",
        "size: {fixed: {{ .Values.size }}}",
    )
    .replace(
        "deletionProtection: true",
        "deletionProtection: {{ .Values.protected }}",
    )
    .replace("branchID: br-main-42", "branchID: {{ .Values.branch }}")
}

#[tokio::test]
async fn a_release_is_deployed_once_all_its_resources_can_be_used() {
    let fixture = Fixture::on("helm-waits", |platform| {
        platform.world.settings.start_ms = SLOW_START
    })
    .await;
    let release = Release::new(&fixture);
    let installs = release.helm(&["install", "--wait", TIMEOUT]);
    let watched = async {
        let starts = |seen: &Value| condition(seen, "Reconciling").is_some();
        fixture.until("compute/orders", "starting", starts).await;
        assert_eq!(release.status().await, "pending-install");
    };
    let (installed, ()) = tokio::join!(installs, watched);
    installed.unwrap();
    release.assert_ready().await;
    assert_eq!(
        (release.status().await.as_str(), release.size().await),
        ("deployed", json!("1"))
    );
    let bound = release.bound().await;

    // Helm waits for a change and for its reversal; an upgrade without changes returns too.
    for (args, size) in [
        (&["upgrade", "--set=size=2"][..], "2"),
        (&["upgrade", "--set=size=2"], "2"),
        (&["rollback", "1"], "1"),
        (
            &[
                "upgrade",
                "--set=size=2",
                "--force-replace",
                "--server-side=false",
            ],
            "2",
        ),
    ] {
        release
            .helm(&[args, &["--wait", TIMEOUT]].concat())
            .await
            .unwrap();
        release.assert_ready().await;
        assert_eq!(release.size().await, size, "{args:?}");
        assert_eq!(release.bound().await, bound, "{args:?}");
    }
    assert_eq!(
        fixture.count("POST"),
        2,
        "a compute and a key: {:?}",
        changes(&fixture)
    );
    assert_eq!(fixture.count("PATCH"), 3, "{:?}", changes(&fixture));
}

#[tokio::test]
async fn an_invalid_compute_fails_the_release_and_is_named() {
    let fixture = Fixture::bare("helm-fails").await;
    let release = Release::new(&fixture);
    let failed = release
        .helm(&["install", "--wait", TIMEOUT, "--set=branch=br-no-such-1"])
        .await
        .unwrap_err();
    let orders = fixture.get("compute/orders").await.unwrap();
    let stalled = condition(&orders, "Stalled").unwrap();
    let says = stalled["message"].as_str().unwrap();
    let named = format!(
        "Compute/{}/orders not ready. status: Failed, message: {says}",
        fixture.namespace()
    );
    assert!(failed.contains(&named), "{failed}");
    assert!(
        !failed.contains("ProjectKey/"),
        "only what failed: {failed}"
    );
    assert_eq!(release.status().await, "failed");

    release
        .helm(&["upgrade", "--wait", TIMEOUT, "--reset-values"])
        .await
        .unwrap();
    release.assert_ready().await;
    assert_eq!(release.status().await, "deployed");
    release.bound().await;
}

#[tokio::test]
async fn a_release_is_uninstalled_once_everything_is_gone_from_the_platform() {
    let fixture = Fixture::bare("helm-removed").await;
    let release = Release::new(&fixture);
    release.helm(&["install", "--wait", TIMEOUT]).await.unwrap();
    release.bound().await;
    fixture.fault(json!({"method": "DELETE", "status": 503, "times": 1_000_000}));
    let removes = release.helm(&["uninstall", "--wait", TIMEOUT]);
    let watched = async {
        for name in NAMES {
            let deleted = |seen: &Value| seen["metadata"]["deletionTimestamp"].is_string();
            fixture.until(name, "being deleted", deleted).await;
        }
        assert_eq!(release.status().await, "uninstalling");
        fixture.platform.clear_faults();
    };
    let (removed, ()) = tokio::join!(removes, watched);
    removed.unwrap();
    for name in NAMES {
        assert!(fixture.get(name).await.is_none(), "{name}");
    }
    assert_eq!(fixture.on_the_platform().await, (0, 0));
}

#[tokio::test]
async fn a_protected_compute_stays_after_helm_has_timed_out() {
    let fixture = Fixture::bare("helm-protected").await;
    let release = Release::new(&fixture);
    release
        .helm(&["install", "--wait", TIMEOUT, "--set=protected=true"])
        .await
        .unwrap();
    let failed = release
        .helm(&["uninstall", "--wait", "--timeout=10s"])
        .await
        .unwrap_err();
    let named = format!("Compute/{}/orders still exists", fixture.namespace());
    assert!(failed.contains(&named), "{failed}");
    fixture
        .until_condition("compute/orders", "Stalled", "True", "DeletionProtected")
        .await;
    assert_eq!(fixture.computes().await.len(), 1);

    fixture
        .patch("compute/orders", json!({"deletionProtection": false}))
        .await;
    fixture.until_gone("compute/orders").await;
    fixture.until_gone("account/prod").await;
    assert_eq!(fixture.computes().await.len(), 0);
}
