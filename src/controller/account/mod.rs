//! Account and ClusterAccount: one implementation for both.

pub mod dependents;
pub mod gather;
mod perform;

use std::marker::PhantomData;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Api, Client, Resource, ResourceExt};

use super::environment::{Environment, Kind, StepError};
use super::object::{AccountName, Managed, Status, namespaced};
use super::state::{AccountEntry, Connection};
use crate::api::{Account, AccountKind, AccountStatus, ClusterAccount, Condition, PlatformAccess};
use crate::decide::account::{self, AccountObserved, AccountStep};
use crate::decide::{Decision, Report};

impl Managed for Account {
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        namespaced(client, namespace)
    }
}

impl Managed for ClusterAccount {
    fn api<O>(client: &Client, _: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        Api::all(client.clone())
    }
}

impl Status for AccountStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn observed_generation_mut(&mut self) -> &mut Option<i64> {
        &mut self.observed_generation
    }

    fn handled_reconcile(&self) -> Option<&String> {
        self.last_handled_reconcile_at.as_ref()
    }
}

/// An Account or a ClusterAccount.
pub trait AnyAccount: Managed + HasStatus<Status = AccountStatus> {
    fn account_name(&self) -> AccountName;
    fn access(&self) -> &PlatformAccess;
    fn credential(&self) -> CredentialRef;
}

/// The Secret entry that holds an account's API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRef {
    pub namespace: String,
    pub name: String,
    pub key: String,
}

impl AnyAccount for Account {
    fn account_name(&self) -> AccountName {
        AccountName {
            kind: AccountKind::Account,
            namespace: self.namespace(),
            name: self.name_any(),
        }
    }

    fn access(&self) -> &PlatformAccess {
        &self.spec.platform
    }

    fn credential(&self) -> CredentialRef {
        let reference = &self.spec.api_key_secret_ref;
        CredentialRef {
            namespace: self.namespace().unwrap_or_default(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}

impl AnyAccount for ClusterAccount {
    fn account_name(&self) -> AccountName {
        AccountName {
            kind: AccountKind::ClusterAccount,
            namespace: None,
            name: self.name_any(),
        }
    }

    fn access(&self) -> &PlatformAccess {
        &self.spec.platform
    }

    fn credential(&self) -> CredentialRef {
        let reference = &self.spec.api_key_secret_ref;
        CredentialRef {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}

/// The kind of accounts `A`.
#[derive(Debug)]
pub struct Accounts<A>(PhantomData<fn() -> A>);

/// The input of a decision, and the connection that belongs to it.
#[derive(Debug)]
pub struct Facts<P> {
    observed: AccountObserved,
    connection: Option<Arc<Connection<P>>>,
}

impl<A: AnyAccount> Kind for Accounts<A> {
    type Object = A;
    type Facts<E: Environment> = Facts<E::Client>;
    type Observed = AccountObserved;
    type Step = AccountStep;
    const IS_ACCOUNT: bool = true;

    async fn gather<E: Environment>(
        env: &E,
        object: &A,
        _now: Timestamp,
    ) -> Result<Facts<E::Client>, kube::Error> {
        gather::gather(env, object).await
    }

    fn assemble<E: Environment>(_object: &A, facts: &Facts<E::Client>) -> AccountObserved {
        facts.observed.clone()
    }

    fn decide(_object: &A, observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
        account::decide(observed, now)
    }

    fn invalidate<E: Environment>(env: &E, object: &A) {
        env.state().check_wanted(&object.account_name());
    }

    fn announce<E: Environment>(
        env: &E,
        object: &A,
        facts: &Facts<E::Client>,
        observed: &AccountObserved,
    ) {
        let entry = AccountEntry {
            connection: facts
                .connection
                .clone()
                .map(|connection| remembering(connection, observed)),
            gone: account::gone(observed),
            availability: account::availability(observed),
            protected: account::is_protected(observed),
            many_keys: account::has_many_keys(observed),
            generation: observed.meta.generation,
        };
        let name = object.account_name();
        if env.state().publish_account(&name, entry) {
            dependents::wake(env, &name);
        }
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &A,
        step: &AccountStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, *step).await
    }

    fn status(
        report: &Report,
        object: &A,
        observed: &AccountObserved,
        now: Timestamp,
    ) -> AccountStatus {
        let old = object.status().cloned().unwrap_or_default();
        account::status(report, observed, &old, now)
    }

    fn credentials(object: &A) -> Option<(String, String)> {
        let CredentialRef {
            namespace, name, ..
        } = object.credential();
        Some((namespace, name))
    }

    fn on_deleted<E: Environment>(env: &E, object: &A) {
        let name = object.account_name();
        env.state().forget_account(&name);
        dependents::wake(env, &name);
    }
}

/// Adds the projects that were seen through the connection. The status has them only while the
/// Secret keeps its version.
fn remembering<P: Clone>(
    connection: Arc<Connection<P>>,
    observed: &AccountObserved,
) -> Arc<Connection<P>> {
    let seen = account::seen(observed)
        .map(|seen| seen.projects)
        .unwrap_or_default();
    match connection.seen == seen {
        true => connection,
        false => Arc::new(Connection {
            seen,
            ..connection.as_ref().clone()
        }),
    }
}
