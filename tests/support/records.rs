//! Records, as time would have them.

use dbplane::api::ProjectKey;
use dbplane::decide::identity::of_key;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Error, Result};

/// The merge patch of the status that makes the key that a ProjectKey has in use older. Whoever replaces the manifest leaves it there.
pub fn aged(object: &Value, by: SignedDuration) -> Result<Value> {
    let object: ProjectKey =
        serde_json::from_value(object.clone()).map_err(Error::while_doing("reading a ProjectKey"))?;
    let record = of_key(&object).map_err(|flaw| Error::new(format!("the record is not valid: {flaw:?}")))?;
    let mut identity = record.identity.clone();
    if let Some(current) = &mut identity.records.current {
        current.at -= by;
    }
    Ok(json!({"status": {"record": record.next(&identity, &object.metadata)}}))
}
