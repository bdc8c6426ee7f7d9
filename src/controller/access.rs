//! The account that a resource refers to, as far as that resource is concerned.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Resource;
use kube::core::{Selector, SelectorExt};

use super::environment::{Environment, Kind, StepError};
use super::object::{AccountName, has_finalizer};
use super::state::{AccountEntry, Connection, SharedConnection};
use crate::api::{
    Account, AccountKind, AccountRef, ClusterAccount, Compute, Condition, MassDeletionPolicy, NamespaceAccess,
};
use crate::decide::account::Availability;
use crate::decide::memory::Problem;
use crate::decide::{AccountView, Action, Reason};
use crate::domain::{Fault, NameSupport};

/// What a resource may make of the account that it refers to.
#[derive(Clone, Debug)]
pub struct Access<P> {
    pub view: AccountView,
    /// Where the resource may use the account and its credentials are at hand.
    pub connection: Option<SharedConnection<P>>,
    /// The account has to be decided on anew for the resource's sake.
    pub wake: Option<AccountName>,
}

/// What `object` may make of the account that it refers to.
pub fn of<K: Resource, E: Environment>(env: &E, reference: &AccountRef, object: &K) -> Access<E::Client> {
    let name = AccountName::of(reference, object);
    let entry = meta(env, &name)
        .map(|account| (account, admits(env, &name, object.meta().namespace.as_deref().unwrap_or_default())));
    let served = env.settings().cluster_accounts;
    assemble((reference, served), &name, entry, env.state().account(&name), object)
}

fn assemble<K: Resource, P>(
    (reference, served): (&AccountRef, bool),
    name: &AccountName,
    account: Option<(ObjectMeta, bool)>,
    entry: Option<AccountEntry<P>>,
    object: &K,
) -> Access<P> {
    let label = format!("{:?} {}", reference.kind, reference.name);
    let without = |view| Access { view, connection: None, wake: None };
    let Some((account, admitted)) = account else {
        return without(match reference.kind {
            AccountKind::ClusterAccount if !served => AccountView::NotServed { name: label },
            _ => AccountView::Missing { name: label },
        });
    };
    if !admitted {
        return without(AccountView::NotAllowed { name: label });
    }
    let Some(AccountEntry { connection, availability, protected, .. }) = entry else {
        return without(AccountView::Pending);
    };
    let mut access = Access { view: AccountView::Pending, connection, wake: None };
    match (availability, &access.connection) {
        _ if is_lost(&account, object) => {
            access.view = AccountView::NotReady { name: label, message: "it is being deleted.".to_owned() };
            // Should it wait for this resource alone, it waits no more.
            access.wake = Some(name.clone());
        }
        (Availability::Unusable(message), _) => access.view = AccountView::NotReady { name: label, message },
        (Availability::Pending, _) | (Availability::Usable, None) => {}
        // Nothing is created before the account and its credentials are protected for it.
        (Availability::Usable, Some(_)) if !protected => access.wake = Some(name.clone()),
        (Availability::Usable, Some(connection)) => {
            access.view = AccountView::Usable { organization: connection.access.organization_id.clone() };
        }
    }
    access
}

/// Whether the account that `object` refers to is still looked at; then everyone who refers to it is woken.
pub fn is_pending<K: Kind, E: Environment>(env: &E, object: &K::Object) -> bool {
    let Some(reference) = K::account(object) else { return false };
    let name = AccountName::of(reference, object);
    let is_known = || env.state().account(&name).is_some_and(|entry| entry.availability != Availability::Pending);
    meta(env, &name).is_some() && !is_known()
}

/// The connection of the account that `object` refers to, or why nothing can be done without one.
pub fn connection<K: Resource, E: Environment>(
    env: &E,
    reference: &AccountRef,
    object: &K,
    action: Action,
) -> Result<SharedConnection<E::Client>, StepError> {
    of(env, reference, object).connection.ok_or_else(|| {
        let message = "the account's credentials are gone".to_owned();
        StepError::Failed(action, Problem::Platform(Fault::Transport { message }))
    })
}

/// Where the account's platform is; empty while that is not known.
pub fn base_url<K: Resource, E: Environment>(env: &E, reference: &AccountRef, object: &K) -> String {
    let entry = env.state().account(&AccountName::of(reference, object));
    let connection = entry.and_then(|entry| entry.connection);
    connection.map(|connection| connection.access.base_url.clone()).unwrap_or_default()
}

/// What computes show of names that were read through the account of `object`; what is known of that by now.
pub fn names_shown<E: Environment>(
    env: &E,
    object: &Compute,
    connection: &Connection<E::Client>,
    shown: NameSupport,
) -> NameSupport {
    let account = AccountName::of(&object.spec.account_ref, object);
    env.state().names_shown(&account, connection.number, shown)
}

/// Wakes an account.
pub fn wake<E: Environment>(env: &E, name: &AccountName) {
    match name.kind {
        AccountKind::Account => env.wake::<Account>(name.object_ref()),
        AccountKind::ClusterAccount => env.wake::<ClusterAccount>(name.object_ref()),
    }
}

/// Has an account say that one of its lists is too large, unless it does.
pub fn tell_of_list<E: Environment>(env: &E, name: &AccountName, fault: Option<&Fault>) {
    let told = |conditions: &[Condition]| conditions.iter().any(|it| it.type_ == Reason::ListsTooLarge.as_str());
    let is_told = || match name.kind {
        AccountKind::Account => env
            .object::<Account>(&name.object_ref())
            .is_none_or(|account| account.status.as_ref().is_some_and(|status| told(&status.conditions))),
        AccountKind::ClusterAccount => env
            .object::<ClusterAccount>(&name.object_ref())
            .is_none_or(|account| account.status.as_ref().is_some_and(|status| told(&status.conditions))),
    };
    if matches!(fault, Some(Fault::TooLarge { .. })) && !is_told() {
        wake(env, name);
    }
}

/// Whether the account is lost to the resource since it was decided on. The step is marked before: an account that is being
/// deleted looks for steps that are being performed, and a step for the account being deleted; one of them sees the other.
pub fn is_lost_since<K: Kind, E: Environment>(env: &E, object: &K::Object, observed: &K::Observed) -> bool {
    let Some(reference) = K::account(object) else { return false };
    let usable = matches!(K::account_view(observed), Some(AccountView::Usable { .. }));
    usable && meta(env, &AccountName::of(reference, object)).is_none_or(|account| is_lost(&account, object))
}

/// An account goes as soon as nothing on the platform needs it; what was begun then could not be ended.
fn is_lost<K: Resource>(account: &ObjectMeta, object: &K) -> bool {
    account.deletion_timestamp.is_some() && !has_finalizer(object.meta())
}

/// The metadata of an account, whether or not it can be used at present; `None` where there is no such account.
fn meta<E: Environment>(env: &E, name: &AccountName) -> Option<ObjectMeta> {
    match name.kind {
        AccountKind::Account => Some(env.object::<Account>(&name.object_ref())?.metadata.clone()),
        AccountKind::ClusterAccount => Some(env.object::<ClusterAccount>(&name.object_ref())?.metadata.clone()),
    }
}

/// The UID of an account; `None` where there is no such account.
pub fn uid<E: Environment>(env: &E, name: &AccountName) -> Option<String> {
    meta(env, name)?.uid
}

/// Whether an account admits a namespace; an Account admits its own.
fn admits<E: Environment>(env: &E, name: &AccountName, namespace: &str) -> bool {
    if name.kind == AccountKind::Account {
        return true;
    }
    let Some(account) = env.object::<ClusterAccount>(&name.object_ref()) else { return false };
    let NamespaceAccess { names, selector } = &account.spec.namespaces;
    names.iter().any(|name| name == namespace)
        || selector
            .as_ref()
            .is_some_and(|selector| env.namespace_labels(namespace).is_some_and(|labels| matches(selector, &labels)))
}

/// Whether the account that a Compute refers to admits it, as far as it is there.
pub fn is_granted<E: Environment>(env: &E, object: &Compute) -> bool {
    let name = AccountName::of(&object.spec.account_ref, object);
    meta(env, &name).is_none() || admits(env, &name, object.metadata.namespace.as_deref().unwrap_or_default())
}

/// The policy for deletions beyond the limit of an account. An Account has one namespace, whose own limit is lower, so it needs none.
pub fn mass_deletion_policy<E: Environment>(env: &E, name: &AccountName) -> MassDeletionPolicy {
    let account = match name.kind {
        AccountKind::Account => None,
        AccountKind::ClusterAccount => env.object::<ClusterAccount>(&name.object_ref()),
    };
    account.map(|account| account.spec.mass_deletion_policy).unwrap_or_default()
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    // A selector that cannot be understood admits nobody.
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}
