//! The kubeconfig files of a cluster.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::{Error, Result};

/// Whom a kubeconfig lets in.
pub struct User<'a> {
    pub name: &'a str,
    pub token: &'a str,
    /// Where it is at home: what names no namespace means this one, as in a Pod of it.
    pub namespace: &'a str,
}

/// Writes the file that lets `user` in. `certificate_authority` is a path, read when the file is used.
pub fn write(path: &Path, url: &str, certificate_authority: &Path, user: &User) -> Result<()> {
    let User { name, token, namespace } = user;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": certificate_authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}}],
        "current-context": name,
    });
    let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(file.write_all(config.to_string().as_bytes())?)
}

/// A client that is whom the file at `path` says.
pub async fn client(path: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(path).map_err(Error::while_doing("reading a kubeconfig"))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(Error::while_doing("using a kubeconfig"))?;
    Ok(Client::try_from(config)?)
}
