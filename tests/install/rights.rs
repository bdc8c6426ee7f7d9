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
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{
    ControlPlane, Options, PATIENCE, Running, Sandbox, definition_files, free_port, wait_for,
    wait_until,
};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const OPERATOR: &str = "system:serviceaccount:dbplane-system:dbplane";
/// Only the operator's requests, and only after their answer.
const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "Metadata", "users": ["system:serviceaccount:dbplane-system:dbplane"]},
    {"level": "None"}
  ]
}"#;

/// A verb on a resource: `list secrets`, `patch dbplane.dev/computes/status`.
type Right = String;

#[tokio::test]
async fn every_right_is_needed_and_none_is_missing() {
    let mut installation = Installation::new("deploy").await;
    let examples = kubectl(&installation.cluster, &["kustomize", "deploy/examples"]).await;
    installation.is_lived_in(&examples).await;
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
async fn an_installation_for_chosen_namespaces_needs_roles_alone() {
    let mut installation = Installation::new("deploy/namespaced/example").await;
    installation.is_lived_in(&examples_of_a_namespace()).await;
    let cluster = &installation.cluster;
    let everything = "readreplicasets,computes,projectkeys,accounts";
    kubectl(
        cluster,
        &["-n=shop", "delete", everything, "--all", "--timeout=60s"],
    )
    .await;
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

    async fn is_lived_in(&mut self, examples: &str) {
        let mut operator = self.start_operator().await;
        live_through_the_examples(&self.cluster, &self.platform, examples).await;
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
        assert!(refused.is_empty(), "deploy/roles lacks: {refused:#?}");
        let used: BTreeSet<Given> = requests
            .iter()
            .map(|request| self.narrowest(request))
            .collect();
        let unused: Vec<&Given> = self.given.difference(&used).collect();
        assert!(
            unused.is_empty(),
            "deploy/roles gives what the operator never used: {unused:#?}"
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

/// Exercises all functions of the operator.
async fn live_through_the_examples(cluster: &ControlPlane, platform: &Simulator, examples: &str) {
    let examples = examples.replace("https://platform.example/api/v2", &platform.base_url());
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], &examples)
        .await
        .unwrap();
    let ready = [
        "wait",
        "-n=shop",
        "--for=condition=Ready",
        "--timeout=60s",
        "accounts,computes,projectkeys",
        "--all",
    ];
    kubectl(cluster, &ready).await;
    // The second time, the event is patched instead of created.
    for _ in 0..2 {
        kubectl(
            cluster,
            &[
                "-n=shop",
                "annotate",
                "compute/orders",
                "dbplane.dev/paused=true",
            ],
        )
        .await;
        reason_of(cluster, "compute/orders", "Paused", "Paused").await;
        kubectl(
            cluster,
            &[
                "-n=shop",
                "annotate",
                "compute/orders",
                "dbplane.dev/paused-",
            ],
        )
        .await;
        reason_of(cluster, "compute/orders", "Paused", "").await;
    }
}

/// A set is scaled up and down, and adopts a Compute.
async fn scale_a_set(cluster: &ControlPlane) {
    kubectl(
        cluster,
        &["apply", "-f", "deploy/examples/read-replica-set.yaml"],
    )
    .await;
    kubectl(
        cluster,
        &[
            "-n=shop",
            "wait",
            "--for=condition=Ready",
            "--timeout=60s",
            "readreplicaset/orders-read",
        ],
    )
    .await;
    kubectl(
        cluster,
        &[
            "-n=shop",
            "scale",
            "readreplicaset/orders-read",
            "--replicas=1",
        ],
    )
    .await;
    kubectl(
        cluster,
        &[
            "-n=shop",
            "wait",
            "--for=delete",
            "--timeout=60s",
            "compute/orders-read-1",
        ],
    )
    .await;
    kubectl(
        cluster,
        &[
            "-n=shop",
            "label",
            "compute/orders-replica",
            "app=orders-read",
        ],
    )
    .await;
    // The set then has one replica too many, and deletes one.
    let events = [
        "-n=shop",
        "get",
        "events.events.k8s.io",
        "-o=jsonpath={.items[*].reason}",
    ];
    let adopted = async || kubectl(cluster, &events).await.contains("ReplicaAdopted");
    wait_until("the Compute to be adopted", PATIENCE, adopted)
        .await
        .unwrap();
    kubectl(
        cluster,
        &["-n=shop", "delete", "readreplicaset/orders-read"],
    )
    .await;
}

/// The cluster rejects the new key in its Secret while the operator is stopped. The operator must
/// save the key before it exits.
async fn stop_with_an_unsaved_key(cluster: &ControlPlane, operator: &mut Running) {
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], NO_NEW_KEYS)
        .await
        .unwrap();
    let example = kubectl(cluster, &["-n=shop", "get", "projectkey/ci", "-o=json"]).await;
    let mut late: Value = serde_json::from_str(&example).unwrap();
    late["metadata"] = json!({"name": "late", "namespace": "shop"});
    late["spec"]["secret"]["name"] = json!("late-key");
    let refused = async || {
        cluster
            .kubectl_with_input(TRY_TO_WRITE, BLOCKED)
            .await
            .is_err()
    };
    kubectl(
        cluster,
        &["-n=shop", "create", "secret", "generic", "blocked"],
    )
    .await;
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
    let key = kubectl(
        cluster,
        &[
            "-n=shop",
            "get",
            "secret/late-key",
            "-o=jsonpath={.data.api-key}",
        ],
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
    let before = kubectl(
        cluster,
        &["-n=shop", "get", "secret/platform-api-key", "-o=json"],
    )
    .await;
    let mut next: Value = serde_json::from_str(&before).unwrap();
    next["metadata"] = json!({"name": "platform-api-key", "namespace": "shop"});
    kubectl(
        cluster,
        &[
            "-n=shop",
            "delete",
            "secret/platform-api-key",
            "--timeout=60s",
        ],
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
    kubectl(
        cluster,
        &[
            "-n=shop",
            "patch",
            "compute",
            "orders",
            "--type=merge",
            unprotected,
        ],
    )
    .await;
}

async fn reason(cluster: &ControlPlane, object: &str, reason: &str) {
    reason_of(cluster, object, "Ready", reason).await;
}

async fn reason_of(cluster: &ControlPlane, object: &str, condition: &str, reason: &str) {
    let path = format!("-o=jsonpath={{.status.conditions[?(@.type==\"{condition}\")].reason}}");
    let arrived = async || kubectl(cluster, &["-n=shop", "get", object, &path]).await == reason;
    wait_until(&format!("{object} to be {reason}"), PATIENCE, arrived)
        .await
        .unwrap();
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

/// A right to all objects, or to the object with this name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Given {
    right: Right,
    name: Option<String>,
}

/// The operator's rights in the installed roles.
async fn given(cluster: &ControlPlane) -> BTreeSet<Given> {
    // Roles for users extend ClusterRoles of the cluster and are excluded.
    let of_the_operator =
        "-l=app.kubernetes.io/part-of=dbplane,!rbac.authorization.k8s.io/aggregate-to-admin";
    let roles = kubectl(
        cluster,
        &[
            "get",
            "clusterroles,roles",
            "-A",
            of_the_operator,
            "-o=json",
        ],
    )
    .await;
    let roles: Value = serde_json::from_str(&roles).unwrap();
    let mut given = BTreeSet::new();
    for role in roles["items"].as_array().unwrap() {
        let rules: Vec<Rule> = serde_json::from_value(role["rules"].clone()).unwrap();
        for Rule {
            api_groups,
            resources,
            resource_names,
            verbs,
        } in &rules
        {
            let names = || match resource_names.as_slice() {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for (group, resource) in api_groups
                .iter()
                .flat_map(|group| resources.iter().map(move |resource| (group, resource)))
            {
                let rights = verbs.iter().map(|verb| right(verb, group, resource));
                given.extend(rights.flat_map(|right| {
                    names().into_iter().map(move |name| Given {
                        right: right.clone(),
                        name,
                    })
                }));
            }
        }
    }
    given
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    name: String,
}

impl Request {
    /// Only denied by authorization: a 403 can also mean that the namespace is in deletion.
    fn is_refused(&self) -> bool {
        self.annotations
            .get("authorization.k8s.io/decision")
            .is_some_and(|decision| decision == "forbid")
    }

    fn right(&self) -> Right {
        let Some(object) = &self.object_ref else {
            return self.verb.clone();
        };
        let subresource = if object.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", object.subresource)
        };
        right(
            &self.verb,
            &object.api_group,
            &format!("{}{subresource}", object.resource),
        )
    }
}

fn right(verb: &str, group: &str, resource: &str) -> Right {
    let group = if group.is_empty() {
        String::new()
    } else {
        format!("{group}/")
    };
    format!("{verb} {group}{resource}")
}

fn requests(log: &Path) -> Vec<Request> {
    let log = fs::read_to_string(log).unwrap();
    let requests: Vec<Request> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        !requests.is_empty()
            && requests
                .iter()
                .all(|request| request.user.username == OPERATOR)
    );
    requests
}
