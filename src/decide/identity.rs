//! What links a resource to the platform: annotations, so that a backup restored without status keeps it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::seal::{Flaw, ObjectKey};
use super::{names, seal};
use crate::domain::Settings;

/// How a Compute came to its compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// dbplane created it.
    Created,
    /// It was the branch's primary, and `existing: Adopt` took it over.
    Adopted,
    /// `computeID` named it.
    Imported,
    /// `management: Observe`: it is looked at only.
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

/// The mark written before a create: it may have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateIntent {
    pub at: Timestamp,
    pub branch: String,
    /// The computes that the branch had of that type when the create was begun.
    pub baseline: BTreeSet<String>,
    /// The unique name that the compute was given, where the platform shows names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// What was asked for; the spec may say something else by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Settings>,
}

impl CreateIntent {
    /// The creates whose outcome stays unknown, with this one. Those that are alike are told by one record, so that a
    /// platform that never answers fills no annotation.
    pub fn noted_in(&self, unanswered: &[Self]) -> Vec<Self> {
        let alike =
            |other: &&Self| (&other.branch, &other.mark, &other.asked) == (&self.branch, &self.mark, &self.asked);
        let baseline =
            unanswered.iter().filter(alike).fold(self.baseline.clone(), |shared, other| &shared & &other.baseline);
        let others = unanswered.iter().filter(|other| !alike(other)).cloned();
        others.chain([Self { baseline, ..self.clone() }]).collect()
    }
}

/// Creates that were never answered and that no reading has shown, as an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    pub creates: Vec<CreateIntent>,
}

/// The restart that was asked for last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRecord {
    /// The spec's token that is honoured, or was honoured last.
    pub token: String,
    /// The same of the annotation that people set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    pub at: Timestamp,
    /// Present from before the call until its outcome is known: what the compute looked like before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<BeforeRestart>,
}

/// What tells a compute that was restarted from one that was not, without comparing clocks.
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
    /// Creates that were never answered and that no reading has shown.
    pub unanswered: Vec<CreateIntent>,
    pub restart: Option<RestartRecord>,
    /// The value of the restart annotation that people set.
    pub restart_annotation: Option<String>,
}

impl ComputeIdentity {
    /// When the call was recorded whose outcome is not.
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
    /// From then on it is revoked.
    pub retire_at: Timestamp,
}

/// A key that may exist although its secret never arrived, or that could not be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub name: String,
    pub since: Timestamp,
}

/// All keys that a ProjectKey ever had and that are not known to be revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyBook {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<KeyIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<RetiredKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostKey>,
    /// The organization that these keys are of: in another one they can be neither found nor revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// The mark written before a key is created: it may exist, under this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIntent {
    pub name: String,
    pub at: Timestamp,
    /// When the key that this one replaces is revoked; absent where it replaces none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retire_previous_at: Option<Timestamp>,
    /// The key that this one replaces is known to be revoked already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous_revoked: bool,
    /// The organization that it is created in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

impl KeyBook {
    /// The book once the key that was intended has reached its Secret: what it replaces is retired, and forgotten only
    /// where it is known to be revoked.
    pub fn succeeded_by(&self, key: KeyIdentity, intent: &KeyIntent) -> Self {
        let mut book = self.of(intent);
        let Some(before) = book.current.replace(key.clone()).filter(|before| before.id != key.id) else { return book };
        book.rotated_at = Some(intent.at);
        if !intent.previous_revoked {
            let retire_at = intent.retire_previous_at.unwrap_or(intent.at);
            book.previous.push(RetiredKey { id: before.id, name: before.name, since: intent.at, retire_at });
        }
        book
    }

    /// The book, with the organization that the intended key is of.
    pub fn of(&self, intent: &KeyIntent) -> Self {
        Self { organization: intent.organization.clone().or_else(|| self.organization.clone()), ..self.clone() }
    }

    /// The names of all keys in the book.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let current = self.current.iter().map(|key| key.name.as_str());
        let previous = self.previous.iter().map(|key| key.name.as_str());
        current.chain(previous).chain(self.lost.iter().map(|key| key.name.as_str()))
    }
}

/// A ProjectKey's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectKeyIdentity {
    pub book: KeyBook,
    pub intent: Option<KeyIntent>,
}

impl ProjectKeyIdentity {
    /// The names of all keys that there are or may be.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.book.names().chain(self.intent.iter().map(|intent| intent.name.as_str()))
    }

    /// The organization that they are of, where there are any and it was noted.
    pub fn organization(&self) -> Option<&str> {
        self.names().next()?;
        let intended = self.intent.as_ref().and_then(|intent| intent.organization.as_deref());
        intended.or(self.book.organization.as_deref())
    }
}

/// Annotations that are not believed; nothing is decided on a link that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubtful {
    pub flaws: Vec<(&'static str, Flaw)>,
    /// Whether others of the resource's annotations are its own.
    pub others_hold: bool,
}

impl Doubtful {
    /// Whether everything was copied from another resource, which is the one that it concerns.
    pub fn is_copy(&self) -> bool {
        !self.others_hold && self.flaws.iter().all(|(_, flaw)| matches!(flaw, Flaw::CopiedFrom(_)))
    }

    /// What is wrong, and what to do about it. `kind` as kubectl takes it.
    pub fn explain(&self, kind: &str, object_key: ObjectKey) -> String {
        let said: Vec<String> = self.flaws.iter().map(|(annotation, flaw)| flaw.said_of(annotation)).collect();
        let removed: Vec<String> = self.flaws.iter().map(|(annotation, _)| format!("{annotation}-")).collect();
        let ObjectKey { namespace, name } = object_key;
        let forget = format!("kubectl -n {namespace} annotate {kind} {name} {}", removed.join(" "));
        let said = said.join(" ");
        if self.is_copy() {
            return format!("{said} Nothing is done before it is removed here: {forget}");
        }
        format!(
            "{said} Nothing is done before the value that dbplane wrote is back. To have the link forgotten instead: {forget}"
        )
    }
}

impl Flaw {
    fn said_of(&self, annotation: &str) -> String {
        match self {
            Self::Unreadable(error) => format!("The annotation {annotation} cannot be read ({error})."),
            Self::Edited => format!("The annotation {annotation} is not as dbplane wrote it."),
            Self::CopiedFrom(other) => {
                format!("The annotation {annotation} was copied from {other}, and links that resource.")
            }
        }
    }
}

type Annotations = BTreeMap<String, String>;

/// A Compute's link to the platform.
pub fn of_compute(annotations: &Annotations, object_key: ObjectKey) -> Result<ComputeIdentity, Doubtful> {
    let mut sealed = Sealed::of(annotations, object_key);
    let identity = ComputeIdentity {
        binding: sealed.open(names::BINDING),
        intent: sealed.open(names::CREATE_INTENT),
        unanswered: sealed.open::<Unanswered>(names::UNANSWERED_CREATES).unwrap_or_default().creates,
        restart: sealed.open(names::RESTART_RECORD),
        restart_annotation: annotations.get(names::RESTART).cloned(),
    };
    sealed.believed(identity)
}

/// A ProjectKey's link to the platform.
pub fn of_key(annotations: &Annotations, object_key: ObjectKey) -> Result<ProjectKeyIdentity, Doubtful> {
    let mut sealed = Sealed::of(annotations, object_key);
    let identity = ProjectKeyIdentity {
        book: sealed.open(names::KEYS).unwrap_or_default(),
        intent: sealed.open(names::KEY_INTENT),
    };
    sealed.believed(identity)
}

/// A resource's annotations while they are read.
struct Sealed<'a> {
    annotations: &'a Annotations,
    object_key: ObjectKey<'a>,
    doubtful: Doubtful,
}

impl<'a> Sealed<'a> {
    fn of(annotations: &'a Annotations, object_key: ObjectKey<'a>) -> Self {
        Self { annotations, object_key, doubtful: Doubtful { flaws: Vec::new(), others_hold: false } }
    }

    fn open<T: DeserializeOwned>(&mut self, annotation: &'static str) -> Option<T> {
        let opened = seal::open(annotation, self.annotations.get(annotation)?, self.object_key);
        self.doubtful.others_hold |= opened.is_ok();
        opened.map_err(|flaw| self.doubtful.flaws.push((annotation, flaw))).ok()
    }

    fn believed<T>(self, identity: T) -> Result<T, Doubtful> {
        if self.doubtful.flaws.is_empty() { Ok(identity) } else { Err(self.doubtful) }
    }
}
