//! All kinds, once. Whatever does something with every kind visits them here: the stores and watches, the wake-ups, what
//! start-up waits for, the dependents of an account, the brake, the tests.

use super::account::Accounts;
use super::compute::Computes;
use super::environment::{KindVisitor, Kinds};
use super::key::ProjectKeys;
use crate::api::{Account, ClusterAccount};

/// The kinds that the operator reconciles.
#[derive(Debug)]
pub struct AllKinds;

impl Kinds for AllKinds {
    fn each<V: KindVisitor>(visitor: &mut V) {
        visitor.visit::<Accounts<Account>>();
        visitor.visit::<Accounts<ClusterAccount>>();
        visitor.visit::<Computes>();
        visitor.visit::<ProjectKeys>();
    }
}
