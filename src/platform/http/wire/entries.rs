//! The entries of a list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// Entries of one list that are read. The smallest ones take thirty times as much memory as their text, so the size of an answer
/// does not bound what it becomes. The platform recommends fewer than 10,000 keys, and names no number for the others.
pub(in crate::platform::http) const MOST_ENTRIES: usize = 20_000;

/// The entries of an array, and how many it has; none are kept where there are too many. Null is an empty one, as some servers write it; a missing one is an error.
#[derive(Debug)]
pub(super) struct Entries<T> {
    pub kept: Vec<T>,
    pub count: usize,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), count: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Entries::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut entries = Entries::default();
        while entries.count < MOST_ENTRIES {
            let Some(entry) = array.next_element()? else { return Ok(entries) };
            entries.kept.push(entry);
            entries.count += 1;
        }
        while array.next_element::<IgnoredAny>()?.is_some() {
            entries.kept = Vec::new();
            entries.count += 1;
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<(Vec<u8>, usize)> {
        serde_json::from_str::<Entries<u8>>(json).ok().map(|entries| (entries.kept, entries.count))
    }

    #[test]
    fn an_array_or_null() {
        for (json, expected) in [
            ("[1,2]", Some((vec![1, 2], 2))),
            ("[]", Some((vec![], 0))),
            ("null", Some((vec![], 0))),
            ("{}", None),
            ("7", None),
            ("[1,true]", None),
            ("[1", None),
        ] {
            assert_eq!(read(json), expected, "{json}");
        }
    }

    #[test]
    fn nothing_is_kept_of_too_many_and_all_are_counted() {
        for (count, kept) in [(MOST_ENTRIES, MOST_ENTRIES), (MOST_ENTRIES + 2, 0)] {
            let json = format!("[{}1]", "1,".repeat(count - 1));
            let entries = read(&json).unwrap();
            assert_eq!((entries.0.len(), entries.1), (kept, count));
        }
    }
}
