//! What other Computes claim of the same branch and the same computes: gathered here, judged in `decide`.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::super::Context;
use super::super::kind::uid;
use crate::api::{AccountKind, Compute};
use crate::decide::compute::{self, Claims, Scope};
use crate::decide::identity::ComputeIdentity;

/// What others claim that matters to `compute`: of its branches, and of the computes `ids`.
pub(super) fn claims(
    context: &Context,
    compute: &Compute,
    identity: &ComputeIdentity,
    ids: &BTreeSet<String>,
) -> Claims {
    let (me, here) = (uid(compute), platform(context, compute));
    let scope = Scope::of(compute, identity, ids);
    let concerned = |other: &Compute| scope.concerns(other) && uid(other) != me && platform(context, other) == here;
    let others = context.stores.computes.filter(concerned);
    compute::claims(compute, others.iter().map(AsRef::as_ref), |uid| context.creating.has(uid))
}

/// The account's own words tell the platform, whether or not it can be used at present: a rival is one also while its
/// account is down.
fn platform(context: &Context, compute: &Compute) -> Option<String> {
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
