//! The bounds that are explored: small ones in every run of the tests, and large ones in `make
//! verify`.

mod large;
mod mutations;
mod small;

use dbplane::api::AccountKind;

use super::bound::{Bound, Subject};

pub use mutations::mutations;

/// Two Computes with a brake have between four and five million states.
const MOST: usize = 6_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Small,
    Large,
}

/// A bound with some of its fields changed: one line for each row of a table.
macro_rules! bound {
    ($base:expr; $($field:ident: $value:expr),+) => {
        Bound {
            $($field: $value,)+
            ..$base
        }
    };
}
use bound;

/// The bounds within which every promise must hold.
pub fn bounds(extent: Extent) -> Vec<Bound> {
    match extent {
        Extent::Small => small::small(),
        Extent::Large => small::small()
            .into_iter()
            .chain(large::large())
            .map(|bound| bound!(bound; most: MOST))
            .collect(),
    }
}

fn compute() -> Bound {
    of_computes(1, false)
}

/// A Compute on a platform that keeps names.
fn named_compute() -> Bound {
    of_computes(1, true)
}

fn two_computes() -> Bound {
    of_computes(2, false)
}

fn two_named_computes() -> Bound {
    of_computes(2, true)
}

fn three_computes() -> Bound {
    of_computes(3, false)
}

fn of_computes(count: usize, marks: bool) -> Bound {
    Bound::of(Subject::Computes { count, marks })
}

fn key() -> Bound {
    Bound::of(Subject::Key { revoke: true })
}

/// A ProjectKey on a platform that neither lists nor revokes keys.
fn minimal_key() -> Bound {
    Bound::of(Subject::Key { revoke: false })
}

/// The same resource with passes over its account.
fn with_account(bound: Bound, kind: AccountKind) -> Bound {
    bound!(bound; account: Some(kind))
}

/// With a brake on deletions, whose memory is in statuses.
fn braked(bound: Bound) -> Bound {
    bound!(bound; deletions: 2, deletes_per_minute: 1, ticks: 1)
}
