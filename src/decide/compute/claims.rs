//! Claims: what other Computes are bound to or want on the same branch.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::identity::{self, ComputeIdentity, CreateIntent, Told, object_key};
use super::super::seal::ObjectKey;
use crate::api::{Compute, ComputeSpec, ComputeType, ObjectMeta};

/// The claims of other resources on the same branch and computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Computes that another resource is bound to.
    pub bound: BTreeMap<String, Claim>,
    /// A resource that comes first and wants the same branch's primary.
    pub primary: Option<String>,
    /// The resource of the same type whose create on the same branch comes first. Before this resource has an intent that is any
    /// one that has an intent; after that, one with an earlier intent.
    pub creating: Option<Rival>,
    /// The marks of other resources' creates: a compute with such a mark is theirs.
    pub marks: BTreeSet<String>,
}

/// A resource whose create comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Kind and namespace/name, for people.
    pub by: String,
    /// When it began, where its record shows that.
    pub since: Option<Timestamp>,
}

/// Another resource's claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// namespace/name.
    pub by: String,
    /// Whether the other resource is the one that it belongs to.
    pub first: bool,
}

/// What Computes claim. Where two have none of it in common, what one claims does not matter to the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A place to create on.
    Branch {
        project: String,
        branch: String,
    },
    Compute {
        project: String,
        id: String,
    },
}

/// What a Compute claims: the branch that it declares, the one that it creates on, the compute that it is bound to.
pub fn subjects(compute: &Compute) -> BTreeSet<Subject> {
    let identity = identity::of_compute(compute).unwrap_or_default().identity;
    at_stake(compute, &identity, &BTreeSet::new())
}

/// What matters to `mine` if others claim it: what it claims itself, and these computes. Whoever has its compute and looks for no other
/// one has nothing to do with those on its branch.
pub fn at_stake(mine: &Compute, identity: &ComputeIdentity, ids: &BTreeSet<String>) -> BTreeSet<Subject> {
    let project = &mine.spec.project_id;
    let intended = identity.intent.iter().map(|intent| &intent.branch);
    let branch = |branch: &String| Subject::Branch { project: project.clone(), branch: branch.clone() };
    let compute = |id: &String| Subject::Compute { project: project.clone(), id: id.clone() };
    if let Some(binding) = &identity.binding
        && ids.contains(&binding.id)
        && identity.is_settled()
    {
        return BTreeSet::from([compute(&binding.id)]);
    }
    let bound = identity.binding.iter().map(|binding| &binding.id);
    let branches = intended.chain([&mine.spec.branch_id]).map(branch);
    branches.chain(bound.chain(ids).map(compute)).collect()
}

/// What the others on the same platform claim that matters to `mine`, of which a create that begins now is `told` so. `unreadable` are those whose spec cannot be read: what
/// their records claim is theirs all the same. `creating` tells how the create is told that one has begun in this process, which
/// its record as it is known may not show yet.
pub fn claims<'a>(
    (mine, identity, told): (&'a Compute, &ComputeIdentity, Told),
    others: impl IntoIterator<Item = &'a Compute>,
    unreadable: impl IntoIterator<Item = &'a ObjectMeta>,
    creating: impl Fn(&str) -> Option<Told>,
) -> Claims {
    let recorded = |other| Other::of(other, identity::of_compute(other).unwrap_or_default().identity);
    let readable = others.into_iter().map(recorded);
    let unreadable = unreadable.into_iter().map(Other::unreadable);
    let others: Vec<Other> = readable
        .chain(unreadable)
        .filter(|other| other.is_in(&mine.spec.project_id) && other.meta.uid != mine.metadata.uid)
        .collect();
    if others.is_empty() {
        return Claims::default();
    }
    let mine = Mine { spec: &mine.spec, other: Other::of(mine, identity.clone()) };
    Claims {
        bound: bound(&others, &mine.other),
        primary: primary(&others, &mine),
        creating: first_create(&others, &mine, told, creating),
        marks: others.iter().filter_map(|other| other.intent()?.mark.clone()).collect(),
    }
}

/// A resource with what is recorded of it; nothing where that is invalid.
struct Other<'a> {
    meta: &'a ObjectMeta,
    /// `None` where it cannot be read.
    spec: Option<&'a ComputeSpec>,
    identity: ComputeIdentity,
}

struct Mine<'a> {
    spec: &'a ComputeSpec,
    other: Other<'a>,
}

impl<'a> Other<'a> {
    fn of(object: &'a Compute, identity: ComputeIdentity) -> Self {
        Self { meta: &object.metadata, spec: Some(&object.spec), identity }
    }

    fn unreadable(meta: &'a ObjectMeta) -> Self {
        Self { meta, spec: None, identity: identity::of_unreadable(meta).unwrap_or_default().identity }
    }

    /// Whether it is in a project, or may be.
    fn is_in(&self, project: &str) -> bool {
        match (self.spec, &self.identity.binding) {
            (Some(spec), _) => spec.project_id == project,
            (None, Some(binding)) => binding.project == project,
            (None, None) => true,
        }
    }

    /// The intent of a create that is not resolved.
    fn intent(&self) -> Option<&CreateIntent> {
        self.identity.open_create()
    }

    fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    fn comes_before(&self, other: &Self) -> bool {
        self.precedence() < other.precedence()
    }

    /// The older resource comes first; by name where two were created in the same second.
    fn precedence(&self) -> (Option<Timestamp>, ObjectKey<'_>) {
        (self.meta.creation_timestamp.as_ref().map(|time| time.0), object_key(self.meta))
    }

    fn label(&self) -> String {
        format!("Compute {}", object_key(self.meta))
    }
}

fn bound(others: &[Other], mine: &Other) -> BTreeMap<String, Claim> {
    let mut in_order: Vec<&Other> = others.iter().collect();
    in_order.sort_by_key(|other| other.precedence());
    let mut bound: BTreeMap<String, Claim> = BTreeMap::new();
    for other in in_order {
        let Some(binding) = &other.identity.binding else { continue };
        let claim = || Claim { by: other.label(), first: other.comes_before(mine) };
        bound.entry(binding.id.clone()).or_insert_with(claim);
    }
    bound
}

/// The first of the other resources that want, or have, the same branch's primary.
fn primary(others: &[Other], mine: &Mine) -> Option<String> {
    if mine.spec.type_ != ComputeType::ReadWrite {
        return None;
    }
    let wants_it = |other: &&Other| {
        other.spec.is_some_and(|spec| spec.type_ == ComputeType::ReadWrite && spec.branch_id == mine.spec.branch_id)
            && other.comes_before(&mine.other)
    };
    others.iter().filter(wants_it).min_by_key(|other| other.precedence()).map(Other::label)
}

/// Whose create on the branch comes first, of those that are not told from one's own by their marks.
fn first_create(others: &[Other], mine: &Mine, told: Told, creating: impl Fn(&str) -> Option<Told>) -> Option<Rival> {
    let rival = |other: &Other, since| Rival { by: other.label(), since };
    // What is created of another type is never taken for one's own.
    let mut rivals = others.iter().filter(|other| other.spec.is_none_or(|spec| spec.type_ == mine.spec.type_));
    let Some(intent) = mine.other.intent() else {
        let branch = &mine.spec.branch_id;
        let first = rivals.find(|other| match other.intent() {
            Some(theirs) => theirs.branch == *branch && !told.goes_with(theirs.told()),
            None => {
                let begun = || creating(other.uid()).is_some_and(|theirs| !told.goes_with(theirs));
                other.spec.is_none_or(|spec| spec.branch_id == *branch) && begun()
            }
        });
        return first.map(|other| rival(other, other.intent().map(|theirs| theirs.at)));
    };
    let earlier = rivals.filter_map(|other| Some((other, other.intent()?))).filter(|(other, theirs)| {
        theirs.branch == intent.branch
            && !intent.told().goes_with(theirs.told())
            && (theirs.at, other.uid()) < (intent.at, mine.other.uid())
    });
    let first = earlier.min_by_key(|(other, theirs)| (theirs.at, other.uid()));
    first.map(|(other, theirs)| rival(other, Some(theirs.at)))
}
