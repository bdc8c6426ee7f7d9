//! The address of the cluster, and how to connect to it.

use std::env;
use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;

use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// The reason why there is no configuration for the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("cannot read the kubeconfig: {0}")]
    Kubeconfig(KubeconfigError),
    #[error("no cluster is configured: {0}. Set KUBECONFIG, or run in a cluster")]
    NotConfigured(InferConfigError),
    #[error(
        "NO_PROXY cannot be read: each of its entries, between commas, has to be a host name, an address, a network, or *. \
         One may be empty, as after a last comma"
    )]
    Exceptions,
}

impl From<KubeconfigError> for ConfigurationError {
    fn from(error: KubeconfigError) -> Self {
        match error {
            KubeconfigError::ParseNoProxy(_) => Self::Exceptions,
            error => Self::Kubeconfig(error),
        }
    }
}

impl From<InferConfigError> for ConfigurationError {
    fn from(error: InferConfigError) -> Self {
        match error.source().and_then(|cause| cause.downcast_ref()) {
            Some(KubeconfigError::ParseNoProxy(_)) => Self::Exceptions,
            _ => Self::NotConfigured(error),
        }
    }
}

/// The way to a cluster, as kubectl's flags of these names choose it.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The files of KUBECONFIG when absent.
    pub kubeconfig: Option<PathBuf>,
    /// The current context when absent.
    pub context: Option<String>,
    /// The user and groups to impersonate.
    pub user: Option<String>,
    pub groups: Vec<String>,
}

/// The cluster of a context of the kubeconfig. Without a file and a context: that of the current
/// context, or the cluster that this process runs in.
///
/// # Errors
/// If there is no kubeconfig, or it is unusable.
pub async fn configuration(access: &Access) -> Result<Config, ConfigurationError> {
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match (&access.kubeconfig, &access.context) {
        (None, None) => Config::infer().await?,
        (None, Some(_)) => Config::from_kubeconfig(&options).await?,
        (Some(file), _) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?
        }
    };
    if access.user.is_some() {
        config.auth_info.impersonate = access.user.clone();
        config.auth_info.impersonate_groups = Some(access.groups.clone());
    }
    let named = ["HTTPS_PROXY", "https_proxy"].map(|name| env::var(name).ok());
    Ok(as_kubectl_does(config, named, &Matcher::from_system()))
}

/// Chooses the proxy as kubectl does. A proxy from the environment is not used for a cluster on
/// this machine or for an exception of NO_PROXY. (kube itself also compares the port of these
/// names.) A proxy without a scheme uses HTTP.
fn as_kubectl_does(
    mut config: Config,
    named: [Option<String>; 2],
    environment: &Matcher,
) -> Config {
    let Some(proxy) = config.proxy_url.take() else {
        return config;
    };
    let of_environment = named
        .into_iter()
        .flatten()
        .any(|named| named.parse().ok().as_ref() == Some(&proxy));
    let cluster = &config.cluster_url;
    if of_environment
        && (cluster.host().is_some_and(is_this_machine) || environment.intercept(cluster).is_none())
    {
        return config;
    }
    let spelled = match proxy.scheme() {
        Some(_) => None,
        None => format!("http://{proxy}").parse().ok(),
    };
    config.proxy_url = Some(spelled.unwrap_or(proxy));
    config
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.map_or_else(|_| host == "localhost", |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy for a cluster at this address, given the kubeconfig, the environment and its
    /// exceptions.
    fn proxy(
        cluster: &str,
        configured: &str,
        environment: Option<&str>,
        exceptions: &str,
    ) -> Option<String> {
        let mut config = Config::new(cluster.parse().unwrap());
        config.proxy_url = Some(configured.parse().unwrap());
        let matcher = Matcher::builder()
            .https(environment.unwrap_or_default())
            .no(exceptions)
            .build();
        let config = as_kubectl_does(config, [None, environment.map(str::to_owned)], &matcher);
        config.proxy_url.map(|url| url.to_string())
    }

    const COMPANY: &str = "http://proxy.example:3128/";
    const TUNNEL: &str = "socks5://127.0.0.1:1080/";

    #[test]
    fn a_cluster_on_this_machine_is_called_past_the_proxy_of_the_environment() {
        for here in [
            "https://127.0.0.1:6443",
            "https://localhost:6443",
            "https://[::1]:6443",
        ] {
            assert_eq!(proxy(here, COMPANY, Some(COMPANY), ""), None, "{here}");
            assert_eq!(
                proxy(here, TUNNEL, Some(COMPANY), "").as_deref(),
                Some(TUNNEL),
                "{here}: the kubeconfig's own"
            );
            assert_eq!(
                proxy(here, TUNNEL, None, "").as_deref(),
                Some(TUNNEL),
                "{here}"
            );
        }
        for elsewhere in [
            "https://10.0.0.1:6443",
            "https://localhost.example",
            "https://cluster.example",
        ] {
            assert_eq!(
                proxy(elsewhere, COMPANY, Some(COMPANY), "").as_deref(),
                Some(COMPANY),
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn an_exception_of_the_environment_is_called_past_its_proxy() {
        for (cluster, exceptions) in [
            ("https://cluster.example", "other.example, cluster.example"),
            ("https://cluster.example:6443", ".example,"),
            ("https://10.1.2.3:6443", "10.0.0.0/8"),
            ("https://cluster.example", "*"),
        ] {
            assert_eq!(
                proxy(cluster, COMPANY, Some(COMPANY), exceptions),
                None,
                "{cluster} with {exceptions}"
            );
        }
        let others = proxy(
            "https://cluster.example",
            COMPANY,
            Some(COMPANY),
            "other.example,10.0.0.0/8",
        );
        assert_eq!(others.as_deref(), Some(COMPANY));
    }

    #[test]
    fn a_proxy_without_a_scheme_is_one_for_http() {
        let found = proxy(
            "https://cluster.example",
            "proxy.example:3128",
            Some("proxy.example:3128"),
            "",
        );
        assert_eq!(found.as_deref(), Some("http://proxy.example:3128/"));
    }
}
