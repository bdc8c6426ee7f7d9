//! Tries a new key before it replaces a working one, so that a refused key is never switched to.
//! Until then its secret is only in memory. If the process dies, the next one finds the key by its
//! name, revokes it, and creates another.

use jiff::Timestamp;

use super::outcome::with_lost;
use super::upkeep::ready;
use super::{KeyCase, KeyDecision, KeySecretView, KeyStep, Probe, SecretContents, YOUNG_AGAIN};
use crate::decide::identity::{KeyIdentity, LostBecause, LostKey};
use crate::decide::memory::Backoff;
use crate::decide::{Action, Decision, Reason, Report, Sync, YOUNG_KEY, later};
use crate::domain::Fault;

/// Interprets the platform's answer to a new key.
///
/// # Errors
/// The fault, if it says nothing about the key.
pub fn tried(before: Probe, answer: Result<(), Fault>, now: Timestamp) -> Result<Probe, Fault> {
    match answer {
        Ok(()) => Ok(Probe::Accepted(now)),
        Err(Fault::Unauthorized { .. }) => Ok(before.refused(now)),
        Err(
            fault @ (Fault::KeyInDoubt { .. }
            | Fault::Busy { .. }
            | Fault::Throttled { .. }
            | Fault::Gateway { .. }
            | Fault::Server { .. }
            | Fault::Transport { .. }
            | Fault::Unknown { .. }
            | Fault::Undecodable { .. }),
        ) => Err(fault),
        // A permission error shows that the platform recognized the key.
        Err(
            Fault::Forbidden { .. }
            | Fault::NotFound { .. }
            | Fault::Unsupported { .. }
            | Fault::Conflict { .. }
            | Fault::Rejected { .. }
            | Fault::TooLarge { .. }
            | Fault::OtherKey { .. },
        ) => Ok(Probe::Accepted(now)),
    }
}

/// The step before the new key overwrites a working one; `None` if nothing is left to do.
pub(super) fn before_switch(case: &KeyCase, key: &KeyIdentity) -> Option<KeyDecision> {
    let current = working(case)?;
    let settle = case.observed.limits.settle;
    // At the end of the settle time, another process may take the creation for interrupted.
    let saved_by = later(key.at, settle / 2);
    let given_up_by = later(key.at, settle.max(YOUNG_KEY + YOUNG_AGAIN));
    let again = match case.observed.unsaved_probe {
        Probe::Accepted(_) => return None,
        probe if probe.is_revoked() => return give_up(case, key, current),
        // It is not known to be accepted, and must not stay in memory forever.
        Probe::Refused { .. } if given_up_by <= case.now => return give_up(case, key, current),
        Probe::NotAsked(_) if saved_by <= case.now => return None,
        probe @ Probe::Refused { at, .. } => Some(later(at, probe.again_after())),
        Probe::NotAsked(_) => None,
    };
    let until = if again.is_some() {
        given_up_by
    } else {
        saved_by
    };
    if let Some(Backoff {
        health,
        until: pause,
    }) = case.backoff(Action::TryKey)
    {
        let failed = Report::of(health);
        let (reason, message) = failed.headline();
        let report = ready(case, current).with_sync(Sync::OutOfSync(reason, message.to_owned()));
        return Some(Decision::wait(report, pause.min(until)));
    }
    let message = format!(
        "The platform does not accept the new key {}. dbplane asks it again. Key {} stays in use.",
        key.name, current.name
    );
    let report = ready(case, current);
    match again.filter(|again| case.now < *again) {
        Some(again) => Some(Decision::wait(
            report.with_sync(Sync::OutOfSync(Reason::NewKeyRefused, message)),
            again.min(until),
        )),
        None => Some(Decision::act(KeyStep::TryUnsaved, report)),
    }
}

/// The key in use, if it is in the Secret and not known to be refused.
fn working<'a>(case: &'a KeyCase) -> Option<&'a KeyIdentity> {
    let current = case.identity.records.current.as_ref()?;
    let intent = case.identity.intent.as_ref()?;
    let is_there = matches!(&case.secret, KeySecretView::Ours(SecretContents::Key { key, .. }) if key.id == current.id);
    let is_refused =
        intent.previous_revoked || matches!(case.observed.probe, Probe::Refused { .. });
    (is_there && !is_refused).then_some(current)
}

/// Records the refused key as lost, which leads to its revocation, and ends the attempt.
fn give_up(case: &KeyCase, key: &KeyIdentity, current: &KeyIdentity) -> Option<KeyDecision> {
    let intent = case.identity.intent.as_ref()?;
    let lost = LostKey {
        id: Some(key.id),
        name: key.name.clone(),
        since: key.at,
        because: LostBecause::Refused,
        unlisted: None,
    };
    let message = format!(
        "The platform does not accept the new key {} ({}) that it has created. Key {} stays in use.",
        key.name, key.id, current.name
    );
    let records = with_lost(&case.identity.records.of(intent), lost);
    Some(Decision::act(
        KeyStep::GiveUpRefused { records, message },
        ready(case, current),
    ))
}
