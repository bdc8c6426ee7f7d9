//! A new key is tried before it takes the place of one that works: a key that the platform refuses is never switched to. Meanwhile
//! its secret is in memory alone; if the process dies, the key is found by its name, revoked, and another one is created.

use jiff::Timestamp;

use super::super::identity::{KeyIdentity, LostBecause, LostKey};
use super::super::memory::Backoff;
use super::super::{Action, Decision, Reason, Report, Sync, YOUNG_KEY, later};
use super::outcome::with_lost;
use super::upkeep::ready;
use super::{Case, Choice, KeySecretView, KeyStep, Probe, SecretContents, YOUNG_AGAIN};
use crate::domain::Fault;

/// What the platform's answer to a new key shows; an error where it shows nothing.
///
/// # Errors
/// The fault, where it says nothing of the key.
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
        // Whoever is told what it may not do was recognized.
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

/// What comes before the new key is written over one that works; `None` where nothing does.
pub(super) fn before_switch(case: &Case, key: &KeyIdentity) -> Option<Choice> {
    let current = working(case)?;
    let settle = case.observed.limits.settle;
    // Another process may take the creation for interrupted at the end of the settle time.
    let saved_by = later(key.at, settle / 2);
    let given_up_by = later(key.at, settle.max(YOUNG_KEY + YOUNG_AGAIN));
    let again = match case.observed.unsaved_probe {
        Probe::Accepted(_) => return None,
        probe if probe.is_revoked() => return give_up(case, key, current),
        // It is not known to be accepted, and cannot be kept in memory for ever.
        Probe::Refused { .. } if given_up_by <= case.now => return give_up(case, key, current),
        Probe::NotAsked(_) if saved_by <= case.now => return None,
        probe @ Probe::Refused { at, .. } => Some(later(at, probe.again_after())),
        Probe::NotAsked(_) => None,
    };
    let until = if again.is_some() { given_up_by } else { saved_by };
    if let Some(Backoff { health, until: pause }) = case.backoff(Action::TryKey) {
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
        Some(again) => {
            Some(Decision::wait(report.with_sync(Sync::OutOfSync(Reason::NewKeyRefused, message)), again.min(until)))
        }
        None => Some(Decision::act(KeyStep::TryUnsaved, report)),
    }
}

/// The key in use, where it is in the Secret and, as far as is known, accepted.
fn working<'a>(case: &'a Case) -> Option<&'a KeyIdentity> {
    let current = case.identity.records.current.as_ref()?;
    let intent = case.identity.intent.as_ref()?;
    let is_there = matches!(&case.secret, KeySecretView::Ours(SecretContents::Key { key, .. }) if key.id == current.id);
    let is_refused = intent.previous_revoked || matches!(case.observed.probe, Probe::Refused { .. });
    (is_there && !is_refused).then_some(current)
}

/// The refused key is recorded as lost, which has it revoked, and the attempt is over.
fn give_up(case: &Case, key: &KeyIdentity, current: &KeyIdentity) -> Option<Choice> {
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
    Some(Decision::act(KeyStep::GiveUpRefused { records, message }, ready(case, current)))
}
