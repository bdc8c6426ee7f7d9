//! Observes a set: the Computes of its namespace, and its Secret.

use std::sync::Arc;

use kube::ResourceExt;

use crate::api::{Compute, Known, ReadReplicaSet, Uid};
use crate::cluster::{Cluster, resource_version};
use crate::controller::compute::Computes;
use crate::controller::connection;
use crate::controller::environment::{Effects, Environment, Observation, observed};
use crate::controller::index::Key;
use crate::controller::object::{Managed, uid};
use crate::controller::state::Done;
use crate::decide::AccountView;
use crate::decide::replica_set::{FoundReplica, SetFacts, is_replica_of, relation};

pub(super) async fn observe<E: Environment>(
    env: &E,
    object: &Known<ReadReplicaSet>,
) -> Result<Observation<SetFacts, E::Client>, kube::Error> {
    let uid = uid(object);
    let namespace = Key::Namespace(object.namespace().to_owned());
    let computes = env.objects_by::<Computes>(&namespace);
    let mut unreadable = env.unreadable::<Known<Compute>>();
    unreadable.retain(|meta| meta.namespace == object.metadata.namespace);
    let unreadable_names = unreadable.iter().filter_map(|meta| meta.name.clone());
    let names = computes
        .iter()
        .map(|compute| compute.name_any())
        .chain(unreadable_names)
        .collect();
    let declared = object.spec.connection.as_ref();
    let status = object.status.as_ref();
    let wrote: Vec<&String> = status
        .into_iter()
        .flat_map(|status| {
            status
                .unused_secrets
                .iter()
                .chain(&status.connection_secret)
        })
        .collect();
    let settled = is_settled(env, object, &computes).await?;
    let secret = connection::of(env, object, declared).await?;
    let facts = SetFacts {
        settled,
        unreadable: unreadable
            .iter()
            .filter(|meta| is_replica_of(uid, meta))
            .count(),
        names,
        secret: connection::view(secret.as_ref()),
        credentials: connection::credentials(env, object, declared).await?,
        connection_secret: connection::written(declared, secret.as_ref()),
        unused_secrets: connection::unused(env, object, declared, &wrote).await?,
        computes: computes
            .into_iter()
            .filter_map(|compute| found(object, uid, compute))
            .collect(),
    };
    let meta = object.meta_observed();
    Ok(Observation {
        observed: observed(env, object, meta, AccountView::NotNeeded, facts),
        effects: Effects::default(),
    })
}

fn found(
    object: &Known<ReadReplicaSet>,
    uid: &Uid,
    compute: Arc<Known<Compute>>,
) -> Option<FoundReplica> {
    Some(FoundReplica {
        relation: relation(&object.spec, uid, &compute)?,
        compute,
    })
}

/// True if the watch shows everything that this process has done to the Computes of the set. A
/// created Compute that the watch lacks is looked up: it may be gone again.
async fn is_settled<E: Environment>(
    env: &E,
    object: &Known<ReadReplicaSet>,
    computes: &[Arc<Known<Compute>>],
) -> Result<bool, kube::Error> {
    let uid = uid(object);
    let seen = |child: &Uid| {
        let compute = computes
            .iter()
            .find(|compute| crate::controller::object::uid(compute.as_ref()) == child)?;
        Some((
            resource_version(compute.as_ref()),
            compute.metadata.deletion_timestamp.is_some(),
        ))
    };
    let mut settled = true;
    for (child, done) in env.state().children_seen(uid, seen) {
        let Done::Created(name) = done else {
            settled = false;
            continue;
        };
        if env
            .cluster()
            .exists::<Known<Compute>>(object.namespace(), &name)
            .await?
        {
            settled = false
        } else {
            env.state().child_gone(uid, &child)
        }
    }
    Ok(settled)
}
