//! The spans of traces: a pass, a request to the platform, a wait for the budget, a reading of a list.
//!
//! They have a target of their own. By it the exporter of traces takes them, and log lines leave them out. Where traces are off none of
//! them is made.

use std::pin::pin;
use std::task::Poll;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span, info_span, span_enabled};

/// The target of every span here, and of nothing else.
pub const TARGET: &str = "dbplane::trace";

/// One pass over an object of `kind`.
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

/// The step that the pass performs, or tried to.
pub fn step(step: &impl std::fmt::Debug) {
    Context::map_current(|context| {
        let span = context.span();
        if span.is_recording() {
            span.set_attribute(KeyValue::new("dbplane.step", variant(step)));
        }
    });
}

/// The name of the variant alone: what a step holds is long, and partly people's own.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|sign: char| !sign.is_alphanumeric()).unwrap_or(text.len());
    text[..end].to_owned()
}

/// One request to the platform. Its path is told without the identifiers in it.
pub fn request(method: &str, segments: &[&str], (host, port): (Option<&str>, Option<u16>)) -> Span {
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

/// A path of the platform names a list and one of its entries in turn.
fn template(segments: &[&str]) -> String {
    let place =
        |(index, segment): (usize, &&str)| match (index % 2, index.checked_sub(1).map(|before| segments[before])) {
            (0, _) | (_, None) => format!("/{segment}"),
            (_, Some(list)) => format!("/{{{}_id}}", list.trim_end_matches('s')),
        };
    segments.iter().enumerate().map(place).collect()
}

/// What a span shows came to nothing, for a reason from a closed set.
pub fn failed(span: &Span, reason: &str) {
    span.record("error.type", reason);
    span.record("otel.status_code", "ERROR");
}

/// Waits for room in an account's budget. A wait that is over at once is not shown.
pub async fn budget<T>(priority: &str, wait: impl Future<Output = T>) -> T {
    let mut wait = pin!(wait);
    if let Poll::Ready(admitted) = futures::poll!(wait.as_mut()) {
        return admitted;
    }
    let span = info_span!(target: TARGET, "wait for the budget", "dbplane.priority" = priority);
    wait.instrument(span).await
}

/// A reading of a list of the platform that belongs to no pass.
pub fn observe(list: &str, id: &str) -> Span {
    info_span!(target: TARGET, parent: None, "observe", "dbplane.list" = list, "dbplane.list.id" = id)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Subscriber;
    use tracing::span::{Attributes, Id};
    use tracing_subscriber::layer::{self, Layer, SubscriberExt};
    use tracing_subscriber::util::SubscriberInitExt;

    use super::*;

    /// The names of the spans that were made.
    #[derive(Clone, Debug, Default)]
    struct Made(Arc<Mutex<Vec<&'static str>>>);

    impl<S: Subscriber> Layer<S> for Made {
        fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: layer::Context<'_, S>) {
            self.0.lock().unwrap().push(attributes.metadata().name());
        }
    }

    #[tokio::test]
    async fn a_wait_for_the_budget_is_shown_unless_it_is_over_at_once() {
        let made = Made::default();
        let _traced = tracing_subscriber::registry().with(made.clone()).set_default();
        assert_eq!(budget("change", async { 1 }).await, 1);
        assert!(made.0.lock().unwrap().is_empty());
        budget("change", tokio::task::yield_now()).await;
        assert_eq!(*made.0.lock().unwrap(), ["wait for the budget"]);
    }

    #[test]
    fn a_path_is_told_without_its_identifiers() {
        for (segments, expected) in [
            (&["projects"][..], "/projects"),
            (&["projects", "p", "endpoints"], "/projects/{project_id}/endpoints"),
            (
                &["projects", "p", "endpoints", "ep-1", "restart"],
                "/projects/{project_id}/endpoints/{endpoint_id}/restart",
            ),
            (&["organizations", "o", "api_keys", "7"], "/organizations/{organization_id}/api_keys/{api_key_id}"),
        ] {
            assert_eq!(template(segments), expected);
        }
    }

    #[test]
    fn a_step_is_named_without_what_it_holds() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "its text is what is looked at")]
        enum Step {
            Plain,
            Tuple(&'static str),
            Fields { of: &'static str },
        }
        assert_eq!(variant(&Step::Plain), "Plain");
        assert_eq!(variant(&Step::Tuple("a")), "Tuple");
        assert_eq!(variant(&Step::Fields { of: "a" }), "Fields");
    }
}
