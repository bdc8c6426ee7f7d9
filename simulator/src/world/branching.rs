//! The calls that create and delete branches. The operator does not need them, but command lines
//! use them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::branch_changes::expiry;
use super::config::{ComputeRequest, parse_json};
use super::connections::Access;
use super::errors::Refusal;
use super::message::Reply;
use super::model::{Branch, Operation, Origin, Reach};
use super::restoring::check_point;
use super::shapes::{BranchShape, ComputeShape, OperationShape};
use super::{Context, Profile, World};

/// `POST .../branches`; unknown attributes are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BranchRequest {
    branch: BranchAttributes,
    endpoints: Vec<ComputeRequest>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BranchAttributes {
    name: Option<String>,
    parent_id: Option<String>,
    parent_lsn: Option<String>,
    parent_timestamp: Option<Timestamp>,
    init_source: Option<String>,
    protected: bool,
    expires_at: Option<Timestamp>,
}

impl BranchAttributes {
    /// Removes the attributes that only the public profile knows.
    fn of(self, profile: Profile) -> Self {
        match profile.obeys() {
            true => Self {
                name: self.name,
                parent_id: self.parent_id,
                protected: self.protected,
                ..Self::default()
            },
            false => self,
        }
    }

    /// The parent and the origin of a branch. A branch of a schema alone has no parent.
    fn lineage(self, parent: Option<String>) -> (Option<String>, Origin) {
        let parent = parent.filter(|_| self.init_source.as_deref() != Some("schema-only"));
        (
            parent,
            Origin {
                lsn: self.parent_lsn,
                timestamp: self.parent_timestamp,
                source: self.init_source,
            },
        )
    }
}

#[derive(Debug, Serialize)]
struct CreatedBranch<'a> {
    branch: BranchShape<'a>,
    endpoints: Vec<ComputeShape<'a>>,
    operations: Vec<OperationShape<'a>>,
    #[serde(flatten)]
    access: Access<'a>,
}

impl World {
    pub(super) fn create_branch(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let request: BranchRequest = match context.request.body.is_empty() {
            true => BranchRequest::default(),
            false => parse_json(&context.request.body)?,
        };
        let project = self.project(context)?;
        let attributes = request.branch.of(self.profile);
        let root = || project.default_branch().map(|branch| branch.id.clone());
        let parent = attributes
            .parent_id
            .clone()
            .filter(|id| !id.is_empty())
            .or_else(root);
        if parent
            .as_ref()
            .is_some_and(|parent| !project.branches.contains_key(parent))
        {
            return Err(Refusal::Absent { what: "branch" });
        }
        check_point(
            attributes.parent_lsn.as_deref(),
            attributes.parent_timestamp,
            context.now,
        )?;
        let id = self.head.generator.branch_id();
        let project = self.project(context)?;
        let project_id = project.id.clone();
        let mut branch = Branch {
            protected: attributes.protected,
            ..Branch::new(id.clone(), context.now)
        };
        branch.name = attributes.name.clone().unwrap_or(branch.name);
        let expires_at = attributes.expires_at;
        (branch.parent, branch.origin) = attributes.lineage(parent);
        branch.expiry = expires_at
            .map(|at| expiry(project, &branch, at, context.now))
            .transpose()?;
        if let Some(project) = self.projects.get_mut(&project_id) {
            project.branches.insert(id.clone(), branch);
        }
        let first_operation = self.head.next_operation;
        let made = self.computes_for_branch(context, &id, request.endpoints);
        let operations = made.inspect_err(|_| {
            self.remove_branch(&project_id, &id);
            self.forget_operations(&project_id, first_operation);
        })?;
        let project = self
            .projects
            .get(&project_id)
            .ok_or(Refusal::Absent { what: "project" })?;
        let branch = project
            .branches
            .get(&id)
            .ok_or(Refusal::Absent { what: "branch" })?;
        let computes = self
            .computes_of(&project_id)
            .filter(|compute| compute.config.branch_id == id);
        Ok(Reply::created(&CreatedBranch {
            branch: self.branch_shape(project, branch),
            endpoints: computes
                .map(|compute| self.compute_shape(compute))
                .collect(),
            operations: operations
                .iter()
                .map(|operation| self.operation_shape(operation, context.now))
                .collect(),
            access: self.access(project, branch),
        }))
    }

    fn computes_for_branch(
        &mut self,
        context: &Context<'_>,
        branch: &str,
        requests: Vec<ComputeRequest>,
    ) -> Result<Vec<Operation>, Refusal> {
        let mut operations = Vec::new();
        for request in requests {
            let request = ComputeRequest {
                branch_id: Some(branch.to_owned()),
                ..request
            };
            operations.extend(
                self.make_compute(&context.ids.project, &request, context.now)?
                    .1,
            );
        }
        Ok(operations)
    }

    pub(super) fn delete_branch(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        // As with computes, the public API answers a deletion of an absent branch without a body.
        let Some(branch) = project.branches.get(&context.ids.branch) else {
            return if self.profile.obeys() {
                Err(Refusal::Absent { what: "branch" })
            } else {
                Ok(Reply::no_content())
            };
        };
        if let (Reach::Project { .. }, true) = (&context.caller.reach, self.profile.obeys()) {
            return Err(Refusal::MembersMayNot);
        }
        if let Some(reason) = project.why_kept(branch) {
            return Err(Refusal::BranchKept {
                what: "deleted",
                reason,
            });
        }
        let answer = self.branch_and_operations(project, branch, &[]);
        let (project_id, branch_id) = (project.id.clone(), branch.id.clone());
        self.remove_branch(&project_id, &branch_id);
        Ok(answer)
    }

    /// Removes a branch and its computes.
    pub(super) fn remove_branch(&mut self, project_id: &str, branch_id: &str) {
        self.take_out_computes(project_id, |compute| compute.config.branch_id == branch_id);
        if let Some(project) = self.projects.get_mut(&project_id.to_owned()) {
            project.branches.remove(branch_id);
        }
    }
}
