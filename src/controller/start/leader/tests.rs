use std::future::pending;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::controller::Aside;
use crate::leadership::lease::RENEW_DEADLINE;
use crate::telemetry::Readiness;
use crate::telemetry::health::{Pulse, bind, serve_health};

/// An API server with one Lease. It carries out renewals, but never answers them.
#[derive(Default)]
struct Server {
    lease: Mutex<Value>,
    renewals: Mutex<usize>,
    renewed: Notify,
}

impl Server {
    fn refusal(code: StatusCode, reason: &str) -> Response {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code.as_u16(), "reason": reason, "message": reason,
        });
        (code, Json(status)).into_response()
    }

    /// Stores the next version; `None` if the request is based on another version than the stored
    /// one.
    fn write(&self, mut lease: Value) -> Option<Value> {
        let mut stored = self.lease.lock().unwrap();
        let version = stored["metadata"]["resourceVersion"].clone();
        if version != lease["metadata"]["resourceVersion"] {
            return None;
        }
        let next = version
            .as_str()
            .map_or(1, |version| version.parse::<u64>().unwrap() + 1);
        lease["metadata"]["resourceVersion"] = json!(next.to_string());
        *stored = lease;
        Some(stored.clone())
    }

    fn holder(&self) -> Value {
        self.lease.lock().unwrap()["spec"]["holderIdentity"].clone()
    }
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    if request.method() == Method::GET {
        let lease = server.lease.lock().unwrap().clone();
        return if lease.is_null() {
            Server::refusal(StatusCode::NOT_FOUND, "NotFound")
        } else {
            Json(lease).into_response()
        };
    }
    let renews = request.method() == Method::PUT;
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let Some(written) = server.write(serde_json::from_slice(&body).unwrap()) else {
        return Server::refusal(StatusCode::CONFLICT, "Conflict");
    };
    if renews && !written["spec"]["holderIdentity"].is_null() {
        *server.renewals.lock().unwrap() += 1;
        server.renewed.notify_one();
        return pending().await;
    }
    Json(written).into_response()
}

#[tokio::test]
async fn a_lease_is_given_up_although_its_renewal_is_on_its_way() {
    let server = Arc::new(Server::default());
    let client = Client::new(
        Router::new().fallback(answer).with_state(server.clone()),
        "default",
    );
    let election = Election {
        client,
        runtime: Handle::current(),
        leadership: Leadership::elected(),
    };
    let lead = lead(&election, "one", &CancellationToken::new())
        .await
        .unwrap();
    assert!(server.holder().as_str().unwrap().starts_with("one_"));
    server.renewed.notified().await;
    lead.release().await;
    assert_eq!(
        (server.holder(), *server.renewals.lock().unwrap()),
        (Value::Null, 1)
    );
}

/// An API server that carries out every write of the Lease, and signals each.
async fn accept(
    State((server, writes)): State<(Arc<Server>, Sender<()>)>,
    request: Request,
) -> Response {
    if request.method() == Method::GET {
        return Server::refusal(StatusCode::NOT_FOUND, "NotFound");
    }
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let written = server
        .write(serde_json::from_slice(&body).unwrap())
        .unwrap();
    writes.send(()).unwrap();
    Json(written).into_response()
}

/// An API server that refuses all requests while it is `away`.
async fn refuse(
    State((server, away)): State<(Arc<Server>, Arc<AtomicBool>)>,
    request: Request,
) -> Response {
    if away.load(Ordering::SeqCst) {
        return Server::refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
    }
    if request.method() == Method::GET {
        return Json(server.lease.lock().unwrap().clone()).into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    match server.write(serde_json::from_slice(&body).unwrap()) {
        Some(written) => Json(written).into_response(),
        None => Server::refusal(StatusCode::CONFLICT, "Conflict"),
    }
}

async fn until(holds: impl Fn() -> bool) {
    let begun = clock::since_boot();
    while !holds() {
        assert!(clock::since_boot() - begun < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Another process takes the second lease meanwhile, and releases it again.
#[tokio::test]
async fn a_leader_continues_after_an_outage_if_no_other_one_has_led() {
    let leads = |taken: bool| async move {
        let released = json!({"metadata": {"resourceVersion": "1"}, "spec": {}});
        let server = Arc::new(Server {
            lease: Mutex::new(released),
            ..Server::default()
        });
        let away = Arc::new(AtomicBool::new(false));
        let router = Router::new()
            .fallback(refuse)
            .with_state((server.clone(), away.clone()));
        let leadership = Leadership::elected();
        let client = Client::new(router, "default");
        let election = Election {
            client,
            runtime: Handle::current(),
            leadership: leadership.clone(),
        };
        let lead = lead(&election, "one", &CancellationToken::new())
            .await
            .unwrap();
        away.store(true, Ordering::SeqCst);
        until(|| leadership.is_suspended()).await;
        assert!(!lead.lost.is_cancelled());
        if taken {
            let mut lease = server.lease.lock().unwrap().clone();
            lease["spec"]["holderIdentity"] = Value::Null;
            server.write(lease).unwrap();
        }
        away.store(false, Ordering::SeqCst);
        until(|| leadership.holds() || lead.lost.is_cancelled()).await;
        (
            leadership.holds(),
            lead.lost.is_cancelled(),
            leadership.is_suspended(),
        )
    };
    let writes_nothing = true;
    assert_eq!(
        tokio::join!(leads(false), leads(true)),
        (
            (true, false, !writes_nothing),
            (false, true, writes_nothing)
        )
    );
}

/// Requests a page as the kubelet does, and blocks this thread.
fn probe(address: SocketAddr, page: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(connection, "GET {page} HTTP/1.0\r\nHost: probe\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

const PATIENCE: Duration = Duration::from_secs(30);

/// This test's runtime has one thread, which is blocked from the first renewal to the last, as by a
/// pass that computes.
#[tokio::test]
async fn the_lease_is_renewed_and_probes_are_answered_while_no_pass_goes_on() {
    let aside = Aside::start().unwrap();
    let (writes, written): (_, Receiver<()>) = channel();
    let server = Arc::new(Server::default());
    let election = {
        let _entered = aside.runtime().enter();
        let router = Router::new()
            .fallback(accept)
            .with_state((server.clone(), writes));
        let leadership = Leadership::elected();
        Election {
            client: Client::new(router, "default"),
            runtime: aside.runtime().clone(),
            leadership,
        }
    };
    let listener = aside
        .runtime()
        .spawn(bind("127.0.0.1:0".parse().unwrap()))
        .await
        .unwrap()
        .unwrap();
    let address = listener.local_addr().unwrap();
    let probed = serve_health(
        listener,
        Readiness::default(),
        Pulse::default(),
        CancellationToken::new(),
    );
    aside.runtime().spawn(probed);
    let lead = lead(&election, "one", &CancellationToken::new())
        .await
        .unwrap();
    written.recv_timeout(PATIENCE).unwrap();
    let begun = clock::since_boot();
    while clock::since_boot() - begun <= RENEW_DEADLINE {
        written.recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            ["/livez", "/readyz"].map(|page| probe(address, page)),
            ["HTTP/1.0 200 OK"; 2]
        );
    }
    assert!(lead.leadership.holds() && !lead.lost.is_cancelled());
    lead.release().await;
    assert_eq!(server.holder(), Value::Null);
}
