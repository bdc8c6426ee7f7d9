//! `/debug/log`, on loopback only: the log filter, which can be changed at runtime.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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
            Err("whoever reaches it changes what is logged, so it is a loopback address only, such as 127.0.0.1:8082"
                .into())
        }
    }
}

/// Serves `/debug/log` until `stop`: GET shows the filter, PUT replaces it by the body.
pub async fn serve_debug(
    listener: TcpListener,
    filter: LogFilter,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/debug/log", get(show).put(replace))
        .with_state(filter);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn show(State(filter): State<LogFilter>) -> String {
    format!("{}\n", filter.text())
}

async fn replace(State(filter): State<LogFilter>, wanted: String) -> (StatusCode, String) {
    match filter.set(wanted.trim()) {
        Ok(()) => (StatusCode::OK, format!("{}\n", filter.text())),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
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
}
