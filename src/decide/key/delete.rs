//! The deletion of a ProjectKey: all of its keys are revoked first.

use super::in_use;
use super::manual_revocation::{acknowledged, to_revoke_by_hand};
use super::outcome::{
    KeyCreation, NamedKey, Revocation, create_outcome, give_up, keys, not_resolved, revocation,
    revoke_unrecorded, stray, without,
};
use super::unlisted;
use super::{
    KeyCase, KeyDecision, KeyListing, KeyObserved, KeySecretView, KeyStep, Probe, SecretContents,
};
use crate::api::KeyDeletion;
use crate::decide::identity::{KeyIntent, KeyRecords};
use crate::decide::released::gone_with_its_project;
use crate::decide::{AccountView, Action, Decision, Reason, Report, later, paused};

pub(super) fn decide(case: &KeyCase) -> KeyDecision {
    if !case.observed.meta.has_finalizer {
        return Decision::rest(deleting());
    }
    if let Some(paused) = paused(&case.observed.meta) {
        return Decision::rest(paused);
    }
    let records = &case.identity.records;
    if let Some(recorded) = unrecorded(case) {
        return Decision::act(recorded, deleting());
    }
    // Kubernetes deletes a Secret with its owner. A Secret that cannot be adopted stays.
    if let Some(step) = case.adopt_step()
        && case.backoff(Action::WriteSecret).is_none()
    {
        return Decision::act(step, deleting());
    }
    if case.identity.intent.is_none()
        && let Some(choice) = acknowledged(case)
    {
        return choice;
    }
    let none = records.current.is_none()
        && records.previous.is_empty()
        && records.lost.is_empty()
        && case.identity.intent.is_none();
    let orphaned = case.spec.deletion == KeyDeletion::Orphan;
    if !none
        && (orphaned || case.identity.intent.is_none())
        && let Some(choice) = in_use::waits(case)
    {
        return choice;
    }
    if orphaned || none {
        return Decision::act(KeyStep::RemoveFinalizer, deleting());
    }
    match &case.observed.account {
        AccountView::Pending => return Decision::silent(),
        AccountView::Usable { organization: None } => {
            return Decision::rest(or_orphan(case.no_organization()));
        }
        account => {
            if let Some(obstacle) = account.obstacle() {
                return Decision::rest(or_orphan(Report::of(obstacle)));
            }
        }
    }
    if let Some(choice) = case.wrong_account() {
        return Decision {
            report: choice.report.map(or_orphan),
            ..choice
        };
    }
    if let Some(choice) = unlisted::noted(case) {
        return choice;
    }
    match &case.identity.intent {
        Some(intent) => resolve(case, intent),
        None => revoke_next(case, records),
    }
}

/// Records a key in memory that the record lacks. It will be revoked, so its Secret is not written.
fn unrecorded(case: &KeyCase) -> Option<KeyStep> {
    let key = case.observed.unsaved.as_ref()?;
    let records = &case.identity.records;
    if records.names().any(|name| name == key.name) {
        return None;
    }
    let intent = match &case.identity.intent {
        Some(intent) if intent.name == key.name => intent.clone(),
        Some(_) => return Some(case.give_up_unsaved(key)),
        // Its platform was recorded with the intent, which is gone.
        None => KeyIntent {
            at: key.at,
            organization: case.organization().cloned(),
            ..KeyIntent::default()
        },
    };
    Some(KeyStep::Record {
        records: records.succeeded_by(key.clone(), &intent),
        event: None,
    })
}

/// Resolves an interrupted creation: records its key, which is then revoked like any other.
fn resolve(case: &KeyCase, intent: &KeyIntent) -> KeyDecision {
    let records = &case.identity.records;
    if let KeySecretView::Ours(SecretContents::Key { key, .. }) = &case.secret
        && key.name == intent.name
    {
        let records = records.found_in_secret(key, intent);
        return Decision::act(
            KeyStep::Record {
                records,
                event: None,
            },
            deleting(),
        );
    }
    match create_outcome(case, intent) {
        KeyCreation::NotRead => case.act(Action::ListKeys, KeyStep::ListKeys, deleting()),
        KeyCreation::NotCreated | KeyCreation::NotListed => Decision::act(
            KeyStep::Record {
                records: records.clone(),
                event: None,
            },
            deleting(),
        ),
        KeyCreation::NotKnownYet(until) => Decision::wait(deleting(), until),
        KeyCreation::Unclear(entry) => Decision::rest(or_orphan(not_resolved(entry, intent))),
        KeyCreation::Exists(id) | KeyCreation::Other(id) => {
            Decision::act(give_up(case, Some(id), intent), deleting())
        }
        KeyCreation::ListNotOffered => Decision::act(give_up(case, None, intent), deleting()),
    }
}

/// Revokes one key after another. Keys that dbplane must not revoke do not delay the others.
fn revoke_next(case: &KeyCase, records: &KeyRecords) -> KeyDecision {
    if case.cannot_revoke() {
        return without_revoke_call(case, records);
    }
    if let Some(key) = stray(case) {
        return case.act(Action::Revoke, revoke_unrecorded(case, key), deleting());
    }
    let (mut others, mut not_ours, mut hidden) = (Vec::new(), Vec::new(), None);
    for key in keys(records) {
        match revocation(case, key) {
            Revocation::Step(Some(action), step) => return case.act(action, step(), deleting()),
            Revocation::Step(None, step) => return Decision::act(step(), deleting()),
            Revocation::NotOurs(message) => not_ours.push(message),
            Revocation::OfAnotherCluster | Revocation::NotOffered => others.push(key.name),
            Revocation::Unclear(report) => hidden = Some(*report),
        }
    }
    if let Some(report) = hidden {
        return Decision::rest(or_orphan(report));
    }
    let by_hand = to_revoke_by_hand(case, others);
    if by_hand.is_none() && not_ours.is_empty() {
        return Decision::act(KeyStep::RemoveFinalizer, deleting());
    }
    let reason = by_hand
        .as_ref()
        .map_or(Reason::BindingConflict, |(reason, _)| *reason);
    not_ours.extend(by_hand.map(|(_, message)| message));
    Decision::rest(or_orphan(Report::stalled(reason, not_ours.join(" "))))
}

/// Returns true if the resource may wait for a user, or for the platform to refuse its key. Once
/// its project is gone, that wait may never end.
pub fn may_miss_its_project(observed: &KeyObserved) -> bool {
    observed.meta.deleting
        && observed.meta.has_finalizer
        && observed.listing == KeyListing::NotOffered
}

/// Releases the resource: the project is gone, and no key reaches it.
fn release(case: &KeyCase, records: &KeyRecords) -> KeyDecision {
    let names: Vec<&str> = keys(records).map(|key| key.name).collect();
    let what = format!("API key {}", names.join(", "));
    let event = gone_with_its_project(&case.spec.project_id, &what);
    Decision::act(KeyStep::ReleaseWithProject { event }, deleting())
}

/// Without a call to revoke keys, checks the key until the platform refuses it.
fn without_revoke_call(case: &KeyCase, records: &KeyRecords) -> KeyDecision {
    if case.observed.project_gone {
        return release(case, records);
    }
    let asked = records.current.as_ref().filter(|current| {
        case.key_with_secret()
            .is_some_and(|key| key.id == current.id)
    });
    if asked.is_none() {
        return Decision::rest(manual_report(case));
    }
    match case.observed.probe {
        probe if probe.is_revoked() => {
            let records = asked.map_or_else(|| records.clone(), |key| without(records, &key.name));
            Decision::act(
                KeyStep::Record {
                    records,
                    event: None,
                },
                deleting(),
            )
        }
        probe @ (Probe::Accepted(at) | Probe::Refused { at, .. } | Probe::NotAsked(Some(at)))
            if case.now < later(at, probe.again_after()) =>
        {
            Decision::wait(manual_report(case), later(at, probe.again_after()))
        }
        Probe::Accepted(_) | Probe::Refused { .. } | Probe::NotAsked(_) => {
            Decision::act(KeyStep::Probe, manual_report(case))
        }
    }
}

fn deleting() -> Report {
    Report::progressing(Reason::Deleting, "The key is being revoked.")
}

/// Adds the advice to orphan the keys.
fn or_orphan(report: Report) -> Report {
    let advice = "To delete the resource and keep its keys valid, set spec.deletion to Orphan.";
    Report::of(report.health.saying_also(advice))
}

fn manual_report(case: &KeyCase) -> Report {
    let all: Vec<NamedKey> = keys(&case.identity.records).collect();
    let with_secret = case.key_with_secret().map(|key| key.id);
    let unseen: Vec<&str> = all
        .iter()
        .filter(|key| key.id.is_none() || key.id != with_secret)
        .map(|key| key.name)
        .collect();
    let message = |instructions: String| {
        let outlook = if unseen.is_empty() {
            "The resource is deleted once the platform refuses the key.".to_owned()
        } else {
            format!(
                "dbplane cannot check this for {}, because it does not have the secret.",
                unseen.join(", ")
            )
        };
        format!(
            "This platform offers no call to revoke keys, or not to these credentials. {instructions} {outlook}"
        )
    };
    match to_revoke_by_hand(case, all.iter().map(|key| key.name)) {
        Some((reason, instructions)) => or_orphan(Report::stalled(reason, message(instructions))),
        None => deleting(),
    }
}
