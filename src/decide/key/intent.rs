//! The record of a new key that is written before the key is created.

use jiff::Timestamp;

use super::super::identity::KeyIntent;
use super::super::names::{self, ClusterId};
use super::super::seal::ObjectKey;
use super::{Case, rotation};
use crate::api::ProjectKeySpec;

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
    chosen(case.spec, &case.observed.meta.name)
}

fn chosen(spec: &ProjectKeySpec, name: &str) -> String {
    spec.key_name.clone().unwrap_or_else(|| names::shortened(name))
}

/// How the names begin of all keys that a resource may have created in this cluster.
pub fn attempts(spec: &ProjectKeySpec, object_key: ObjectKey, cluster: &ClusterId) -> String {
    names::attempts(&chosen(spec, object_key.name), cluster, object_key)
}

/// The intent of a new key.
pub(super) fn intent(case: &Case, retiring: Option<Retiring>) -> KeyIntent {
    KeyIntent {
        name: names::unique(
            &readable(case),
            &case.observed.cluster,
            case.observed.meta.object_key(),
            case.observed.draw,
        ),
        at: case.now,
        retire_previous_at: match retiring {
            Some(Retiring::At(time) | Retiring::Rotated(time)) => Some(time),
            Some(Retiring::Done) | None => None,
        },
        previous_revoked: matches!(retiring, Some(Retiring::Done)),
        organization: case.organization().map(str::to_owned),
        platform: case.observed.platform.clone(),
        rotates: matches!(retiring, Some(Retiring::Rotated(_))),
        replaces_working: retiring.is_some() && rotation::is_seen_to_work(case),
        requested: request(case),
    }
}

/// What people ask with is recorded as it is, up to this length.
const LONGEST_REQUEST: usize = 64;

/// What people ask for another key with, as it is recorded.
pub(super) fn request(case: &Case) -> Option<String> {
    let text = case.observed.rotate.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
    Some(if text.len() <= LONGEST_REQUEST { text.to_owned() } else { names::digest(text) })
}
