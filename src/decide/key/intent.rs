//! The record of a new key that is written before the key is created.

use jiff::Timestamp;

use super::super::identity::KeyIntent;
use super::super::names;
use super::{Case, rotation};

/// What happens to the key that a new one replaces.
#[derive(Clone, Copy)]
pub(super) enum Retiring {
    /// It cannot be used, and is revoked then.
    At(Timestamp),
    /// It can be used, and is revoked then at the earliest.
    Rotated(Timestamp),
    /// It is revoked already.
    Done,
}

/// The part of a key's name that people choose.
pub(super) fn readable(case: &Case) -> String {
    case.spec.key_name.clone().unwrap_or_else(|| names::shortened(&case.observed.meta.name))
}

/// The intent of a new key.
pub(super) fn intent(case: &Case, retiring: Option<Retiring>) -> KeyIntent {
    KeyIntent {
        name: names::unique(&readable(case), &case.observed.cluster, &case.observed.uid, case.observed.draw),
        at: case.now,
        retire_previous_at: match retiring {
            Some(Retiring::At(time) | Retiring::Rotated(time)) => Some(time),
            Some(Retiring::Done) | None => None,
        },
        previous_revoked: matches!(retiring, Some(Retiring::Done)),
        organization: case.organization().map(str::to_owned),
        rotates: matches!(retiring, Some(Retiring::Rotated(_))),
        requested: rotation::request(case),
    }
}
