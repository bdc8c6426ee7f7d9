//! Assumes the content of Secrets that may not be read. The resources that write or read them have
//! recorded it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::objects::Objects;
use super::secrets::Secrets;
use crate::api::{
    Account, AccountKind, ClusterAccount, Compute, Connection, ProjectKey, ReadReplicaSet,
};
use crate::cluster::{Owner, secrets};
use crate::controller::account::AnyAccount;
use crate::controller::environment::PassSettings;
use crate::controller::object::AccountName;
use crate::controller::{NOT_READ, assumed_key_secret};

/// Assumes a content for every Secret that resources name.
pub fn assume(objects: &Objects, secrets: &mut Secrets, settings: &PassSettings) {
    // Keys come first, because an account may have its credentials in the Secret of a key.
    for key in objects.all::<ProjectKey>() {
        of_key(&key, objects, secrets);
    }
    for account in objects.all::<Account>() {
        of_account(account.as_ref(), secrets, settings);
    }
    for account in objects.all::<ClusterAccount>() {
        of_account(account.as_ref(), secrets, settings);
    }
    for compute in objects.all::<Compute>() {
        let wrote = compute
            .status
            .as_ref()
            .and_then(|status| status.connection_secret.as_ref());
        let unused = compute
            .status
            .iter()
            .flat_map(|status| &status.unused_secrets);
        let namespace = compute.namespace().unwrap_or_default();
        of_connection(
            &namespace,
            Owner::of(compute.as_ref()),
            compute.spec.connection.as_deref(),
            wrote,
            secrets,
        );
        for name in unused {
            secrets.assume((namespace.clone(), name.clone()), None);
        }
    }
    for set in objects.all::<ReadReplicaSet>() {
        let wrote = set
            .status
            .as_ref()
            .and_then(|status| status.connection_secret.as_ref());
        let namespace = set.namespace().unwrap_or_default();
        of_connection(
            &namespace,
            Owner::of(set.as_ref()),
            set.spec.connection.as_ref(),
            wrote,
            secrets,
        );
    }
}

fn of_account<A: AnyAccount>(account: &A, secrets: &mut Secrets, settings: &PassSettings) {
    let reference = account.credential();
    let mut secret = holding([reference.key]);
    secret.metadata.finalizers = Some(vec![settings.finalizers(account).credential]);
    secrets.assume((reference.namespace, reference.name), Some(secret));
}

fn holding(entries: impl IntoIterator<Item = String>) -> Secret {
    let data: BTreeMap<String, ByteString> = entries
        .into_iter()
        .map(|entry| (entry, ByteString(NOT_READ.as_bytes().to_vec())))
        .collect();
    Secret {
        data: Some(data),
        ..Secret::default()
    }
}

fn of_connection(
    namespace: &str,
    owner: Option<Owner>,
    declared: Option<&Connection>,
    wrote: Option<&String>,
    secrets_known: &mut Secrets,
) {
    if let (Some(name), Some(owner)) = (wrote, &owner) {
        let guess = secrets::empty(owner, name, None);
        secrets_known.assume((namespace.to_owned(), name.clone()), Some(guess));
    }
    let Some(connection) = declared else { return };
    if wrote != Some(&connection.secret_name) {
        secrets_known.assume((namespace.to_owned(), connection.secret_name.clone()), None);
    }
    if let Some(from) = &connection.credentials_from {
        let guess = holding([from.username_key.clone(), from.password_key.clone()]);
        secrets_known.assume((namespace.to_owned(), from.name.clone()), Some(guess));
    }
}

fn of_key(key: &ProjectKey, objects: &Objects, secrets: &mut Secrets) {
    let account = AccountName::of(&key.spec.account_ref, key);
    let base_url = match account.kind {
        AccountKind::Account => objects
            .get::<Account>(&account.object_ref())
            .map(|account| account.access().base_url.clone()),
        AccountKind::ClusterAccount => objects
            .get::<ClusterAccount>(&account.object_ref())
            .map(|account| account.access().base_url.clone()),
    };
    let guess = assumed_key_secret(key, &base_url.unwrap_or_default());
    secrets.assume(
        (
            key.namespace().unwrap_or_default(),
            key.spec.secret.name.clone(),
        ),
        guess,
    );
}
