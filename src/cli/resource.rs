//! Resources as users name them and as commands see them.

use std::fmt;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, CustomResourceExt};
use serde_json::Value;

use crate::api::{Condition, GROUP, ObjectMeta};
use crate::controller::environment::{Kind as Reconciled, KindVisitor, Kinds};
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;
use crate::decide::Attention;
use crate::decide::attention::Need;
use crate::text;

/// A kind of dbplane, with the names that kubectl accepts for it.
#[derive(Clone, Debug)]
pub struct ResourceKind {
    pub resource: ApiResource,
    pub is_namespaced: bool,
    words: Vec<String>,
}

/// The kind or the name is invalid.
#[derive(Debug, thiserror::Error)]
pub enum NoTarget {
    #[error("{word} is no kind of dbplane. Its kinds are: {}", known.join(", "))]
    Kind { word: String, known: Vec<String> },
    #[error(
        "{0} names no resource: write KIND/NAME or KIND NAME, such as compute/orders or compute orders"
    )]
    Name(String),
    #[error(
        "{0:?} is no name after a kind: write KIND NAME NAME or KIND/NAME KIND/NAME, and do not mix them"
    )]
    Mixed(String),
}

impl ResourceKind {
    /// All kinds, in the order in which they are listed.
    pub fn all() -> Vec<Self> {
        let mut all = Collected::default();
        AllKinds::each(&mut all);
        all.0
    }

    /// The kind with this name, plural or short name, with or without the group.
    pub fn named(word: &str) -> Result<Self, NoTarget> {
        let plain = word.to_lowercase();
        let plain = plain
            .strip_suffix(&format!(".{GROUP}"))
            .unwrap_or(&plain)
            .to_owned();
        let all = Self::all();
        match all.iter().find(|kind| kind.words.contains(&plain)) {
            Some(kind) => Ok(kind.clone()),
            None => {
                let known = all.iter().map(|kind| kind.words.join(" or ")).collect();
                Err(NoTarget::Kind {
                    word: word.to_owned(),
                    known,
                })
            }
        }
    }

    /// The kinds and names in `kind/name …` or `kind name …`, as kubectl reads them.
    pub fn and_names(words: &[String]) -> Result<Vec<(Self, &str)>, NoTarget> {
        let no_name = |word: &String| NoTarget::Name(word.clone());
        match words {
            [kind, names @ ..] if !kind.contains('/') => {
                if names.is_empty() {
                    return Err(no_name(kind));
                }
                let kind = Self::named(kind)?;
                let names = names.iter().map(|name| match name.as_str() {
                    name if name.is_empty() || name.contains('/') => {
                        Err(NoTarget::Mixed(name.to_owned()))
                    }
                    name => Ok((kind.clone(), name)),
                });
                names.collect()
            }
            targets => {
                let named = targets.iter().map(|target| match target.split_once('/') {
                    Some((kind, name)) if !name.is_empty() => Ok((Self::named(kind)?, name)),
                    _ => Err(no_name(target)),
                });
                named.collect()
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.resource.kind
    }

    /// The API for its objects in a namespace, or everywhere.
    pub fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) if self.is_namespaced => {
                Api::namespaced_with(client.clone(), namespace, &self.resource)
            }
            _ => Api::all_with(client.clone(), &self.resource),
        }
    }

    pub async fn list(
        &self,
        client: &Client,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> kube::Result<Vec<ObservedResource>> {
        let listed = self.api(client, namespace).list(params).await?;
        Ok(listed
            .into_iter()
            .map(|object| ObservedResource::of(self, object))
            .collect())
    }

    pub async fn get(
        &self,
        client: &Client,
        namespace: Option<&str>,
        name: &str,
    ) -> kube::Result<Option<ObservedResource>> {
        let found = self.api(client, namespace).get_opt(name).await?;
        Ok(found.map(|object| ObservedResource::of(self, object)))
    }
}

#[derive(Default)]
struct Collected(Vec<ResourceKind>);

impl KindVisitor for Collected {
    fn visit<K: Reconciled>(&mut self) {
        let names = K::Object::crd().spec.names;
        let words = [names.kind.to_lowercase(), names.plural].into_iter();
        let words = words
            .chain(names.short_names.into_iter().flatten())
            .collect();
        let resource = ApiResource::erase::<K::Object>(&());
        self.0.push(ResourceKind {
            resource,
            is_namespaced: K::Object::is_namespaced(),
            words,
        });
    }
}

/// A resource as the API server returns it, even if this version cannot read its spec.
#[derive(Clone, Debug)]
pub struct ObservedResource {
    pub kind: String,
    pub meta: ObjectMeta,
    pub spec: Value,
    pub status: Value,
    pub conditions: Vec<Condition>,
}

/// The form that users write: `compute/orders`.
impl fmt::Display for ObservedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name())
    }
}

impl ObservedResource {
    /// Removes hidden characters from untrusted texts, for all later uses.
    pub fn of(kind: &ResourceKind, mut object: DynamicObject) -> Self {
        let [spec, status] =
            ["spec", "status"].map(|part| text::document(object.data[part].take()));
        let conditions = serde_json::from_value(status["conditions"].clone()).unwrap_or_default();
        Self {
            kind: kind.name().to_owned(),
            meta: object.metadata,
            spec,
            status,
            conditions,
        }
    }

    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        Some(self.meta.annotations.as_ref()?.get(name)?.as_str())
    }

    pub fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    /// The condition of this type, with any status.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// The condition with one of these reasons.
    pub fn with_reason(&self, reasons: &[crate::decide::Reason]) -> Option<&Condition> {
        self.conditions.iter().find(|condition| {
            reasons
                .iter()
                .any(|reason| reason.as_str() == condition.reason)
        })
    }

    /// True if dbplane has observed the current spec.
    pub fn is_observed(&self) -> bool {
        self.status["observedGeneration"].as_i64() == self.meta.generation
    }

    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.status.pointer(pointer)?.as_str()
    }

    pub fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer)?.parse().ok()
    }

    /// The attention that the resource needs, and the condition that describes it best.
    pub fn need(&self) -> Need<'_> {
        match Attention::of(&self.conditions) {
            Need {
                what: Attention::Nothing,
                ..
            } if self.is_deleting() || !self.is_observed() => Need {
                what: Attention::Work,
                condition: None,
            },
            need => need,
        }
    }

    /// The kind and the name of its account.
    pub fn account(&self) -> Option<(&str, &str)> {
        let reference = self
            .spec
            .get("accountRef")
            .or_else(|| self.spec.pointer("/template/spec/accountRef"))?;
        Some((
            reference["kind"].as_str().unwrap_or("Account"),
            reference["name"].as_str()?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_the_words_of_kubectl() {
        for (word, kind) in [
            ("compute", "Compute"),
            ("Computes", "Compute"),
            ("dbc", "Compute"),
            ("computes.dbplane.dev", "Compute"),
            ("dbkey", "ProjectKey"),
            ("dbrrs", "ReadReplicaSet"),
            ("clusteraccounts", "ClusterAccount"),
        ] {
            assert_eq!(ResourceKind::named(word).unwrap().name(), kind, "{word}");
        }
        let error = ResourceKind::named("pod").unwrap_err().to_string();
        assert!(error.contains("compute or computes or dbc"), "{error}");
    }

    #[test]
    fn resources_are_named_as_for_kubectl() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (line, expected) in [
            ("dbacct/prod", &["Account/prod"][..]),
            ("compute orders", &["Compute/orders"]),
            ("dbc a b", &["Compute/a", "Compute/b"]),
            ("dbc/a dbkey/b", &["Compute/a", "ProjectKey/b"]),
        ] {
            let words = words(line);
            let found = ResourceKind::and_names(&words).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|(kind, name)| format!("{}/{name}", kind.name()))
                .collect();
            assert_eq!(found, expected, "{line}");
        }
        for wrong in [
            "compute",
            "compute/",
            "/orders",
            "pod/x",
            "pod x",
            "dbc/a b",
            "dbc a dbc/b",
        ] {
            assert!(ResourceKind::and_names(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
