//! Parses the file that `terraform state pull` writes.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::attributes::Attributes;

/// The supported version of the format, which every Terraform since 0.12 and OpenTofu use.
const VERSION: u64 = 4;

/// The reason why nothing was read. No message repeats text of the file, because it contains
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error(
        "it is no JSON (line {line}, column {column}). Write the state with: terraform state pull"
    )]
    NoJson { line: usize, column: usize },
    #[error("it is encrypted. Write the state with: tofu state pull")]
    Encrypted,
    #[error("it is no state of version {VERSION}. Write the state with: terraform state pull")]
    OtherVersion,
    #[error("its list of resources has another form than that of version {VERSION}")]
    OtherForm,
}

/// One object of a managed resource.
#[derive(Debug)]
pub struct Instance {
    /// In the form of `terraform state list`.
    pub address: String,
    /// The type of the resource.
    pub kind: String,
    pub attributes: Attributes,
}

#[derive(Deserialize)]
struct StateResource {
    #[serde(default)]
    module: Option<String>,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    instances: Vec<StateObject>,
}

#[derive(Deserialize)]
struct StateObject {
    #[serde(default)]
    index_key: Value,
    /// Marks an object that another one has already replaced.
    #[serde(default)]
    deposed: Option<String>,
    #[serde(default)]
    attributes: Option<Map<String, Value>>,
    #[serde(default)]
    sensitive_attributes: Value,
}

/// The objects of all managed resources.
pub fn instances(text: &str) -> Result<Vec<Instance>, StateError> {
    let mut state: Value = serde_json::from_str(text).map_err(|error| StateError::NoJson {
        line: error.line(),
        column: error.column(),
    })?;
    if state.get("encrypted_data").is_some() {
        return Err(StateError::Encrypted);
    }
    if state.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(StateError::OtherVersion);
    }
    let resources = state
        .get_mut("resources")
        .map(Value::take)
        .unwrap_or_default();
    let resources: Vec<StateResource> = match resources {
        Value::Null => Vec::new(),
        resources => serde_json::from_value(resources).map_err(|_| StateError::OtherForm)?,
    };
    Ok(resources
        .into_iter()
        .filter(|resource| resource.mode == "managed")
        .flat_map(StateResource::instances)
        .collect())
}

impl StateResource {
    fn instances(self) -> Vec<Instance> {
        let module = self
            .module
            .map(|module| format!("{module}."))
            .unwrap_or_default();
        let base = format!("{module}{}.{}", self.kind, self.name);
        let mut instances = Vec::new();
        for object in self.instances {
            if object.deposed.is_some() {
                continue;
            }
            instances.push(Instance {
                address: format!("{base}{}", index(&object.index_key)),
                kind: self.kind.clone(),
                attributes: Attributes::new(
                    object.attributes.unwrap_or_default(),
                    &sensitive(&object.sensitive_attributes),
                ),
            });
        }
        instances
    }
}

/// The index in an address, as Terraform writes it: `[0]`, `["a"]`, or nothing.
fn index(key: &Value) -> String {
    match key {
        Value::Null => String::new(),
        key => format!("[{key}]"),
    }
}

/// The attributes with sensitive parts. Each path is a list of steps, and the first step names the
/// attribute.
fn sensitive(paths: &Value) -> Vec<String> {
    paths
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|path| Some(path[0]["value"].as_str()?.to_owned()))
        .collect()
}
