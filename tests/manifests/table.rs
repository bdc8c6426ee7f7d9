//! The table of manifests that the API server must accept or reject, as creates and as updates.
//!
//! Each YAML file beside this one covers one kind. `base` is a valid manifest, and each case is a
//! JSON merge patch for it, in which null removes a field. `nulls` lists fields with an explicit
//! null. A rejected case has the expected `message`, and with `at` the field that it must mention.
//! An update creates `from` (a patch, which may give it a status) and then replaces it by `to` (a
//! patch for that).

use dbplane::cluster::merge;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    base: Value,
    good: Vec<Good>,
    bad: Vec<Bad>,
    updates: Vec<Update>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Good {
    name: String,
    #[serde(default)]
    patch: Value,
    #[serde(default)]
    nulls: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bad {
    name: String,
    patch: Value,
    #[serde(default)]
    at: String,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    name: String,
    #[serde(default)]
    from: Value,
    to: Value,
    #[serde(default)]
    at: String,
    message: Option<String>,
}

/// A case of the table.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// The previous object, for updates only.
    pub old: Option<Value>,
    pub manifest: Value,
    /// `None` if the manifest is accepted.
    pub refusal: Option<Refusal>,
}

#[derive(Debug)]
pub struct Refusal {
    at: String,
    message: String,
}

impl Refusal {
    /// True if `text` contains the expected message and field.
    pub fn is_told_by(&self, text: &str) -> bool {
        text.contains(&self.at) && text.contains(&self.message)
    }
}

const FILES: [(&str, &str); 5] = [
    ("accounts", include_str!("accounts.yaml")),
    ("clusteraccounts", include_str!("clusteraccounts.yaml")),
    ("computes", include_str!("computes.yaml")),
    ("projectkeys", include_str!("projectkeys.yaml")),
    ("readreplicasets", include_str!("readreplicasets.yaml")),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, text) in FILES {
        let table: Table =
            serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{kind}.yaml: {error}"));
        cases.extend(table.into_cases(kind));
    }
    cases
}

impl Table {
    fn into_cases(self, kind: &str) -> Vec<Case> {
        let base = &self.base;
        let good = self.good.into_iter().map(|good| {
            let mut manifest = patched(base, &good.patch);
            good.nulls
                .iter()
                .for_each(|pointer| set_null(&mut manifest, pointer));
            Case {
                name: format!("{kind}: {}", good.name),
                old: None,
                manifest,
                refusal: None,
            }
        });
        let bad = self.bad.into_iter().map(|bad| Case {
            name: format!("{kind}: {}", bad.name),
            old: None,
            manifest: patched(base, &bad.patch),
            refusal: Some(Refusal {
                at: bad.at,
                message: bad.message,
            }),
        });
        let updates = self.updates.into_iter().map(|update| {
            let old = patched(base, &update.from);
            let manifest = patched(&old, &update.to);
            let at = update.at;
            let refusal = update.message.map(|message| Refusal { at, message });
            Case {
                name: format!("{kind}, changed: {}", update.name),
                old: Some(old),
                manifest,
                refusal,
            }
        });
        good.chain(bad).chain(updates).collect()
    }
}

/// `base` with a JSON merge patch applied. A missing patch is null and changes nothing.
fn patched(base: &Value, patch: &Value) -> Value {
    let mut target = base.clone();
    if !patch.is_null() {
        merge(&mut target, patch);
    }
    target
}

fn set_null(manifest: &mut Value, pointer: &str) {
    let (parent, name) = pointer
        .rsplit_once('/')
        .unwrap_or_else(|| panic!("{pointer} is not a JSON pointer"));
    match manifest.pointer_mut(parent).and_then(Value::as_object_mut) {
        Some(object) => object.insert(name.to_owned(), Value::Null),
        None => panic!("{parent} is not there"),
    };
}
