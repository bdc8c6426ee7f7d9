//! Account and ClusterAccount: one implementation for both.

pub mod dependents;
pub mod observe;
mod perform;

use std::marker::PhantomData;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::object::HasStatus;

use super::environment::{Environment, Kind, Observation, Relations, StepError};
use super::object::{AccountName, Managed};
use crate::api::{Account, AccountKind, AccountStatus, ClusterAccount, Known, PlatformAccess};
use crate::decide::account::{self, AccountFacts, AccountObserved, AccountStep};
use crate::decide::{Decision, Report};

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

impl AnyAccount for Known<Account> {
    fn account_name(&self) -> AccountName {
        AccountName {
            kind: AccountKind::Account,
            namespace: Some(self.namespace().to_owned()),
            name: self.name_any(),
        }
    }

    fn access(&self) -> &PlatformAccess {
        &self.spec.platform
    }

    fn credential(&self) -> CredentialRef {
        let reference = &self.spec.api_key_secret_ref;
        CredentialRef {
            namespace: self.namespace().to_owned(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}

impl AnyAccount for Known<ClusterAccount> {
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

impl<A: AnyAccount> Kind for Accounts<A> {
    type Object = A;
    type Facts = AccountFacts;
    type Step = AccountStep;
    const IS_ACCOUNT: bool = true;

    async fn observe<E: Environment>(
        env: &E,
        object: &A,
        _now: Timestamp,
    ) -> Result<Observation<AccountFacts, E::Client>, kube::Error> {
        observe::observe(env, object).await
    }

    fn decide(_object: &A, observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
        account::decide(observed, now)
    }

    fn invalidate<E: Environment>(env: &E, object: &A) {
        env.state().check_wanted(&object.account_name());
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

    fn relations(object: &A) -> Relations<'_> {
        let CredentialRef {
            namespace, name, ..
        } = object.credential();
        Relations {
            credentials: Some((namespace, name)),
            ..Relations::default()
        }
    }

    fn on_deleted<E: Environment>(env: &E, object: &A) {
        let name = object.account_name();
        env.state().forget_account(&name);
        dependents::wake(env, &name);
    }
}
