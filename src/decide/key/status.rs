//! The status of a ProjectKey.

use jiff::Timestamp;

use super::rotation::revoked_by;
use super::{KeyListing, KeyObserved, Probe};
use crate::api::{KeyRecord, ProjectKeySpec, ProjectKeyStatus};
use crate::decide::Report;
use crate::decide::identity::{KeyIdentity, KeyRecords};
use crate::domain::is_same_use;

pub fn status(
    report: &Report,
    observed: &KeyObserved,
    old: &ProjectKeyStatus,
    spec: &ProjectKeySpec,
    now: Timestamp,
) -> ProjectKeyStatus {
    let mut status = match &observed.identity {
        Ok(identity) => known(&identity.records, observed, old, spec),
        // The last known keys and the record stay: a user has to decide about both.
        Err(_) => old.clone(),
    };
    status.conditions = report.conditions(&old.conditions, observed.meta.generation, now);
    status.last_handled_reconcile_at = observed.meta.handled_reconcile(
        observed.probe != Probe::WANTED,
        old.last_handled_reconcile_at.as_ref(),
    );
    status.observed_generation =
        report.observed_generation(old.observed_generation, observed.meta.generation);
    status
}

/// The recorded keys, and the known facts about the key in use.
fn known(
    records: &KeyRecords,
    observed: &KeyObserved,
    old: &ProjectKeyStatus,
    spec: &ProjectKeySpec,
) -> ProjectKeyStatus {
    let current = records.current.as_ref();
    let (last_used_at, last_used_from) = last_use(current, observed, old);
    ProjectKeyStatus {
        key_id: current.map(|key| key.id),
        key_name: current.map(|key| key.name.clone()),
        created_at: current.and_then(|key| key.created_at),
        created_by: current.and_then(|key| key.created_by.clone()),
        secret_name: current.map(|_| spec.secret.name.clone()),
        last_used_at,
        last_used_from,
        rotated_at: records.rotated_at,
        previous_keys: records
            .previous
            .iter()
            .map(|key| KeyRecord {
                id: Some(key.id),
                name: key.name.clone(),
                since: key.since,
                revoke_at: Some(revoked_by(spec.rotation.as_ref(), key)),
            })
            .collect(),
        lost_keys: records
            .lost
            .iter()
            .map(|key| KeyRecord {
                id: key.id,
                name: key.name.clone(),
                since: key.since,
                revoke_at: None,
            })
            .collect(),
        acknowledged_keys: records
            .acknowledged
            .as_ref()
            .map(|known| known.keys.clone())
            .unwrap_or_default(),
        last_handled_rotate: records.rotated_for.clone(),
        record: old.record.clone(),
        ..ProjectKeyStatus::default()
    }
}

/// When and from where the key was last used. A use is reported once an hour and never withdrawn,
/// because a list may lag.
fn last_use(
    current: Option<&KeyIdentity>,
    observed: &KeyObserved,
    old: &ProjectKeyStatus,
) -> (Option<Timestamp>, Option<String>) {
    let Some(current) = current else {
        return (None, None);
    };
    let known = Some(old).filter(|old| old.key_id == Some(current.id));
    let known = known
        .map(|old| (old.last_used_at, old.last_used_from.clone()))
        .unwrap_or_default();
    let KeyListing::Read { keys, .. } = &observed.known else {
        return known;
    };
    let found = keys
        .shown()
        .iter()
        .find(|key| key.id == current.id)
        .filter(|key| key.last_used_at > known.0);
    match found.filter(|key| !is_same_use(key.last_used_at, known.0)) {
        Some(key) => (key.last_used_at, key.last_used_from.clone()),
        None => known,
    }
}
