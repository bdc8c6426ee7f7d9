//! Moves accounts and resources between the platforms, and checks the promises on both.

use std::collections::BTreeMap;

use serde_json::json;

use super::{During, MARK, Move, OTHER_CREDENTIAL, OTHER_URL, Other, Platform};
use crate::accounts::{CREDENTIAL, credential};
use crate::history::{Event, compute, key};
use crate::in_memory::Resource;
use crate::run::Run;
use crate::simulation::{BASE_URL, PROJECT, TOKEN, world};

fn other_account(run: &Run) -> Resource {
    (run.history.account.resource().0, "other".to_owned())
}

impl Run<'_> {
    pub fn move_away(&mut self, what: Move) {
        self.found_other();
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        let account = self.history.account.resource();
        match what {
            Move::Account { recreated } => {
                let Some(spec) = simulation.moved(self.history.account) else {
                    return;
                };
                if recreated {
                    simulation.cluster.forget(&account);
                    simulation.cluster.create(&account, &spec, &json!({}), now);
                } else {
                    simulation.cluster.edit(&account, &json!({"spec": spec}));
                }
            }
            Move::AccountDuring { what, after } => {
                let Some(spec) = simulation.moved(self.history.account) else {
                    return;
                };
                simulation.move_soon = Some((after, what, account, spec));
                drop(simulation);
                match what {
                    During::NewKey => self.request_key(after),
                    During::KeyDeletion => self.delete(&key()),
                    During::Restart => self.happen(&Event::Restart(0, after)),
                    During::Resize => self.happen(&Event::Resize(0, after % 3)),
                    During::NewCompute => self.happen(&Event::ComputeRemoved(0)),
                }
            }
            Move::Resource { key: is_key } => {
                let resource = if is_key { key() } else { compute(0) };
                let Some(stored) = simulation.cluster.objects.get(&resource) else {
                    return;
                };
                let name = if stored.value["spec"]["accountRef"]["name"] == "other" {
                    "prod"
                } else {
                    "other"
                };
                simulation
                    .cluster
                    .edit(&resource, &json!({"spec": {"accountRef": {"name": name}}}));
            }
        }
    }

    /// Creates the other platform and its account unless they exist.
    fn found_other(&mut self) {
        let account = other_account(self);
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        if simulation.other.is_some() {
            return;
        }
        let mut other = world(self.history, 7, now);
        let attributes = json!({
            "branch_id": "b0", "type": "read_only", "autoscaling_limit_min_cu": 8, "autoscaling_limit_max_cu": 8,
        });
        other
            .console_create_compute(PROJECT, &attributes, now)
            .unwrap();
        for number in 0..4 {
            let name = format!("theirs-{number}");
            other
                .console_create_organization_key("org", &name, Some(PROJECT.into()), now)
                .unwrap();
        }
        let (computes, keys) = (BTreeMap::new(), BTreeMap::new());
        simulation.other = Some(Other {
            platform: Platform::Other,
            world: other,
            computes,
            keys,
        });
        simulation
            .cluster
            .put_secret(OTHER_CREDENTIAL, credential(&format!("{TOKEN}{MARK}")));
        let spec = self.history.account.spec(OTHER_URL, OTHER_CREDENTIAL);
        simulation.cluster.create(&account, &spec, &json!({}), now);
    }

    /// Points each resource at an account of the platform on which it has something.
    pub fn move_home(&mut self) {
        let mut simulation = self.simulation.lock();
        if simulation.other.is_none() {
            return;
        }
        simulation.move_soon = None;
        let spec = self.history.account.spec(BASE_URL, CREDENTIAL);
        simulation
            .cluster
            .edit(&self.history.account.resource(), &json!({"spec": spec}));
        for resource in self.history.resources() {
            let name = match simulation
                .recorded_at(&resource)
                .first()
                .map(String::as_str)
            {
                Some(OTHER_URL) => "other",
                Some(_) => "prod",
                None => continue,
            };
            simulation
                .cluster
                .edit(&resource, &json!({"spec": {"accountRef": {"name": name}}}));
        }
    }

    /// Checks a promise on each platform.
    pub fn at_each_platform(&self, holds: fn(&Run) -> Result<(), String>) -> Result<(), String> {
        holds(self)?;
        if self.simulation.lock().other.is_none() {
            return Ok(());
        }
        self.simulation.lock().exchange();
        let held = holds(self);
        self.simulation.lock().exchange();
        held
    }

    /// Checks that no resource has computes or keys on both platforms.
    pub fn made_on_both(&self) -> Result<(), String> {
        let mut simulation = self.simulation.lock();
        if simulation.other.is_none() {
            return Ok(());
        }
        for resource in self.history.resources() {
            let [here, there] = [Platform::First, Platform::Other].map(|platform| {
                simulation.at(platform, |at| {
                    (at.made_for(&resource), at.keys_of(&resource))
                })
            });
            if here != Default::default() && there != Default::default() {
                return Err(format!(
                    "{} has {here:?} on one platform, and {there:?} on the other",
                    resource.1
                ));
            }
        }
        Ok(())
    }
}
