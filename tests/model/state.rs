//! A state of the model: platform, cluster, processes and requests in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dbplane::api::AccountKind;
use dbplane::controller::object::AccountName;
use dbplane::controller::state::{AccountConnection, AccountEntry, Contents, ResourceState};
use dbplane::decide::account::Availability;
use dbplane::decide::brake::DeletionWindow;
use dbplane::decide::write_contention::WriteContention;
use dbplane::domain::{self, NameSupport};
use dbplane::platform::{KeyList, LatestKeys, Tick};
use jiff::Timestamp;
use serde_json::json;

use super::bound::{Bound, OTHER, Subject, TICK, account_spec, compute_spec, key_spec};
use super::edits::{STANDING_ACCOUNTS, StandingAccount};
use super::in_memory::cluster::{NAMESPACE, Stored};
use super::in_memory::{Cluster, Print, Resource};
use super::past::Past;
use super::remote::Remote;
use super::replay::{Call, Effect, PendingPass};
use super::tenant::TENANTS;

/// A compute on the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compute {
    pub name: Option<String>,
    /// `None` for others' computes.
    pub made_for: Option<Resource>,
    /// The value of the only declared setting.
    pub setting: bool,
    /// Made later than its create could have been carried out.
    pub late: bool,
    /// Its create was carried out twice.
    pub twin: bool,
    /// It is on the other platform.
    pub elsewhere: bool,
}

/// A key on the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: String,
    pub foreign: bool,
    /// It belongs to the other organization.
    pub elsewhere: bool,
}

/// A request whose answer was lost, and which may still be carried out.
#[derive(Clone, Debug, Hash)]
pub struct Floating {
    pub effect: Effect,
    /// The last tick at which it can be carried out, and the last one in time. `in_time` is `None`
    /// if its result is not looked for.
    pub until: u8,
    pub in_time: Option<u8>,
}

impl Floating {
    pub fn creates_for(&self, resource: &Resource) -> bool {
        matches!(&self.effect, Effect::Platform(_, Call::CreateCompute(of, _)) if of == resource)
    }
}

#[derive(Clone, Debug, Default, Hash)]
pub struct Platform {
    pub computes: BTreeMap<u8, Compute>,
    pub keys: BTreeMap<u8, Key>,
    /// Number of computes and keys created so far.
    pub made: u8,
    /// The account's API key that it accepts: the first or the second one.
    pub accepted: u8,
    pub floating: Vec<Floating>,
    /// The state that a stale list shows.
    pub before: Option<Box<Platform>>,
}

/// The computes as last read by one process.
#[derive(Clone, Debug)]
pub struct Read {
    /// The number of the connection.
    pub connection: u64,
    pub at: Timestamp,
    pub computes: Result<Vec<domain::Compute>, domain::Fault>,
    /// The computes of the other platform.
    pub elsewhere: Vec<domain::Compute>,
}

/// The organization's keys as last read by one process.
#[derive(Clone, Debug, Default)]
pub struct ReadKeys {
    /// The number of the connection.
    pub connection: u64,
    /// Start and end of the last successful list.
    pub times: (Timestamp, Timestamp),
    pub keys: Option<Vec<domain::KeyEntry>>,
    /// Why the last attempt failed.
    pub fault: Option<domain::Fault>,
}

impl ReadKeys {
    /// The list counts as begun at `began`, for as long as it has not missed a change.
    pub fn latest(&self, began: Tick) -> LatestKeys {
        let list = self
            .keys
            .clone()
            .map(|keys| Arc::new(KeyList::new(began, self.times.0, self.times.1, keys)));
        let attempted = (list.is_some() || self.fault.is_some()).then_some(began);
        LatestKeys {
            snapshot: list,
            fault: self.fault.clone(),
            attempted,
        }
    }
}

#[derive(Clone, Debug, Hash)]
pub struct Process {
    /// Number of the process. Its clock is ahead by this many nanoseconds, so that no two processes
    /// record the same time.
    pub number: u8,
    /// It has lost the API server: its requests fail, and its caches stay as they are.
    pub cut_off: bool,
    pub caches: BTreeMap<Resource, Print<Stored>>,
    /// Its memory, by the UID of the resource.
    pub resources: BTreeMap<String, Print<ResourceState>>,
    pub accounts: Print<BTreeMap<AccountName, AccountEntry<Remote>>>,
    pub deletions: Print<DeletionWindow>,
    pub connections: u64,
    pub read: Option<Print<Read>>,
    pub keys: Option<Print<ReadKeys>>,
    /// Resources with a write since the last read began.
    pub wrote_since: BTreeSet<usize>,
    pub pending_passes: BTreeMap<usize, Print<PendingPass>>,
}

/// How often each event may still happen.
#[derive(Clone, Debug, Default, Hash)]
pub struct Left {
    pub lost: u8,
    pub repeated: u8,
    pub refused: u8,
    pub slow: u8,
    pub crashes: u8,
    pub foreign: u8,
    pub lagging: u8,
    pub partial: u8,
    pub vanishing: u8,
    pub deletions: u8,
    pub confirmations: u8,
    pub exchanges: u8,
    pub account_deletions: u8,
    pub late_accounts: u8,
    pub forgeries: u8,
    pub admissions: u8,
    pub replacements: u8,
    pub older: u8,
    pub copies: u8,
    pub named: u8,
    pub policies: u8,
    pub moves: u8,
    pub meddled: u8,
    pub alike: u8,
    pub cut_offs: u8,
}

impl Left {
    fn of(bound: &Bound) -> Self {
        Self {
            lost: bound.lost,
            repeated: bound.repeated,
            refused: bound.refused,
            slow: bound.slow,
            crashes: bound.crashes,
            foreign: bound.foreign,
            lagging: bound.lagging,
            partial: bound.partial,
            vanishing: bound.vanishing,
            deletions: bound.deletions,
            confirmations: if bound.is_braked() {
                bound.deletions
            } else {
                0
            },
            exchanges: bound.exchanges,
            account_deletions: u8::from(bound.account_deletion),
            late_accounts: u8::from(bound.primaries),
            forgeries: bound.forgeries,
            admissions: bound.admissions,
            replacements: bound.replacements,
            older: bound.older,
            copies: bound.copies,
            named: bound.named,
            policies: bound.policies,
            moves: bound.moves,
            meddled: bound.meddled,
            alike: bound.alike,
            cut_offs: bound.cut_offs,
        }
    }
}

#[derive(Clone, Debug, Hash)]
pub struct State {
    pub tick: u8,
    pub platform: Platform,
    pub cluster: Arc<Cluster>,
    pub processes: Vec<Arc<Process>>,
    /// Number of processes started so far.
    pub begun: u8,
    pub left: Left,
    /// Unconfirmed deletions on the platform within the last minute: process, compute, tick.
    pub deletions: Vec<(u8, u8, u8)>,
    /// An exported record of a resource.
    pub exported: Option<(usize, String)>,
    pub past: Past,
    /// A forbidden action that was carried out.
    pub violation: Option<&'static str>,
}

impl State {
    pub fn first(bound: &Bound) -> Self {
        let mut platform = Platform {
            accepted: 1,
            ..Platform::default()
        };
        if bound.foreign > 0 || bound.named > 0 {
            // An existing compute with the declared setting.
            platform.made = 1;
            platform.computes.insert(
                1,
                Compute {
                    setting: true,
                    ..Compute::default()
                },
            );
            platform.keys.insert(
                1,
                Key {
                    name: "ci".into(),
                    foreign: true,
                    elsewhere: false,
                },
            );
        }
        let cluster = cluster(bound);
        Self {
            tick: 0,
            platform,
            processes: vec![Arc::new(process(bound, &cluster, 0))],
            cluster: Arc::new(cluster),
            begun: 1,
            left: Left::of(bound),
            exported: None,
            past: Past::default(),
            deletions: Vec::new(),
            violation: None,
        }
    }

    /// Process `p`, cloned if other states share it.
    pub fn process_mut(&mut self, p: usize) -> &mut Process {
        Arc::make_mut(&mut self.processes[p])
    }

    /// The cluster, cloned if other states share it.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        Arc::make_mut(&mut self.cluster)
    }

    /// The clock of process `p`.
    pub fn now(&self, p: usize) -> Timestamp {
        at(self.tick) + Duration::from_nanos(self.processes[p].number.into())
    }
}

pub fn at(tick: u8) -> Timestamp {
    Timestamp::UNIX_EPOCH + TICK * u32::from(tick)
}

impl Process {
    /// Its memory in the form that passes use.
    pub fn contents(&self) -> Contents<Remote> {
        Contents {
            turns: BTreeMap::new(),
            resources: self
                .resources
                .iter()
                .map(|(uid, state)| (uid.as_str().into(), state.clone_inner()))
                .collect(),
            accounts: self.accounts.clone_inner(),
            former: BTreeMap::new(),
            deletions: self.deletions.clone_inner(),
            // Nothing here is overwritten five times a minute.
            repairs: WriteContention::default(),
            connections: self.connections,
        }
    }

    /// Stores the memory of one resource, and with `shared` the parts common to all.
    pub fn remember(&mut self, mut contents: Contents<Remote>, uid: &str, shared: bool) {
        match contents.resources.remove(&uid.into()) {
            Some(resource) => drop(self.resources.insert(uid.to_owned(), Print::of(resource))),
            None => drop(self.resources.remove(uid)),
        }
        if shared {
            self.accounts = Print::of(contents.accounts);
            self.deletions = Print::of(contents.deletions);
            self.connections = contents.connections;
        }
    }

    /// The API key and the number of its connection to the account.
    pub fn connection(&self) -> Option<(u8, u64)> {
        let connections = self
            .accounts
            .values()
            .filter_map(|entry| entry.connection.as_ref());
        let connection = connections.min_by_key(|connection| connection.number)?;
        Some((connection.platform.key, connection.number))
    }
}

/// A process that has just become leader, with all resources in its caches.
pub fn process(bound: &Bound, cluster: &Cluster, number: u8) -> Process {
    let accounts = standing_accounts(bound)
        .iter()
        .map(|account| standing(account, NAMESPACE, account.connection));
    let other = bound
        .has_other_namespace()
        .then(|| standing(&STANDING_ACCOUNTS[0], OTHER, 103));
    let accounts: BTreeMap<_, _> = accounts.chain(other).collect();
    Process {
        number,
        cut_off: false,
        caches: (*cluster.objects).clone(),
        resources: BTreeMap::new(),
        accounts: Print::of(accounts),
        deletions: Print::of(DeletionWindow::default()),
        connections: 1,
        read: None,
        keys: None,
        wrote_since: BTreeSet::new(),
        pending_passes: BTreeMap::new(),
    }
}

/// An account that is not a subject is usable from the beginning and forever. So are accounts that
/// resources move to.
fn standing_accounts(bound: &Bound) -> &'static [StandingAccount] {
    match (bound.account.is_some(), bound.moves > 0) {
        (true, _) => &[],
        (false, false) => &STANDING_ACCOUNTS[..1],
        (false, true) => &STANDING_ACCOUNTS,
    }
}

fn standing(
    account: &StandingAccount,
    namespace: &str,
    number: u64,
) -> (AccountName, AccountEntry<Remote>) {
    let name = AccountName {
        kind: AccountKind::Account,
        namespace: Some(namespace.into()),
        name: account.name.into(),
    };
    let connection = AccountConnection {
        number,
        platform: Remote { key: account.key },
        access: account.access(),
        poll_interval: TICK,
        credential: "1".into(),
        names: NameSupport::Unseen,
        check: None,
        seen: Vec::new(),
    };
    let entry = AccountEntry {
        connection: Some(Arc::new(connection)),
        availability: Availability::Usable,
        protected: true,
        in_use: true,
        many_keys: false,
        gone: BTreeSet::new(),
        generation: 1,
    };
    (name, entry)
}

fn cluster(bound: &Bound) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.create(
        &bound.account_resource(),
        &account_spec(bound),
        &json!({}),
        at(0),
    );
    for other in standing_accounts(bound).iter().skip(1) {
        cluster.create(
            &("Account", other.name.into()),
            &json!(other.spec()),
            &json!({}),
            at(0),
        );
    }
    cluster.put_secret("platform-api-key", super::effects::credential(1));
    if bound.forgeries > 0 {
        let others = ("Account", format!("{OTHER}/prod"));
        cluster.create(&others, &STANDING_ACCOUNTS[0].spec(), &json!({}), at(0));
    }
    // The tenant's resource is created with its first record.
    for i in bound
        .subjects()
        .filter(|i| bound.forgeries == 0 || *i != TENANTS)
    {
        let spec = match bound.subject {
            Subject::Computes { .. } => compute_spec(bound),
            Subject::Key { .. } => key_spec(bound),
        };
        cluster.create(&bound.resource(i), &spec, &json!({}), at(0));
    }
    cluster
}
