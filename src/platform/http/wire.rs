//! The JSON of the platform's API, and its conversion to domain types.
//!
//! Unknown fields and values are ignored. An optional field that is null, absent or of another form
//! counts as not reported. But an object without its identity cannot be placed. In a list it
//! becomes an [`UnreadableEntry`]: if it were dropped, it would look as if it were gone.

mod compute;
mod entries;
mod key;
mod project;
mod texts;
mod times;

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::domain::UnreadableEntry;

use self::entries::{DecodedList, ListEntry};

pub(super) use compute::{ChangeBody, CreateBody, answer, computes, operations};
pub(super) use entries::MOST_ENTRIES;
pub(super) use key::{CreateKeyBody, created, difference, keys, revoked};
pub(super) use project::{branches, projects};

/// The place and the reason of a decoding error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodeError {
    pub path: String,
    pub message: String,
}

impl DecodeError {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The identity of an object is missing.
    fn missing(parent: &str, field: &str) -> Self {
        let path = match parent {
            "" => field.to_owned(),
            _ => format!("{parent}.{field}"),
        };
        Self::new(path, "missing, or not of the expected form")
    }
}

/// One page of a list, and the cursor of the next page if the answer has one.
#[derive(Debug)]
pub(super) struct ListPage<T> {
    /// The entries; none if there are more than [`MOST_ENTRIES`].
    pub items: Vec<T>,
    /// The unreadable entries.
    pub unreadable: Vec<UnreadableEntry>,
    /// The number of entries.
    pub entries: usize,
    pub cursor: Option<String>,
}

impl<T> ListPage<T> {
    fn of(entries: DecodedList<T>, pagination: Option<Pagination>) -> Self {
        let DecodedList {
            items,
            unreadable,
            count,
        } = entries;
        Self {
            items,
            unreadable,
            entries: count,
            cursor: pagination.and_then(Pagination::cursor),
        }
    }
}

/// `pagination` of a list: `cursor` in some lists, `next` in others.
#[derive(Default, Deserialize)]
struct Pagination {
    #[serde(default, deserialize_with = "lenient")]
    cursor: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    next: Option<String>,
}

impl Pagination {
    fn cursor(self) -> Option<String> {
        self.cursor
            .or(self.next)
            .filter(|cursor| !cursor.is_empty())
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    let json = &mut serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(json)
        .map_err(|error| DecodeError::new(error.path().to_string(), reason(error.inner())))
}

/// The reason of a decoding error. The library's own message quotes the value, which may be a
/// secret.
fn reason(error: &serde_json::Error) -> String {
    let place = format!("at line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => format!("the answer ends early, {place}"),
        Category::Io | Category::Syntax => format!("not JSON, {place}"),
        Category::Data => {
            let text = error.to_string();
            if text.starts_with("missing field") || text.starts_with("duplicate field") {
                return text;
            }
            match text.rsplit_once(", expected ") {
                Some((of, expected))
                    if of.starts_with("invalid ") || of.starts_with("unknown ") =>
                {
                    format!("expected {expected}")
                }
                _ => format!("of another form, {place}"),
            }
        }
    }
}

/// Null, absent or of another form: not reported. A value of another form is skipped without
/// storing it.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_str(<&RawValue>::deserialize(deserializer)?.get()).ok())
}

/// `{"pg_settings": {…}}`, sent whenever settings are sent; some servers reject settings without
/// this member.
#[derive(Serialize)]
struct SettingsBody<'a> {
    pg_settings: &'a BTreeMap<String, String>,
}
