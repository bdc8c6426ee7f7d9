//! What is recorded of a ProjectKey: every key that it ever had and that is not known to be revoked.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A key that is, or was, in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIdentity {
    pub id: i64,
    pub name: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// A key that was replaced and is to be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    pub id: i64,
    pub name: String,
    pub since: Timestamp,
    /// When it is to be revoked, or, where it is waited for, at the earliest.
    pub retire_at: Timestamp,
    /// It could be used when it was replaced, so that something may use it still: spec.rotation says how that is waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotated: bool,
    /// It was seen to work, so that a list which shows no use of it does not show its uses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worked: bool,
    /// The last use that the lists show, where they show one and spec.rotation waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use: Option<LastUse>,
}

/// A last use, and since when every list has shown it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUse {
    /// By the platform's clock, and compared with nothing but another one; absent where the key was never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// By the clock of the operator.
    pub since: Timestamp,
}

/// A key that may exist although dbplane never received its secret, or that could not be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub name: String,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "LostBecause::is_unanswered")]
    pub because: LostBecause,
    /// Where dbplane cannot revoke it: when the first list was begun since which none has shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Timestamp>,
}

/// Why a key is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostBecause {
    /// Its secret never arrived.
    #[default]
    Unanswered,
    /// It was in use before another replaced it, and could not be revoked.
    Retired,
    /// The platform answered the creation with this number and another name or project.
    OtherKey,
    /// The platform did not accept it when it was to be used.
    Refused,
}

impl LostBecause {
    fn is_unanswered(&self) -> bool {
        *self == Self::Unanswered
    }
}

/// All keys that a ProjectKey ever had and that are not known to be revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<KeyIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// The number of the key in use, where it was tried before it was switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<i64>,
    /// The last request of people for another key that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_for: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<RetiredKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostKey>,
    /// The organization of these keys: in another one they can be neither found nor revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The base URL of the platform that made these keys: no request with one of them, or about one, goes anywhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The names of those that an annotation or a Secret brought, from a backup or forged: people can write both. The platform has to
    /// list such a key under its number and name before it is revoked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub restored: BTreeSet<String>,
    /// When a creation was begun that was never answered, and whose key no list has shown: it may still appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Timestamp>,
    /// What people said last of keys that they have revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
}

/// What people said of keys that they have revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// A digest of the annotation.
    pub annotation: String,
    /// The keys that it named, and that were dropped from the records.
    pub keys: Vec<String>,
}

/// The intent to create a key, written before the call: from then on the key may exist, under this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIntent {
    pub name: String,
    pub at: Timestamp,
    /// When to revoke the key that this one replaces; absent where it replaces none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retire_previous_at: Option<Timestamp>,
    /// The key that this one replaces is known to be revoked already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous_revoked: bool,
    /// The organization that it is created in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The base URL of the platform that it is created on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The key that this one replaces can be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotates: bool,
    /// The key that this one replaces was seen to work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_working: bool,
    /// What people asked for a key with, which this one serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
}

impl KeyRecords {
    /// The records once the intended key is in its Secret: the key it replaces is retired, and dropped from the records only
    /// when it is known to be revoked.
    pub fn succeeded_by(&self, key: KeyIdentity, intent: &KeyIntent) -> Self {
        let mut records = self.of(intent);
        records.rotated_for = intent.requested.clone().or(records.rotated_for);
        let tried = std::mem::replace(&mut records.tried, intent.rotates.then_some(key.id));
        let Some(before) = records.current.replace(key.clone()).filter(|before| before.id != key.id) else {
            return records;
        };
        records.rotated_at = Some(intent.at);
        if !intent.previous_revoked {
            let retire_at = intent.retire_previous_at.unwrap_or(intent.at);
            records.previous.push(RetiredKey {
                id: before.id,
                name: before.name,
                since: intent.at,
                retire_at,
                rotated: intent.rotates,
                worked: intent.replaces_working || tried == Some(before.id),
                last_use: None,
            });
        }
        records
    }

    /// The records, with the organization and the platform of the intended key.
    pub fn of(&self, intent: &KeyIntent) -> Self {
        let organization = intent.organization.clone().or_else(|| self.organization.clone());
        let platform = intent.platform.clone().or_else(|| self.platform.clone());
        Self { organization, platform, ..self.clone() }
    }

    /// The records after a key was found in its Secret. Only the Secret tells its number, so the key counts as restored.
    pub fn found_in_secret(&self, key: &KeyIdentity, intent: &KeyIntent) -> Self {
        let mut records = self.succeeded_by(key.clone(), intent);
        records.restored.insert(key.name.clone());
        records
    }

    /// Without the names of restored keys that are not recorded any more.
    #[must_use]
    pub fn tidied(mut self) -> Self {
        let names: BTreeSet<String> = self.names().map(str::to_owned).collect();
        self.restored.retain(|name| names.contains(name));
        self
    }

    /// The names of all recorded keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let current = self.current.iter().map(|key| key.name.as_str());
        let previous = self.previous.iter().map(|key| key.name.as_str());
        current.chain(previous).chain(self.lost.iter().map(|key| key.name.as_str()))
    }
}

/// What is recorded of a ProjectKey.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectKeyIdentity {
    #[serde(default)]
    pub records: KeyRecords,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<KeyIntent>,
}

impl ProjectKeyIdentity {
    /// The names of all keys that there are or may be.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.names().chain(self.intent.iter().map(|intent| intent.name.as_str()))
    }

    /// Whether a key of this name was intended, or is in use. So is any where nothing is recorded.
    pub fn expects(&self, name: &str) -> bool {
        let intended = self.intent.as_ref().is_some_and(|intent| intent.name == name);
        let in_use = self.records.current.as_ref().is_some_and(|current| current.name == name);
        intended || in_use || *self == Self::default()
    }

    /// The organization of the keys, where there are keys and it was recorded.
    pub fn organization(&self) -> Option<&str> {
        self.names().next()?;
        let intended = self.intent.as_ref().and_then(|intent| intent.organization.as_deref());
        intended.or(self.records.organization.as_deref())
    }

    /// The platform of the keys, where there are keys and it was recorded.
    pub fn platform(&self) -> Option<&str> {
        self.names().next()?;
        let intended = self.intent.as_ref().and_then(|intent| intent.platform.as_deref());
        intended.or(self.records.platform.as_deref())
    }

    /// Marks all keys as restored: an annotation named them, and the operator did not record them for this object.
    #[must_use]
    pub fn restored(mut self) -> Self {
        self.records.restored = self.names().map(str::to_owned).collect();
        self
    }

    /// The same, with each platform as `of` has it.
    #[must_use]
    pub fn with_platforms(mut self, of: impl Fn(&str) -> String) -> Self {
        let recorded = self.intent.iter_mut().map(|intent| &mut intent.platform).chain([&mut self.records.platform]);
        recorded.flatten().for_each(|platform| *platform = of(platform));
        self
    }

    /// The same identity, with the platform of its keys.
    #[must_use]
    pub fn with_platform(mut self, platform: &str) -> Self {
        self.records.platform = Some(platform.to_owned());
        self.intent.iter_mut().for_each(|intent| intent.platform = Some(platform.to_owned()));
        self
    }
}
