//! Sends requests to a platform and returns the answers: over the network, or a replacement in
//! tests.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, Request, Response, Url, redirect, retry};

use super::HttpOptions;
use super::address::{Addresses, RefusedAddress};
use crate::platform::{ConnectError, Reach};

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
/// Load balancers in front of such platforms usually close idle connections after 60 s. Closing
/// them earlier avoids requests on a connection that is being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// Sends requests. It does not interpret the answers.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends one request, once.
    async fn carry(&self, request: Request) -> Result<Response, Unanswered>;
}

/// No complete answer arrived.
#[derive(Debug)]
pub struct Unanswered {
    /// True unless it is known that nothing was sent.
    pub sent: bool,
    pub message: String,
}

/// HTTP clients that all accounts share. A separate client, with its certificates and connections,
/// would take more memory than the rest of an account.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// For public addresses only.
    public: Arc<OnceLock<Client>>,
    /// For private addresses too, if the administrator named the host.
    local: Arc<OnceLock<Client>>,
    unguarded: Arc<OnceLock<Client>>,
}

/// Connections that are kept and reused.
#[derive(Debug)]
pub(super) struct NetworkTransport {
    client: Client,
    request_timeout: Duration,
}

impl NetworkTransport {
    /// For the platform at `url` only.
    pub fn new(options: &HttpOptions, url: &Url, reach: &Reach) -> Result<Self, ConnectError> {
        let mut guard = None;
        if !reach.insecure {
            let addresses = Addresses::of(url, reach);
            addresses
                .check_literal(url)
                .map_err(|refused| ConnectError::NotAdmitted(refused.to_string()))?;
            // A proxy resolves the name itself, and may well run on this machine.
            if !(options.environment_proxies && has_proxy(url)) {
                guard = Some(addresses);
            }
        }
        let shared = match &guard {
            Some(addresses) if addresses.local => &options.clients.local,
            Some(_) => &options.clients.public,
            None => &options.clients.unguarded,
        };
        let client = match shared.get() {
            Some(client) => client.clone(),
            None => {
                let made = Self::client(options, guard)?;
                shared.get_or_init(|| made).clone()
            }
        };
        Ok(Self {
            client,
            request_timeout: options.request_timeout,
        })
    }

    fn client(options: &HttpOptions, guard: Option<Addresses>) -> Result<Client, ConnectError> {
        // The kernel may send data after the client has given up. A request is sent as soon as it
        // is connected. Connecting and waiting for an acknowledgement therefore share the request
        // timeout, so nothing is sent after it.
        let connect_timeout = options.connect_timeout.min(options.request_timeout / 2);
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(connect_timeout)
            .tcp_user_timeout(options.request_timeout - connect_timeout)
            .timeout(options.request_timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .redirect(redirect::Policy::none())
            .referer(false)
            // The size of an answer is checked as it arrives, so it must not grow by decompression.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            // The client must never send a change again by itself. HTTP/2 clients resend on GOAWAY
            // and REFUSED_STREAM, so neither HTTP/2 nor a retry policy is used.
            .http1_only()
            .retry(retry::never());
        if !options.environment_proxies {
            builder = builder.no_proxy();
        }
        if let Some(addresses) = guard {
            builder = builder.dns_resolver(addresses);
        }
        builder
            .build()
            .map_err(|error| ConnectError::Client(client_error(error)))
    }
}

/// True if the environment has a proxy for `url`, by the rules of the client.
fn has_proxy(url: &Url) -> bool {
    url.as_str()
        .parse()
        .is_ok_and(|url| Matcher::from_system().intercept(&url).is_some())
}

#[async_trait]
impl Transport for NetworkTransport {
    async fn carry(&self, request: Request) -> Result<Response, Unanswered> {
        self.client
            .execute(request)
            .await
            .map_err(|error| Unanswered::of(error, self.request_timeout))
    }
}

impl Unanswered {
    pub(super) fn of(error: reqwest::Error, request_timeout: Duration) -> Self {
        let (sent, timeout) = (!error.is_connect(), error.is_timeout());
        let message = if sent && timeout {
            format!("none came within {request_timeout:?}")
        } else {
            client_error(error)
        };
        Self { sent, message }
    }
}

/// The root cause of a client error, without the URL.
pub fn client_error(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<RefusedAddress>() {
            return error.to_string();
        }
        causes.push(error.to_string());
        cause = error.source();
    }
    if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_share_a_client_and_each_address_is_checked_all_the_same() {
        let options = HttpOptions {
            environment_proxies: false,
            ..HttpOptions::default()
        };
        let to = |url: &str, insecure: bool| {
            NetworkTransport::new(
                &options,
                &Url::parse(url).unwrap(),
                &Reach {
                    insecure,
                    ..Reach::default()
                },
            )
        };
        assert!(to("https://a.example/v2", false).is_ok());
        let guarded = options.clients.public.get().unwrap() as *const Client;
        assert!(to("https://b.example/v2", false).is_ok());
        assert_eq!(
            options.clients.public.get().unwrap() as *const Client,
            guarded
        );
        assert!(matches!(
            to("https://127.0.0.1/v2", false),
            Err(ConnectError::NotAdmitted(_))
        ));
        assert!(options.clients.unguarded.get().is_none());
        assert!(
            to("http://127.0.0.1/v2", true).is_ok() && options.clients.unguarded.get().is_some()
        );
    }
}
