//! Lists a resource's objects on the platform from its record, in words for users who look for them
//! there.

use super::{ComputeIdentity, CreateIntent, Origin, ProjectKeyIdentity};
use crate::domain::ProjectId;

impl ComputeIdentity {
    /// The compute, and the possible results of unanswered creates. A compute that is only observed
    /// does not belong to the resource.
    pub fn has(&self, project: &ProjectId) -> Vec<String> {
        let bound = self
            .binding
            .iter()
            .filter(|binding| binding.origin != Origin::Observed);
        let bound =
            bound.map(|binding| format!("compute {} of project {}", binding.id, binding.project));
        let twins = self
            .twins
            .keys()
            .map(|id| format!("perhaps compute {id} of project {project}"));
        bound
            .chain(self.creates().map(|create| create.may_have(project)))
            .chain(twins)
            .collect()
    }
}

impl CreateIntent {
    fn may_have(&self, project: &ProjectId) -> String {
        let named = self
            .mark
            .iter()
            .map(|mark| format!(" named {mark}"))
            .collect::<String>();
        format!(
            "perhaps a compute{named} on branch {} of project {project}, created after {}",
            self.branch, self.at
        )
    }
}

impl ProjectKeyIdentity {
    /// All keys that are not known to be revoked.
    pub fn has(&self) -> Vec<String> {
        let records = &self.records;
        let current = records.current.iter().map(|key| (key.id, &key.name));
        let previous = records.previous.iter().map(|key| (key.id, &key.name));
        let valid = current
            .chain(previous)
            .map(|(id, name)| format!("API key {name} (id {id})"));
        let lost = records
            .lost
            .iter()
            .map(|key| format!("perhaps API key {}, to be revoked", key.name));
        let intended = self.intent.iter().map(|intent| {
            format!(
                "perhaps API key {}, created after {}",
                intent.name, intent.at
            )
        });
        valid.chain(lost).chain(intended).collect()
    }
}

#[cfg(test)]
mod tests;
