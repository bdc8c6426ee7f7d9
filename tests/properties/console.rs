//! Changes made by others in the platform's console.

use serde_json::json;

use super::in_memory::Resource;
use super::run::Run;
use super::simulation::PROJECT;

impl Run<'_> {
    pub fn foreign_compute(&mut self, branch: u8, primary: bool) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        let kind = if primary { "read_write" } else { "read_only" };
        // No resource declares this size. Without marks, an identical compute could not be
        // distinguished from ours.
        let attributes = json!({
            "branch_id": format!("b{branch}"), "type": kind,
            "autoscaling_limit_min_cu": 8, "autoscaling_limit_max_cu": 8,
        });
        if simulation
            .world
            .console_create_compute(PROJECT, &attributes, now)
            .is_ok()
        {
            self.foreign.insert((branch, primary));
        }
    }

    pub fn foreign_key(&mut self) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        let name = format!("theirs-{}", simulation.world.console_keys().len());
        simulation
            .world
            .console_create_organization_key("org", &name, Some(PROJECT.into()), now)
            .unwrap();
    }

    pub fn remove_compute(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        for id in simulation.made_for(resource) {
            // The platform refuses to delete a busy or protected compute; it then stays.
            let _ = simulation.world.console_delete_compute(&id, now);
        }
    }
}
