//! Watches that start again after an error.

use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use crate::cluster::is_unavailable;
use crate::decide::circuit::{self, PROBE_PAUSE};

/// A watch. After an error it pauses, longer each time; briefly where the API server was unavailable, since its requests then wait for that.
pub fn watched<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let begin = (watcher::watcher(api, config).boxed(), DefaultBackoff::default(), Duration::ZERO);
    stream::unfold(begin, |(mut events, mut backoff, pause)| async move {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let event = events.next().await?;
        let pause = match &event {
            Ok(_) => {
                backoff.reset();
                Duration::ZERO
            }
            Err(error) if is_watch_unavailable(error) => PROBE_PAUSE,
            Err(_) => backoff.next().unwrap_or(PROBE_PAUSE),
        };
        Some((event, (events, backoff, pause)))
    })
}

/// True if a watch failed because the API server was unavailable.
pub fn is_watch_unavailable(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => is_unavailable(error),
        WatchError(status) => circuit::is_unavailable(status.code),
        NoResourceVersion => false,
    }
}
