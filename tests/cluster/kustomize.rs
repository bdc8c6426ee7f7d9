//! kustomize resolves names in dbplane's resources with the configuration in `deploy/kustomize`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::cluster;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kustomize/example");

async fn built(overlay: &str) -> Vec<Value> {
    let printed = cluster()
        .await
        .kubectl(&["kustomize", &format!("{EXAMPLE}/{overlay}")])
        .await
        .unwrap();
    let options = serde_saphyr::options! {};
    serde_saphyr::from_multiple_with_options(&printed, options).unwrap()
}

fn text(value: &Value) -> String {
    String::deserialize(value).unwrap_or_else(|_| panic!("no text: {value}"))
}

/// The references of an object (kind and name) to other objects of the kustomization, or to objects
/// that dbplane writes.
fn references(object: &Value) -> Vec<(String, String)> {
    let spec = &object["spec"];
    let account = |reference: &Value| {
        let kind = reference["kind"].as_str().unwrap_or("Account").to_owned();
        (kind, text(&reference["name"]))
    };
    let secret = |name: &Value| ("Secret".to_owned(), text(name));
    match object["kind"].as_str().unwrap() {
        "Account" => vec![secret(&spec["apiKeySecretRef"]["name"])],
        "ClusterAccount" => vec![
            secret(&spec["apiKeySecretRef"]["name"]),
            (
                "Namespace".to_owned(),
                text(&spec["apiKeySecretRef"]["namespace"]),
            ),
            (
                "Namespace".to_owned(),
                text(&spec["namespaces"]["names"][0]),
            ),
        ],
        "Compute" => vec![
            account(&spec["accountRef"]),
            secret(&spec["connection"]["credentialsFrom"]["name"]),
        ],
        "ProjectKey" => vec![account(&spec["accountRef"])],
        "ReadReplicaSet" => {
            vec![
                account(&spec["template"]["spec"]["accountRef"]),
                secret(&spec["connection"]["credentialsFrom"]["name"]),
            ]
        }
        "HorizontalPodAutoscaler" => vec![(
            "ReadReplicaSet".to_owned(),
            text(&spec["scaleTargetRef"]["name"]),
        )],
        "Deployment" => {
            let env = &spec["template"]["spec"]["containers"][0]["env"][0];
            vec![secret(&env["valueFrom"]["secretKeyRef"]["name"])]
        }
        _ => Vec::new(),
    }
}

/// The Secrets that dbplane writes for an object.
fn written(object: &Value) -> Option<(String, String)> {
    let spec = &object["spec"];
    let name = match object["kind"].as_str()? {
        "ProjectKey" => &spec["secret"]["name"],
        "Compute" | "ReadReplicaSet" => &spec["connection"]["secretName"],
        _ => return None,
    };
    Some(("Secret".to_owned(), text(name)))
}

#[tokio::test]
async fn renamed_objects_are_renamed_in_all_references() {
    for (overlay, begin) in [("shop", ""), ("green", "green-")] {
        let objects = built(overlay).await;
        let named = |object: &Value| (text(&object["kind"]), text(&object["metadata"]["name"]));
        let mut there: BTreeSet<_> = objects.iter().map(named).collect();
        assert_eq!(there.len(), 12, "{there:#?}");
        there.extend(objects.iter().filter_map(written));
        assert_eq!(
            there.len(),
            15,
            "no Secret that dbplane writes is in the kustomization"
        );
        let mut count = 0;
        for object in &objects {
            for reference in references(object) {
                count += 1;
                assert!(
                    there.contains(&reference),
                    "{overlay}: {:?} names {reference:?}",
                    named(object)
                );
            }
        }
        assert_eq!(count, 12, "{overlay}");
        for (kind, name) in there {
            assert!(
                kind == "Namespace" || name.starts_with(begin),
                "{overlay}: {kind} {name}"
            );
        }
    }
}

/// kustomize treats a ClusterAccount as namespaced; the API server ignores the namespace.
#[tokio::test]
async fn the_api_server_accepts_the_output_of_kustomize() {
    let cluster = cluster().await;
    let applied = cluster
        .kubectl(&["apply", "-k", &format!("{EXAMPLE}/green")])
        .await
        .unwrap();
    assert_eq!(applied.lines().count(), 12, "{applied}");
    let account = cluster
        .kubectl(&["get", "clusteraccount", "green-company-v2", "-o", "json"])
        .await
        .unwrap();
    let account: Value = serde_json::from_str(&account).unwrap();
    assert!(account["metadata"]["namespace"].is_null(), "{account}");
}
