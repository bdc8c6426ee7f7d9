//! A cluster in memory: objects with versions, finalizers and owners, as far as the operator relies on them.

use std::collections::BTreeMap;

use dbplane::cluster::{Owner, SecretContent, empty_secret};
use dbplane::controller::Managed;
use dbplane::decide::names::MANAGED_BY;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::{ObjectMeta, Status};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::stage::Resource;

pub const NAMESPACE: &str = "shop";

#[derive(Debug, Default)]
pub struct Cluster {
    objects: BTreeMap<Resource, Value>,
    pub secrets: BTreeMap<String, Secret>,
    count: u32,
}

pub fn refused(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status { code, message: message.into(), ..Status::default() }))
}

/// The kind of an object, as the keys of resources have it.
pub fn kind<K: Managed>() -> &'static str {
    if K::kind(&()) == "Compute" { "Compute" } else { "ProjectKey" }
}

impl Cluster {
    pub fn resources(&self) -> Vec<Resource> {
        self.objects.keys().cloned().collect()
    }

    pub fn get<K: Managed>(&self, name: &str) -> Option<K> {
        self.objects.get(&(kind::<K>(), name.to_owned())).map(|value| serde_json::from_value(value.clone()).unwrap())
    }

    pub fn all<K: Managed>(&self) -> Vec<K> {
        let names = self.objects.keys().filter(|(this, _)| *this == kind::<K>());
        names.filter_map(|(_, name)| self.get(name)).collect()
    }

    /// Creates an object as people do, with these annotations.
    pub fn create(&mut self, (kind, name): &Resource, spec: &Value, annotations: &Value, now: Timestamp) {
        let uid = format!("{:08x}-0000-4000-8000-000000000000", 0x1000 + self.next());
        let object = json!({
            "apiVersion": "dbplane.dev/v1alpha1",
            "kind": kind,
            "metadata": {
                "namespace": NAMESPACE,
                "name": name,
                "uid": uid,
                "generation": 1,
                "resourceVersion": self.next().to_string(),
                "creationTimestamp": now.round(jiff::Unit::Second).unwrap().to_string(),
                "annotations": annotations,
            },
            "spec": spec,
        });
        self.objects.insert((kind, name.clone()), object);
    }

    /// What people change: the spec counts generations, anything else does not.
    pub fn edit(&mut self, resource: &Resource, patch: &Value) {
        let version = self.next();
        let Some(object) = self.objects.get_mut(resource) else { return };
        let before = object["spec"].clone();
        merge(object, patch);
        if object["spec"] != before {
            let generation = object["metadata"]["generation"].as_i64().unwrap();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }

    /// Deletes an object; it goes at once where nothing holds it.
    pub fn delete(&mut self, resource: &Resource, now: Timestamp) {
        let Some(object) = self.objects.get(resource) else { return };
        if object["metadata"]["deletionTimestamp"].is_null() {
            let at = now.round(jiff::Unit::Second).unwrap().to_string();
            self.edit(resource, &json!({"metadata": {"deletionTimestamp": at}}));
        }
        self.collect(resource);
    }

    /// The object is no more, whatever held it.
    pub fn forget(&mut self, resource: &Resource) -> Option<Value> {
        self.objects.remove(resource)
    }

    fn collect(&mut self, resource: &Resource) {
        let Some(object) = self.objects.get(resource) else { return };
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if object["metadata"]["deletionTimestamp"].is_null() || held {
            return;
        }
        let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
        self.objects.remove(resource);
        self.secrets.retain(|_, secret| secret.owner_references().iter().all(|owner| owner.uid != uid));
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    /// A merge patch of the metadata onto the version that it names. What then stands, and whether that is new.
    pub fn patch<K: Managed>(&mut self, object: &K, patch: &Value) -> Result<(K, bool), kube::Error> {
        let version = patch["metadata"]["resourceVersion"].clone();
        self.change(object, |stands| {
            if version != stands["metadata"]["resourceVersion"] {
                return Err(refused(409, "the object has been modified"));
            }
            merge(stands, patch);
            Ok(())
        })
    }

    /// Server-side apply of the status: what is left out goes.
    pub fn set_status<K: Managed>(&mut self, object: &K, status: &Value) -> Result<(K, bool), kube::Error> {
        self.change(object, |stands| {
            stands["status"] = status.clone();
            Ok(())
        })
    }

    fn change<K: Managed>(
        &mut self,
        object: &K,
        change: impl FnOnce(&mut Value) -> Result<(), kube::Error>,
    ) -> Result<(K, bool), kube::Error> {
        let resource = (kind::<K>(), object.name_any());
        let version = self.next();
        let stands = self.objects.get_mut(&resource).ok_or_else(|| refused(404, "not found"))?;
        if stands["metadata"]["uid"].as_str() != object.uid().as_deref() {
            return Err(refused(409, "another UID"));
        }
        let mut next = stands.clone();
        change(&mut next)?;
        let news = next != *stands;
        if news {
            next["metadata"]["resourceVersion"] = json!(version.to_string());
            *stands = next.clone();
        }
        self.collect(&resource);
        Ok((serde_json::from_value(next).unwrap(), news))
    }

    pub fn create_secret(&mut self, owner: &Owner, name: &str) -> Result<(), kube::Error> {
        if self.secrets.contains_key(name) {
            return Err(refused(409, "it exists"));
        }
        let secret = self.numbered(empty_secret(owner, name));
        self.secrets.insert(name.to_owned(), secret);
        Ok(())
    }

    fn numbered(&mut self, mut secret: Secret) -> Secret {
        secret.metadata.uid = Some(format!("secret-{}", self.next()));
        secret.metadata.resource_version = Some(self.next().to_string());
        secret
    }

    /// Server-side apply.
    pub fn write_secret(
        &mut self,
        owner: &Owner,
        (name, uid): (&str, Option<&str>),
        content: &SecretContent,
    ) -> Result<Secret, kube::Error> {
        let stands = self.secrets.get(name).cloned();
        if uid.is_some() && stands.as_ref().and_then(|secret| secret.metadata.uid.as_deref()) != uid {
            return Err(refused(409, "another UID"));
        }
        let absent = || Secret {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Secret::default()
        };
        let mut secret = match stands {
            Some(stands) => stands,
            None => self.numbered(absent()),
        };
        let owners = secret.metadata.owner_references.get_or_insert_default();
        if owners.iter().all(|other| other.uid != owner.uid) {
            owners.push(owner.reference.clone());
        }
        secret.labels_mut().extend(content.labels.clone());
        secret.labels_mut().insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        secret.annotations_mut().extend(content.annotations.clone());
        let bytes = |text: &secrecy::SecretString| ByteString(text.expose_secret().as_bytes().to_vec());
        let entries = content.data.iter().map(|(entry, text)| (entry.clone(), bytes(text)));
        secret.data.get_or_insert_default().extend(entries);
        secret.metadata.resource_version = Some(self.next().to_string());
        self.secrets.insert(name.to_owned(), secret.clone());
        Ok(secret)
    }

    pub fn adopt_secret(&mut self, owner: &Owner, name: &str, version: &str) -> Result<(), kube::Error> {
        let next = self.next();
        let secret = self.secrets.get_mut(name).ok_or_else(|| refused(404, "not found"))?;
        if secret.resource_version().as_deref() != Some(version) {
            return Err(refused(409, "the object has been modified"));
        }
        secret.metadata.owner_references = Some(vec![owner.reference.clone()]);
        secret.metadata.resource_version = Some(next.to_string());
        Ok(())
    }
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in members {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            value => merge(&mut object[name.as_str()], value),
        }
    }
}
