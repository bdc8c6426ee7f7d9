//! Runs the images as a node would: a read-only root file system from their layers, an unprivileged
//! user, no capabilities. Instead of a container engine, tests/ecosystem/contained uses features of
//! the kernel.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fixture;
use crate::release::{install, released, unpack};
use crate::support::{ControlPlane, PATIENCE, Running, Sandbox, free_port, wait_for};

const NAMESPACE: &str = "dbplane-system";
/// The name in the API server's certificate; only DNS resolves it.
const API_SERVER: &str = "kubernetes.default.svc";
const NAME_SERVER: &str = "127.0.0.77";
const LARGEST: u64 = 20 << 20;

/// An image with its layers unpacked into one folder.
struct Image {
    sandbox: Sandbox,
    manifest: Value,
    config: Value,
}

impl Image {
    fn of(program: &str) -> Self {
        let sandbox = Sandbox::new("image").unwrap();
        let layout = sandbox.folder().join("layout");
        unpack(
            &released(&format!("{program}-{{}}-linux-amd64-image.tar")),
            &layout,
        );
        let index: Value =
            serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
        let read = |descriptor: &Value| {
            serde_json::from_slice::<Value>(&fs::read(blob(&layout, descriptor)).unwrap())
        };
        let manifest = read(&index["manifests"][0]).unwrap();
        let config = read(&manifest["config"]).unwrap();
        let image = Self {
            sandbox,
            manifest,
            config,
        };
        // The manifest for `docker load` refers to the same blobs.
        let for_docker: Value =
            serde_json::from_slice(&fs::read(layout.join("manifest.json")).unwrap()).unwrap();
        let named = for_docker[0]["Layers"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&for_docker[0]["Config"]]);
        let mut named: BTreeSet<_> = named
            .map(|path| layout.join(path.as_str().unwrap()))
            .collect();
        for layer in image.manifest["layers"].as_array().unwrap() {
            let layer = blob(&layout, layer);
            unpack(&layer, &image.root());
            named.remove(&layer);
        }
        assert_eq!(named, [blob(&layout, &image.manifest["config"])].into());
        image
    }

    fn root(&self) -> PathBuf {
        self.sandbox.folder().join("root")
    }

    /// The program of the image with these arguments.
    fn command(&self, args: &[&str]) -> Command {
        let config = &self.config["config"];
        let entrypoint = config["Entrypoint"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part.as_str().unwrap());
        let variables = config["Env"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one.as_str().unwrap());
        let mut command = Command::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/ecosystem/contained"
        ));
        command
            .arg(self.root())
            .arg(config["User"].as_str().unwrap())
            .args(entrypoint)
            .args(args);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(variables.map(|variable| variable.split_once('=').unwrap()));
        command
    }

    /// Writes a file that a node would mount.
    fn mount(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// The paths of all files in the image.
    fn files(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.root()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                found.push(path);
            }
        }
        found
    }
}

/// The blob for a descriptor. Its name is a hash, which must match the content.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let (algorithm, hash) = descriptor["digest"]
        .as_str()
        .unwrap()
        .split_once(':')
        .unwrap();
    let path = layout.join("blobs").join(algorithm).join(hash);
    let content = fs::read(&path).unwrap();
    assert_eq!(json!(content.len()), descriptor["size"]);
    assert_eq!(
        Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>(),
        hash
    );
    path
}

fn runs_as_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn images_are_small_and_have_neither_a_shell_nor_a_way_to_privileges() {
    for program in ["dbplane", "dbplane-simulator"] {
        let mut image = Image::of(program);
        let parts = image.manifest["layers"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&image.manifest["config"]]);
        let size: u64 = parts.map(|part| part["size"].as_u64().unwrap()).sum();
        assert!(size < LARGEST, "{program}: {size} bytes");
        let config = &image.config["config"];
        assert_eq!(
            (&config["User"], &config["Entrypoint"]),
            (&json!("65532:65532"), &json!([format!("/{program}")]))
        );
        assert_eq!(
            (&image.config["os"], &image.config["architecture"]),
            (&json!("linux"), &json!("amd64"))
        );
        for label in [
            "title",
            "description",
            "licenses",
            "version",
            "revision",
            "created",
        ] {
            let value = config["Labels"][format!("org.opencontainers.image.{label}")].as_str();
            assert!(
                value.is_some_and(|text| !text.is_empty()),
                "{program}: {label}"
            );
        }
        assert_eq!(
            executables(&image),
            [program, "ld-linux-x86-64.so.2", "libc.so.6"]
                .map(str::to_owned)
                .into()
        );
        let authorities =
            fs::read_to_string(image.root().join("etc/ssl/certs/ca-certificates.crt")).unwrap();
        assert!(authorities.matches("BEGIN CERTIFICATE").count() > 100);
        // The second one is as OpenShift gives it to a Pod: the image does not name it.
        for user in ["65532:65532", "1000680000:0"] {
            image.config["config"]["User"] = json!(user);
            let said = image.command(&["--version"]).output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned()
                + &String::from_utf8_lossy(&said.stderr);
            assert_eq!(
                said.trim_end(),
                format!("{program} {}", env!("CARGO_PKG_VERSION")),
                "{user}"
            );
        }
    }
}

/// The names of the executable files. No file may be writable by others or change privileges.
fn executables(image: &Image) -> BTreeSet<String> {
    let mut executables = BTreeSet::new();
    for path in image.files() {
        let found = fs::symlink_metadata(&path).unwrap();
        let mode = found.permissions().mode();
        assert!(
            found.is_symlink() || mode & 0o7022 == 0,
            "{}: {mode:o}",
            path.display()
        );
        if found.is_file() && mode & 0o111 != 0 {
            executables.insert(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    executables
}

/// A cluster with the release installed, and the environment of its Pod.
struct Pod {
    cluster: ControlPlane,
    image: Image,
    health: u16,
}

impl Pod {
    async fn new() -> Self {
        let cluster = ControlPlane::start().await.unwrap();
        install(&cluster).await;
        let image = Image::of("dbplane");
        let token = cluster
            .kubectl(&[
                "-n",
                NAMESPACE,
                "create",
                "token",
                "dbplane",
                "--duration=24h",
            ])
            .await
            .unwrap();
        let account = "var/run/secrets/kubernetes.io/serviceaccount";
        image.mount(&format!("{account}/token"), &token);
        image.mount(&format!("{account}/namespace"), NAMESPACE);
        image.mount(&format!("{account}/ca.crt"), &authority(&cluster).await);
        image.mount("etc/hostname", "dbplane-0\n");
        resolves(&image);
        Self {
            cluster,
            image,
            health: free_port().unwrap(),
        }
    }

    /// Starts the operator and waits until it is ready.
    async fn started(&self) -> Running {
        let (health, metrics) = (
            format!("127.0.0.1:{}", self.health),
            format!("127.0.0.1:{}", free_port().unwrap()),
        );
        // Test platforms are on this machine.
        let args = [
            "run",
            "--leader-elect",
            "--allow-insecure-platform",
            "--health-listen",
            &health,
        ];
        let mut command = self
            .image
            .command(&[&args[..], &["--metrics-listen", &metrics]].concat());
        let port = self.cluster.url().rsplit_once(':').unwrap().1.to_owned();
        command
            .env("KUBERNETES_SERVICE_HOST", API_SERVER)
            .env("KUBERNETES_SERVICE_PORT", port);
        let operator = self
            .cluster
            .sandbox()
            .start("operator", command)
            .unwrap()
            .log_on_panic();
        let ready = format!("http://{health}/readyz");
        wait_for("the operator to be ready", PATIENCE, async || {
            reqwest::get(&ready)
                .await
                .ok()?
                .status()
                .is_success()
                .then_some(())
        })
        .await
        .unwrap();
        operator
    }

    async fn account(&self, name: &str, url: &str) {
        let secret = format!("--from-literal=api-key={}", fixture::ADMIN);
        let secret = [
            "create",
            "secret",
            "generic",
            "platform-api-key",
            &secret,
            "--dry-run=client",
            "-o",
            "yaml",
        ];
        let secret = self.cluster.kubectl(&secret).await.unwrap();
        let manifest = format!("{secret}---\n{}", fixture::account(name, url, ""));
        self.cluster.apply(&manifest).await.unwrap();
    }

    /// Waits until the account has this reason, and returns its message about the platform.
    async fn until(&self, account: &str, reason: &str) -> String {
        let path =
            "jsonpath={range .status.conditions[?(@.type==\"Ready\")]}{.reason}: {.message}{end}";
        let (what, mut last) = (format!("account {account} to say {reason}"), String::new());
        let found = wait_for(&what, PATIENCE, async || {
            last = self
                .cluster
                .kubectl(&["get", "account", account, "-o", path])
                .await
                .ok()?;
            last.starts_with(&format!("{reason}: "))
                .then(|| last.clone())
        });
        let found = found.await;
        found.unwrap_or_else(|error| panic!("{error}: {last}"))
    }
}

/// The CA certificate of the API server, which every namespace contains.
async fn authority(cluster: &ControlPlane) -> String {
    let args = [
        "-n",
        NAMESPACE,
        "get",
        "configmap",
        "kube-root-ca.crt",
        "-o",
        "jsonpath={.data.ca\\.crt}",
    ];
    wait_for("the authority of the cluster", PATIENCE, async || {
        cluster.kubectl(&args).await.ok()
    })
    .await
    .unwrap()
}

/// The names that a node provides to Pods: localhost in a file, and the API server's by DNS. DNS
/// needs a privileged port, so without root the file contains both.
fn resolves(image: &Image) {
    let hosts = "127.0.0.1 localhost\n";
    if runs_as_root() {
        static SERVED: Once = Once::new();
        SERVED.call_once(|| {
            let socket = UdpSocket::bind((NAME_SERVER, 53)).unwrap();
            std::thread::spawn(move || serve_names(&socket));
        });
        image.mount("etc/hosts", hosts);
    } else {
        image.mount("etc/hosts", &format!("{hosts}127.0.0.1 {API_SERVER}\n"));
    }
    image.mount("etc/resolv.conf", &format!("nameserver {NAME_SERVER}\n"));
}

/// Answers with an IPv4 address for the API server, and with none for other names.
fn serve_names(socket: &UdpSocket) {
    let known: Vec<u8> = API_SERVER
        .split('.')
        .flat_map(|part| [&[part.len() as u8], part.as_bytes()].concat())
        .collect();
    let known = [&known[..], &[0, 0, 1, 0, 1]].concat();
    let mut query = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut query) {
        let Some(end) = query[12..length].iter().position(|byte| *byte == 0) else {
            continue;
        };
        let question = &query[12..(12 + end + 5).min(length)];
        let answers = u8::from(question == known);
        let head = [
            &query[..2],
            &[0x85, 0x80, 0, 1, 0, answers, 0, 0, 0, 0],
            question,
        ]
        .concat();
        let address: &[u8] = &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1];
        let answer = [&head[..], if answers == 1 { address } else { &[] }].concat();
        let _ = socket.send_to(&answer, client);
    }
}

#[tokio::test]
async fn the_images_work_together_in_a_cluster() {
    let pod = Pod::new().await;
    let simulator = Image::of("dbplane-simulator");
    simulator.mount("etc/hosts", "127.0.0.1 localhost\n");
    let port = free_port().unwrap();
    let mut command = simulator.command(&[]);
    command.env("DBPLANE_SIMULATE_LISTEN", format!("127.0.0.1:{port}"));
    let _platform = simulator
        .sandbox
        .start("simulator", command)
        .unwrap()
        .log_on_panic();
    let operator = pod.started().await;
    let status = fs::read_to_string(format!("/proc/{}/status", operator.id())).unwrap();
    let entry = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        (entry("NoNewPrivs:"), entry("CapEff:"), entry("CapPrm:")),
        ("1".into(), "0".repeat(16), "0".repeat(16))
    );
    if runs_as_root() {
        let four = ["65532"; 4].join(" ");
        assert_eq!(
            (entry("Uid:"), entry("Gid:"), entry("Groups:")),
            (four.clone(), four, "65532".into())
        );
    }
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", operator.id())).unwrap();
    let root: Vec<_> = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|line| line[4] == "/")
        .collect();
    assert!(
        root.len() == 1 && root[0][5].split(',').any(|option| option == "ro"),
        "{mounts}"
    );

    pod.account("prod", &format!("http://localhost:{port}/api/v2"))
        .await;
    pod.cluster
        .kubectl(&[
            "wait",
            "--for=condition=Ready",
            "--timeout=60s",
            "account/prod",
        ])
        .await
        .unwrap();
}

/// Tests platforms with an unknown and with a known certificate authority.
#[tokio::test]
async fn the_image_of_the_operator_has_certificate_authorities() {
    let pod = Pod::new().await;
    let mut operator = pod.started().await;
    // The API server is no platform, but it has a certificate, and it rejects the key.
    let url = pod.cluster.url().replace("127.0.0.1", API_SERVER) + "/v2";
    pod.account("prod", &url).await;
    let message = pod.until("prod", "PlatformUnreachable").await;
    assert!(message.contains("UnknownIssuer"), "{message}");

    operator.terminate(PATIENCE).await.unwrap();
    let bundle = pod.image.root().join("etc/ssl/certs/ca-certificates.crt");
    let mut bundle = File::options().append(true).open(bundle).unwrap();
    bundle
        .write_all(authority(&pod.cluster).await.as_bytes())
        .unwrap();
    let _successor = pod.started().await;
    pod.until("prod", "Unauthorized").await;
}
