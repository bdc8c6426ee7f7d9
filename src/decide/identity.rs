//! What links a resource to the platform: its record.
//!
//! The record is in the status, which the operator alone writes. A copy of it is an annotation, so that a backup that is restored without
//! status keeps it. Whoever may write the resource may write the annotation: what it says is a wish, and is checked before it counts.

mod has;
mod invalid;
mod keys;
mod restarts;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

pub use self::keys::{
    Acknowledged, KeyIdentity, KeyIntent, KeyRecords, LastUse, LostBecause, LostKey, ProjectKeyIdentity, RetiredKey,
};
pub use self::restarts::{Answered, BeforeRestart, InVain, Maintained, RestartRecord};
use super::names::RECORD;
use super::seal::{self, InvalidAnnotation, ObjectKey};
use super::{WATCHED, later};
use crate::api::{Compute, ObjectMeta, ProjectKey};
use crate::domain::{self, NameSupport, Settings};

/// How a Compute was bound to its compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// dbplane created it.
    Created,
    /// It was the branch's primary, which `existing: Adopt` adopted.
    Adopted,
    /// `computeID` named it.
    Imported,
    /// `management: Observe`: it is only observed.
    Observed,
}

/// The durable link from a Compute to its compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub id: String,
    pub project: String,
    /// The base URL of the platform that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The branch that it was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub origin: Origin,
    pub at: Timestamp,
}

/// The intent to create a compute, written before the call: from then on the create may have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateIntent {
    pub at: Timestamp,
    pub branch: String,
    /// The base URL of the platform that it is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The computes of that type that the branch had before the create; absent where the mark alone tells what it creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BTreeSet<String>>,
    /// When the platform created the newest of them, where it shows that: what is older may be new all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// The unique name that the create gives the compute, where the platform shows names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The requested settings; the spec may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Settings>,
}

/// What tells the result of a create from what else is created on its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// The unique name that it gives the compute: any number of them can be under way at once.
    ByMark,
    /// That it was not there before: one comes after the other.
    ByBaseline,
}

impl Told {
    /// How a create is told that begins now.
    pub fn now(names: NameSupport) -> Self {
        if names == NameSupport::Kept { Self::ByMark } else { Self::ByBaseline }
    }

    /// Whether two creates on a branch can be under way at once.
    pub fn goes_with(self, other: Self) -> bool {
        (self, other) == (Self::ByMark, Self::ByMark)
    }
}

impl CreateIntent {
    pub fn told(&self) -> Told {
        if self.baseline.is_none() { Told::ByMark } else { Told::ByBaseline }
    }

    /// The unanswered creates, with this one added. Equal ones share one record, so that the annotation does not grow while
    /// the platform never answers.
    pub fn noted_in(&self, unanswered: &[Self]) -> Vec<Self> {
        let alike =
            |other: &&Self| (&other.branch, &other.mark, &other.asked) == (&self.branch, &self.mark, &self.asked);
        let shared = unanswered.iter().filter(alike).fold(self.clone(), |shared, other| Self {
            baseline: shared.baseline.zip(other.baseline.as_ref()).map(|(one, other)| &one & other),
            newest: shared.newest.min(other.newest),
            ..shared
        });
        let others = unanswered.iter().filter(|other| !alike(other)).cloned();
        others.chain([shared]).collect()
    }

    /// The creates that have made computes, with this one, which has made `compute`. What else it has made is told by the mark where the
    /// platform shows that, and by the baseline otherwise. A branch has one primary, and without a mark nothing is looked for beside that.
    pub fn made_in(&self, made: &[Self], compute: &domain::Compute) -> Vec<Self> {
        // A platform makes what it makes soon: one of long ago is not looked for beside a newer one.
        let is_recent = |other: &&Self| self.at < later(other.at, WATCHED);
        let others =
            made.iter().filter(is_recent).filter(|other| other.mark.is_none() || other.mark != self.mark).cloned();
        let own = match self.mark.is_some() && self.mark == compute.name {
            true => Some(Self { baseline: None, newest: None, asked: None, ..self.clone() }),
            false => Some(self.clone()).filter(|_| self.baseline.is_some() && compute.role == domain::Role::Replica),
        };
        others.chain(own).collect()
    }
}

/// What is recorded of a Compute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeIdentity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<CreateIntent>,
    /// Creates that were never answered and whose result no snapshot has shown: a compute that one of them creates late is
    /// recognized by this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<CreateIntent>,
    /// The creates that a compute of the resource is from. A proxy may have repeated one: another compute is recognized by its mark, or, without
    /// marks, as what was not there before and appears soon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<CreateIntent>,
    /// Such computes, and since when the status names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub twins: BTreeMap<String, Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartRecord>,
}

impl ComputeIdentity {
    /// Whether the resource is bound, and no create of it is open.
    pub fn is_settled(&self) -> bool {
        let Self { binding, intent, unanswered, made: _, twins: _, restart: _ } = self;
        binding.is_some() && intent.is_none() && unanswered.is_empty()
    }

    /// Where the compute is, or was to be created.
    pub fn platform(&self) -> Option<&str> {
        let intended = || self.intent.iter().chain(self.unanswered.last()).find_map(|intent| intent.platform.as_ref());
        self.binding.as_ref().and_then(|binding| binding.platform.as_ref()).or_else(intended).map(String::as_str)
    }

    /// The intent of a create that is not resolved.
    pub fn open_create(&self) -> Option<&CreateIntent> {
        self.intent.as_ref().filter(|_| self.binding.is_none())
    }

    /// The creates that are not resolved.
    pub fn creates(&self) -> impl Iterator<Item = &CreateIntent> {
        self.open_create().into_iter().chain(&self.unanswered)
    }

    /// The same, with each platform as `of` has it.
    #[must_use]
    pub fn with_platforms(mut self, of: impl Fn(&str) -> String) -> Self {
        let binding = self.binding.iter_mut().map(|binding| &mut binding.platform);
        let creates =
            self.intent.iter_mut().chain(&mut self.unanswered).chain(&mut self.made).map(|create| &mut create.platform);
        binding.chain(creates).flatten().for_each(|platform| *platform = of(platform));
        self
    }

    /// The unique names of all creates of the resource.
    pub fn marks(&self) -> impl Iterator<Item = &String> {
        self.intent.iter().chain(&self.unanswered).chain(&self.made).filter_map(|create| create.mark.as_ref())
    }

    /// When the call was recorded whose outcome is not known.
    pub fn recorded(&self) -> Option<Timestamp> {
        let restart = self.restart.as_ref().filter(|record| record.calling.is_some());
        let unanswered = || self.unanswered.last().map(|create| create.at);
        self.intent.as_ref().map(|intent| intent.at).or(restart.map(|record| record.at)).or_else(unanswered)
    }
}

/// The record of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// What the status says.
    pub identity: T,
    /// What the annotation says, or the status of an earlier resource of the name, where the status says nothing of this one. Anybody who
    /// may write the resource may have written it.
    pub wish: Option<T>,
    /// The text that the status has; `None` where nothing is recorded yet.
    pub text: Option<String>,
    /// Whether the annotation is a copy of it, as far as it matters.
    pub is_annotated: bool,
}

/// What is recorded of a kind.
pub trait Recorded: Default + PartialEq + DeserializeOwned {
    /// Whether a resource that is restored from a copy in an annotation is restored as well as from this.
    fn is_restored_by(&self, copy: &Self) -> bool {
        self == copy
    }
}

impl Recorded for ComputeIdentity {
    /// A resource that is restored has nothing restarted. What a create has made besides is deleted by what the status says alone.
    fn is_restored_by(&self, copy: &Self) -> bool {
        let Self { binding, intent, unanswered, made: _, twins: _, restart: _ } = copy;
        (&self.binding, &self.intent, &self.unanswered) == (binding, intent, unanswered)
    }
}

impl Recorded for ProjectKeyIdentity {}

impl<T: Default> Default for Record<T> {
    fn default() -> Self {
        Self { identity: T::default(), wish: None, text: None, is_annotated: true }
    }
}

impl<T> Record<T> {
    /// The same, with `change` made to what is recorded and to the wish.
    #[must_use]
    pub fn map(self, change: impl Fn(T) -> T) -> Self {
        Self { identity: change(self.identity), wish: self.wish.map(change), ..self }
    }

    /// What the status says, or else the wish.
    pub fn identity_or_wish(self) -> T {
        self.wish.unwrap_or(self.identity)
    }
}

impl Record<ProjectKeyIdentity> {
    /// What the status says, or else the keys of the wish, as keys that a backup may have brought.
    pub fn known(self) -> ProjectKeyIdentity {
        self.wish.map_or(self.identity, ProjectKeyIdentity::restored)
    }
}

/// The text of the record that says this of a resource.
pub fn written<T: Serialize>(identity: &T, meta: &ObjectMeta) -> String {
    let uid = meta.uid.clone().unwrap_or_default();
    let head = Head { form: (FORM > 1).then_some(FORM), uid, hand_over: None };
    seal::seal(RECORD, &Version { head, identity }, object_key(meta))
}

/// What is recorded, with its head.
#[derive(Serialize)]
struct Version<T> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    identity: T,
}

/// The form of what is recorded. A change that versions of dbplane before it must not overlook takes the next number, and writes it; the first
/// one is not written.
const FORM: u32 = 1;

/// How it is recorded, and of which resource.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<u32>,
    /// Of the resource. One that was restored from a backup has another.
    uid: String,
    /// What older versions of dbplane recorded of a hand-over.
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
        Ok(Self { head, identity: seal::read(text)? })
    }
}

/// What is recorded of a Compute.
///
/// # Errors
/// Where the status has no record and the annotation is not what dbplane wrote.
pub fn of_compute(object: &Compute) -> Result<Record<ComputeIdentity>, InvalidAnnotation> {
    read(&object.metadata, object.status.as_ref().and_then(|status| status.record.as_deref()))
}

/// Reads the record of an unreadable resource, whose metadata has the record of the status as its only annotation.
///
/// # Errors
/// Where the record is not what dbplane wrote.
pub fn of_unreadable<T: Recorded>(meta: &ObjectMeta) -> Result<Record<T>, InvalidAnnotation> {
    read(meta, annotation(meta))
}

fn annotation(meta: &ObjectMeta) -> Option<&str> {
    meta.annotations.as_ref()?.get(RECORD).map(String::as_str)
}

/// What is recorded of a ProjectKey.
///
/// # Errors
/// Where the status has no record and the annotation is not what dbplane wrote.
pub fn of_key(object: &ProjectKey) -> Result<Record<ProjectKeyIdentity>, InvalidAnnotation> {
    read(&object.metadata, object.status.as_ref().and_then(|status| status.record.as_deref()))
}

/// What the status says of this very resource counts, and nothing else does. A text that is not what dbplane wrote is as if it were not there
/// where the status counts, but for one that another version of dbplane wrote: it may say what this one does not.
fn read<T: Recorded>(meta: &ObjectMeta, status: Option<&str>) -> Result<Record<T>, InvalidAnnotation> {
    let open = |text: &str| Version::<T>::open(text, object_key(meta));
    let annotation = annotation(meta);
    let of_status = match status.map(open) {
        Some(Err(invalid)) if invalid.is_of_another_version() => return Err(invalid),
        opened => opened.and_then(Result::ok),
    };
    let is_same = of_status.is_some() && annotation == status;
    let of_annotation = annotation.filter(|_| !is_same).map(open);
    if let Some(Err(invalid)) = &of_annotation
        && invalid.is_of_another_version()
    {
        return Err(invalid.clone());
    }
    let is_own = |head: &Head| meta.uid.as_deref().unwrap_or_default() == head.uid;
    let Some(status_says) = of_status else {
        let wish = of_annotation.transpose()?.map(|version| version.identity);
        return Ok(Record { wish, ..Record::default() });
    };
    if !is_own(&status_says.head) {
        return Ok(Record { wish: Some(status_says.identity), ..Record::default() });
    }
    let identity = status_says.identity;
    let copy = of_annotation.and_then(Result::ok).filter(|copy| is_own(&copy.head));
    let is_annotated = is_same || copy.is_some_and(|copy| identity.is_restored_by(&copy.identity));
    Ok(Record { identity, wish: None, text: status.map(str::to_owned), is_annotated })
}

/// The namespace and name of an object.
pub fn object_key(meta: &ObjectMeta) -> ObjectKey<'_> {
    let [namespace, name] = [&meta.namespace, &meta.name].map(|part| part.as_deref().unwrap_or_default());
    ObjectKey { namespace, name }
}

#[cfg(test)]
mod tests;
