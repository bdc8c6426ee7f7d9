//! Account and ClusterAccount: one implementation for both.

mod observe;
mod perform;

use std::marker::PhantomData;

use jiff::Timestamp;

use super::accounts::Entry;
use super::any_account::AnyAccount;
use super::kind::{Kind, StepError};
use super::{Context, dependents};
use crate::api::AccountStatus;
use crate::decide::account::{self, AccountObserved, AccountStep};
use crate::decide::{Decision, Memory, Report};

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
            availability: account::availability(&observed.account),
            protected: account::is_protected(&observed.account),
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
