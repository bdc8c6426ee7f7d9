//! The record of a simulation: broken promises, events, requests, and the resource behind each object.

use std::collections::{BTreeMap, BTreeSet};

use dbplane::telemetry::metrics::KeyChange;
use dbplane_simulator::world::message::{Method, Request};
use jiff::Timestamp;

use super::in_memory::Resource;

/// A log of events, and of what each resource caused on the platform.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Computes that the operator created, by resource.
    pub computes: BTreeMap<String, Resource>,
    pub keys: BTreeMap<i64, Resource>,
    /// The tokens of these keys.
    pub tokens: BTreeMap<String, Resource>,
    /// Broken promises.
    pub violations: Vec<String>,
    /// Every event: its resource, reason and text.
    pub events: Vec<(String, String, String)>,
    /// Key changes as counted by the metrics.
    pub keys_counted: Vec<KeyChange>,
    /// Refusals of the API server that ended a pass: code and text.
    pub refused: Vec<(u16, String)>,
    /// Keys that `KeyLeft` events name: users are asked to revoke them.
    pub keys_left: BTreeSet<String>,
    /// Computes that `StrayCompute` events name.
    pub strays: BTreeSet<String>,
    /// Changes to the cluster and to the platform.
    pub writes: Vec<String>,
    /// Changes to the platform, with their requests.
    pub changes: Vec<Changed>,
    /// Number of requests to the platform, by method and by the kind of the acting resource.
    pub calls: BTreeMap<(String, Option<&'static str>), usize>,
    /// Number of lists of the organization's keys.
    pub lists: usize,
    /// How often a resource's key was checked with the platform.
    pub asked: BTreeMap<Resource, usize>,
    /// Restarts that were made: the resource and its record of the restart.
    pub restarts: BTreeSet<String>,
    /// How often people have set a resource's token to a value that it did not have.
    pub restarts_asked: BTreeMap<(Resource, String), usize>,
    /// Resources for which a create arrived after the request timeout.
    pub late: Vec<Maker>,
    /// Resources for which a create arrived twice, and was carried out the first time.
    pub repeated: Vec<Maker>,
    /// The platform's machines write times by clocks that differ.
    pub clocks_differ: bool,
    /// Times of this process's deletions on the platform, for resources that are being deleted
    /// without confirmation. The hostile tenant's are not counted.
    pub deletions: Vec<Timestamp>,
}

/// A change that was carried out on the platform.
#[derive(Clone, Debug)]
pub struct Changed {
    pub at: Timestamp,
    pub actor: Option<Resource>,
    pub request: Request,
}

/// The object for which a create was made. The UID distinguishes objects with the same name.
#[derive(Clone, Debug)]
pub struct Maker {
    pub resource: Resource,
    pub uid: String,
    /// The request gives the new object a name.
    pub is_marked: bool,
}

impl Ledger {
    pub fn note_refused(&mut self, error: kube::Error) {
        if let kube::Error::Api(status) = error {
            self.refused.push((status.code, status.message));
        }
    }

    pub fn note_read(&mut self, method: Method, segments: &[&str], actor: Option<&Resource>) {
        match (method, segments, actor) {
            (Method::Get, ["organizations", _, "api_keys"], _) => self.lists += 1,
            (Method::Get, ["projects", _, "endpoints"], Some(actor)) if actor.0 == "ProjectKey" => {
                *self.asked.entry(actor.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    pub fn revoked(&mut self, id: &str, actor: &Resource) {
        let own = self
            .keys
            .get(&id.parse().unwrap())
            .is_some_and(|made_for| made_for == actor);
        if !own {
            self.violations.push(format!(
                "{} {} revoked key {id}, which is not its own",
                actor.0, actor.1
            ));
        }
    }

    pub fn touched(&mut self, id: &str, actor: &Resource) {
        let own = self
            .computes
            .get(id)
            .is_some_and(|made_for| made_for == actor);
        if !own {
            self.violations.push(format!(
                "{} {} changed or deleted {id}, which is not its own",
                actor.0, actor.1
            ));
        }
    }
}
