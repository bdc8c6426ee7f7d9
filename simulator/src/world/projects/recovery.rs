//! Deleted projects. The public API keeps them for some days with all their contents.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::{BranchShape, ProjectShape};
use crate::world::model::{Compute, DeletedProject, Project, Reach, State};
use crate::world::{Context, World};

const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Debug, Serialize)]
struct RecoveredProject<'a> {
    project: ProjectShape<'a>,
    branches: Vec<BranchShape<'a>>,
}

impl World {
    /// Ordered by id.
    pub(in crate::world) fn recoverable_projects(&self) -> Vec<&Project> {
        let all = self.head.deleted_projects.values();
        all.filter(|deleted| deleted.recoverable_until > self.now)
            .map(|deleted| &deleted.project)
            .collect()
    }

    /// Moves a project to the deleted ones before its deletion, and removes its computes. Their
    /// pending steps are dropped.
    pub(in crate::world) fn keep_for_recovery(&mut self, id: &str, now: Timestamp) {
        let Some(project) = self.projects.get(id).cloned() else {
            return;
        };
        let keys: Vec<_> = self
            .computes_of(id)
            .map(|compute| (id.to_owned(), compute.id.clone()))
            .collect();
        for key in &keys {
            self.schedule(key, &[], now);
        }
        let computes = self
            .computes_of(id)
            .map(|compute| suspended(compute, now))
            .collect();
        self.take_out_computes(id, |_| true);
        self.head
            .deleted_projects
            .retain(|_, deleted| deleted.recoverable_until > now);
        let deleted = DeletedProject {
            project,
            computes,
            at: now,
            recoverable_until: now + KEPT,
        };
        self.head.deleted_projects.insert(id.to_owned(), deleted);
    }

    pub(in crate::world) fn recover_project(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let id = &context.ids.project;
        let org_id = context.request.query_value("org_id");
        let found = self
            .recoverable_projects()
            .into_iter()
            .find(|project| project.id == *id);
        let project = self.reach(context.caller, id, found, org_id.as_deref())?;
        if let Reach::Project { .. } = context.caller.reach {
            return Err(Refusal::MembersMayNot);
        }
        self.check_project_limit(&project.owner)?;
        let deleted = self
            .head
            .deleted_projects
            .remove(id)
            .ok_or(Refusal::Absent { what: "project" })?;
        self.projects.insert(id.clone(), deleted.project);
        for compute in deleted.computes {
            let key = (id.clone(), compute.id.clone());
            self.agenda.stale(&key);
            self.computes.insert(key, compute);
        }
        let project = self.project(context)?;
        Ok(Reply::ok(&RecoveredProject {
            project: self.project_shape(project, true),
            branches: project
                .branches
                .values()
                .map(|branch| self.branch_shape(project, branch))
                .collect(),
        }))
    }
}

fn suspended(compute: &Compute, now: Timestamp) -> Compute {
    Compute {
        state: State::Idle,
        steps: Vec::new(),
        suspended_at: Some(now),
        ..compute.clone()
    }
}
