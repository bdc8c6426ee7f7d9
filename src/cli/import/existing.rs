//! Finds the computes that resources of the cluster already manage.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client};

use super::Error;
use crate::api::{Compute, Known, ObjectMeta};
use crate::decide::identity::{self, ComputeIdentity};
use crate::decide::seal::ObjectKey;
use crate::domain::{ComputeId, ProjectId};

/// The Computes of a cluster, with the data that an import needs.
#[derive(Debug, Default)]
pub struct ExistingResources {
    /// The resource of each compute, by project and compute.
    pub had: BTreeMap<(ProjectId, ComputeId), String>,
    /// The names of Computes in the namespace of the manifests.
    pub taken: BTreeSet<String>,
}

/// The Computes of all namespaces, or of this one if the user may not list the others.
pub async fn existing(
    client: &Client,
    namespace: &str,
    notes: &mut impl Write,
) -> Result<ExistingResources, Error> {
    let all: Api<DeserializeGuard<Known<Compute>>> = Api::all(client.clone());
    let everything = ListParams::default();
    let listed = match all.list(&everything).await {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            writeln!(
                notes,
                "only the Computes of namespace {namespace} are looked at: you may not list those of others"
            )?;
            Api::namespaced(client.clone(), namespace)
                .list(&everything)
                .await
        }
        listed => listed,
    };
    let mut existing = ExistingResources::default();
    for DeserializeGuard(read) in listed.map_err(Error::Resources)? {
        let (meta, computes) = match read {
            Ok(object) => (object.metadata.clone(), computes_of(&object)),
            Err(unreadable) => {
                let record = identity::of_unreadable::<ComputeIdentity>(&unreadable.metadata);
                let bound = record
                    .ok()
                    .and_then(|record| record.identity_or_wish().binding.clone());
                (
                    unreadable.metadata,
                    bound
                        .into_iter()
                        .map(|binding| (binding.project, binding.id))
                        .collect(),
                )
            }
        };
        if meta.namespace.as_deref() == Some(namespace) {
            existing.taken.extend(meta.name.clone());
        }
        existing
            .had
            .extend(computes.into_iter().map(|compute| (compute, label(&meta))));
    }
    Ok(existing)
}

/// The computes that it names, and the one that it is bound to. The binding is in its record, or in
/// its status if that was restored without a record.
fn computes_of(object: &Known<Compute>) -> Vec<(ProjectId, ComputeId)> {
    let project = &object.spec.project_id;
    let named = object.spec.compute_id.iter().chain(
        object
            .status
            .iter()
            .filter_map(|status| status.compute_id.as_ref()),
    );
    let named = named.map(|id| (project.clone(), id.clone()));
    let bound = object
        .record()
        .ok()
        .and_then(|record| record.identity_or_wish().binding.clone());
    named
        .chain(bound.map(|binding| (binding.project, binding.id)))
        .collect()
}

fn label(meta: &ObjectMeta) -> String {
    let ObjectKey { namespace, name } = identity::object_key(meta);
    format!("{namespace}/{name}")
}
