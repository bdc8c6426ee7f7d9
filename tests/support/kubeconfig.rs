//! Writes and reads kubeconfig files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::{Error, Result};

/// The user of a kubeconfig.
pub struct User<'a> {
    pub name: &'a str,
    pub token: &'a str,
    /// The default namespace, as in a Pod of this namespace.
    pub namespace: &'a str,
}

/// Writes the kubeconfig of `user`. `certificate_authority` is a path that is read on use.
pub fn write(path: &Path, url: &str, certificate_authority: &Path, user: &User) -> Result<()> {
    let User {
        name,
        token,
        namespace,
    } = user;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": certificate_authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}}],
        "current-context": name,
    });
    let mut file = fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    Ok(file.write_all(config.to_string().as_bytes())?)
}

/// A client for the user of the kubeconfig at `path`.
pub async fn client(path: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(path).map_err(Error::while_doing("reading a kubeconfig"))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(Error::while_doing("using a kubeconfig"))?;
    Ok(Client::try_from(config)?)
}
