//! Starts a control plane, a simulated platform, and the operator with its own ServiceAccount.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::console::Console;
use super::support::{
    ControlPlane, Error, Options, PATIENCE, Result, Running, definition_files, free_port, wait_for,
};
use super::terminal::Terminal;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// The simulated platform, and the initial state of the cluster.
pub struct Setting {
    world: &'static str,
    profile: &'static str,
    /// Installs the definitions before the cluster's controllers start, so that these know the
    /// kinds at once.
    definitions: bool,
}

/// For the steps of the demo, which install everything themselves.
pub const SHOWN: Setting = Setting {
    world: "deploy/examples/world.yaml",
    profile: "default",
    definitions: false,
};
/// For readers of the book: the public API, with existing computes and keys.
pub const PLAYGROUND: Setting = Setting {
    world: "examples/demo/playground.yaml",
    profile: "public",
    definitions: true,
};

/// Controllers of ordinary clusters beyond those that tests need: roles that extend others, and
/// quotas.
const CONTROLLERS: [&str; 2] = [
    "clusterrole-aggregation-controller",
    "resourcequota-controller",
];

pub struct Environment {
    // Fields are dropped in this order: the processes must end before the cluster, whose sandbox
    // they use.
    operator: Option<Running>,
    simulator: Running,
    cluster: ControlPlane,
    pub console: Console,
}

impl Environment {
    pub async fn start(terminal: &Terminal, setting: &Setting) -> Result<Self> {
        let (_, mut simulator) = (
            program("dbplane")?,
            Command::new(program("dbplane-simulator")?),
        );
        terminal.print(
            "Starting a Kubernetes control plane and a simulated platform on this machine ...",
        );
        let mut options = Options::default();
        options.controllers.extend(CONTROLLERS.map(str::to_owned));
        if setting.definitions {
            options.crds = definition_files();
        }
        let cluster = ControlPlane::start_with(options).await?;
        let (world, profile) = (setting.world, setting.profile);
        simulator
            .args([
                "--listen=127.0.0.1:0",
                "--world",
                world,
                "--profile",
                profile,
            ])
            .current_dir(REPOSITORY);
        let mut simulator = cluster.sandbox().start("simulator", simulator)?;
        let base_url = wait_for("the simulator's base URL", PATIENCE, async || {
            let log = simulator.log();
            let url = log
                .lines()
                .find(|line| line.starts_with("http://"))
                .map(str::to_owned);
            url.map(Ok).or_else(|| ended(&mut simulator).map(Err))
        });
        let console = Console::of(base_url.await??)?;
        Ok(Self {
            operator: None,
            simulator,
            cluster,
            console,
        })
    }

    /// Starts the operator as the ServiceAccount from deploy/, with its token; ready on return.
    pub async fn start_operator(&mut self) -> Result<()> {
        let kubeconfig = self
            .cluster
            .kubeconfig_for_service_account("dbplane-system", "dbplane")
            .await?;
        let health = format!("127.0.0.1:{}", free_port()?);
        let mut command = Command::new(program("dbplane")?);
        command
            .args(["run", "--leader-elect", "--allow-insecure-platform"])
            .arg(format!("--health-listen={health}"))
            .arg(format!("--metrics-listen=127.0.0.1:{}", free_port()?))
            .env("KUBECONFIG", kubeconfig)
            .current_dir(REPOSITORY);
        let mut operator = self.cluster.sandbox().start("operator", command)?;
        let url = format!("http://{health}/readyz");
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .map_err(Error::while_doing("building a client"))?;
        let ready = wait_for("the operator to be ready", PATIENCE, async || {
            if let Some(error) = ended(&mut operator) {
                return Some(Err(error));
            }
            let answer = http
                .get(&url)
                .timeout(Duration::from_secs(2))
                .send()
                .await
                .ok()?;
            answer.status().is_success().then_some(Ok(()))
        });
        let outcome = ready.await;
        self.operator = Some(operator);
        outcome?
    }

    /// Returns when a process ends, which is always an error.
    pub async fn until_one_ends(&mut self) -> Result<()> {
        loop {
            let processes = [Some(&mut self.simulator), self.operator.as_mut()];
            if let Some(error) = processes.into_iter().flatten().find_map(ended) {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Gives a command the access to cluster, kubectl and repository that a user of the demo has.
    pub fn configure(&self, command: &mut Command) {
        let kubectl = self.cluster.kubectl_command();
        for (name, value) in kubectl.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let folders = self.kubectl_folder().into_iter().chain(
            std::env::var_os("PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .collect::<Vec<_>>(),
        );
        command.env(
            "PATH",
            std::env::join_paths(folders).unwrap_or_else(|_| OsString::new()),
        );
        command.current_dir(REPOSITORY);
    }

    pub fn kubectl_folder(&self) -> Option<PathBuf> {
        Path::new(self.cluster.kubectl_command().get_program())
            .parent()
            .map(Path::to_path_buf)
    }

    /// A folder with the programs that the pages mention, including kubectl's plugin and its
    /// completions.
    pub fn programs(&self) -> Result<PathBuf> {
        let folder = self.folder().join("bin");
        fs::create_dir(&folder)?;
        let kubectl = self
            .kubectl_folder()
            .ok_or_else(|| Error::new("kubectl has no folder"))?
            .join("kubectl");
        symlink(kubectl, folder.join("kubectl"))?;
        for name in ["dbplane", "dbplane-simulator"] {
            symlink(program(name)?, folder.join(name))?;
        }
        for name in ["kubectl-dbplane", "kubectl_complete-dbplane"] {
            symlink(program("dbplane")?, folder.join(name))?;
        }
        Ok(folder)
    }

    /// A folder that is removed with the cluster.
    fn folder(&self) -> &Path {
        self.cluster.sandbox().folder()
    }

    /// The environment variables that kubectl needs.
    pub fn variables(&self) -> Vec<(String, String)> {
        let kubectl = self.cluster.kubectl_command();
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        kubectl
            .get_envs()
            .filter_map(|(name, value)| Some((text(name), text(value?))))
            .collect()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig_path()
    }

    /// The output of kubectl, not printed.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.cluster.kubectl(args).await
    }

    /// The last lines of the logs, for a failed step.
    pub fn last_logs(&mut self) -> String {
        let last = |process: &mut Running| match ended(process) {
            Some(error) => format!("\n--- {error}"),
            None => format!(
                "\n--- the last lines of the {}:\n{}",
                process.name(),
                process.last_lines(40)
            ),
        };
        [Some(&mut self.simulator), self.operator.as_mut()]
            .into_iter()
            .flatten()
            .map(last)
            .collect()
    }
}

/// A program from the same build as the demo and the tests.
pub fn program(name: &str) -> Result<PathBuf> {
    let program = Path::new(REPOSITORY).join("target/debug").join(name);
    let missing = || {
        Error::new(format!(
            "target/debug/{name} is missing: start it with `make demo` or `make playground`"
        ))
    };
    if program.is_file() {
        Ok(program)
    } else {
        Err(missing())
    }
}

fn ended(process: &mut Running) -> Option<Error> {
    let status = process.ended().ok()??;
    Some(Error::new(format!(
        "the {} ended ({status}):\n{}",
        process.name(),
        process.last_lines(20)
    )))
}
