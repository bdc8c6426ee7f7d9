//! Commands on Computes: their results, and rejections before any change.

use std::time::Duration;

use regex::Regex;
use serde_json::json;

use crate::computes::{by_hand, created, writes};
use crate::creates::lost_with_a_twin;
use crate::fixture::{Fixture, compute};
use crate::terminal::Terminal;

const RESTART: &str = "dbplane.dev/restart";

async fn annotation(fixture: &Fixture, object: &str, name: &str) -> Option<String> {
    let seen = fixture.get(object).await.unwrap();
    seen["metadata"]["annotations"][name]
        .as_str()
        .map(str::to_owned)
}

#[tokio::test]
async fn a_restart_is_waited_for() {
    let (fixture, _) = created("cli-restart", "").await;
    // Start times have a resolution of one second.
    fixture.platform.advance(Duration::from_secs(5)).unwrap();
    let ran = fixture.dbplane(&["restart", "compute/orders"]).await;
    ran.expect(0, &["compute/orders done: restarted at "]);
    assert_eq!(fixture.count("POST"), 2, "{:?}", fixture.requests());
    let first = annotation(&fixture, "compute/orders", RESTART)
        .await
        .unwrap();

    fixture.platform.advance(Duration::from_secs(5)).unwrap();
    let ran = fixture
        .dbplane(&["restart", "dbc", "--all", "--no-wait", "-o", "json"])
        .await
        .expect(0, &[]);
    let results = ran.json()["results"].clone();
    assert_eq!(
        results,
        json!([{"kind": "Compute", "namespace": "cli-restart", "name": "orders", "outcome": "requested"}])
    );
    let second = annotation(&fixture, "compute/orders", RESTART)
        .await
        .unwrap();
    assert!(second > first, "{second}");
    fixture
        .until("compute/orders", "restarted", |seen| {
            let restart = &seen["status"]["restart"];
            restart["token"] == *second && restart["completedAt"].is_string()
        })
        .await;
    assert_eq!(fixture.count("POST"), 3);
}

#[tokio::test]
async fn invalid_requests_are_refused_and_change_nothing() {
    let (fixture, _) = created("cli-refused", "").await;
    let before = fixture.get("compute/orders").await.unwrap();
    for (args, code, words) in [
        (
            &["restart", "compute/none"][..],
            3,
            "there is no such resource in namespace cli-refused",
        ),
        (
            &["restart", "dbkey/ci"],
            2,
            "restart is for Compute, not for ProjectKey",
        ),
        (&["restart", "pod/orders"], 2, "pod is no kind of dbplane"),
        (&["restart", "orders"], 2, "write KIND/NAME"),
        (
            &["restart", "compute", "-l", "app=none"],
            3,
            "no Compute is selected",
        ),
        (
            &["restart", "compute", "-l", "app in (a"],
            2,
            "is no selector: ",
        ),
        (
            &["restart", "compute", "orders", "dbkey/ci"],
            2,
            "do not mix them",
        ),
        (
            &["restart", "compute/orders", "--timeout", "soon"],
            2,
            "--timeout",
        ),
        (
            &["adopt", "compute/orders", "--yes"],
            3,
            "it has compute ep-",
        ),
        (
            &["confirm-deletion", "compute/orders", "--yes"],
            3,
            "it is not being deleted",
        ),
        (
            &["not-created", "compute/orders", "--compute-id", "ep-1"],
            3,
            "no create of it is unclear",
        ),
        (
            &["revoked", "compute/orders", "--key", "all", "--yes"],
            2,
            "revoked is for ProjectKey",
        ),
    ] {
        let ran = fixture.dbplane(args).await.expect(code, &[words]);
        assert_eq!(ran.out, "", "{args:?}");
    }
    assert_eq!(fixture.get("compute/orders").await.unwrap(), before);
}

#[tokio::test]
async fn fields_of_another_tool_are_left_to_that_tool() {
    let (fixture, _) = created("cli-declared", "").await;
    let declared = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute",
        "metadata": {"name": "orders", "annotations": {RESTART: "by-git"}}});
    let args = [
        "-n",
        &fixture.namespace,
        "apply",
        "--server-side",
        "--field-manager=argocd",
        "-f",
        "-",
    ];
    fixture
        .shared
        .cluster
        .kubectl_with_input(&args, &declared.to_string())
        .await
        .unwrap();
    fixture
        .until("compute/orders", "restarted", |seen| {
            seen["status"]["restart"]["completedAt"].is_string()
        })
        .await;
    let ran = fixture.dbplane(&["restart", "compute/orders"]).await;
    ran.expect(
        3,
        &[
            "dbplane.dev/restart is declared by argocd",
            "change it there",
        ],
    );
    assert_eq!(
        annotation(&fixture, "compute/orders", RESTART)
            .await
            .as_deref(),
        Some("by-git")
    );
}

#[tokio::test]
async fn a_wait_that_times_out_does_not_stop_the_operator() {
    let closed = "  disruption: {policy: Window, window: {schedule: 0 0 29 2 *, duration: 1m}}\n";
    let (fixture, _) = created("cli-timeout", closed).await;
    // Start times have a resolution of one second.
    fixture.platform.advance(Duration::from_secs(5)).unwrap();
    let kubeconfig = fixture.shared.cluster.kubeconfig_path();
    let command = fixture.command(
        &kubeconfig,
        &["restart", "compute/orders", "--timeout", "4s"],
    );
    let (output, shown) = Terminal::open().of(command).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}: {shown}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains(
            "compute/orders timed out; it goes on, and waits for this: WaitingForDisruption"
        ),
        "{said}"
    );
    assert!(
        shown.contains("compute/orders") && shown.contains("WaitingForDisruption"),
        "{shown}"
    );
    let silent = fixture
        .dbplane(&["restart", "compute", "orders", "--timeout", "2s"])
        .await
        .expect(4, &[]);
    let reason = "restart compute/orders: WaitingForDisruption: ";
    assert_eq!(silent.err.matches(reason).count(), 1, "{silent:?}");
    fixture
        .patch("compute/orders", json!({"disruption": null}))
        .await;
    fixture
        .until("compute/orders", "restarted", |seen| {
            seen["status"]["restart"]["completedAt"].is_string()
        })
        .await;
}

#[tokio::test]
async fn a_compute_is_paused_resumed_and_reconciled_again() {
    let (fixture, _) = created("cli-pause", "").await;
    fixture
        .dbplane(&["pause", "compute/orders"])
        .await
        .expect(0, &["compute/orders done: paused"]);
    assert_eq!(
        annotation(&fixture, "compute/orders", "dbplane.dev/paused")
            .await
            .as_deref(),
        Some("true")
    );
    let refused = fixture.dbplane(&["restart", "compute/orders"]).await;
    refused.expect(
        3,
        &["compute/orders: it is paused: dbplane resume -n cli-pause compute/orders"],
    );
    let page = fixture.dbplane(&["status", "compute/orders"]).await;
    page.expect(
        0,
        &[
            "needs a person (Paused)",
            "dbplane resume -n cli-pause compute/orders",
        ],
    );
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .dbplane(&["resume", "compute/orders"])
        .await
        .expect(0, &["compute/orders done: resumed"]);
    assert_eq!(
        annotation(&fixture, "compute/orders", "dbplane.dev/paused").await,
        None
    );
    fixture
        .until("compute/orders", "as declared", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    let ran = fixture
        .dbplane(&["reconcile", "compute/orders", "dbacct/prod"])
        .await;
    ran.expect(
        0,
        &[
            "compute/orders done: looked at anew: ",
            "account/prod done: looked at anew: Available",
        ],
    );
}

#[tokio::test]
async fn a_person_at_a_terminal_is_asked_first() {
    let fixture = Fixture::new("cli-person").await;
    let main = by_hand(&fixture, "br-main-42", "read_write").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .until_condition("compute/orders", "Stalled", "True", "PrimaryExists")
        .await;
    let kubeconfig = fixture.shared.cluster.kubeconfig_path();
    let adopt = async |types: &str| {
        let command = fixture.command(&kubeconfig, &["adopt", "compute/orders"]);
        let (status, shown) = Terminal::open().with_person(command, types).await;
        assert!(
            shown.contains("compute/orders in namespace cli-person"),
            "{shown}"
        );
        assert!(
            shown.contains("adopt: this cannot be taken back. Continue? [y/N]"),
            "{shown}"
        );
        (status.code(), shown)
    };
    for types in ["\n", "n\n", "yesterday\n"] {
        let (code, shown) = adopt(types).await;
        assert!(
            code == Some(3) && shown.contains("it was not confirmed"),
            "{types:?}: {shown}"
        );
    }
    assert_eq!(
        fixture.get("compute/orders").await.unwrap()["spec"]["existing"],
        "Refuse"
    );
    let (code, shown) = adopt("Y\n").await;
    assert!(
        code == Some(0) && shown.contains(&format!(": adopted {main}")),
        "{shown}"
    );
}

#[tokio::test]
async fn colours_are_used_only_on_terminals_that_want_them() {
    let (fixture, _) = created("cli-colours", "").await;
    let kubeconfig = fixture.shared.cluster.kubeconfig_path();
    let colour = Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for (variable, coloured) in [(None, true), (Some("NO_COLOR"), false)] {
        let mut command = fixture.command(&kubeconfig, &["status"]);
        command.envs(variable.map(|name| (name, "1")));
        let (status, shown) = Terminal::open().with_person(command, "").await;
        assert!(
            status.success() && shown.contains("dbplane in namespace cli-colours"),
            "{shown}"
        );
        // Progress output moves the cursor, so only colour codes count.
        assert_eq!(colour.is_match(&shown), coloured, "{variable:?}: {shown:?}");
    }
}

#[tokio::test]
async fn an_existing_primary_is_adopted_once_it_is_confirmed() {
    let fixture = Fixture::new("cli-adopt").await;
    let [main, dev] = [
        by_hand(&fixture, "br-main-42", "read_write").await,
        by_hand(&fixture, "br-dev-7", "read_write").await,
    ];
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.apply(&compute("dev", "br-dev-7", "")).await;
    for object in ["compute/orders", "compute/dev"] {
        fixture
            .until_condition(object, "Stalled", "True", "PrimaryExists")
            .await;
    }
    let page = fixture.dbplane(&["status", "dbc/orders"]).await;
    page.expect(
        0,
        &[
            "needs a person (PrimaryExists)",
            "dbplane adopt -n cli-adopt compute/orders",
            &main,
        ],
    );
    let asked = fixture
        .dbplane(&["adopt", "compute/orders"])
        .await
        .expect(2, &["add --yes"]);
    assert_eq!(asked.out, "");
    assert_eq!(
        fixture.get("compute/orders").await.unwrap()["metadata"]["generation"],
        1
    );

    let adopted = fixture.dbplane(&["adopt", "compute/orders", "--yes"]).await;
    adopted.expect(0, &[&format!("compute/orders done: adopted {main}\n")]);
    let adopted = fixture
        .dbplane(&["adopt", "compute/dev", "--yes", "--compute-id", &dev])
        .await;
    adopted.expect(0, &[&format!("compute/dev done: adopted {dev}\n")]);
    assert_eq!(
        fixture.get("compute/dev").await.unwrap()["spec"]["computeID"],
        *dev
    );
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (0, 2)
    );
}

#[tokio::test]
async fn a_create_without_a_result_can_be_ruled_out() {
    let fixture = Fixture::minimal("cli-not-created").await;
    let twin = lost_with_a_twin(&fixture).await;
    fixture
        .until_condition("compute/reader", "Stalled", "True", "AmbiguousCreate")
        .await;
    let unknown = fixture
        .dbplane(&[
            "not-created",
            "compute/reader",
            "--compute-id",
            "ep-unknown-1",
        ])
        .await;
    unknown.expect(3, &["ep-unknown-1 is not in question. AmbiguousCreate: "]);
    let ran = fixture
        .dbplane(&["not-created", "compute/reader", "--compute-id", &twin])
        .await;
    ran.expect(0, &["compute/reader done: ruled out"]);
    let ready = fixture.until_ready("compute/reader").await;
    assert_ne!(ready["status"]["computeID"], *twin);
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 2)
    );
}

#[tokio::test]
async fn missing_rights_to_write_are_reported() {
    let (fixture, _) = created("cli-rights", "").await;
    let reader = fixture.kubeconfig_with("get,list").await;
    let before = writes(&fixture).len();
    let ran = fixture
        .dbplane_as(&reader, &["restart", "compute/orders"])
        .await;
    ran.expect(1, &["compute/orders not changed", "forbidden"]);
    assert_eq!(annotation(&fixture, "compute/orders", RESTART).await, None);
    assert_eq!(writes(&fixture).len(), before);
    let fleet = fixture.dbplane_as(&reader, &["status"]).await;
    fleet.expect(
        0,
        &[
            "Compute  1",
            "Not read, for lack of rights (limited to namespace cli-rights): ",
            "projectkeys, ",
            "the operator's Lease\n",
        ],
    );
}
