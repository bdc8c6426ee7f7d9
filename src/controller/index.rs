//! An index of the objects, so that a lookup does not scan all of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use kube::Resource;
use kube::runtime::reflector::ObjectRef;

use super::object::{AccountName, reference};
use crate::decide::compute::ClaimSubject;

/// A property that indexed objects have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// They have no namespace.
    ClusterScoped,
    /// They are in this namespace.
    Namespace(String),
    /// They are in this namespace and refer to a ClusterAccount, which may admit them by the
    /// namespace's labels.
    Admitted(String),
    /// They refer to this account.
    Account(AccountName),
    /// They read or write the Secret with this namespace and name, or did so before.
    Secret(String, String),
    /// They claim this, by their record.
    Claim(ClaimSubject),
    /// They declare this in their spec.
    Want(ClaimSubject),
    /// They may adopt Computes of this namespace.
    Selector(String),
    /// The brake has paused their deletion. They refer to this account and are in this namespace.
    Braked(AccountName, String),
}

impl Key {
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self::Secret(namespace.to_owned(), name.to_owned())
    }
}

#[derive(Debug)]
pub struct Index<K: Resource<DynamicType = ()>>(RwLock<Entries<K>>);

#[derive(Debug)]
struct Entries<K: Resource<DynamicType = ()>> {
    objects: HashMap<Arc<Key>, HashSet<Arc<ObjectRef<K>>>>,
    keys: HashMap<Arc<ObjectRef<K>>, Box<[Arc<Key>]>>,
}

impl<K: Resource<DynamicType = ()>> Default for Index<K> {
    fn default() -> Self {
        Self(RwLock::new(Entries {
            objects: HashMap::new(),
            keys: HashMap::new(),
        }))
    }
}

impl<K: Resource<DynamicType = ()>> Index<K> {
    pub fn find(&self, key: &Key) -> Vec<Arc<ObjectRef<K>>> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .objects
            .get(key)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Replaces the keys of an object.
    pub fn set(&self, object: &K, keys: &BTreeSet<Key>) {
        let reference = reference(object);
        let is_known = {
            let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
            entries
                .keys
                .get(&reference)
                .is_some_and(|known| known.iter().map(AsRef::as_ref).eq(keys))
        };
        if !is_known {
            self.0
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .set(reference, keys);
        }
    }

    pub fn remove(&self, object: &K) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&reference(object));
    }
}

impl<K: Resource<DynamicType = ()>> Entries<K> {
    fn set(&mut self, reference: ObjectRef<K>, keys: &BTreeSet<Key>) {
        self.remove(&reference);
        let reference = Arc::new(reference);
        let mut interned = Vec::with_capacity(keys.len());
        for key in keys {
            let known = self
                .objects
                .get_key_value(key)
                .map(|(known, _)| known.clone());
            let key = known.unwrap_or_else(|| Arc::new(key.clone()));
            self.objects
                .entry(key.clone())
                .or_default()
                .insert(reference.clone());
            interned.push(key);
        }
        self.keys.insert(reference, interned.into());
    }

    fn remove(&mut self, reference: &ObjectRef<K>) {
        for key in self.keys.remove(reference).into_iter().flatten() {
            let Some(objects) = self.objects.get_mut(&key) else {
                continue;
            };
            objects.remove(reference);
            if objects.is_empty() {
                self.objects.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
