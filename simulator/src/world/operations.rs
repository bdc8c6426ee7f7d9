//! The calls that list and read operations, and their JSON.

use jiff::Timestamp;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::paging::{self, Limit};
use crate::world::api::shapes::{
    ComputeMore, ComputeShape, Cursor, Group, Hosts, OneOperation, OperationList, OperationShape,
    OperationStatus, Stamp,
};
use crate::world::model::{Compute, ComputeSettings, Operation, State};
use crate::world::{Context, Profile, World};

const LIMIT: Limit = Limit {
    default: 1000,
    max: 1000,
};
const SECONDS_IN_A_WEEK: i64 = 7 * 24 * 3600;

impl Operation {
    /// The status at a time, and the time since which it holds.
    pub(super) fn status_at(&self, now: Timestamp) -> (OperationStatus, Timestamp) {
        let end = self.ends_at;
        let failed = self.failures_at(now).last().copied();
        match self.cancelled_at {
            Some(at) if at < end && at <= now => (OperationStatus::Cancelled, at),
            _ if failed == Some(end) => (OperationStatus::Error, end),
            _ if failed.is_some() => (OperationStatus::Failed, failed.unwrap_or(end)),
            _ if now >= end => (OperationStatus::Finished, end),
            _ if now >= self.starts_at => (OperationStatus::Running, self.starts_at),
            _ => (OperationStatus::Scheduling, self.created_at),
        }
    }

    /// The failures up to this time.
    fn failures_at(&self, now: Timestamp) -> &[Timestamp] {
        let all = self.failing.as_ref().map_or(&[][..], |failing| &failing.at);
        &all[..all.partition_point(|at| *at <= now)]
    }
}

impl World {
    pub(super) fn list_operations(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?.id.clone();
        let limit = LIMIT.of(context.request)?;
        let before = match paging::cursor(context.request)? {
            Some(cursor) => cursor.parse().map_err(|_| paging::invalid_cursor())?,
            None => u64::MAX,
        };
        let page: Vec<&Operation> = self
            .operations
            .range((project.clone(), 0)..(project, before))
            .rev()
            .map(|(_, operation)| operation)
            .take(limit)
            .collect();
        // As on the platform, the last page has a cursor too, and the page after it is empty.
        let pagination = page.last().map(|last| Cursor {
            cursor: paging::seal(&last.number.to_string()),
        });
        let operations = page
            .into_iter()
            .map(|operation| self.operation_shape(operation, context.now))
            .collect();
        Ok(Reply::ok(&OperationList {
            operations,
            pagination,
        }))
    }

    pub(super) fn get_operation(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?.id.clone();
        let mut of_project = self
            .operations
            .range((project.clone(), 0)..=(project, u64::MAX));
        let found = of_project.find(|(_, operation)| operation.id == context.ids.operation);
        let (_, operation) = found.ok_or(Refusal::Absent { what: "operation" })?;
        Ok(Reply::ok(&OneOperation {
            operation: self.operation_shape(operation, context.now),
        }))
    }

    pub(super) fn operation_shape<'a>(
        &self,
        operation: &'a Operation,
        now: Timestamp,
    ) -> OperationShape<'a> {
        let (status, since) = operation.status_at(now);
        let failed = !operation.failures_at(now).is_empty();
        let spent = since.as_millisecond() - operation.starts_at.as_millisecond();
        OperationShape {
            id: &operation.id,
            project_id: &operation.project_id,
            branch_id: &operation.branch_id,
            endpoint_id: &operation.endpoint_id,
            action: operation.action,
            status,
            failures_count: operation.failures_at(now).len(),
            error: if failed && self.profile.adds() {
                operation
                    .failing
                    .as_ref()
                    .map(|failing| failing.error.as_str())
            } else {
                None
            },
            created_at: Stamp(operation.created_at),
            updated_at: Stamp(since),
            total_duration_ms: self.profile.adds().then_some(spent.max(0)),
        }
    }

    pub(super) fn compute_shape<'a>(&self, compute: &'a Compute) -> ComputeShape<'a> {
        let config = &compute.config;
        ComputeShape {
            id: &compute.id,
            host: &compute.host,
            project_id: &compute.project_id,
            branch_id: &config.branch_id,
            region_id: &compute.region_id,
            kind: compute.kind,
            autoscaling_limit_min_cu: config.range.min,
            autoscaling_limit_max_cu: config.range.max,
            current_state: compute.state,
            pending_state: compute.pending_state(),
            settings: self.settings_shape(&config.settings),
            pooler_enabled: config.pooler_enabled,
            pooler_mode: "transaction",
            disabled: config.disabled,
            passwordless_access: config.passwordless_access,
            last_active: compute.last_active.map(Stamp),
            created_at: Stamp(compute.created_at),
            updated_at: Stamp(compute.updated_at),
            proxy_host: self.proxy_host(&compute.region_id),
            more: self.profile.adds().then(|| compute_more(compute)),
        }
    }

    /// The specification's settings always have `pg_settings`; the public API omits unset ones.
    fn settings_shape(&self, settings: &ComputeSettings) -> ComputeSettings {
        let given = settings.clone();
        let pg_settings = Some(given.pg_settings.clone().unwrap_or_default());
        match self.profile {
            Profile::Public => given,
            Profile::Default => ComputeSettings {
                pg_settings,
                ..given
            },
            Profile::Minimal => ComputeSettings {
                pg_settings,
                ..ComputeSettings::default()
            },
        }
    }

    pub(super) fn proxy_host(&self, region_id: &str) -> String {
        format!("{region_id}.{}", self.head.settings.host_domain)
    }
}

fn compute_more(compute: &Compute) -> ComputeMore<'_> {
    ComputeMore {
        name: compute.config.name.as_deref(),
        creation_source: &compute.creation_source,
        provisioner: &compute.config.provisioner,
        suspend_timeout_seconds: compute.config.suspend_timeout_seconds,
        started_at: compute.started_at.map(Stamp),
        suspended_at: if compute.state == State::Active {
            None
        } else {
            compute.suspended_at.map(Stamp)
        },
        compute_release_version: compute.started_at.map(release),
        hosts: Hosts {
            read_write_host: &compute.host,
            read_write_pooled_host: pooled_host(&compute.host),
        },
        slug: &compute.id,
        branch_slug: &compute.config.branch_id,
        project_slug: &compute.project_id,
        group: Group {
            size: 1,
            computes: [],
        },
    }
}

/// The platform's release at the start of a compute; there is one per week.
pub(super) fn release(started_at: Timestamp) -> String {
    started_at
        .as_second()
        .div_euclid(SECONDS_IN_A_WEEK)
        .to_string()
}

/// The host of the connection pooler: `-pooler` is appended to the first label.
pub(super) fn pooled_host(host: &str) -> String {
    match host.split_once('.') {
        Some((label, rest)) => format!("{label}-pooler.{rest}"),
        None => format!("{host}-pooler"),
    }
}
