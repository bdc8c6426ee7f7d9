//! Reads the entries of a list, each on its own.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{DecodeError, parse, texts};
use crate::domain::UnreadableEntry;
use crate::text;

/// Maximum number of entries of one list. The smallest ones take thirty times as much memory as
/// their text, so the size limit of an answer is not enough. The platform recommends fewer than
/// 10,000 keys, and documents no other number.
pub(in crate::platform::http) const MOST_ENTRIES: usize = 20_000;
/// Maximum length of the name of an unreadable field.
const LONGEST_FIELD: usize = 64;

/// The result of reading an entry.
pub(super) trait ListEntry: Sized {
    /// The wire format of the entry.
    type Wire: DeserializeOwned;

    /// `Err` is the missing field.
    fn of(wire: Self::Wire) -> Result<Self, &'static str>;

    /// The identifier of an entry that may be unreadable otherwise.
    fn id(json: &str) -> Option<String> {
        serde_json::from_str::<EntryId>(json).ok()?.id
    }
}

#[derive(Deserialize)]
struct EntryId {
    #[serde(default, deserialize_with = "texts::identifier")]
    id: Option<String>,
}

/// The entries of an array, each read on its own, and their number. None are kept if there are too
/// many. Null counts as empty, because some servers write it; a missing array is an error.
#[derive(Debug)]
pub(super) struct DecodedList<T> {
    pub items: Vec<T>,
    pub unreadable: Vec<UnreadableEntry>,
    pub count: usize,
}

impl<T> Default for DecodedList<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            unreadable: Vec::new(),
            count: 0,
        }
    }
}

impl<'de, T: ListEntry> Deserialize<'de> for DecodedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: ListEntry> Visitor<'de> for EntriesVisitor<T> {
    type Value = DecodedList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(DecodedList::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut entries = DecodedList::default();
        while entries.count < MOST_ENTRIES {
            // Invalid JSON makes the whole list unreadable; JSON of another form only this entry.
            let Some(json) = array.next_element::<&RawValue>()? else {
                return Ok(entries);
            };
            match read::<T>(json.get()) {
                Ok(entry) => entries.items.push(entry),
                Err(field) => entries.unreadable.push(UnreadableEntry {
                    id: T::id(json.get()),
                    field,
                }),
            }
            entries.count += 1;
        }
        while array.next_element::<IgnoredAny>()?.is_some() {
            (entries.items, entries.unreadable) = (Vec::new(), Vec::new());
            entries.count += 1;
        }
        Ok(entries)
    }
}

/// `Err` is the unreadable field.
fn read<T: ListEntry>(json: &str) -> Result<T, String> {
    let wire = parse(json.as_bytes()).map_err(|DecodeError { path, message }| {
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split('`').next());
        match (missing, path.as_str()) {
            (Some(field), _) => field.to_owned(),
            (None, ".") => "of another form".to_owned(),
            (None, path) => text::line(path, LONGEST_FIELD).into_owned(),
        }
    })?;
    T::of(wire).map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, or an object with a size.
    #[derive(Debug, PartialEq)]
    struct Small(u8);

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        Number(u8),
        Named { size: Option<u8> },
    }

    impl ListEntry for Small {
        type Wire = Wire;

        fn of(wire: Wire) -> Result<Self, &'static str> {
            match wire {
                Wire::Number(number) => Ok(Self(number)),
                Wire::Named { size } => size.map(Self).ok_or("size"),
            }
        }
    }

    fn of(json: &str) -> Option<(Vec<u8>, Vec<String>, usize)> {
        let DecodedList {
            items,
            unreadable,
            count,
        } = serde_json::from_str::<DecodedList<Small>>(json).ok()?;
        let items = items.into_iter().map(|Small(number)| number).collect();
        Some((
            items,
            unreadable.iter().map(ToString::to_string).collect(),
            count,
        ))
    }

    #[test]
    fn an_array_or_null() {
        for (json, expected) in [
            ("[1,2]", Some((vec![1, 2], 2))),
            ("[]", Some((vec![], 0))),
            ("null", Some((vec![], 0))),
            ("{}", None),
            ("7", None),
            ("[1", None),
            ("[1,", None),
            ("[1,{\"id\":\"a\"", None),
            ("[1,nonsense]", None),
        ] {
            let expected = expected.map(|(items, count)| (items, Vec::new(), count));
            assert_eq!(of(json), expected, "{json}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_named_and_the_others_are_read() {
        let without_id = |field: &str| format!("one whose identifier cannot be read ({field})");
        for (odd, expected) in [
            ("true", without_id("of another form")),
            ("[1]", without_id("of another form")),
            ("{}", without_id("size")),
            (r#"{"id":7}"#, without_id("size")),
            (r#"{"id":"no identifier"}"#, without_id("size")),
            (r#"{"id":"a","id":"b"}"#, without_id("size")),
            (r#"{"id":"a"}"#, "a (size)".to_owned()),
            (r#"{"id":"a","size":null}"#, "a (size)".to_owned()),
            (r#"{"id":"a","size":"x"}"#, "a (of another form)".to_owned()),
        ] {
            assert_eq!(
                of(&format!("[1,{odd},3]")),
                Some((vec![1, 3], vec![expected], 3)),
                "{odd}"
            );
        }
    }

    #[test]
    fn nothing_is_kept_of_too_many_and_all_are_counted() {
        for (count, items) in [(MOST_ENTRIES, MOST_ENTRIES), (MOST_ENTRIES + 2, 0)] {
            let json = format!("[{}1]", "1,".repeat(count - 1));
            let entries = of(&json).unwrap();
            assert_eq!((entries.0.len(), entries.2), (items, count));
        }
    }
}
