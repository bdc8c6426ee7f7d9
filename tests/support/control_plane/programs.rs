//! Where the programs are, and the flags they are run with.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::{Error, Result};

/// Known to everyone: it opens a server on 127.0.0.1 that holds nothing but test objects, and only while a test runs.
pub const ADMIN_TOKEN: &str = "control-plane-admin";

#[derive(Debug, Clone)]
pub struct Programs {
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: PathBuf,
    kubectl: PathBuf,
}

impl Programs {
    /// In `KUBEBUILDER_ASSETS` when it is complete (by its convention it may lack the controller manager), else where
    /// `make control-plane` puts them.
    pub fn find() -> Result<Self> {
        let complete = |folder: &PathBuf| {
            let needed = ["etcd", "kube-apiserver", "kubectl"];
            needed.iter().all(|name| folder.join(name).is_file())
        };
        let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).filter(complete);
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

    /// Without fsync: what is stored lasts as long as the folder, and that goes with the processes.
    pub fn etcd(&self, folder: &Path, port: u16) -> Command {
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(&self.etcd);
        command
            .arg(flag("data-dir", folder.join("etcd")))
            .arg(flag("listen-client-urls", &url))
            .arg(flag("advertise-client-urls", &url))
            // The only member talks to no peer; port 0 spares it a port of our choice.
            .arg("--listen-peer-urls=http://127.0.0.1:0")
            .arg("--unsafe-no-fsync")
            // What is overwritten counts until it is compacted, every five minutes.
            .arg("--quota-backend-bytes=8589934592");
        command
    }

    pub fn api_server(&self, folder: &Path, port: u16, etcd_port: u16) -> Command {
        // The server makes itself a key and a certificate before it reads the key it signs tokens with: one key serves both.
        let key = certificate(folder).with_extension("key");
        let mut command = Command::new(&self.api_server);
        command
            .arg(flag("etcd-servers", format!("http://127.0.0.1:{etcd_port}")))
            .arg(flag("cert-dir", certificates(folder)))
            .arg(flag("secure-port", port.to_string()))
            .arg("--bind-address=127.0.0.1")
            // Neither looks for an outside address of this machine nor publishes one.
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

    pub fn controller_manager(&self, folder: &Path, kubeconfig: &Path, controllers: &[String]) -> Command {
        let mut command = Command::new(&self.controller_manager);
        command
            .arg(flag("kubeconfig", kubeconfig))
            .arg(flag("controllers", controllers.join(",")))
            .arg(flag("root-ca-file", certificate(folder)))
            .arg(flag("service-account-private-key-file", certificate(folder).with_extension("key")))
            .arg("--leader-elect=false")
            .arg("--secure-port=0")
            // The defaults are meant for clusters that live for years; here somebody waits.
            .arg("--kube-api-qps=500")
            .arg("--kube-api-burst=1000");
        command
    }

    pub fn kubectl(&self, folder: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", kubeconfig).env("KUBECACHEDIR", folder.join("kubectl-cache")).env("KUBERC", "off");
        // It ends before its garbage matters: collecting it would be a third of what each call costs.
        command.env("GOGC", "off");
        command
    }
}

/// The server's own certificate, followed by that of the authority it made to sign it.
pub fn certificate(folder: &Path) -> PathBuf {
    certificates(folder).join("apiserver.crt")
}

pub fn write_admin_token(folder: &Path) -> Result<()> {
    Ok(fs::write(admin_token(folder), format!("{ADMIN_TOKEN},admin,admin,system:masters\n"))?)
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
