//! `/debug/log` and `/debug/state`, on loopback only: the log filter, which can be changed at
//! runtime, and the state of the process.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Readiness;
use super::logs::LogFilter;

/// Parses a loopback address, which other machines cannot call.
///
/// # Errors
/// If it is not one, with advice.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|error| format!("{error}; write 127.0.0.1:8082"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => {
            Err("whoever reaches it sees names and changes what is logged, so it is a loopback address only, such as 127.0.0.1:8082"
                .into())
        }
    }
}

/// The resources to show; all by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Wanted {
    /// Ignores case, because users write kinds as for kubectl.
    pub fn is_kind(&self, kind: &str) -> bool {
        self.kind
            .as_deref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind))
    }

    pub fn is(&self, namespace: Option<&str>, name: &str) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|wanted| namespace == Some(wanted))
            && self.name.as_deref().is_none_or(|wanted| wanted == name)
    }
}

type Tell = Box<dyn Fn(&Wanted) -> Value + Send + Sync>;

/// Renders the state of the process, once there is any.
#[derive(Clone, Default)]
pub struct StatePage(Arc<OnceLock<Tell>>);

impl fmt::Debug for StatePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatePage").finish_non_exhaustive()
    }
}

impl StatePage {
    /// From now on, `tell` renders the state.
    pub fn by(&self, tell: impl Fn(&Wanted) -> Value + Send + Sync + 'static) {
        // The first function is kept for the life of the process.
        let _ = self.0.set(Box::new(tell));
    }
}

/// The content that is served.
#[derive(Clone, Debug)]
pub struct Pages {
    pub log: LogFilter,
    pub state: StatePage,
    pub readiness: Readiness,
}

/// Serves `/debug/log` (GET shows the filter, PUT replaces it by the body) and `/debug/state` until
/// `stop`.
pub async fn serve_debug(
    listener: TcpListener,
    pages: Pages,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/debug/log", get(show).put(replace))
        .route("/debug/state", get(state))
        .with_state(pages);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn show(State(pages): State<Pages>) -> String {
    format!("{}\n", pages.log.text())
}

async fn replace(State(pages): State<Pages>, filter: String) -> (StatusCode, String) {
    match pages.log.set(filter.trim()) {
        Ok(()) => (StatusCode::OK, format!("{}\n", pages.log.text())),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

async fn state(State(pages): State<Pages>, Query(wanted): Query<Wanted>) -> Response {
    match pages.state.0.get() {
        Some(tell) => Json(tell(&wanted)).into_response(),
        None => {
            let missing = pages.readiness.missing().join("; ");
            let missing = if missing.is_empty() {
                "the lead, which another process has".to_owned()
            } else {
                missing
            };
            (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("waiting for: {missing}\n"),
            )
                .into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_on_loopback_alone() {
        assert!(loopback("127.0.0.1:8082").is_ok() && loopback("[::1]:8082").is_ok());
        for refused in ["0.0.0.0:8082", "10.0.0.1:8082", "[::]:8082", "8082"] {
            assert!(
                loopback(refused).unwrap_err().contains("127.0.0.1:8082"),
                "{refused}"
            );
        }
    }

    #[test]
    fn resources_are_chosen_as_kubectl_names_them() {
        let wanted = Wanted {
            kind: Some("compute".into()),
            namespace: Some("shop".into()),
            name: None,
        };
        assert!(wanted.is_kind("Compute") && !wanted.is_kind("Account"));
        assert!(
            wanted.is(Some("shop"), "orders")
                && !wanted.is(Some("bank"), "orders")
                && !wanted.is(None, "company")
        );
        assert!(Wanted::default().is_kind("Compute") && Wanted::default().is(None, "company"));
    }
}
