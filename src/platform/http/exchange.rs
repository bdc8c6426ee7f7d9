//! One request and its answer, or the fault that came instead.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Method, Response, redirect, retry};
use secrecy::{ExposeSecret, SecretString};

use super::HttpOptions;
use super::endpoint::{Base, Endpoint, EndpointError};
use super::refusal::{Refusal, http_date, retry_after};
use super::text::tidy;
use crate::platform::Fault;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
const LARGEST_ANSWER: usize = 32 * 1024 * 1024;
const LARGEST_REFUSAL: usize = 64 * 1024;
/// Idle connections are given up before the load balancers in front of such platforms usually do (60 s), so that a
/// request seldom meets a connection that is being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// What to ask for.
pub(super) struct Call<'a> {
    pub method: Method,
    pub segments: &'a [&'a str],
    pub query: &'a [(&'a str, &'a str)],
    pub body: Option<Vec<u8>>,
}

impl<'a> Call<'a> {
    pub fn new(method: Method, segments: &'a [&'a str]) -> Self {
        Self { method, segments, query: &[], body: None }
    }

    pub fn get(segments: &'a [&'a str]) -> Self {
        Self::new(Method::GET, segments)
    }
}

/// A client for one platform and one credential.
#[derive(Clone)]
pub(super) struct Exchange {
    client: Client,
    base: Base,
    secret: SecretString,
    request_timeout: Duration,
    clock: fn() -> Timestamp,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&self.base).finish()
    }
}

impl Exchange {
    pub fn new(endpoint: &Endpoint, secret: &SecretString, options: &HttpOptions) -> Result<Self, EndpointError> {
        let base = Base::new(endpoint)?;
        let secret = trimmed(secret);
        if secret.expose_secret().is_empty() {
            return Err(EndpointError::NoKey);
        }
        bearer(&secret).ok_or(EndpointError::UnusableKey)?;
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
        Ok(Self {
            client: builder
                .build()
                .map_err(|error| EndpointError::Client(tidy(&reason(error), secret.expose_secret())))?,
            base,
            secret,
            request_timeout: options.request_timeout,
            clock: options.clock,
        })
    }

    /// The same platform, called with another secret.
    pub fn with_secret(&self, secret: &SecretString) -> Self {
        Self { secret: trimmed(secret), ..self.clone() }
    }

    /// Sends one request, once. The result is what a success answered; its body may have been lost on the way, which is
    /// for the caller to weigh: the request was carried out.
    pub async fn send(&self, call: Call<'_>) -> Result<Result<Vec<u8>, Fault>, Fault> {
        let address = self.base.address(call.segments, call.query);
        let address = address.ok_or_else(|| not_sent("an identifier cannot be part of an address"))?;
        let bearer = bearer(&self.secret).ok_or_else(|| Fault::Transport {
            message: "the API key holds characters that cannot be sent".to_owned(),
        })?;
        let change = call.method != Method::GET;
        let mut request = self.client.request(call.method, address);
        request = request.header(AUTHORIZATION, bearer).header(ACCEPT, JSON);
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        let response = request.send().await.map_err(|error| self.transport(error))?;
        if response.status().is_success() {
            return Ok(self.success(response).await);
        }
        Err(self.refusal(response, change).await)
    }

    async fn success(&self, mut response: Response) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(error))? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(self.unreadable(".", "the answer is larger than 32 MiB"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn refusal(&self, mut response: Response, change: bool) -> Fault {
        let headers = response.headers();
        let now = text(headers, &DATE).and_then(http_date).unwrap_or_else(self.clock);
        let mut refusal = Refusal {
            status: response.status().as_u16(),
            change,
            retry_after: text(headers, &RETRY_AFTER).and_then(|value| retry_after(value, now)),
            location: text(headers, &LOCATION).map(str::to_owned),
            request_id: text(headers, &X_REQUEST_ID).map(str::to_owned),
            body: Vec::new(),
        };
        let secret = self.secret.expose_secret();
        // The status decides, so a body that ends early is no fault of its own.
        while let Ok(Some(chunk)) = response.chunk().await {
            refusal.body.extend_from_slice(&chunk);
            if refusal.body.len() > LARGEST_REFUSAL {
                // A token that the cut divides would not be recognized.
                refusal.body.truncate(LARGEST_REFUSAL.saturating_sub(secret.len()));
                break;
            }
        }
        refusal.into_fault(secret)
    }

    /// A success whose body is not what it should be.
    pub fn unreadable(&self, path: &str, message: &str) -> Fault {
        let secret = self.secret.expose_secret();
        Fault::Undecodable { path: tidy(path, secret), message: tidy(message, secret) }
    }

    /// Only a connection that could not be made proves that nothing was sent.
    fn transport(&self, error: reqwest::Error) -> Fault {
        let (sent, timeout) = (!error.is_connect(), error.is_timeout());
        let message = match sent && timeout {
            true => format!("none came within {:?}", self.request_timeout),
            false => tidy(&reason(error), self.secret.expose_secret()),
        };
        match sent {
            true => Fault::Unknown { message },
            false => Fault::Transport { message },
        }
    }
}

/// A request that was not sent because it would be a mistake.
pub(super) fn not_sent(message: &str) -> Fault {
    Fault::Rejected { status: 400, message: format!("not sent: {message}") }
}

/// Without the line break that keys read from files often end with.
fn trimmed(secret: &SecretString) -> SecretString {
    SecretString::from(secret.expose_secret().trim())
}

fn bearer(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", secret.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
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
