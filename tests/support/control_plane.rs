//! Real Kubernetes control planes: etcd, kube-apiserver and kube-controller-manager on their own
//! loopback ports.

mod programs;
mod storage;

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::OnceCell;

use self::programs::Programs;
use super::ports::free_port;
use super::{Error, PATIENCE, Result, Running, Sandbox, kubeconfig, wait_for};

/// The controllers that tests need: owner references, deletion of namespaces, ServiceAccounts and
/// their tokens. (`kube-controller-manager --help` lists the others.)
const CONTROLLERS: [&str; 5] = [
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
];

#[derive(Debug, Clone)]
pub struct Options {
    /// Controllers to run. If empty, kube-controller-manager does not start, and namespaces get no
    /// ServiceAccount.
    pub controllers: Vec<String>,
    /// Files and folders of CustomResourceDefinitions to install before the controllers start. The
    /// garbage collector detects kinds at its start, and new ones only every 30 s.
    pub crds: Vec<PathBuf>,
    pub api_server_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: CONTROLLERS.map(str::to_owned).to_vec(),
            crds: Vec::new(),
            api_server_flags: Vec::new(),
        }
    }
}

/// A cluster without nodes, so pods stay Pending. Dropping it stops its processes and removes its
/// folder. So does the end of this process, for any reason.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in this order: the processes must end before the sandbox that they use.
    controller_manager: Option<Running>,
    api_server: Option<Running>,
    etcd: Running,
    programs: Programs,
    options: Options,
    etcd_port: u16,
    port: u16,
    sandbox: Sandbox,
}

impl ControlPlane {
    /// Ready on return: the API server is healthy, and the namespace `default` has its
    /// ServiceAccount.
    pub async fn start() -> Result<Self> {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Result<Self> {
        let mut cluster = Self::launch(Programs::find()?, options)?;
        cluster.become_ready().await?;
        Ok(cluster)
    }

    /// A cluster for all tests of a target that only need their own namespaces. It ends with the
    /// process.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    fn launch(programs: Programs, options: Options) -> Result<Self> {
        let sandbox = Sandbox::new("cluster")?;
        let (etcd_port, port) = (free_port()?, free_port()?);
        let etcd = sandbox.start("etcd", programs.etcd(sandbox.folder(), etcd_port))?;
        let mut cluster = Self {
            controller_manager: None,
            api_server: None,
            etcd,
            programs,
            options,
            etcd_port,
            port,
            sandbox,
        };
        programs::write_admin_token(cluster.folder())?;
        let (path, authority) = (cluster.kubeconfig_path(), cluster.certificate_authority());
        let admin = kubeconfig::User {
            name: "admin",
            token: programs::ADMIN_TOKEN,
            namespace: "default",
        };
        kubeconfig::write(&path, &cluster.url(), &authority, &admin)?;
        cluster.launch_api_server()?;
        Ok(cluster)
    }

    fn launch_api_server(&mut self) -> Result<()> {
        let mut command = self
            .programs
            .api_server(self.folder(), self.port, self.etcd_port);
        command.args(&self.options.api_server_flags);
        self.api_server = Some(self.sandbox.start("kube-apiserver", command)?);
        Ok(())
    }

    async fn become_ready(&mut self) -> Result<()> {
        self.api_server_ready().await?;
        self.install_crds().await?;
        if self.options.controllers.is_empty() {
            return self
                .wait_while_alive("the namespace default", has_default_namespace)
                .await;
        }
        let command = self.programs.controller_manager(
            self.folder(),
            &self.kubeconfig_path(),
            &self.options.controllers,
        );
        self.controller_manager = Some(self.sandbox.start("kube-controller-manager", command)?);
        self.wait_while_alive(
            "the ServiceAccount default/default",
            has_default_service_account,
        )
        .await
    }

    async fn install_crds(&self) -> Result<()> {
        if self.options.crds.is_empty() {
            return Ok(());
        }
        let mut command = self.kubectl_command();
        command.args(["apply", "--server-side"]);
        for path in &self.options.crds {
            command.arg("--filename").arg(path);
        }
        run_kubectl(command, "").await?;
        // kubectl fails on a definition that has no conditions yet.
        wait_for("the definitions to be established", PATIENCE, async || {
            self.kubectl(&[
                "wait",
                "--for=condition=Established",
                "--timeout=60s",
                "crd",
                "--all",
            ])
            .await
            .ok()
        })
        .await
        .map(drop)
    }

    async fn api_server_ready(&mut self) -> Result<()> {
        self.wait_while_alive("kube-apiserver to be ready", is_ready)
            .await
    }

    /// Waits until `probe` holds. If a process of the cluster ends before that, the error shows its
    /// last output.
    async fn wait_while_alive(
        &mut self,
        what: &str,
        probe: impl AsyncFn(Client) -> Result<bool>,
    ) -> Result<()> {
        let kubeconfig = self.kubeconfig_path();
        let mut last_error = String::new();
        let found = wait_for(what, PATIENCE, async || {
            if let Some(ended) = self.ended() {
                return Some(Err(ended));
            }
            let answer = tokio::time::timeout(Duration::from_secs(5), async {
                probe(kubeconfig::client(&kubeconfig).await?).await
            });
            match answer.await {
                Ok(Ok(true)) => return Some(Ok(())),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => last_error = error.to_string(),
                Err(_) => last_error = "no answer in time".to_owned(),
            }
            None
        });
        let outcome = found.await;
        outcome.unwrap_or_else(|error| {
            Err(Error::new(format!(
                "{error} ({last_error})\n{}",
                self.last_lines()
            )))
        })
    }

    /// The process that ended unexpectedly, with its output.
    fn ended(&mut self) -> Option<Error> {
        let all = [
            Some(&mut self.etcd),
            self.api_server.as_mut(),
            self.controller_manager.as_mut(),
        ];
        all.into_iter().flatten().find_map(|process| {
            let status = process.ended().ok()??;
            Some(Error::new(format!(
                "{} ended ({status}):\n{}",
                process.name(),
                process.last_lines(20)
            )))
        })
    }

    fn last_lines(&self) -> String {
        self.processes()
            .map(|process| format!("{}:\n{}\n", process.name(), process.last_lines(10)))
            .collect()
    }

    fn processes(&self) -> impl Iterator<Item = &Running> {
        [
            Some(&self.etcd),
            self.api_server.as_ref(),
            self.controller_manager.as_ref(),
        ]
        .into_iter()
        .flatten()
    }

    /// Kills the API server; its stored data stays.
    pub fn stop_api_server(&mut self) -> Result<()> {
        if let Some(mut api_server) = self.api_server.take() {
            api_server.kill()?;
        }
        Ok(())
    }

    /// Starts the API server with the same URL, certificate and tokens. Ready on return.
    pub async fn start_api_server(&mut self) -> Result<()> {
        self.stop_api_server()?;
        self.launch_api_server()?;
        self.api_server_ready().await
    }

    /// Drops the cluster.
    pub fn stop(self) {}

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The sandbox of this cluster, for operators and simulators that should end with it.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub fn process_ids(&self) -> Vec<u32> {
        self.processes().map(Running::id).collect()
    }

    fn folder(&self) -> &Path {
        self.sandbox.folder()
    }

    fn certificate_authority(&self) -> PathBuf {
        programs::certificate(self.folder())
    }

    /// The kubeconfig of a member of system:masters.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.folder().join("admin.kubeconfig")
    }

    /// Writes a kubeconfig for this ServiceAccount. Its token from the TokenRequest API is valid
    /// for a day, longer than any test.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(24 * 3600),
                ..Default::default()
            },
            ..Default::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        let token = answer
            .status
            .ok_or_else(|| Error::new("the TokenRequest API gave no token"))?
            .token;
        let path = self.folder().join(format!("{namespace}.{name}.kubeconfig"));
        let user = kubeconfig::User {
            name,
            token: &token,
            namespace,
        };
        kubeconfig::write(&path, &self.url(), &self.certificate_authority(), &user)?;
        Ok(path)
    }

    /// A client for the administrator, bound to the current runtime.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig_path()).await
    }

    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig_for_service_account(namespace, name).await?).await
    }

    /// Runs kubectl as administrator (`--kubeconfig` selects another user). Returns its output or
    /// its error.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with_input(args, "").await
    }

    /// Applies manifests as administrator.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.kubectl_with_input(&["apply", "-f", "-"], manifests)
            .await
    }

    /// The same as `kubectl` with standard input, for `-f -`.
    pub async fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<String> {
        let mut command = self.kubectl_command();
        command.args(args);
        run_kubectl(command, input).await
    }

    /// A kubectl command for the administrator, independent of the caller's settings.
    pub fn kubectl_command(&self) -> Command {
        self.programs
            .kubectl(self.folder(), &self.kubeconfig_path())
    }
}

async fn run_kubectl(command: Command, input: &str) -> Result<String> {
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input.as_bytes())?;
    stdin.rewind()?;
    let mut command = tokio::process::Command::from(command);
    command.stdin(stdin).kill_on_drop(true);
    let output = command
        .output()
        .await
        .map_err(Error::while_doing("running kubectl"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let args: Vec<_> = command
        .as_std()
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    let (args, status) = (args.join(" "), output.status);
    Err(Error::new(format!(
        "kubectl {args} ({status}): {}",
        complaint.trim_end()
    )))
}

async fn is_ready(client: Client) -> Result<bool> {
    let request = axum::http::Request::get("/readyz")
        .body(Vec::new())
        .map_err(Error::while_doing("asking /readyz"))?;
    Ok(client.request_text(request).await? == "ok")
}

async fn has_default_namespace(client: Client) -> Result<bool> {
    Ok(Api::<Namespace>::all(client)
        .get_opt("default")
        .await?
        .is_some())
}

async fn has_default_service_account(client: Client) -> Result<bool> {
    Ok(Api::<ServiceAccount>::namespaced(client, "default")
        .get_opt("default")
        .await?
        .is_some())
}
