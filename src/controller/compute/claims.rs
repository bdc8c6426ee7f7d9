//! What other Computes claim of the same branch and the same computes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::{Resource, ResourceExt};

use super::super::Context;
use super::super::accounts::AccountName;
use super::super::kind::uid;
use crate::api::{Compute, ComputeType};
use crate::decide::compute::{Claim, Claims};
use crate::decide::identity;

/// What others claim that matters to `compute`.
pub(super) fn claims(context: &Context, compute: &Compute) -> Claims {
    let me = uid(compute);
    let project = project(context, compute);
    let same_project = |other: &Compute| {
        uid(other) != me && other.spec.project_id == compute.spec.project_id && self::project(context, other) == project
    };
    let others = context.stores.computes.filter(same_project);
    Claims {
        bound: bound(&others, compute),
        primary: primary(&others, compute),
        creating: creating(context, &others, compute),
    }
}

/// A project is told by its platform and its identifier.
fn project(context: &Context, compute: &Compute) -> Option<String> {
    let account = AccountName::referred(&compute.spec.account_ref, &compute.namespace().unwrap_or_default());
    let handle = context.accounts.get(&account)?.handle?;
    Some(handle.access.base_url.trim_end_matches('/').to_owned())
}

fn bound(others: &[Arc<Compute>], compute: &Compute) -> BTreeMap<String, Claim> {
    let mut bound: BTreeMap<String, Claim> = BTreeMap::new();
    for other in others {
        let Some(binding) = identity::of_compute(other.annotations()).ok().and_then(|identity| identity.binding) else {
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
        .map(|other| label(other))
        .next()
}

fn creating(context: &Context, others: &[Arc<Compute>], compute: &Compute) -> Option<String> {
    let begun = |other: &Compute| {
        let unresolved = identity::of_compute(other.annotations())
            .is_ok_and(|identity| identity.binding.is_none() && identity.intent.is_some());
        unresolved || context.creating.has(&uid(other))
    };
    others.iter().find(|other| other.spec.branch_id == compute.spec.branch_id && begun(other)).map(|other| label(other))
}

/// Whether `one` was created before `other`; names decide between resources of the same second.
fn older(one: &Compute, other: &Compute) -> bool {
    let rank = |compute: &Compute| {
        (compute.meta().creation_timestamp.as_ref().map(|time| time.0), compute.namespace(), compute.name_any())
    };
    rank(one) < rank(other)
}

fn label(compute: &Compute) -> String {
    format!("Compute {}/{}", compute.namespace().unwrap_or_default(), compute.name_any())
}
