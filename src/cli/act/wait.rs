//! Waits until the operator has completed a request.

use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use serde::Serialize;

use super::rules::{RequestOutcome, ResourceRequest};
use crate::cli::progress::Progress;
use crate::cli::resource::{ObservedResource, ResourceKind};
use crate::cluster::explained;

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "message", rename_all = "camelCase")]
pub enum RequestEnd {
    Done(String),
    /// The command did not wait.
    Requested,
    Failed(String),
    /// With the reason for the wait.
    TimedOut(String),
    /// The API server rejected the write.
    NotChanged(String),
}

impl RequestEnd {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done(_) | Self::Requested => 0,
            Self::NotChanged(_) => 1,
            Self::Failed(_) => 3,
            Self::TimedOut(_) => 4,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Requested => "requested",
            Self::Failed(_) => "failed",
            Self::TimedOut(_) => "timed out",
            Self::NotChanged(_) => "not changed",
        }
    }

    pub fn detail(&self) -> String {
        match self {
            Self::Done(text) | Self::Failed(text) | Self::NotChanged(text) => format!(": {text}"),
            Self::TimedOut(text) => format!("; it goes on, and waits for this: {text}"),
            Self::Requested => String::new(),
        }
    }
}

/// A written request.
pub struct Wait<'a> {
    pub request: &'a ResourceRequest,
    pub api: Api<DynamicObject>,
    pub kind: ResourceKind,
    pub before: &'a ObservedResource,
    /// The resource right after the request was written.
    pub requested: ObservedResource,
}

impl Wait<'_> {
    /// Says what it waits for at once, and each time that this changes.
    pub async fn until_done(self, timeout: Duration, progress: &Progress) -> RequestEnd {
        let mut last = String::new();
        let ended = tokio::time::timeout(
            timeout,
            self.outcome(|text| {
                if text != last {
                    progress.say(&format!("{} {}: {text}", self.request.verb(), self.before));
                    last = text;
                }
            }),
        );
        match ended.await {
            Ok(ended) => ended,
            Err(_) => RequestEnd::TimedOut(last),
        }
    }

    async fn outcome(&self, mut waits: impl FnMut(String)) -> RequestEnd {
        let states = watcher::watch_object(self.api.clone(), self.before.name()).default_backoff();
        let mut states = std::pin::pin!(states);
        while let Some(state) = states.next().await {
            let now = match state {
                Ok(object) => object.map(|object| ObservedResource::of(&self.kind, object)),
                Err(error) if is_forbidden(&error) => {
                    return RequestEnd::NotChanged(format!(
                        "it was requested, and may not be watched: {}",
                        explained(&error)
                    ));
                }
                Err(error) => {
                    waits(explained(&error));
                    continue;
                }
            };
            match self
                .request
                .outcome(self.before, &self.requested, now.as_ref())
            {
                RequestOutcome::Done(text) => return RequestEnd::Done(text),
                RequestOutcome::Failed(text) => return RequestEnd::Failed(text),
                RequestOutcome::Waits(text) => waits(text),
            }
        }
        RequestEnd::TimedOut("the watch has ended".to_owned())
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let cause = match error {
        watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) => cause,
        _ => return false,
    };
    matches!(cause, kube::Error::Api(status) if status.code == 403)
}
