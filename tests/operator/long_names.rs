//! Names of the maximal length in Kubernetes: derived names must not exceed it.

use serde_json::json;

use crate::fixture::{Fixture, PROJECT, account, compute, key_into};

#[tokio::test]
async fn resources_with_the_longest_names_work_and_have_events() {
    let fixture = Fixture::new("long-names").await;
    for length in [237, 252, 253] {
        let name = "x".repeat(length);
        let with_account =
            |manifest: String| manifest.replace("name: prod", &format!("name: {name}"));
        fixture
            .apply(&account(&name, &fixture.platform.base_url(), ""))
            .await;
        let branch = "br-dev-7";
        let replica = compute(&name, branch, "").replace("ReadWrite", "ReadOnly");
        fixture.apply(&with_account(replica)).await;
        let key = key_into(&name, &format!("{{name: key-{length}}}"), "");
        fixture
            .apply(&with_account(
                key.replace(&format!("  keyName: {name}\n"), ""),
            ))
            .await;
        let set = json!({
            "apiVersion": "dbplane.dev/v1alpha1", "kind": "ReadReplicaSet", "metadata": {"name": name},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": format!("reads-{length}")}},
                "template": {
                    "metadata": {"labels": {"app": format!("reads-{length}")}},
                    "spec": {"accountRef": {"name": name}, "projectID": PROJECT, "branchID": branch},
                },
            },
        });
        fixture.apply(&set.to_string()).await;
        for (kind, reason) in [
            ("compute", "Created"),
            ("projectkey", "KeyCreated"),
            ("readreplicaset", "ReplicaCreated"),
        ] {
            fixture.until_ready(&format!("{kind}/{name}")).await;
            fixture.event(&format!("{kind}/{name}"), reason).await;
        }
        fixture.until_ready(&format!("account/{name}")).await;
        let selected = format!("app=reads-{length}");
        let child = fixture
            .kubectl(&[
                "get",
                "computes",
                "-l",
                &selected,
                "-o=jsonpath={.items[0].metadata.name}",
            ])
            .await;
        assert_eq!(
            (child.len() <= 253, child.ends_with("-0")),
            (true, true),
            "{child}"
        );
        fixture.event(&format!("compute/{child}"), "Created").await;
    }
}
