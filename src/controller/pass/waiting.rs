//! How many resources wait for a time or for a person although nothing is wrong with them.

use super::super::environment::Environment;
use super::super::object::{Managed, uid};
use crate::decide::Reason;

/// Notes what a resource waits for now.
pub fn note<K: Managed, E: Environment>(env: &E, object: &K, reason: Option<Reason>) {
    let kind = K::kind(&());
    for (reason, count) in env.state().waits(&uid(object), &kind, reason) {
        env.count_waiting(&kind, reason, count);
    }
}
