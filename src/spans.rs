//! The spans of traces: a pass, a request to the platform, a wait for the budget, a read of a list.
//!
//! They have their own target. The trace exporter selects them by it, and log lines leave them out.
//! No spans are created while traces are disabled.

use std::pin::pin;
use std::task::Poll;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span, info_span, span_enabled};

/// The target of all spans here, and only of these.
pub const TARGET: &str = "dbplane::trace";

/// A pass over an object of `kind`.
pub fn pass(kind: &str, meta: &ObjectMeta) -> Span {
    info_span!(
        target: TARGET,
        "reconcile",
        "k8s.object.kind" = kind,
        "k8s.object.name" = meta.name,
        "k8s.object.uid" = meta.uid,
        "k8s.namespace.name" = meta.namespace,
        "dbplane.generation" = meta.generation,
        "dbplane.next" = Empty,
        "dbplane.reason" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    )
}

/// Records the step that the pass performs or attempts.
pub fn step(step: &impl std::fmt::Debug) {
    Context::map_current(|context| {
        let span = context.span();
        if span.is_recording() {
            span.set_attribute(KeyValue::new("dbplane.step", variant(step)));
        }
    });
}

/// Only the name of the variant, because the content of a step is long and partly private.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text
        .find(|sign: char| !sign.is_alphanumeric())
        .unwrap_or(text.len());
    text[..end].to_owned()
}

/// A request to the platform. The span shows its path without identifiers.
pub fn request(method: &str, segments: &[&str], host: Option<&str>, port: Option<u16>) -> Span {
    if !span_enabled!(target: TARGET, Level::INFO) {
        return Span::none();
    }
    let path = template(segments);
    info_span!(
        target: TARGET,
        "request",
        "otel.name" = format!("{method} {path}"),
        "otel.kind" = "client",
        "http.request.method" = method,
        "url.template" = path,
        "server.address" = host,
        // An unsigned number would become a text.
        "server.port" = port.map(i64::from),
        "http.response.status_code" = Empty,
        "dbplane.request_id" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    )
}

/// A path of the platform alternates between the name of a list and the ID of an entry.
fn template(segments: &[&str]) -> String {
    let mut path = String::new();
    for pair in segments.chunks(2) {
        path.push('/');
        path.push_str(pair[0]);
        if pair.len() == 2 {
            path.push_str(&format!("/{{{}_id}}", pair[0].trim_end_matches('s')));
        }
    }
    path
}

/// Marks a span as failed, with a reason from a closed set.
pub fn failed(span: &Span, reason: &str) {
    span.record("error.type", reason);
    span.record("otel.status_code", "ERROR");
}

/// Waits for an account's budget. A wait that ends at once gets no span.
pub async fn budget<T>(priority: &str, wait: impl Future<Output = T>) -> T {
    let mut wait = pin!(wait);
    if let Poll::Ready(admitted) = futures::poll!(wait.as_mut()) {
        return admitted;
    }
    let span = info_span!(target: TARGET, "wait for the budget", "dbplane.priority" = priority);
    wait.instrument(span).await
}

/// A read of a platform list, which belongs to no pass.
pub fn observe(list: &str, id: &str) -> Span {
    info_span!(target: TARGET, parent: None, "observe", "dbplane.list" = list, "dbplane.list.id" = id)
}

#[cfg(test)]
mod tests;
