//! Watches that start again after an error.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use crate::cluster::is_unavailable;
use crate::decide::circuit::{self, PROBE_PAUSE};

/// A watch. After an error it pauses, longer each time, but only briefly if the API server was
/// unavailable, since requests then wait for it. It lists again when `list_again` changes, and
/// after no API server could be reached.
pub fn watched<K>(
    api: Api<K>,
    config: watcher::Config,
    list_again: Receiver<()>,
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher::watcher(api.clone(), config.clone()).boxed();
    let begin = Watch {
        api,
        config,
        events,
        list_again,
        backoff: DefaultBackoff::default(),
        pause: Duration::ZERO,
    };
    stream::unfold(begin, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

struct Watch<K> {
    api: Api<K>,
    config: watcher::Config,
    events: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    list_again: Receiver<()>,
    backoff: DefaultBackoff,
    pause: Duration,
}

impl<K> Watch<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    async fn next(&mut self) -> Option<watcher::Result<watcher::Event<K>>> {
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        let event = loop {
            tokio::select! {
                event = self.events.next() => break event?,
                Ok(()) = self.list_again.changed() => self.begin_with_list(),
            }
        };
        self.pause = match &event {
            Ok(_) => {
                self.backoff.reset();
                Duration::ZERO
            }
            Err(error) if is_watch_unavailable(error) => PROBE_PAUSE,
            Err(_) => self.backoff.next().unwrap_or(PROBE_PAUSE),
        };
        if event.as_ref().is_err_and(was_away) {
            self.begin_with_list();
        }
        Some(event)
    }

    fn begin_with_list(&mut self) {
        self.events = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
    }
}

/// True if no API server could be reached to start a watch. Storage may be rolled back meanwhile,
/// for which API servers are stopped. An API server accepts a watch from a version that storage has
/// not reached yet, and shows nothing until it has.
fn was_away(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(error) = error else {
        return false;
    };
    let is_overloaded = matches!(error, kube::Error::Api(status) if status.code == 429);
    is_unavailable(error) && !is_overloaded
}

/// True if a watch failed because the API server was unavailable.
pub fn is_watch_unavailable(error: &watcher::Error) -> bool {
    use watcher::Error::{
        InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
    };
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            is_unavailable(error)
        }
        WatchError(status) => circuit::is_unavailable(status.code),
        NoResourceVersion => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::watch;
    use tower::service_fn;

    use super::*;
    use crate::api::ProjectKey;

    /// Answers watches with `answers` in order, then with a watch that shows nothing. Every list is
    /// empty. Records the requests.
    fn server(answers: &[u16]) -> (Client, Arc<Mutex<Vec<&'static str>>>) {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let mut answers = Vec::from(answers).into_iter();
        let noted = asked.clone();
        let answer = move |request: Request<Body>| {
            let watches = request
                .uri()
                .query()
                .is_some_and(|query| query.contains("watch=true"));
            noted
                .lock()
                .unwrap()
                .push(if watches { "watch" } else { "list" });
            let status = if watches { answers.next() } else { Some(200) };
            let body = match status {
                Some(200) => json!({
                    "apiVersion": "dbplane.dev/v1alpha1", "kind": "ProjectKeyList", "items": [],
                    "metadata": {"resourceVersion": "7"},
                }),
                code => {
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"})
                }
            };
            async move {
                let Some(status) = status else {
                    return std::future::pending().await;
                };
                let answer = Response::builder()
                    .status(status)
                    .body(Body::from(body.to_string().into_bytes()));
                Ok::<_, kube::Error>(answer.unwrap())
            }
        };
        (Client::new(service_fn(answer), "shop"), asked)
    }

    async fn asked(answers: &[u16], again: bool) -> Vec<&'static str> {
        let (client, asked) = server(answers);
        let list_again = watch::Sender::new(());
        let watched = watched::<ProjectKey>(
            Api::all(client),
            watcher::Config::default(),
            list_again.subscribe(),
        );
        let run = tokio::spawn(watched.for_each(|_| std::future::ready(())));
        sleep(Duration::from_secs(60)).await;
        if again {
            list_again.send_replace(());
            sleep(Duration::from_secs(60)).await;
        }
        run.abort();
        asked.lock().unwrap().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_begins_with_a_list_after_no_api_server_was_reached() {
        assert_eq!(asked(&[], false).await, ["list", "watch"]);
        assert_eq!(
            asked(&[503], false).await,
            ["list", "watch", "list", "watch"]
        );
        assert_eq!(
            asked(&[429, 500], false).await,
            ["list", "watch", "watch", "watch"],
            "it is there"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_seems_well_begins_with_a_list_when_asked_to() {
        assert_eq!(asked(&[], true).await, ["list", "watch", "list", "watch"]);
    }
}
