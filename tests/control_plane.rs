//! Tests of the control planes that other tests use: they work, and they leave nothing behind.

#![allow(
    clippy::unwrap_used,
    reason = "the lint knows #[test] functions, not what they call"
)]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write as _};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, panic};

use futures::future::pending;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use support::{ControlPlane, Options, PATIENCE, Sandbox, free_port, wait_until};

/// The file in which a child process with a cluster writes its traces before it is killed.
const REPORT: &str = "DBPLANE_TEST_REPORT";
/// The variable that makes a child process reserve ports and print them.
const PORTS: &str = "DBPLANE_TEST_PORTS";

#[tokio::test]
async fn two_clusters_started_at_once_are_two() {
    let (one, two) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    let (one, two) = (one.unwrap(), two.unwrap());

    one.kubectl(&["create", "namespace", "only-in-one"])
        .await
        .unwrap();
    let namespaces: Api<Namespace> = Api::all(two.client().await.unwrap());

    assert!(namespaces.get_opt("only-in-one").await.unwrap().is_none());
    one.stop();
    assert!(
        namespaces.get_opt("default").await.unwrap().is_some(),
        "the other cluster goes on"
    );
}

#[tokio::test]
async fn dependents_are_garbage_collected_with_their_owner() {
    let cluster = ControlPlane::shared().await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(namespace(cluster, "owners").await, "owners");
    let owner = config_maps
        .create(&PostParams::default(), &config_map("owner", None))
        .await
        .unwrap();
    config_maps
        .create(
            &PostParams::default(),
            &config_map(
                "owned",
                Some(owner_reference("v1", "ConfigMap", &owner.uid().unwrap())),
            ),
        )
        .await
        .unwrap();

    config_maps
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();

    let gone = async || config_maps.get_opt("owned").await.unwrap().is_none();
    wait_until("the owned ConfigMap to go", PATIENCE, gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn kinds_installed_before_the_controllers_have_owners_at_once() {
    let options = Options {
        crds: vec!["tests/support/crd.yaml".into()],
        ..Options::default()
    };
    let cluster = ControlPlane::start_with(options).await.unwrap();
    let thing =
        "{apiVersion: example.dev/v1, kind: Thing, metadata: {name: owner, namespace: default}}";
    cluster
        .kubectl_with_input(&["create", "-f", "-"], thing)
        .await
        .unwrap();
    let uid = cluster
        .kubectl(&["get", "thing", "owner", "-o", "jsonpath={.metadata.uid}"])
        .await
        .unwrap();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().await.unwrap());
    let owner = owner_reference("example.dev/v1", "Thing", &uid);
    config_maps
        .create(&PostParams::default(), &config_map("owned", Some(owner)))
        .await
        .unwrap();

    cluster
        .kubectl(&["delete", "thing", "owner"])
        .await
        .unwrap();

    // Less than the 30 s after which the garbage collector looks for new kinds.
    let gone = async || config_maps.get_opt("owned").await.unwrap().is_none();
    wait_until("the owned ConfigMap to go", Duration::from_secs(20), gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_deleted_namespace_is_removed() {
    let cluster = ControlPlane::shared().await.unwrap();
    let client = namespace(cluster, "short-lived").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "short-lived");
    config_maps
        .create(&PostParams::default(), &config_map("inside", None))
        .await
        .unwrap();
    let namespaces: Api<Namespace> = Api::all(client);

    namespaces
        .delete("short-lived", &DeleteParams::default())
        .await
        .unwrap();

    let gone = async || namespaces.get_opt("short-lived").await.unwrap().is_none();
    wait_until("the namespace to go", PATIENCE, gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_service_account_has_exactly_the_rights_of_its_role() {
    let cluster = ControlPlane::shared().await.unwrap();
    namespace(cluster, "accounts").await;
    for args in [
        ["create", "serviceaccount", "reader", "--namespace=accounts"].as_slice(),
        &[
            "create",
            "role",
            "reader",
            "--verb=list",
            "--resource=configmaps",
            "--namespace=accounts",
        ],
        &[
            "create",
            "rolebinding",
            "reader",
            "--role=reader",
            "--serviceaccount=accounts:reader",
            "-n=accounts",
        ],
    ] {
        cluster.kubectl(args).await.unwrap();
    }

    let client = cluster
        .client_for_service_account("accounts", "reader")
        .await
        .unwrap();

    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "accounts");
    let may_list = async || config_maps.list(&ListParams::default()).await.is_ok();
    wait_until("the role to count", PATIENCE, may_list)
        .await
        .unwrap();
    let secrets: Api<Secret> = Api::namespaced(client, "accounts");
    let refusal = secrets
        .list(&ListParams::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("system:serviceaccount:accounts:reader") && refusal.contains("forbidden"),
        "{refusal}"
    );
}

#[tokio::test]
async fn kubectl_reads_its_input_and_returns_its_error() {
    let cluster = ControlPlane::shared().await.unwrap();
    let manifest = "{apiVersion: v1, kind: Namespace, metadata: {name: applied}}";

    let said = cluster.apply(manifest).await.unwrap();
    let complaint = cluster
        .kubectl(&["get", "namespace", "nowhere"])
        .await
        .unwrap_err()
        .to_string();

    assert_eq!(said.trim(), "namespace/applied created");
    assert!(
        complaint.contains(r#"namespaces "nowhere" not found"#),
        "{complaint}"
    );
}

#[tokio::test]
async fn a_restarted_api_server_keeps_its_contents() {
    let without_controllers = Options {
        controllers: Vec::new(),
        ..Options::default()
    };
    let mut cluster = ControlPlane::start_with(without_controllers).await.unwrap();
    let client = namespace(&cluster, "before").await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let account = ServiceAccount {
        metadata: named("waiting"),
        ..ServiceAccount::default()
    };
    Api::namespaced(client, "before")
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let account = cluster
        .client_for_service_account("before", "waiting")
        .await
        .unwrap();

    cluster.stop_api_server().unwrap();
    assert!(namespaces.get("before").await.is_err());
    cluster.start_api_server().await.unwrap();

    assert!(namespaces.get_opt("before").await.unwrap().is_some());
    assert!(
        account.list_core_api_versions().await.is_ok(),
        "the token from before still holds"
    );
}

#[tokio::test]
async fn a_cluster_is_removed_after_a_drop_or_a_panic() {
    let dropped = ControlPlane::start().await.unwrap();
    let traces = Traces::of(&dropped);
    traces.assert_all_there();
    drop(dropped);
    traces.assert_gone();

    let cluster = ControlPlane::start().await.unwrap();
    let traces = Traces::of(&cluster);
    panic::catch_unwind(AssertUnwindSafe(move || {
        let _held = cluster;
        panic!("on purpose");
    }))
    .unwrap_err();
    traces.assert_gone();
}

#[tokio::test]
async fn a_cluster_is_removed_after_its_holder_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let report = place.path().join("report");
    let mut holder = Command::new(env::current_exe().unwrap())
        .args(["--exact", "holds_a_cluster_until_killed", "--ignored"])
        .env(REPORT, &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a cluster to kill the holder of", PATIENCE, async || {
        report.exists()
    })
    .await
    .unwrap();
    let traces = Traces::read(&report);
    traces.assert_all_there();

    holder.kill().unwrap();
    holder.wait().unwrap();

    wait_until("everything to be gone", PATIENCE, async || {
        traces.left().is_empty()
    })
    .await
    .unwrap();
}

#[tokio::test]
#[ignore = "not a test: the process that a_cluster_is_removed_after_its_holder_is_killed kills"]
async fn holds_a_cluster_until_killed() {
    let Some(report) = env::var_os(REPORT).map(PathBuf::from) else {
        return;
    };
    let cluster = ControlPlane::start().await.unwrap();
    Traces::of(&cluster).write(&report);
    pending::<()>().await;
}

#[test]
fn programs_that_run_at_once_are_given_different_ports() {
    const EACH: usize = 1200;
    let mut holder = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "holds_ports_until_its_input_ends",
            "--ignored",
            "--nocapture",
        ])
        .env(PORTS, EACH.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let theirs: BTreeSet<u16> = lines
        .by_ref()
        .filter_map(|line| line.unwrap().parse().ok())
        .take(EACH)
        .collect();
    // Nothing listens on the other process's ports, so only the locks reserve them.
    let ours: BTreeSet<u16> = (0..EACH).map(|_| free_port().unwrap()).collect();
    assert_eq!((theirs.len(), ours.len()), (EACH, EACH));
    assert_eq!(ours.intersection(&theirs).count(), 0, "{theirs:?}");
    drop(holder.stdin.take());
    lines.for_each(drop);
    assert!(holder.wait().unwrap().success());
}

#[test]
#[ignore = "not a test: the process that programs_that_run_at_once_are_given_different_ports starts"]
fn holds_ports_until_its_input_ends() {
    let Some(count) = env::var(PORTS).ok() else {
        return;
    };
    let mut output = std::io::stdout().lock();
    for _ in 0..count.parse().unwrap() {
        write!(output, "\n{}\n", free_port().unwrap()).unwrap();
    }
    std::io::stdin().lines().for_each(drop);
}

#[tokio::test]
async fn a_process_is_ended_and_its_output_is_read() {
    let sandbox = Sandbox::new("process").unwrap();
    let mut polite = Command::new("bash");
    polite.args([
        "-c",
        "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done",
    ]);

    let mut polite = sandbox.start("polite", polite).unwrap();
    wait_until("it to be up", PATIENCE, async || polite.log() == "up\n")
        .await
        .unwrap();
    assert!(polite.resident_kib().unwrap() > 100);
    let status = polite.terminate(PATIENCE).await.unwrap();

    assert_eq!(
        (status.code(), polite.log().as_str()),
        (Some(3), "up\nbye\n")
    );
    assert!(polite.resident_kib().is_err() && polite.signal(nix::sys::signal::SIGTERM).is_err());
}

#[tokio::test]
async fn a_cluster_that_cannot_start_reports_the_output_of_its_process() {
    let flags = vec!["--no-such-flag".to_owned()];

    let error = ControlPlane::start_with(Options {
        api_server_flags: flags,
        ..Options::default()
    })
    .await
    .unwrap_err();

    assert!(
        error.to_string().contains("unknown flag: --no-such-flag"),
        "{error}"
    );
}

/// The traces of a cluster on this machine.
struct Traces {
    folder: PathBuf,
    processes: Vec<String>,
}

impl Traces {
    fn of(cluster: &ControlPlane) -> Self {
        let watchdog = cluster.sandbox().group().to_string();
        let processes = cluster
            .process_ids()
            .iter()
            .map(u32::to_string)
            .chain([watchdog])
            .collect();
        Self {
            folder: cluster.sandbox().folder().to_owned(),
            processes,
        }
    }

    fn read(report: &Path) -> Self {
        let text = fs::read_to_string(report).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        Self {
            folder: lines.next().unwrap().into(),
            processes: lines.collect(),
        }
    }

    /// Write beside the target and rename, so that readers never see a partial file.
    fn write(&self, report: &Path) {
        let unfinished = report.with_extension("unfinished");
        fs::write(
            &unfinished,
            format!("{}\n{}\n", self.folder.display(), self.processes.join("\n")),
        )
        .unwrap();
        fs::rename(unfinished, report).unwrap();
    }

    fn left(&self) -> Vec<String> {
        let processes = self.processes.iter().filter(|id| is_alive(id)).cloned();
        processes
            .chain(
                self.folder
                    .exists()
                    .then(|| self.folder.display().to_string()),
            )
            .collect()
    }

    fn assert_all_there(&self) {
        assert_eq!(
            self.left().len(),
            5,
            "etcd, two Kubernetes programs, the watchdog, the folder: {:?}",
            self.left()
        );
    }

    fn assert_gone(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
    }
}

/// A zombie counts as dead: it only waits for its parent to collect the status.
fn is_alive(id: &str) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn namespace(cluster: &ControlPlane, name: &str) -> Client {
    let client = cluster.client().await.unwrap();
    let namespace = Namespace {
        metadata: named(name),
        ..Namespace::default()
    };
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    client
}

/// A reference to an object named "owner".
fn owner_reference(api_version: &str, kind: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: "owner".to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }
}

fn config_map(name: &str, owner: Option<OwnerReference>) -> ConfigMap {
    let owner_references = owner.map(|owner| vec![owner]);
    ConfigMap {
        metadata: ObjectMeta {
            owner_references,
            ..named(name)
        },
        ..ConfigMap::default()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}
