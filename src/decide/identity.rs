//! The record of a resource: the link from the resource to its objects on the platform.
//!
//! The record is in the status, which only the operator writes. An annotation holds a copy, so that
//! a backup restored without status keeps it. Anybody with write access to the resource can change
//! the annotation. Its content is therefore only a wish, and is checked before it counts.

mod has;
mod invalid;
mod keys;
mod restarts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

pub use self::keys::{
    Acknowledged, KeyIdentity, KeyIntent, KeyRecords, LastUse, LostBecause, LostKey,
    ProjectKeyIdentity, RetiredKey,
};
pub use self::restarts::{BeforeRestart, InVain, Maintained, RestartAnswer, RestartRecord};
use super::names::RECORD;
use super::seal::{self, InvalidAnnotation, ObjectKey};
use super::{WATCHED, later};
use crate::api::ObjectMeta;
use crate::domain::{self, BranchId, ComputeId, NameSupport, ProjectId, Settings};

/// How a Compute was bound to its compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    Created,
    /// It was the branch's primary, and `existing: Adopt` adopted it.
    Adopted,
    /// The spec names it in `computeID`.
    Imported,
    /// It is only observed (`management: Observe`).
    Observed,
}

/// The durable link from a Compute to its compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub id: ComputeId,
    pub project: ProjectId,
    /// The base URL of its platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The branch of the compute at the time of binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    pub origin: Origin,
    pub at: Timestamp,
}

/// The intent to create a compute, recorded before the call. From then on the create may have
/// happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateIntent {
    pub at: Timestamp,
    pub branch: BranchId,
    /// The base URL of the platform that receives the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The computes of that type that the branch had before the create. Absent if the mark alone
    /// identifies the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BTreeSet<ComputeId>>,
    /// When the platform created the newest compute of the baseline, if the platform shows that. An
    /// older compute can still be a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// The unique name that the create gives the compute, if the platform shows names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The requested settings. The spec may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Settings>,
}

/// How to recognize the result of a create among other computes of its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// By the unique name. Any number of such creates can be in progress at once.
    ByMark,
    /// By absence from the baseline. Only one such create can be in progress on a branch.
    ByBaseline,
}

impl Evidence {
    /// The evidence for a create that begins now.
    pub fn now(names: NameSupport) -> Self {
        if names == NameSupport::Kept {
            Self::ByMark
        } else {
            Self::ByBaseline
        }
    }

    /// Returns true if two creates can be in progress on a branch at once.
    pub fn goes_with(self, other: Self) -> bool {
        (self, other) == (Self::ByMark, Self::ByMark)
    }
}

impl CreateIntent {
    pub fn evidence(&self) -> Evidence {
        if self.baseline.is_none() {
            Evidence::ByMark
        } else {
            Evidence::ByBaseline
        }
    }

    /// Returns true if the branch had this compute before the create, as far as recorded.
    pub fn is_in_baseline(&self, id: &ComputeId) -> bool {
        self.baseline
            .as_ref()
            .is_some_and(|baseline| baseline.contains(id))
    }

    /// Adds this create to the unanswered creates. Equal ones share one record, so that the
    /// annotation does not grow while the platform never answers.
    pub fn noted_in(&self, unanswered: &[Self]) -> Vec<Self> {
        let alike = |other: &&Self| {
            (&other.branch, &other.mark, &other.asked) == (&self.branch, &self.mark, &self.asked)
        };
        let shared = unanswered
            .iter()
            .filter(alike)
            .fold(self.clone(), |shared, other| Self {
                baseline: shared
                    .baseline
                    .zip(other.baseline.as_ref())
                    .map(|(one, other)| &one & other),
                newest: shared.newest.min(other.newest),
                ..shared
            });
        let others = unanswered.iter().filter(|other| !alike(other)).cloned();
        others.chain([shared]).collect()
    }

    /// Adds this create, which made `compute`, to the creates that have made computes. The mark
    /// identifies further results if the platform shows it, the baseline otherwise. A branch has
    /// one primary: without a mark, its create can have no second result.
    pub fn made_in(&self, made: &[Self], compute: &domain::Compute) -> Vec<Self> {
        // A platform carries out a create soon. After `WATCHED`, an old create is dropped when a
        // newer one is added.
        let is_recent = |other: &&Self| self.at < later(other.at, WATCHED);
        let others = made
            .iter()
            .filter(is_recent)
            .filter(|other| other.mark.is_none() || other.mark != self.mark)
            .cloned();
        let own = if self.mark.is_some() && self.mark == compute.name {
            Some(Self {
                baseline: None,
                newest: None,
                asked: None,
                ..self.clone()
            })
        } else if self.baseline.is_some() && compute.role == domain::Role::Replica {
            Some(self.clone())
        } else {
            None
        };
        others.chain(own).collect()
    }
}

/// The record of a Compute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeIdentity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<CreateIntent>,
    /// Creates without an answer, and without a result in any snapshot. They identify a compute
    /// that appears late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<CreateIntent>,
    /// The creates that made computes of the resource. A proxy may have repeated such a request.
    /// The mark identifies the further compute. Without marks, it is a compute outside the baseline
    /// that appears soon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<CreateIntent>,
    /// Further computes from repeated creates, and since when the status names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub twins: BTreeMap<ComputeId, Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartRecord>,
}

impl ComputeIdentity {
    /// Returns true if the resource is bound and has no open create.
    pub fn is_settled(&self) -> bool {
        let Self {
            binding,
            intent,
            unanswered,
            made: _,
            twins: _,
            restart: _,
        } = self;
        binding.is_some() && intent.is_none() && unanswered.is_empty()
    }

    /// The platform of the compute or of its intended create.
    pub fn platform(&self) -> Option<&str> {
        let intended = || {
            self.intent
                .iter()
                .chain(self.unanswered.last())
                .find_map(|intent| intent.platform.as_ref())
        };
        self.binding
            .as_ref()
            .and_then(|binding| binding.platform.as_ref())
            .or_else(intended)
            .map(String::as_str)
    }

    /// The unresolved create of a resource that is not bound.
    pub fn open_create(&self) -> Option<&CreateIntent> {
        match self.binding {
            Some(_) => None,
            None => self.intent.as_ref(),
        }
    }

    /// All unresolved creates.
    pub fn creates(&self) -> impl Iterator<Item = &CreateIntent> {
        self.open_create().into_iter().chain(&self.unanswered)
    }

    /// Replaces each platform by the result of `of`.
    #[must_use]
    pub fn with_platforms(mut self, of: impl Fn(&str) -> String) -> Self {
        let binding = self.binding.iter_mut().map(|binding| &mut binding.platform);
        let creates = self
            .intent
            .iter_mut()
            .chain(&mut self.unanswered)
            .chain(&mut self.made)
            .map(|create| &mut create.platform);
        binding
            .chain(creates)
            .flatten()
            .for_each(|platform| *platform = of(platform));
        self
    }

    pub fn marks(&self) -> impl Iterator<Item = &String> {
        self.intent
            .iter()
            .chain(&self.unanswered)
            .chain(&self.made)
            .filter_map(|create| create.mark.as_ref())
    }

    /// When the call with the unknown outcome was recorded.
    pub fn recorded(&self) -> Option<Timestamp> {
        let restart = self
            .restart
            .as_ref()
            .filter(|record| record.calling.is_some());
        let unanswered = || self.unanswered.last().map(|create| create.at);
        self.intent
            .as_ref()
            .map(|intent| intent.at)
            .or(restart.map(|record| record.at))
            .or_else(unanswered)
    }
}

/// The record of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// From the status.
    pub identity: T,
    /// From the annotation, or from the status of an earlier resource of the same name. Present
    /// only if the status has no record of this resource. Anybody with write access to the resource
    /// may have written it.
    pub wish: Option<Box<T>>,
    /// The status has it.
    pub is_recorded: bool,
    /// The annotation is a copy of the record, as far as a restore needs it.
    pub is_annotated: bool,
}

/// The record type of a kind.
pub trait RecordedIdentity:
    Clone + Default + Debug + PartialEq + DeserializeOwned + Serialize + Send + Sync
{
    /// The content of a record about its resource.
    fn of(record: &Record<Self>) -> Self {
        record.identity.clone()
    }

    /// Returns true if restoring from `copy` is as good as restoring from this record.
    fn is_restored_by(&self, copy: &Self) -> bool {
        self == copy
    }
}

impl RecordedIdentity for ComputeIdentity {
    /// A restored resource does not restart. Further computes of a create are deleted only by the
    /// record in the status.
    fn is_restored_by(&self, copy: &Self) -> bool {
        let Self {
            binding,
            intent,
            unanswered,
            made: _,
            twins: _,
            restart: _,
        } = copy;
        (&self.binding, &self.intent, &self.unanswered) == (binding, intent, unanswered)
    }
}

impl RecordedIdentity for ProjectKeyIdentity {
    /// The identity from the status, or the keys of the wish, marked as possibly from a backup.
    fn of(record: &Record<Self>) -> Self {
        match &record.wish {
            Some(wish) => wish.as_ref().clone().restored(),
            None => record.identity.clone(),
        }
    }
}

/// For kinds without a record.
impl RecordedIdentity for () {}

impl<T: Default> Default for Record<T> {
    fn default() -> Self {
        Self {
            identity: T::default(),
            wish: None,
            is_recorded: false,
            is_annotated: true,
        }
    }
}

impl<T> Record<T> {
    /// Applies `change` to the identity and to the wish.
    #[must_use]
    pub fn map(self, change: impl Fn(T) -> T) -> Self {
        Self {
            identity: change(self.identity),
            wish: self.wish.map(|wish| Box::new(change(*wish))),
            ..self
        }
    }

    /// The wish if there is one, otherwise the identity from the status.
    pub fn identity_or_wish(&self) -> &T {
        self.wish.as_deref().unwrap_or(&self.identity)
    }
}

/// The text of a record for this resource.
pub fn written<T: Serialize>(identity: &T, meta: &ObjectMeta) -> String {
    let uid = meta.uid.clone().unwrap_or_default();
    let head = Head {
        form: (FORM > 1).then_some(FORM),
        uid,
        hand_over: None,
    };
    seal::seal(RECORD, &Version { head, identity }, object_key(meta))
}

/// A record with its head.
#[derive(Serialize)]
struct Version<T> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    identity: T,
}

/// The version of the record's format. A change that older versions of dbplane must not overlook
/// takes the next number and writes it. Version 1 is not written.
const FORM: u32 = 1;

/// The format of a record, and the resource it belongs to.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<u32>,
    /// The UID of the resource. A resource restored from a backup has another one.
    uid: String,
    /// The hand-over that older versions of dbplane recorded.
    #[serde(default, skip_serializing)]
    hand_over: Option<IgnoredAny>,
}

impl<T: DeserializeOwned> Version<T> {
    fn open(text: &str, object_key: ObjectKey) -> Result<Self, InvalidAnnotation> {
        let head: Head = seal::open(RECORD, text, object_key)?;
        if head.form.is_some_and(|form| form > FORM) {
            return Err(InvalidAnnotation::Newer);
        }
        if head.hand_over.is_some() {
            return Err(InvalidAnnotation::HandOver);
        }
        Ok(Self {
            head,
            identity: seal::read(text)?,
        })
    }
}

/// Reads the record of an unreadable resource. Its metadata holds the record from the status as its
/// only annotation.
///
/// # Errors
/// If the record is not as dbplane wrote it.
pub fn of_unreadable<T: RecordedIdentity>(
    meta: &ObjectMeta,
) -> Result<Record<T>, InvalidAnnotation> {
    read(meta, annotation(meta))
}

fn annotation(meta: &ObjectMeta) -> Option<&str> {
    meta.annotations.as_ref()?.get(RECORD).map(String::as_str)
}

/// Only the status of this very resource is trusted. Texts that dbplane did not write are ignored
/// if the status counts. A text of another version of dbplane is an error, because it may hold
/// facts that this version cannot read.
pub(super) fn read<T: RecordedIdentity>(
    meta: &ObjectMeta,
    status: Option<&str>,
) -> Result<Record<T>, InvalidAnnotation> {
    let open = |text: &str| Version::<T>::open(text, object_key(meta));
    let annotation = annotation(meta);
    let of_status = match status.map(open) {
        Some(Err(invalid)) if invalid.is_of_another_version() => return Err(invalid),
        opened => opened.and_then(Result::ok),
    };
    let is_same = of_status.is_some() && annotation == status;
    let of_annotation = if is_same { None } else { annotation.map(open) };
    if let Some(Err(invalid)) = &of_annotation
        && invalid.is_of_another_version()
    {
        return Err(invalid.clone());
    }
    let is_own = |head: &Head| meta.uid.as_deref().unwrap_or_default() == head.uid;
    let Some(status_says) = of_status else {
        let wish = of_annotation.transpose()?.map(|it| Box::new(it.identity));
        return Ok(Record {
            wish,
            ..Record::default()
        });
    };
    if !is_own(&status_says.head) {
        return Ok(Record {
            wish: Some(Box::new(status_says.identity)),
            ..Record::default()
        });
    }
    let identity = status_says.identity;
    let copy = of_annotation
        .and_then(Result::ok)
        .filter(|copy| is_own(&copy.head));
    let is_annotated = is_same || copy.is_some_and(|copy| identity.is_restored_by(&copy.identity));
    Ok(Record {
        identity,
        wish: None,
        is_recorded: true,
        is_annotated,
    })
}

pub fn object_key(meta: &ObjectMeta) -> ObjectKey<'_> {
    let [namespace, name] =
        [&meta.namespace, &meta.name].map(|part| part.as_deref().unwrap_or_default());
    ObjectKey { namespace, name }
}

#[cfg(test)]
mod tests;
