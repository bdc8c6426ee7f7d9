//! Keys whose secret never arrived. Each creation attempt may leave one, so they are revoked before
//! the next attempt. If dbplane cannot revoke them, the attempts stop.

use super::manual_revocation::to_revoke_by_hand;
use super::outcome::{NamedKey, Revocation, revocation, revoke_unrecorded, twin};
use super::{KeyCase, KeyDecision};
use crate::decide::identity::LostBecause;
use crate::decide::{Action, Decision, Reason, Report};

/// The maximum number of such keys that dbplane cannot revoke.
const MOST: usize = 3;

/// The step or wait before another key is created; `None` if there is none.
pub(super) fn before_another(case: &KeyCase, report: &Report) -> Option<KeyDecision> {
    if let Some(key) = twin(case) {
        return Some(case.act(Action::Revoke, revoke_unrecorded(case, key), report.clone()));
    }
    for key in &case.identity.records.lost {
        match revocation(case, NamedKey::lost(key)) {
            Revocation::Step(Some(action), step) => {
                return Some(case.act(action, step(), report.clone()));
            }
            Revocation::Step(None, step) => return Some(Decision::act(step(), report.clone())),
            Revocation::Unclear(report) => return Some(Decision::rest(*report)),
            Revocation::NotOurs(_) | Revocation::OfAnotherCluster | Revocation::NotOffered => {}
        }
    }
    too_many(case).map(Decision::rest)
}

/// Why no further key is created.
pub(super) fn too_many(case: &KeyCase) -> Option<Report> {
    let lost = case
        .identity
        .records
        .lost
        .iter()
        .filter(|key| key.because != LostBecause::Retired);
    let left: Vec<&str> = lost
        .map(|key| key.name.as_str())
        .filter(|name| case.issued(name))
        .collect();
    let count = left.len();
    if count < MOST {
        return None;
    }
    let (_, message) = to_revoke_by_hand(case, left.iter().copied())?;
    let why = format!(
        "{count} creations in a row left a key without its secret, so dbplane creates no further one."
    );
    Some(Report::stalled(
        Reason::RevocationUnsupported,
        format!("{why} {message}"),
    ))
}
