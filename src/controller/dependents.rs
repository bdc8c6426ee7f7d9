//! Who refers to what: the resources of an account, the accounts of a Secret.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::Context;
use super::accounts::AccountName;
use super::any_account::AnyAccount;
use super::kind::{Managed, uid};
use crate::api::{AccountRef, Compute, ProjectKey};
use crate::cluster::resource_version;

/// A resource that refers to an account.
#[derive(Clone, Debug)]
pub struct Dependent {
    /// Kind and namespace/name, for people.
    pub label: String,
    /// Whether it has something on the platform, or may have just now.
    pub holds: bool,
    /// Whether it is being deleted.
    pub leaves: bool,
}

/// The resources that refer to an account.
pub fn of(context: &Context, account: &AccountName) -> Vec<Dependent> {
    let computes = computes(context, account);
    let keys = keys(context, account);
    let computes = computes.iter().map(|compute| dependent(context, compute.as_ref(), "Compute"));
    let mut dependents: Vec<Dependent> =
        computes.chain(keys.iter().map(|key| dependent(context, key.as_ref(), "ProjectKey"))).collect();
    dependents.sort_by(|one, other| one.label.cmp(&other.label));
    dependents
}

/// The projects that an account's resources name.
pub fn projects(context: &Context, account: &AccountName) -> BTreeSet<String> {
    let computes = computes(context, account).into_iter().map(|compute| compute.spec.project_id.clone());
    let keys = keys(context, account).into_iter().map(|key| key.spec.project_id.clone());
    computes.chain(keys).collect()
}

/// Has the resources of an account decided on anew.
pub fn trigger(context: &Context, account: &AccountName) {
    for compute in computes(context, account) {
        context.triggers.compute(ObjectRef::from_obj(compute.as_ref()));
    }
    for key in keys(context, account) {
        context.triggers.key(ObjectRef::from_obj(key.as_ref()));
    }
}

/// The accounts whose credentials are in a Secret, and whether they are held.
pub fn accounts_with(context: &Context, namespace: &str, secret: &str) -> Vec<(AccountName, bool)> {
    let accounts = context.stores.accounts.filter(|account| names_secret(account, namespace, secret));
    let cluster = context.stores.cluster_accounts.filter(|account| names_secret(account, namespace, secret));
    accounts
        .iter()
        .map(|account| (account.reference(), account.meta_observed().has_finalizer))
        .chain(cluster.iter().map(|account| (account.reference(), account.meta_observed().has_finalizer)))
        .collect()
}

fn names_secret<A: AnyAccount>(account: &A, namespace: &str, secret: &str) -> bool {
    let credential = account.credential();
    credential.namespace == namespace && credential.name == secret
}

fn computes(context: &Context, account: &AccountName) -> Vec<std::sync::Arc<Compute>> {
    context.stores.computes.filter(|compute| refers(&compute.spec.account_ref, compute, account))
}

fn keys(context: &Context, account: &AccountName) -> Vec<std::sync::Arc<ProjectKey>> {
    context.stores.keys.filter(|key| refers(&key.spec.account_ref, key, account))
}

fn refers<K: ResourceExt>(reference: &AccountRef, object: &K, account: &AccountName) -> bool {
    AccountName::referred(reference, &object.namespace().unwrap_or_default()) == *account
}

fn dependent<K: Managed>(context: &Context, object: &K, kind: &str) -> Dependent {
    let meta = object.meta_observed();
    let uid = uid(object);
    let changing = context.under_way.has(&uid) || context.traces.version(&uid) > resource_version(object);
    Dependent {
        label: format!("{kind} {}/{}", meta.namespace, meta.name),
        holds: meta.has_finalizer || changing,
        leaves: meta.deleting,
    }
}
