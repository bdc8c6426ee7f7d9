//! Claims: the computes that other Computes are bound to, or may be creating. The operator writes a
//! claim into the status once a usable account has read the project. A declaration alone claims
//! nothing, and neither does a released Compute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::api::{Compute, ComputeSpec, ComputeType, Known, ObjectMeta};
use crate::decide::identity::{self, ComputeIdentity, CreateIntent, Evidence, object_key};
use crate::decide::released::is_released;
use crate::decide::{WATCHED, later};
use crate::domain::{BranchId, ComputeId, ProjectId};

/// The claims of other resources on the same branch and computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Computes that another resource is bound to, or is about to be bound to.
    pub bound: BTreeMap<ComputeId, Claim>,
    /// The resource that was bound to the same branch's primary before this one.
    pub primary: Option<Holder>,
    /// The resource of the same type whose create on the same branch comes first. Before this
    /// resource has an intent, any intent of another resource comes first; afterwards only an
    /// earlier one.
    pub creating: Option<RivalCreate>,
    /// The resource whose unanswered create of the same branch's primary may still be carried out.
    pub unanswered: Option<RivalCreate>,
    /// The marks of creates of other, unbound resources. A compute with such a mark belongs to that
    /// resource.
    pub marks: BTreeMap<String, Holder>,
    /// Computes bound to a resource that its account does not admit at present.
    pub outside: BTreeMap<ComputeId, Holder>,
    /// Computes that another resource declares by `computeID`, on any platform.
    pub declared: BTreeSet<ComputeId>,
    /// Some resources cannot be read, so their declarations are unknown.
    pub incomplete: bool,
}

/// Another Compute. Messages do not name it in other namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub namespace: String,
    pub name: String,
}

/// A resource whose create comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RivalCreate {
    pub by: Holder,
    /// The time when the create began, if its record shows it.
    pub since: Option<Timestamp>,
    pub evidence: Evidence,
}

/// Another resource's claim to a compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub by: Holder,
    /// True if it was written before this resource's claim.
    pub first: bool,
}

/// A branch or a compute that a Compute claims. Computes without a common subject do not affect
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimSubject {
    /// A branch to create on.
    Branch {
        project: ProjectId,
        branch: BranchId,
    },
    Compute {
        project: ProjectId,
        id: ComputeId,
    },
}

/// A reservation in this process, until the status of the Compute shows the claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservedPlace {
    pub platform: String,
    pub project: ProjectId,
    pub what: Reserved,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reserved {
    /// The right to create a compute of this type.
    Create {
        branch: BranchId,
        type_: ComputeType,
    },
    /// The right to be bound to this compute.
    Compute(ComputeId),
}

/// The Compute that the decision is about.
#[derive(Clone, Copy, Debug)]
pub struct Mine<'a> {
    pub object: &'a Compute,
    pub identity: &'a ComputeIdentity,
    /// The platform of its account.
    pub platform: &'a str,
    /// The evidence that identifies the result of a create that begins now.
    pub evidence: Evidence,
    pub now: Timestamp,
}

/// Another Compute, with the record in its status.
#[derive(Clone, Debug)]
pub struct Other<'a> {
    pub meta: &'a ObjectMeta,
    /// `None` if it cannot be read.
    pub spec: Option<&'a ComputeSpec>,
    pub identity: ComputeIdentity,
    /// True if its account admits it at present. Otherwise its claims do not block others, but
    /// computes with its marks stay its own.
    pub admitted: bool,
}

/// The reservations of other resources in this process.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    /// Creates of the same type on the same branch, and the evidence that identifies their results.
    pub creates: Vec<(Holder, Evidence)>,
    /// Reserved computes by identifier.
    pub computes: BTreeMap<ComputeId, Holder>,
}

impl Holder {
    pub fn of(meta: &ObjectMeta) -> Self {
        let key = object_key(meta);
        Self {
            namespace: key.namespace.to_owned(),
            name: key.name.to_owned(),
        }
    }

    /// The name for messages in this namespace.
    pub fn told_in(&self, namespace: &str) -> String {
        if self.namespace == namespace {
            self.to_string()
        } else {
            "a resource of another namespace".to_owned()
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compute {}/{}", self.namespace, self.name)
    }
}

/// The subjects of a Compute's claims.
pub fn claimed(compute: &Known<Compute>) -> BTreeSet<ClaimSubject> {
    if is_released(&compute.metadata) {
        BTreeSet::new()
    } else {
        subjects(compute)
    }
}

/// The subjects of a Compute: its bound compute, and the branches where it may have created one.
pub fn subjects(compute: &Known<Compute>) -> BTreeSet<ClaimSubject> {
    let identity = compute.identity().unwrap_or_default();
    let project = &compute.spec.project_id;
    let mut subjects = BTreeSet::new();
    if let Some(binding) = &identity.binding {
        subjects.insert(compute_of(project, &binding.id));
        if let Some(branch) = &binding.branch
            && compute.spec.type_ == ComputeType::ReadWrite
        {
            subjects.insert(branch_of(project, branch));
        }
    }
    for create in identity.creates() {
        subjects.insert(branch_of(project, &create.branch));
    }
    subjects
}

/// The branch and the compute that a Compute declares. It is enqueued when a claim to them ends.
pub fn wanted(spec: &ComputeSpec) -> BTreeSet<ClaimSubject> {
    let named = spec
        .compute_id
        .iter()
        .map(|id| compute_of(&spec.project_id, id));
    named
        .chain([branch_of(&spec.project_id, &spec.branch_id)])
        .collect()
}

/// The subjects whose claims by others matter to `mine`: its branches, its bound compute, and
/// `ids`. Once it is bound to one of `ids` and no create is open, claims on its branch do not
/// matter.
pub fn relevant_subjects(
    mine: &ComputeSpec,
    identity: &ComputeIdentity,
    ids: &BTreeSet<ComputeId>,
) -> BTreeSet<ClaimSubject> {
    let compute = |id: &ComputeId| compute_of(&mine.project_id, id);
    if let Some(binding) = &identity.binding
        && ids.contains(&binding.id)
        && identity.is_settled()
    {
        return BTreeSet::from([compute(&binding.id)]);
    }
    let bound = identity.binding.iter().map(|binding| &binding.id);
    let branches = identity
        .creates()
        .map(|create| &create.branch)
        .chain([&mine.branch_id]);
    let branches = branches.map(|branch| branch_of(&mine.project_id, branch));
    branches.chain(bound.chain(ids).map(compute)).collect()
}

fn branch_of(project: &ProjectId, branch: &BranchId) -> ClaimSubject {
    ClaimSubject::Branch {
        project: project.clone(),
        branch: branch.clone(),
    }
}

fn compute_of(project: &ProjectId, id: &ComputeId) -> ClaimSubject {
    ClaimSubject::Compute {
        project: project.clone(),
        id: id.clone(),
    }
}

/// The evidence that decides whether creates of a type take turns. Primaries always take turns,
/// because a branch has only one.
pub fn turn(type_: ComputeType, evidence: Evidence) -> Evidence {
    match type_ {
        ComputeType::ReadWrite => Evidence::ByBaseline,
        ComputeType::ReadOnly => evidence,
    }
}

/// The claims of others on the platform of `mine`. If two resources claim the same thing, the
/// earlier claim counts.
pub fn claims<'a>(
    mine: Mine<'_>,
    others: impl IntoIterator<Item = Other<'a>>,
    reserved: &Reservations,
) -> Claims {
    let uid = mine.object.metadata.uid.as_deref();
    let others = others
        .into_iter()
        .filter(|other| other.meta.uid.as_deref() != uid && !is_released(other.meta));
    let others: Vec<Other> = others.map(|other| other.near(&mine)).collect();
    let project = &mine.object.spec.project_id;
    let specs = others
        .iter()
        .filter_map(|other| other.spec)
        .filter(|spec| spec.project_id == *project);
    let declared = specs.filter_map(|spec| spec.compute_id.clone()).collect();
    let own = Other {
        meta: &mine.object.metadata,
        spec: Some(&mine.object.spec),
        identity: mine.identity.clone(),
        admitted: true,
    };
    Claims {
        bound: bound(&others, &own, reserved),
        primary: primary(&others, &own, mine.object),
        creating: first_create(&others, &own, mine, reserved),
        unanswered: unanswered(&others, &own, mine),
        marks: others.iter().flat_map(Other::marks).collect(),
        outside: others
            .iter()
            .filter(|other| !other.admitted)
            .filter_map(Other::binding)
            .collect(),
        declared,
        incomplete: false,
    }
}

/// The order of claims: the time when a claim was written, and the uid of its resource.
type ClaimOrder<'a> = (Timestamp, &'a str);

impl Other<'_> {
    /// Keeps only its claims in the project and on the platform of `mine`. A claim recorded without
    /// a platform may be on this one.
    fn near(mut self, mine: &Mine) -> Self {
        let project = &mine.object.spec.project_id;
        let is_here =
            |platform: Option<&String>| platform.is_none_or(|platform| platform == mine.platform);
        let in_project = self.spec.is_none_or(|spec| spec.project_id == *project);
        let ComputeIdentity {
            binding,
            intent,
            unanswered,
            made: _,
            twins: _,
            restart: _,
        } = &mut self.identity;
        binding
            .take_if(|binding| binding.project != *project || !is_here(binding.platform.as_ref()));
        intent.take_if(|intent| !in_project || !is_here(intent.platform.as_ref()));
        unanswered.retain(|create| in_project && is_here(create.platform.as_ref()));
        self
    }

    fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    fn holder(&self) -> Holder {
        Holder::of(self.meta)
    }

    /// The time since which it is bound to a compute of the branch.
    fn bound_on(&self, branch: &BranchId) -> Option<ClaimOrder<'_>> {
        let binding = self.identity.binding.as_ref()?;
        (binding.branch.as_ref() == Some(branch)).then(|| (binding.at, self.uid()))
    }

    fn binding(&self) -> Option<(ComputeId, Holder)> {
        Some((self.identity.binding.as_ref()?.id.clone(), self.holder()))
    }

    /// The marks of its creates while it is unbound. A bound resource does not need its other
    /// computes, so others may import them.
    fn marks(&self) -> Vec<(String, Holder)> {
        if self.identity.binding.is_some() {
            return Vec::new();
        }
        self.identity
            .creates()
            .filter_map(|create| Some((create.mark.clone()?, self.holder())))
            .collect()
    }
}

fn bound(others: &[Other], mine: &Other, reserved: &Reservations) -> BTreeMap<ComputeId, Claim> {
    let own = mine.identity.binding.as_ref();
    let about_to_be = reserved.computes.iter().map(|(id, by)| {
        let is_own = own.is_some_and(|own| own.id == *id);
        (
            id.clone(),
            Claim {
                by: by.clone(),
                first: !is_own,
            },
        )
    });
    let mut bound: BTreeMap<ComputeId, Claim> = about_to_be.collect();
    let admitted = others.iter().filter(|other| other.admitted);
    let bindings = admitted.filter_map(|other| Some((other.identity.binding.as_ref()?, other)));
    let mut in_order: Vec<_> = bindings
        .map(|(binding, other)| ((binding.at, other.uid()), &binding.id, other))
        .collect();
    in_order.sort_by_key(|(written, ..)| std::cmp::Reverse(*written));
    for (written, id, other) in in_order {
        let is_earlier = |own: &identity::Binding| own.id != *id || written < (own.at, mine.uid());
        bound.insert(
            id.clone(),
            Claim {
                by: other.holder(),
                first: own.is_none_or(is_earlier),
            },
        );
    }
    bound
}

fn primary(others: &[Other], mine: &Other, object: &Compute) -> Option<Holder> {
    let is_primary = |spec: &ComputeSpec| spec.type_ == ComputeType::ReadWrite;
    if !is_primary(&object.spec) {
        return None;
    }
    let branch = &object.spec.branch_id;
    let own = mine.bound_on(branch);
    let holders = others
        .iter()
        .filter(|other| other.admitted && other.spec.is_some_and(is_primary));
    let bound = holders.filter_map(|other| Some((other.bound_on(branch)?, other)));
    let earlier = bound.filter(|(written, _)| own.is_none_or(|own| *written < own));
    earlier
        .min_by_key(|(written, _)| *written)
        .map(|(_, other)| other.holder())
}

/// The resource whose create on the branch comes first. Creates that marks distinguish from `own`
/// do not count.
fn first_create(
    others: &[Other],
    own: &Other,
    mine: Mine,
    reserved: &Reservations,
) -> Option<RivalCreate> {
    let spec = &mine.object.spec;
    let together =
        |one: Evidence, other: Evidence| turn(spec.type_, one).goes_with(turn(spec.type_, other));
    let open = |branch: &BranchId, evidence: Evidence| {
        let branch = branch.clone();
        let is_in_the_way = move |intent: &&CreateIntent| {
            intent.branch == branch && !together(evidence, intent.evidence())
        };
        alike(others, spec.type_).filter_map(move |other| {
            let intent = other.identity.open_create().filter(&is_in_the_way)?;
            Some(((intent.at, other.uid()), (intent, other)))
        })
    };
    if let Some(intent) = own.identity.open_create() {
        let earlier = open(&intent.branch, intent.evidence())
            .filter(|(written, _)| *written < (intent.at, own.uid()));
        return earlier
            .min_by_key(|(written, _)| *written)
            .map(|(_, (create, by))| rival(create, by));
    }
    let begun = || {
        reserved
            .creates
            .iter()
            .find(|(_, theirs)| !together(mine.evidence, *theirs))
    };
    let recorded = open(&spec.branch_id, mine.evidence).min_by_key(|(written, _)| *written);
    let begun = || {
        begun().map(|(by, evidence)| RivalCreate {
            by: by.clone(),
            since: None,
            evidence: *evidence,
        })
    };
    recorded
        .map(|(_, (create, by))| rival(create, by))
        .or_else(begun)
}

/// The resource whose unanswered create of the branch's primary may still be carried out. None if
/// `own` was bound on the branch or has an earlier create.
fn unanswered(others: &[Other], own: &Other, mine: Mine) -> Option<RivalCreate> {
    let branch = &mine.object.spec.branch_id;
    if mine.object.spec.type_ != ComputeType::ReadWrite || own.bound_on(branch).is_some() {
        return None;
    }
    let is_watched =
        |create: &&CreateIntent| create.branch == *branch && mine.now < later(create.at, WATCHED);
    let first = |of: &Other| {
        of.identity
            .unanswered
            .iter()
            .filter(is_watched)
            .map(|create| create.at)
            .min()
    };
    let before = first(own).map(|at| (at, own.uid()));
    let creates = alike(others, ComputeType::ReadWrite).flat_map(|other| {
        let creates = other.identity.unanswered.iter().filter(is_watched);
        creates.map(move |create| ((create.at, other.uid()), (create, other)))
    });
    let earlier = creates.filter(|(written, _)| before.is_none_or(|before| *written < before));
    earlier
        .min_by_key(|(written, _)| *written)
        .map(|(_, (create, by))| rival(create, by))
}

/// Admitted resources that create, or may create, computes of a type. A result of another type is
/// never mistaken for the resource's own.
fn alike<'a>(others: &'a [Other<'a>], type_: ComputeType) -> impl Iterator<Item = &'a Other<'a>> {
    others.iter().filter(move |other| {
        other.admitted && other.spec.is_none_or(|theirs| theirs.type_ == type_)
    })
}

fn rival(create: &CreateIntent, by: &Other) -> RivalCreate {
    RivalCreate {
        by: by.holder(),
        since: Some(create.at),
        evidence: create.evidence(),
    }
}
