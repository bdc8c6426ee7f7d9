//! What a decision about a Compute rests on, put together from what was looked at. Pure.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::super::access;
use super::super::connection;
use super::super::object::{Managed, meta_observed, uid};
use super::gather::Facts;
use crate::api::Compute;
use crate::decide::compute::{ComputeObserved, claims};
use crate::decide::connection::Address;
use crate::decide::identity::Told;
use crate::decide::names;

pub(super) fn assemble<P>(object: &Compute, facts: &Facts<P>) -> ComputeObserved {
    let others = &facts.others;
    let computes = others.computes.iter().map(AsRef::as_ref);
    let unreadable = others.unreadable.iter().map(AsRef::as_ref);
    let known = facts.known();
    let name_support = facts.excerpt.name_support.max(facts.names());
    let mine = (object, &known, Told::now(name_support));
    ComputeObserved {
        meta: meta_observed(object, facts.record.as_ref()),
        uid: uid(object),
        identity: facts.record.clone().map(|record| record.identity),
        wish: facts.record.clone().ok().and_then(|record| record.wish),
        waiting_since: object.status.as_ref().and_then(|status| Some(status.waiting.as_ref()?.since)),
        restart_annotation: object.request(names::RESTART),
        not_created: object.annotations().get(names::NOT_CREATED).map(|text| listed(text)).unwrap_or_default(),
        account: facts.access.view.clone(),
        platform: facts.access.connection.as_ref().map(|connection| access::platform(connection)),
        snapshot: facts.excerpt.snapshot.clone(),
        claims: claims(mine, computes, unreadable, |uid| others.creating.get(uid).copied()),
        connection_secret: connection::written(object.spec.connection.as_deref(), facts.secret.as_ref()),
        unused_secrets: facts.unused_secrets.clone(),
        secret: connection::view(facts.secret.as_ref()),
        credentials: facts.credentials.clone(),
        last_seen: object.status.as_ref().and_then(Address::seen),
        name_support,
        memory: facts.remembered.memory.clone(),
        stale_from: facts.excerpt.stale_from,
        limits: facts.settings.limits,
        cluster: facts.settings.cluster.clone(),
        draw: facts.draw,
    }
}

fn listed(text: &str) -> BTreeSet<String> {
    names::listed(text).map(str::to_owned).collect()
}
