//! The account that a resource refers to, as far as that resource is concerned.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use kube::runtime::reflector::ObjectRef;

use super::Context;
use super::accounts::{AccountName, Entry};
use super::kind::{Managed, uid};
use super::under_way::Step;
use crate::api::{AccountKind, AccountRef, NamespaceAccess};
use crate::decide::AccountView;
use crate::decide::account::Availability;
use crate::decide::names::FINALIZER;

/// What `object` may make of the account that it refers to.
pub fn of<K: ResourceExt>(context: &Context, reference: &AccountRef, object: &K) -> (AccountView, Option<Entry>) {
    let namespace = object.namespace().unwrap_or_default();
    let name = AccountName::referred(reference, &namespace);
    let label = format!("{:?} {}", reference.kind, reference.name);
    let Some(account) = meta(context, &name) else {
        return (AccountView::Missing { name: label }, None);
    };
    if !admits(context, &name, &namespace) {
        return (AccountView::NotAllowed { name: label }, None);
    }
    let Some(entry) = context.accounts.get(&name) else {
        return (AccountView::Pending, None);
    };
    let view = match (&entry.availability, &entry.handle) {
        _ if is_lost(&account, object) => {
            // Should it wait for this resource alone, it waits no more.
            context.triggers.account(&name);
            AccountView::NotReady { name: label, message: "it is being deleted.".to_owned() }
        }
        (Availability::Unusable(message), _) => AccountView::NotReady { name: label, message: message.clone() },
        (Availability::Pending, _) | (Availability::Usable, None) => AccountView::Pending,
        (Availability::Usable, Some(_)) if !entry.protected => {
            // Nothing is created before the account and its credentials are protected for it.
            context.triggers.account(&name);
            AccountView::Pending
        }
        (Availability::Usable, Some(handle)) => {
            AccountView::Usable { organization: handle.access.organization_id.clone() }
        }
    };
    (view, Some(entry))
}

/// Marks a step as under way; `None` where the account is lost to the resource since it was decided on. An account that is
/// being deleted looks for steps that are under way, and a step for the account being deleted: one of them sees the other.
pub fn begin<'a, K: Managed>(
    context: &'a Context,
    reference: &AccountRef,
    object: &K,
    decided_on: &AccountView,
) -> Option<Step<'a>> {
    let step = context.under_way.begin(&uid(object));
    let name = AccountName::referred(reference, &object.namespace().unwrap_or_default());
    let usable = matches!(decided_on, AccountView::Usable { .. });
    let lost = usable && meta(context, &name).is_none_or(|account| is_lost(&account, object));
    (!lost).then_some(step)
}

/// An account goes as soon as nothing on the platform needs it; what was begun then could not be ended.
fn is_lost<K: ResourceExt>(account: &ObjectMeta, object: &K) -> bool {
    account.deletion_timestamp.is_some() && !object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// `None` where there is no such account.
fn meta(context: &Context, name: &AccountName) -> Option<ObjectMeta> {
    match name.kind {
        AccountKind::Account => {
            let reference = ObjectRef::new(&name.name).within(name.namespace.as_deref().unwrap_or_default());
            context.stores.accounts.get(&reference).map(|account| account.metadata.clone())
        }
        AccountKind::ClusterAccount => {
            let account = context.stores.cluster_accounts.get(&ObjectRef::new(&name.name));
            account.map(|account| account.metadata.clone())
        }
    }
}

/// Whether an account admits a namespace; an Account admits its own.
fn admits(context: &Context, name: &AccountName, namespace: &str) -> bool {
    match name.kind {
        AccountKind::Account => true,
        AccountKind::ClusterAccount => {
            let account = context.stores.cluster_accounts.get(&ObjectRef::new(&name.name));
            account.is_some_and(|account| {
                names(&account.spec.namespaces, namespace) || selects(context, &account.spec.namespaces, namespace)
            })
        }
    }
}

fn names(access: &NamespaceAccess, namespace: &str) -> bool {
    access.names.iter().any(|name| name == namespace)
}

fn selects(context: &Context, access: &NamespaceAccess, namespace: &str) -> bool {
    let Some(selector) = &access.selector else { return false };
    let labels = context.stores.namespaces.get(&ObjectRef::new(namespace)).map(|namespace| namespace.labels().clone());
    labels.is_some_and(|labels| matches(selector, &labels))
}

fn matches(selector: &LabelSelector, labels: &std::collections::BTreeMap<String, String>) -> bool {
    // A selector that cannot be understood admits nobody.
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}
