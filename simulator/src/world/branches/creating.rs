//! The calls that create and delete branches. The operator does not need them, but command lines
//! use them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::{BranchShape, ComputeShape, OperationShape};
use crate::world::branches::changes::expiry;
use crate::world::branches::connections::Access;
use crate::world::branches::restoring::check_point;
use crate::world::computes::config::{ComputeRequest, parse_json};
use crate::world::model::{Branch, Operation, Origin, Project, Reach};
use crate::world::{Context, Profile, World};

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
        if profile.obeys() {
            Self {
                name: self.name,
                parent_id: self.parent_id,
                protected: self.protected,
                ..Self::default()
            }
        } else {
            self
        }
    }

    /// The id of the parent, which is the default branch if none is named.
    fn parent(&self, project: &Project) -> Result<Option<String>, Refusal> {
        let named = self.parent_id.clone().filter(|id| !id.is_empty());
        let Some(parent) = named else {
            return Ok(project.default_branch().map(|branch| branch.id.clone()));
        };
        if project.branches.contains_key(&parent) {
            Ok(Some(parent))
        } else {
            Err(Refusal::Absent { what: "branch" })
        }
    }

    /// The new branch. A branch of a schema alone has no parent.
    fn branch(
        self,
        project: &Project,
        parent: Option<String>,
        id: String,
        now: Timestamp,
    ) -> Result<Branch, Refusal> {
        let new = Branch::new(id, now);
        let has_parent = self.init_source.as_deref() != Some("schema-only");
        let mut branch = Branch {
            protected: self.protected,
            name: self.name.unwrap_or_else(|| new.name.clone()),
            parent: if has_parent { parent } else { None },
            origin: Origin {
                lsn: self.parent_lsn,
                timestamp: self.parent_timestamp,
                source: self.init_source,
            },
            ..new
        };
        if let Some(at) = self.expires_at {
            branch.expiry = Some(expiry(project, &branch, at, now)?);
        }
        Ok(branch)
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
    pub(in crate::world) fn create_branch(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let request = if context.request.body.is_empty() {
            BranchRequest::default()
        } else {
            parse_json(&context.request.body)?
        };
        let project = self.project(context)?;
        let attributes = request.branch.of(self.profile);
        let parent = attributes.parent(project)?;
        check_point(
            attributes.parent_lsn.as_deref(),
            attributes.parent_timestamp,
            context.now,
        )?;
        let id = self.head.generator.branch_id();
        let project = self.project(context)?;
        let project_id = project.id.clone();
        let branch = attributes.branch(project, parent, id.clone(), context.now)?;
        if let Some(project) = self.projects.get_mut(&project_id) {
            project.branches.insert(id.clone(), branch);
        }
        let first_operation = self.head.next_operation;
        let made = self.computes_for_branch(context, &id, request.endpoints);
        let operations = made.inspect_err(|_| {
            self.remove_branch(&project_id, &id);
            self.forget_operations(&project_id, first_operation);
        })?;
        self.created_branch(&project_id, &id, &operations, context.now)
    }

    fn created_branch(
        &self,
        project_id: &str,
        id: &str,
        operations: &[Operation],
        now: Timestamp,
    ) -> Result<Reply, Refusal> {
        let project = self
            .projects
            .get(project_id)
            .ok_or(Refusal::Absent { what: "project" })?;
        let branch = project
            .branches
            .get(id)
            .ok_or(Refusal::Absent { what: "branch" })?;
        let computes = self
            .computes_of(project_id)
            .filter(|compute| compute.config.branch_id == id);
        Ok(Reply::created(&CreatedBranch {
            branch: self.branch_shape(project, branch),
            endpoints: computes
                .map(|compute| self.compute_shape(compute))
                .collect(),
            operations: operations
                .iter()
                .map(|operation| self.operation_shape(operation, now))
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

    pub(in crate::world) fn delete_branch(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
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
    pub(in crate::world) fn remove_branch(&mut self, project_id: &str, branch_id: &str) {
        self.take_out_computes(project_id, |compute| compute.config.branch_id == branch_id);
        if let Some(project) = self.projects.get_mut(project_id) {
            project.branches.remove(branch_id);
        }
    }
}
