//! Account and ClusterAccount: one implementation for both.

mod observe;
mod perform;

use std::marker::PhantomData;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Api, Client, ResourceExt};

use super::accounts::{AccountName, Entry};
use super::kind::{Kind, Managed, StepError, namespaced};
use super::{Context, dependents};
use crate::api::{Account, AccountKind, AccountStatus, ClusterAccount, PlatformAccess};
use crate::decide::account::{self, AccountObserved, AccountStep};
use crate::decide::{Decision, Memory, Report};

/// What Account and ClusterAccount have in common.
pub trait AnyAccount: Managed + HasStatus<Status = AccountStatus> {
    fn reference(&self) -> AccountName;
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

impl Managed for Account {
    fn api(&self, client: &Client) -> Api<Self> {
        namespaced(self, client)
    }
}

impl AnyAccount for Account {
    fn reference(&self) -> AccountName {
        AccountName { kind: AccountKind::Account, namespace: self.namespace(), name: self.name_any() }
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

impl Managed for ClusterAccount {
    fn api(&self, client: &Client) -> Api<Self> {
        Api::all(client.clone())
    }
}

impl AnyAccount for ClusterAccount {
    fn reference(&self) -> AccountName {
        AccountName { kind: AccountKind::ClusterAccount, namespace: None, name: self.name_any() }
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
    type Observed = Observed;
    type Step = AccountStep;

    async fn observe(context: &Context, object: &A, _now: Timestamp) -> Result<Observed, kube::Error> {
        observe::observe(context, object).await
    }

    fn decide(_object: &A, observed: &Observed, now: Timestamp) -> Decision<AccountStep> {
        account::decide(&observed.account, now)
    }

    async fn perform(context: &Context, object: &A, observed: &Observed, step: &AccountStep) -> Result<(), StepError> {
        perform::perform(context, object, observed, *step).await
    }

    fn status(report: &Report, object: &A, observed: &Observed, now: Timestamp) -> AccountStatus {
        let old = object.status().cloned().unwrap_or_default();
        account::status(report, &observed.account, &old, now)
    }

    fn remember(_observed: &mut Observed, _memory: Memory) {}

    fn conclude(context: &Context, object: &A, observed: &Observed) {
        let entry = Entry {
            handle: observed.handle.clone(),
            standing: account::standing(&observed.account),
            held: account::held(&observed.account),
            generation: observed.account.meta.generation,
        };
        let name = object.reference();
        if context.accounts.publish(&name, entry) {
            dependents::trigger(context, &name);
        }
    }
}

/// What a decision rests on, and the client that goes with it.
#[derive(Debug)]
pub struct Observed {
    pub account: AccountObserved,
    pub handle: Option<std::sync::Arc<super::accounts::Handle>>,
}
