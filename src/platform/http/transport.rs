//! What carries requests to a platform and brings the answers back: the network, or what a test puts in its place.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Request, Response, redirect, retry};

use super::HttpOptions;

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
    pub fn new(options: &HttpOptions) -> Result<Self, String> {
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(options.connect_timeout)
            .timeout(options.request_timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .redirect(redirect::Policy::none())
            .referer(false)
            // A change that was sent is never sent again by the client on its own: HTTP/2 clients resend on GOAWAY and
            // REFUSED_STREAM, so neither that protocol nor any policy of retrying is used.
            .http1_only()
            .retry(retry::never());
        if !options.environment_proxies {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(reason)?;
        Ok(Self { client, request_timeout: options.request_timeout })
    }
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
            false => reason(error),
        };
        Self { sent, message }
    }
}

/// What lies at the bottom of a client error, without the address.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    match causes.is_empty() {
        true => error.to_string(),
        false => causes.join(": "),
    }
}
