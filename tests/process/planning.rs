//! `dbplane plan` for users and pipelines: it needs the rights to view resources and to get Secrets,
//! shows no secrets, and writes nothing.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use dbplane_simulator::Simulator;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{KEY, Operator, cluster, declare, platform, until_ready};

const CREDENTIAL: &str = "demo-personal-key-not-a-secret";

/// A user who may view the resources of a namespace, but no Secrets.
const VIEWER: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dbplane-view}
subjects: [{kind: ServiceAccount, name: viewer, namespace: default}]
";

/// The right to get the Secrets of the resources, but not that of the account.
const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules:
  - {apiGroups: [\"\"], resources: [secrets], resourceNames: [ci-key, reports-db], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: viewer, namespace: default}]
";

/// A larger compute, a new one, and an unchanged key.
fn manifests() -> String {
    let compute = |name: &str, branch: &str, type_: &str, more: &str| {
        format!(
            "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: aged-wind-123456
  branchID: {branch}
  type: {type_}
  size: {{fixed: 2}}
{more}---
"
        )
    };
    let connection = "  connection: {secretName: reports-db}\n";
    compute("orders", "br-main-42", "ReadWrite", "")
        + &compute("reports", "br-main-42", "ReadOnly", connection)
        + KEY
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

struct Pipeline {
    kubeconfig: PathBuf,
}

impl Pipeline {
    async fn plan(&self, args: &[&str], input: &str) -> Said {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_dbplane"));
        command
            .args([
                "plan",
                "--allow-insecure-platform",
                "--namespace",
                "default",
            ])
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A process that reads no input may exit earlier.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let said = Said {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        assert!(
            !format!("{}{}", said.out, said.err).contains(CREDENTIAL),
            "{}{}",
            said.out,
            said.err
        );
        said
    }
}

/// The resource versions of everything that an operator writes.
async fn versions(cluster: &ControlPlane) -> String {
    let kinds = "accounts,computes,projectkeys,secrets,events";
    let path = "jsonpath={range .items[*]}{.kind}{.metadata.name}{.metadata.resourceVersion} {end}";
    cluster
        .kubectl(&["get", kinds, "-n", "default", "-o", path])
        .await
        .unwrap()
}

fn writes(platform: &Simulator) -> usize {
    platform
        .requests(0)
        .iter()
        .filter(|entry| entry.method != "GET")
        .count()
}

/// Creates a ready Compute and a ready ProjectKey, and stops their operator. Returns the secret of
/// the key and the users who plan.
async fn scene(cluster: &ControlPlane, platform: &Simulator) -> (String, Pipeline, Pipeline) {
    let mut operator = Operator::start(cluster, "operator", &[]);
    declare(cluster, platform).await;
    cluster
        .kubectl_with_input(&["-n", "default", "apply", "-f", "-"], KEY)
        .await
        .unwrap();
    until_ready(cluster).await;
    cluster
        .kubectl(&[
            "wait",
            "--timeout=60s",
            "--for=condition=Ready",
            "projectkey/ci",
        ])
        .await
        .unwrap();
    let sized = r#"{"spec":{"size":{"fixed":1}}}"#;
    cluster
        .kubectl(&["patch", "compute", "orders", "--type=merge", "-p", sized])
        .await
        .unwrap();
    wait_until("the size to be in force", PATIENCE, async || {
        let size = cluster
            .kubectl(&["get", "compute", "orders", "-o", "jsonpath={.status.size}"])
            .await
            .unwrap();
        size == "1"
    })
    .await
    .unwrap();
    until_ready(cluster).await;
    operator.process.terminate(PATIENCE).await.unwrap();
    let view = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart/roles/user-view.yaml");
    cluster
        .kubectl(&["apply", "-f", view.to_str().unwrap()])
        .await
        .unwrap();
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], VIEWER)
        .await
        .unwrap();
    let viewer = cluster
        .kubeconfig_for_service_account("default", "viewer")
        .await
        .unwrap();
    let token = "go-template={{index .data \"api-key\" | base64decode}}";
    let token = cluster
        .kubectl(&["get", "secret", "ci-key", "-o", token])
        .await
        .unwrap();
    assert!(token.len() > 20);
    (
        token,
        Pipeline { kubeconfig: viewer },
        Pipeline {
            kubeconfig: cluster.kubeconfig_path(),
        },
    )
}

/// The expected plan for these manifests, independent of the user.
fn is_as_expected(plan: &Value) {
    let of = |name: &str| {
        plan["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap()
    };
    let actions = |name: &str| {
        let steps = of(name)["steps"].as_array().unwrap();
        steps
            .iter()
            .map(|step| step["action"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(actions("orders"), ["changeCompute"], "{plan:#}");
    let change = &of("orders")["steps"][0];
    assert_eq!(
        change["fields"],
        serde_json::json!([{"field": "size", "before": "1", "after": "2"}])
    );
    assert_eq!(change["interrupts"], true);
    assert_eq!(
        actions("reports"),
        ["createCompute", "writeSecret"],
        "{plan:#}"
    );
    assert_eq!(
        (&of("reports")["manifest"], &of("ci")["manifest"]),
        (&"new".into(), &"unchanged".into())
    );
    assert_eq!(actions("ci"), [""; 0], "{plan:#}");
    let units = |min: f64| serde_json::json!({"min": min, "max": min});
    assert_eq!(
        (&plan["cost"]["before"], &plan["cost"]["after"]),
        (&units(1.), &units(4.))
    );
}

#[tokio::test]
async fn a_plan_needs_the_rights_to_view_and_to_get_secrets_and_writes_nothing() {
    let (cluster, platform) = (cluster().await, platform().await);
    let (token, viewer, administrator) = scene(&cluster, &platform).await;
    let file = cluster.sandbox().folder().join("manifests.yaml");
    std::fs::write(&file, manifests()).unwrap();
    let file = file.to_str().unwrap();
    let (stands, written) = (versions(&cluster).await, writes(&platform));

    let said = administrator.plan(&["--detailed-exitcode"], "").await;
    assert_eq!(
        (said.code, said.out.contains("Plan: nothing to do.")),
        (0, true),
        "{}{}",
        said.out,
        said.err
    );
    // Without the right to get Secrets there is no plan. A key from the user replaces only the
    // Secret of the account.
    for (key, is_of_account) in [(&[][..], true), (&["--api-key", "-"], false)] {
        let args = [&["-f", file], key].concat();
        let said = viewer.plan(&args, CREDENTIAL).await;
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
        let right = "the right to get Secrets, and you may not get Secret default/";
        assert!(said.err.contains(right), "{}", said.err);
        let named = said.err.contains("default/platform-api-key");
        assert_eq!(named, is_of_account, "{}", said.err);
    }
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], READER)
        .await
        .unwrap();

    // The viewer may now get Secrets, but not that of the account.
    for (who, key) in [
        (&administrator, &[][..]),
        (&administrator, &["--api-key", "-"]),
        (&viewer, &["--api-key", "-"]),
    ] {
        let args = [&["-f", file, "--detailed-exitcode", "-o", "json"], key].concat();
        let said = who.plan(&args, CREDENTIAL).await;
        assert_eq!(said.code, 2, "{}{}", said.out, said.err);
        assert!(!said.out.contains(&token), "{}", said.out);
        let plan: Value = serde_json::from_str(&said.out).unwrap();
        is_as_expected(&plan);
        let is_viewer = std::ptr::eq(who, &raw const viewer);
        assert_eq!(plan["notRead"] != serde_json::json!([]), is_viewer);
    }

    let args = ["-f", file, "--api-key", "-"];
    let said = viewer.plan(&args, CREDENTIAL).await;
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    for line in [
        "Compute default/reports (new)\n  create a ReadOnly compute on branch br-main-42: size 2\n  create Secret reports-db",
        "size 1 → 2 (interrupts connections)",
        "Compute units, at minimum and maximum: 1 before, 4 after.",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }

    assert_eq!(versions(&cluster).await, stands);
    assert_eq!(writes(&platform), written);
}

#[tokio::test]
async fn what_the_api_server_would_refuse_is_no_plan_and_a_key_goes_nowhere_else() {
    let (cluster, platform) = (cluster().await, platform().await);
    declare(&cluster, &platform).await;
    let administrator = Pipeline {
        kubeconfig: cluster.kubeconfig_path(),
    };
    let record = json!({"status": {"record": r#"{"intent":{}}"#}}).to_string();
    let patch = ["--subresource=status", "--type=merge", "-p", &record];
    cluster
        .kubectl(&[&["patch", "compute", "orders"], &patch[..]].concat())
        .await
        .unwrap();
    let moved = manifests().replace("aged-wind-123456", "other-project");
    for (wrong, text) in [
        (
            manifests().replace("size: {fixed: 2}", "size: {fixed: two}"),
            "spec.size.fixed",
        ),
        (moved, "projectID"),
    ] {
        let said = administrator.plan(&["-f", "-"], &wrong).await;
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
        assert!(said.err.contains(text), "{}", said.err);
    }
    // The account is not in the cluster: keys there are not for its platform.
    let asked = platform.requests(0).len();
    let account = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: other}}
spec:
  baseURL: {}
  apiKeySecretRef: {{name: platform-api-key}}
",
        platform.base_url()
    );
    let said = administrator.plan(&["-f", "-"], &account).await;
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    assert!(
        said.err.contains("a key goes only where it went before"),
        "{}",
        said.err
    );
    assert_eq!(platform.requests(0).len(), asked);
}
