//! The API server answers 503 for a while, to all requests or to writes. The operator must not
//! flood it, and must recover.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{Operator, account, cluster, creates, platform, until_condition};

/// Long enough to detect exponential backoff, and for the lease to expire.
const OUTAGE: Duration = Duration::from_secs(20);
/// Time limit of the recovery.
const AFTERWARDS: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Nothing,
    Writes,
    Everything,
}

/// A reverse proxy between the operator and the API server.
struct Front {
    upstream: String,
    http: reqwest::Client,
    /// The requests to answer with 503, and their number so far.
    refused: Mutex<(Refused, usize)>,
}

impl Front {
    /// Starts the proxy, and returns an administrator's kubeconfig for it.
    async fn before(cluster: &ControlPlane) -> (Arc<Self>, PathBuf) {
        let text = fs::read_to_string(cluster.kubeconfig_path()).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let authority = config["clusters"][0]["cluster"]["certificate-authority"]
            .as_str()
            .unwrap();
        let authority = reqwest::Certificate::from_pem(&fs::read(authority).unwrap()).unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([authority])
            .build()
            .unwrap();
        let front = Arc::new(Self {
            upstream: cluster.url(),
            http,
            refused: Mutex::new((Refused::Nothing, 0)),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(pass).with_state(front.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let path = cluster.sandbox().folder().join("front.kubeconfig");
        fs::write(
            &path,
            text.replace(&cluster.url(), &format!("http://{address}")),
        )
        .unwrap();
        (front, path)
    }

    fn refuse(&self, what: Refused) {
        *self.refused.lock().unwrap() = (what, 0);
    }

    fn count(&self) -> usize {
        self.refused.lock().unwrap().1
    }

    fn refuses(&self, method: &Method) -> bool {
        let mut refused = self.refused.lock().unwrap();
        let refuses = match refused.0 {
            Refused::Nothing => false,
            Refused::Writes => method != Method::GET,
            Refused::Everything => true,
        };
        refused.1 += usize::from(refuses);
        refuses
    }
}

async fn pass(State(front): State<Arc<Front>>, request: Request) -> Response {
    if front.refuses(request.method()) {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "message": "for a while"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(status)).into_response();
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove("host");
    let url = format!("{}{}", front.upstream, parts.uri.path_and_query().unwrap());
    let body = to_bytes(body, 8 << 20).await.unwrap();
    let Ok(answer) = front
        .http
        .request(parts.method, url)
        .headers(parts.headers)
        .body(body)
        .send()
        .await
    else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove("transfer-encoding");
    let pieces = stream::unfold(answer, |mut answer| async move {
        let piece = answer.chunk().await.transpose()?;
        Some((piece, answer))
    });
    (status, headers, Body::from_stream(pieces)).into_response()
}

async fn replica(cluster: &ControlPlane, name: &str) {
    let manifest = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec: {{accountRef: {{name: prod}}, projectID: aged-wind-123456, branchID: br-main-42, type: ReadOnly}}
"
    );
    cluster.apply(&manifest).await.unwrap();
}

fn start(kubeconfig: &Path, cluster: &ControlPlane) -> Operator {
    Operator::start_as(
        kubeconfig,
        cluster,
        "operator",
        &["--leader-elect", "--log", "info,dbplane=debug"],
    )
}

#[tokio::test]
async fn reconciling_resumes_within_seconds_after_an_outage_of_the_api_server() {
    let (cluster, platform) = (cluster().await, platform().await);
    let (front, kubeconfig) = Front::before(&cluster).await;
    let operator = start(&kubeconfig, &cluster);
    operator.until_ready().await;
    let more = "  organizationID: org-cool-darkness-1\n  pollInterval: 5s\n";
    account(&cluster, "default", "prod", &platform.base_url(), more).await;
    until_condition(&cluster, "account/prod", "Ready").await;
    for (made, (name, refused)) in [("one", Refused::Writes), ("two", Refused::Everything)]
        .into_iter()
        .enumerate()
    {
        front.refuse(refused);
        replica(&cluster, name).await;
        wait_until("a request to be refused", PATIENCE, async || {
            front.count() > 0
        })
        .await
        .unwrap();
        tokio::time::sleep(OUTAGE).await;
        assert_eq!(
            creates(&platform),
            made,
            "what cannot be recorded is not made"
        );
        let most = 2 * usize::try_from(OUTAGE.as_secs()).unwrap() + 30;
        let count = front.count();
        front.refuse(Refused::Nothing);
        assert!(count <= most, "{count} requests were refused in {OUTAGE:?}");
        let back = Instant::now();
        wait_until("the create", PATIENCE, async || creates(&platform) > made)
            .await
            .unwrap();
        assert!(
            back.elapsed() <= AFTERWARDS,
            "{refused:?}: the create came after {:?}",
            back.elapsed()
        );
        let ready = format!("compute/{name}");
        until_condition(&cluster, &ready, "Ready").await;
    }
}
