//! The texts of an answer.
//!
//! What identifies something, or is called, is as the platform writes such things, or the answer cannot be read: an identifier that was
//! altered could be another one's. All other texts are for people, and are cleaned and cut.

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde_json::value::RawValue;

use crate::text;

/// As the platform's public description bounds its identifiers.
const LONGEST_IDENTIFIER: usize = 60;
/// As DNS bounds its names.
const LONGEST_HOST: usize = 253;
/// Of a name, a state, an address and the like.
const LONGEST: usize = 256;
const LONGEST_SECRET: usize = 16 * 1024;

/// An identifier. Empty counts as not reported.
pub fn identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    exact(deserializer, LONGEST_IDENTIFIER, fits, "1 to 60 of a-z, 0-9 and -")
}

/// A host, perhaps with a port. Empty counts as not reported.
pub fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
    exact(deserializer, LONGEST_HOST, fits, "a host name of at most 253 characters")
}

/// Null, absent or no text: not reported. A text that does not fit is an error, which does not quote it.
fn exact<'de, D: Deserializer<'de>>(
    deserializer: D,
    longest: usize,
    fits: impl Fn(char) -> bool,
    expected: &str,
) -> Result<Option<String>, D::Error> {
    match reported(deserializer)? {
        Some(text) if text.len() > longest || !text.chars().all(fits) => {
            Err(D::Error::invalid_value(Unexpected::Other("text"), &expected))
        }
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// A text for people.
pub fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(reported(deserializer)?.map(cleaned))
}

pub fn cleaned(text: String) -> String {
    text::line(&text, LONGEST).into_owned()
}

/// Whether a text can be a key that is sent in a header.
pub fn is_secret(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_SECRET && !text.chars().any(text::is_hidden)
}

fn reported<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(serde_json::from_str(<&RawValue>::deserialize(deserializer)?.get()).ok())
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
