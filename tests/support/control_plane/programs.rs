//! The programs of a control plane, and their flags.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Error, Result};

/// Not a secret: the server listens on 127.0.0.1, holds only test objects, and runs only during a
/// test.
pub const ADMIN_TOKEN: &str = "control-plane-admin";

#[derive(Debug, Clone)]
pub struct Programs {
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: PathBuf,
    kubectl: PathBuf,
}

impl Programs {
    /// In `KUBEBUILDER_ASSETS` if it is complete (by convention it may lack the controller
    /// manager), otherwise where `make control-plane` installs them.
    pub fn find() -> Result<Self> {
        let complete = |folder: &PathBuf| {
            let needed = ["etcd", "kube-apiserver", "kubectl"];
            needed.iter().all(|name| folder.join(name).is_file())
        };
        let assets = env::var_os("KUBEBUILDER_ASSETS")
            .map(PathBuf::from)
            .filter(complete);
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/control-plane/bin");
        let folders: Vec<PathBuf> = assets.into_iter().chain([built]).collect();
        let find = |name: &str| {
            folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| {
                Error::new(format!("{name} is missing, and cluster tests need it: run `make control-plane` once"))
            })
        };
        Ok(Self {
            etcd: find("etcd")?,
            api_server: find("kube-apiserver")?,
            controller_manager: find("kube-controller-manager")?,
            kubectl: find("kubectl")?,
        })
    }

    /// Without fsync, because the data is discarded with the folder anyway.
    pub fn etcd(&self, folder: &Path, port: u16) -> Command {
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(&self.etcd);
        command
            .arg(flag("data-dir", folder.join("etcd")))
            .arg(flag("listen-client-urls", &url))
            .arg(flag("advertise-client-urls", &url))
            // A single member has no peers; with port 0 we need not choose a port.
            .arg("--listen-peer-urls=http://127.0.0.1:0")
            .arg("--unsafe-no-fsync")
            // Overwritten data counts until the next compaction, which runs every five minutes.
            .arg("--quota-backend-bytes=8589934592");
        command
    }

    pub fn api_server(&self, folder: &Path, port: u16, etcd_port: u16) -> Command {
        // The server generates key and certificate before it reads the signing key for tokens, so
        // one key serves both.
        let key = certificate(folder).with_extension("key");
        let mut command = Command::new(&self.api_server);
        command
            .arg(flag(
                "etcd-servers",
                format!("http://127.0.0.1:{etcd_port}"),
            ))
            .arg(flag("cert-dir", certificates(folder)))
            .arg(flag("secure-port", port.to_string()))
            .arg("--bind-address=127.0.0.1")
            // The server neither looks up nor publishes an external address of this machine.
            .arg("--advertise-address=127.0.0.1")
            .arg("--endpoint-reconciler-type=none")
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(flag("service-account-signing-key-file", &key))
            .arg(flag("service-account-key-file", &key))
            .arg(flag("token-auth-file", admin_token(folder)))
            .arg("--authorization-mode=RBAC");
        command
    }

    pub fn controller_manager(
        &self,
        folder: &Path,
        kubeconfig: &Path,
        controllers: &[String],
    ) -> Command {
        let mut command = Command::new(&self.controller_manager);
        command
            .arg(flag("kubeconfig", kubeconfig))
            .arg(flag("controllers", controllers.join(",")))
            .arg(flag("root-ca-file", certificate(folder)))
            .arg(flag(
                "service-account-private-key-file",
                certificate(folder).with_extension("key"),
            ))
            .arg("--leader-elect=false")
            .arg("--secure-port=0")
            // The default limits are meant for long-lived clusters and would slow down tests.
            .arg("--kube-api-qps=500")
            .arg("--kube-api-burst=1000");
        command
    }

    pub fn kubectl(&self, folder: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", folder.join("kubectl-cache"))
            .env("KUBERC", "off");
        // kubectl is short-lived; garbage collection would take a third of each call's time.
        command.env("GOGC", "off");
        command
    }
}

/// The server's certificate, followed by that of the authority that it created.
pub fn certificate(folder: &Path) -> PathBuf {
    certificates(folder).join("apiserver.crt")
}

pub fn write_admin_token(folder: &Path) -> Result<()> {
    Ok(fs::write(
        admin_token(folder),
        format!("{ADMIN_TOKEN},admin,admin,system:masters\n"),
    )?)
}

fn admin_token(folder: &Path) -> PathBuf {
    folder.join("tokens.csv")
}

fn certificates(folder: &Path) -> PathBuf {
    folder.join("certificates")
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}
