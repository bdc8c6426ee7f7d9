//! A pass in progress: its initial observations, its progress, its pending effect, and the calls of
//! the platform.

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

/// An action that is visible to others, or whose answer depends on them.
#[derive(Clone, Debug, Hash)]
pub enum Effect {
    Cluster(Request),
    /// A call with this API key.
    Platform(u8, Call),
}

#[derive(Clone, Debug, Hash)]
pub enum Call {
    /// The resource for which it is made, and its name.
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

/// The answer to an effect.
#[derive(Clone, Debug)]
pub enum Answer {
    Cluster(Result<Response, u16>),
    Done,
    Made(u8),
    Keys(Vec<KeyEntry>),
    Fault(Fault),
}

/// A pass in progress.
#[derive(Clone, Debug)]
pub struct PendingPass {
    pub base: Print<Base>,
    /// Clock readings and answers, in order.
    pub log: Vec<Entry>,
    /// The decision, once it is made.
    pub resolved: Option<Resolved>,
    pub pending: Pending,
}

impl PendingPass {
    /// Passes with the same decision are equal, whatever led to it.
    pub fn print(self) -> Print<Self> {
        let (rests_on, since) = match self.resolved {
            Some(resolved) => (resolved.rests_on, resolved.position),
            None => (hash(&self.base), 0),
        };
        let came = format!("{:?} {:?}", &self.log[since..], self.pending);
        Print::hashed(hash(&(rests_on, came)), self)
    }
}

/// A decision. What follows depends on it, and no longer on all the initial observations.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    pub rests_on: u64,
    /// The length of the log before the decision.
    pub position: usize,
}

/// The initial observations of a pass.
#[derive(Clone, Debug)]
pub struct Base {
    pub resource: Resource,
    pub contents: Contents<Remote>,
    pub caches: BTreeMap<Resource, Print<Stored>>,
    pub read: Option<Print<Read>>,
    /// True if the read began after the resource's last write.
    pub fresh: bool,
    /// The organization's keys, read after the last change of the resource's keys.
    pub keys: Option<Print<ReadKeys>>,
    pub settings: PassSettings,
    pub statuses: Statuses,
    /// True if promises depend on the last event that names a compute before its resource goes.
    pub records_events: bool,
    pub mutation: Option<Mutation>,
}

/// The effect that a pass waits for, and the tick since which it waits.
#[derive(Clone, Debug)]
pub struct Pending {
    pub effect: Effect,
    pub since: u8,
    /// The effect was carried out, and this answer is still to arrive.
    pub came: Option<Answer>,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Now(Timestamp),
    /// A change has ended.
    Tick,
    Answer(Answer),
}
