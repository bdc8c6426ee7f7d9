//! Effects of an observation itself, independent of the decision.

use kube::runtime::reflector::ObjectRef;

use crate::api::{Compute, Known};
use crate::controller::object::AccountName;
use crate::controller::state::AccountEntry;
use crate::decide::Memory;

/// The input of a decision, and what follows from it.
#[derive(Debug)]
pub struct Observation<O, P> {
    pub observed: O,
    pub effects: Effects<P>,
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
