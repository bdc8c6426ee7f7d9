//! The objects of a cluster, indexed by name and by key.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::print::Print;
use super::request::Resource;
use super::stored::Stored;

/// Objects by name. Copies share the index by key until an object's keys change.
#[derive(Clone, Debug, Default)]
pub struct ObjectsByName {
    stored: BTreeMap<Resource, Print<Stored>>,
    /// Names of the objects of a kind with a key, by the hash of the key.
    by_key: Arc<BTreeMap<(&'static str, u64), BTreeSet<String>>>,
}

impl Deref for ObjectsByName {
    type Target = BTreeMap<Resource, Print<Stored>>;

    fn deref(&self) -> &Self::Target {
        &self.stored
    }
}

/// The index is derived from the objects, so it is left out of the hash.
impl Hash for ObjectsByName {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.stored.hash(hasher);
    }
}

impl ObjectsByName {
    pub fn insert(&mut self, resource: Resource, stored: Print<Stored>) {
        let before = self.stored.insert(resource.clone(), stored.clone());
        self.index(
            &resource,
            before.as_deref().map_or(&[], Stored::keys),
            stored.keys(),
        );
    }

    pub fn remove(&mut self, resource: &Resource) -> Option<Print<Stored>> {
        let gone = self.stored.remove(resource)?;
        self.index(resource, gone.keys(), &[]);
        Some(gone)
    }

    /// The objects of a kind whose key has this hash.
    pub fn having(&self, kind: &'static str, key: u64) -> impl Iterator<Item = &Print<Stored>> {
        let names = self.by_key.get(&(kind, key)).into_iter().flatten();
        names.filter_map(move |name| self.stored.get(&(kind, name.clone())))
    }

    fn index(&mut self, (kind, name): &Resource, before: &[u64], now: &[u64]) {
        if before == now {
            return;
        }
        let by_key = Arc::make_mut(&mut self.by_key);
        for key in before {
            let names = by_key.entry((*kind, *key)).or_default();
            names.remove(name);
            if names.is_empty() {
                by_key.remove(&(*kind, *key));
            }
        }
        for key in now {
            by_key
                .entry((*kind, *key))
                .or_default()
                .insert(name.clone());
        }
    }
}
