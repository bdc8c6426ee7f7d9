//! Serves `/livez`, `/readyz` and `/metrics`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Metrics;

/// The things that the operator waits for before it can work.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Records that something is missing.
    pub fn lacks(&self, what: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(what.to_owned());
    }

    /// Records that it is no longer missing.
    pub fn has(&self, what: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(what);
    }

    /// Records that exactly these are missing.
    pub fn only(&self, missing: &[String]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = missing.iter().cloned().collect();
    }

    pub fn missing(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }
}

/// When the threads that run passes last started a task. Another thread answers the probes, and
/// would not notice by itself that passes are stuck.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Mutex<Instant>>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Pulse {
    const EVERY: Duration = Duration::from_secs(5);
    /// Far longer than any pass computes.
    const LONGEST_PAUSE: Duration = Duration::from_secs(120);

    /// Never ends. Spawn it on the runtime of the passes.
    pub async fn beat(self) {
        loop {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            tokio::time::sleep(Self::EVERY).await;
        }
    }

    fn is_there(&self, now: Instant) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last) < Self::LONGEST_PAUSE
    }
}

/// Serves `/livez` and `/readyz` until `stop`.
pub async fn serve_health(
    listener: TcpListener,
    readiness: Readiness,
    pulse: Pulse,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(livez).with_state(pulse))
        .route("/readyz", get(readyz).with_state(readiness));
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

/// Serves `/metrics` until `stop`. With a file, only to those who send the token in it.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    token: Option<PathBuf>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(expose))
        .with_state((metrics, token.map(Arc::from)));
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

/// Binds `address`, which an error names.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))
}

async fn livez(State(pulse): State<Pulse>) -> (StatusCode, &'static str) {
    if pulse.is_there(Instant::now()) {
        return (StatusCode::OK, "ok\n");
    }
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "no thread that makes passes has taken up a task for 2 minutes\n",
    )
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    match readiness.missing().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("waiting for: {}\n", missing.join("; ")),
        ),
    }
}

async fn expose(
    State((metrics, token)): State<(Arc<Metrics>, Option<Arc<Path>>)>,
    headers: HeaderMap,
) -> Response {
    if let Some(file) = token
        && let Err((status, why)) = is_admitted(&file, headers.get(header::AUTHORIZATION))
    {
        return (status, why).into_response();
    }
    match metrics.text() {
        Ok(text) => {
            let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, openmetrics)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The file is read each time, because a mounted Secret may change.
fn is_admitted(file: &Path, sent: Option<&HeaderValue>) -> Result<(), (StatusCode, &'static str)> {
    let Ok(token) = std::fs::read_to_string(file) else {
        let why = "the file of --metrics-token-file cannot be read\n";
        return Err((StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let token = SecretString::from(token.trim());
    if token.expose_secret().is_empty() {
        let why = "the file of --metrics-token-file is empty: put a token into it\n";
        return Err((StatusCode::SERVICE_UNAVAILABLE, why));
    }
    let sent = sent.and_then(|sent| sent.as_bytes().strip_prefix(b"Bearer "));
    // The time to compare digests reveals nothing about the token.
    let expected = Sha256::digest(token.expose_secret());
    if sent.is_some_and(|sent| Sha256::digest(sent) == expected) {
        return Ok(());
    }
    let why = "send the token of --metrics-token-file: Authorization: Bearer ...\n";
    Err((StatusCode::UNAUTHORIZED, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_need_the_token_of_the_file() {
        let file = std::env::temp_dir().join(format!("dbplane-token-{}", std::process::id()));
        let answer = |sent: Option<&'static str>| {
            let sent = sent.map(HeaderValue::from_static);
            let admitted = is_admitted(&file, sent.as_ref());
            admitted.map_or_else(|(status, _)| status, |()| StatusCode::OK)
        };
        let right = Some("Bearer of-prometheus");
        assert_eq!(answer(right), StatusCode::SERVICE_UNAVAILABLE);
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(answer(right), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer(Some("Bearer ")), StatusCode::SERVICE_UNAVAILABLE);
        std::fs::write(&file, "of-prometheus\n").unwrap();
        for wrong in [
            None,
            Some("Bearer "),
            Some("of-prometheus"),
            Some("Basic of-prometheus"),
            Some("Bearer of-prometheus-2"),
        ] {
            assert_eq!(answer(wrong), StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
        assert_eq!(answer(right), StatusCode::OK);
        std::fs::write(&file, "another").unwrap();
        assert_eq!(answer(right), StatusCode::UNAUTHORIZED);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn threads_that_take_up_no_task_for_two_minutes_are_not_alive() {
        let pulse = Pulse::default();
        let last = *pulse.0.lock().unwrap();
        let after = |seconds| pulse.is_there(last + Duration::from_secs(seconds));
        assert_eq!([0, 119, 120, 7200].map(after), [true, true, false, false]);
    }
}
