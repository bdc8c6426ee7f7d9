//! The kinds as users of kubectl see them: explanations, columns and selectors.

use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::cluster;
use crate::support::ControlPlane;

async fn create(cluster: &ControlPlane, manifest: &Value) {
    cluster
        .kubectl_with_input(
            &["create", "--validate=strict", "-f", "-"],
            &manifest.to_string(),
        )
        .await
        .unwrap();
}

fn compute(namespace: &str, name: &str, project: &str, branch: &str) -> Value {
    json!({
        "apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": {"name": name, "namespace": namespace},
        "spec": {"accountRef": {"name": "prod"}, "projectID": project, "branchID": branch, "type": "ReadWrite"},
    })
}

/// All users would see a warning during the installation.
#[tokio::test]
async fn the_definitions_are_installed_without_a_warning() {
    let output = cluster()
        .await
        .kubectl_command()
        .args(["apply", "--server-side", "--dry-run=server", "--kustomize"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"))
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test]
async fn the_definitions_are_structural_and_their_names_accepted() {
    let cluster = cluster().await;
    for crd in dbplane::controller::definitions() {
        let name = crd.metadata.name.unwrap();
        let stored: Value = serde_json::from_str(
            &cluster
                .kubectl(&["get", "crd", &name, "-o", "json"])
                .await
                .unwrap(),
        )
        .unwrap();
        let conditions = stored["status"]["conditions"].as_array().unwrap();
        let status = |kind: &str| {
            conditions
                .iter()
                .find(|condition| condition["type"] == kind)
                .map(|condition| condition["status"].clone())
        };
        assert_eq!(
            status("NamesAccepted"),
            Some(json!("True")),
            "{name}: {conditions:?}"
        );
        assert_ne!(
            status("NonStructuralSchema"),
            Some(json!("True")),
            "{name}: {conditions:?}"
        );
    }
}

#[tokio::test]
async fn the_reference_describes_every_field() {
    let cluster = cluster().await;
    for definition in dbplane::controller::definitions() {
        let kind = &definition.spec.names.kind;
        let text = cluster
            .kubectl(&["explain", kind, "--recursive"])
            .await
            .unwrap();
        for part in [
            "spec",
            "status",
            "conditions",
            "lastTransitionTime",
            "observedGeneration",
        ] {
            assert!(text.contains(part), "{kind}: {part} is not in\n{text}");
        }
    }
    for (field, part) in [
        ("compute.spec.size.fixed", "One CU is 1 vCPU"),
        ("compute.spec.size.fixed", "0.25, 0.5, 1 to 16"),
        ("compute.spec.type", "ReadOnly for a read replica"),
        ("compute.spec.type", "at most one per branch"),
        (
            "compute.status.conditions.reason",
            "programmatic identifier",
        ),
        ("account.spec.baseURL", "version segment"),
        ("clusteraccount.spec.baseURL", "version segment"),
        (
            "clusteraccount.spec.namespaces.selector.matchExpressions.operator",
            "In, NotIn, Exists and DoesNotExist",
        ),
        ("projectkey.spec.secret.template", "{{ key }}"),
    ] {
        let text = cluster.kubectl(&["explain", field]).await.unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part), "{field}: {text}");
    }
}

#[tokio::test]
async fn columns_answer_the_first_question() {
    let cluster = cluster().await;
    cluster
        .kubectl(&["create", "namespace", "columns"])
        .await
        .unwrap();
    create(
        cluster,
        &compute("columns", "orders", "project-1", "br-main-42"),
    )
    .await;
    report_idle(cluster).await;

    let narrow = words(
        &cluster
            .kubectl(&["get", "dbc", "-n", "columns"])
            .await
            .unwrap(),
    );
    let wide = words(
        &cluster
            .kubectl(&["get", "dbplane", "-n", "columns", "-o", "wide"])
            .await
            .unwrap(),
    );

    assert_eq!(
        narrow[0],
        [
            "NAME", "READY", "STATE", "SIZE", "COMPUTE", "BRANCH", "REASON", "AGE"
        ]
    );
    assert_eq!(
        narrow[1][..7],
        [
            "orders",
            "True",
            "idle",
            "0.25-4",
            "ep-cool-1",
            "br-main-42",
            "Idle"
        ]
    );
    let line = wide
        .iter()
        .find(|line| line.contains(&"ep-cool-1.platform.example".to_owned()))
        .unwrap();
    assert!(
        line.ends_with(&["client".to_owned(), "connects.".to_owned()]),
        "{wide:?}"
    );
}

/// Writes the status of an idle compute.
async fn report_idle(cluster: &ControlPlane) {
    let status = json!({"status": {
        "computeID": "ep-cool-1", "host": "ep-cool-1.platform.example", "state": "idle", "size": "0.25-4",
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Idle", "message": "It starts when a client connects.",
            "lastTransitionTime": "2026-11-20T10:00:00Z", "observedGeneration": 1,
        }],
    }});
    let patch = [
        "patch",
        "compute",
        "orders",
        "-n",
        "columns",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    cluster
        .kubectl(&[patch.as_slice(), &[&status.to_string()]].concat())
        .await
        .unwrap();
}

fn words(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[tokio::test]
async fn short_names_and_the_category_are_served() {
    let cluster = cluster().await;
    let table = words(
        &cluster
            .kubectl(&["api-resources", "--api-group=dbplane.dev", "-o", "wide"])
            .await
            .unwrap(),
    );
    for (plural, short) in [
        ("accounts", "dbacct"),
        ("clusteraccounts", "dbcacct"),
        ("computes", "dbc"),
        ("projectkeys", "dbkey"),
        ("readreplicasets", "dbrrs"),
    ] {
        let line = table.iter().find(|line| line[0] == plural).unwrap();
        assert!(
            line.contains(&short.to_owned()) && line.last().is_some_and(|last| last == "dbplane"),
            "{line:?}"
        );
    }
}

#[tokio::test]
async fn computes_can_be_selected_by_project_and_branch() {
    let cluster = cluster().await;
    cluster
        .kubectl(&["create", "namespace", "selected"])
        .await
        .unwrap();
    for (name, project, branch) in [
        ("a", "p-1", "br-1"),
        ("b", "p-1", "br-2"),
        ("c", "p-2", "br-1"),
    ] {
        create(cluster, &compute("selected", name, project, branch)).await;
    }
    for (selector, expected) in [
        ("spec.projectID=p-1", "a b"),
        ("spec.branchID=br-1", "a c"),
        ("spec.projectID=p-1,spec.branchID=br-2", "b"),
        ("spec.projectID!=p-1", "c"),
    ] {
        let names = [
            "get",
            "computes",
            "-n",
            "selected",
            "-o",
            "jsonpath={.items[*].metadata.name}",
            "--field-selector",
        ];
        let found = cluster
            .kubectl(&[names.as_slice(), &[selector]].concat())
            .await
            .unwrap();
        assert_eq!(found, expected, "{selector}");
    }
}

#[tokio::test]
async fn a_status_is_written_apart_from_the_spec_and_keeps_one_condition_of_a_type() {
    let cluster = cluster().await;
    cluster
        .kubectl(&["create", "namespace", "statuses"])
        .await
        .unwrap();
    create(cluster, &compute("statuses", "orders", "p-1", "br-1")).await;
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z",
    });
    let status = json!({"status": {"conditions": [condition.clone(), condition]}});
    let patch = [
        "patch",
        "compute",
        "orders",
        "-n",
        "statuses",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    let refusal = cluster
        .kubectl(&[patch.as_slice(), &[&status.to_string()]].concat())
        .await
        .unwrap_err();
    assert!(refusal.to_string().contains("Duplicate value"), "{refusal}");
}

#[tokio::test]
async fn another_manager_can_switch_to_the_other_alternative() {
    let cluster = cluster().await;
    cluster
        .kubectl(&["create", "namespace", "managers"])
        .await
        .unwrap();
    for (manager, size) in [
        ("one", json!({"fixed": 2})),
        ("other", json!({"autoscaling": {"min": 1, "max": 2}})),
    ] {
        let mut manifest = compute("managers", "orders", "p-1", "br-1");
        manifest["spec"]["size"] = size.clone();
        let manager = format!("--field-manager={manager}");
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            &manager,
            "-f",
            "-",
        ];
        cluster
            .kubectl_with_input(&apply, &manifest.to_string())
            .await
            .unwrap();
        let get = [
            "get",
            "compute",
            "orders",
            "-n",
            "managers",
            "-o",
            "jsonpath={.spec.size}",
        ];
        let stored: Value = serde_json::from_str(&cluster.kubectl(&get).await.unwrap()).unwrap();
        assert_eq!(stored, size);
    }
}

/// Defaults are stored, so that every client sees the effective values.
#[tokio::test]
async fn defaults_are_written_out() {
    let cluster = cluster().await;
    cluster
        .kubectl(&["create", "namespace", "defaults"])
        .await
        .unwrap();
    create(cluster, &compute("defaults", "orders", "p-1", "br-1")).await;
    let stored = cluster
        .kubectl(&["get", "compute", "orders", "-n", "defaults", "-o", "json"])
        .await
        .unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let expected = json!({
        "accountRef": {"kind": "Account", "name": "prod"}, "branchID": "br-1", "deletion": "Delete",
        "deletionProtection": false, "existing": "Refuse", "management": "Full", "onMissing": "Recreate", "projectID": "p-1", "type": "ReadWrite",
    });
    assert_eq!(stored["spec"], expected);
    assert_eq!(
        stored["apiVersion"],
        dbplane::api::Compute::api_resource().api_version
    );
}
