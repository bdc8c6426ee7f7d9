//! Sends one request and returns its answer, or a fault.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    RETRY_AFTER,
};
use reqwest::{Method, Request, Response};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::{Instrument, Span};

use super::HttpOptions;
use super::endpoint::Base;
use super::refusal::{RefusedAnswer, http_date, retry_after};
use super::text::{tidy, tidy_identifier};
use super::transport::{NetworkTransport, Transport, Unanswered};
use crate::domain::{Fault, Operation, OrganizationId};
use crate::platform::room::LEAST_SHARE;
use crate::platform::{ConnectError, Endpoint, Room};
use crate::spans;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Limit for answers that are no lists; the platform's have a few KiB. A larger answer waits for
/// its turn.
const LARGEST_ANSWER: usize = 1024 * 1024;
const LARGEST_REFUSAL: usize = 64 * 1024;

/// The parameters of a request.
pub(super) struct Call<'a> {
    pub method: Method,
    pub segments: &'a [&'a str],
    pub query: &'a [(&'a str, &'a str)],
    pub body: Option<Vec<u8>>,
    /// Limit in bytes for the body of a success.
    pub largest: usize,
}

impl<'a> Call<'a> {
    pub fn new(method: Method, segments: &'a [&'a str]) -> Self {
        Self {
            method,
            segments,
            query: &[],
            body: None,
            largest: LARGEST_ANSWER,
        }
    }

    pub fn get(segments: &'a [&'a str]) -> Self {
        Self::new(Method::GET, segments)
    }
}

/// The body of a success. It has no Debug output because it may contain a new key.
#[derive(Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    /// Held while a large body is in memory.
    turns: Vec<OwnedSemaphorePermit>,
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A client for one platform and one credential.
#[derive(Clone)]
pub(super) struct Exchange {
    transport: Arc<dyn Transport>,
    base: Base,
    /// Sent with every request. A personal key sees an organization's projects only with it; other
    /// keys do not need it.
    organization: Option<OrganizationId>,
    secret: SecretString,
    request_timeout: Duration,
    /// A namespace with many large lists has one of the largest in memory at a time, and a few
    /// smaller ones.
    room: Arc<Room>,
    clock: fn() -> Timestamp,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&self.base).finish()
    }
}

impl Exchange {
    pub fn new(
        endpoint: &Endpoint,
        secret: &SecretString,
        options: &HttpOptions,
    ) -> Result<Self, ConnectError> {
        let network = NetworkTransport::new(options, Base::new(endpoint)?.url(), &endpoint.reach)
            .map_err(|error| match error {
            ConnectError::Client(error) => {
                ConnectError::Client(tidy(&error, secret.expose_secret().trim()))
            }
            error => error,
        })?;
        Self::over(Arc::new(network), endpoint, secret, options)
    }

    pub fn over(
        transport: Arc<dyn Transport>,
        endpoint: &Endpoint,
        secret: &SecretString,
        options: &HttpOptions,
    ) -> Result<Self, ConnectError> {
        let base = Base::new(endpoint)?;
        let secret = trimmed(secret);
        if secret.expose_secret().is_empty() {
            return Err(ConnectError::NoKey);
        }
        bearer(&secret).ok_or(ConnectError::UnusableKey)?;
        Ok(Self {
            transport,
            base,
            organization: endpoint.organization_id.clone(),
            secret,
            request_timeout: options.request_timeout,
            room: Arc::clone(&options.room),
            clock: options.clock,
        })
    }

    /// The same platform with another secret.
    pub fn with_secret(&self, secret: &SecretString) -> Self {
        Self {
            secret: trimmed(secret),
            ..self.clone()
        }
    }

    /// Sends one request, once. The inner result is the body of a success. The body may have been
    /// lost after the request was carried out, so the caller has to interpret that.
    pub async fn send(&self, call: Call<'_>) -> Result<Result<Body, Fault>, Fault> {
        let url = self.base.url();
        let span = spans::request(
            call.method.as_str(),
            call.segments,
            url.host_str(),
            url.port_or_known_default(),
        );
        let outcome = self
            .exchange(call, &Span::current(), &span)
            .instrument(span.clone())
            .await;
        if let Err(fault) | Ok(Err(fault)) = &outcome {
            spans::failed(&span, fault.kind());
        }
        outcome
    }

    async fn exchange(
        &self,
        call: Call<'_>,
        pass: &Span,
        span: &Span,
    ) -> Result<Result<Body, Fault>, Fault> {
        let organization = self.organization.as_deref().map(|id| ("org_id", id));
        let query: Vec<_> = organization
            .into_iter()
            .chain(call.query.iter().copied())
            .collect();
        let address = self.base.address(call.segments, &query);
        let address =
            address.ok_or_else(|| not_sent("an identifier cannot be part of an address"))?;
        let bearer = bearer(&self.secret).ok_or_else(|| Fault::Transport {
            message: "the API key holds characters that cannot be sent".to_owned(),
        })?;
        let change = call.method != Method::GET;
        let mut request = Request::new(call.method, address);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        request.headers_mut().insert(ACCEPT, JSON);
        if let Some(body) = call.body {
            request.headers_mut().insert(CONTENT_TYPE, JSON);
            *request.body_mut() = Some(body.into());
        }
        let response = self
            .transport
            .carry(request)
            .await
            .map_err(|error| self.unanswered(&error))?;
        span.record(
            "http.response.status_code",
            i64::from(response.status().as_u16()),
        );
        if let Some(id) = text(response.headers(), &X_REQUEST_ID) {
            let id = tidy_identifier(id, self.secret.expose_secret());
            span.record("dbplane.request_id", &id);
            if change {
                // A pass makes at most one change, so its log lines carry the request ID of that
                // change.
                pass.record("request_id", id);
            }
        }
        if response.status().is_success() {
            return Ok(self.success(response, call.largest).await);
        }
        Err(self.refusal(response, change).await)
    }

    async fn success(&self, mut response: Response, largest: usize) -> Result<Body, Fault> {
        let mut body = Body::default();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.cut(error))? {
            if body.len() + chunk.len() > largest {
                return Err(Fault::TooLarge {
                    message: format!("it has more than {largest} bytes"),
                });
            }
            let length = body.len() + chunk.len();
            if length > LEAST_SHARE && body.turns.is_empty() {
                body.turns.push(self.turn(&self.room.larger).await?);
            }
            if length > LARGEST_ANSWER && body.turns.len() < 2 {
                body.turns.push(self.turn(&self.room.largest).await?);
            }
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Waits for permission to keep a large answer in memory. A holder loses it at its own timeout
    /// at the latest.
    async fn turn(&self, turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Fault> {
        let turn = timeout(self.request_timeout, Arc::clone(turns).acquire_owned()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| Fault::Unknown {
                message: "other large answers to accounts of the same namespace were read first"
                    .to_owned(),
            })
    }

    async fn refusal(&self, mut response: Response, change: bool) -> Fault {
        let headers = response.headers();
        let now = text(headers, &DATE)
            .and_then(http_date)
            .unwrap_or_else(self.clock);
        let mut refusal = RefusedAnswer {
            status: response.status().as_u16(),
            change,
            retry_after: text(headers, &RETRY_AFTER).and_then(|value| retry_after(value, now)),
            location: text(headers, &LOCATION).map(str::to_owned),
            request_id: text(headers, &X_REQUEST_ID).map(str::to_owned),
            html: text(headers, &CONTENT_TYPE)
                .is_some_and(|kind| kind.to_ascii_lowercase().contains("html")),
            body: Vec::new(),
            complete: false,
        };
        let secret = self.secret.expose_secret();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => refusal.body.extend_from_slice(&chunk),
                Ok(None) => {
                    refusal.complete = true;
                    break;
                }
                Err(_) => break,
            }
            if refusal.body.len() > LARGEST_REFUSAL {
                // A secret that the cut splits would not be recognized, so cut before it could
                // begin.
                refusal
                    .body
                    .truncate(LARGEST_REFUSAL.saturating_sub(secret.len()));
                break;
            }
        }
        refusal.into_fault(secret)
    }

    /// The fault for a success with an unexpected body.
    pub fn unreadable(&self, path: &str, message: &str) -> Fault {
        let secret = self.secret.expose_secret();
        Fault::Undecodable {
            path: tidy(path, secret),
            message: tidy(message, secret),
        }
    }

    /// An operation with texts that are safe to show.
    pub fn tidied(&self, operation: Operation) -> Operation {
        let secret = self.secret.expose_secret();
        Operation {
            id: tidy_identifier(&operation.id, secret),
            action: tidy_identifier(&operation.action, secret),
            status: tidy_identifier(&operation.status, secret),
            error: operation.error.map(|error| tidy(&error, secret)),
            ..operation
        }
    }

    /// The fault for an answer that broke off.
    fn cut(&self, error: reqwest::Error) -> Fault {
        self.unanswered(&Unanswered::of(error, self.request_timeout))
    }

    /// Only a failed connection proves that nothing was sent.
    fn unanswered(&self, unanswered: &Unanswered) -> Fault {
        let message = tidy(&unanswered.message, self.secret.expose_secret());
        if unanswered.sent {
            Fault::Unknown { message }
        } else {
            Fault::Transport { message }
        }
    }
}

/// The fault for a request that was not sent because it would be a mistake.
pub(super) fn not_sent(message: &str) -> Fault {
    Fault::Rejected {
        status: 400,
        message: format!("not sent: {message}"),
    }
}

/// Removes the line break at the end of keys that are read from files.
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
