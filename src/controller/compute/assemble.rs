//! Assembles the input of a decision about a Compute from the facts. Pure.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::super::connection;
use super::super::object::{Managed, meta_observed, uid};
use super::gather::Facts;
use crate::api::Compute;
use crate::decide::compute::{Claims, ComputeObserved, Mine, Other, claims};
use crate::decide::connection::Address;
use crate::decide::identity::{self, ComputeIdentity, Evidence};
use crate::decide::names;
use crate::domain::NameSupport;

pub(super) fn assemble<P>(object: &Compute, facts: &Facts<P>) -> ComputeObserved {
    let name_support = facts.relevant.name_support.max(facts.names());
    let connection = facts.access.connection.as_ref();
    let platform = connection.map(|connection| facts.settings.platform(connection));
    ComputeObserved {
        meta: meta_observed(object, facts.record.as_ref()),
        uid: uid(object),
        identity: facts.record.clone().map(|record| record.identity),
        wish: facts.record.clone().ok().and_then(|record| record.wish),
        waiting_since: object
            .status
            .as_ref()
            .and_then(|status| Some(status.waiting.as_ref()?.since)),
        restart_annotation: object.request(names::RESTART),
        not_created: object
            .annotations()
            .get(names::NOT_CREATED)
            .map(|text| listed(text))
            .unwrap_or_default(),
        account: facts.access.view.clone(),
        snapshot: facts.relevant.snapshot.clone(),
        claims: platform
            .as_deref()
            .map(|platform| claimed(object, facts, (platform, name_support)))
            .unwrap_or_default(),
        platform,
        project_gone: facts.access.project_gone,
        connection_secret: connection::written(
            object.spec.connection.as_deref(),
            facts.secret.as_ref(),
        ),
        unused_secrets: facts.unused_secrets.clone(),
        secret: connection::view(facts.secret.as_ref()),
        credentials: facts.credentials.clone(),
        last_seen: object.status.as_ref().and_then(Address::seen),
        name_support,
        returned: facts.relevant.returned.clone(),
        memory: facts.remembered.memory.clone(),
        stale_from: facts.relevant.stale_from,
        limits: facts.settings.limits,
        cluster: facts.settings.cluster.clone(),
        random: facts.random,
    }
}

/// The claims of others on this platform.
fn claimed<P>(
    object: &Compute,
    facts: &Facts<P>,
    (platform, names): (&str, NameSupport),
) -> Claims {
    let (identity, others) = (facts.known(), &facts.others);
    let canonical =
        |identity: ComputeIdentity| identity.with_platforms(|url| facts.settings.platforms.of(url));
    let readable = others.computes.iter().map(|(other, admitted)| Other {
        meta: &other.metadata,
        spec: Some(&other.spec),
        identity: canonical(identity::of_compute(other).unwrap_or_default().identity),
        admitted: *admitted,
    });
    let unreadable = others.unreadable.iter().map(|meta| Other {
        meta: meta.as_ref(),
        spec: None,
        identity: canonical(identity::of_unreadable(meta).unwrap_or_default().identity),
        admitted: true,
    });
    let mine = Mine {
        object,
        identity: &identity,
        platform,
        evidence: Evidence::now(names),
        now: facts.now,
    };
    Claims {
        incomplete: others.incomplete,
        ..claims(mine, readable.chain(unreadable), &others.reserved)
    }
}

fn listed(text: &str) -> BTreeSet<String> {
    names::listed(text).map(str::to_owned).collect()
}
