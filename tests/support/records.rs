//! Ages records, as if time had passed.

use dbplane::api::{Compute, ObjectMeta, ProjectKey};
use dbplane::decide::identity::{Record, written};
use dbplane::decide::record_of;
use dbplane::decide::seal::InvalidAnnotation;
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Error, Result};

/// A merge patch for the status that makes the recorded time older: of a ProjectKey's current key,
/// or of a Compute's last restart. A replaced manifest does not affect the status.
pub fn aged(object: &Value, by: SignedDuration) -> Result<Value> {
    let record = match object["kind"].as_str() {
        Some("Compute") => {
            let object: Compute = read(object)?;
            rewritten(record_of(&object), &object.metadata, |identity| {
                let Some(restart) = &mut identity.restart else {
                    return;
                };
                restart.at -= by;
                restart
                    .maintained
                    .iter_mut()
                    .for_each(|maintained| maintained.time -= by);
            })
        }
        _ => {
            let object: ProjectKey = read(object)?;
            rewritten(record_of(&object), &object.metadata, |identity| {
                identity
                    .records
                    .current
                    .iter_mut()
                    .for_each(|key| key.at -= by);
            })
        }
    };
    Ok(json!({"status": {"record": record?}}))
}

fn read<K: DeserializeOwned>(object: &Value) -> Result<K> {
    serde_json::from_value(object.clone()).map_err(Error::while_doing("reading a resource"))
}

fn rewritten<T: Clone + Serialize>(
    record: std::result::Result<Record<T>, InvalidAnnotation>,
    meta: &ObjectMeta,
    change: impl FnOnce(&mut T),
) -> Result<String> {
    let record = record.map_err(|flaw| Error::new(format!("the record is not valid: {flaw:?}")))?;
    let mut identity = record.identity.clone();
    change(&mut identity);
    Ok(written(&identity, meta))
}
