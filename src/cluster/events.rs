//! Events: what happened to a resource, for people.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{self, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tracing::{debug, warn};

use super::digest::digest;
use super::explained;
use crate::decide::names::FIELD_MANAGER;
use crate::text::line;

/// The API server accepts 1024 bytes.
const LONGEST_NOTE: usize = 1000;

/// Publishes events. One that cannot be published is logged and dropped: nothing depends on it.
#[derive(Clone)]
pub struct Events {
    client: Client,
    reporter: Reporter,
    /// Merges an event with the same one of the last minutes. It looks at all of these for each.
    recorder: Recorder,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub warning: bool,
    /// It cannot come twice: its text names what there was but one of.
    pub once: bool,
    /// CamelCase, from a closed set.
    pub reason: String,
    pub text: String,
}

impl Event {
    pub fn normal(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self { warning: false, once: false, reason: reason.into(), text: text.into() }
    }

    pub fn warning(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self { warning: true, once: false, reason: reason.into(), text: text.into() }
    }

    /// Something that happens once, such as a creation.
    pub fn once(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self { once: true, ..Self::normal(reason, text) }
    }
}

impl Events {
    pub fn new(client: Client, instance: &str) -> Self {
        let reporter = Reporter { controller: FIELD_MANAGER.into(), instance: Some(instance.into()) };
        Self { recorder: Recorder::new(client.clone(), reporter.clone()), client, reporter }
    }

    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, event: &Event) {
        let recorded = events::Event {
            type_: if event.warning { EventType::Warning } else { EventType::Normal },
            reason: event.reason.clone(),
            note: Some(line(&event.text, LONGEST_NOTE).into_owned()),
            // The recorder merges events with the same action and keeps the first note, so the action has to depend on the note.
            action: format!("{}-{}", event.reason, digest(&event.text.clone().into())),
            secondary: None,
        };
        // With its version, the same event of the same object would be another one after each write.
        let reference = ObjectReference { resource_version: None, ..object.object_ref(&()) };
        let recorder = match event.once {
            true => Recorder::new(self.client.clone(), self.reporter.clone()),
            false => self.recorder.clone(),
        };
        match recorder.publish(&recorded, &reference).await {
            Ok(()) => {}
            // The API server accepts no event there, and nobody would read it.
            Err(error) if in_terminating_namespace(&error) => {
                debug!(error = explained(&error), event = event.reason, "an event could not be published");
            }
            Err(error) => warn!(error = explained(&error), event = event.reason, "an event could not be published"),
        }
    }
}

/// The API server accepts no new object in a namespace that is being deleted.
fn in_terminating_namespace(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(cause: &str) -> kube::Error {
        let status = serde_json::json!({
            "status": "Failure",
            "message": "events is forbidden",
            "reason": "Forbidden",
            "code": 403,
            "details": {"kind": "events", "causes": [{"reason": cause, "message": "why", "field": "metadata.namespace"}]},
        });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn a_namespace_that_is_being_deleted_differs_from_missing_rights() {
        assert!(in_terminating_namespace(&refused("NamespaceTerminating")));
        assert!(!in_terminating_namespace(&refused("Other")));
    }
}
