//! The calls that read branches. The data of branches is not simulated.

pub mod changes;
pub mod connections;
pub mod creating;
pub mod restoring;

use std::cmp::Ordering;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::paging::{self, Limit};
use crate::world::api::shapes::{
    AnnotatedObject, Annotation, BranchAndOperations, BranchCursor, BranchList, BranchShape,
    OneBranch, Stamp,
};
use crate::world::model::{Branch, Operation, Project};
use crate::world::{Context, World};

const LIMIT: Limit = Limit {
    default: 10_000,
    max: 10_000,
};

impl World {
    /// The project and the branch in the path.
    pub(super) fn branch(&self, context: &Context<'_>) -> Result<(&Project, &Branch), Refusal> {
        let project = self.project(context)?;
        let branch = project
            .branches
            .get(&context.ids.branch)
            .ok_or(Refusal::Absent { what: "branch" })?;
        Ok((project, branch))
    }

    pub(super) fn get_branch(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let (project, branch) = self.branch(context)?;
        let object = AnnotatedObject {
            kind: "console/branch",
            id: &branch.id,
        };
        let annotation = Annotation {
            object,
            value: Default::default(),
        };
        Ok(Reply::ok(&OneBranch {
            branch: self.branch_shape(project, branch),
            annotation,
        }))
    }

    pub(super) fn list_branches(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        let request = context.request;
        let limit = LIMIT.of(request)?;
        let skip: usize = match paging::cursor(request)? {
            Some(cursor) => cursor.parse().map_err(|_| paging::invalid_cursor())?,
            None => 0,
        };
        let sort_by = request
            .query_value("sort_by")
            .unwrap_or_else(|| "updated_at".to_owned());
        let sort_order = request
            .query_value("sort_order")
            .unwrap_or_else(|| "desc".to_owned());
        let order = order(&sort_by, &sort_order)?;
        let search = request.query_value("search").unwrap_or_default();
        let found = |branch: &&Branch| branch.name.contains(&search) || branch.id.contains(&search);
        let mut all: Vec<&Branch> = project.branches.values().filter(found).collect();
        all.sort_by(|one, other| order(one, other));
        let next = (skip.saturating_add(limit) < all.len())
            .then(|| paging::seal(&(skip + limit).to_string()));
        let page = all.into_iter().skip(skip).take(limit);
        let branches = page
            .map(|branch| self.branch_shape(project, branch))
            .collect();
        let pagination = Some(BranchCursor {
            next,
            sort_by,
            sort_order,
        });
        Ok(Reply::ok(&BranchList {
            branches,
            annotations: Default::default(),
            pagination,
        }))
    }

    pub(super) fn branch_and_operations(
        &self,
        project: &Project,
        branch: &Branch,
        operations: &[Operation],
    ) -> Reply {
        Reply::ok(&BranchAndOperations {
            branch: self.branch_shape(project, branch),
            operations: operations
                .iter()
                .map(|operation| self.operation_shape(operation, self.now))
                .collect(),
        })
    }

    pub(super) fn branch_shape<'a>(
        &self,
        project: &'a Project,
        branch: &'a Branch,
    ) -> BranchShape<'a> {
        BranchShape {
            id: &branch.id,
            project_id: &project.id,
            parent_id: branch.parent.as_deref(),
            name: &branch.name,
            current_state: "ready",
            state_changed_at: Stamp(branch.created_at),
            creation_source: "console",
            primary: branch.default,
            default: branch.default,
            protected: branch.protected,
            cpu_used_sec: 0,
            compute_time_seconds: 0,
            active_time_seconds: 0,
            written_data_bytes: 0,
            data_transfer_bytes: 0,
            created_at: Stamp(branch.created_at),
            updated_at: Stamp(branch.changed_at()),
            parent_lsn: branch.origin.lsn.as_deref(),
            parent_timestamp: branch.origin.timestamp.map(Stamp),
            init_source: branch.origin.source.as_deref(),
            expires_at: branch.expiry.as_ref().map(|expiry| Stamp(expiry.at)),
            ttl_interval_seconds: branch.expiry.as_ref().map(|expiry| expiry.seconds),
            last_reset_at: branch.reset_at.map(Stamp),
        }
    }
}

type Order = fn(&Branch, &Branch) -> Ordering;

/// The sort order. The id breaks ties, so that pages do not overlap.
fn order(sort_by: &str, sort_order: &str) -> Result<Order, Refusal> {
    match (sort_by, sort_order) {
        ("name", "asc") => Ok(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id))),
        ("name", "desc") => Ok(|one, other| (&other.name, &other.id).cmp(&(&one.name, &one.id))),
        ("created_at", "asc") => {
            Ok(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)))
        }
        ("created_at", "desc") => {
            Ok(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)))
        }
        ("updated_at", "asc") => {
            Ok(|one, other| (one.changed_at(), &one.id).cmp(&(other.changed_at(), &other.id)))
        }
        ("updated_at", "desc") => {
            Ok(|one, other| (other.changed_at(), &other.id).cmp(&(one.changed_at(), &one.id)))
        }
        _ => Err(Refusal::invalid(
            "sort_by is name, created_at or updated_at, and sort_order is asc or desc",
        )),
    }
}
