//! Reads the texts of an answer.
//!
//! Identifiers and hosts are kept exactly as sent, or the answer is unreadable: an altered one
//! could belong to another object. All other texts are for display. They are cleaned and cut.

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde_json::value::RawValue;

use crate::text;

/// The limit for identifiers in the platform's public description.
const LONGEST_IDENTIFIER: usize = 60;
/// The limit of DNS.
const LONGEST_HOST: usize = 253;
/// For names, states, addresses and similar texts.
const LONGEST: usize = 256;
const LONGEST_SECRET: usize = 16 * 1024;

/// An identifier. Empty counts as not reported.
pub fn identifier<'de, I: From<String>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<I>, D::Error> {
    let text = exact(
        deserializer,
        LONGEST_IDENTIFIER,
        |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
        "1 to 60 of a-z, 0-9 and -",
    )?;
    Ok(text.map(I::from))
}

/// A host, optionally with a port. Empty counts as not reported.
pub fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    exact(
        deserializer,
        LONGEST_HOST,
        |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']'),
        "a host name of at most 253 characters",
    )
}

/// Null, absent or not a text: not reported. An invalid text is an error, which does not quote it.
fn exact<'de, D: Deserializer<'de>>(
    deserializer: D,
    longest: usize,
    fits: impl Fn(char) -> bool,
    expected: &str,
) -> Result<Option<String>, D::Error> {
    match reported(deserializer)? {
        Some(text) if text.len() > longest || !text.chars().all(fits) => Err(
            D::Error::invalid_value(Unexpected::Other("text"), &expected),
        ),
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// A text for display.
pub fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(reported(deserializer)?.map(cleaned))
}

pub fn cleaned(text: String) -> String {
    text::line(&text, LONGEST).into_owned()
}

/// True if a text can be sent as a key in a header.
pub fn is_secret(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_SECRET && !text.chars().any(text::is_hidden)
}

fn reported<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(serde_json::from_str(<&RawValue>::deserialize(deserializer)?.get()).ok())
}

#[cfg(test)]
mod tests;
