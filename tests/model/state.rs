//! Everything that there is at one moment: platform, cluster, processes, requests under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dbplane::api::AccountKind;
use dbplane::controller::object::AccountName;
use dbplane::controller::state::{AccountEntry, Connection, Contents, ResourceState};
use dbplane::decide::account::Availability;
use dbplane::decide::brake::Window;
use dbplane::decide::repairs::Repairs;
use dbplane::domain::{self, NameSupport};
use dbplane::platform::{KeyList, LatestKeys, Tick};
use jiff::Timestamp;
use serde_json::json;

use super::bound::{Bound, OTHER, Subject, TICK, account_spec, compute_spec, key_spec};
use super::edits::{STANDING_ACCOUNTS, StandingAccount};
use super::in_memory::cluster::{NAMESPACE, Stored};
use super::in_memory::{Cluster, Print, Resource};
use super::noted::Noted;
use super::remote::Remote;
use super::replay::{Call, Effect, Flight};
use super::tenant::TENANTS;

/// A compute of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compute {
    pub name: Option<String>,
    /// `None` for somebody else's.
    pub made_for: Option<Resource>,
    /// The value of the one setting that is declared.
    pub setting: bool,
    /// Made after the time in which a create can be carried out.
    pub late: bool,
    /// Its create was carried out once more.
    pub twin: bool,
    /// It is on the other platform.
    pub elsewhere: bool,
}

/// A key of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: String,
    pub foreign: bool,
    /// It is of the other organization.
    pub elsewhere: bool,
}

/// A request whose answer was lost, and which may still be carried out.
#[derive(Clone, Debug, Hash)]
pub struct Floating {
    pub effect: Effect,
    /// The last tick at which it may, and at which it is not late; none where nobody looks for what it makes.
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
    /// How many were ever created.
    pub made: u8,
    /// Which of the account's API keys it accepts: the first, the second.
    pub accepted: u8,
    pub floating: Vec<Floating>,
    /// What a list shows that lags behind.
    pub before: Option<Box<Platform>>,
}

/// The computes as one process read them last.
#[derive(Clone, Debug)]
pub struct Read {
    /// The number of the connection that they were read through.
    pub connection: u64,
    pub at: Timestamp,
    pub computes: Result<Vec<domain::Compute>, domain::Fault>,
    /// Those of the other platform.
    pub elsewhere: Vec<domain::Compute>,
}

/// The organization's keys as one process read them last.
#[derive(Clone, Debug, Default)]
pub struct ReadKeys {
    /// The number of the connection that they were read through.
    pub connection: u64,
    /// When the last list that was answered was begun, and when it had ended.
    pub times: (Timestamp, Timestamp),
    pub keys: Option<Vec<domain::KeyEntry>>,
    /// Why the last attempt failed.
    pub fault: Option<domain::Fault>,
}

impl ReadKeys {
    /// It counts for as long as nothing changes that it should show, as if it had begun then.
    pub fn latest(&self, began: Tick) -> LatestKeys {
        let list = self.keys.clone().map(|keys| Arc::new(KeyList::new(began, self.times, keys)));
        let attempted = (list.is_some() || self.fault.is_some()).then_some(began);
        LatestKeys { snapshot: list, fault: self.fault.clone(), attempted }
    }
}

#[derive(Clone, Debug, Hash)]
pub struct Process {
    /// Which one it is; its clock is ahead by so many nanoseconds, so that no two record the same moment.
    pub number: u8,
    /// It cannot reach the API server, and does not hear of it.
    pub cut_off: bool,
    pub caches: BTreeMap<Resource, Print<Stored>>,
    /// What it remembers, by the UID of the resource.
    pub resources: BTreeMap<String, Print<ResourceState>>,
    pub accounts: Print<BTreeMap<AccountName, AccountEntry<Remote>>>,
    pub deletions: Print<Window>,
    pub connections: u64,
    pub read: Option<Print<Read>>,
    pub keys: Option<Print<ReadKeys>>,
    /// The resources that have written since the last read began.
    pub wrote_since: BTreeSet<usize>,
    pub flights: BTreeMap<usize, Print<Flight>>,
}

/// How often each thing may still happen.
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

#[derive(Clone, Debug, Hash)]
pub struct State {
    pub tick: u8,
    pub platform: Platform,
    pub cluster: Arc<Cluster>,
    pub processes: Vec<Arc<Process>>,
    /// How many processes there ever were.
    pub begun: u8,
    pub left: Left,
    /// Who deleted what on the platform within the last minute, unconfirmed: process, compute, tick.
    pub deletions: Vec<(u8, u8, u8)>,
    /// The record of a resource, as somebody has exported it.
    pub exported: Option<(usize, String)>,
    pub noted: Noted,
    /// What nobody may do, done.
    pub violation: Option<&'static str>,
}

impl State {
    pub fn first(bound: &Bound) -> Self {
        let mut platform = Platform { accepted: 1, ..Platform::default() };
        if bound.foreign > 0 || bound.named > 0 {
            // One that was there before, and that looks like what is wanted.
            platform.made = 1;
            platform.computes.insert(1, Compute { setting: true, ..Compute::default() });
            platform.keys.insert(1, Key { name: "ci".into(), foreign: true, elsewhere: false });
        }
        let cluster = cluster(bound);
        Self {
            tick: 0,
            platform,
            processes: vec![Arc::new(process(bound, &cluster, 0))],
            cluster: Arc::new(cluster),
            begun: 1,
            left: Left {
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
                confirmations: if bound.is_braked() { bound.deletions } else { 0 },
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
            },
            exported: None,
            noted: Noted::default(),
            deletions: Vec::new(),
            violation: None,
        }
    }

    /// Process `p`, to be changed in this state alone.
    pub fn process_mut(&mut self, p: usize) -> &mut Process {
        Arc::make_mut(&mut self.processes[p])
    }

    /// The cluster, to be changed in this state alone.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        Arc::make_mut(&mut self.cluster)
    }

    /// What the clock of process `p` says.
    pub fn now(&self, p: usize) -> Timestamp {
        at(self.tick) + Duration::from_nanos(self.processes[p].number.into())
    }
}

pub fn at(tick: u8) -> Timestamp {
    Timestamp::UNIX_EPOCH + TICK * u32::from(tick)
}

impl Process {
    /// What it remembers, as its passes have it.
    pub fn contents(&self) -> Contents<Remote> {
        Contents {
            turns: BTreeMap::new(),
            resources: self.resources.iter().map(|(uid, state)| (uid.clone(), state.clone_inner())).collect(),
            accounts: self.accounts.clone_inner(),
            former: BTreeMap::new(),
            deletions: self.deletions.clone_inner(),
            // Nobody writes over the same thing five times a minute here.
            repairs: Repairs::default(),
            connections: self.connections,
        }
    }

    /// Takes over what is remembered of one resource, and with `shared` what all have in common.
    pub fn remember(&mut self, mut contents: Contents<Remote>, uid: &str, shared: bool) {
        match contents.resources.remove(uid) {
            Some(resource) => drop(self.resources.insert(uid.to_owned(), Print::of(resource))),
            None => drop(self.resources.remove(uid)),
        }
        if shared {
            self.accounts = Print::of(contents.accounts);
            self.deletions = Print::of(contents.deletions);
            self.connections = contents.connections;
        }
    }

    /// The API key that it has for the account, and the number of the connection.
    pub fn connection(&self) -> Option<(u8, u64)> {
        let connections = self.accounts.values().filter_map(|entry| entry.connection.as_ref());
        let connection = connections.min_by_key(|connection| connection.number)?;
        Some((connection.platform.key, connection.number))
    }
}

/// A process that has just begun to lead: it has listed all resources.
pub fn process(bound: &Bound, cluster: &Cluster, number: u8) -> Process {
    let accounts = standing_accounts(bound).iter().map(|account| standing(account, NAMESPACE, account.connection));
    let other = bound.has_other_namespace().then(|| standing(&STANDING_ACCOUNTS[0], OTHER, 103));
    let accounts: BTreeMap<_, _> = accounts.chain(other).collect();
    Process {
        number,
        cut_off: false,
        caches: (*cluster.objects).clone(),
        resources: BTreeMap::new(),
        accounts: Print::of(accounts),
        deletions: Print::of(Window::default()),
        connections: 1,
        read: None,
        keys: None,
        wrote_since: BTreeSet::new(),
        flights: BTreeMap::new(),
    }
}

/// Where the account is none of the subjects, it can be used from the beginning and always. So can those that resources move to.
fn standing_accounts(bound: &Bound) -> &'static [StandingAccount] {
    match (bound.account.is_some(), bound.moves > 0) {
        (true, _) => &[],
        (false, false) => &STANDING_ACCOUNTS[..1],
        (false, true) => &STANDING_ACCOUNTS,
    }
}

fn standing(account: &StandingAccount, namespace: &str, number: u64) -> (AccountName, AccountEntry<Remote>) {
    let name = AccountName { kind: AccountKind::Account, namespace: Some(namespace.into()), name: account.name.into() };
    let connection = Connection {
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
        many_keys: false,
        gone: BTreeSet::new(),
        generation: 1,
    };
    (name, entry)
}

fn cluster(bound: &Bound) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.create(&bound.account_resource(), &account_spec(bound), &json!({}), at(0));
    for other in standing_accounts(bound).iter().skip(1) {
        cluster.create(&("Account", other.name.into()), &json!(other.spec()), &json!({}), at(0));
    }
    cluster.put_secret("platform-api-key", super::effects::credential(1));
    if bound.forgeries > 0 {
        let others = ("Account", format!("{OTHER}/prod"));
        cluster.create(&others, &STANDING_ACCOUNTS[0].spec(), &json!({}), at(0));
    }
    // That of a tenant comes with its first record.
    for i in bound.subjects().filter(|i| bound.forgeries == 0 || *i != TENANTS) {
        let spec = match bound.subject {
            Subject::Computes { .. } => compute_spec(bound),
            Subject::Key { .. } => key_spec(bound),
        };
        cluster.create(&bound.resource(i), &spec, &json!({}), at(0));
    }
    cluster
}
