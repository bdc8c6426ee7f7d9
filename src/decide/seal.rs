//! Seals: each annotation of dbplane names its resource and carries a digest. This detects an
//! annotation that was edited by hand or copied with a manifest.
//!
//! A seal finds mistakes, but is no protection: anybody with write access to a resource can link it
//! to any compute by its spec.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The namespace and name of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

/// Why an annotation is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidAnnotation {
    /// It is not in a format of dbplane, with the error.
    Unreadable(String),
    /// A newer version of dbplane wrote it, in a format that this one does not know.
    Newer,
    /// An older version of dbplane wrote it: the resource handed over to another one, or took over
    /// from it. dbplane no longer supports that.
    HandOver,
    /// It was written for this resource and changed since.
    Edited,
    /// It was written for another resource: namespace/name.
    CopiedFrom(String),
}

const OBJECT: &str = "of";
const SEAL: &str = "seal";

/// The text of an annotation: the value with its seal.
pub fn seal<T: Serialize>(annotation: &str, value: &T, object_key: ObjectKey) -> String {
    // Plain data with text keys is always an object. Anything else would be rejected when it is
    // read.
    let mut fields = match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    // Drop the previous seal.
    fields.remove(SEAL);
    fields.insert(OBJECT.to_owned(), Value::String(object_key.to_string()));
    let digest = digest(annotation, &fields);
    fields.insert(SEAL.to_owned(), Value::String(digest));
    Value::Object(fields).to_string()
}

/// The value of an annotation that dbplane wrote on this very resource.
pub fn open<T: DeserializeOwned>(
    annotation: &str,
    text: &str,
    object_key: ObjectKey,
) -> Result<T, InvalidAnnotation> {
    check(annotation, text, object_key)?;
    read(text)
}

/// Parses a part of an annotation whose seal was checked before.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, InvalidAnnotation> {
    serde_json::from_str(text).map_err(|error| InvalidAnnotation::Unreadable(error.to_string()))
}

/// Checks that dbplane wrote this text on this very resource.
fn check(annotation: &str, text: &str, object_key: ObjectKey) -> Result<(), InvalidAnnotation> {
    // The raw text is almost always as dbplane wrote it. It is then hashed without serializing the
    // fields again.
    let as_it_stands: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(text).ok();
    let sealed = as_it_stands.is_some_and(|mut fields| {
        let sealed = fields.remove(SEAL).map(RawValue::get);
        sealed == Some(&format!("\"{}\"", digest(annotation, &fields)))
            && fields.get(OBJECT).map(|of| of.get())
                == Some(&Value::from(object_key.to_string()).to_string())
    });
    if sealed {
        return Ok(());
    }
    let mut fields: BTreeMap<String, Value> = read(text)?;
    let sealed = fields.remove(SEAL);
    if sealed != Some(Value::String(digest(annotation, &fields))) {
        return Err(InvalidAnnotation::Edited);
    }
    match fields.remove(OBJECT) {
        Some(Value::String(of)) if of == object_key.to_string() => Ok(()),
        Some(Value::String(of)) => Err(InvalidAnnotation::CopiedFrom(of)),
        _ => Err(InvalidAnnotation::Edited),
    }
}

/// The digest of the annotation's name and its fields, sorted by name.
fn digest<'a>(
    annotation: &str,
    fields: impl IntoIterator<Item = (impl AsRef<str> + 'a, impl std::fmt::Display + 'a)>,
) -> String {
    let mut hash = Sha256::new();
    hash.update(annotation);
    for (name, value) in fields {
        // Writing into memory cannot fail.
        let _ = write!(Hashing(&mut hash), "\n{}={value}", name.as_ref());
    }
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A writer that hashes its input.
struct Hashing<'a>(&'a mut Sha256);

impl std::fmt::Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

impl std::fmt::Display for ObjectKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests;
