//! The actions of the platform's console, as methods of the world. They need no key.

pub mod inventory;

use jiff::Timestamp;
use serde::Serialize;

use crate::world::api::errors::Refusal;
pub use crate::world::api::shapes::CreatedKey;
use crate::world::api::shapes::Stamp;
use crate::world::computes::config::ComputeRequest;
use crate::world::computes::sizes::{Capacity, Plan, Range, Size, capacity};
use crate::world::model::{Action, Compute, ComputeKind, FailureOrder, Key, Owner, Reach, State};
use crate::world::operations::release;
use crate::world::setup::declare::administrator;
use crate::world::{ComputeKey, Profile, World};

/// SQLSTATE of a full disk.
const DISK_FULL: &str = "53100";

/// A user or an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnerLine {
    /// `user` or `organization`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub id: String,
    pub name: String,
}

/// A key as the console lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyLine {
    pub id: i64,
    /// `personal`, `organization` or `project`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub name: String,
    /// The id of a user or of an organization.
    pub owner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    pub revoked: bool,
    pub created_at: String,
}

/// A compute as the console lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComputeLine {
    pub id: String,
    pub project_id: String,
    pub branch_id: String,
    /// `Primary` or `Read Replica`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `Active`, `Idle` or `Init`.
    pub status: &'static str,
    /// e.g. `2 CU` or `0.25 - 2 CU`.
    pub size: String,
    pub last_active: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip)]
    pub range: Range,
    /// The size that the load has led to within the range.
    pub current_size: Size,
    /// How often running connections were interrupted.
    pub interruptions: u64,
    pub disabled: bool,
    pub suspend_timeout_seconds: i64,
    /// The platform's release that the compute runs since its last start; a new one appears every
    /// week.
    pub release: Option<String>,
    /// The capacity of the smallest size in the range.
    pub capacity: Capacity,
    pub max_pooled_connections: u32,
    pub shared_buffers_mb: u32,
    pub temporary_disk_gib: u32,
}

/// A database error as a database client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseError {
    pub sqlstate: &'static str,
    pub message: String,
}

impl World {
    pub fn console_create_personal_key(
        &mut self,
        user: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<CreatedKey, Refusal> {
        self.advance_to(now);
        if !self.head.users.contains_key(user) {
            return Err(Refusal::Absent { what: "user" });
        }
        let user = user.to_owned();
        self.mint(
            name.to_owned(),
            Reach::Personal { user: user.clone() },
            user,
            self.now,
        )
        .map(|key| CreatedKey::from(&key))
    }

    /// Creates a key of an organization or of one of its projects, in the name of an administrator.
    pub fn console_create_organization_key(
        &mut self,
        organization: &str,
        name: &str,
        project: Option<String>,
        now: Timestamp,
    ) -> Result<CreatedKey, Refusal> {
        self.advance_to(now);
        let found = self
            .head
            .organizations
            .get(organization)
            .ok_or(Refusal::Absent {
                what: "organization",
            })?;
        let created_by = administrator(found).ok_or(Refusal::AdminsOnly)?;
        let organization = organization.to_owned();
        let reach = match project {
            Some(project) => self.scope(organization, project)?,
            None => Reach::Organization { organization },
        };
        self.mint(name.to_owned(), reach, created_by, self.now)
            .map(|key| CreatedKey::from(&key))
    }

    /// All possible owners of keys.
    pub fn console_owners(&self) -> Vec<OwnerLine> {
        let users = self
            .head
            .users
            .values()
            .map(|user| ("user", &user.id, &user.name));
        let organizations = self
            .head
            .organizations
            .values()
            .map(|found| ("organization", &found.id, &found.name));
        let line = |(kind, id, name): (&'static str, &String, &String)| OwnerLine {
            kind,
            id: id.clone(),
            name: name.clone(),
        };
        organizations.chain(users).map(line).collect()
    }

    /// Revokes any key, forever. It has no effect on a revoked key.
    pub fn console_revoke_key(&mut self, id: i64, now: Timestamp) -> Result<KeyLine, Refusal> {
        self.advance_to(now);
        self.keys
            .revoke(id, self.now)
            .map(key_line)
            .ok_or(Refusal::Absent { what: "api key" })
    }

    /// All keys, including revoked ones.
    pub fn console_keys(&self) -> Vec<KeyLine> {
        self.keys.iter().map(key_line).collect()
    }

    /// The computes of one project, or all.
    pub fn console_computes(&self, project: Option<&str>) -> Vec<ComputeLine> {
        let all = self.computes.iter().map(|(_, compute)| compute);
        let shown =
            all.filter(|compute| project.is_none_or(|project| compute.project_id == project));
        shown.map(|compute| self.compute_line(compute)).collect()
    }

    /// Simulates activity, such as a query or a connection. `load` is the CU that it could use. An
    /// idle compute starts unless it is disabled. A running one is resized within its range without
    /// interruptions.
    pub fn console_activity(
        &mut self,
        id: &str,
        load: Option<f64>,
        now: Timestamp,
    ) -> Result<ComputeLine, Refusal> {
        self.advance_to(now);
        let now = self.now;
        let key = self.find_compute(id)?;
        let (disabled, target) = self
            .computes
            .get(&key)
            .map_or((true, State::Idle), |compute| {
                (compute.config.disabled, compute.target_state())
            });
        if disabled {
            return Err(Refusal::Disabled);
        }
        if let Some(compute) = self.compute_mut(&key) {
            if compute.state == State::Active {
                compute.last_active = Some(now);
            }
            let asked = load.and_then(|load| {
                Size::all()
                    .find(|size| size.cu() >= load)
                    .or_else(|| Size::all().last())
            });
            let range = compute.config.range;
            compute.current_size = asked
                .unwrap_or(compute.current_size)
                .clamp(range.min, range.max);
        }
        if target == State::Idle {
            self.append(&key, &[Action::StartCompute], now);
        }
        self.line(&key)
    }

    /// Simulates queries that fill the disk for temporary files, and returns the database's error.
    /// Counts as activity.
    pub fn console_fill_temporary_disk(
        &mut self,
        id: &str,
        now: Timestamp,
    ) -> Result<DatabaseError, Refusal> {
        self.console_activity(id, None, now)?;
        let number = self.head.next_operation;
        Ok(DatabaseError {
            sqlstate: DISK_FULL,
            message: format!(
                "ERROR: could not write to file \"base/pgsql_tmp/pgsql_tmp{number}.0\": No space left on device"
            ),
        })
    }

    /// Creates a compute outside of the API. `attributes` are those of the API, with `type` and
    /// `branch_id`.
    pub fn console_create_compute(
        &mut self,
        project: &str,
        attributes: &serde_json::Value,
        now: Timestamp,
    ) -> Result<ComputeLine, Refusal> {
        self.advance_to(now);
        let request = console_request(attributes)?;
        let (key, _) = self.make_compute(project, &request, self.now)?;
        self.line(&key)
    }

    /// Changes a compute outside of the API.
    pub fn console_change_compute(
        &mut self,
        id: &str,
        attributes: &serde_json::Value,
        now: Timestamp,
    ) -> Result<ComputeLine, Refusal> {
        self.advance_to(now);
        let key = self.find_compute(id)?;
        self.change_compute(&key, &console_request(attributes)?, self.now)?;
        self.line(&key)
    }

    /// Deletes a compute outside of the API.
    pub fn console_delete_compute(
        &mut self,
        id: &str,
        now: Timestamp,
    ) -> Result<ComputeLine, Refusal> {
        self.advance_to(now);
        let key = self.find_compute(id)?;
        let line = self.line(&key)?;
        self.remove_compute(&key, self.now)?;
        Ok(line)
    }

    /// Restarts a compute and so interrupts its connections.
    pub fn console_restart_compute(
        &mut self,
        id: &str,
        now: Timestamp,
    ) -> Result<ComputeLine, Refusal> {
        self.advance_to(now);
        let key = self.find_compute(id)?;
        self.restart(&key, self.now)?;
        self.line(&key)
    }

    /// Transfers a project to another organization or user. Keys that the old organization scoped
    /// to it lose access.
    pub fn console_transfer_project(
        &mut self,
        id: &str,
        to: Owner,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.advance_to(now);
        if self.owner(to.id()).as_ref() != Some(&to) {
            return Err(Refusal::Absent { what: "owner" });
        }
        let now = self.now;
        let project = self
            .projects
            .get_mut(id)
            .ok_or(Refusal::Absent { what: "project" })?;
        project.owner = to;
        project.updated_at = now;
        self.plans_changed();
        Ok(())
    }

    /// Changes the plan of an organization. Computes keep their sizes.
    pub fn console_set_plan(
        &mut self,
        organization: &str,
        plan: Plan,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.advance_to(now);
        let found = self
            .head
            .organizations
            .get_mut(organization)
            .ok_or(Refusal::Absent {
                what: "organization",
            })?;
        found.plan = plan;
        self.plans_changed();
        Ok(())
    }

    /// Orders that the next operations of an action fail.
    pub fn console_fail_operations(&mut self, order: FailureOrder, now: Timestamp) {
        self.advance_to(now);
        self.failures.push(order);
    }

    /// The orders for failing operations, including used ones.
    pub fn console_failure_orders(&self) -> &[FailureOrder] {
        &self.failures
    }

    /// Removes all orders for failing operations.
    pub fn console_take_back_failures(&mut self) {
        self.failures.clear();
    }

    fn find_compute(&self, id: &str) -> Result<ComputeKey, Refusal> {
        let found = self
            .computes
            .iter()
            .map(|(key, _)| key)
            .find(|(_, compute)| compute == id);
        found.cloned().ok_or(Refusal::Absent { what: "endpoint" })
    }

    fn line(&self, key: &ComputeKey) -> Result<ComputeLine, Refusal> {
        self.computes
            .get(key)
            .map(|compute| self.compute_line(compute))
            .ok_or(Refusal::Absent { what: "endpoint" })
    }

    fn compute_line(&self, compute: &Compute) -> ComputeLine {
        ComputeLine {
            id: compute.id.clone(),
            project_id: compute.project_id.clone(),
            branch_id: compute.config.branch_id.clone(),
            kind: match compute.kind {
                ComputeKind::ReadWrite => "Primary",
                ComputeKind::ReadOnly => "Read Replica",
            },
            status: match compute.state {
                State::Init => "Init",
                State::Idle => "Idle",
                State::Active => "Active",
            },
            size: compute.config.range.to_string(),
            range: compute.config.range,
            last_active: compute.last_active.map(text),
            name: compute.config.name.clone(),
            current_size: compute.current_size,
            interruptions: compute.interruptions,
            disabled: compute.config.disabled,
            suspend_timeout_seconds: compute.config.suspend_timeout_seconds,
            release: compute.started_at.map(release),
            capacity: capacity(compute.config.range.min),
            max_pooled_connections: 10_000,
            shared_buffers_mb: 128,
            temporary_disk_gib: self.temporary_disk_gib(compute.config.range.max),
        }
    }

    /// About 20 GB; in the public profile it grows with the largest size of the range.
    fn temporary_disk_gib(&self, max: Size) -> u32 {
        match self.profile {
            Profile::Default | Profile::Minimal => 20,
            Profile::Public => (u32::from(max.quarters()) * 15 / 4).max(20),
        }
    }
}

/// The console accepts all attributes in every profile.
fn console_request(attributes: &serde_json::Value) -> Result<ComputeRequest, Refusal> {
    let body = serde_json::json!({ "endpoint": attributes }).to_string();
    ComputeRequest::parse(body.as_bytes(), Profile::Default)
}

fn key_line(key: &Key) -> KeyLine {
    KeyLine {
        id: key.id,
        kind: match key.reach {
            Reach::Personal { .. } => "personal",
            Reach::Organization { .. } => "organization",
            Reach::Project { .. } => "project",
        },
        name: key.name.clone(),
        owner: key.reach.account().to_owned(),
        project_id: key.reach.project().map(str::to_owned),
        revoked: key.revoked_at.is_some(),
        created_at: text(key.created_at),
    }
}

fn text(at: Timestamp) -> String {
    Stamp(at).to_string()
}
