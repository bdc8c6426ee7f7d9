//! A map that records its changed entries, so that only those are written to the state file.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::RangeBounds;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone)]
pub struct Tracked<K, V> {
    entries: BTreeMap<K, V>,
    touched: BTreeSet<K>,
}

impl<K: Ord + Clone, V> Default for Tracked<K, V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone, V> Tracked<K, V> {
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.entries.get(key)
    }

    /// Mutable access to an entry; marks it as changed.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let entry = self.entries.get_mut(key)?;
        self.touched.insert(key.to_owned());
        Some(entry)
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.touched.insert(key.clone());
        self.entries.insert(key, value);
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.touched.insert(key.clone());
        Some(entry)
    }

    /// Restores an entry from storage without marking it as changed.
    pub fn restore(&mut self, key: K, value: V) {
        self.entries.insert(key, value);
    }

    pub fn iter(&self) -> btree_map::Iter<'_, K, V> {
        self.entries.iter()
    }

    pub fn range<R: RangeBounds<K>>(&self, range: R) -> btree_map::Range<'_, K, V> {
        self.entries.range(range)
    }

    /// Clears the record of changed keys.
    pub fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// The keys changed since the last call with their entries; `None` if removed.
    pub fn take_touched(&mut self) -> Vec<(K, Option<&V>)> {
        let touched = std::mem::take(&mut self.touched);
        touched
            .into_iter()
            .map(|key| {
                let entry = self.entries.get(&key);
                (key, entry)
            })
            .collect()
    }
}

/// Serialized as a list of pairs, since JSON keys must be strings.
impl<K: Serialize, V: Serialize> Serialize for Tracked<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries.iter())
    }
}

impl<'de, K, V> Deserialize<'de> for Tracked<K, V>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Vec<(K, V)> = Vec::deserialize(deserializer)?;
        Ok(Self {
            entries: pairs.into_iter().collect(),
            touched: BTreeSet::new(),
        })
    }
}
