//! Runs the shipped passes one effect at a time. A running pass cannot be copied, but it is a
//! function of its initial observations and the answers so far. To continue a pass, it is run again
//! from its beginning with these answers, up to the next effect.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use dbplane::api::{Compute, Known, ObjectMeta, PlatformAccess, ProjectKey};
use dbplane::controller::environment::{
    AdmittedCall, Environment, Kind, Lists, Objects, PassSettings,
};
use dbplane::controller::index::Key;
use dbplane::controller::object::{AccountName, Managed};
use dbplane::controller::pass::{Pass, pass};
use dbplane::controller::registry::AllKinds;
use dbplane::controller::state::{AccountConnection, Contents, ProcessState};
use dbplane::domain::Fault;
use dbplane::platform::{
    ComputeInterest, ConnectError, KeyInterest, LatestKeys, LatestSnapshot, Platform, Snapshot,
    Tick,
};
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::bound::Statuses;
use super::edits::ELSEWHERE;
use super::in_memory::cluster::{Stored, full_name, kind};
use super::in_memory::{Carrier, Cluster, Port, Print, Request, Resource, Response, hash, refused};
use super::mutation::Mutation;
pub use super::pending_pass::{Answer, Base, Call, Effect, Entry, Pending, PendingPass, Resolved};
use super::remote::Remote;
use super::replay_log::{REPLAY_LOG, ReplayLog, depends_on, known_keys, with_log};
pub use super::replay_log::{decides_on, effect, mutation, resolves, resolves_to_report, resource};
use super::state::ReadKeys;

/// The progress of a pass.
pub struct Progress {
    pub contents: Contents<Remote>,
    pub log: Vec<Entry>,
    pub resolved: Option<Resolved>,
    /// A change of the platform has ended since the last run.
    pub wrote: bool,
    /// The known keys of the organization, if the pass has read or changed them.
    pub keys: Option<Option<Print<ReadKeys>>>,
    pub reached: Reached,
}

pub enum Reached {
    Effect(Effect),
    End(Result<Pass, kube::Error>),
}

/// Runs a pass of kind `K` from its beginning up to the first effect without an answer.
pub fn run<K: Kind>(
    base: &Print<Base>,
    log: &[Entry],
    now: Timestamp,
    cluster: Option<&Cluster>,
) -> Progress {
    let replayed = log.len();
    let env = prepare(base, log.to_vec(), now, cluster.cloned());
    let object = base.caches[&base.resource].typed::<K::Object>().unwrap();
    let mut running = pin!(pass::<K, Replay>(&env, &object));
    let polled = running
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    // The memory of the process while the pass waits: its step is in progress.
    let contents = env.state.contents();
    depends_on(&remembered(base, &contents));
    let log = REPLAY_LOG.with(|current| current.borrow_mut().take().unwrap());
    let reached = match polled {
        Poll::Ready(result) => Reached::End(result),
        Poll::Pending => Reached::Effect(log.pending.clone().unwrap()),
    };
    Progress {
        contents,
        wrote: log.wrote_at.is_some_and(|position| position >= replayed),
        keys: log.keys_changed.then_some(log.keys),
        log: log.entries,
        resolved: log.resolved,
        reached,
    }
}

/// The parts of a process's memory that a step can read: the resource and the accounts.
fn remembered(base: &Base, contents: &Contents<Remote>) -> String {
    let object = &base.caches[&base.resource];
    format!(
        "{object:?} {:?} {:?}",
        contents.resources.get(&object.uid().into()),
        contents.accounts
    )
}

/// Sets the log for the environment that replays it.
fn prepare(
    base: &Print<Base>,
    entries: Vec<Entry>,
    now: Timestamp,
    cluster: Option<Cluster>,
) -> Replay {
    let (resource, mutation) = (base.resource.clone(), base.mutation);
    let log = ReplayLog {
        resource,
        entries,
        position: 0,
        now,
        cluster,
        pending: None,
        wrote_at: None,
        keys: base.keys.clone(),
        keys_changed: false,
        observed: None,
        statuses: base.statuses,
        resolved: None,
        mutation,
    };
    REPLAY_LOG.with(|current| *current.borrow_mut() = Some(log));
    Replay {
        state: ProcessState::from(base.contents.clone()),
        base: base.clone(),
        port: Port(ToTape(base.clone())),
    }
}

/// Runs an action that only changes the memory of a process.
pub fn outside_of_passes(
    base: &Print<Base>,
    now: Timestamp,
    act: impl FnOnce(&Replay),
) -> Contents<Remote> {
    let env = prepare(base, Vec::new(), now, Some(Cluster::default()));
    act(&env);
    REPLAY_LOG.with(|current| current.borrow_mut().take());
    env.state.contents()
}

/// The environment of a replayed pass.
pub struct Replay {
    state: ProcessState<Remote>,
    base: Print<Base>,
    port: Port<ToTape>,
}

/// Answers requests from the log.
#[derive(Debug)]
pub struct ToTape(Print<Base>);

impl ToTape {
    /// True if an event is the last report of a compute, because its resource is about to go.
    fn records_events(&self, resource: &Resource, reason: &str) -> bool {
        self.0.records_events && reason == "StrayCompute" && self.0.caches[resource].is_deleting()
    }
}

impl Carrier for ToTape {
    fn full_name(namespace: Option<&str>, name: &str) -> String {
        full_name(namespace, name)
    }

    async fn carry(&self, mut request: Request) -> Result<Response, kube::Error> {
        match &mut request {
            Request::Event {
                resource, reason, ..
            } if !self.records_events(resource, reason) => return Ok(Response::Done),
            Request::ReadObject(resource) if self.0.mutation == Some(Mutation::WriteUnchecked) => {
                return Ok(Response::Object(self.0.caches[&*resource].clone()));
            }
            Request::ApplyStatus {
                patch, same_record, ..
            } => match self.0.statuses {
                Statuses::Record if *same_record => return Ok(Response::Done),
                Statuses::Record => *patch = record_alone(patch),
                Statuses::Whole => {}
            },
            _ => {}
        }
        match effect(Effect::Cluster(request)).await {
            Answer::Cluster(Ok(response)) => Ok(response),
            Answer::Cluster(Err(code)) => Err(refused(code, "the model says no")),
            other => unreachable!("{other:?}"),
        }
    }
}

fn record_alone(patch: &str) -> String {
    let mut patch: Value = serde_json::from_str(patch).unwrap();
    patch["status"] = json!({"record": patch["status"]["record"]});
    patch.to_string()
}

impl Replay {
    /// The selected objects of a kind.
    fn stored<K: Managed>(&self, wanted: impl Fn(&Stored) -> bool) -> Vec<Arc<K>> {
        let kind = kind::<K>();
        let objects = self
            .base
            .caches
            .iter()
            .filter(|((this, _), stored)| *this == kind && wanted(stored));
        let objects: Vec<_> = objects.map(|(_, stored)| stored).collect();
        depends_on(&objects);
        objects
            .into_iter()
            .filter_map(|stored| stored.typed())
            .collect()
    }
}

impl Environment for Replay {
    type Client = Remote;

    type Cluster = Port<ToTape>;

    type Kinds = AllKinds;

    fn now(&self) -> Timestamp {
        with_log(|log| {
            if let Some(Entry::Now(time)) = log.entries.get(log.position) {
                let time = *time;
                log.position += 1;
                return time;
            }
            let now = log.now;
            log.push(Entry::Now(now));
            now
        })
    }

    /// A pass on a stale version fails with a conflict before the number is used.
    fn random(&self) -> u32 {
        u32::try_from(self.base.caches[&self.base.resource].version()).unwrap()
    }

    fn tick(&self) -> Tick {
        with_log(|log| {
            if !matches!(log.entries.get(log.position), Some(Entry::Tick)) {
                log.entries.push(Entry::Tick);
                log.wrote_at = Some(log.position);
            }
            log.position += 1;
            (log.keys, log.keys_changed) = (None, true);
        });
        WROTE
    }

    fn settings(&self) -> &PassSettings {
        &self.base.settings
    }

    fn state(&self) -> &ProcessState<Remote> {
        &self.state
    }

    fn cluster(&self) -> &Port<ToTape> {
        &self.port
    }

    fn connect(
        &self,
        _: &AccountName,
        _: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Remote, ConnectError> {
        Ok(Remote {
            key: key.expose_secret().parse().unwrap(),
        })
    }

    async fn admit(&self, client: &Remote, _: AdmittedCall) -> Result<Option<Remote>, Fault> {
        Ok(Some(client.clone()))
    }
}

impl Objects for Replay {
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let name = full_name(reference.namespace.as_deref(), &reference.name);
        let object = self.base.caches.get(&(kind::<K>(), name));
        depends_on(&object);
        object?.typed()
    }

    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>> {
        self.stored::<K::Object>(|_| true)
    }

    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>> {
        let key = hash(key);
        self.stored::<K::Object>(|stored| stored.keys().contains(&key))
    }

    fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        Vec::new()
    }

    fn namespace_labels(&self, _: &str) -> Option<BTreeMap<String, String>> {
        Some(BTreeMap::new())
    }

    /// Not needed: every pass is tried in every state.
    fn wake<K: Managed>(&self, _: ObjectRef<K>) {}
}

impl Lists<Remote> for Replay {
    fn latest_snapshot(
        &self,
        _: &Known<Compute>,
        connection: &AccountConnection<Remote>,
        _: ComputeInterest,
    ) -> LatestSnapshot {
        depends_on(&(
            &self.base.read,
            self.base.fresh,
            with_log(|log| log.has_ticked()),
        ));
        let is_standing = connection.number > 100;
        let read = self
            .base
            .read
            .as_ref()
            .filter(|read| read.connection == connection.number || is_standing);
        let Some(read) = read else {
            return LatestSnapshot::default();
        };
        let elsewhere = connection.platform.key == ELSEWHERE;
        let computes = if elsewhere {
            &Ok(read.elsewhere.clone())
        } else {
            &read.computes
        };
        let trusting = self.base.mutation == Some(Mutation::TrustOldReadings);
        match computes {
            Ok(computes) => {
                // A tick of this pass is later than any read before its beginning.
                let fresh = self.base.fresh && with_log(|log| !log.has_ticked());
                let began = if fresh || trusting { AFTER } else { BEFORE };
                let at = if trusting {
                    with_log(|log| log.now)
                } else {
                    read.at
                };
                let snapshot = Snapshot::new(began, at, at, computes.clone());
                LatestSnapshot {
                    snapshot: Some(Arc::new(snapshot)),
                    fault: None,
                    attempted: Some(began),
                }
            }
            Err(fault) => LatestSnapshot {
                snapshot: None,
                fault: Some(fault.clone()),
                attempted: Some(AFTER),
            },
        }
    }

    fn stop_observing(&self, _: &Known<Compute>) {}

    fn latest_keys(
        &self,
        _: &Known<ProjectKey>,
        connection: &AccountConnection<Remote>,
        interest: KeyInterest,
    ) -> LatestKeys {
        let mut known = known_keys(connection.number);
        // The rule is broken before the list is narrowed to the resource. Later, foreign keys would
        // be invisible.
        if self.base.mutation == Some(Mutation::RevokeByIdAlone)
            && let (Some(keys), Some(name)) = (&mut known.keys, interest.filter.names.last())
        {
            keys.iter_mut().for_each(|key| key.name.clone_from(name));
        }
        known.latest(AFTER)
    }

    async fn read_keys(
        &self,
        _: &Known<ProjectKey>,
        connection: &AccountConnection<Remote>,
        _: KeyInterest,
    ) -> LatestKeys {
        let at = self.now();
        let answer = connection.platform.list_keys(&"org".into()).await;
        let before = known_keys(connection.number);
        let read = match answer {
            Ok(keys) => ReadKeys {
                times: (at, self.now()),
                keys: Some(keys.into_parts().0),
                fault: None,
                ..before
            },
            Err(fault) => ReadKeys {
                fault: Some(fault),
                ..before
            },
        };
        let latest = read.latest(AFTER);
        with_log(|log| (log.keys, log.keys_changed) = (Some(Print::of(read)), true));
        latest
    }

    fn stop_listing(&self, _: &Known<ProjectKey>) {}
}

/// The only ticks of this clock: before the last write, at it, and after it.
const BEFORE: Tick = Tick::at(0);
const WROTE: Tick = Tick::at(1);
const AFTER: Tick = Tick::at(2);
