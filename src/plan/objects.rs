//! The custom resources of a plan: as stored in the API server, with the writes of the passes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::ObjectMeta;
use crate::cluster::merge;
use crate::controller::environment::{Kind, KindVisitor, Kinds, keys};
use crate::controller::index::Key;
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;

/// Identifies a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Id {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

impl Id {
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace(),
            name: object.name_any(),
        }
    }

    /// The identity of an object as JSON, or `None` if it has no kind or name.
    pub fn of_value(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &value["metadata"];
        Some(Self {
            kind: text(&value["kind"])?,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"])?,
        })
    }

    fn of_reference<K: Managed>(reference: &ObjectRef<K>) -> Self {
        Self {
            kind: K::kind(&()).into_owned(),
            namespace: if K::is_namespaced() {
                reference.namespace.clone()
            } else {
                None
            },
            name: reference.name.clone(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

type Typed = Arc<dyn Any + Send + Sync>;

/// An object as it is stored, and parsed as its kind.
#[derive(Clone)]
pub struct StoredObject {
    pub value: Value,
    typed: Typed,
    keys: BTreeSet<Key>,
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl StoredObject {
    /// # Errors
    /// If it cannot be read as its kind, or is not a kind of dbplane.
    fn read(value: Value) -> Result<Self, String> {
        let mut read = ObjectParser {
            value: &value,
            found: None,
        };
        AllKinds::each(&mut read);
        let (typed, keys) = read
            .found
            .ok_or_else(|| format!("{} is not a kind of dbplane", value["kind"]))??;
        Ok(Self { value, typed, keys })
    }

    pub fn typed<K: Managed>(&self) -> Option<Arc<K>> {
        self.typed.clone().downcast().ok()
    }

    fn uid(&self) -> Option<&str> {
        self.value["metadata"]["uid"].as_str()
    }

    fn version(&self) -> u64 {
        self.value["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    fn is_deleting(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }

    pub fn is_owned_by(&self, uid: &str) -> bool {
        let owners = self.value["metadata"]["ownerReferences"].as_array();
        owners
            .into_iter()
            .flatten()
            .any(|owner| owner["uid"] == uid)
    }
}

type ParsedObject = Result<(Typed, BTreeSet<Key>), String>;

struct ObjectParser<'a> {
    value: &'a Value,
    found: Option<ParsedObject>,
}

impl KindVisitor for ObjectParser<'_> {
    fn visit<K: Kind>(&mut self) {
        if *self.value["kind"].as_str().unwrap_or_default() == K::Object::kind(&()) {
            let read = serde_json::from_value::<K::Object>(self.value.clone());
            self.found = Some(match read {
                Ok(object) => {
                    let keys = keys::<K>(&object);
                    Ok((Arc::new(object), keys))
                }
                Err(error) => Err(error.to_string()),
            });
        }
    }
}

/// The UID and the version that an object must still have for a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preconditions<'a> {
    pub uid: Option<&'a str>,
    pub version: Option<&'a str>,
}

impl Preconditions<'_> {
    fn are_met_by(&self, metadata: &Value) -> bool {
        self.uid.is_none_or(|uid| metadata["uid"] == uid)
            && self
                .version
                .is_none_or(|version| metadata["resourceVersion"] == version)
    }
}

#[derive(Debug, Default)]
pub struct Objects {
    all: BTreeMap<Id, StoredObject>,
    by_key: HashMap<(String, Key), BTreeSet<Id>>,
    /// Unreadable objects, by kind.
    unreadable: BTreeMap<String, Vec<Arc<ObjectMeta>>>,
    /// Deleted objects whose deletion is not handled yet.
    pub gone: Vec<(Id, StoredObject)>,
    /// Number of changes so far.
    pub writes: u64,
    made: u64,
}

/// The status codes of rejected writes.
pub const CONFLICT: u16 = 409;
pub const NOT_FOUND: u16 = 404;

impl Objects {
    /// Adds an object as stored in the API server. It may be unreadable.
    pub fn insert(&mut self, value: Value) {
        let Some(id) = Id::of_value(&value) else {
            return;
        };
        match StoredObject::read(value.clone()) {
            Ok(stored) => self.set(id, stored),
            Err(_) => {
                let meta: ObjectMeta =
                    serde_json::from_value(value["metadata"].clone()).unwrap_or_default();
                self.unreadable
                    .entry(id.kind)
                    .or_default()
                    .push(Arc::new(meta));
            }
        }
    }

    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        self.all.keys()
    }

    pub fn stored(&self, id: &Id) -> Option<&StoredObject> {
        self.all.get(id)
    }

    pub fn value(&self, id: &Id) -> Option<&Value> {
        self.all.get(id).map(|stored| &stored.value)
    }

    pub fn get<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.all.get(&Id::of_reference(reference))?.typed()
    }

    pub fn all<K: Managed>(&self) -> Vec<Arc<K>> {
        let kind = K::kind(&());
        self.all
            .iter()
            .filter(|(id, _)| id.kind == kind)
            .filter_map(|(_, stored)| stored.typed())
            .collect()
    }

    pub fn having<K: Managed>(&self, key: &Key) -> Vec<Arc<K>> {
        let ids = self.by_key.get(&(K::kind(&()).into_owned(), key.clone()));
        ids.into_iter()
            .flatten()
            .filter_map(|id| self.all.get(id)?.typed())
            .collect()
    }

    pub fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.unreadable
            .get(K::kind(&()).as_ref())
            .cloned()
            .unwrap_or_default()
    }

    /// A UID for an object that does not exist yet.
    pub fn placeholder(&mut self) -> String {
        self.made += 1;
        format!("{:08x}-0000-4000-8000-000000000000", self.made)
    }

    fn set(&mut self, id: Id, stored: StoredObject) {
        self.forget(&id);
        for key in &stored.keys {
            self.by_key
                .entry((id.kind.clone(), key.clone()))
                .or_default()
                .insert(id.clone());
        }
        self.all.insert(id, stored);
    }

    fn forget(&mut self, id: &Id) -> Option<StoredObject> {
        let stored = self.all.remove(id)?;
        for key in &stored.keys {
            if let Some(ids) = self.by_key.get_mut(&(id.kind.clone(), key.clone())) {
                ids.remove(id);
            }
        }
        Some(stored)
    }

    /// Creates an object, with the metadata that the API server sets.
    ///
    /// # Errors
    /// 409 if one with this name exists; 422 if it cannot be read.
    pub fn create(&mut self, mut value: Value, now: jiff::Timestamp) -> Result<Value, u16> {
        let id = Id::of_value(&value).ok_or(422_u16)?;
        if self.all.contains_key(&id) {
            return Err(CONFLICT);
        }
        let uid = self.placeholder();
        let created = now.round(jiff::Unit::Second).unwrap_or(now).to_string();
        let given = json!({"uid": uid, "generation": 1, "resourceVersion": "1", "creationTimestamp": created});
        merge(&mut value["metadata"], &given);
        let stored = StoredObject::read(value).map_err(|_| 422_u16)?;
        self.writes += 1;
        let value = stored.value.clone();
        self.set(id, stored);
        Ok(value)
    }

    /// Changes an object if it still has this UID and version.
    ///
    /// # Errors
    /// 404 if it is gone, 409 if it has another UID or version.
    pub fn change(
        &mut self,
        id: &Id,
        expected: Preconditions<'_>,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, u16> {
        let stored = self.all.get(id).ok_or(NOT_FOUND)?;
        if !expected.are_met_by(&stored.value["metadata"]) {
            return Err(CONFLICT);
        }
        let mut next = stored.value.clone();
        change(&mut next);
        if next == stored.value {
            return Ok(next);
        }
        if next["spec"] != stored.value["spec"] {
            next["metadata"]["generation"] =
                json!(next["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        }
        let before = stored.version();
        next["metadata"]["resourceVersion"] = json!((before + 1).to_string());
        let stored = StoredObject::read(next).map_err(|_| 422_u16)?;
        self.writes += 1;
        let mut written = stored.value.clone();
        self.set(id.clone(), stored);
        if self.collect(id) {
            // The answer to the removal of the last finalizer has the previous version.
            written["metadata"]["resourceVersion"] = json!(before.to_string());
        }
        Ok(written)
    }

    /// Deletes an object if it still has this UID and version. It disappears at once if it has no
    /// finalizers.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn delete(
        &mut self,
        id: &Id,
        expected: Preconditions<'_>,
        now: jiff::Timestamp,
    ) -> Result<(), u16> {
        let at = now.round(jiff::Unit::Second).unwrap_or(now).to_string();
        self.change(id, expected, |object| {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = json!(at);
            }
        })
        .map(drop)
    }

    /// Removes a deleted object without finalizers, and deletes the objects that it owns. Returns
    /// true if it was removed.
    fn collect(&mut self, id: &Id) -> bool {
        let Some(stored) = self.all.get(id) else {
            return false;
        };
        let has_finalizers = stored.value["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if has_finalizers || !stored.is_deleting() {
            return false;
        }
        let at = stored.value["metadata"]["deletionTimestamp"]
            .as_str()
            .and_then(|time| time.parse().ok());
        let uid = stored.uid().unwrap_or_default().to_owned();
        let gone = self.forget(id).map(|stored| (id.clone(), stored));
        self.gone.extend(gone);
        let owned = self
            .all
            .iter()
            .filter(|(_, stored)| stored.is_owned_by(&uid));
        let owned: Vec<Id> = owned.map(|(id, _)| id.clone()).collect();
        for child in owned {
            // It exists, because it was just found.
            let _ = self.delete(&child, Preconditions::default(), at.unwrap_or_default());
        }
        true
    }
}
