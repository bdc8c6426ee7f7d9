//! The intent of a new key, which is recorded before the key is created.

use jiff::Timestamp;

use super::{KeyCase, rotation};
use crate::api::ProjectKeySpec;
use crate::decide::identity::KeyIntent;
use crate::decide::names::{self, ClusterId};
use crate::decide::seal::ObjectKey;

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

/// The part of a key's name that users choose.
pub(super) fn readable(case: &KeyCase) -> String {
    chosen(case.spec, &case.observed.meta.name)
}

fn chosen(spec: &ProjectKeySpec, name: &str) -> String {
    spec.key_name
        .clone()
        .unwrap_or_else(|| names::shortened(name))
}

/// The common beginning of the names of all keys that a resource may have created in this cluster.
pub fn attempts(spec: &ProjectKeySpec, object_key: ObjectKey, cluster: &ClusterId) -> String {
    names::attempts(&chosen(spec, object_key.name), cluster, object_key)
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
        replaces_working: retiring.is_some() && rotation::is_seen_to_work(case),
        requested: request(case),
    }
}

/// A request up to this length is recorded as it is, a longer one as its digest.
const LONGEST_REQUEST: usize = 64;

/// The recorded form of a user's request for another key.
pub(super) fn request(case: &KeyCase) -> Option<String> {
    let text = case
        .observed
        .rotate
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())?;
    Some(if text.len() <= LONGEST_REQUEST {
        text.to_owned()
    } else {
        names::digest(text)
    })
}
