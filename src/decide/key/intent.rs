//! The intent of a new key, which is recorded before the key is created.

use jiff::Timestamp;

use super::KeyCase;
use super::naming::readable;
use super::rotation::{is_seen_to_work, request};
use crate::decide::identity::KeyIntent;
use crate::decide::names;

/// The fate of the replaced key.
#[derive(Clone, Copy)]
pub(super) enum Retiring {
    /// It is not usable, and is revoked at that time.
    At(Timestamp),
    /// It is usable, and is revoked at that time at the earliest.
    Rotated(Timestamp),
    /// It is already revoked.
    Done,
}

pub(super) fn intent(case: &KeyCase, retiring: Option<Retiring>) -> KeyIntent {
    KeyIntent {
        name: names::unique(
            &readable(case),
            &case.observed.cluster,
            case.observed.meta.object_key(),
            case.observed.random,
        ),
        at: case.now,
        retire_previous_at: match retiring {
            Some(Retiring::At(time) | Retiring::Rotated(time)) => Some(time),
            Some(Retiring::Done) | None => None,
        },
        previous_revoked: matches!(retiring, Some(Retiring::Done)),
        organization: case.organization().cloned(),
        platform: case.observed.platform.clone(),
        rotates: matches!(retiring, Some(Retiring::Rotated(_))),
        replaces_working: retiring.is_some() && is_seen_to_work(case),
        requested: request(case),
    }
}
