//! Observes the API keys of an organization.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use super::listing::{Listing, id_weight, text_weight};
use super::{Interest, Latest, Reading};
use crate::domain::{Fault, KeyEntry, KeyId, Listed, OrganizationId, is_same_use};
use crate::platform::Admitted;

/// The list of an organization's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys;

/// The keys of one organization as one list call showed them.
pub type KeyList = Reading<Keys>;

/// The latest known state of an organization's keys.
pub type LatestKeys = Latest<Keys>;

/// The changes that enqueue a ProjectKey.
pub type KeyInterest = Interest<Keys>;

/// The keys that concern a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// Keys with these IDs.
    pub ids: Vec<KeyId>,
    /// Keys with these names.
    pub names: Vec<String>,
    /// Keys whose name starts with this, unless it is empty.
    pub beginning: String,
}

/// The changed keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedKeys {
    ids: HashSet<KeyId>,
    names: BTreeSet<String>,
}

/// Indexes for finding keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// The positions ordered by name.
    by_name: Vec<usize>,
    /// A key that shows its last use, if there is one.
    used: Option<usize>,
}

/// How long dbplane assumes that the platform does not offer a list of keys to this credential.
const NOT_OFFERED: Duration = Duration::from_secs(120);

impl Listing for Keys {
    type Of = OrganizationId;
    type Item = KeyEntry;
    type Index = Positions;
    type Filter = KeyFilter;
    type Changed = ChangedKeys;

    const OF: &'static str = "organization";
    const SPACING: Duration = Duration::from_secs(1);

    async fn read(platform: Admitted, of: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        platform.list_keys(of).await
    }

    fn order(one: &KeyEntry, other: &KeyEntry) -> Ordering {
        one.id.cmp(&other.id)
    }

    fn index(keys: &[KeyEntry]) -> Positions {
        let mut by_name: Vec<usize> = (0..keys.len()).collect();
        by_name.sort_by(|one, other| keys[*one].name.cmp(&keys[*other].name));
        Positions {
            by_name,
            used: keys.iter().position(|key| key.last_used_at.is_some()),
        }
    }

    fn weight(key: &KeyEntry) -> usize {
        let texts = [Some(&key.name), key.last_used_from.as_ref()];
        size_of::<KeyEntry>()
            + size_of::<usize>()
            + key.project_id.as_deref().map_or(0, id_weight)
            + texts.into_iter().map(text_weight).sum::<usize>()
    }

    /// A key in constant use counts as changed only once an hour.
    fn is_significant(before: &KeyEntry, after: &KeyEntry) -> bool {
        !is_same_use(before.last_used_at, after.last_used_at)
            || before.name != after.name
            || before.project_id != after.project_id
            || before.created_at != after.created_at
    }

    fn record(changed: &mut ChangedKeys, key: &KeyEntry) {
        changed.ids.insert(key.id);
        changed.names.insert(key.name.clone());
    }

    fn concerns(changed: &ChangedKeys, filter: &KeyFilter) -> bool {
        let KeyFilter {
            ids,
            names,
            beginning,
        } = filter;
        if ids.iter().any(|id| changed.ids.contains(id))
            || names.iter().any(|name| changed.names.contains(name))
        {
            return true;
        }
        let first_after = changed.names.range(beginning.clone()..).next();
        !beginning.is_empty() && first_after.is_some_and(|name| name.starts_with(beginning))
    }

    fn not_offered(fault: &Fault) -> Option<Duration> {
        let refused = matches!(
            fault,
            Fault::Unsupported { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }
        );
        refused.then_some(NOT_OFFERED)
    }
}

impl KeyList {
    /// The keys that matter, ordered by ID, and one key that shows its last use. Without that key,
    /// an unused key would look the same as keys on a platform that shows no uses. The cost is
    /// small in an organization of any size.
    pub fn relevant(&self, filter: &KeyFilter) -> Vec<KeyEntry> {
        let KeyFilter {
            ids,
            names,
            beginning,
        } = filter;
        let mut found: BTreeSet<usize> = self.index.used.into_iter().collect();
        for id in ids {
            found.extend(self.items.binary_search_by(|key| key.id.cmp(id)));
        }
        for name in names {
            found.extend(self.named(name, |found| found == name));
        }
        if !beginning.is_empty() {
            found.extend(self.named(beginning, |found| found.starts_with(beginning)));
        }
        found
            .into_iter()
            .map(|position| self.items[position].clone())
            .collect()
    }

    /// The positions of the names from `from` on, as long as they are wanted.
    fn named(&self, from: &str, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
        let positions = &self.index.by_name;
        let first =
            positions.partition_point(|position| self.items[*position].name.as_str() < from);
        positions[first..]
            .iter()
            .copied()
            .take_while(move |position| wanted(&self.items[*position].name))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::platform::fake::{key, noon};
    use crate::platform::observer::Tick;
    use crate::platform::observer::listing::changes;

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    fn filter(ids: &[i64], names: &[&str], beginning: &str) -> KeyFilter {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        KeyFilter {
            ids: ids.iter().copied().map(KeyId).collect(),
            names,
            beginning: beginning.to_owned(),
        }
    }

    #[test]
    fn an_excerpt_has_what_matters_and_nothing_else() {
        let named = [
            (4, "ci-1"),
            (1, "other"),
            (7, "ci-2"),
            (3, "ci"),
            (9, "cj-1"),
            (2, "ci-1"),
        ];
        let keys: Vec<_> = named.into_iter().map(|(id, name)| key(id, name)).collect();
        let list = KeyList::new(Tick::at(1), noon(), noon(), keys);
        for (filter, expected) in [
            (filter(&[], &[], ""), vec![]),
            (filter(&[7, 8], &[], ""), vec![7]),
            (filter(&[], &["ci-1", "absent"], ""), vec![2, 4]),
            (filter(&[], &[], "ci-"), vec![2, 4, 7]),
            (filter(&[9, 2], &["ci"], "ci-2"), vec![2, 3, 7, 9]),
            (filter(&[], &[], "zz"), vec![]),
        ] {
            let found: Vec<i64> = list.relevant(&filter).iter().map(|key| key.id.0).collect();
            assert_eq!(found, expected, "{filter:?}");
        }
        let used = KeyEntry {
            last_used_at: at("2025-01-01T10:00:00Z"),
            ..key(8, "theirs")
        };
        let list = KeyList::new(
            Tick::at(1),
            noon(),
            noon(),
            vec![key(9, "ci"), used, key(7, "other")],
        );
        let found: Vec<i64> = list
            .relevant(&filter(&[9], &[], ""))
            .iter()
            .map(|key| key.id.0)
            .collect();
        assert_eq!(found, [8, 9], "and one that shows its last use");
    }

    #[test]
    fn whom_a_change_concerns() {
        let before = [key(1, "a"), key(2, "ci-1"), key(3, "b")];
        let after = [key(1, "a"), key(3, "renamed"), key(4, "cj-1")];
        let changed = changes::<Keys>(&before, &after).unwrap();
        for (filter, concerned) in [
            (filter(&[1], &["a"], "a"), false),
            (filter(&[], &[], ""), false),
            (filter(&[2], &[], ""), true),
            (filter(&[4], &[], ""), true),
            (filter(&[], &["b"], ""), true),
            (filter(&[], &["renamed"], ""), true),
            (filter(&[], &[], "ci-"), true),
            (filter(&[], &[], "ck-"), false),
        ] {
            assert_eq!(Keys::concerns(&changed, &filter), concerned, "{filter:?}");
        }
        assert_eq!(changes::<Keys>(&after, &after), None);
    }

    #[test]
    fn a_use_counts_once_an_hour() {
        let used = |time: &str, from: &str| KeyEntry {
            last_used_at: at(time),
            last_used_from: Some(from.to_owned()),
            ..key(1, "a")
        };
        let before = used("2025-01-01T10:00:00Z", "192.0.2.1");
        for (after, significant) in [
            (used("2025-01-01T10:59:59Z", "192.0.2.2"), false),
            (used("2025-01-01T11:00:00Z", "192.0.2.1"), true),
            (key(1, "a"), true),
            (
                KeyEntry {
                    name: "b".to_owned(),
                    ..before.clone()
                },
                true,
            ),
        ] {
            assert_eq!(
                Keys::is_significant(&before, &after),
                significant,
                "{after:?}"
            );
        }
    }
}
