//! Runs the operator with its own ServiceAccount through the life of the examples, with the API
//! server's audit log. A missing rule causes a denied request; a superfluous rule is never used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as World, Simulator};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::audit::{Given, POLICY, Request, Right, given, requests};
use crate::support::{
    ControlPlane, Options, PATIENCE, Running, Sandbox, definition_files, free_port, wait_for,
    wait_until,
};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

#[tokio::test]
async fn every_right_is_needed_and_none_is_missing() {
    let mut installation = Installation::new("deploy").await;
    let examples = kubectl(&installation.cluster, &["kustomize", "deploy/examples"]).await;
    installation.run_through(&examples).await;
    let cluster = &installation.cluster;
    kubectl(cluster, &["delete", "namespace", "shop", "--timeout=60s"]).await;
    kubectl(
        cluster,
        &["delete", "clusteraccount", "company", "--timeout=60s"],
    )
    .await;
    installation.rights_are_exactly_those_used().await;
}

/// The namespaced objects of the examples in the namespace shop.
pub fn examples_of_a_namespace() -> String {
    let files = ["namespace", "account", "compute", "project-key", "replica"];
    let read = |name: &str| {
        fs::read_to_string(Path::new(REPOSITORY).join(format!("deploy/examples/{name}.yaml")))
            .unwrap()
    };
    let examples = files.map(read).join("\n---\n");
    examples.replace("kind: ClusterAccount\n    name: company", "name: prod")
}

/// The Roles in the served namespaces are its only rights and are deleted with them. So it deletes
/// everything on the platform before the namespace is gone.
#[tokio::test]
async fn an_installation_for_chosen_namespaces_needs_only_roles() {
    let mut installation = Installation::new("deploy/namespaced/example").await;
    installation.run_through(&examples_of_a_namespace()).await;
    let cluster = &installation.cluster;
    let everything = "readreplicasets,computes,projectkeys,accounts";
    in_shop(cluster, &["delete", everything, "--all", "--timeout=60s"]).await;
    kubectl(cluster, &["delete", "namespace", "shop", "--timeout=60s"]).await;
    let of_the_cluster = kubectl(
        cluster,
        &["get", "clusterroles,clusterrolebindings", "-o=name"],
    )
    .await;
    assert!(!of_the_cluster.contains("dbplane"), "{of_the_cluster}");
    installation.rights_are_exactly_those_used().await;
}

/// The installation by a folder of deploy/, with an audit log of the operator's requests.
pub struct Installation {
    audit: Sandbox,
    pub cluster: ControlPlane,
    pub platform: Simulator,
    /// The variables in the ConfigMap of the operator's Pod.
    environment: BTreeMap<String, String>,
    given: BTreeSet<Given>,
    operator: Option<Running>,
}

impl Installation {
    pub async fn new(folder: &str) -> Self {
        let audit = Sandbox::new("audit").unwrap();
        let (policy, log) = (audit.folder().join("policy.json"), log_in(&audit));
        fs::write(&policy, POLICY).unwrap();
        let api_server_flags = vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", log.display()),
        ];
        let options = Options {
            api_server_flags,
            crds: definition_files(),
            ..Options::default()
        };
        let cluster = ControlPlane::start_with(options).await.unwrap();
        kubectl(&cluster, &["create", "namespace", "shop"]).await;
        kubectl(&cluster, &["apply", "-k", folder]).await;
        let environment = kubectl(
            &cluster,
            &["-n=dbplane-system", "get", "configmaps", "-o=json"],
        )
        .await;
        let environment: Value = serde_json::from_str(&environment).unwrap();
        let environment = environment["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|map| map["data"].as_object());
        let environment = environment
            .flatten()
            .filter(|(name, _)| name.starts_with("DBPLANE_"));
        let environment = environment
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        let given = given(&cluster).await;
        Self {
            audit,
            cluster,
            platform: start_platform().await,
            environment,
            given,
            operator: None,
        }
    }

    /// Exercises all functions of the operator.
    async fn run_through(&mut self, examples: &str) {
        let mut operator = self.start_operator().await;
        apply_the_examples(&self.cluster, &self.platform, examples).await;
        scale_a_set(&self.cluster).await;
        stop_with_an_unsaved_key(&self.cluster, &mut operator).await;
        let operator = self.start_operator().await;
        exchange_the_credentials(&self.cluster).await;
        unprotect_the_examples(&self.cluster).await;
        self.operator = Some(operator);
    }

    async fn rights_are_exactly_those_used(mut self) {
        let mut operator = self.operator.take().unwrap();
        operator.signal(Signal::SIGTERM).unwrap();
        assert!(operator.wait(PATIENCE).await.unwrap().success());
        let requests = requests(&log_in(&self.audit));
        let refused: BTreeSet<Right> = requests
            .iter()
            .filter(|request| request.is_refused())
            .map(Request::right)
            .collect();
        assert!(refused.is_empty(), "deploy/chart/roles lacks: {refused:#?}");
        let used: BTreeSet<Given> = requests
            .iter()
            .map(|request| self.narrowest(request))
            .collect();
        let unused: Vec<&Given> = self.given.difference(&used).collect();
        assert!(
            unused.is_empty(),
            "deploy/chart/roles gives what the operator never used: {unused:#?}"
        );
    }

    /// The most specific granted right for a request: for a named object if such a rule exists.
    fn narrowest(&self, request: &Request) -> Given {
        let name = request
            .object_ref
            .as_ref()
            .map(|object| object.name.clone());
        let named = Given {
            right: request.right(),
            name,
        };
        if self.given.contains(&named) {
            named
        } else {
            Given {
                name: None,
                ..named
            }
        }
    }

    pub async fn start_operator(&self) -> Running {
        start_operator(&self.cluster, &self.environment).await
    }
}

fn log_in(audit: &Sandbox) -> PathBuf {
    audit.folder().join("audit.log")
}

/// Applies the examples and pauses one of them.
async fn apply_the_examples(cluster: &ControlPlane, platform: &Simulator, examples: &str) {
    let examples = examples.replace("https://platform.example/api/v2", &platform.base_url());
    cluster.apply(&examples).await.unwrap();
    until_examples_are_ready(cluster).await;
    // The second time, the event is patched instead of created.
    for _ in 0..2 {
        in_shop(
            cluster,
            &["annotate", "compute/orders", "dbplane.dev/paused=true"],
        )
        .await;
        reason_of(cluster, "compute/orders", "Paused", "Paused").await;
        in_shop(
            cluster,
            &["annotate", "compute/orders", "dbplane.dev/paused-"],
        )
        .await;
        reason_of(cluster, "compute/orders", "Paused", "").await;
    }
}

pub async fn until_examples_are_ready(cluster: &ControlPlane) {
    let ready = [
        "wait",
        "--for=condition=Ready",
        "--timeout=60s",
        "accounts,computes,projectkeys",
        "--all",
    ];
    in_shop(cluster, &ready).await;
}

/// A set is scaled up and down, and adopts a Compute.
async fn scale_a_set(cluster: &ControlPlane) {
    kubectl(
        cluster,
        &["apply", "-f", "deploy/examples/read-replica-set.yaml"],
    )
    .await;
    in_shop(
        cluster,
        &[
            "wait",
            "--for=condition=Ready",
            "--timeout=60s",
            "readreplicaset/orders-read",
        ],
    )
    .await;
    in_shop(
        cluster,
        &["scale", "readreplicaset/orders-read", "--replicas=1"],
    )
    .await;
    in_shop(
        cluster,
        &[
            "wait",
            "--for=delete",
            "--timeout=60s",
            "compute/orders-read-1",
        ],
    )
    .await;
    in_shop(
        cluster,
        &["label", "compute/orders-replica", "app=orders-read"],
    )
    .await;
    // The set then has one replica too many, and deletes one.
    let events = [
        "get",
        "events.events.k8s.io",
        "-o=jsonpath={.items[*].reason}",
    ];
    let adopted = async || in_shop(cluster, &events).await.contains("ReplicaAdopted");
    wait_until("the Compute to be adopted", PATIENCE, adopted)
        .await
        .unwrap();
    in_shop(cluster, &["delete", "readreplicaset/orders-read"]).await;
}

/// The cluster rejects the new key in its Secret while the operator is stopped. The operator must
/// save the key before it exits.
async fn stop_with_an_unsaved_key(cluster: &ControlPlane, operator: &mut Running) {
    cluster.apply(NO_NEW_KEYS).await.unwrap();
    let example = in_shop(cluster, &["get", "projectkey/ci", "-o=json"]).await;
    let mut late: Value = serde_json::from_str(&example).unwrap();
    late["metadata"] = json!({"name": "late", "namespace": "shop"});
    late["spec"]["secret"]["name"] = json!("late-key");
    let refused = async || {
        cluster
            .kubectl_with_input(TRY_TO_WRITE, BLOCKED)
            .await
            .is_err()
    };
    in_shop(cluster, &["create", "secret", "generic", "blocked"]).await;
    wait_until("the policy to be in force", PATIENCE, refused)
        .await
        .unwrap();
    cluster
        .kubectl_with_input(&["create", "-f", "-"], &late.to_string())
        .await
        .unwrap();
    reason(cluster, "projectkey/late", "SecretNotWritten").await;

    operator.signal(Signal::SIGTERM).unwrap();
    let trying = async || operator.log().contains("a key is not saved yet");
    wait_until(
        "the operator to try while it is being stopped",
        PATIENCE,
        trying,
    )
    .await
    .unwrap();
    cluster
        .kubectl_with_input(&["delete", "-f", "-"], NO_NEW_KEYS)
        .await
        .unwrap();

    assert!(operator.wait(PATIENCE).await.unwrap().success());
    let key = in_shop(
        cluster,
        &["get", "secret/late-key", "-o=jsonpath={.data.api-key}"],
    )
    .await;
    assert!(!key.is_empty(), "the key is in its Secret");
}

/// A policy that allows the creation of Secrets, but not their update. Dry runs pass: without them
/// the operator would not create a key, as it checks first that it can save it.
const NO_NEW_KEYS: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-new-keys}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [secrets]}
  validations:
    - {expression: \"request.dryRun || !(object.metadata.name in ['late-key', 'blocked'])\", message: not now}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-new-keys}
spec: {policyName: no-new-keys, validationActions: [Deny]}
";
const TRY_TO_WRITE: &[&str] = &["apply", "--server-side", "-f", "-"];
const BLOCKED: &str = "{apiVersion: v1, kind: Secret, metadata: {name: blocked, namespace: shop}, stringData: {a: b}}";

/// Credentials in use have a finalizer. When a user deletes them, the operator checks that the
/// namespace is not in deletion, and removes the finalizer.
async fn exchange_the_credentials(cluster: &ControlPlane) {
    let before = in_shop(cluster, &["get", "secret/platform-api-key", "-o=json"]).await;
    let mut next: Value = serde_json::from_str(&before).unwrap();
    next["metadata"] = json!({"name": "platform-api-key", "namespace": "shop"});
    in_shop(
        cluster,
        &["delete", "secret/platform-api-key", "--timeout=60s"],
    )
    .await;
    reason(cluster, "account/prod", "CredentialsMissing").await;
    cluster
        .kubectl_with_input(&["create", "-f", "-"], &next.to_string())
        .await
        .unwrap();
    reason(cluster, "account/prod", "Available").await;
}

async fn unprotect_the_examples(cluster: &ControlPlane) {
    let unprotected = r#"--patch={"spec":{"deletionProtection":false}}"#;
    in_shop(
        cluster,
        &["patch", "compute", "orders", "--type=merge", unprotected],
    )
    .await;
}

async fn reason(cluster: &ControlPlane, object: &str, reason: &str) {
    reason_of(cluster, object, "Ready", reason).await;
}

async fn reason_of(cluster: &ControlPlane, object: &str, condition: &str, reason: &str) {
    let path = format!("-o=jsonpath={{.status.conditions[?(@.type==\"{condition}\")].reason}}");
    let arrived = async || in_shop(cluster, &["get", object, &path]).await == reason;
    wait_until(&format!("{object} to be {reason}"), PATIENCE, arrived)
        .await
        .unwrap();
}

/// kubectl in the namespace of the examples.
pub async fn in_shop(cluster: &ControlPlane, args: &[&str]) -> String {
    kubectl(cluster, &[&["-n=shop"], args].concat()).await
}

pub async fn kubectl(cluster: &ControlPlane, args: &[&str]) -> String {
    let args: Vec<String> = args
        .iter()
        .map(|arg| match arg.strip_prefix("deploy") {
            Some(_) => Path::new(REPOSITORY).join(arg).display().to_string(),
            None => (*arg).to_owned(),
        })
        .collect();
    cluster
        .kubectl(&args.iter().map(String::as_str).collect::<Vec<_>>())
        .await
        .unwrap()
}

async fn start_operator(cluster: &ControlPlane, environment: &BTreeMap<String, String>) -> Running {
    let kubeconfig = cluster
        .kubeconfig_for_service_account("dbplane-system", "dbplane")
        .await
        .unwrap();
    let health = format!("127.0.0.1:{}", free_port().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args([
            "run",
            "--leader-elect",
            "--allow-insecure-platform",
            "--health-listen",
            &health,
        ])
        .arg(format!(
            "--metrics-listen=127.0.0.1:{}",
            free_port().unwrap()
        ))
        .envs(environment)
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster
        .sandbox()
        .start("operator", command)
        .unwrap()
        .log_on_panic();
    let url = format!("http://{health}/readyz");
    wait_for("the operator to be ready", PATIENCE, async || {
        let answer = reqwest::Client::new()
            .get(&url)
            .timeout(Duration::from_secs(2))
            .send()
            .await
            .ok()?;
        answer.status().is_success().then_some(())
    })
    .await
    .unwrap();
    operator
}

async fn start_platform() -> Simulator {
    let world =
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/examples/world.yaml")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    simulator::serve(listener, World::new(WorldFile::parse(&world).unwrap()))
        .await
        .unwrap()
}
