//! What other Computes claim of the same branch and the same computes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};

use super::super::Context;
use super::super::kind::{Managed, uid};
use crate::api::{AccountKind, Compute, ComputeType};
use crate::decide::compute::{Claim, Claims};
use crate::decide::{identity, names};

/// What others claim that matters to `compute`: of its branch, and of the computes `ids`.
pub(super) fn claims(context: &Context, compute: &Compute, ids: &BTreeSet<String>) -> Claims {
    let me = uid(compute);
    let project = project(context, compute);
    // The cheap questions come first: every pass asks them of every other resource.
    let concerned = |other: &Compute| {
        other.spec.project_id == compute.spec.project_id
            && (other.spec.branch_id == compute.spec.branch_id || mentions(other, ids))
            && uid(other) != me
            && self::project(context, other) == project
    };
    let others = context.stores.computes.filter(concerned);
    Claims {
        bound: bound(&others, compute),
        primary: primary(&others, compute),
        creating: creating(context, &others, compute),
    }
}

/// Whether a resource may be bound to one of these computes.
fn mentions(other: &Compute, ids: &BTreeSet<String>) -> bool {
    let binding = other.annotations().get(names::BINDING);
    binding.is_some_and(|text| ids.iter().any(|id| text.contains(id.as_str())))
}

/// A project is told by its platform and its identifier. The account's own words tell the platform, whether or not it can
/// be used at present: a rival is one also while its account is down.
fn project(context: &Context, compute: &Compute) -> Option<String> {
    let reference = &compute.spec.account_ref;
    let base_url = match reference.kind {
        AccountKind::Account => {
            let account = ObjectRef::new(&reference.name).within(&compute.namespace().unwrap_or_default());
            context.stores.accounts.get(&account)?.spec.platform.base_url.clone()
        }
        AccountKind::ClusterAccount => {
            let account = ObjectRef::new(&reference.name);
            context.stores.cluster_accounts.get(&account)?.spec.platform.base_url.clone()
        }
    };
    Some(base_url.trim_end_matches('/').to_owned())
}

fn bound(others: &[Arc<Compute>], compute: &Compute) -> BTreeMap<String, Claim> {
    let mut bound: BTreeMap<String, Claim> = BTreeMap::new();
    for other in others {
        let Some(binding) = identity::of_compute(other.annotations(), other.meta_observed().holder())
            .ok()
            .and_then(|identity| identity.binding)
        else {
            continue;
        };
        let claim = Claim { by: label(other), older: older(other, compute) };
        let stronger = bound.get(&binding.id).is_none_or(|known| !known.older && claim.older);
        if stronger {
            bound.insert(binding.id, claim);
        }
    }
    bound
}

/// The oldest other resource that wants, or has, the same branch's primary.
fn primary(others: &[Arc<Compute>], compute: &Compute) -> Option<String> {
    if compute.spec.type_ != ComputeType::ReadWrite {
        return None;
    }
    others
        .iter()
        .filter(|other| other.spec.type_ == ComputeType::ReadWrite && other.spec.branch_id == compute.spec.branch_id)
        .filter(|other| older(other, compute))
        .min_by_key(|other| rank(other))
        .map(|other| label(other))
}

fn creating(context: &Context, others: &[Arc<Compute>], compute: &Compute) -> Option<String> {
    let begun = |other: &Compute| {
        let unresolved = identity::of_compute(other.annotations(), other.meta_observed().holder())
            .is_ok_and(|identity| identity.binding.is_none() && identity.intent.is_some());
        unresolved || context.creating.has(&uid(other))
    };
    others.iter().find(|other| other.spec.branch_id == compute.spec.branch_id && begun(other)).map(|other| label(other))
}

/// Whether `one` was created before `other`; names decide between resources of the same second.
fn older(one: &Compute, other: &Compute) -> bool {
    rank(one) < rank(other)
}

fn rank(compute: &Compute) -> (Option<jiff::Timestamp>, Option<String>, String) {
    (compute.meta().creation_timestamp.as_ref().map(|time| time.0), compute.namespace(), compute.name_any())
}

fn label(compute: &Compute) -> String {
    format!("Compute {}/{}", compute.namespace().unwrap_or_default(), compute.name_any())
}
