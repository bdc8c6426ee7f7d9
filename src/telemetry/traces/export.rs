//! Sends spans to a collector, on the runtime's threads and with the same HTTP library as for
//! platforms.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter as Otlp, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use reqwest::redirect;
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::platform::client_error;

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
/// A collector's answer has only a few bytes.
const LARGEST_ANSWER: usize = 64 * 1024;

/// Exports spans. Logs when exports begin to fail and when they work again, with the number of
/// spans that were lost meanwhile.
#[derive(Debug)]
pub struct Exporter {
    otlp: Otlp,
    why: Arc<Mutex<String>>,
    /// Spans lost since exports began to fail; `None` while they work.
    lost: Mutex<Option<usize>>,
}

impl Exporter {
    /// Uses the environment's settings, with `timeout` for one request.
    ///
    /// # Errors
    /// If no client can be created. The message does not repeat the endpoint, which may contain a
    /// credential.
    pub fn new(timeout: Duration) -> Result<Self, String> {
        let why = Arc::<Mutex<String>>::default();
        let http = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            .http1_only()
            .build()
            .map_err(|error| format!("traces: no HTTP client: {}", client_error(error)))?;
        let client = ExportClient {
            http,
            runtime: Handle::current(),
            why: Arc::clone(&why),
        };
        let otlp = Otlp::builder().with_http().with_http_client(client).build();
        let otlp = otlp.map_err(|_| {
            "traces cannot be exported: OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector; write one such as \
             http://collector:4318"
        })?;
        Ok(Self {
            otlp,
            why,
            lost: Mutex::default(),
        })
    }

    fn log(&self, spans: usize, outcome: &OTelSdkResult) {
        let mut lost = locked(&self.lost);
        match (outcome, lost.take()) {
            (Ok(()), None) => {}
            (Ok(()), Some(lost)) => info!(lost, "traces are exported again"),
            (Err(_), Some(before)) => *lost = Some(before + spans),
            (Err(error), None) => {
                *lost = Some(spans);
                let why = std::mem::take(&mut *locked(&self.why));
                let error = if why.is_empty() {
                    error.to_string()
                } else {
                    why
                };
                warn!(
                    error,
                    "traces cannot be exported; the spans are lost, and nothing else is touched"
                );
            }
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let outcome = self.otlp.export(batch).await;
        self.log(spans, &outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.otlp.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// The SDK exports on its own thread, which has no reactor.
#[derive(Debug)]
struct ExportClient {
    http: reqwest::Client,
    runtime: Handle,
    /// The reason of the last failure, because the SDK's own errors do not contain it.
    why: Arc<Mutex<String>>,
}

#[async_trait]
impl HttpClient for ExportClient {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        for value in request.headers_mut().values_mut() {
            value.set_sensitive(true);
        }
        let http = self.http.clone();
        let sent = self
            .runtime
            .spawn(async move { send(&http, request).await })
            .await;
        let answered = sent
            .map_err(HttpError::from)
            .and_then(|answered| answered.map_err(HttpError::from));
        *locked(&self.why) = match &answered {
            Ok(answer) if answer.status().is_success() => String::new(),
            Ok(answer) => format!("the collector answers {}", answer.status()),
            Err(error) => error.to_string(),
        };
        answered
    }
}

async fn send(http: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let request = reqwest::Request::try_from(request).map_err(client_error)?;
    let mut answer = http.execute(request).await.map_err(client_error)?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(client_error)? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            return Err(format!(
                "the collector's answer has more than {LARGEST_ANSWER} bytes"
            ));
        }
        body.extend_from_slice(&chunk);
    }
    let mut whole = Response::new(Bytes::from(body));
    (*whole.status_mut(), *whole.headers_mut()) = (answer.status(), answer.headers().clone());
    Ok(whole)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
