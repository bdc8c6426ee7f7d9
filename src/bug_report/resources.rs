//! Collects the custom resources as stored, even if this version cannot read them.

use std::collections::BTreeMap;

use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use crate::api::GROUP;
use crate::cluster::explained;
use crate::controller::environment::{Kind, KindVisitor, Kinds};
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;

#[derive(Debug, Default)]
pub struct CollectedResources {
    pub found: Vec<Value>,
    pub missing: Vec<String>,
}

/// The metadata fields that help to understand a problem.
const METADATA: [&str; 8] = [
    "namespace",
    "name",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "ownerReferences",
];

/// All resources of dbplane in `namespace`, or everywhere. Cluster-scoped ones are always included,
/// because others refer to them.
pub async fn all(client: &Client, namespace: Option<&str>) -> CollectedResources {
    let mut resources = CollectedResources::default();
    let mut kinds = AsDynamic::default();
    AllKinds::each(&mut kinds);
    for (resource, is_namespaced) in kinds.0 {
        let namespace = if is_namespaced { namespace } else { None };
        match list(client, &resource, namespace).await {
            Ok(found) => resources.found.extend(found),
            Err(error) => {
                resources
                    .missing
                    .push(format!("{}: {}", resource.plural, explained(&error)))
            }
        }
    }
    resources
}

/// Each kind, and true if it is namespaced.
#[derive(Default)]
struct AsDynamic(Vec<(ApiResource, bool)>);

impl KindVisitor for AsDynamic {
    fn visit<K: Kind>(&mut self) {
        self.0.push((
            ApiResource::erase::<K::Object>(&()),
            K::Object::is_namespaced(),
        ));
    }
}

async fn list(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> kube::Result<Vec<Value>> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let listed = api.list(&ListParams::default()).await?;
    let mut objects = Vec::new();
    for object in listed {
        let object = serde_json::to_value(object).unwrap_or_default();
        objects.push(trimmed(&resource.kind, &object));
    }
    Ok(objects)
}

fn trimmed(kind: &str, object: &Value) -> Value {
    let (metadata, annotations) = (&object["metadata"], &object["metadata"]["annotations"]);
    let metadata = METADATA
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), metadata.get(field)?.clone())));
    let own = annotations
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with(GROUP));
    let own: Vec<_> = own
        .map(|(name, value)| json!({"annotation": name, "is": value}))
        .collect();
    json!({
        "kind": kind,
        "metadata": metadata.collect::<Map<_, _>>(),
        "annotated": own,
        "spec": object["spec"],
        "status": object["status"],
    })
}

impl CollectedResources {
    /// Counts by kind, and by status and reason of the condition Ready.
    pub fn counts(&self) -> Value {
        let mut counts = BTreeMap::<String, BTreeMap<String, usize>>::new();
        for object in &self.found {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let ready = condition(object, "Ready").unwrap_or(&Value::Null);
            let status = ready["status"].as_str().unwrap_or("Unknown");
            let reason = ready["reason"].as_str().unwrap_or("Unknown");
            let state = format!("Ready={status} ({reason})");
            *counts.entry(kind).or_default().entry(state).or_default() += 1;
        }
        json!(counts)
    }

    pub fn shown(&self, all: bool) -> Value {
        self.found
            .iter()
            .filter(|object| all || !is_as_declared(object))
            .cloned()
            .collect()
    }
}

fn condition<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == of)
}

fn is_as_declared(object: &Value) -> bool {
    let observed = condition(object, "Ready").map(|ready| &ready["observedGeneration"]);
    object["metadata"].get("deletionTimestamp").is_none()
        && observed == Some(&object["metadata"]["generation"])
        && has_condition(object, "Ready", "True")
        && !has_condition(object, "Synced", "False")
        && !has_condition(object, "Stalled", "True")
}

fn has_condition(object: &Value, of: &str, status: &str) -> bool {
    condition(object, of).is_some_and(|condition| condition["status"] == status)
}
