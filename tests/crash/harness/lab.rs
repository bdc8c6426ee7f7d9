//! Resources that all points share: the control plane, the binary, and limits on concurrent points.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::proxy;
use crate::support::{ControlPlane, Error, Options, Result, definition_files};

/// Concurrent points. They mostly wait.
const AT_ONCE: usize = 12;
/// Additional concurrent points with leader election. They mostly wait for leases to expire.
const ELECTED_AT_ONCE: usize = 12;

pub struct Lab {
    pub cluster: Arc<ControlPlane>,
    /// The operator's binary.
    pub program: PathBuf,
    /// An administrator's client.
    pub client: Client,
    /// The operator's service account token.
    pub token: String,
    /// The API server's certificate.
    authority: Vec<u8>,
    /// The proxy's client for the API server.
    pub upstream: reqwest::Client,
    pub http: reqwest::Client,
    places: Semaphore,
    elected_places: Semaphore,
}

impl Lab {
    /// Starts a control plane with dbplane's CRDs and RBAC.
    pub async fn open(program: PathBuf) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let cluster = ControlPlane::start_with(Options {
            crds: definition_files(),
            ..Options::default()
        })
        .await?;
        cluster
            .kubectl(&["apply", "-k", &root.join("deploy").to_string_lossy()])
            .await?;
        let path = cluster
            .kubeconfig_for_service_account("dbplane-system", "dbplane")
            .await?;
        // The kubeconfigs of the tests' clusters are JSON.
        let kubeconfig: Value = serde_json::from_slice(&std::fs::read(path)?)
            .map_err(Error::while_doing("reading the operator's kubeconfig"))?;
        let text = |pointer: &str| {
            let found = kubeconfig
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned);
            found.ok_or_else(|| Error::new(format!("the operator's kubeconfig has no {pointer}")))
        };
        let authority = std::fs::read(text("/clusters/0/cluster/certificate-authority")?)?;
        let token = text("/users/0/user/token")?;
        let client = cluster.client().await?;
        Ok(Self {
            client,
            program,
            token,
            upstream: proxy::client(Some(&authority))?,
            http: proxy::client(None)?,
            authority,
            places: Semaphore::new(AT_ONCE),
            elected_places: Semaphore::new(ELECTED_AT_ONCE),
            cluster: Arc::new(cluster),
        })
    }

    /// A laboratory on the control plane that all tests of a process share. Clients are bound to the
    /// runtime of their test, so each test has its own.
    pub async fn shared(program: PathBuf) -> Result<Arc<Self>> {
        static FIRST: OnceCell<Lab> = OnceCell::const_new();
        let first = FIRST.get_or_try_init(|| Self::open(program)).await?;
        Ok(Arc::new(Self {
            client: first.cluster.client().await?,
            program: first.program.clone(),
            token: first.token.clone(),
            upstream: proxy::client(Some(&first.authority))?,
            http: proxy::client(None)?,
            authority: first.authority.clone(),
            places: Semaphore::new(AT_ONCE),
            elected_places: Semaphore::new(ELECTED_AT_ONCE),
            cluster: first.cluster.clone(),
        }))
    }

    pub async fn place(&self, elected: bool) -> Result<SemaphorePermit<'_>> {
        let places = if elected {
            &self.elected_places
        } else {
            &self.places
        };
        places
            .acquire()
            .await
            .map_err(|_| Error::new("the laboratory is closed"))
    }

    /// Writes a kubeconfig for a process of the named site. It leads to the API server through the
    /// proxy.
    pub fn kubeconfig(&self, name: &str, process: usize, server: &str) -> Result<PathBuf> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxied",
            "clusters": [{"name": "proxied", "cluster": {"server": server}}],
            "users": [{"name": "proxied", "user": {"token": self.token}}],
            "contexts": [{"name": "proxied", "context": {"cluster": "proxied", "user": "proxied", "namespace": name}}],
        });
        let path = self
            .cluster
            .sandbox()
            .folder()
            .join(format!("{name}-{process}.kubeconfig"));
        std::fs::write(&path, config.to_string())?;
        Ok(path)
    }
}
