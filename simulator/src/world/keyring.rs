//! All API keys, found by id or by token. Revoked keys stay for ever, so that they are refused for ever.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::Key;
use super::secret::Token;
use super::tracked::Tracked;

/// The keys and their indexes.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    keys: Tracked<i64, Key>,
    by_token: BTreeMap<Token, i64>,
    /// Account and name of every key that is not revoked.
    names: BTreeSet<(String, String)>,
}

impl KeyRing {
    /// Adds a key.
    pub fn add(&mut self, key: Key) {
        self.index(&key);
        self.keys.insert(key.id, key);
    }

    /// Puts back a key that was read from storage.
    pub fn restore(&mut self, key: Key) {
        self.index(&key);
        self.keys.restore(key.id, key);
    }

    fn index(&mut self, key: &Key) {
        self.by_token.insert(key.token.clone(), key.id);
        if key.revoked_at.is_none() {
            self.names.insert(account_and_name(key));
        }
    }

    /// The key with this id.
    pub fn get(&self, id: i64) -> Option<&Key> {
        self.keys.get(&id)
    }

    /// The key with this token.
    pub fn find(&self, token: &Token) -> Option<&Key> {
        self.by_token.get(token).and_then(|id| self.keys.get(id))
    }

    /// Whether the text is the token of a key, revoked or not.
    pub fn is_token(&self, text: &str) -> bool {
        self.by_token.contains_key(&Token::new(text))
    }

    /// Whether the account has a key of this name that is not revoked.
    pub fn has_name(&self, account: &str, name: &str) -> bool {
        self.names.contains(&(account.to_owned(), name.to_owned()))
    }

    /// Notes that a key was used.
    pub fn used(&mut self, id: i64, at: Timestamp, from: &str) {
        if let Some(key) = self.keys.get_mut(&id) {
            key.last_used_at = Some(at);
            from.clone_into(&mut key.last_used_from_addr);
        }
    }

    /// Revokes a key, for ever. A key that is revoked already stays as it was.
    pub fn revoke(&mut self, id: i64, at: Timestamp) -> Option<&Key> {
        let key = self.keys.get_mut(&id)?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(at);
            let name = account_and_name(key);
            // Only the public profile refuses a second key of one name.
            if !self.iter().any(|other| other.revoked_at.is_none() && account_and_name(other) == name) {
                self.names.remove(&name);
            }
        }
        self.get(id)
    }

    /// All keys in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().map(|(_, key)| key)
    }

    /// The id for the next key.
    pub fn next_id(&self) -> i64 {
        self.keys.iter().next_back().map_or(1, |(id, _)| id + 1)
    }

    /// Forgets which keys changed.
    pub fn forget_touched(&mut self) {
        self.keys.forget_touched();
    }

    /// The keys changed since the last call.
    pub fn take_touched(&mut self) -> Vec<(i64, Option<&Key>)> {
        self.keys.take_touched()
    }
}

fn account_and_name(key: &Key) -> (String, String) {
    (key.reach.account().to_owned(), key.name.clone())
}

impl Serialize for KeyRing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for KeyRing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut ring = Self::default();
        for key in Vec::deserialize(deserializer)? {
            ring.restore(key);
        }
        Ok(ring)
    }
}
