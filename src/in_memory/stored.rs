//! Stored objects, with their typed form.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::print::{Print, hash};
use crate::cluster::merge;
use crate::controller::environment::{Kind, KindVisitor, Kinds, keys};
use crate::controller::index::Key;
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;

/// The status codes of rejected requests.
pub const NOT_FOUND: u16 = 404;
pub const CONFLICT: u16 = 409;
pub(super) const INVALID: u16 = 422;

type Typed = Arc<dyn Any + Send + Sync>;

/// A stored object in both forms: JSON and typed.
#[derive(Clone)]
pub struct Stored {
    pub value: Value,
    typed: Typed,
    /// Hashes, because many are compared.
    keys: Arc<[u64]>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }
}

impl Stored {
    /// # Errors
    /// If it cannot be read as its kind, or is not a kind of dbplane.
    pub fn read(value: Value) -> Result<Print<Self>, String> {
        let mut read = ObjectParser {
            value: &value,
            found: None,
        };
        AllKinds::each(&mut read);
        let (typed, keys) = read
            .found
            .ok_or_else(|| format!("{} is not a kind of dbplane", value["kind"]))??;
        Ok(Print::hashed(
            hash(&value.to_string()),
            Self {
                value,
                typed,
                keys: keys.iter().map(hash).collect(),
            },
        ))
    }

    /// The object as a value of its type; `None` if it is of another kind.
    pub fn typed<K: Managed>(&self) -> Option<Arc<K>> {
        self.typed.clone().downcast().ok()
    }

    /// The hashes of its index keys.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub fn version(&self) -> u64 {
        self.value["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    pub fn uid(&self) -> &str {
        self.value["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub fn is_deleting(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }

    /// The time of its deletion, if it is being deleted.
    pub(super) fn deleted_at(&self) -> Option<Timestamp> {
        let time = self.value["metadata"]["deletionTimestamp"].as_str()?;
        Some(time.parse().unwrap_or_default())
    }

    pub(super) fn has_finalizers(&self) -> bool {
        let finalizers = self.value["metadata"]["finalizers"].as_array();
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    }

    pub fn is_owned_by(&self, uid: &str) -> bool {
        let owners = self.value["metadata"]["ownerReferences"].as_array();
        owners
            .into_iter()
            .flatten()
            .any(|owner| owner["uid"] == uid)
    }
}

impl Print<Stored> {
    /// The object after a change, with its next version, and with its next generation if the spec
    /// has changed.
    ///
    /// # Errors
    /// 422 if it cannot be read as its kind any more.
    pub fn changed(&self, change: impl FnOnce(&mut Value)) -> Result<Self, u16> {
        let mut next = self.value.clone();
        change(&mut next);
        if next == self.value {
            return Ok(self.clone());
        }
        if next["spec"] != self.value["spec"] {
            let generation = next["metadata"]["generation"].as_i64().unwrap_or_default();
            next["metadata"]["generation"] = json!(generation + 1);
        }
        next["metadata"]["resourceVersion"] = json!((self.version() + 1).to_string());
        Stored::read(next).map_err(|_| INVALID)
    }

    /// The object after a merge patch.
    ///
    /// # Errors
    /// 409 if the patch names another version, and those of [`Self::changed`].
    pub fn patched(&self, patch: &str) -> Result<Self, u16> {
        let patch = self.for_this_version(patch)?;
        self.changed(|object| merge(object, &patch))
    }

    /// The object after an apply of the status.
    ///
    /// # Errors
    /// As [`Self::patched`].
    pub fn with_status(&self, patch: &str) -> Result<Self, u16> {
        let mut patch = self.for_this_version(patch)?;
        self.changed(|object| object["status"] = patch["status"].take())
    }

    fn for_this_version(&self, patch: &str) -> Result<Value, u16> {
        let patch: Value = serde_json::from_str(patch).map_err(|_| INVALID)?;
        let version = &patch["metadata"]["resourceVersion"];
        if version.is_null() || *version == self.value["metadata"]["resourceVersion"] {
            Ok(patch)
        } else {
            Err(CONFLICT)
        }
    }

    pub(super) fn with_version(&self, version: u64) -> Result<Self, u16> {
        let mut value = self.value.clone();
        value["metadata"]["resourceVersion"] = json!(version.to_string());
        Stored::read(value).map_err(|_| INVALID)
    }
}

type ParsedObject = Result<(Typed, BTreeSet<Key>), String>;

struct ObjectParser<'a> {
    value: &'a Value,
    found: Option<ParsedObject>,
}

impl KindVisitor for ObjectParser<'_> {
    fn visit<K: Kind>(&mut self) {
        if self.value["kind"] != *K::Object::kind(&()) {
            return;
        }
        self.found = Some(match K::Object::deserialize(self.value) {
            Ok(object) => {
                let keys = keys::<K>(&object);
                Ok((Arc::new(object), keys))
            }
            Err(error) => Err(error.to_string()),
        });
    }
}

/// The name of a kind, as used in keys of resources.
pub fn kind<K: kube::Resource<DynamicType = ()>>() -> &'static str {
    kind_named(&K::kind(&())).unwrap_or_default()
}

/// The kind of this name, if it is a kind of dbplane.
pub fn kind_named(name: &str) -> Option<&'static str> {
    struct Names<'a>(&'a str, Option<&'static str>);
    impl KindVisitor for Names<'_> {
        fn visit<K: Kind>(&mut self) {
            // The kinds' derived names are static.
            if let Cow::Borrowed(name) = K::Object::kind(&())
                && name == self.0
            {
                self.1 = Some(name);
            }
        }
    }
    let mut names = Names(name, None);
    AllKinds::each(&mut names);
    names.1
}
