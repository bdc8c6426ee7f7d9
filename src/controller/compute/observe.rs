//! What is seen of a Compute: its annotations, its account, the project's reading, others' claims, its Secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::super::accounts::{AccountName, Entry};
use super::super::kind::{Managed, uid};
use super::super::traces::Trace;
use super::super::{Context, account_view};
use super::claims::claims;
use crate::api::Compute;
use crate::cluster::{Owner, SecretState};
use crate::decide::compute::{self, ComputeObserved, SecretView, SnapshotState};
use crate::decide::identity::{self, ComputeIdentity};
use crate::decide::{AccountView, Memory, later, names};
use crate::domain::{NameSupport, Support};
use crate::platform::{self, Fault, Interest, LatestSnapshot, Snapshot, Source, Tick};

pub(super) async fn observe(
    context: &Context,
    object: &Compute,
    now: Timestamp,
) -> Result<ComputeObserved, kube::Error> {
    let uid = uid(object);
    let meta = object.meta_observed();
    let identity = identity::of_compute(object.annotations(), meta.object_key());
    let (account, entry) = account_view::of(context, &object.spec.account_ref, object);
    let known = identity.clone().unwrap_or_default();
    let seen = match (&account, entry) {
        (AccountView::Usable { .. }, Some(entry)) => read(context, object, &known, &entry, now),
        _ => Seen::nothing_yet(),
    };
    let Seen { snapshot, name_support, stale_from } = seen;
    let memory = context.traces.update(&uid, |trace| {
        learn(&mut trace.memory, object, &known, &snapshot, now);
        trace.memory.clone()
    });
    if (known.binding.is_some() || known.intent.is_none()) && context.creating.unless_running(&uid) {
        next_in_turn(context, object);
    }
    let claims = claims(context, object, &known, &ids(&known, &snapshot));
    Ok(ComputeObserved {
        meta,
        identity,
        account,
        snapshot,
        claims,
        secret: secret(context, object).await?,
        name_support,
        memory,
        stale_from,
        limits: context.settings.limits,
        cluster: context.cluster.clone(),
        draw: rand::random(),
        uid,
    })
}

/// Takes into memory what is seen.
pub fn learn(memory: &mut Memory, object: &Compute, known: &ComputeIdentity, snapshot: &SnapshotState, now: Timestamp) {
    memory.operation_shown(object.status.as_ref().and_then(|status| status.last_operation.as_ref()));
    memory.note_unresolved(known.recorded(), now);
    if let (Some(binding), SnapshotState::Taken { computes, .. }) = (&known.binding, snapshot) {
        let found = computes.iter().find(|compute| compute.id == binding.id);
        compute::remember(memory, &object.spec, found, now);
    }
}

/// Those who may have waited for this create on the branch are decided on anew.
fn next_in_turn(context: &Context, object: &Compute) {
    let waiting = |other: &Compute| {
        other.spec.branch_id == object.spec.branch_id
            && other.spec.project_id == object.spec.project_id
            && !other.annotations().contains_key(names::BINDING)
    };
    for other in context.stores.computes.filter(waiting) {
        context.triggers.compute(ObjectRef::from_obj(other.as_ref()));
    }
}

/// The computes whose other claimants matter: one's own, and those at hand.
pub fn ids(known: &ComputeIdentity, snapshot: &SnapshotState) -> BTreeSet<String> {
    let computes = if let SnapshotState::Taken { computes, .. } = snapshot { computes.as_slice() } else { &[] };
    let bound = known.binding.iter().map(|binding| binding.id.clone());
    computes.iter().map(|compute| compute.id.clone()).chain(bound).collect()
}

/// The newest reading that began after our last write.
#[derive(Debug)]
pub struct Seen {
    pub snapshot: SnapshotState,
    pub name_support: NameSupport,
    /// Until when it is relied upon where newer ones fail.
    pub stale_from: Option<Timestamp>,
}

impl Seen {
    /// What a project's view shows that concerns `object`, where it began after its last write at `wrote`. `grace`: how long
    /// a reading is relied upon where newer ones fail.
    pub fn in_view(
        object: &Compute,
        known: &ComputeIdentity,
        view: &LatestSnapshot,
        wrote: Option<Tick>,
        (now, grace): (Timestamp, Duration),
    ) -> Self {
        snapshot(view, view.since(wrote).is_some(), now, grace, &Matters::of(object, known))
    }

    fn nothing_yet() -> Self {
        Self { snapshot: SnapshotState::Pending, name_support: NameSupport::Unseen, stale_from: None }
    }

    fn failed(fault: &Fault) -> Self {
        Self { snapshot: SnapshotState::Failed(fault.clone()), ..Self::nothing_yet() }
    }
}

fn read(context: &Context, object: &Compute, known: &ComputeIdentity, entry: &Entry, now: Timestamp) -> Seen {
    let Some(handle) = &entry.handle else { return Seen::nothing_yet() };
    let uid = uid(object);
    let account = AccountName::referred(&object.spec.account_ref, &object.namespace().unwrap_or_default());
    let source = Source {
        account: account.to_string(),
        project: object.spec.project_id.clone(),
        platform: handle.platform.clone(),
        poll_interval: handle.poll_interval,
    };
    let trace = context.traces.update(&uid, |trace| {
        let platform = Arc::downgrade(&handle.platform);
        if !trace.platform.ptr_eq(&platform) {
            trace.memory.credentials_changed();
            trace.platform = platform;
        }
        // What is not bound yet is decided on a reading that began after it was first looked at: a baseline must not be old.
        if known.binding.is_none() && trace.wrote.is_none() {
            trace.wrote = Some(context.observers.tick());
        }
        trace.clone()
    });
    let matters = Matters::of(object, known);
    let me = ObjectRef::from_obj(object);
    let mut view = context.observers.read(&source, &me, matters.interest(&trace, trace.awaiting));
    let deleting = object.metadata.deletion_timestamp.is_some();
    let awaiting = view.snapshot.as_ref().is_some_and(|reading| {
        let found = known.binding.as_ref().and_then(|binding| reading.compute(&binding.id));
        compute::is_awaiting(known, deleting, &trace.memory, found)
    });
    if awaiting != trace.awaiting {
        context.traces.update(&uid, |trace| trace.awaiting = awaiting);
        view = context.observers.read(&source, &me, matters.interest(&trace, awaiting));
    }
    // At least one poll is given the chance to succeed.
    let grace = handle.poll_interval.saturating_add(context.settings.limits.settle);
    Seen::in_view(object, known, &view, trace.wrote, (now, grace))
}

fn snapshot(view: &LatestSnapshot, fresh: bool, now: Timestamp, grace: Duration, matters: &Matters) -> Seen {
    let reading = view.snapshot.as_ref().filter(|_| fresh);
    match (reading, &view.fault) {
        (_, Some(fault @ (Fault::Unauthorized { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }))) => {
            Seen::failed(fault)
        }
        (Some(reading), Some(_)) if now < later(reading.at, grace) => {
            Seen { stale_from: Some(later(reading.at, grace)), ..matters.seen_in(reading) }
        }
        (_, Some(fault)) => Seen::failed(fault),
        (Some(reading), None) => matters.seen_in(reading),
        (None, None) => Seen::nothing_yet(),
    }
}

/// The branches and computes that a resource is about.
struct Matters {
    branches: Vec<String>,
    computes: BTreeSet<String>,
    /// What carries one of these is the resource's, wherever it is.
    marks: BTreeSet<String>,
    bound: bool,
    /// Something may come late of an unanswered create.
    unanswered: bool,
}

impl Matters {
    fn of(object: &Compute, known: &ComputeIdentity) -> Self {
        let creates = || known.intent.iter().chain(&known.unanswered);
        let branches = creates().map(|create| create.branch.clone()).chain([object.spec.branch_id.clone()]);
        let computes = [known.binding.as_ref().map(|binding| binding.id.clone()), object.spec.compute_id.clone()];
        Self {
            branches: branches.collect(),
            computes: computes.into_iter().flatten().collect(),
            marks: creates().filter_map(|create| create.mark.clone()).collect(),
            bound: known.binding.is_some(),
            unanswered: !known.unanswered.is_empty(),
        }
    }

    /// Who has found its compute has nothing to look for on the branch, so that a pass costs the same in a project of any size.
    fn seen_in(&self, reading: &Snapshot) -> Seen {
        let read = |computes, name_support| Seen {
            snapshot: SnapshotState::Taken { at: reading.at, computes },
            name_support,
            stale_from: None,
        };
        let named: Vec<_> = self.computes.iter().filter_map(|id| reading.compute(id)).cloned().collect();
        if self.bound && !self.unanswered && !named.is_empty() {
            return read(named, NameSupport::Unseen);
        }
        let matters = |compute: &&platform::Compute| {
            self.branches.contains(&compute.branch_id)
                || self.computes.contains(&compute.id)
                || compute.name.as_ref().is_some_and(|name| self.marks.contains(name))
        };
        read(reading.computes.iter().filter(matters).cloned().collect(), Support::among(&reading.computes).names)
    }

    fn interest(&self, trace: &Trace, pending: bool) -> Interest {
        // Others on the branch concern only who has no compute there.
        let settled = self.bound && !self.unanswered && trace.memory.missing_since.is_none();
        Interest {
            branches: if settled { Vec::new() } else { self.branches.clone() },
            computes: self.computes.iter().cloned().collect(),
            pending,
            after: trace.wrote,
        }
    }
}

async fn secret(context: &Context, object: &Compute) -> Result<SecretView, kube::Error> {
    let (Some(connection), Some(owner)) = (&object.spec.connection, Owner::of(object)) else {
        return Ok(SecretView::NotWanted);
    };
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(SecretView::NotWanted);
    }
    Ok(secret_view(&owner, context.secrets.state(&owner, &connection.secret_name).await?))
}

/// The connection Secret, as it was read.
pub fn secret_view(owner: &Owner, state: SecretState) -> SecretView {
    match state {
        SecretState::Absent => SecretView::Absent,
        SecretState::Foreign(who) => SecretView::Foreign(who),
        // Nothing in it is irreplaceable: what an earlier resource of the same name left is written anew.
        SecretState::Restored(secret) if owner.formerly_owned(&secret) => SecretView::Absent,
        SecretState::Restored(_) => SecretView::Foreign("not dbplane's".to_owned()),
        SecretState::Ours(secret) => {
            let data = secret.data.clone().unwrap_or_default();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_default();
            SecretView::Ours(data.into_iter().map(|(key, value)| (key, text(value.0))).collect::<BTreeMap<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::platform::Observers;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
    const GRACE: Duration = Duration::from_secs(90);

    /// An empty project as it was read that many seconds ago; newer attempts failed.
    fn unread(ago: u64, fault: &Fault) -> LatestSnapshot {
        let ticks: Observers<ObjectRef<Compute>> = Observers::new(unbounded_channel().0, || NOW, || 0.5);
        let at = NOW - Duration::from_secs(ago);
        let reading = Snapshot { began: ticks.tick(), at, computes: Vec::new() };
        LatestSnapshot { snapshot: Some(Arc::new(reading)), fault: Some(fault.clone()) }
    }

    fn listed(view: &LatestSnapshot) -> Seen {
        let matters = Matters {
            branches: vec!["br-main".to_owned()],
            computes: BTreeSet::new(),
            marks: BTreeSet::new(),
            bound: true,
            unanswered: false,
        };
        snapshot(view, true, NOW, GRACE, &matters)
    }

    #[test]
    fn what_the_credential_may_not_see_is_no_empty_project() {
        let message = || "not allowed".to_owned();
        for fault in [
            Fault::Unauthorized { message: message() },
            Fault::Forbidden { status: 403, message: message() },
            Fault::Forbidden { status: 404, message: message() },
            Fault::NotFound { message: message() },
        ] {
            assert_eq!(listed(&unread(1, &fault)).snapshot, SnapshotState::Failed(fault));
        }
    }

    #[test]
    fn an_unreachable_platform_is_what_it_was_for_a_while() {
        for fault in [
            Fault::Transport { message: "refused".to_owned() },
            Fault::Server { status: 502, message: "bad gateway".to_owned() },
            Fault::Throttled { status: 429, retry_after: None },
        ] {
            let young = listed(&unread(1, &fault));
            assert_eq!(young.stale_from, Some(NOW + Duration::from_secs(89)));
            // Nothing is concluded from its age: the time that it was begun goes with it.
            assert_eq!(young.snapshot, SnapshotState::Taken { at: NOW - Duration::from_secs(1), computes: Vec::new() });
            assert_eq!(listed(&unread(90, &fault)).snapshot, SnapshotState::Failed(fault));
        }
    }
}
