//! The proxy in front of the API server and the platform.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use dbplane_simulator::line::{Lines, Peer};
use futures::{StreamExt, stream};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::gate::{Caller, Gate, Verdict, path};
use super::modes::{Mode, Side};
use super::objects::Objects;
use super::platform::Platform;
use crate::support::{Error, Result};

const LARGEST_BODY: usize = 8 << 20;
/// Time for the first half of a body to arrive before the connection is closed.
const BEFORE_THE_CUT: Duration = Duration::from_millis(20);
/// Headers that concern a single connection.
const HOP_BY_HOP: [HeaderName; 4] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::HOST,
];

/// A listener of the proxy. It closes when dropped.
#[derive(Debug)]
pub struct Door {
    pub address: SocketAddr,
    served: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.served.abort();
    }
}

pub struct Behind {
    /// The number of the only process that uses this door.
    pub process: usize,
    pub side: Side,
    /// The target of the requests, without a path.
    pub upstream: String,
    pub http: reqwest::Client,
    pub gate: Arc<Gate>,
    pub platform: Arc<Platform>,
    /// The objects of the point's namespace.
    pub objects: Objects,
    /// The only ClusterAccount visible to the operator, which must not see those of other points.
    pub cluster_account: String,
}

/// Opens a door on a free loopback port.
pub async fn open(behind: Behind) -> Result<Door> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .fallback(pass)
        .with_state(Arc::new(behind))
        .into_make_service_with_connect_info::<Peer>();
    let served = tokio::spawn(async move {
        // Ends with its task.
        let _ = axum::serve(Lines(listener), router).await;
    });
    Ok(Door { address, served })
}

async fn pass(
    State(behind): State<Arc<Behind>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        // A server would not act on a partial request of a process that ended.
        return cut(&peer);
    };
    let target = parts
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (process, side, method) = (behind.process, behind.side, parts.method.as_str());
    let caller = Caller {
        process,
        side,
        method,
        target: &target,
        body: &body,
    };
    let (place, verdict) = behind.gate.arrives(&caller);
    let call = Call {
        place,
        is_watch: caller.is_watch(),
        method: parts.method.clone(),
        target: behind.narrowed(&target),
        headers: parts.headers,
        body,
    };
    // After the gate, a request is carried out even if its sender goes away.
    let passed = tokio::spawn(async move { behind.decide(verdict, call, peer).await });
    passed
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

#[derive(Clone)]
struct Call {
    /// Its number at the gate.
    place: usize,
    is_watch: bool,
    method: axum::http::Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, self.headers, self.body).into_response()
    }
}

impl Behind {
    async fn decide(&self, verdict: Verdict, call: Call, peer: Peer) -> Response {
        let place = call.place;
        let mode = match verdict {
            Verdict::Pass if call.is_watch => {
                return self
                    .stream(call)
                    .await
                    .unwrap_or_else(|error| bad_gateway(&error));
            }
            Verdict::Pass => None,
            Verdict::Unavailable => return self.refusal(503),
            Verdict::Fail(mode) => Some(mode),
        };
        match mode {
            Some(Mode::KillBefore) => {
                self.gate.signal(Signal::SIGKILL);
                return cut(&peer);
            }
            Some(Mode::Instead(status)) => return self.refusal(status),
            Some(Mode::Page(status)) => return page(status),
            Some(Mode::Frozen) => self.gate.signal(Signal::SIGSTOP),
            Some(Mode::Repeated) => {
                return self
                    .twice(call)
                    .await
                    .unwrap_or_else(|error| bad_gateway(&error));
            }
            Some(rewrite @ (Mode::Replaced | Mode::Stripped)) => {
                if let Err(error) = self.objects.rewrite(rewrite == Mode::Replaced).await {
                    return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
                }
            }
            _ => {}
        }
        let order = mode.and_then(|mode| mode.order(call.method.as_str()));
        if let Some(Err(error)) = order.map(|order| self.platform.order(order)) {
            return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
        }
        let answer = match self.carry_out(call).await {
            Ok(answer) => answer,
            Err(error) => return bad_gateway(&error),
        };
        self.gate.answered(place, answer.status.as_u16());
        self.after(mode, answer, &peer)
    }

    /// Applies a fault to a request that was carried out.
    fn after(&self, mode: Option<Mode>, answer: Answer, peer: &Peer) -> Response {
        match mode {
            Some(Mode::KillAfter) => {
                self.gate.signal(Signal::SIGKILL);
                return cut(peer);
            }
            Some(Mode::Lost | Mode::ClockOff | Mode::OddEntry | Mode::WithoutZone) => {
                return cut(peer);
            }
            Some(Mode::Cut) => return halved(answer, peer),
            Some(Mode::After(status)) => return self.refusal(status),
            Some(Mode::Redirected) => return Redirect::to("/").into_response(),
            Some(Mode::Term | Mode::Rolled) => self.gate.signal(Signal::SIGTERM),
            Some(Mode::Outage) => self.gate.begin_outage(),
            Some(Mode::TermOutage) => {
                self.gate.begin_outage();
                self.gate.signal(Signal::SIGTERM);
            }
            None
            | Some(
                Mode::Nothing
                | Mode::KillBefore
                | Mode::Instead(_)
                | Mode::Page(_)
                | Mode::Frozen
                | Mode::Repeated
                | Mode::YoungKey
                | Mode::Replaced
                | Mode::Stripped,
            ) => {}
        }
        answer.into_response()
    }

    /// Carries the request out twice and returns the second answer.
    async fn twice(&self, call: Call) -> Result<Response, reqwest::Error> {
        let place = call.place;
        let first = self.carry_out(call.clone()).await?;
        let second = self.carry_out(call).await?;
        self.gate.answered(place, second.status.as_u16());
        if first.status.is_success() && second.status.is_success() {
            self.gate.saw_made_twice(place);
        }
        Ok(second.into_response())
    }

    async fn send(&self, call: Call) -> Result<reqwest::Response, reqwest::Error> {
        let url = format!("{}{}", self.upstream, call.target);
        let headers = without_hops(call.headers);
        self.http
            .request(call.method, url)
            .headers(headers)
            .body(call.body)
            .send()
            .await
    }

    async fn carry_out(&self, call: Call) -> Result<Answer, reqwest::Error> {
        let creates_key = self.side == Side::Platform
            && call.method == "POST"
            && path(&call.target).ends_with("/api_keys");
        let answer = self.send(call).await?;
        let (status, headers) = (answer.status(), without_hops(answer.headers().clone()));
        let body = answer.bytes().await?;
        if creates_key
            && let Ok(created) = serde_json::from_slice::<serde_json::Value>(&body)
            && let Some(token) = created["key"].as_str()
        {
            self.gate.saw_token(token.to_owned());
        }
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    async fn stream(&self, call: Call) -> Result<Response, reqwest::Error> {
        let answer = self.send(call).await?;
        let (status, headers) = (answer.status(), without_hops(answer.headers().clone()));
        let pieces = stream::unfold(answer, |mut answer| async move {
            let piece = answer.chunk().await.map_err(io::Error::other).transpose()?;
            Some((piece, answer))
        });
        Ok((status, headers, Body::from_stream(pieces)).into_response())
    }

    /// All points share one API server, and ClusterAccounts are cluster-scoped.
    fn narrowed(&self, target: &str) -> String {
        match target.split_once('?') {
            Some((path, query)) if path.ends_with("/clusteraccounts") => {
                format!(
                    "{path}?{query}&fieldSelector=metadata.name%3D{}",
                    self.cluster_account
                )
            }
            _ => target.to_owned(),
        }
    }

    /// The server's answer to a request that it does not carry out.
    fn refusal(&self, status: u16) -> Response {
        let message = format!("{status}, for a try");
        let reason = match status {
            409 => "Conflict",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            _ => "InternalError",
        };
        let body = match self.side {
            Side::ApiServer => json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "reason": reason, "code": status, "message": message,
            }),
            Side::Platform => json!({"code": "", "message": message}),
        };
        let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (code, axum::Json(body)).into_response();
        if matches!(status, 429 | 503) {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(1));
        }
        response
    }
}

fn page(status: u16) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    (code, Html("<html>Log in</html>")).into_response()
}

fn without_hops(mut headers: HeaderMap) -> HeaderMap {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    headers
}

/// Closes the connection; the returned response is never written.
fn cut(peer: &Peer) -> Response {
    peer.cut();
    StatusCode::OK.into_response()
}

/// An answer with the full length in its header, but only half of the body.
fn halved(answer: Answer, peer: &Peer) -> Response {
    let Answer {
        status,
        mut headers,
        body,
    } = answer;
    if body.is_empty() {
        return cut(peer);
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    let half = body.slice(..body.len() / 2);
    let end = async {
        tokio::time::sleep(BEFORE_THE_CUT).await;
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "cut, for a try",
        ))
    };
    let pieces = stream::iter([Ok(half)]).chain(stream::once(end));
    (status, headers, Body::from_stream(pieces)).into_response()
}

fn bad_gateway(error: &reqwest::Error) -> Response {
    (StatusCode::BAD_GATEWAY, error.to_string()).into_response()
}

/// A client for servers on this machine.
pub fn client(authority: Option<&[u8]>) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    if let Some(pem) = authority {
        let certificate = reqwest::Certificate::from_pem(pem)
            .map_err(Error::while_doing("reading a certificate"))?;
        builder = builder.tls_certs_only([certificate]);
    }
    builder
        .build()
        .map_err(Error::while_doing("building an HTTP client"))
}
