//! `/livez`, `/readyz` and `/metrics`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Metrics;

/// What the operator still waits for before it can work.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Records that something is missing.
    pub fn lacks(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned());
    }

    /// Records that it is no longer missing.
    pub fn has(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
    }

    /// Records that exactly these are missing.
    pub fn only(&self, missing: &[String]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = missing.iter().cloned().collect();
    }

    /// Everything that is missing.
    pub fn missing(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Serves `/livez` and `/readyz` until `stop`.
pub async fn serve_health(listener: TcpListener, readiness: Readiness, stop: CancellationToken) -> std::io::Result<()> {
    let router =
        Router::new().route("/livez", get(|| async { "ok\n" })).route("/readyz", get(readyz)).with_state(readiness);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

/// Serves `/metrics` until `stop`.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new().route("/metrics", get(expose)).with_state(metrics);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

/// Binds `address`, naming it where that fails.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    match readiness.missing().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for: {}\n", missing.join("; "))),
    }
}

async fn expose(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    match metrics.text() {
        Ok(text) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")],
            text,
        ),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, "text/plain")], error.to_string()),
    }
}
