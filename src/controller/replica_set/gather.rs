//! Collects the facts for a set: the Computes of its namespace, and its Secret.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;

use super::super::compute::Computes;
use super::super::connection;
use super::super::environment::Environment;
use super::super::index::Key;
use super::super::object::{Managed, uid};
use super::super::state::Done;
use crate::api::{Compute, ReadReplicaSet};
use crate::cluster::{Cluster, Owner, SecretState, resource_version};
use crate::decide::Memory;
use crate::decide::connection::CredentialsView;
use crate::decide::replica_set::{FoundReplica, SetObserved, is_replica_of, relation};

/// The input of `assemble`.
#[derive(Debug)]
pub struct Facts {
    computes: Vec<FoundReplica>,
    settled: bool,
    unreadable: usize,
    names: BTreeSet<String>,
    secret: Option<(Owner, SecretState)>,
    credentials: CredentialsView,
    unused_secrets: Vec<String>,
    memory: Memory,
}

pub(super) async fn gather<E: Environment>(
    env: &E,
    object: &ReadReplicaSet,
) -> Result<Facts, kube::Error> {
    let uid = uid(object);
    let computes =
        env.objects_by::<Computes>(&Key::Namespace(object.namespace().unwrap_or_default()));
    let unreadable = env.unreadable::<Compute>();
    let hidden = || {
        unreadable
            .iter()
            .filter(|meta| meta.namespace == object.namespace())
    };
    let hidden_names = hidden().filter_map(|meta| meta.name.clone());
    let declared = object.spec.connection.as_ref();
    let status = object.status.as_ref();
    let wrote = status.into_iter().flat_map(|status| {
        status
            .unused_secrets
            .iter()
            .chain(&status.connection_secret)
    });
    let wrote: Vec<&String> = wrote.collect();
    Ok(Facts {
        settled: is_settled(env, object, &computes).await?,
        unreadable: hidden().filter(|meta| is_replica_of(&uid, meta)).count(),
        names: computes
            .iter()
            .map(|compute| compute.name_any())
            .chain(hidden_names)
            .collect(),
        secret: connection::of(env, object, declared, Owner::of(object)).await?,
        credentials: connection::credentials(env, object, declared).await?,
        unused_secrets: connection::unused(env, object, declared, &wrote).await?,
        memory: env.state().resource(&uid).memory,
        computes: computes
            .into_iter()
            .filter_map(|compute| found(object, &uid, compute))
            .collect(),
    })
}

fn found(object: &ReadReplicaSet, uid: &str, compute: Arc<Compute>) -> Option<FoundReplica> {
    Some(FoundReplica {
        relation: relation(&object.spec, uid, &compute)?,
        compute,
    })
}

/// True if the watch shows everything that this process has done to the Computes of the set. A
/// created Compute that the watch lacks is looked up: it may be gone again.
async fn is_settled<E: Environment>(
    env: &E,
    object: &ReadReplicaSet,
    computes: &[Arc<Compute>],
) -> Result<bool, kube::Error> {
    let uid = uid(object);
    let seen = |child: &str| {
        let compute = computes
            .iter()
            .find(|compute| super::super::object::uid(compute.as_ref()) == child)?;
        Some((
            resource_version(compute.as_ref()),
            compute.metadata.deletion_timestamp.is_some(),
        ))
    };
    let mut settled = true;
    for (child, done) in env.state().children_seen(&uid, seen) {
        let Done::Created(name) = done else {
            settled = false;
            continue;
        };
        match env
            .cluster()
            .exists::<Compute>(&object.namespace().unwrap_or_default(), &name)
            .await?
        {
            true => settled = false,
            false => env.state().child_gone(&uid, &child),
        }
    }
    Ok(settled)
}

pub(super) fn assemble(object: &ReadReplicaSet, facts: &Facts) -> SetObserved {
    SetObserved {
        meta: object.meta_observed(),
        computes: facts.computes.clone(),
        settled: facts.settled,
        unreadable: facts.unreadable,
        names: facts.names.clone(),
        secret: connection::view(facts.secret.as_ref()),
        credentials: facts.credentials.clone(),
        connection_secret: connection::written(
            object.spec.connection.as_ref(),
            facts.secret.as_ref(),
        ),
        unused_secrets: facts.unused_secrets.clone(),
        memory: facts.memory.clone(),
    }
}
