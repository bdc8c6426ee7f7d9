//! The readable attributes of one resource.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::ComputeUnits;

/// Attributes by name, without those that the state marks as sensitive. Providers write blocks as
/// objects, or as lists with one element.
#[derive(Clone, Default)]
pub struct Attributes(Map<String, Value>);

/// Leaves out the values because they may be secret.
impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Attributes {
    pub fn new(all: Map<String, Value>, sensitive: &[String]) -> Self {
        Self(
            all.into_iter()
                .filter(|(name, _)| !sensitive.contains(name))
                .collect(),
        )
    }

    /// A non-empty text, or a number as text: some providers write the ID of a key as a number.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub fn switch(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    pub fn whole(&self, name: &str) -> Option<i64> {
        let value = self.0.get(name)?;
        value.as_i64().or_else(|| {
            value
                .as_f64()
                .filter(|number| number.fract() == 0.0)
                .map(|number| number as i64)
        })
    }

    /// Some providers write zero if they do not know the size.
    pub fn size(&self, name: &str) -> Option<ComputeUnits> {
        self.0
            .get(name)?
            .as_f64()
            .filter(|size| *size > 0.0)
            .and_then(ComputeUnits::new)
    }

    pub fn texts(&self, name: &str) -> BTreeMap<String, String> {
        let entries = self
            .0
            .get(name)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        entries
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    /// The attributes of a block; empty if there is no such block.
    pub fn block(&self, name: &str) -> Self {
        let block = match self.0.get(name) {
            Some(Value::Array(blocks)) => blocks.first(),
            other => other,
        };
        Self(
            block
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        )
    }
}
