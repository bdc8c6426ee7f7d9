use std::sync::{Arc, Mutex};

use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::*;

/// The names of the created spans.
#[derive(Clone, Debug, Default)]
struct MadeSpans(Arc<Mutex<Vec<&'static str>>>);

impl<S: Subscriber> Layer<S> for MadeSpans {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: layer::Context<'_, S>) {
        self.0.lock().unwrap().push(attributes.metadata().name());
    }
}

#[tokio::test]
async fn a_wait_for_the_budget_is_shown_unless_it_is_over_at_once() {
    let made = MadeSpans::default();
    let _traced = tracing_subscriber::registry()
        .with(made.clone())
        .set_default();
    assert_eq!(budget("change", async { 1 }).await, 1);
    assert!(made.0.lock().unwrap().is_empty());
    budget("change", tokio::task::yield_now()).await;
    assert_eq!(*made.0.lock().unwrap(), ["wait for the budget"]);
}

#[test]
fn a_path_is_told_without_its_identifiers() {
    for (segments, expected) in [
        (&["projects"][..], "/projects"),
        (
            &["projects", "p", "endpoints"],
            "/projects/{project_id}/endpoints",
        ),
        (
            &["projects", "p", "endpoints", "ep-1", "restart"],
            "/projects/{project_id}/endpoints/{endpoint_id}/restart",
        ),
        (
            &["organizations", "o", "api_keys", "7"],
            "/organizations/{organization_id}/api_keys/{api_key_id}",
        ),
    ] {
        assert_eq!(template(segments), expected);
    }
}

#[test]
fn a_step_is_named_without_what_it_holds() {
    #[derive(Debug)]
    #[allow(dead_code, reason = "its text is what is looked at")]
    enum AnyStep {
        Plain,
        Tuple(&'static str),
        Fields { of: &'static str },
    }
    assert_eq!(variant(&AnyStep::Plain), "Plain");
    assert_eq!(variant(&AnyStep::Tuple("a")), "Tuple");
    assert_eq!(variant(&AnyStep::Fields { of: "a" }), "Fields");
}
