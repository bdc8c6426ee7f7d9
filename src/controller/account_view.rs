//! The account that a resource refers to, as far as that resource is concerned.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use kube::runtime::reflector::ObjectRef;

use super::Context;
use super::accounts::{AccountName, Entry};
use crate::api::{AccountKind, AccountRef, NamespaceAccess};
use crate::decide::AccountView;
use crate::decide::account::Standing;

/// What `object` may make of the account that it refers to.
pub fn of<K: ResourceExt>(context: &Context, reference: &AccountRef, object: &K) -> (AccountView, Option<Entry>) {
    let namespace = object.namespace().unwrap_or_default();
    let name = AccountName::referred(reference, &namespace);
    let label = format!("{:?} {}", reference.kind, reference.name);
    if !exists(context, &name) {
        return (AccountView::Missing { name: label }, None);
    }
    if !admits(context, &name, &namespace) {
        return (AccountView::NotAllowed { name: label }, None);
    }
    let Some(entry) = context.accounts.get(&name) else {
        return (AccountView::Pending, None);
    };
    let view = match (&entry.standing, &entry.handle) {
        (Standing::Unusable(message), _) => AccountView::NotReady { name: label, message: message.clone() },
        (Standing::Pending, _) | (Standing::Usable, None) => AccountView::Pending,
        (Standing::Usable, Some(_)) if !entry.held => {
            // Nothing is created before the account and its credentials are held for it.
            context.triggers.account(&name);
            AccountView::Pending
        }
        (Standing::Usable, Some(handle)) => AccountView::Usable { organization: handle.access.organization_id.clone() },
    };
    (view, Some(entry))
}

fn exists(context: &Context, name: &AccountName) -> bool {
    match name.kind {
        AccountKind::Account => {
            let reference = ObjectRef::new(&name.name).within(name.namespace.as_deref().unwrap_or_default());
            context.stores.accounts.get(&reference).is_some()
        }
        AccountKind::ClusterAccount => context.stores.cluster_accounts.get(&ObjectRef::new(&name.name)).is_some(),
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
