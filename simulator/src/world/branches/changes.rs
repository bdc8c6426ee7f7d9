//! The calls that change a branch, and the expiration of branches.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::computes::config::parse_json;
use crate::world::model::{Branch, Expiry, Project};
use crate::world::{Context, World};

/// `PATCH .../branches/{branch}`; unknown attributes are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BranchChange {
    branch: ChangedAttributes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangedAttributes {
    name: Option<String>,
    protected: Option<bool>,
    /// Null removes the expiration; absent keeps it.
    #[serde(deserialize_with = "given")]
    expires_at: Option<Option<Timestamp>>,
}

fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl World {
    pub(in crate::world) fn update_branch(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let change: BranchChange = parse_json(&context.request.body)?;
        let (project, branch) = self.branch(context)?;
        let expiry = match change.branch.expires_at {
            None => branch.expiry.clone(),
            Some(None) => None,
            Some(Some(at)) => Some(expiry(project, branch, at, context.now)?),
        };
        self.change_branch(context, |branch| {
            branch.name = change.branch.name.unwrap_or_else(|| branch.name.clone());
            branch.protected = change.branch.protected.unwrap_or(branch.protected);
            branch.expiry = expiry;
        })
    }

    pub(in crate::world) fn set_default_branch(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let id = self.project(context)?.id.clone();
        self.branch(context)?;
        if let Some(project) = self.projects.get_mut(&id) {
            project
                .branches
                .values_mut()
                .for_each(|branch| branch.default = false);
        }
        self.change_branch(context, |branch| branch.default = true)
    }

    fn change_branch(
        &mut self,
        context: &Context<'_>,
        change: impl FnOnce(&mut Branch),
    ) -> Result<Reply, Refusal> {
        let id = self.project(context)?.id.clone();
        let project = self.projects.get_mut(&id);
        if let Some(branch) =
            project.and_then(|project| project.branches.get_mut(&context.ids.branch))
        {
            change(branch);
            branch.updated_at = Some(context.now);
        }
        let (project, branch) = self.branch(context)?;
        Ok(self.branch_and_operations(project, branch, &[]))
    }

    /// Deletes expired branches, except those that cannot be deleted any more.
    pub(in crate::world) fn expire_branches(&mut self) {
        let over = |branch: &&Branch| {
            branch
                .expiry
                .as_ref()
                .is_some_and(|expiry| expiry.at <= self.now)
        };
        let of_project = |project: &Project| -> Vec<(String, String)> {
            let over = project
                .branches
                .values()
                .filter(over)
                .filter(|branch| project.why_kept(branch).is_none());
            over.map(|branch| (project.id.clone(), branch.id.clone()))
                .collect()
        };
        let gone: Vec<_> = self
            .projects
            .iter()
            .flat_map(|(_, project)| of_project(project))
            .collect();
        for (project, branch) in gone {
            self.remove_branch(&project, &branch);
        }
    }
}

/// An expiration at this time.
pub(in crate::world) fn expiry(
    project: &Project,
    branch: &Branch,
    at: Timestamp,
    now: Timestamp,
) -> Result<Expiry, Refusal> {
    if let Some(reason) = project.why_kept(branch) {
        return Err(Refusal::BranchKept {
            what: "given an expiration",
            reason,
        });
    }
    match at.duration_since(now) {
        left if left <= SignedDuration::ZERO => {
            Err(Refusal::invalid("expires_at must be in the future"))
        }
        left => Ok(Expiry {
            at,
            seconds: left.as_secs(),
        }),
    }
}
