//! What links a resource to the platform: annotations, so that a backup restored without status keeps it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::seal::{InvalidAnnotation, ObjectKey};
use super::{names, seal};
use crate::domain::Settings;

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
    pub origin: Origin,
    pub at: Timestamp,
}

/// The intent to create a compute, written before the call: from then on the create may have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateIntent {
    pub at: Timestamp,
    pub branch: String,
    /// The computes of that type that the branch had before the create.
    pub baseline: BTreeSet<String>,
    /// The unique name that the create gives the compute, where the platform shows names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The requested settings; the spec may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Settings>,
}

impl CreateIntent {
    /// The unanswered creates, with this one added. Equal ones share one record, so that the annotation does not grow while
    /// the platform never answers.
    pub fn noted_in(&self, unanswered: &[Self]) -> Vec<Self> {
        let alike =
            |other: &&Self| (&other.branch, &other.mark, &other.asked) == (&self.branch, &self.mark, &self.asked);
        let baseline =
            unanswered.iter().filter(alike).fold(self.baseline.clone(), |shared, other| &shared & &other.baseline);
        let others = unanswered.iter().filter(|other| !alike(other)).cloned();
        others.chain([Self { baseline, ..self.clone() }]).collect()
    }
}

/// Creates that were never answered and whose result no snapshot has shown, as an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    pub creates: Vec<CreateIntent>,
}

/// The restart that was asked for last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRecord {
    /// The spec's token that is being carried out, or was carried out last.
    pub token: String,
    /// The same for the annotation that people set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    pub at: Timestamp,
    /// The compute's times before the call; present until the outcome of the call is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<BeforeRestart>,
}

/// The times by which a restart is recognized later, without comparing clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeRestart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// A Compute's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputeIdentity {
    pub binding: Option<Binding>,
    pub intent: Option<CreateIntent>,
    /// Creates that were never answered and whose result no snapshot has shown.
    pub unanswered: Vec<CreateIntent>,
    pub restart: Option<RestartRecord>,
    /// The value of the restart annotation that people set.
    pub restart_annotation: Option<String>,
}

impl ComputeIdentity {
    /// When the call was recorded whose outcome is not known.
    pub fn recorded(&self) -> Option<Timestamp> {
        let restart = self.restart.as_ref().filter(|record| record.calling.is_some());
        self.intent.as_ref().map(|intent| intent.at).or(restart.map(|record| record.at))
    }
}

/// A key that is, or was, in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIdentity {
    pub id: i64,
    pub name: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// A key that was replaced and is to be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    pub id: i64,
    pub name: String,
    pub since: Timestamp,
    /// When it is to be revoked.
    pub retire_at: Timestamp,
}

/// A key that may exist although dbplane never received its secret, or that could not be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub name: String,
    pub since: Timestamp,
}

/// All keys that a ProjectKey ever had and that are not known to be revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<KeyIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<RetiredKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostKey>,
    /// The organization of these keys: in another one they can be neither found nor revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// The intent to create a key, written before the call: from then on the key may exist, under this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIntent {
    pub name: String,
    pub at: Timestamp,
    /// When to revoke the key that this one replaces; absent where it replaces none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retire_previous_at: Option<Timestamp>,
    /// The key that this one replaces is known to be revoked already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous_revoked: bool,
    /// The organization that it is created in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

impl KeyRecords {
    /// The records once the intended key is in its Secret: the key it replaces is retired, and dropped from the records only
    /// when it is known to be revoked.
    pub fn succeeded_by(&self, key: KeyIdentity, intent: &KeyIntent) -> Self {
        let mut records = self.of(intent);
        let Some(before) = records.current.replace(key.clone()).filter(|before| before.id != key.id) else {
            return records;
        };
        records.rotated_at = Some(intent.at);
        if !intent.previous_revoked {
            let retire_at = intent.retire_previous_at.unwrap_or(intent.at);
            records.previous.push(RetiredKey { id: before.id, name: before.name, since: intent.at, retire_at });
        }
        records
    }

    /// The records, with the organization of the intended key.
    pub fn of(&self, intent: &KeyIntent) -> Self {
        Self { organization: intent.organization.clone().or_else(|| self.organization.clone()), ..self.clone() }
    }

    /// The names of all recorded keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let current = self.current.iter().map(|key| key.name.as_str());
        let previous = self.previous.iter().map(|key| key.name.as_str());
        current.chain(previous).chain(self.lost.iter().map(|key| key.name.as_str()))
    }
}

/// A ProjectKey's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectKeyIdentity {
    pub records: KeyRecords,
    pub intent: Option<KeyIntent>,
}

impl ProjectKeyIdentity {
    /// The names of all keys that there are or may be.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.names().chain(self.intent.iter().map(|intent| intent.name.as_str()))
    }

    /// The organization of the keys, where there are keys and it was recorded.
    pub fn organization(&self) -> Option<&str> {
        self.names().next()?;
        let intended = self.intent.as_ref().and_then(|intent| intent.organization.as_deref());
        intended.or(self.records.organization.as_deref())
    }
}

/// Annotations that are not valid. dbplane makes no decision based on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnnotations {
    pub annotations: Vec<(&'static str, InvalidAnnotation)>,
    /// Whether other annotations of the resource are valid.
    pub others_valid: bool,
}

impl InvalidAnnotations {
    /// Whether all of them were copied from another resource, to which they belong.
    pub fn is_copy(&self) -> bool {
        !self.others_valid
            && self.annotations.iter().all(|(_, problem)| matches!(problem, InvalidAnnotation::CopiedFrom(_)))
    }

    /// What is wrong, and what to do about it. `kind` as kubectl takes it.
    pub fn explain(&self, kind: &str, object_key: ObjectKey) -> String {
        let problems: Vec<String> =
            self.annotations.iter().map(|(annotation, problem)| problem.describe(annotation)).collect();
        let removed: Vec<String> = self.annotations.iter().map(|(annotation, _)| format!("{annotation}-")).collect();
        let ObjectKey { namespace, name } = object_key;
        let forget = format!("kubectl -n {namespace} annotate {kind} {name} {}", removed.join(" "));
        let problems = problems.join(" ");
        if self.is_copy() {
            return format!("{problems} dbplane does nothing until it is removed here: {forget}");
        }
        format!(
            "{problems} dbplane does nothing until the value that it wrote is restored. To remove the link instead: {forget}"
        )
    }
}

impl InvalidAnnotation {
    fn describe(&self, annotation: &str) -> String {
        match self {
            Self::Unreadable(error) => format!("The annotation {annotation} cannot be read ({error})."),
            Self::Edited => format!("The annotation {annotation} is not as dbplane wrote it."),
            Self::CopiedFrom(other) => {
                format!("The annotation {annotation} was copied from {other} and belongs to that resource.")
            }
        }
    }
}

type Annotations = BTreeMap<String, String>;

/// A Compute's records, from its annotations.
pub fn of_compute(annotations: &Annotations, object_key: ObjectKey) -> Result<ComputeIdentity, InvalidAnnotations> {
    let mut sealed = Sealed::of(annotations, object_key);
    let identity = ComputeIdentity {
        binding: sealed.open(names::BINDING),
        intent: sealed.open(names::CREATE_INTENT),
        unanswered: sealed.open::<Unanswered>(names::UNANSWERED_CREATES).unwrap_or_default().creates,
        restart: sealed.open(names::RESTART_RECORD),
        restart_annotation: annotations.get(names::RESTART).cloned(),
    };
    sealed.finish(identity)
}

/// A ProjectKey's records, from its annotations.
pub fn of_key(annotations: &Annotations, object_key: ObjectKey) -> Result<ProjectKeyIdentity, InvalidAnnotations> {
    let mut sealed = Sealed::of(annotations, object_key);
    let identity = ProjectKeyIdentity {
        records: sealed.open(names::KEYS).unwrap_or_default(),
        intent: sealed.open(names::KEY_INTENT),
    };
    sealed.finish(identity)
}

/// A resource's annotations while they are read.
struct Sealed<'a> {
    annotations: &'a Annotations,
    object_key: ObjectKey<'a>,
    invalid: InvalidAnnotations,
}

impl<'a> Sealed<'a> {
    fn of(annotations: &'a Annotations, object_key: ObjectKey<'a>) -> Self {
        Self { annotations, object_key, invalid: InvalidAnnotations { annotations: Vec::new(), others_valid: false } }
    }

    fn open<T: DeserializeOwned>(&mut self, annotation: &'static str) -> Option<T> {
        let opened = seal::open(annotation, self.annotations.get(annotation)?, self.object_key);
        self.invalid.others_valid |= opened.is_ok();
        opened.map_err(|problem| self.invalid.annotations.push((annotation, problem))).ok()
    }

    fn finish<T>(self, identity: T) -> Result<T, InvalidAnnotations> {
        if self.invalid.annotations.is_empty() { Ok(identity) } else { Err(self.invalid) }
    }
}
