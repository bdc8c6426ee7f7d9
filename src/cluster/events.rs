//! Events: what happened to a resource, for users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event as Stored, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use tracing::{debug, warn};

use super::{explained, is_unavailable};
use crate::clock;
use crate::decide::names::{self, FIELD_MANAGER};
use crate::text::line;

/// The API server's limit is 1024 bytes.
const LONGEST_NOTE: usize = 1000;
/// The API server's limit for the action and for the reporter.
const LONGEST_REPORTER: usize = 128;
/// A repeated event within this time increases the count of the first one.
const MERGED_FOR: SignedDuration = SignedDuration::from_mins(6);
/// Attempts to publish an event while the API server is unavailable.
const TRIES: usize = 3;
/// The namespace for events of cluster-scoped objects.
const NO_NAMESPACE: &str = "default";

/// Publishes events. A failure is logged and the event dropped, because nothing depends on it.
#[derive(Clone)]
pub struct Events {
    client: Client,
    instance: String,
    /// The events of the last minutes.
    recent: Arc<Mutex<HashMap<Sort, Stored>>>,
}

/// Events with the same values are merged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sort {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    warning: bool,
    reason: String,
    /// A digest of the text.
    text: String,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub warning: bool,
    /// True if the event cannot repeat, because its text names something unique.
    pub once: bool,
    /// CamelCase, from a closed set.
    pub reason: String,
    pub text: String,
}

impl Event {
    pub fn normal(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            warning: false,
            once: false,
            reason: reason.into(),
            text: text.into(),
        }
    }

    pub fn warning(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            warning: true,
            once: false,
            reason: reason.into(),
            text: text.into(),
        }
    }

    /// An event that happens once, such as a create.
    pub fn once(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            once: true,
            ..Self::normal(reason, text)
        }
    }
}

impl Events {
    pub fn new(client: Client, instance: &str) -> Self {
        Self {
            client,
            instance: names::fitted(instance, LONGEST_REPORTER),
            recent: Arc::default(),
        }
    }

    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, event: &Event) {
        let (of, now) = (object.object_ref(&()), clock::now());
        let mut sent = self.send(&of, event, now).await;
        for _ in 1..TRIES {
            match &sent {
                Err(error) if is_unavailable(error) => sent = self.send(&of, event, now).await,
                _ => break,
            }
        }
        match sent {
            Ok(()) => {}
            // An earlier attempt has created it: its name is unique.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            // The namespace is being deleted: the API server accepts no event there, and nobody
            // would read it.
            Err(error) if in_terminating_namespace(&error) => {
                debug!(
                    error = explained(&error),
                    event = event.reason,
                    "an event could not be published"
                );
            }
            Err(error) => warn!(
                error = explained(&error),
                event = event.reason,
                "an event could not be published"
            ),
        }
    }

    async fn send(
        &self,
        of: &ObjectReference,
        event: &Event,
        now: Timestamp,
    ) -> Result<(), kube::Error> {
        let api: Api<Stored> = Api::namespaced(
            self.client.clone(),
            of.namespace.as_deref().unwrap_or(NO_NAMESPACE),
        );
        let sort = sort(of, event);
        let again = if event.once {
            None
        } else {
            self.again(&sort, now)
        };
        let stored = match again {
            Some(again) => api
                .patch(
                    &again.name_any(),
                    &PatchParams::default(),
                    &Patch::Merge(&again),
                )
                .await
                .map(|_| again)?,
            None => {
                let new = new(of, event, &self.instance, now);
                api.create(&PostParams::default(), &new)
                    .await
                    .map(|_| new)?
            }
        };
        if !event.once {
            self.recent
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(sort, stored);
        }
        Ok(())
    }

    /// The same event from the last minutes, with an increased count.
    fn again(&self, sort: &Sort, now: Timestamp) -> Option<Stored> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, event| {
            last_seen(event).is_some_and(|seen| now.duration_since(seen) < MERGED_FOR)
        });
        let mut event = recent.get(sort)?.clone();
        let count = event.series.as_ref().map_or(1, |series| series.count) + 1;
        event.series = Some(EventSeries {
            count,
            last_observed_time: MicroTime(now),
        });
        Some(event)
    }
}

fn sort(of: &ObjectReference, event: &Event) -> Sort {
    let ObjectReference {
        kind,
        namespace,
        name,
        uid,
        ..
    } = of.clone();
    Sort {
        kind,
        namespace,
        name,
        uid,
        warning: event.warning,
        reason: event.reason.clone(),
        text: names::digest(&event.text),
    }
}

fn last_seen(event: &Stored) -> Option<Timestamp> {
    let last = event
        .series
        .as_ref()
        .map(|series| series.last_observed_time.0);
    last.or_else(|| event.event_time.as_ref().map(|time| time.0))
}

fn new(of: &ObjectReference, event: &Event, instance: &str, now: Timestamp) -> Stored {
    let tail = format!(".{:x}", now.as_nanosecond());
    let name = names::derived(of.name.as_deref().unwrap_or(FIELD_MANAGER), &tail);
    Stored {
        metadata: ObjectMeta {
            namespace: of.namespace.clone(),
            name: Some(name),
            ..ObjectMeta::default()
        },
        action: Some(event.reason.clone()),
        reason: Some(event.reason.clone()),
        event_time: Some(MicroTime(now)),
        // Without the version, so that events of one object stay together.
        regarding: Some(ObjectReference {
            resource_version: None,
            ..of.clone()
        }),
        note: Some(line(&event.text, LONGEST_NOTE).into_owned()),
        reporting_controller: Some(FIELD_MANAGER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        ..Stored::default()
    }
}

/// The API server rejects new objects in a namespace that is being deleted.
fn in_terminating_namespace(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403
        && causes
            .into_iter()
            .any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_object_with_the_longest_name_can_be_published() {
        let now: Timestamp = "2262-04-11T23:47:16.854775807Z".parse().unwrap();
        let event = Event::warning("Refused", "x".repeat(5000));
        for kind in [
            "Account",
            "ClusterAccount",
            "Compute",
            "ProjectKey",
            "ReadReplicaSet",
        ] {
            let mut names = std::collections::BTreeSet::new();
            for (length, end) in [(1, 'a'), (236, 'a'), (237, 'a'), (253, 'a'), (253, 'b')] {
                let name = format!("{}{end}", "x".repeat(length - 1));
                let of = ObjectReference {
                    kind: Some(kind.into()),
                    name: Some(name.clone()),
                    ..Default::default()
                };
                let new = new(
                    &of,
                    &event,
                    &names::fitted(&"i".repeat(300), LONGEST_REPORTER),
                    now,
                );
                let event_name = new.metadata.name.unwrap();
                assert!(event_name.len() <= 253, "{}", event_name.len());
                assert_eq!(
                    length <= 236,
                    event_name.starts_with(&format!("{name}.")),
                    "{event_name}"
                );
                assert_eq!(
                    new.regarding.unwrap().name,
                    Some(name),
                    "it is about the whole name"
                );
                assert!(
                    new.note.unwrap().len() <= 1024 && new.reporting_instance.unwrap().len() <= 128
                );
                assert!(
                    names.insert(event_name),
                    "another object's event has the same name"
                );
            }
        }
    }

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
