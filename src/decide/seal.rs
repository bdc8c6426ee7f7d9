//! Seals: each of dbplane's annotations names the resource that it belongs to and carries a digest. So an annotation that was
//! edited by hand, or copied with a manifest, is recognized.
//!
//! A seal finds mistakes. It does not protect: whoever may edit a resource may link it to any compute by its spec.

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
    /// It is not what dbplane writes, with the error.
    Unreadable(String),
    /// A newer version of dbplane wrote it, in a form that this one does not know.
    Newer,
    /// An older version of dbplane wrote it: the resource has handed over to another one, or taken over from it. That feature is gone.
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
    // Plain data with text keys is always an object; anything else would be refused when it is read.
    let mut fields = match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    // Of what was read before, the old one.
    fields.remove(SEAL);
    fields.insert(OBJECT.to_owned(), Value::String(object_key.to_string()));
    let digest = digest(annotation, &fields);
    fields.insert(SEAL.to_owned(), Value::String(digest));
    Value::Object(fields).to_string()
}

/// The value of an annotation that dbplane wrote on this very resource.
pub fn open<T: DeserializeOwned>(annotation: &str, text: &str, object_key: ObjectKey) -> Result<T, InvalidAnnotation> {
    check(annotation, text, object_key)?;
    read(text)
}

/// A part of what the text of an annotation says, which was checked before.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, InvalidAnnotation> {
    serde_json::from_str(text).map_err(|error| InvalidAnnotation::Unreadable(error.to_string()))
}

/// Whether dbplane wrote this text, on this very resource.
fn check(annotation: &str, text: &str, object_key: ObjectKey) -> Result<(), InvalidAnnotation> {
    // As it was written, in nearly all cases: then nothing of it has to be written anew for the digest.
    let as_it_stands: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(text).ok();
    let sealed = as_it_stands.is_some_and(|mut fields| {
        let sealed = fields.remove(SEAL).map(RawValue::get);
        sealed == Some(&format!("\"{}\"", digest(annotation, &fields)))
            && fields.get(OBJECT).map(|of| of.get()) == Some(&Value::from(object_key.to_string()).to_string())
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
        // Nothing is refused that is written into memory.
        let _ = write!(Hashing(&mut hash), "\n{}={value}", name.as_ref());
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What is written is hashed.
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
mod tests {
    use serde_json::json;

    use super::*;

    const ORDERS: ObjectKey = ObjectKey { namespace: "shop", name: "orders" };
    const LINK: &str = "dbplane.dev/record";

    fn sealed() -> String {
        seal(LINK, &json!({"id": "ep-1", "at": 7}), ORDERS)
    }

    #[test]
    fn what_was_written_is_read_in_whatever_order() {
        let read = open::<Value>(LINK, &sealed(), ORDERS).unwrap();
        assert_eq!((&read["id"], &read["at"]), (&json!("ep-1"), &json!(7)));
        assert_eq!(seal(LINK, &read, ORDERS), sealed(), "what was read is written as it was");
        let fields: Map<String, Value> = serde_json::from_str(&sealed()).unwrap();
        let turned: Vec<String> = fields.iter().rev().map(|(name, value)| format!(" {name:?} : {value}")).collect();
        assert!(open::<Value>(LINK, &format!("{{{} }}", turned.join(",")), ORDERS).is_ok());
    }

    #[test]
    fn edited_copied_and_foreign_texts_are_told_apart() {
        let edits = [
            sealed().replace("ep-1", "ep-2"),
            sealed().replace("7", "8"),
            sealed().replace("orders", "copy"),
            sealed().replace("\"at\":7,", ""),
            json!({"id": "ep-1"}).to_string(),
            "{}".to_owned(),
        ];
        for text in edits {
            assert_eq!(open::<Value>(LINK, &text, ORDERS), Err(InvalidAnnotation::Edited), "{text}");
        }
        assert_eq!(
            open::<Value>("dbplane.dev/other", &sealed(), ORDERS),
            Err(InvalidAnnotation::Edited),
            "another annotation's text"
        );
        for other in [ObjectKey { name: "copy", ..ORDERS }, ObjectKey { namespace: "test", ..ORDERS }] {
            assert_eq!(open::<Value>(LINK, &sealed(), other), Err(InvalidAnnotation::CopiedFrom("shop/orders".into())));
        }
        for text in ["", "{", "7", "[]"] {
            assert!(matches!(open::<Value>(LINK, text, ORDERS), Err(InvalidAnnotation::Unreadable(_))), "{text}");
        }
        let other_fields = seal(LINK, &json!({"at": "noon"}), ORDERS);
        #[derive(serde::Deserialize, Debug, PartialEq)]
        struct Dated {
            at: u32,
        }
        assert!(matches!(open::<Dated>(LINK, &other_fields, ORDERS), Err(InvalidAnnotation::Unreadable(_))));
    }
}
