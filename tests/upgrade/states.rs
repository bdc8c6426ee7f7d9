//! The states, each with how it comes about and what becomes of it.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::calls::Call;
use super::{PROJECT, computes, keys};

/// When something is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before anything goes wrong.
    Calm,
    /// Creates do not reach the platform, until they are tried again.
    Unanswered,
    /// Creates are carried out long after they were sent.
    Stray,
    /// At the end: no delete and no change succeeds.
    Refused,
    /// At the end: creates and restarts do not reach the platform, and nobody knows that.
    Dropped,
    /// At the end: the platform carries them out once nobody waits for the answer any more.
    Late,
}

/// What people do with an object once it is as it was declared.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A merge patch.
    Change(Value),
    Delete,
    /// In the platform's console.
    ComputeDeleted,
    KeyRevoked,
}

/// A condition: its type and its reason.
pub type Says = (&'static str, &'static str);

pub const READY: Says = ("Ready", "Available");
/// The record is none that counts: what the version before knew of hand-overs is not offered any more.
pub const CONFLICT: Says = ("Stalled", "BindingConflict");

/// What is true of all objects of a state.
#[derive(Clone, Debug)]
pub struct State {
    pub name: &'static str,
    pub kind: &'static str,
    /// How many objects are brought into it.
    pub copies: usize,
    /// `{object}`, `{copy}`, `{branch}` and `{other}` stand for the object's name, its number, its branch, and another branch of its own.
    pub spec: Value,
    pub annotations: Value,
    /// Whether its branch has a primary that is somebody else's.
    pub foreign: bool,
    pub declared: Moment,
    /// What it says before something is done with it.
    pub first: Says,
    pub deeds: Vec<Deed>,
    pub done: Moment,
    /// What it says in the end; `None` where it depends on the moment.
    pub recorded: Option<Says>,
    /// What the next version does on the platform, and why it may.
    pub calls: Vec<Call>,
    /// What it says once the next version has come to rest; `None` where it is gone.
    pub ends: Option<Says>,
    pub only: Option<Profile>,
}

/// One object of a state.
#[derive(Clone, Debug)]
pub struct Object {
    pub state: State,
    pub name: String,
    pub copy: usize,
}

impl State {
    /// One that is Ready from the beginning, and for which nothing is done any more.
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

    /// It says something else than that it is Ready, now and after.
    pub fn says(self, says: Says) -> Self {
        Self { first: says, recorded: Some(says), ends: Some(says), ..self }
    }

    /// It says that until something is done with another object.
    pub fn first(self, first: Says) -> Self {
        Self { first, ..self }
    }

    pub fn beside_a_foreign_primary(self) -> Self {
        Self { foreign: true, ..self }
    }

    pub fn annotated(self, annotations: Value) -> Self {
        Self { annotations, ..self }
    }

    /// Then people do that, and it says so, now and after.
    pub fn then(self, deed: Deed, says: Says) -> Self {
        let deeds = [self.deeds, vec![deed]].concat();
        Self { deeds, recorded: Some(says), ends: Some(says), ..self }
    }

    pub fn declared(self, declared: Moment) -> Self {
        let recorded = self.recorded.filter(|_| declared < Moment::Refused);
        Self { declared, recorded, ..self }
    }

    pub fn done(self, done: Moment) -> Self {
        let recorded = self.recorded.filter(|_| done < Moment::Refused);
        Self { done, recorded, ..self }
    }

    /// The next version calls this, and leaves it so.
    pub fn next(self, calls: &[Call], ends: Option<Says>) -> Self {
        Self { calls: calls.to_vec(), ends, ..self }
    }

    pub fn only(self, profile: Profile) -> Self {
        Self { only: Some(profile), ..self }
    }
}

impl Object {
    /// As people apply it, of this account.
    pub fn manifest(&self, account: &Value) -> Value {
        let State { kind, spec, annotations, .. } = &self.state;
        let mut manifest = json!({
            "apiVersion": "dbplane.dev/v1alpha1", "kind": kind,
            "metadata": {"name": self.name, "annotations": annotations}, "spec": spec,
        });
        let refers = match *kind == "ReadReplicaSet" {
            true => &mut manifest["spec"]["template"]["spec"],
            false => &mut manifest["spec"],
        };
        refers["projectID"] = json!(PROJECT);
        if refers["accountRef"].is_null() {
            refers["accountRef"] = account.clone();
        }
        self.filled(&manifest)
    }

    /// What stands for names is replaced by them.
    pub fn filled(&self, value: &Value) -> Value {
        let words = [
            ("{object}", self.name.clone()),
            ("{copy}", self.copy.to_string()),
            ("{branch}", self.branch()),
            ("{other}", self.other_branch()),
        ];
        let text = words.iter().fold(value.to_string(), |text, (word, stands)| text.replace(word, stands));
        serde_json::from_str(&text).unwrap()
    }

    pub fn branch(&self) -> String {
        format!("br-{}", self.name)
    }

    pub fn other_branch(&self) -> String {
        format!("other-{}", self.name)
    }

    /// The primary on its branch that is somebody else's.
    pub fn foreign(&self) -> Option<String> {
        self.state.foreign.then(|| format!("ep-foreign-{}", self.name))
    }
}

/// All states of a platform.
pub fn states(profile: Profile) -> Vec<State> {
    let all = [computes::states(), keys::states(profile)].concat();
    all.into_iter().filter(|state| state.only.is_none_or(|only| only == profile)).collect()
}

/// All objects of a platform.
pub fn objects(profile: Profile) -> Vec<Object> {
    let of = |state: State| {
        (0..state.copies).map(move |copy| Object { name: format!("{}-{copy}", state.name), state: state.clone(), copy })
    };
    states(profile).into_iter().flat_map(of).collect()
}
