//! A ProjectKey that hands its key over to another one, or takes one over.

use jiff::Timestamp;

use super::super::hand_over::{Given, Giver, HandsOver, LOOK_AGAIN, Source, give, needs_record, unnoticed};
use super::super::identity::{self, HandOverRecord, KeyIdentity, KeyRecords, Predecessor, ProjectKeyIdentity, Record};
use super::super::seal::InvalidAnnotation;
use super::super::{Action, Decision, Reason, Report, WATCHED, later};
use super::conflict::{claimed, claimed_key, foreign};
use super::outcome::stray;
use super::{Case, Choice, KeyListing, KeySecretView, KeyStep, SecretContents};
use crate::api::{HandOverTo, ObjectMeta, ProjectKey, TakeOverFrom};

impl HandsOver for ProjectKey {
    const KIND: &'static str = "ProjectKey";
    type Identity = ProjectKeyIdentity;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn hand_over_to(&self) -> Option<&HandOverTo> {
        self.spec.hand_over_to.as_ref()
    }

    fn take_over_from(&self) -> Option<&TakeOverFrom> {
        self.spec.take_over_from.as_ref()
    }

    fn recorded(&self) -> Result<Record<ProjectKeyIdentity>, InvalidAnnotation> {
        identity::of_key(self)
    }

    fn hand_over(identity: &ProjectKeyIdentity) -> &HandOverRecord {
        &identity.hand_over
    }

    fn hand_over_mut(identity: &mut ProjectKeyIdentity) -> &mut HandOverRecord {
        &mut identity.hand_over
    }

    fn has_something(identity: &ProjectKeyIdentity) -> bool {
        super::is_held(identity) && identity.hand_over.released.is_none()
    }

    fn is_same(one: &ProjectKeyIdentity, other: &ProjectKeyIdentity) -> bool {
        let theirs: Vec<&str> = other.names().collect();
        one.records.current.as_ref().is_some_and(|current| theirs.contains(&current.name.as_str()))
    }

    fn unfit(&self, from: &Self) -> Option<&'static str> {
        (self.spec.project_id != from.spec.project_id).then_some("is for another project")
    }
}

/// What is done about a hand-over to another resource; `None` where the resource is treated as any other.
pub(super) fn given(case: &Case) -> Option<Choice> {
    if needs_record(&case.observed.meta, &case.identity.hand_over) {
        return Some(case.restore());
    }
    if let Some(report) = unnoticed::<ProjectKey>(&case.observed.meta, &case.observed.hand_over) {
        return Some(Decision::wait(report, later(case.now, LOOK_AGAIN)));
    }
    let record = &case.identity.hand_over;
    let open = case.identity.intent.is_some() || case.observed.unsaved.is_some();
    if takes_back(case) || open && record.released.is_none() {
        return None;
    }
    let current = case.identity.records.current.as_ref();
    if let (Some(current), None) = (current, &record.released) {
        // From then on nobody adopts it any more.
        if case.observed.hand_over.is_expected() && is_of_predecessor(&case.secret) {
            return case.adopt_step().map(|step| case.act(Action::WriteSecret, step, handing_over()));
        }
        // Otherwise it is replaced first; or, where this resource goes, by the one that takes over.
        if !case.observed.meta.deleting && !holds(&case.secret, current) {
            return None;
        }
        if let Some(at) = case.identity.records.unanswered {
            return waits(case).then(|| late_key(case, current, at));
        }
    }
    let given = give(&Giver {
        kind: ("ProjectKey", "projectkey"),
        since: None,
        what: current.map(|current| format!("Key {}", current.name)),
        meta: &case.observed.meta,
        declared: case.spec.hand_over_to.as_ref(),
        released: record.released.as_ref(),
        cluster: &case.observed.cluster,
        successor: &case.observed.hand_over.successor,
        memory: &case.observed.memory,
        settle: case.observed.limits.settle,
        now: case.now,
    })?;
    Some(match given {
        Given::Release(released) => Decision::act(KeyStep::Release { released }, handing_over()),
        Given::TakeBack(place) => Decision::act(KeyStep::TakeBack { place }, handing_over()),
        Given::Wait(report, until) => Decision::wait(report, until),
        Given::Rest(report) if case.observed.meta.deleting => Decision::wait(report, later(case.now, LOOK_AGAIN)),
        Given::Rest(report) => Decision::rest(report),
        Given::Over(why) => Decision::act(KeyStep::RemoveFinalizer, Report::progressing(Reason::Deleting, why)),
    })
}

/// Whether its deletion waits for another resource.
pub(super) fn waits(case: &Case) -> bool {
    case.observed.meta.deleting && case.observed.hand_over.is_expected()
}

/// The other resource would not recognize the key that an unanswered creation makes late. It is waited for, and looked for then.
fn late_key(case: &Case, current: &KeyIdentity, at: Timestamp) -> Choice {
    let (key, meta, until) = (&current.name, &case.observed.meta, later(at, WATCHED));
    let message = format!(
        "Key {key} is handed over at {until}: a creation of {at} that was not answered may be carried out until then. To have it revoked with \
         this resource: kubectl -n {} patch projectkey {} --type merge -p '{{\"spec\":{{\"handOverTo\":null}}}}'.",
        meta.namespace, meta.name
    );
    let report = Report::stalled(Reason::HandingOver, message);
    if case.now < until {
        return Decision::wait(report, until);
    }
    if let Some(key) = stray(case) {
        let records = case.identity.records.clone();
        let step = KeyStep::Revoke { id: key.id, name: key.name.clone(), records, in_use: None };
        return case.act(Action::Revoke, step, report);
    }
    if case.observed.listing == KeyListing::NotRead {
        return case.act(Action::ListKeys, KeyStep::ListKeys, report);
    }
    let records = KeyRecords { unanswered: None, ..case.identity.records.clone() };
    Decision::act(KeyStep::Record { records, event: None }, report)
}

fn handing_over() -> Report {
    Report::progressing(Reason::HandingOver, "The key is being handed over.")
}

fn holds(secret: &KeySecretView, wanted: &KeyIdentity) -> bool {
    match secret {
        KeySecretView::Ours(SecretContents::Key { key, .. }) | KeySecretView::Restored { key, .. } => {
            key.id == wanted.id
        }
        _ => false,
    }
}

/// The Secret still belongs to the resource that this one has taken over from.
fn is_of_predecessor(secret: &KeySecretView) -> bool {
    matches!(secret, KeySecretView::Restored { inherited: true, .. } | KeySecretView::Unowned { .. })
}

/// It has handed over, and takes over again.
fn takes_back(case: &Case) -> bool {
    let (Some(released), Source::Released { predecessor, .. }) =
        (&case.identity.hand_over.released, &case.observed.hand_over.source)
    else {
        return false;
    };
    // What nobody has taken over yet must not be forgotten.
    !case.observed.meta.deleting && (released.taken || released.to == predecessor.place)
}

/// Takes over the key of another resource; `None` where none is named, or there is a key already.
pub(super) fn take(case: &Case) -> Option<Choice> {
    if ProjectKey::has_something(case.identity) {
        return None;
    }
    match &case.observed.hand_over.source {
        Source::Unnamed => None,
        Source::Pending(message) => Some(Decision::rest(Report::progressing(Reason::HandingOver, message))),
        Source::Invalid(message) => Some(Decision::rest(Report::stalled(Reason::BindingConflict, message))),
        Source::Released { identity, predecessor, shares_secret } => {
            Some(take_over(case, &identity.records, predecessor, *shares_secret))
        }
    }
}

fn take_over(case: &Case, records: &KeyRecords, predecessor: &Predecessor, shares_secret: bool) -> Choice {
    let conflict = |message| Decision::rest(Report::stalled(Reason::BindingConflict, message));
    let Some(current) = records.current.as_ref() else {
        return conflict(format!("ProjectKey {} has no key to hand over.", predecessor.place));
    };
    if let Some(report) = claimed_key(case, current) {
        return Decision::wait(report, later(case.now, LOOK_AGAIN));
    }
    let theirs = records.organization.as_deref();
    if theirs.is_some() && case.organization() != theirs {
        return conflict(format!(
            "Key {} belongs to organization {}. Set spec.accountRef to an account of it.",
            current.name,
            theirs.unwrap_or_default()
        ));
    }
    let (records, predecessor) = (records.clone(), predecessor.clone());
    let name = &case.spec.secret.name;
    let elsewhere = predecessor.place.cluster.is_some();
    let report = Report::progressing(Reason::HandingOver, format!("Key {} is being taken over.", current.name));
    // The Secret itself, which belongs to the other resource or was brought from another cluster: it is adopted next.
    if shares_secret || holds(&case.observed.secret, current) {
        return Decision::act(KeyStep::TakeOver { records, predecessor, copy: false }, report);
    }
    match &case.observed.secret {
        _ if case.observed.rival.is_some() => claimed(case, case.observed.rival.as_deref().unwrap_or_default()),
        KeySecretView::Absent if elsewhere => {
            let message =
                format!("Secret {name} does not exist. Bring it from the other cluster, without ownerReferences.");
            Decision::rest(Report::progressing(Reason::HandingOver, message))
        }
        KeySecretView::Absent => case.act(Action::WriteSecret, KeyStep::PrepareSecret, report),
        KeySecretView::Ours(SecretContents::Nothing) if !elsewhere => {
            case.act(Action::WriteSecret, KeyStep::TakeOver { records, predecessor, copy: true }, report)
        }
        // From before it handed its key over.
        KeySecretView::Ours(SecretContents::Key { key, .. })
            if !elsewhere && case.identity.names().any(|known| known == key.name) =>
        {
            case.act(Action::WriteSecret, KeyStep::TakeOver { records, predecessor, copy: true }, report)
        }
        KeySecretView::Foreign(owner) => foreign(case, owner),
        _ => foreign(case, "one that holds something else"),
    }
}
