//! What a pass under way is: what it began with, what came since, what it waits for; and the calls that it waits for.

use std::collections::BTreeMap;

use dbplane::controller::environment::PassSettings;
use dbplane::controller::state::Contents;
use dbplane::domain::{Fault, KeyEntry};
use jiff::Timestamp;

use super::bound::Statuses;
use super::in_memory::cluster::Stored;
use super::in_memory::{Print, Request, Resource, Response, hash};
use super::mutation::Mutation;
use super::remote::Remote;
use super::state::{Read, ReadKeys};

/// Something that others can see, or whose answer depends on them.
#[derive(Clone, Debug, Hash)]
pub enum Effect {
    Cluster(Request),
    /// A call with this API key.
    Platform(u8, Call),
}

/// A call of the platform.
#[derive(Clone, Debug, Hash)]
pub enum Call {
    /// For this resource, with this name.
    CreateCompute(Resource, Option<String>),
    HasCompute(u8),
    DeleteCompute(u8),
    CreateKey(String),
    RevokeKey(u8),
    ListKeys,
    ProbeKey(String),
    ListProjects,
    ListComputes,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Answer {
    Cluster(Result<Response, u16>),
    Done,
    Made(u8),
    Keys(Vec<KeyEntry>),
    Fault(Fault),
}

/// A pass under way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub base: Print<Base>,
    /// What the clock said and what was answered, in their order.
    pub tape: Vec<Entry>,
    /// What it was resolved to do, once it was.
    pub resolved: Option<Resolved>,
    pub pending: Pending,
}

impl Flight {
    /// Passes that have resolved to do the same are the same, whatever led to it.
    pub fn print(self) -> Print<Self> {
        let (rests_on, since) = match self.resolved {
            Some(resolved) => (resolved.rests_on, resolved.position),
            None => (hash(&self.base), 0),
        };
        let came = format!("{:?} {:?}", &self.tape[since..], self.pending);
        Print::hashed(hash(&(rests_on, came)), self)
    }
}

/// What a pass was resolved to do: what follows rests on this, and no longer on everything that it began with.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    pub rests_on: u64,
    /// What was on the tape before.
    pub position: usize,
}

/// What a pass began with.
#[derive(Clone, Debug)]
pub struct Base {
    pub resource: Resource,
    pub contents: Contents<Remote>,
    pub caches: BTreeMap<Resource, Print<Stored>>,
    pub read: Option<Print<Read>>,
    /// Whether the read began after the resource's last write.
    pub fresh: bool,
    /// The organization's keys, as they were read after the last change of the resource's keys.
    pub keys: Option<Print<ReadKeys>>,
    pub settings: PassSettings,
    pub statuses: Statuses,
    /// Whether it matters what the last event of a resource tells people.
    pub tells: bool,
    pub mutation: Option<Mutation>,
}

/// What a pass waits for, and since when.
#[derive(Clone, Debug)]
pub struct Pending {
    pub effect: Effect,
    pub since: u8,
    /// It is carried out, and this is the answer, which is under way.
    pub came: Option<Answer>,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Now(Timestamp),
    /// A change has ended.
    Tick,
    Answer(Answer),
}
