//! A trace collector for tests. It accepts the OpenTelemetry protocol over HTTP.

#![allow(dead_code, reason = "every test target uses a part of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use tokio::net::TcpListener;

/// A span as it arrived.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    /// Empty for root spans.
    pub parent: String,
    pub name: String,
    pub client: bool,
    pub failed: bool,
    pub attributes: BTreeMap<String, String>,
    /// The attributes of its process.
    pub resource: BTreeMap<String, String>,
}

impl Span {
    pub fn get(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).map_or("", String::as_str)
    }
}

#[derive(Debug, Default)]
struct Received {
    requests: Vec<ExportTraceServiceRequest>,
    headers: Vec<String>,
    /// Number of refused requests.
    refused: usize,
    refuses: bool,
}

pub struct Collector {
    pub url: String,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Received>>::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(received.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { url, received }
    }

    /// Switches between refusing all requests, like an overloaded collector, and accepting them.
    pub fn refuse(&self, refuses: bool) {
        self.received.lock().unwrap().refuses = refuses;
    }

    pub fn refused(&self) -> usize {
        self.received.lock().unwrap().refused
    }

    pub fn spans(&self) -> Vec<Span> {
        self.received
            .lock()
            .unwrap()
            .requests
            .iter()
            .flat_map(spans)
            .collect()
    }

    pub fn headers(&self) -> Vec<String> {
        self.received.lock().unwrap().headers.clone()
    }

    /// All received requests as text.
    pub fn text(&self) -> String {
        format!("{:?}", self.received.lock().unwrap().requests)
    }
}

async fn take(
    State(received): State<Arc<Mutex<Received>>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    let mut received = received.lock().unwrap();
    received.headers.push(format!("{headers:?}"));
    if received.refuses {
        received.refused += 1;
        return (StatusCode::SERVICE_UNAVAILABLE, Vec::new());
    }
    received
        .requests
        .push(ExportTraceServiceRequest::decode(body).unwrap());
    (
        StatusCode::OK,
        ExportTraceServiceResponse::default().encode_to_vec(),
    )
}

fn spans(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let mut all = Vec::new();
    for of_process in &request.resource_spans {
        let resource = of_process
            .resource
            .as_ref()
            .map(|resource| texts(&resource.attributes))
            .unwrap_or_default();
        for span in of_process.scope_spans.iter().flat_map(|scope| &scope.spans) {
            all.push(Span {
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name.clone(),
                client: span.kind == 3,
                failed: span.status.as_ref().is_some_and(|status| status.code == 2),
                attributes: texts(&span.attributes),
                resource: resource.clone(),
            });
        }
    }
    all
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        // Marks numbers, to distinguish them from text.
        Value::IntValue(number) => format!("#{number}"),
        other => format!("{other:?}"),
    };
    let value = |attribute: &KeyValue| attribute.value.as_ref()?.value.as_ref().map(text);
    attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), value(attribute).unwrap_or_default()))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
