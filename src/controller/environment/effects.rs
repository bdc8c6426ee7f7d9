//! Effects of an observation itself, independent of the decision.

use kube::runtime::reflector::ObjectRef;

use super::Environment;
use crate::api::{Compute, Known};
use crate::controller::object::{AccountName, Managed, uid};
use crate::controller::state::AccountEntry;
use crate::decide::{AccountView, Memory, Meta, Observed};

/// The input of a decision, and what follows from it.
#[derive(Debug)]
pub struct Observation<T, P> {
    pub observed: Observed<T>,
    pub effects: Effects<P>,
}

/// Adds the part that is the same for every kind to the facts of one kind.
pub fn observed<K: Managed, T, E: Environment>(
    env: &E,
    object: &K,
    meta: Meta,
    account: AccountView,
    facts: T,
) -> Observed<T> {
    let uid = uid(object).clone();
    let settings = env.settings();
    Observed {
        meta,
        account,
        memory: env.state().memory(&uid),
        limits: settings.limits,
        cluster: settings.cluster.clone(),
        random: env.random(),
        uid,
        facts,
    }
}

/// `observe` returns the effects as a value, and the pass applies them.
#[derive(Debug)]
pub struct Effects<P> {
    /// The updated memory of the resource.
    pub memory: Option<Memory>,
    /// The updated entry of an account; its dependents are requeued if it differs.
    pub account: Option<(AccountName, AccountEntry<P>)>,
    /// The object shows the result of its create, so its reservation ends.
    pub ends_reservation: bool,
    pub requeue_accounts: Vec<AccountName>,
    pub requeue_compute: Option<ObjectRef<Known<Compute>>>,
}

impl<P> Default for Effects<P> {
    fn default() -> Self {
        Self {
            memory: None,
            account: None,
            ends_reservation: false,
            requeue_accounts: Vec::new(),
            requeue_compute: None,
        }
    }
}
