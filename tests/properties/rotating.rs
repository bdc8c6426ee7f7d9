//! Key rotations that users request, and the overlap that they declare for the previous key.

use dbplane::decide::names;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::history::key;
use super::in_memory::Resource;
use super::in_memory::cluster::place;
use super::run::Run;
use super::simulation::Simulation;

/// The most valid keys of one resource at a time: the current one, three previous ones, three with
/// a lost secret, and a new one.
pub const MOST_KEYS: usize = 8;

/// `every` is a year, so that keys are replaced only on request. All overlaps end before the run
/// has to be at rest.
pub fn rotation(way: u8) -> Value {
    match way {
        0 => Value::Null,
        1 => json!({"every": "8760h", "overlap": "1m"}),
        _ => json!({
            "every": "8760h", "overlap": "1m", "revokePrevious": "WhenUnused", "unusedFor": "1h", "deadline": "90m",
        }),
    }
}

impl Run<'_> {
    pub fn request_key(&mut self, value: u8) {
        let asked = json!({"metadata": {"annotations": {names::ROTATE: format!("r{value}")}}});
        self.edit_key(&asked);
    }

    pub fn declare_rotation(&mut self, way: u8) {
        self.edit_key(&json!({"spec": {"rotation": null}}));
        self.edit_key(&json!({"spec": {"rotation": rotation(way)}}));
    }

    fn edit_key(&mut self, patch: &Value) {
        self.simulation.lock().cluster.edit(&key(), patch);
    }
}

impl Simulation {
    /// A key in a Secret must not be revoked, unless its resource is being deleted.
    pub fn note_revocation_in_use(&mut self, id: &str, actor: &Resource) {
        let holds = |secret: &Secret| {
            secret
                .annotations()
                .get(names::SECRET_KEY_ID)
                .is_some_and(|held| held == id)
        };
        let stays = self
            .cluster
            .objects
            .get(actor)
            .is_some_and(|object| !object.is_deleting());
        let of_actor = |name: &str| place(name).0 == place(&actor.1).0;
        if stays
            && self
                .cluster
                .secrets
                .iter()
                .any(|(name, secret)| of_actor(name) && holds(secret))
        {
            self.ledger.violations.push(format!(
                "{} has revoked key {id}, which its Secret holds",
                actor.1
            ));
        }
    }
}
