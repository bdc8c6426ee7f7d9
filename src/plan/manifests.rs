//! Applies manifests to the resources of the cluster, in memory.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::cluster::PlanCluster;
use super::fields::{remove_applied, remove_declared};
use super::id::Id;
use super::steps::ManifestChange;
use crate::api::GROUP;
use crate::cluster::merge;
use crate::controller::environment::{Kind, KindVisitor, Kinds};
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;
use crate::decide::names::FIELD_MANAGER;
use crate::in_memory::full_name;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Applies a manifest; `namespace` is that of manifests that name none. Returns its resource, or
/// `None` if it is none of dbplane.
pub fn apply(
    cluster: &PlanCluster,
    manifest: &Value,
    namespace: &str,
) -> Result<Option<(Id, ManifestChange)>, String> {
    let api_version = manifest["apiVersion"].as_str().unwrap_or_default();
    if api_version == "v1" && manifest["kind"] == "Secret" {
        declare(cluster, manifest.clone(), namespace)?;
        return Ok(None);
    }
    if api_version.split('/').next() != Some(GROUP) {
        return Ok(None);
    }
    let mut manifest = manifest.clone();
    set_namespace(&mut manifest, namespace);
    let id = Id::of_value(&manifest).ok_or("a manifest has no kind or no name")?;
    let unreadable = || format!("{id} cannot be read");
    let resource = id.resource().ok_or_else(unreadable)?;
    let Some(stored) = cluster.find(&id) else {
        let metadata = &manifest["metadata"];
        let named = json!({
            "apiVersion": manifest["apiVersion"], "kind": id.kind, "spec": manifest["spec"],
            "metadata": {
                "name": id.name, "namespace": metadata["namespace"],
                "labels": metadata["labels"], "annotations": metadata["annotations"],
            },
        });
        cluster
            .stored()
            .create(&resource, without_nulls(named), cluster.now)
            .map_err(|_| unreadable())?;
        return Ok(Some((id, ManifestChange::New)));
    };
    let before = &stored.value;
    let next = applied(before, &manifest);
    let differs = canonical(&next) != canonical(before) || next["metadata"] != before["metadata"];
    if !differs {
        return Ok(Some((id, ManifestChange::Unchanged)));
    }
    let next = stored.changed(|object| *object = next);
    let next = next.map_err(|_| unreadable())?;
    cluster.stored().put(&resource, next);
    Ok(Some((id, ManifestChange::Changed)))
}

/// Sets the namespace if the manifest names none, and removes it from cluster-scoped objects.
fn set_namespace(manifest: &mut Value, namespace: &str) {
    let is_namespaced = is_namespaced(manifest["kind"].as_str().unwrap_or_default());
    let metadata = &mut manifest["metadata"];
    if !is_namespaced {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
    } else if metadata["namespace"].is_null() {
        metadata["namespace"] = json!(namespace);
    }
}

/// The object after an apply. It gets the fields of the manifest, and loses fields that were
/// applied earlier and are no longer declared.
fn applied(stored: &Value, manifest: &Value) -> Value {
    let mut next = stored.clone();
    let before = stored["metadata"]["annotations"][LAST_APPLIED].as_str();
    let before: Value = before
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let managers = stored["metadata"]["managedFields"].as_array();
    let by_others = |entry: &&Value| {
        entry["operation"] == "Apply"
            && entry["manager"] != FIELD_MANAGER
            && entry["subresource"].is_null()
    };
    for entry in managers.into_iter().flatten().filter(by_others) {
        let fields = &entry["fieldsV1"];
        remove_applied(&mut next["spec"], &manifest["spec"], &fields["f:spec"]);
        for part in ["labels", "annotations"] {
            let applied = &fields["f:metadata"][format!("f:{part}")];
            remove_applied(
                &mut next["metadata"][part],
                &manifest["metadata"][part],
                applied,
            );
        }
    }
    remove_declared(&mut next["spec"], &manifest["spec"], &before["spec"]);
    for part in ["labels", "annotations"] {
        remove_declared(
            &mut next["metadata"][part],
            &manifest["metadata"][part],
            &before["metadata"][part],
        );
        if let declared @ Value::Object(_) = &manifest["metadata"][part] {
            merge(&mut next["metadata"][part], declared);
        }
        if next["metadata"][part].is_null()
            && let Some(metadata) = next["metadata"].as_object_mut()
        {
            metadata.remove(part);
        }
    }
    merge(&mut next["spec"], &manifest["spec"]);
    // An equivalent spec does not count as a change.
    if canonical(&next) == canonical(stored) {
        next["spec"] = stored["spec"].clone();
    }
    next
}

/// A spec with the defaults of its kind.
fn canonical(object: &Value) -> Option<Value> {
    struct CanonicalSpec<'a>(&'a Value, Option<Value>);
    impl KindVisitor for CanonicalSpec<'_> {
        fn visit<K: Kind>(&mut self) {
            if *self.0["kind"].as_str().unwrap_or_default() == K::Object::kind(&()) {
                let read = serde_json::from_value::<K::Object>(self.0.clone()).ok();
                self.1 = read
                    .and_then(|object| serde_json::to_value(object).ok())
                    .map(|mut it| it["spec"].take());
            }
        }
    }
    use kube::Resource;
    let mut read = CanonicalSpec(object, None);
    AllKinds::each(&mut read);
    read.1
}

/// True if objects of a kind are in namespaces.
pub fn is_namespaced(kind: &str) -> bool {
    struct KindScope<'a>(&'a str, bool);
    impl KindVisitor for KindScope<'_> {
        fn visit<K: Kind>(&mut self) {
            use kube::Resource;
            if *self.0 == K::Object::kind(&()) {
                self.1 = K::Object::is_namespaced();
            }
        }
    }
    let mut named = KindScope(kind, true);
    AllKinds::each(&mut named);
    named.1
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
        for field in fields.values_mut() {
            *field = without_nulls(field.take());
        }
    }
    value
}

/// A Secret that is applied together with resources that refer to it.
fn declare(cluster: &PlanCluster, mut manifest: Value, namespace: &str) -> Result<(), String> {
    let text = manifest["stringData"].take();
    let mut secret: Secret =
        serde_json::from_value(manifest).map_err(|_| "a Secret cannot be read".to_owned())?;
    let data = secret.data.get_or_insert_default();
    for (entry, value) in text.as_object().into_iter().flatten() {
        data.insert(
            entry.clone(),
            ByteString(value.as_str().unwrap_or_default().as_bytes().to_vec()),
        );
    }
    let namespace = secret.namespace().unwrap_or_else(|| namespace.to_owned());
    let name = full_name(Some(&namespace), &secret.name_any());
    secret.metadata.namespace = Some(namespace);
    cluster.declare_secret(&name, secret);
    Ok(())
}
