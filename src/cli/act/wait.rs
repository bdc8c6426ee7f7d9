//! Waits until the operator has completed a request.

use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use serde::Serialize;

use super::rules::{Ask, Outcome};
use crate::cli::progress::Progress;
use crate::cli::seen::{Kind, Seen};
use crate::cluster::explained;

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "message", rename_all = "camelCase")]
pub enum Ended {
    Done(String),
    /// The command did not wait.
    Requested,
    Failed(String),
    /// With the reason for the wait.
    TimedOut(String),
    /// The API server rejected the write.
    NotChanged(String),
}

impl Ended {
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
    pub ask: &'a Ask,
    pub api: Api<DynamicObject>,
    pub kind: Kind,
    pub before: &'a Seen,
    /// The resource right after the request was written.
    pub asked: Seen,
}

impl Wait<'_> {
    pub async fn until_done(self, timeout: Duration, progress: &Progress) -> Ended {
        let mut last = String::new();
        let ended = tokio::time::timeout(
            timeout,
            self.outcome(|text| {
                progress.say(format!("{} {}: {text}", self.ask.verb(), self.before));
                last = text;
            }),
        );
        match ended.await {
            Ok(ended) => ended,
            Err(_) => Ended::TimedOut(last),
        }
    }

    async fn outcome(&self, mut waits: impl FnMut(String)) -> Ended {
        let states = watcher::watch_object(self.api.clone(), self.before.name()).default_backoff();
        let mut states = std::pin::pin!(states);
        while let Some(state) = states.next().await {
            let now = match state {
                Ok(object) => object.map(|object| Seen::of(&self.kind, object)),
                Err(error) if is_forbidden(&error) => {
                    return Ended::NotChanged(format!(
                        "it was requested, and may not be watched: {}",
                        explained(&error)
                    ));
                }
                Err(error) => {
                    waits(explained(&error));
                    continue;
                }
            };
            match self.ask.outcome(self.before, &self.asked, now.as_ref()) {
                Outcome::Done(text) => return Ended::Done(text),
                Outcome::Failed(text) => return Ended::Failed(text),
                Outcome::Waits(text) => waits(text),
            }
        }
        Ended::TimedOut("the watch has ended".to_owned())
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let cause = match error {
        watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) => cause,
        _ => return false,
    };
    matches!(cause, kube::Error::Api(status) if status.code == 403)
}
