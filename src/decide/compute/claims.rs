//! Claims: what other Computes are bound to or want on the same branch.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::identity::{self, ComputeIdentity, CreateIntent};
use super::super::names;
use super::super::seal::ObjectKey;
use crate::api::{Compute, ComputeType};

/// The claims of other resources on the same branch and computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Computes that another resource is bound to.
    pub bound: BTreeMap<String, Claim>,
    /// An older resource that wants the same branch's primary.
    pub primary: Option<String>,
    /// The resource whose create on the same branch comes first. Before this resource has an intent that is any resource with
    /// one; after that, one of the same type with an earlier intent.
    pub creating: Option<String>,
    /// The marks of other resources' creates: a compute with such a mark is theirs.
    pub marks: BTreeSet<String>,
}

/// Another resource's claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// namespace/name.
    pub by: String,
    /// Whether the other resource is the older one.
    pub older: bool,
}

/// What other resources may claim too: the resource's branches, and the observed computes.
#[derive(Debug)]
pub struct Scope<'a> {
    mine: &'a Compute,
    branches: BTreeSet<String>,
    ids: &'a BTreeSet<String>,
}

impl<'a> Scope<'a> {
    pub fn of(mine: &'a Compute, identity: &ComputeIdentity, ids: &'a BTreeSet<String>) -> Self {
        let intended = identity.intent.iter().map(|intent| intent.branch.clone());
        Self { mine, branches: intended.chain([mine.spec.branch_id.clone()]).collect(), ids }
    }

    /// Whether another resource's claims can matter. Without this filter [`claims`] returns the same; the filter is cheap,
    /// since every pass applies it to all resources.
    pub fn concerns(&self, other: &Compute) -> bool {
        other.spec.project_id == self.mine.spec.project_id
            && (self.branches.contains(&other.spec.branch_id)
                || mentions(other, names::BINDING, self.ids)
                || mentions(other, names::CREATE_INTENT, &self.branches))
    }
}

fn mentions(other: &Compute, annotation: &str, words: &BTreeSet<String>) -> bool {
    let text = other.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
    text.is_some_and(|text| words.iter().any(|word| text.contains(word.as_str())))
}

/// The claims of the other resources on the same platform that matter to `mine`. `begun` returns whether a resource has begun
/// a create in this process, which its cached annotations may not show yet.
pub fn claims<'a>(
    mine: &Compute,
    others: impl IntoIterator<Item = &'a Compute>,
    begun: impl Fn(&str) -> bool,
) -> Claims {
    let others: Vec<Other> = others
        .into_iter()
        .filter(|other| other.spec.project_id == mine.spec.project_id && other.metadata.uid != mine.metadata.uid)
        .map(Other::of)
        .collect();
    let mine = Other::of(mine);
    Claims {
        bound: bound(&others, &mine),
        primary: primary(&others, &mine),
        creating: creating(&others, &mine, begun),
        marks: others.iter().filter_map(|other| other.intent()?.mark.clone()).collect(),
    }
}

/// A resource with the records in its annotations; without any where they are not valid.
struct Other<'a> {
    compute: &'a Compute,
    identity: ComputeIdentity,
}

impl<'a> Other<'a> {
    fn of(compute: &'a Compute) -> Self {
        let annotations = compute.metadata.annotations.as_ref();
        let identity = annotations.and_then(|annotations| identity::of_compute(annotations, object_key(compute)).ok());
        Self { compute, identity: identity.unwrap_or_default() }
    }

    /// The intent of a create that is not resolved.
    fn intent(&self) -> Option<&CreateIntent> {
        self.identity.intent.as_ref().filter(|_| self.identity.binding.is_none())
    }

    fn uid(&self) -> &str {
        self.compute.metadata.uid.as_deref().unwrap_or_default()
    }

    fn is_older_than(&self, other: &Self) -> bool {
        self.rank() < other.rank()
    }

    /// By age; by name where two were created in the same second.
    fn rank(&self) -> (Option<Timestamp>, Option<&str>, Option<&str>) {
        let meta = &self.compute.metadata;
        (meta.creation_timestamp.as_ref().map(|time| time.0), meta.namespace.as_deref(), meta.name.as_deref())
    }

    fn label(&self) -> String {
        format!("Compute {}", object_key(self.compute))
    }
}

fn object_key(compute: &Compute) -> ObjectKey<'_> {
    let meta = &compute.metadata;
    let [namespace, name] = [&meta.namespace, &meta.name].map(|part| part.as_deref().unwrap_or_default());
    ObjectKey { namespace, name }
}

fn bound(others: &[Other], mine: &Other) -> BTreeMap<String, Claim> {
    let mut bound: BTreeMap<String, Claim> = BTreeMap::new();
    for other in others {
        let Some(binding) = &other.identity.binding else { continue };
        let claim = Claim { by: other.label(), older: other.is_older_than(mine) };
        let stronger = bound.get(&binding.id).is_none_or(|known| !known.older && claim.older);
        if stronger {
            bound.insert(binding.id.clone(), claim);
        }
    }
    bound
}

/// The oldest other resource that declares the same branch's primary.
fn primary(others: &[Other], mine: &Other) -> Option<String> {
    let wanted = |other: &&Other| {
        other.compute.spec.type_ == ComputeType::ReadWrite
            && other.compute.spec.branch_id == mine.compute.spec.branch_id
            && other.is_older_than(mine)
    };
    let rivals = others.iter().filter(|_| mine.compute.spec.type_ == ComputeType::ReadWrite).filter(wanted);
    rivals.min_by_key(|other| other.rank()).map(Other::label)
}

fn creating(others: &[Other], mine: &Other, begun: impl Fn(&str) -> bool) -> Option<String> {
    let Some(intent) = mine.intent() else {
        let branch = &mine.compute.spec.branch_id;
        let first = others.iter().find(|other| match other.intent() {
            Some(theirs) => theirs.branch == *branch,
            None => other.compute.spec.branch_id == *branch && begun(other.uid()),
        });
        return first.map(Other::label);
    };
    let earlier = others.iter().filter_map(|other| Some((other, other.intent()?))).filter(|(other, theirs)| {
        theirs.branch == intent.branch
            && other.compute.spec.type_ == mine.compute.spec.type_
            && (theirs.at, other.uid()) < (intent.at, mine.uid())
    });
    earlier.min_by_key(|(other, theirs)| (theirs.at, other.uid())).map(|(other, _)| other.label())
}
