use std::future::pending;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;

/// An API server that has one Lease, and never answers to the first renewal, which it carries out.
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

    /// Stores the next version; `None` where the request is about another one.
    fn write(&self, mut lease: Value) -> Option<Value> {
        let mut stored = self.lease.lock().unwrap();
        let version = stored["metadata"]["resourceVersion"].clone();
        if version != lease["metadata"]["resourceVersion"] {
            return None;
        }
        let next = version.as_str().map_or(1, |version| version.parse::<u64>().unwrap() + 1);
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
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
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
    let client = Client::new(Router::new().fallback(answer).with_state(server.clone()), "default");
    let lead = lead(&client, "one", &CancellationToken::new()).await.unwrap();
    assert!(server.holder().as_str().unwrap().starts_with("one_"));
    server.renewed.notified().await;
    lead.release().await;
    assert_eq!((server.holder(), *server.renewals.lock().unwrap()), (Value::Null, 1));
}
