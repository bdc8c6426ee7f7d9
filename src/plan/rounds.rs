//! Runs passes in rounds, until they change nothing more.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Resource;

use super::environment::Planner;
use super::objects::{Id, StoredObject};
use crate::api::{Account, ClusterAccount, Known};
use crate::cluster::explained;
use crate::controller::account::{AnyAccount, CredentialRef};
use crate::controller::environment::{Kind, KindVisitor, Kinds, account_of};
use crate::controller::object::AccountName;
use crate::controller::pass::{Next, Pass, pass};
use crate::controller::registry::AllKinds;
use crate::decide::{Report, Wake};

/// More than any chain of resources that wait for each other.
const MOST_ROUNDS: usize = 500;
/// Maximum number of consecutive passes over one resource in a round.
const AT_ONCE: usize = 12;

/// The end of the passes over a resource.
#[derive(Clone, Debug)]
pub enum PassesEnd {
    /// The last report, and the time of the next pass.
    Rests(Option<Report>, Wake),
    /// The pass failed with this error.
    Failed(String),
    /// The passes do not end.
    Busy,
}

impl Planner {
    /// Runs passes over these resources, over those that they create, and over the accounts that
    /// they need.
    pub async fn run_until_stable(&self, selected: &BTreeSet<Id>) -> BTreeMap<Id, PassesEnd> {
        let mut ended = BTreeMap::new();
        for _ in 0..MOST_ROUNDS {
            let before = self.effects();
            for id in self.concerned(selected) {
                let how = self.passes(&id).await;
                ended.insert(id, how);
                self.handle_deletions();
            }
            if !self.read_wanted().await && self.effects() == before {
                break;
            }
        }
        ended
    }

    /// Number of effects so far.
    fn effects(&self) -> (u64, u64) {
        (self.trail.count(), self.cluster.objects().writes)
    }

    /// Runs passes over one resource, as long as one follows another at once.
    async fn passes(&self, id: &Id) -> PassesEnd {
        self.trail.begin(id);
        for _ in 0..AT_ONCE {
            let mut one = OnePass {
                planner: self,
                id,
                pass: None,
            };
            AllKinds::each(&mut one);
            let Some(pass) = one.pass.take() else {
                return PassesEnd::Rests(None, Wake::OnChange);
            };
            match pass.await {
                // The pass conflicted with its own write, which the next pass sees.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return PassesEnd::Failed(explained(&error)),
                Ok(Pass {
                    next: Next::Now | Next::OnOwnWrite,
                    ..
                }) => {}
                Ok(Pass {
                    next: Next::On(Wake::At(time)),
                    ..
                }) if time <= self.now => {}
                Ok(Pass {
                    next: Next::On(wake),
                    report,
                }) => return PassesEnd::Rests(report, wake),
            }
        }
        PassesEnd::Busy
    }

    fn handle_deletions(&self) {
        let gone = std::mem::take(&mut self.cluster.objects().gone);
        for (id, stored) in &gone {
            AllKinds::each(&mut DeletedObject {
                planner: self,
                id,
                stored,
            });
        }
    }

    /// The accounts that the planned resources need, and then these resources.
    fn concerned(&self, selected: &BTreeSet<Id>) -> Vec<Id> {
        let planned = self.planned(selected);
        let objects = self.cluster.objects();
        let mut needs = NeededAccounts {
            accounts: BTreeSet::new(),
            secrets: BTreeSet::new(),
            stored: None,
        };
        for id in &planned {
            needs.stored = objects
                .stored(id)
                .map(|stored| (id.clone(), stored.clone()));
            AllKinds::each(&mut needs);
        }
        let mut accounts = BTreeSet::new();
        for account in objects.all::<Known<Account>>() {
            if needs.has(account.as_ref()) {
                accounts.insert(Id::of(account.as_ref()));
            }
        }
        for account in objects.all::<Known<ClusterAccount>>() {
            if needs.has(account.as_ref()) {
                accounts.insert(Id::of(account.as_ref()));
            }
        }
        let others = planned.into_iter().filter(|id| !accounts.contains(id));
        let others: Vec<Id> = others.collect();
        accounts.into_iter().chain(others).collect()
    }

    /// The selected resources that still exist, and those that they own.
    pub fn planned(&self, selected: &BTreeSet<Id>) -> BTreeSet<Id> {
        let objects = self.cluster.objects();
        let uids: BTreeSet<String> = selected
            .iter()
            .filter_map(|id| {
                objects.value(id)?["metadata"]["uid"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        let mut planned = BTreeSet::new();
        for id in objects.ids() {
            let is_owned = objects
                .stored(id)
                .is_some_and(|stored| uids.iter().any(|uid| stored.is_owned_by(uid)));
            if is_owned || selected.contains(id) {
                planned.insert(id.clone());
            }
        }
        planned
    }
}

struct OnePass<'a> {
    planner: &'a Planner,
    id: &'a Id,
    pass: Option<BoxFuture<'a, Result<Pass, kube::Error>>>,
}

impl KindVisitor for OnePass<'_> {
    fn visit<K: Kind>(&mut self) {
        if *self.id.kind != *K::Object::kind(&()) {
            return;
        }
        let found = self
            .planner
            .cluster
            .objects()
            .stored(self.id)
            .and_then(StoredObject::typed::<K::Object>);
        let (Some(object), planner) = (found, self.planner) else {
            return;
        };
        self.pass = Some(async move { pass::<K, Planner>(planner, &object).await }.boxed());
    }
}

struct DeletedObject<'a> {
    planner: &'a Planner,
    id: &'a Id,
    stored: &'a StoredObject,
}

impl KindVisitor for DeletedObject<'_> {
    fn visit<K: Kind>(&mut self) {
        if *self.id.kind != *K::Object::kind(&()) {
            return;
        }
        if let Some(object) = self.stored.typed::<K::Object>() {
            K::on_deleted(self.planner, &object);
        }
    }
}

/// The accounts that resources refer to, and the Secrets that they write, because accounts may read
/// them.
struct NeededAccounts {
    accounts: BTreeSet<AccountName>,
    secrets: BTreeSet<(String, String)>,
    stored: Option<(Id, StoredObject)>,
}

impl NeededAccounts {
    fn has<A: AnyAccount>(&self, account: &A) -> bool {
        let CredentialRef {
            namespace, name, ..
        } = account.credential();
        self.accounts.contains(&account.account_name()) || self.secrets.contains(&(namespace, name))
    }
}

impl KindVisitor for NeededAccounts {
    fn visit<K: Kind>(&mut self) {
        let Some((id, stored)) = &self.stored else {
            return;
        };
        if *id.kind != *K::Object::kind(&()) {
            return;
        }
        let Some(object) = stored.typed::<K::Object>() else {
            return;
        };
        self.accounts.extend(account_of::<K>(&object));
        let namespace = id.namespace.clone().unwrap_or_default();
        self.secrets.extend(
            K::relations(&object)
                .written_secret
                .map(|name| (namespace, name.to_owned())),
        );
    }
}
