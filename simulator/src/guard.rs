//! Protects the console from pages of other sites. It asks for no credentials, and any browser on
//! this machine reaches it.

use std::net::IpAddr;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Loads and sends only to the same origin, allows nothing inline, and forbids embedding in a
/// frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Sent with every answer of the console. `no-referrer` would not work: browsers would then send
/// forms with the origin `null`.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// True if the simulator listens only on loopback.
#[derive(Debug, Clone, Copy)]
pub struct OnLoopback(pub bool);

/// Rejects cross-site requests and adds the security headers to every answer.
pub async fn protect(
    State(on_loopback): State<OnLoopback>,
    request: Request,
    next: Next,
) -> Response {
    let host = host(&request).map(str::to_owned);
    let refused = strange_host(on_loopback, host.as_deref())
        .or_else(|| cross_site(request.method(), request.headers(), host.as_deref()));
    let mut response = match refused {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Rejects bodies that browsers send without a preflight (forms, plain text) where JSON is
/// expected.
pub async fn json_from_browsers(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let by_a_browser = headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE);
    let is_json = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|value| value.starts_with("application/json"))
    };
    if by_a_browser
        && headers
            .get_all(header::CONTENT_TYPE)
            .iter()
            .any(|value| !is_json(value))
    {
        refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a browser has to send application/json",
        )
        .into_response()
    } else {
        next.run(request).await
    }
}

type Refusal = (StatusCode, Json<serde_json::Value>);

fn refusal(status: StatusCode, message: &str) -> Refusal {
    (status, Json(json!({ "message": message })))
}

/// The host and port that the client asked for.
fn host(request: &Request) -> Option<&str> {
    let named = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    named.or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    })
}

/// Rejects foreign names that resolve to loopback: with them a foreign page passes as same-origin
/// (DNS rebinding). IP addresses are safe. If the simulator listens on more than loopback, it does
/// not know its own names, so there is no check.
fn strange_host(on_loopback: OnLoopback, host: Option<&str>) -> Option<Refusal> {
    match (on_loopback, host) {
        (OnLoopback(true), Some(host)) if !is_local(host) => {
            let message = "on loopback the console is served under localhost and addresses only";
            Some(refusal(StatusCode::MISDIRECTED_REQUEST, message))
        }
        _ => None,
    }
}

fn is_local(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| is_port(port))
        .map_or(host, |(name, _)| name);
    let name = name.to_ascii_lowercase();
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(&name);
    name == "localhost" || name.ends_with(".localhost") || address.parse::<IpAddr>().is_ok()
}

/// Browsers send the origin of a request. Clients that send none are no browsers and pass.
fn cross_site(method: &Method, headers: &HeaderMap, host: Option<&str>) -> Option<Refusal> {
    if method.is_safe() {
        return None;
    }
    let of_ours = |value: &HeaderValue| matches!(value.as_bytes(), b"same-origin" | b"none");
    let authority =
        |origin: &HeaderValue| Some(origin.to_str().ok()?.split_once("://")?.1.to_owned());
    let from_here = |origin: &HeaderValue| host.is_some() && authority(origin).as_deref() == host;
    let fine = headers.get_all(FETCH_SITE).iter().all(of_ours)
        && headers.get_all(header::ORIGIN).iter().all(from_here);
    (!fine).then(|| {
        refusal(
            StatusCode::FORBIDDEN,
            "this was sent by a page of another site",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_make_lead_elsewhere() {
        for host in [
            "localhost",
            "localhost:4010",
            "LOCALHOST:4010",
            "a.localhost",
            "127.0.0.1:80",
            "[::1]:4010",
            "[::1]",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:4010",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":4010",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
