//! Hand-over from one cluster to another: two control planes, each with an operator, and one platform.

use serde_json::{Value, json};

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{KEY, Operator, account, cluster, declare, platform};

/// Each object as a tool would find it in its cluster.
async fn get(cluster: &ControlPlane, object: &str) -> Option<Value> {
    let text = cluster.kubectl(&["get", object, "--ignore-not-found", "-o", "json"]).await.unwrap();
    (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
}

fn ready(object: &Value) -> (&str, &str) {
    let conditions = object["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
    let text = |field: &str| ready.and_then(|ready| ready[field].as_str()).unwrap_or_default();
    (text("status"), text("reason"))
}

async fn until(cluster: &ControlPlane, object: &str, wanted: (&str, &str)) -> Value {
    let what = format!("{object} to be {wanted:?}");
    wait_until(&what, PATIENCE, async || ready(&get(cluster, object).await.unwrap_or_default()) == wanted)
        .await
        .unwrap();
    get(cluster, object).await.unwrap()
}

async fn apply(cluster: &ControlPlane, manifest: &Value) {
    cluster.kubectl_with_input(&["apply", "-f", "-"], &manifest.to_string()).await.unwrap();
}

async fn patch(cluster: &ControlPlane, object: &str, spec: &Value) {
    let patch = json!({"spec": spec}).to_string();
    cluster.kubectl(&["patch", object, "--type", "merge", "-p", &patch]).await.unwrap();
}

async fn delete(cluster: &ControlPlane, object: &str) {
    cluster.kubectl(&["delete", object, "--timeout=60s"]).await.unwrap();
}

/// The identity of a cluster, as the guide says to find it.
async fn id(cluster: &ControlPlane) -> String {
    let uid = cluster.kubectl(&["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]).await.unwrap();
    uid[..6].to_owned()
}

/// The resource as its manifest is applied in another cluster, with the release of the first one where there is one.
fn asking(object: &Value, release: Option<&str>) -> Value {
    let mut spec = object["spec"].clone();
    spec.as_object_mut().unwrap().remove("handOverTo");
    spec["takeOverFrom"] = json!({"name": object["metadata"]["name"], "release": release});
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]}, "spec": spec,
    })
}

#[tokio::test]
async fn a_compute_and_a_key_go_to_another_cluster() {
    let (here, there) = tokio::join!(cluster(), cluster());
    let platform = platform().await;
    declare(&here, &platform).await;
    let organization = "  organizationID: org-cool-darkness-1\n  pollInterval: 5s\n";
    account(&there, "default", ("prod", &platform.base_url()), organization).await;
    here.kubectl_with_input(&["apply", "-f", "-"], KEY).await.unwrap();
    let operators = [Operator::start(&here, "here", &[]), Operator::start(&there, "there", &[])];
    for operator in &operators {
        operator.until_ready().await;
    }
    let objects = ["compute/orders", "projectkey/ci"];
    let mut ids = Vec::new();
    for object in objects {
        let old = until(&here, object, ("True", "Available")).await;
        ids.push([old["status"]["computeID"].clone(), old["status"]["keyID"].clone()]);
        // In the other cluster first: nothing is created there.
        let mut early = asking(&old, None);
        early["spec"]["takeOverFrom"].as_object_mut().unwrap().remove("release");
        apply(&there, &early).await;
        until(&there, object, ("False", "HandingOver")).await;
    }
    let changes = || platform.requests(0).iter().filter(|entry| entry.method != "GET").count();
    let before = changes();
    let secret = get(&here, "secret/ci-key").await.unwrap();
    let metadata = json!({
        "name": "ci-key", "labels": secret["metadata"]["labels"], "annotations": secret["metadata"]["annotations"],
    });
    apply(&there, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": secret["data"]})).await;
    let to = json!({"handOverTo": {"cluster": id(&there).await, "namespace": "default", "name": ""}});
    for (object, ids) in objects.into_iter().zip(&ids) {
        let (_, name) = object.split_once('/').unwrap();
        let mut to = to.clone();
        to["handOverTo"]["name"] = json!(name);
        patch(&here, object, &to).await;
        let old = until(&here, object, ("True", "HandedOver")).await;
        apply(&there, &asking(&old, old["status"]["release"].as_str())).await;
        let new = until(&there, object, ("True", "Available")).await;
        assert_eq!([&new["status"]["computeID"], &new["status"]["keyID"]], [&ids[0], &ids[1]]);
        delete(&here, object).await;
    }
    assert_eq!(changes(), before, "nothing was changed on the platform");
    for object in objects {
        until(&there, object, ("True", "Available")).await;
        delete(&there, object).await;
    }
    let removed: Vec<String> =
        platform.requests(0).into_iter().filter(|it| it.method == "DELETE").map(|it| it.path).collect();
    assert_eq!(removed.len(), 2, "both are the other cluster's to remove: {removed:?}");
}
