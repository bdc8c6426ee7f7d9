//! Makes the client of an account. Only this module knows the dialect and the transport of a
//! platform.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use thiserror::Error;

use super::{
    Budget, Clients, HttpOptions, HttpPlatform, Meter, Rate, RateLimited, Reach, Room, Transport,
};
use crate::domain::OrganizationId;
use crate::leadership::Leadership;

/// The address of a platform, and the organization that it is called for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Base URL, ending with the version segment, with or without a trailing slash.
    pub base_url: String,
    /// The organization whose projects dbplane manages. Every request names it.
    pub organization_id: Option<OrganizationId>,
    /// The hosts that it may have.
    pub reach: Reach,
}

/// The canonical spelling of a base URL: without a default port, in lower case, and without a slash
/// at its end.
pub(super) fn normalized(base_url: &str) -> String {
    let url = Url::parse(base_url).map_or_else(|_| base_url.to_owned(), String::from);
    url.trim_end_matches('/').to_owned()
}

/// The host and port of a base URL, for messages; empty if it is no URL. Its other parts may hold
/// a secret.
pub fn address_of(base_url: &str) -> String {
    let Ok(url) = Url::parse(base_url) else {
        return String::new();
    };
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Maps base URLs to platforms, for records and comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platforms(BTreeMap<String, String>);

impl Platforms {
    /// Treats these base URLs as other names of a platform.
    pub fn with_aliases(aliases: impl IntoIterator<Item = PlatformAlias>) -> Self {
        Self(
            aliases
                .into_iter()
                .map(|PlatformAlias { alias, platform }| (alias, platform))
                .collect(),
        )
    }

    /// The platform of a base URL. Follows several aliases, because its host may have changed more
    /// than once.
    pub fn of(&self, base_url: &str) -> String {
        let mut url = normalized(base_url);
        // Aliases may form a cycle.
        for _ in 0..self.0.len() {
            let Some(platform) = self.0.get(&url) else {
                break;
            };
            url.clone_from(platform);
        }
        url
    }
}

/// Declares that two base URLs lead to the same platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformAlias {
    alias: String,
    platform: String,
}

impl FromStr for PlatformAlias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let urls = text
            .split_once('=')
            .map(|(alias, platform)| [alias, platform].map(Url::parse));
        let Some([Ok(alias), Ok(platform)]) = urls else {
            return Err(
                "expected two base URLs, as in https://old.example/api/v2=https://new.example/api/v2".to_owned()
            );
        };
        Ok(Self {
            alias: normalized(alias.as_str()),
            platform: normalized(platform.as_str()),
        })
    }
}

/// The reason why a platform cannot be called. No message repeats the URL or the key, because
/// either may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    #[error("the base URL is not an absolute URL with a host: {0}")]
    NotAUrl(String),
    #[error("the base URL must begin with https://")]
    NotHttps,
    #[error(
        "the base URL must begin with https://; http:// sends the API key readably and has to be allowed explicitly"
    )]
    Insecure,
    #[error("the base URL must not hold a user name, a password, a query or a fragment")]
    NotPlain,
    #[error("{0}")]
    NotAdmitted(String),
    #[error("the API key is empty")]
    NoKey,
    #[error("the API key holds characters that cannot be sent in an HTTP header")]
    UnusableKey,
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// The parameters for calling an account's platform, except its API key.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    pub endpoint: Endpoint,
    /// For a whole request, until the last byte of the answer.
    pub request_timeout: Duration,
    pub rate: Rate,
    /// Changes are sent only while it holds.
    pub leadership: Leadership,
    /// The memory limit of the namespace, which all its accounts' lists share.
    pub room: Arc<Room>,
}

/// Makes clients: [`OverHttp`] in the operator, and a replacement in tests.
pub trait Connect: std::fmt::Debug + Send + Sync {
    /// A client with its own budget. Nothing is sent yet.
    ///
    /// # Errors
    /// If the base URL or the key is unusable.
    fn connect(
        &self,
        access: &ConnectOptions,
        secret: &SecretString,
        meter: Arc<dyn Meter>,
    ) -> Result<RateLimited, ConnectError>;
}

/// The platform's HTTP API, over the network or another transport.
#[derive(Clone, Debug, Default)]
pub struct OverHttp {
    /// `None` is the network.
    pub transport: Option<Arc<dyn Transport>>,
    /// Shared by all accounts with the same options.
    pub clients: Clients,
}

impl Connect for OverHttp {
    fn connect(
        &self,
        access: &ConnectOptions,
        secret: &SecretString,
        meter: Arc<dyn Meter>,
    ) -> Result<RateLimited, ConnectError> {
        let options = HttpOptions {
            request_timeout: access.request_timeout,
            room: Arc::clone(&access.room),
            clients: self.clients.clone(),
            ..HttpOptions::default()
        };
        let endpoint = access.endpoint.clone();
        let platform = match &self.transport {
            Some(transport) => {
                HttpPlatform::over(Arc::clone(transport), endpoint, secret, &options)?
            }
            None => HttpPlatform::new(endpoint, secret.clone(), &options)?,
        };
        let budget = Arc::new(Budget::new(access.rate));
        let limited = RateLimited::new(
            Arc::new(platform.sharing(Arc::clone(&budget))),
            budget,
            meter,
        );
        Ok(limited.while_leading(access.leadership.clone()))
    }
}

#[cfg(test)]
mod tests;
