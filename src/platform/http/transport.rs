//! What carries requests to a platform and brings the answers back: the network, or what a test puts in its place.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, Request, Response, Url, redirect, retry};

use super::HttpOptions;
use super::address::{Addresses, RefusedAddress};
use crate::platform::{ConnectError, Reach};

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
/// Idle connections are given up before the load balancers in front of such platforms usually do (60 s), so that a
/// request seldom meets a connection that is being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// Carries requests. What an answer means is not its business.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends one request, once.
    async fn carry(&self, request: Request) -> Result<Response, Unanswered>;
}

/// No whole answer came.
#[derive(Debug)]
pub struct Unanswered {
    /// Whether anything was sent, as far as that is known.
    pub sent: bool,
    pub message: String,
}

/// Connections that are kept and used again.
#[derive(Debug)]
pub(super) struct Network {
    client: Client,
    request_timeout: Duration,
}

impl Network {
    /// For the platform at `url` alone.
    pub fn new(options: &HttpOptions, url: &Url, reach: &Reach) -> Result<Self, ConnectError> {
        // What the kernel holds of a request outlives the client's interest in it. A request is sent as soon as its connection is
        // made, so nothing of it leaves after the request timeout where making the connection and waiting for an
        // acknowledgement share it.
        let connect_timeout = options.connect_timeout.min(options.request_timeout / 2);
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(connect_timeout)
            .tcp_user_timeout(options.request_timeout - connect_timeout)
            .timeout(options.request_timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .redirect(redirect::Policy::none())
            .referer(false)
            // The size of an answer is counted as it arrives, so it must not become larger afterwards.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            // A change that was sent is never sent again by the client on its own: HTTP/2 clients resend on GOAWAY and
            // REFUSED_STREAM, so neither that protocol nor any policy of retrying is used.
            .http1_only()
            .retry(retry::never());
        if !options.environment_proxies {
            builder = builder.no_proxy();
        }
        if !reach.insecure {
            let addresses = Addresses::of(url, reach);
            addresses.check_literal(url).map_err(|refused| ConnectError::NotAdmitted(refused.to_string()))?;
            // A proxy resolves the name itself, and may well be on this machine.
            if !(options.environment_proxies && has_proxy(url)) {
                builder = builder.dns_resolver(addresses);
            }
        }
        let client = builder.build().map_err(|error| ConnectError::Client(client_error(error)))?;
        Ok(Self { client, request_timeout: options.request_timeout })
    }
}

/// Whether the environment names a proxy for `url`, as the client finds it.
fn has_proxy(url: &Url) -> bool {
    url.as_str().parse().is_ok_and(|url| Matcher::from_system().intercept(&url).is_some())
}

#[async_trait]
impl Transport for Network {
    async fn carry(&self, request: Request) -> Result<Response, Unanswered> {
        self.client.execute(request).await.map_err(|error| Unanswered::of(error, self.request_timeout))
    }
}

impl Unanswered {
    pub(super) fn of(error: reqwest::Error, request_timeout: Duration) -> Self {
        let (sent, timeout) = (!error.is_connect(), error.is_timeout());
        let message = match sent && timeout {
            true => format!("none came within {request_timeout:?}"),
            false => client_error(error),
        };
        Self { sent, message }
    }
}

/// What lies at the bottom of a client error, without the address.
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
    match causes.is_empty() {
        true => error.to_string(),
        false => causes.join(": "),
    }
}
