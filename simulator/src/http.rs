//! The API over HTTP: converts axum's requests to the world's, and applies faults of the
//! connection.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request::Parts};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use jiff::SignedDuration;
use jiff::fmt::rfc2822::DateTimePrinter;

use super::answers::respond;
use super::clock::Clock;
use super::faults::{Arrival, Fault, FaultKind, RetryAfter};
use super::line::Peer;
use super::log::{Entry, known_query};
use super::shell::Shell;
use super::world::message::{self, Method};
use super::world::secret::Token;

pub const BASE_PATH: &str = "/api/v2";

const LARGEST_BODY: usize = 1 << 20;
const REQUEST_ID: &str = "x-request-id";
/// Long enough to flush the first half of a body before the connection closes.
const BEFORE_THE_CUT: Duration = Duration::from_millis(20);

/// Handles every request outside the console.
pub async fn serve_api(
    State(shell): State<Arc<Shell>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let path = below_base(parts.uri.path());
    let (n, key_age) = arrive(&shell, &parts, path).await;
    let _worked_on = WorkedOn {
        shell: shell.clone(),
        n,
    };
    let Some(path) = path.map(str::to_owned) else {
        let body = br#"{"message":"the API is served below /api/v2"}"#;
        return answered(&shell, n, json(StatusCode::NOT_FOUND, body.to_vec()));
    };
    let fault = shell.faults().meet(Arrival {
        method: parts.method.as_str(),
        path: &path,
        key_age,
    });
    if let Some(fault) = &fault
        && fault.kind != FaultKind::LateWork
    {
        tokio::time::sleep(Duration::from_millis(fault.delay_ms)).await;
    }
    let met = Met {
        parts,
        path,
        body,
        fault,
    };
    match answer_to(&shell, met, &peer).await {
        Some(response) => answered(&shell, n, response),
        None => cut(&peer),
    }
}

/// A request and the fault that hits it.
struct Met {
    parts: Parts,
    path: String,
    body: Body,
    fault: Option<Fault>,
}

/// `None` if the fault closes the connection instead.
async fn answer_to(shell: &Arc<Shell>, met: Met, peer: &Peer) -> Option<Response> {
    let Met {
        parts,
        path,
        body,
        fault,
    } = met;
    if let Some(fault) = &fault {
        match fault.kind {
            FaultKind::Drop => return None,
            FaultKind::Status | FaultKind::LoginPage | FaultKind::GatewayPage => {
                return Some(ordered(fault, &parts.uri));
            }
            _ => {}
        }
    }
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        let body = br#"{"message":"the body is too large"}"#;
        return Some(json(StatusCode::PAYLOAD_TOO_LARGE, body.to_vec()));
    };
    let message = message_of(&parts, path, body, peer);
    let Some(fault) = fault else {
        return Some(work(shell, message, None).await);
    };
    if fault.kind == FaultKind::LateWork {
        work_late(shell, message, Duration::from_millis(fault.delay_ms));
        return None;
    }
    let answer = work(shell, message, Some(&fault)).await;
    match fault.kind {
        FaultKind::LoseAnswer => None,
        FaultKind::StatusAfterWork | FaultKind::LoginPageAfterWork | FaultKind::Redirect => {
            Some(ordered(&fault, &parts.uri))
        }
        FaultKind::CutBody => Some(halved(answer).await),
        _ => Some(answer),
    }
}

/// A request in progress. If its client disconnects, axum drops the future, and this marks the
/// request as over.
struct WorkedOn {
    shell: Arc<Shell>,
    n: u64,
}

impl Drop for WorkedOn {
    fn drop(&mut self) {
        self.shell.log().over(self.n);
    }
}

fn below_base(path: &str) -> Option<&str> {
    path.strip_prefix(BASE_PATH)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Logs the request without its secrets. Returns its number in the log and the age of its key.
async fn arrive(
    shell: &Arc<Shell>,
    parts: &Parts,
    path: Option<&str>,
) -> (u64, Option<SignedDuration>) {
    let authorization = authorization(&parts.headers);
    let shown = path.unwrap_or(parts.uri.path()).to_owned();
    let logged = shell.perform(move |world, now| {
        let key_id = authorization
            .as_ref()
            .and_then(|header| world.key_behind(header));
        let key_age = authorization
            .as_ref()
            .and_then(|header| world.key_age(header, now));
        (now.to_string(), world.redact_path(&shown), key_id, key_age)
    });
    let (at, shown, key_id, key_age) = logged.await.unwrap_or_default();
    let n = shell.log().arrived(Entry {
        n: 0,
        at,
        method: parts.method.to_string(),
        path: shown,
        query: known_query(parts.uri.query().unwrap_or_default()),
        status: None,
        request_id: None,
        over: false,
        key_id,
        api: path.is_some(),
    });
    (n, key_age)
}

fn answered(shell: &Shell, n: u64, response: Response) -> Response {
    let id = response
        .headers()
        .get(REQUEST_ID)
        .and_then(|id| id.to_str().ok());
    shell.log().answered(n, response.status().as_u16(), id);
    response
}

fn message_of(parts: &Parts, path: String, body: Bytes, peer: &Peer) -> message::Request {
    let text = |name: &str| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    message::Request {
        method: Method::parse(parts.method.as_str()),
        path,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        authorization: authorization(&parts.headers),
        request_id: text(REQUEST_ID).filter(|id| !id.is_empty()),
        body: body.to_vec(),
        from_addr: peer.address.ip().to_string(),
        received_at: Clock::real(),
        clock_off: SignedDuration::ZERO,
    }
}

/// The Authorization header, if there is exactly one.
fn authorization(headers: &HeaderMap) -> Option<Token> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (values.next()?, values.next());
    match second {
        Some(_) => None,
        None => first.to_str().ok().map(Token::new),
    }
}

async fn work(shell: &Arc<Shell>, request: message::Request, fault: Option<&Fault>) -> Response {
    let met = fault.cloned();
    match shell
        .perform(move |world, now| respond(world, &request, now, met.as_ref()))
        .await
    {
        Ok(answer) => match fault.filter(|fault| fault.kind == FaultKind::ClockOff) {
            Some(fault) => dated(
                http_response(answer),
                SignedDuration::from_secs(fault.seconds),
            ),
            None => http_response(answer),
        },
        Err(error) => {
            tracing::error!(%error, "the state could not be saved");
            json(
                StatusCode::INTERNAL_SERVER_ERROR,
                br#"{"message":"the state could not be saved"}"#.to_vec(),
            )
        }
    }
}

/// Runs in the background. It counts against the rate limit when it runs, as a request delayed in
/// the network would.
fn work_late(shell: &Arc<Shell>, request: message::Request, delay: Duration) {
    let shell = Arc::clone(shell);
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        work(
            &shell,
            message::Request {
                received_at: Clock::real(),
                ..request
            },
            None,
        )
        .await;
    });
}

fn http_response(answer: message::Response) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = if answer.body.is_empty() {
        status.into_response()
    } else {
        json(status, answer.body)
    };
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&answer.request_id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The connection is closed, so the returned response is never sent.
fn cut(peer: &Peer) -> Response {
    peer.cut();
    StatusCode::OK.into_response()
}

/// The answer that a fault prescribes for a request to this URL.
fn ordered(fault: &Fault, uri: &Uri) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match &fault.body {
        None => status.into_response(),
        Some(serde_json::Value::String(text)) => {
            let kind = if text.trim_start().starts_with('<') {
                "text/html"
            } else {
                "text/plain"
            };
            (status, [(header::CONTENT_TYPE, kind)], text.clone()).into_response()
        }
        Some(value) => json(status, value.to_string().into_bytes()),
    };
    let retry_after = fault.retry_after.as_ref().and_then(|after| match after {
        RetryAfter::Seconds(seconds) => Some(HeaderValue::from(*seconds)),
        RetryAfter::Date(date) => HeaderValue::from_str(date).ok(),
    });
    if let Some(value) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    if fault.kind == FaultKind::Redirect {
        let own = uri.path_and_query().map_or("/", |own| own.as_str());
        if let Ok(value) = HeaderValue::from_str(fault.location.as_deref().unwrap_or(own)) {
            response.headers_mut().insert(header::LOCATION, value);
        }
    }
    response
}

/// Sets the Date header of a server whose clock is off by `clock_off`.
fn dated(mut answer: Response, clock_off: SignedDuration) -> Response {
    let date = Clock::real().checked_add(clock_off).ok();
    let date = date.and_then(|date| {
        DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&date)
            .ok()
    });
    if let Some(value) = date.and_then(|date| HeaderValue::from_str(&date).ok()) {
        answer.headers_mut().insert(header::DATE, value);
    }
    answer
}

/// Announces the full length but sends only half of the body.
async fn halved(answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    let whole = to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let half = whole.slice(..whole.len() / 2);
    let end = async {
        tokio::time::sleep(BEFORE_THE_CUT).await;
        Err(std::io::Error::new(
            std::io::ErrorKind::ConnectionAborted,
            "cut by an ordered fault",
        ))
    };
    let pieces = futures::stream::iter([Ok(half)]).chain(futures::stream::once(end));
    Response::from_parts(parts, Body::from_stream(pieces))
}
