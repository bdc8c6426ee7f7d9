//! The roles for users in deploy/, and the security of its Pods.

use serde_json::{Value, json};

use crate::support::{ControlPlane, Options, PATIENCE, wait_until};

async fn installed() -> ControlPlane {
    let mut options = Options::default();
    options
        .controllers
        .push("clusterrole-aggregation-controller".to_owned());
    let cluster = ControlPlane::start_with(options).await.unwrap();
    cluster
        .kubectl(&[
            "apply",
            "-k",
            concat!(env!("CARGO_MANIFEST_DIR"), "/deploy"),
        ])
        .await
        .unwrap();
    cluster
}

#[tokio::test]
async fn editors_of_a_namespace_declare_computes_but_no_cluster_accounts() {
    let cluster = installed().await;
    for (person, role) in [("ada", "edit"), ("ben", "view")] {
        let (role, person) = (format!("--clusterrole={role}"), format!("--user={person}"));
        cluster
            .kubectl(&[
                "create",
                "rolebinding",
                person.trim_start_matches("--user="),
                &role,
                &person,
            ])
            .await
            .unwrap();
    }
    let may = async |person: &str, verb: &str, resource: &str| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (resource, subresource) = (
            format!("{resource}.dbplane.dev"),
            format!("--subresource={subresource}"),
        );
        let person = format!("--as={person}");
        // `can-i` answers no with exit code 1.
        cluster
            .kubectl(&[
                "auth",
                "can-i",
                verb,
                &resource,
                &subresource,
                &person,
                "-n=default",
            ])
            .await
            .is_ok()
    };
    wait_until(
        "the roles of the cluster to be extended",
        PATIENCE,
        async || may("ada", "create", "computes").await && may("ben", "list", "computes").await,
    )
    .await
    .unwrap();

    for resource in ["accounts", "computes", "projectkeys", "readreplicasets"] {
        assert!(may("ada", "delete", resource).await, "{resource}");
        assert!(may("ben", "watch", resource).await, "{resource}");
        assert!(!may("ben", "patch", resource).await, "{resource}");
        assert!(
            !may("ada", "patch", &format!("{resource}/status")).await,
            "{resource}"
        );
    }
    assert!(
        may("ada", "update", "readreplicasets/scale").await
            && !may("ben", "update", "readreplicasets/scale").await
    );
    assert!(!may("ada", "create", "clusteraccounts").await);
}

#[tokio::test]
async fn the_operators_pod_is_admitted_to_its_restricted_namespace() {
    let cluster = installed().await;
    let deployment = cluster
        .kubectl(&[
            "-n",
            "dbplane-system",
            "get",
            "deployment",
            "dbplane",
            "-o",
            "json",
        ])
        .await;
    let deployment: Value = serde_json::from_str(&deployment.unwrap()).unwrap();
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    for (name, value) in deployment["spec"]["selector"]["matchLabels"]
        .as_object()
        .unwrap()
    {
        assert_eq!(labels[name], *value);
    }
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "operator", "namespace": "dbplane-system"},
        "spec": template["spec"],
    });
    let create = ["create", "--dry-run=server", "-f", "-"];

    cluster
        .kubectl_with_input(&create, &pod.to_string())
        .await
        .unwrap();

    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refusal = cluster
        .kubectl_with_input(&create, &pod.to_string())
        .await
        .unwrap_err()
        .to_string();
    assert!(refusal.contains("violates PodSecurity"), "{refusal}");
}
