//! Runs passes in rounds, until they change nothing more.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::{Resource, ResourceExt};

use super::environment::Planner;
use super::id::Id;
use crate::api::{Account, ClusterAccount, Known};
use crate::cluster::explained;
use crate::controller::account::{AnyAccount, CredentialRef};
use crate::controller::environment::{Kind, KindVisitor, Kinds, account_of};
use crate::controller::object::AccountName;
use crate::controller::pass::{Next, Pass, pass};
use crate::controller::registry::AllKinds;
use crate::decide::{Report, Wake};
use crate::in_memory::{ObjectsByName, Print, Stored, hash};

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
            let objects = self.cluster.0.stored().objects.clone();
            for id in self.concerned(selected) {
                let how = self.passes(&id).await;
                ended.insert(id, how);
            }
            self.handle_deletions(&objects);
            if !self.read_wanted().await && self.effects() == before {
                break;
            }
        }
        ended
    }

    /// The number of steps so far, and a hash of what is stored.
    fn effects(&self) -> (u64, u64) {
        (self.trail.count(), hash(&self.cluster.0.stored().objects))
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

    /// Forgets the objects that were deleted since `before`.
    fn handle_deletions(&self, before: &ObjectsByName) {
        let objects = self.cluster.0.stored().objects.clone();
        let is_same = |now: &Print<Stored>, stored: &Stored| now.uid() == stored.uid();
        for (resource, stored) in before.iter() {
            if objects
                .get(resource)
                .is_some_and(|now| is_same(now, stored))
            {
                continue;
            }
            AllKinds::each(&mut DeletedObject {
                planner: self,
                stored,
            });
        }
    }

    /// The accounts that the planned resources need, and then these resources.
    fn concerned(&self, selected: &BTreeSet<Id>) -> Vec<Id> {
        let planned = self.planned(selected);
        let mut needs = NeededAccounts {
            accounts: BTreeSet::new(),
            secrets: BTreeSet::new(),
            stored: None,
        };
        for id in &planned {
            needs.stored = self.cluster.0.find(id);
            AllKinds::each(&mut needs);
        }
        let mut accounts = BTreeSet::new();
        let stored = self.cluster.0.stored();
        for account in stored.all::<Known<Account>>() {
            if needs.has(account.as_ref()) {
                accounts.insert(Id::of(account.as_ref()));
            }
        }
        for account in stored.all::<Known<ClusterAccount>>() {
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
        let stored = self.cluster.0.stored();
        let all: BTreeMap<Id, &Print<Stored>> = stored
            .objects
            .values()
            .filter_map(|object| Some((Id::of_value(&object.value)?, object)))
            .collect();
        let owners: Vec<&str> = selected
            .iter()
            .filter_map(|id| Some(all.get(id)?.uid()))
            .collect();
        let mut planned = BTreeSet::new();
        for (id, object) in &all {
            if selected.contains(id) || owners.iter().any(|uid| object.is_owned_by(uid)) {
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
        let found = self.planner.cluster.0.find(self.id);
        let found = found.and_then(|found| found.typed::<K::Object>());
        let (Some(object), planner) = (found, self.planner) else {
            return;
        };
        self.pass = Some(async move { pass::<K, Planner>(planner, &object).await }.boxed());
    }
}

struct DeletedObject<'a> {
    planner: &'a Planner,
    stored: &'a Stored,
}

impl KindVisitor for DeletedObject<'_> {
    fn visit<K: Kind>(&mut self) {
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
    stored: Option<Print<Stored>>,
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
        let object = self.stored.as_ref().and_then(|it| it.typed::<K::Object>());
        let Some(object) = object else {
            return;
        };
        self.accounts.extend(account_of::<K>(&object));
        let namespace = object.namespace().unwrap_or_default();
        self.secrets.extend(
            K::relations(&object)
                .written_secret
                .map(|name| (namespace, name.to_owned())),
        );
    }
}
