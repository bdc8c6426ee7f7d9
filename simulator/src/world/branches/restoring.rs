//! Restores a branch to the data of another branch or an earlier time. Data is not simulated, so
//! only the relations between branches change.

use jiff::Timestamp;
use serde::Deserialize;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::computes::config::parse_json;
use crate::world::model::{Action, Branch, Expiry, Operation, Origin, Project, State};
use crate::world::{ComputeKey, Context, World};

/// `POST .../branches/{branch}/restore`; unknown attributes are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RestoreRequest {
    source_branch_id: String,
    source_lsn: Option<String>,
    source_timestamp: Option<Timestamp>,
    preserve_under_name: Option<String>,
}

impl RestoreRequest {
    fn check(&self, project: &Project, branch: &Branch, now: Timestamp) -> Result<(), Refusal> {
        let from_itself = self.source_branch_id == branch.id;
        let is_parent = project
            .branches
            .values()
            .any(|other| other.parent.as_ref() == Some(&branch.id));
        if !project.branches.contains_key(&self.source_branch_id) {
            return Err(Refusal::Absent {
                what: "source branch",
            });
        }
        check_point(self.source_lsn.as_deref(), self.source_timestamp, now)?;
        if from_itself && self.source_lsn.is_none() && self.source_timestamp.is_none() {
            return Err(Refusal::invalid(
                "source_lsn or source_timestamp is required to restore a branch from itself",
            ));
        }
        if (from_itself || is_parent) && self.preserve_under_name.is_none() {
            return Err(Refusal::invalid(
                "preserve_under_name is required for a branch that has children or is restored from itself",
            ));
        }
        if branch.protected {
            Err(Refusal::BranchKept {
                what: "restored",
                reason: "a protected branch",
            })
        } else {
            Ok(())
        }
    }
}

/// Refuses two points in time, and one in the future.
pub(in crate::world) fn check_point(
    lsn: Option<&str>,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Refusal> {
    match (lsn, at) {
        (Some(_), Some(_)) => Err(Refusal::invalid(
            "an LSN and a timestamp cannot both be given",
        )),
        (None, Some(at)) if at > now => Err(Refusal::invalid("the timestamp is in the future")),
        _ => Ok(()),
    }
}

impl World {
    pub(in crate::world) fn restore_branch(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let request: RestoreRequest = parse_json(&context.request.body)?;
        let (project, branch) = self.branch(context)?;
        request.check(project, branch, context.now)?;
        let (project_id, branch_id) = (project.id.clone(), branch.id.clone());
        let computes: Vec<ComputeKey> = self
            .computes_of(&project_id)
            .filter(|compute| compute.config.branch_id == branch_id)
            .map(|compute| (project_id.clone(), compute.id.clone()))
            .collect();
        computes
            .iter()
            .try_for_each(|key| self.refuse_when_busy(key))?;
        let kept = request
            .preserve_under_name
            .as_ref()
            .map(|name| (self.head.generator.branch_id(), name.clone()));
        if let Some(project) = self.projects.get_mut(&project_id) {
            restore(project, &branch_id, request, kept, context.now);
        }
        let operations = self.restart_all(&computes, context.now);
        let (project, branch) = self.branch(context)?;
        Ok(self.branch_and_operations(project, branch, &operations))
    }

    /// Restarts the active computes: their clients see other data from now on.
    fn restart_all(&mut self, computes: &[ComputeKey], now: Timestamp) -> Vec<Operation> {
        let is_active = |key: &&ComputeKey| {
            self.computes
                .get(key)
                .is_some_and(|compute| compute.state == State::Active)
        };
        let active: Vec<ComputeKey> = computes.iter().filter(is_active).cloned().collect();
        let restart = [Action::SuspendCompute, Action::StartCompute];
        active
            .iter()
            .flat_map(|key| self.schedule(key, &restart, now))
            .collect()
    }
}

/// The branch keeps its id, name and computes. If its old data is kept, it becomes another branch,
/// which takes over the children.
fn restore(
    project: &mut Project,
    id: &str,
    request: RestoreRequest,
    kept: Option<(String, String)>,
    now: Timestamp,
) {
    let kept_id = kept.as_ref().map(|(id, _)| id.clone());
    if let (Some((kept_id, name)), Some(before)) = (kept, project.branches.get(id).cloned()) {
        for child in project
            .branches
            .values_mut()
            .filter(|child| child.parent.as_deref() == Some(id))
        {
            child.parent = Some(kept_id.clone());
        }
        let (parent, origin) = (before.parent, before.origin);
        let kept = Branch {
            name,
            parent,
            origin,
            ..Branch::new(kept_id.clone(), now)
        };
        project.branches.insert(kept_id, kept);
    }
    let Some(branch) = project.branches.get_mut(id) else {
        return;
    };
    let from_itself = request.source_branch_id == id;
    branch.parent = if from_itself {
        kept_id
    } else {
        Some(request.source_branch_id)
    };
    branch.origin = Origin {
        lsn: request.source_lsn,
        timestamp: request.source_timestamp,
        source: None,
    };
    branch.expiry = branch.expiry.take().map(|expiry| renewed(&expiry, now));
    branch.reset_at = Some(now);
    branch.updated_at = Some(now);
}

fn renewed(expiry: &Expiry, now: Timestamp) -> Expiry {
    Expiry {
        at: now + jiff::SignedDuration::from_secs(expiry.seconds),
        seconds: expiry.seconds,
    }
}
