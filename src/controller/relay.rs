//! Changes of other objects that concern ours: Secrets, namespaces, and resources that are gone.

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::accounts::AccountName;
use super::any_account::AnyAccount;
use super::hands::Hands;
use super::kind::{Managed, uid};
use super::{Context, dependents};
use crate::api::{Account, AccountKind, ClusterAccount, Compute, ProjectKey};
use crate::decide::names::CREDENTIAL_FINALIZER;

/// What others do when an object of this kind is gone.
pub trait Gone: Managed {
    fn gone(&self, context: &Context);
}

impl Gone for Account {
    fn gone(&self, context: &Context) {
        account_gone(context, &self.reference());
    }
}

impl Gone for ClusterAccount {
    fn gone(&self, context: &Context) {
        account_gone(context, &self.reference());
    }
}

impl Gone for Compute {
    fn gone(&self, context: &Context) {
        context.traces.forget(&uid(self));
        context.creating.gone(&uid(self));
        context.waits_no_more(self);
        context.observers.forget(&ObjectRef::from_obj(self));
        context.account_may_go(&self.spec.account_ref, self);
        let rival = |other: &Compute| {
            other.spec.project_id == self.spec.project_id && other.spec.branch_id == self.spec.branch_id
        };
        for other in context.stores.computes.filter(rival) {
            context.triggers.compute(ObjectRef::from_obj(other.as_ref()));
        }
    }
}

impl Gone for ProjectKey {
    fn gone(&self, context: &Context) {
        context.traces.forget(&uid(self));
        if let Some(key) = context.unsaved.take(&uid(self)) {
            key.tell_loss("its ProjectKey is gone; revoke it in the platform's console");
        }
        context.waits_no_more(self);
        context.account_may_go(&self.spec.account_ref, self);
        secret_touched(context, &self.namespace().unwrap_or_default(), &self.spec.secret.name);
    }
}

fn account_gone(context: &Context, name: &AccountName) {
    context.accounts.forget(name);
    dependents::trigger(context, name);
}

/// Passes on changes of Secrets until `stop`. Only their metadata is read.
pub async fn secrets(context: Arc<Context>, api: Api<PartialObjectMeta<Secret>>, stop: CancellationToken) {
    let changes = watcher(api, watcher::Config::default()).default_backoff().touched_objects();
    relay("Secrets", changes, stop, |secret: &PartialObjectMeta<Secret>| {
        let namespace = secret.namespace().unwrap_or_default();
        secret_touched(&context, &namespace, &secret.name_any());
        if secret.finalizers().iter().any(|finalizer| finalizer == CREDENTIAL_FINALIZER) {
            tokio::spawn(unprotect_unless_named(context.clone(), namespace, secret.name_any()));
        }
    })
    .await;
}

/// Removes the finalizer of a Secret that was protected for an account which names another one by now, or which is no more.
async fn unprotect_unless_named(context: Arc<Context>, namespace: String, name: String) {
    context.synced.cancelled().await;
    if !dependents::accounts_with(&context, &namespace, &name).is_empty() {
        return;
    }
    if let Err(error) = context.secrets.protect(&namespace, &name, false).await {
        warn!(%error, namespace, name, "a Secret is protected that no account names, and its finalizer could not be removed");
    }
}

/// Passes on changes of namespaces' labels until `stop`, and keeps them for the selectors of ClusterAccounts.
pub async fn namespaces(
    context: Arc<Context>,
    api: Api<PartialObjectMeta<Namespace>>,
    writer: Writer<PartialObjectMeta<Namespace>>,
    stop: CancellationToken,
) {
    let changes = watcher(api, watcher::Config::default()).default_backoff().reflect(writer).touched_objects();
    relay("namespaces", changes, stop, |namespace: &PartialObjectMeta<Namespace>| {
        let name = Some(namespace.name_any());
        let computes = context.stores.computes.filter(|compute| compute.namespace() == name);
        for compute in computes.iter().filter(|compute| compute.spec.account_ref.kind == AccountKind::ClusterAccount) {
            context.triggers.compute(ObjectRef::from_obj(compute.as_ref()));
        }
        let keys = context.stores.keys.filter(|key| key.namespace() == name);
        for key in keys.iter().filter(|key| key.spec.account_ref.kind == AccountKind::ClusterAccount) {
            context.triggers.key(ObjectRef::from_obj(key.as_ref()));
        }
    })
    .await;
}

async fn relay<K: Resource + Debug>(
    what: &str,
    changes: impl futures::Stream<Item = Result<K, watcher::Error>>,
    stop: CancellationToken,
    pass_on: impl Fn(&K),
) {
    let mut changes = std::pin::pin!(changes.take_until(stop.cancelled_owned()));
    while let Some(change) = changes.next().await {
        match change {
            Ok(object) => pass_on(&object),
            Err(error) => warn!(%error, what, "the watch failed; it is begun anew"),
        }
    }
}

/// Has everything decided on anew that a Secret concerns: accounts that read it, resources that write it.
fn secret_touched(context: &Context, namespace: &str, name: &str) {
    for (account, _) in dependents::accounts_with(context, namespace, name) {
        context.triggers.account(&account);
    }
    let here = Some(namespace.to_owned());
    for key in context.stores.keys.filter(|key| key.namespace() == here && key.spec.secret.name == name) {
        context.triggers.key(ObjectRef::from_obj(key.as_ref()));
    }
    let writes = |compute: &Compute| {
        compute.namespace() == here
            && compute.spec.connection.as_ref().is_some_and(|connection| connection.secret_name == name)
    };
    for compute in context.stores.computes.filter(writes) {
        context.triggers.compute(ObjectRef::from_obj(compute.as_ref()));
    }
}
