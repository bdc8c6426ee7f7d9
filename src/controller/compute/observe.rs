//! What is seen of a Compute: its annotations, its account, the project's reading, others' claims, its Secret.

use std::collections::BTreeMap;
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
use crate::decide::compute::{self, ComputeObserved, Listing, SecretView};
use crate::decide::identity::{self, ComputeIdentity};
use crate::decide::{AccountView, later};
use crate::platform::{self, Fault, Interest, Reading, Source, View};

pub(super) async fn observe(
    context: &Context,
    object: &Compute,
    now: Timestamp,
) -> Result<ComputeObserved, kube::Error> {
    let uid = uid(object);
    let identity = identity::of_compute(object.annotations());
    let (account, entry) = account_view::of(context, &object.spec.account_ref, object);
    let known = identity.clone().unwrap_or_default();
    let (listing, stale_from) = match (&account, entry) {
        (AccountView::Usable { .. }, Some(entry)) => read(context, object, &known, &entry, now),
        _ => (Listing::Pending, None),
    };
    let trace = context.traces.update(&uid, |trace| {
        if let (Some(binding), Listing::Read { computes, .. }) = (&known.binding, &listing) {
            let found = computes.iter().find(|compute| compute.id == binding.id);
            compute::remember(&mut trace.memory, &object.spec, found, now);
        }
        trace.clone()
    });
    if known.binding.is_some() || known.intent.is_none() {
        context.creating.unless_running(&uid);
    }
    let names_offered =
        matches!(&listing, Listing::Read { computes, .. } if computes.iter().any(|compute| compute.name.is_some()));
    Ok(ComputeObserved {
        meta: object.meta_observed(),
        identity,
        account,
        listing,
        claims: claims(context, object),
        secret: secret(context, object).await?,
        names_offered,
        memory: trace.memory,
        stale_from,
        limits: context.settings.limits,
        draw: rand::random(),
        uid,
    })
}

/// The newest reading that began after our last write, and until when it is relied upon where newer ones fail.
fn read(
    context: &Context,
    object: &Compute,
    known: &ComputeIdentity,
    entry: &Entry,
    now: Timestamp,
) -> (Listing, Option<Timestamp>) {
    let Some(handle) = &entry.handle else { return (Listing::Pending, None) };
    let uid = uid(object);
    let account = AccountName::referred(&object.spec.account_ref, &object.namespace().unwrap_or_default());
    let source = Source {
        account: account.to_string(),
        project: object.spec.project_id.clone(),
        platform: handle.platform.clone(),
        poll_interval: handle.poll_interval,
    };
    let trace = context.traces.update(&uid, |trace| {
        // What is not bound yet is decided on a reading that began after it was first looked at: a baseline must not be old.
        if known.binding.is_none() && trace.wrote.is_none() {
            trace.wrote = Some(context.observers.tick());
        }
        trace.clone()
    });
    let matters = Matters::of(object, known);
    let me = ObjectRef::from_obj(object);
    let mut view = context.observers.read(&source, &me, matters.interest(&trace, trace.awaiting));
    let computes = view.reading.as_ref().map(|reading| matters.among(&reading.computes)).unwrap_or_default();
    let deleting = object.metadata.deletion_timestamp.is_some();
    let awaiting = compute::is_awaiting(known, deleting, &trace.memory, &computes);
    if awaiting != trace.awaiting {
        context.traces.update(&uid, |trace| trace.awaiting = awaiting);
        view = context.observers.read(&source, &me, matters.interest(&trace, awaiting));
    }
    let fresh = view.since(trace.wrote).is_some();
    // At least one poll is given the chance to succeed.
    let grace = handle.poll_interval.saturating_add(context.settings.limits.settle);
    listing(&view, fresh, now, grace, &matters)
}

fn listing(
    view: &View,
    fresh: bool,
    now: Timestamp,
    grace: Duration,
    matters: &Matters,
) -> (Listing, Option<Timestamp>) {
    let reading = view.reading.as_ref().filter(|_| fresh);
    let read = |reading: &Reading| Listing::Read { at: reading.at, computes: matters.among(&reading.computes) };
    match (reading, &view.fault) {
        (_, Some(fault @ (Fault::Unauthorized { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }))) => {
            (Listing::Failed(fault.clone()), None)
        }
        (Some(reading), Some(_)) if now < later(reading.at, grace) => (read(reading), Some(later(reading.at, grace))),
        (_, Some(fault)) => (Listing::Failed(fault.clone()), None),
        (Some(reading), None) => (read(reading), None),
        (None, None) => (Listing::Pending, None),
    }
}

/// The branches and computes that a resource is about.
struct Matters {
    branches: Vec<String>,
    computes: Vec<String>,
    bound: bool,
}

impl Matters {
    fn of(object: &Compute, known: &ComputeIdentity) -> Self {
        let branches = [Some(object.spec.branch_id.clone()), known.intent.as_ref().map(|intent| intent.branch.clone())];
        let computes = [known.binding.as_ref().map(|binding| binding.id.clone()), object.spec.compute_id.clone()];
        Self {
            branches: branches.into_iter().flatten().collect(),
            computes: computes.into_iter().flatten().collect(),
            bound: known.binding.is_some(),
        }
    }

    fn among(&self, computes: &[platform::Compute]) -> Vec<platform::Compute> {
        let matters = |compute: &&platform::Compute| {
            self.branches.contains(&compute.branch_id) || self.computes.contains(&compute.id)
        };
        computes.iter().filter(matters).cloned().collect()
    }

    fn interest(&self, trace: &Trace, pending: bool) -> Interest {
        // Others on the branch concern only who has no compute there.
        let settled = self.bound && trace.memory.missing_since.is_none();
        Interest {
            branches: if settled { Vec::new() } else { self.branches.clone() },
            computes: self.computes.clone(),
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
    Ok(match context.secrets.state(&owner, &connection.secret_name).await? {
        SecretState::Absent => SecretView::Absent,
        SecretState::Foreign(who) => SecretView::Foreign(who),
        SecretState::Ours(secret) => {
            let data = secret.data.clone().unwrap_or_default();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_default();
            SecretView::Ours(data.into_iter().map(|(key, value)| (key, text(value.0))).collect::<BTreeMap<_, _>>())
        }
    })
}
