//! What is seen of a Compute: its annotations, its account, the project's reading, others' claims, its Secret.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::super::accounts::Entry;
use super::super::kind::{Managed, uid};
use super::super::traces::Trace;
use super::super::{Context, account_view};
use super::claims::claims;
use crate::api::Compute;
use crate::cluster::{Owner, SecretState};
use crate::decide::compute::{ComputeObserved, Listing, SecretView, in_force};
use crate::decide::identity::{self, ComputeIdentity};
use crate::decide::{AccountView, later};
use crate::platform::{Fault, Interest, Source, View};

/// How long the last good reading is relied upon while newer ones fail.
const GRACE: Duration = Duration::from_secs(60);

pub(super) async fn observe(
    context: &Context,
    object: &Compute,
    now: Timestamp,
) -> Result<ComputeObserved, kube::Error> {
    let uid = uid(object);
    let identity = identity::of_compute(object.annotations());
    let (account, entry) = account_view::of(context, &object.spec.account_ref, object);
    let known = identity.clone().unwrap_or_default();
    let listing = match (&account, entry) {
        (AccountView::Usable { .. }, Some(entry)) => read(context, object, &known, &entry, now),
        _ => Listing::Pending,
    };
    let trace = remember_seen(context, object, &known, &listing, now);
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
        limits: context.settings.limits,
        draw: rand::random(),
        uid,
    })
}

/// The newest reading that began after our last write.
fn read(context: &Context, object: &Compute, known: &ComputeIdentity, entry: &Entry, now: Timestamp) -> Listing {
    let Some(handle) = &entry.handle else { return Listing::Pending };
    let uid = uid(object);
    let bound = known.binding.is_some();
    // What is not bound yet is decided on a reading that began after it was first looked at: a baseline must not be old.
    let after = context.traces.update(&uid, |trace| {
        if !bound && trace.wrote.is_none() {
            trace.wrote = Some(context.observers.tick());
        }
        trace.wrote
    });
    let source = Source {
        account: super::super::accounts::AccountName::referred(
            &object.spec.account_ref,
            &object.namespace().unwrap_or_default(),
        )
        .to_string(),
        project: object.spec.project_id.clone(),
        platform: handle.platform.clone(),
        poll_interval: handle.poll_interval,
    };
    let branches = [Some(object.spec.branch_id.clone()), known.intent.as_ref().map(|intent| intent.branch.clone())];
    let computes = [known.binding.as_ref().map(|binding| binding.id.clone()), object.spec.compute_id.clone()];
    let unsettled = !bound || object.metadata.deletion_timestamp.is_some() || missing(context, &uid);
    let interest = Interest {
        branches: if bound { Vec::new() } else { branches.iter().flatten().cloned().collect() },
        computes: computes.iter().flatten().cloned().collect(),
        pending: unsettled && known.intent.is_some() || missing(context, &uid),
        after,
    };
    let view = context.observers.read(&source, &ObjectRef::from_obj(object), interest);
    let fresh = view.reading.as_ref().is_some_and(|reading| after.is_none_or(|after| reading.began > after));
    listing(view, fresh, now, |compute| {
        branches.iter().flatten().any(|branch| compute.branch_id == *branch)
            || computes.iter().flatten().any(|id| compute.id == *id)
    })
}

fn listing(view: View, fresh: bool, now: Timestamp, matters: impl Fn(&crate::platform::Compute) -> bool) -> Listing {
    let lasting = |at: Timestamp| now < later(at, GRACE);
    match (view.reading, view.fault) {
        (_, Some(fault @ (Fault::Unauthorized { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }))) => {
            Listing::Failed(fault)
        }
        (Some(reading), Some(_)) if fresh && lasting(reading.at) => Listing::Read {
            at: reading.at,
            computes: reading.computes.iter().filter(|compute| matters(compute)).cloned().collect(),
        },
        (_, Some(fault)) => Listing::Failed(fault),
        (Some(reading), None) if fresh => Listing::Read {
            at: reading.at,
            computes: reading.computes.iter().filter(|compute| matters(compute)).cloned().collect(),
        },
        (_, None) => Listing::Pending,
    }
}

fn missing(context: &Context, uid: &str) -> bool {
    context.traces.get(uid).memory.missing_since.is_some()
}

/// Remembers since when the compute is missing, and that the last change is in force where it is.
fn remember_seen(
    context: &Context,
    object: &Compute,
    known: &ComputeIdentity,
    listing: &Listing,
    now: Timestamp,
) -> Trace {
    context.traces.update(&uid(object), |trace| {
        if let (Some(binding), Listing::Read { computes, .. }) = (&known.binding, listing) {
            let found = computes.iter().find(|compute| compute.id == binding.id);
            trace.memory.missing_since = found.is_none().then(|| trace.memory.missing_since.unwrap_or(now));
            if found.is_some_and(|found| in_force(&object.spec, found)) {
                trace.memory.in_force();
            }
        }
        trace.clone()
    })
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
