//! Arguments and functions that several commands share: the cluster, the resources, and the output
//! format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kube::Client;
use kube::api::ListParams;
use kube::config::{Kubeconfig, KubeconfigError};
use secrecy::SecretString;
use serde::Serialize;

use crate::cluster::{Access, ConfigurationError, configuration, explained};
use crate::telemetry::Source;

/// The operator's metrics.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MetricsArgs {
    /// The operator's metrics, with the remaining budgets: http://127.0.0.1:9090/metrics while
    /// "kubectl -n dbplane-system port-forward deploy/dbplane 9090" runs
    #[arg(long, value_name = "URL")]
    metrics_url: Option<String>,
    /// File with the token of the metrics, if the operator asks for one
    #[arg(long, value_name = "FILE", requires = "metrics_url")]
    metrics_token_file: Option<PathBuf>,
}

impl MetricsArgs {
    pub fn source(&self) -> Option<Source> {
        Some(Source {
            url: self.metrics_url.clone()?,
            token_file: self.metrics_token_file.clone(),
        })
    }
}

/// The cluster that a command connects to.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig; the files of KUBECONFIG when absent
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one when absent
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// User to impersonate, such as system:serviceaccount:shop:deploy
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,
    /// Group to impersonate; the flag may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_groups: Vec<String>,
}

/// The reason why there is no connection to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("cannot connect to the cluster: {}", explained(.0))]
    Client(kube::Error),
    #[error(
        "the cluster cannot be reached at {url}: {}. Does it run, and is it the one that you mean? --kubeconfig and --context choose another",
        explained(.cause)
    )]
    Unreachable { url: String, cause: kube::Error },
    #[error("the cluster at {url} does not accept who you are: {message}. Sign in to it again")]
    NotAccepted { url: String, message: String },
}

/// A connection to a cluster, and the namespace in its kubeconfig.
#[derive(Clone)]
pub struct Connected {
    pub client: Client,
    pub namespace: String,
}

impl ClusterArgs {
    fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            user: self.as_user.clone(),
            groups: self.as_groups.clone(),
        }
    }

    /// The contexts of the kubeconfig.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn contexts(&self) -> Result<Vec<String>, KubeconfigError> {
        let read = match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        };
        Ok(read?.contexts.into_iter().map(|it| it.name).collect())
    }

    /// Requests the API server's version, so that an unreachable cluster is reported once and
    /// clearly.
    ///
    /// # Errors
    /// If there is no kubeconfig, or its cluster cannot be reached.
    pub async fn connect(&self) -> Result<Connected, ConnectionError> {
        let config = configuration(&self.access()).await?;
        let namespace = config.default_namespace.clone();
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(ConnectionError::Client)?;
        match client.apiserver_version().await {
            Err(kube::Error::Api(status)) if status.code == 401 => {
                return Err(ConnectionError::NotAccepted {
                    url,
                    message: status.message,
                });
            }
            // Any other answer shows that the API server is reachable.
            Ok(_) | Err(kube::Error::Api(_) | kube::Error::SerdeError(_)) => {}
            Err(cause) => return Err(ConnectionError::Unreachable { url, cause }),
        }
        Ok(Connected { client, namespace })
    }
}

/// The resources of a command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ScopeArgs {
    /// Namespace; that of the kubeconfig's context when absent
    #[arg(
        long,
        short,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Only resources with these labels, in the syntax of kubectl
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
}

impl ScopeArgs {
    /// The namespace, or `None` for all.
    pub fn namespace<'a>(&'a self, connected: &'a Connected) -> Option<&'a str> {
        (!self.all_namespaces).then(|| self.namespace.as_deref().unwrap_or(&connected.namespace))
    }

    pub fn list_params(&self) -> ListParams {
        match &self.selector {
            Some(selector) => ListParams::default().labels(selector),
            None => ListParams::default(),
        }
    }
}

/// The message for a selector that the API server cannot parse.
pub fn bad_selector(params: &ListParams, error: &kube::Error) -> Option<String> {
    let selector = params.label_selector.as_ref()?;
    match error {
        kube::Error::Api(status) if status.code == 400 => Some(format!(
            "-l {selector:?} is no selector: {}. Write it as for kubectl, such as app=web or 'app in (web, api)'",
            status.message
        )),
        _ => None,
    }
}

/// The output format of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For users
    #[default]
    Text,
    /// For users, with more details
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// The flag for the output format.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Format of the output
    #[arg(long, short, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write it as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot write it as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

impl OutputFormat {
    /// Writes a document for programs, or calls `text` to write for users; its second argument asks
    /// for more details.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write<T: Serialize, W: Write>(
        self,
        out: &mut W,
        document: &T,
        text: impl FnOnce(&mut W, bool) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        match self {
            Self::Text => text(out, false)?,
            Self::Wide => text(out, true)?,
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, document)?;
                writeln!(out)?;
            }
            Self::Yaml => out.write_all(serde_saphyr::to_string(document)?.as_bytes())?,
        }
        Ok(())
    }
}

/// The API key could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the API key from {from}: {cause}")]
pub struct KeyError {
    from: String,
    cause: io::Error,
}

/// The platform's API key, from a file or, for `-`, from standard input. It is never an argument,
/// because other processes can see arguments.
///
/// # Errors
/// If it cannot be read.
pub fn read_key(path: &Path) -> Result<SecretString, KeyError> {
    let (from, read) = if path.as_os_str() == "-" {
        ("standard input".to_owned(), io::read_to_string(io::stdin()))
    } else {
        (path.display().to_string(), std::fs::read_to_string(path))
    };
    let text = read.map_err(|cause| KeyError { from, cause })?;
    Ok(SecretString::from(text.trim()))
}
