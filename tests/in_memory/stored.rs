//! Stored objects, with their typed form.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use dbplane::controller::environment::{Kind, KindVisitor, Kinds, keys};
use dbplane::controller::index::Key;
use dbplane::controller::object::Managed;
use dbplane::controller::registry::AllKinds;
use kube::Resource as _;
use serde_json::Value;

use super::print::{Print, hash};

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
    pub fn new(kind: &str, value: Value) -> Print<Self> {
        let mut read = Read {
            kind,
            value: &value,
            found: None,
        };
        AllKinds::each(&mut read);
        let (typed, keys) = read
            .found
            .unwrap_or_else(|| panic!("{kind} is not registered"));
        Print::hashed(
            hash(&value.to_string()),
            Self {
                value,
                typed,
                keys: keys.iter().map(hash).collect(),
            },
        )
    }

    /// The object as a value of its type.
    pub fn typed<K: Managed>(&self) -> Arc<K> {
        self.typed
            .clone()
            .downcast()
            .expect("the kind of the object")
    }

    /// The hashes of its index keys.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub fn version(&self) -> u64 {
        self.value["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    pub fn is_deleting(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }

    pub fn uid(&self) -> &str {
        self.value["metadata"]["uid"].as_str().unwrap()
    }
}

struct Read<'a> {
    kind: &'a str,
    value: &'a Value,
    found: Option<(Typed, BTreeSet<Key>)>,
}

impl KindVisitor for Read<'_> {
    fn visit<K: Kind>(&mut self) {
        if K::Object::kind(&()) == self.kind {
            let object: K::Object = serde_json::from_value(self.value.clone()).unwrap();
            let keys = keys::<K>(&object);
            self.found = Some((Arc::new(object), keys));
        }
    }
}

/// The name of a kind, as used in keys of resources.
pub fn kind<K: Managed>() -> &'static str {
    struct Names<'a>(&'a str, Option<&'static str>);
    impl KindVisitor for Names<'_> {
        fn visit<K: Kind>(&mut self) {
            // The kinds' derived names are static.
            if let std::borrow::Cow::Borrowed(name) = K::Object::kind(&())
                && name == self.0
            {
                self.1 = Some(name);
            }
        }
    }
    let wanted = K::kind(&());
    let mut names = Names(&wanted, None);
    AllKinds::each(&mut names);
    names.1.expect("a registered kind")
}
