//! Lookup of dbplane's kinds in their definitions.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dbplane::controller::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};

/// The committed definition files.
pub fn definition_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    definitions()
        .iter()
        .map(|crd| folder.join(format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)))
        .collect()
}

/// The objects of a kind, in `namespace` if the kind is namespaced. Kinds may be in lower case, as
/// for kubectl.
pub fn objects(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(definitions);
    let ours = DEFINITIONS
        .iter()
        .find(|crd| crd.spec.names.kind.eq_ignore_ascii_case(kind));
    let (group, version, kind, namespaced) = match (ours, kind) {
        (Some(crd), _) => {
            let spec = &crd.spec;
            (
                &*spec.group,
                &*spec.versions[0].name,
                &*spec.names.kind,
                spec.scope == "Namespaced",
            )
        }
        (None, "Namespace" | "namespace") => ("", "v1", "Namespace", false),
        (None, "Event" | "event") => ("events.k8s.io", "v1", "Event", true),
        (None, other) => ("", "v1", other, true),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespaced {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}
