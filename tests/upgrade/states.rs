//! The states, with the steps that create them and the expected results.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::calls::Call;
use super::{PROJECT, computes, keys};

/// The time at which an object is declared or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before any fault.
    Calm,
    /// Creates do not reach the platform until they are retried.
    Unanswered,
    /// Creates are executed long after they were sent.
    Stray,
    /// At the end: every delete and change fails.
    Refused,
    /// At the end: creates and restarts do not reach the platform, and the operator does not learn
    /// that.
    Dropped,
    /// At the end: the platform executes creates and restarts after the operator has been killed.
    Late,
}

/// A user's action on an object that has reached its first state.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A merge patch.
    Change(Value),
    Delete,
    /// A deletion in the platform's console.
    ComputeDeleted,
    KeyRevoked,
}

/// A condition: its type and its reason.
pub type Says = (&'static str, &'static str);

pub const READY: Says = ("Ready", "Available");
/// The record is rejected: it is from a hand-over, which is no longer supported, or lacks its
/// platform.
pub const CONFLICT: Says = ("Stalled", "BindingConflict");

/// The description of a state, shared by all objects in it.
#[derive(Clone, Debug)]
pub struct State {
    pub name: &'static str,
    pub kind: &'static str,
    /// Number of objects in this state.
    pub copies: usize,
    /// Placeholders: `{object}` is the object's name, `{copy}` its number, `{branch}` its branch,
    /// and `{other}` another branch of its own.
    pub spec: Value,
    pub annotations: Value,
    /// True if its branch has a primary that is not managed by dbplane.
    pub foreign: bool,
    pub declared: Moment,
    /// The condition before any deed.
    pub first: Says,
    pub deeds: Vec<Deed>,
    pub done: Moment,
    /// The condition at the time of the recording; `None` if it depends on timing.
    pub recorded: Option<Says>,
    /// The calls that the next version makes on the platform.
    pub calls: Vec<Call>,
    /// The condition after the next version has settled; `None` if the object is gone.
    pub ends: Option<Says>,
    pub only: Option<Profile>,
}

#[derive(Clone, Debug)]
pub struct Object {
    pub state: State,
    pub name: String,
    pub copy: usize,
}

impl State {
    /// An object that is Ready from the beginning and needs nothing more.
    pub fn new(kind: &'static str, name: &'static str, spec: Value) -> Self {
        Self {
            name,
            kind,
            copies: 1,
            spec,
            annotations: json!({}),
            foreign: false,
            declared: Moment::Calm,
            first: READY,
            deeds: Vec::new(),
            done: Moment::Calm,
            recorded: Some(READY),
            calls: Vec::new(),
            ends: Some(READY),
            only: None,
        }
    }

    pub fn times(self, copies: usize) -> Self {
        Self { copies, ..self }
    }

    /// Sets a condition other than Ready, for all times.
    pub fn says(self, says: Says) -> Self {
        Self {
            first: says,
            recorded: Some(says),
            ends: Some(says),
            ..self
        }
    }

    /// Sets the condition until a deed on another object changes it.
    pub fn first(self, first: Says) -> Self {
        Self { first, ..self }
    }

    pub fn with_a_foreign_primary(self) -> Self {
        Self {
            foreign: true,
            ..self
        }
    }

    pub fn annotated(self, annotations: Value) -> Self {
        Self {
            annotations,
            ..self
        }
    }

    /// Adds a deed, and sets the condition after it.
    pub fn then(self, deed: Deed, says: Says) -> Self {
        let deeds = [self.deeds, vec![deed]].concat();
        Self {
            deeds,
            recorded: Some(says),
            ends: Some(says),
            ..self
        }
    }

    pub fn declared(self, declared: Moment) -> Self {
        Self {
            declared,
            recorded: if declared < Moment::Refused {
                self.recorded
            } else {
                None
            },
            ..self
        }
    }

    pub fn done(self, done: Moment) -> Self {
        Self {
            done,
            recorded: if done < Moment::Refused {
                self.recorded
            } else {
                None
            },
            ..self
        }
    }

    /// Sets the calls of the next version, and the condition after them.
    pub fn next(self, calls: &[Call], ends: Option<Says>) -> Self {
        Self {
            calls: calls.to_vec(),
            ends,
            ..self
        }
    }

    pub fn only(self, profile: Profile) -> Self {
        Self {
            only: Some(profile),
            ..self
        }
    }
}

impl Object {
    /// The manifest that a user would apply, for this account.
    pub fn manifest(&self, account: &Value) -> Value {
        let State {
            kind,
            spec,
            annotations,
            ..
        } = &self.state;
        let mut manifest = json!({
            "apiVersion": "dbplane.dev/v1alpha1", "kind": kind,
            "metadata": {"name": self.name, "annotations": annotations}, "spec": spec,
        });
        let refers = if *kind == "ReadReplicaSet" {
            &mut manifest["spec"]["template"]["spec"]
        } else {
            &mut manifest["spec"]
        };
        refers["projectID"] = json!(PROJECT);
        if refers["accountRef"].is_null() {
            refers["accountRef"] = account.clone();
        }
        self.filled(&manifest)
    }

    /// Replaces the placeholders.
    pub fn filled(&self, value: &Value) -> Value {
        let words = [
            ("{object}", self.name.clone()),
            ("{copy}", self.copy.to_string()),
            ("{branch}", self.branch()),
            ("{other}", self.other_branch()),
        ];
        let text = words
            .iter()
            .fold(value.to_string(), |text, (word, stands)| {
                text.replace(word, stands)
            });
        serde_json::from_str(&text).unwrap()
    }

    pub fn branch(&self) -> String {
        format!("br-{}", self.name)
    }

    pub fn other_branch(&self) -> String {
        format!("other-{}", self.name)
    }

    /// The primary on its branch that dbplane does not manage.
    pub fn foreign(&self) -> Option<String> {
        self.state
            .foreign
            .then(|| format!("ep-foreign-{}", self.name))
    }
}

/// All states of a profile.
pub fn states(profile: Profile) -> Vec<State> {
    let all = [computes::states(), keys::states(profile)].concat();
    all.into_iter()
        .filter(|state| state.only.is_none_or(|only| only == profile))
        .collect()
}

/// All objects of a profile.
pub fn objects(profile: Profile) -> Vec<Object> {
    let of = |state: State| {
        (0..state.copies).map(move |copy| Object {
            name: format!("{}-{copy}", state.name),
            state: state.clone(),
            copy,
        })
    };
    states(profile).into_iter().flat_map(of).collect()
}
