//! Everything that there is at one moment: platform, cluster, processes, requests under way.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use dbplane::controller::{Trace, UnsavedKey};
use dbplane::platform;
use jiff::Timestamp;
use kube::core::ObjectMeta;

use super::bound::{Bound, TICK};
use super::tape::{Effect, Flight};

/// A shared value that is compared by what it prints.
pub struct Print<T>(Arc<(u64, T)>);

impl<T> Clone for Print<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Debug> Print<T> {
    pub fn of(value: T) -> Self {
        Self(Arc::new((hash(&format!("{value:?}")), value)))
    }
}

impl<T: Clone> Print<T> {
    pub fn clone_inner(&self) -> T {
        self.0.1.clone()
    }
}

impl<T> Deref for Print<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.1
    }
}

impl<T> Hash for Print<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.0.hash(hasher);
    }
}

impl<T> Debug for Print<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}", self.0.0)
    }
}

pub fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A compute of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compute {
    pub name: Option<String>,
    pub foreign: bool,
    /// The value of the one setting that is declared.
    pub setting: bool,
}

/// A key of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: String,
    pub foreign: bool,
}

/// A request whose answer was lost, and which may still be carried out.
#[derive(Clone, Debug, Hash)]
pub struct Floating {
    pub effect: Effect,
    /// The last tick at which it may.
    pub until: u8,
}

#[derive(Clone, Debug, Default, Hash)]
pub struct Platform {
    pub computes: BTreeMap<u8, Compute>,
    pub keys: BTreeMap<u8, Key>,
    /// How many were ever created.
    pub made: u8,
    pub floating: Vec<Floating>,
    /// What a list shows that lags behind.
    pub before: Option<Box<Platform>>,
}

/// The Secret of the key.
#[derive(Clone, Debug, Default, Hash)]
pub struct Secret {
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub data: BTreeMap<String, String>,
}

/// The computes as one process read them last.
#[derive(Clone, Debug)]
pub struct Reading {
    pub at: Timestamp,
    pub computes: Vec<platform::Compute>,
    pub failed: bool,
}

/// What one process knows of one resource.
#[derive(Clone, Debug, Hash)]
pub struct Record {
    pub cache: Option<Print<ObjectMeta>>,
    pub trace: Print<Trace>,
    pub unsaved: Option<Print<UnsavedKey>>,
    pub flight: Option<Print<Flight>>,
    /// Whether the reading began after our last write.
    pub fresh: bool,
}

impl Record {
    fn new(cache: Option<Print<ObjectMeta>>) -> Self {
        Self { cache, trace: Print::of(Trace::default()), unsaved: None, flight: None, fresh: true }
    }
}

#[derive(Clone, Debug, Hash)]
pub struct Process {
    /// Which one it is; its clock is ahead by so many nanoseconds, so that no two record the same moment.
    pub number: u8,
    pub records: Vec<Record>,
    pub reading: Option<Print<Reading>>,
    /// Who has begun a create that is not resolved.
    pub creating: Vec<usize>,
}

/// What a pass or an answer leaves behind: what is known of the resource, and who has begun a create.
pub type After = (Record, Vec<usize>);

/// How often each thing may still happen.
#[derive(Clone, Debug, Default, Hash)]
pub struct Left {
    pub lost: u8,
    pub refused: u8,
    pub slow: u8,
    pub crashes: u8,
    pub foreign: u8,
    pub lagging: u8,
    pub deletions: u8,
}

#[derive(Clone, Debug, Hash)]
pub struct State {
    pub tick: u8,
    pub platform: Platform,
    pub objects: Vec<Option<Print<ObjectMeta>>>,
    pub secret: Option<Print<Secret>>,
    pub processes: Vec<Process>,
    /// How many processes there ever were.
    pub begun: u8,
    pub left: Left,
    /// What nobody may do, done.
    pub violation: Option<&'static str>,
}

impl State {
    pub fn first(bound: &Bound) -> Self {
        let mut platform = Platform::default();
        if bound.foreign > 0 {
            // One that was there before, and that looks like what is wanted.
            platform.made = 1;
            platform.computes.insert(1, Compute { name: None, foreign: true, setting: true });
            platform.keys.insert(1, Key { name: "ci".into(), foreign: true });
        }
        let objects: Vec<_> = (0..bound.count()).map(|index| Some(Print::of(meta(index)))).collect();
        Self {
            tick: 0,
            platform,
            secret: None,
            processes: vec![process(&objects, 0)],
            objects,
            begun: 1,
            left: Left {
                lost: bound.lost,
                refused: bound.refused,
                slow: bound.slow,
                crashes: bound.crashes,
                foreign: bound.foreign,
                lagging: bound.lagging,
                deletions: bound.deletions(),
            },
            violation: None,
        }
    }

    /// What process `p` knows of resource `i`, taken out of the state.
    pub fn take(&mut self, p: usize, i: usize) -> After {
        let mut process = self.processes.swap_remove(p);
        (process.records.swap_remove(i), process.creating)
    }

    pub fn put(&mut self, p: usize, i: usize, (record, creating): After) {
        let process = &mut self.processes[p];
        process.records[i] = record;
        process.creating = creating;
    }

    /// What the clock of process `p` says.
    pub fn now(&self, p: usize) -> Timestamp {
        at(self.tick) + Duration::from_nanos(self.processes[p].number.into())
    }
}

pub fn at(tick: u8) -> Timestamp {
    Timestamp::UNIX_EPOCH + TICK * u32::from(tick)
}

/// A process that has just begun to lead: it has listed all resources.
pub fn process(objects: &[Option<Print<ObjectMeta>>], number: u8) -> Process {
    let records = objects.iter().cloned().map(Record::new).collect();
    Process { number, records, reading: None, creating: Vec::new() }
}

fn meta(index: usize) -> ObjectMeta {
    ObjectMeta {
        namespace: Some("shop".into()),
        name: Some(format!("r{index}")),
        uid: Some(format!("{index:08}-uid")),
        resource_version: Some("1".into()),
        generation: Some(1),
        creation_timestamp: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0))),
        ..ObjectMeta::default()
    }
}

pub fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().unwrap_or("0").parse().unwrap()
}
