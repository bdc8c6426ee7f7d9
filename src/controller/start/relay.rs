//! Watches Secrets and namespaces, and wakes the resources that their changes concern.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error_span, warn};

use super::feed::PAGE;
use super::wake;
use super::watched::{is_watch_unavailable, watched};
use crate::cluster::{explained, is_unavailable, secrets};
use crate::controller::account::dependents;
use crate::controller::labels;
use crate::controller::live::Live;
use crate::controller::pass::calls::ActionLine;
use crate::decide::circuit::PROBE_PAUSE;
use crate::decide::names::AccountFinalizers;

/// Relays changes of Secrets until `stop`. Only their metadata is read. `listed` is cancelled after
/// their first list.
pub async fn secrets(
    env: Arc<Live>,
    api: Api<PartialObjectMeta<Secret>>,
    listed: CancellationToken,
    stop: CancellationToken,
) {
    let changes = watched(
        api,
        watcher::Config::default().page_size(PAGE),
        env.list_again.subscribe(),
    );
    relay(
        "Secrets",
        changes,
        &listed,
        stop,
        |secret: &PartialObjectMeta<Secret>| {
            let namespace = secret.namespace().unwrap_or_default();
            if listed.is_cancelled() {
                wake::users_of_secret(env.as_ref(), &namespace, &secret.name_any());
            }
            for finalizer in own(&env)
                .into_iter()
                .filter(|own| secret.finalizers().contains(own))
            {
                tokio::spawn(unprotect_unless_named(
                    env.clone(),
                    namespace.clone(),
                    secret.name_any(),
                    finalizer,
                ));
            }
        },
    )
    .await;
}

/// The finalizers that this operator sets on credentials.
fn own(env: &Live) -> BTreeSet<String> {
    let namespaces = &env.settings.watch_namespaces;
    let confined = (!namespaces.is_empty()).then(|| AccountFinalizers::confined_to(namespaces));
    [AccountFinalizers::whole()]
        .into_iter()
        .chain(confined)
        .map(|finalizers| finalizers.credential)
        .collect()
}

/// Removes the finalizer of a protected Secret that no account names any more.
async fn unprotect_unless_named(
    env: Arc<Live>,
    namespace: String,
    name: String,
    finalizer: String,
) {
    env.synced.cancelled().await;
    if dependents::may_be_read_by_an_account(env.as_ref(), &namespace, &name) {
        return;
    }
    let lines = error_span!("unprotect", kind = "Secret", namespace, name);
    let unprotected = loop {
        match secrets::protect(&env.cluster, &namespace, &name, &finalizer, false).await {
            Err(error) if is_unavailable(&error) && !env.stop.is_cancelled() => {
                sleep(PROBE_PAUSE).await
            }
            ended => break ended,
        }
    };
    lines.in_scope(|| match unprotected {
        Ok(()) => ActionLine { secret: Some(&name), ..ActionLine::of(labels::UNPROTECT_SECRET) }
            .log("No account names the Secret any more: it is no longer held."),
        Err(error) => {
            warn!(
                error = explained(&error),
                "a Secret is protected that no account names, and its finalizer could not be removed"
            );
        }
    });
}

/// Relays changes of namespaces until `stop`, and caches their labels for the selectors of
/// ClusterAccounts.
pub async fn namespaces(
    env: Arc<Live>,
    api: Api<PartialObjectMeta<Namespace>>,
    writer: Writer<PartialObjectMeta<Namespace>>,
    stop: CancellationToken,
) {
    let only_labels = |namespace: &mut PartialObjectMeta<Namespace>| {
        namespace.metadata.managed_fields = None;
        namespace.metadata.annotations = None;
    };
    let changes = watched(api, watcher::Config::default(), env.list_again.subscribe());
    let changes = changes.modify(only_labels).reflect(writer);
    let listed = CancellationToken::new();
    relay(
        "namespaces",
        changes,
        &listed,
        stop,
        |namespace: &PartialObjectMeta<Namespace>| {
            if listed.is_cancelled() {
                wake::users_of_cluster_accounts(env.as_ref(), &namespace.name_any());
            }
        },
    )
    .await;
}

/// Calls `pass_on` for each object. `listed` is cancelled after the first list, which wakes no
/// resource: reconciling starts after it.
async fn relay<K: Resource + Debug>(
    what: &str,
    changes: impl futures::Stream<Item = Result<watcher::Event<K>, watcher::Error>>,
    listed: &CancellationToken,
    stop: CancellationToken,
    pass_on: impl Fn(&K),
) {
    let mut changes = std::pin::pin!(changes.take_until(stop.cancelled_owned()));
    while let Some(change) = changes.next().await {
        match change {
            Ok(watcher::Event::Init) => {}
            Ok(watcher::Event::InitDone) => listed.cancel(),
            Ok(
                watcher::Event::Apply(object)
                | watcher::Event::InitApply(object)
                | watcher::Event::Delete(object),
            ) => {
                pass_on(&object);
            }
            Err(error) if is_watch_unavailable(&error) => {
                debug!(error = explained(&error), watch = what, "the watch failed")
            }
            Err(error) => warn!(
                error = explained(&error),
                watch = what,
                "the watch failed; it is begun anew"
            ),
        }
    }
}
