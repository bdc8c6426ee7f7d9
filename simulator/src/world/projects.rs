//! The calls on projects.

pub mod attributes;
pub mod recovery;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::world::api::access::{outside, owned_by};
use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::paging::{self, Limit};
use crate::world::api::shapes::{
    BranchShape, ComputeShape, Cursor, EndpointDefaults, OneProject, OperationShape, ProjectList,
    ProjectListMore, ProjectMore, ProjectSettings, ProjectShape, ProjectUsage, Stamp,
};
use crate::world::branches::connections::Access;
use crate::world::computes::config::{ComputeRequest, initial_range};
use crate::world::model::{Branch, ComputeDefaults, Database, Maintenance, Owner, Project, Reach};
use crate::world::projects::attributes::ProjectRequest;
use crate::world::{Context, Profile, World};

const LIMIT: Limit = Limit {
    default: 10,
    max: 400,
};
const HISTORY_RETENTION_SECONDS: u32 = 86_400;
/// Defaults of a project, here and below.
pub(super) const DEFAULT_REGION: &str = "aws-us-east-2";
pub(super) const DEFAULT_PLATFORM: &str = "aws";
pub(super) const DEFAULT_PROVISIONER: &str = "k8s-neonvm";
pub(super) const DEFAULT_PG_VERSION: u32 = 17;
/// In MiB.
pub(super) const DEFAULT_SIZE_LIMIT: u64 = 512;
pub(super) const MEBIBYTE: u64 = 1 << 20;

/// The answer to the creation of a project: the project and its first branch, database, role and
/// compute.
#[derive(Debug, Serialize)]
struct CreatedProject<'a> {
    project: ProjectShape<'a>,
    #[serde(flatten)]
    access: Access<'a>,
    operations: Vec<OperationShape<'a>>,
    branch: BranchShape<'a>,
    endpoints: Vec<ComputeShape<'a>>,
}

impl World {
    /// The project in the path, if the caller may access it.
    pub(super) fn project(&self, context: &Context<'_>) -> Result<&Project, Refusal> {
        let org_id = context.request.query_value("org_id");
        self.reach_project(context.caller, &context.ids.project, org_id.as_deref())
    }

    pub(super) fn list_projects(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let org_id = context.request.query_value("org_id");
        let recoverable = !self.profile.obeys()
            && context.request.query_value("recoverable").as_deref() == Some("true");
        let from = if recoverable {
            self.recoverable_projects()
        } else {
            self.projects.iter().map(|(_, it)| it).collect()
        };
        let visible = self.visible(from, &context.caller.reach, org_id.as_deref())?;
        if self.profile.adds() {
            self.page_of_projects(context, visible)
        } else {
            let projects = visible
                .into_iter()
                .map(|project| self.project_shape(project, false))
                .collect();
            Ok(Reply::ok(&ProjectList {
                projects,
                more: None,
            }))
        }
    }

    fn page_of_projects(
        &self,
        context: &Context<'_>,
        visible: Vec<&Project>,
    ) -> Result<Reply, Refusal> {
        // Without a limit in the request, the specification returns all projects instead of ten.
        let limit = if self.profile.obeys() && context.request.query_value("limit").is_none() {
            visible.len()
        } else {
            LIMIT.of(context.request)?
        };
        let after = paging::cursor(context.request)?.unwrap_or_default();
        let search = context.request.query_value("search").unwrap_or_default();
        let found =
            |project: &&Project| project.name.contains(&search) || project.id.contains(&search);
        let page: Vec<&Project> = visible
            .into_iter()
            .filter(|project| project.id > after)
            .filter(found)
            .take(limit)
            .collect();
        let pagination = page.last().map(|last| Cursor {
            cursor: paging::seal(&last.id),
        });
        let projects = page
            .into_iter()
            .map(|project| self.project_shape(project, false))
            .collect();
        let more = ProjectListMore {
            pagination,
            applications: Default::default(),
            integrations: Default::default(),
        };
        Ok(Reply::ok(&ProjectList {
            projects,
            more: Some(more),
        }))
    }

    /// The subset of these projects that the key sees in the list, in the same order.
    fn visible<'a>(
        &self,
        from: Vec<&'a Project>,
        reach: &Reach,
        org_id: Option<&str>,
    ) -> Result<Vec<&'a Project>, Refusal> {
        const NO_ORGANIZATION: Refusal = Refusal::Absent {
            what: "organization",
        };
        match (reach, self.profile, org_id) {
            (Reach::Project { project, .. }, Profile::Public, _) => Err(Refusal::OutsideScope {
                project: project.clone(),
            }),
            // The specification gives such a key one project, so the list has one entry.
            (
                Reach::Project {
                    organization,
                    project,
                },
                _,
                _,
            ) => {
                let project = from
                    .into_iter()
                    .find(|it| it.id == *project && owned_by(it, organization));
                project
                    .map(|project| vec![project])
                    .ok_or(Refusal::ProjectLeft)
            }
            (Reach::Organization { organization }, _, Some(other)) if other != organization => {
                Err(NO_ORGANIZATION)
            }
            (Reach::Organization { organization }, _, _) => {
                Ok(owned(from, |owner| is_organization(owner, organization)))
            }
            (Reach::Personal { .. }, Profile::Public, None) => Err(Refusal::OrgIdRequired),
            // Beyond the specification, a user's own account counts as an organization.
            (Reach::Personal { user }, profile, Some(own)) if profile.adds() && own == user => {
                Ok(owned(from, |owner| is_user(owner, user)))
            }
            (Reach::Personal { user }, _, Some(organization))
                if self.role(organization, user).is_none() =>
            {
                Err(NO_ORGANIZATION)
            }
            (Reach::Personal { .. }, Profile::Public, Some(organization)) => {
                Ok(owned(from, |owner| is_organization(owner, organization)))
            }
            (Reach::Personal { user }, _, organization) => Ok(owned(from, |owner| {
                is_user(owner, user)
                    || organization.is_some_and(|organization| is_organization(owner, organization))
            })),
        }
    }

    /// Projects shared with the caller. Sharing is not simulated, so there are none.
    pub(super) fn list_shared_projects(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        self.person(context.caller)?;
        let more = ProjectListMore {
            pagination: None,
            applications: Default::default(),
            integrations: Default::default(),
        };
        Ok(Reply::ok(&ProjectList {
            projects: Vec::new(),
            more: Some(more),
        }))
    }

    pub(super) fn get_project(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        Ok(Reply::ok(&OneProject {
            project: self.project_shape(project, true),
        }))
    }

    pub(super) fn create_project(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let request = ProjectRequest::parse(&context.request.body)?;
        let owner = self.new_owner(context, request.org_id.as_deref())?;
        self.check_project_limit(&owner)?;
        let mut project = self.new_project(&request, owner, context.now);
        let rules = self.rules(&project);
        request.apply(&mut project, rules)?;
        request.name_first_branch(&mut project);
        let (id, branch_id) = (project.id.clone(), project.branches.keys().next().cloned());
        self.projects.insert(id.clone(), project);
        let request = ComputeRequest {
            branch_id,
            kind: Some("read_write".to_owned()),
            ..ComputeRequest::default()
        };
        let (_, operations) = self.make_compute(&id, &request, context.now)?;
        let project = self
            .projects
            .get(&id)
            .ok_or(Refusal::Absent { what: "project" })?;
        let branch = project
            .branches
            .values()
            .next()
            .ok_or(Refusal::Absent { what: "branch" })?;
        Ok(Reply::created(&CreatedProject {
            project: self.project_shape(project, true),
            access: self.access(project, branch),
            operations: operations
                .iter()
                .map(|operation| self.operation_shape(operation, context.now))
                .collect(),
            branch: self.branch_shape(project, branch),
            endpoints: self
                .computes_of(&id)
                .map(|compute| self.compute_shape(compute))
                .collect(),
        }))
    }

    /// The owner of a new project. A project-scoped key cannot create any.
    fn new_owner(&self, context: &Context<'_>, org_id: Option<&str>) -> Result<Owner, Refusal> {
        match (&context.caller.reach, org_id) {
            (Reach::Project { .. }, _) => Err(outside(context.caller)),
            (Reach::Organization { organization }, None) => {
                Ok(Owner::Organization(organization.clone()))
            }
            (Reach::Organization { organization }, Some(org)) if org == organization => {
                Ok(Owner::Organization(org.to_owned()))
            }
            (Reach::Personal { .. }, None) => Err(Refusal::OrgIdRequired),
            (Reach::Personal { user }, Some(own)) if own == user => Ok(Owner::User(user.clone())),
            (Reach::Personal { user }, Some(org)) if self.role(org, user).is_some() => {
                Ok(Owner::Organization(org.to_owned()))
            }
            (Reach::Organization { .. } | Reach::Personal { .. }, Some(_)) => {
                Err(Refusal::Absent {
                    what: "organization",
                })
            }
        }
    }

    pub(super) fn check_project_limit(&self, owner: &Owner) -> Result<(), Refusal> {
        match self.head.settings.max_projects {
            Some(limit)
                if self
                    .projects
                    .iter()
                    .filter(|(_, other)| other.owner == *owner)
                    .count()
                    >= limit =>
            {
                Err(Refusal::LimitReached {
                    code: "PROJECTS_LIMIT_EXCEEDED",
                    message: format!("an account may have {limit} projects"),
                })
            }
            _ => Ok(()),
        }
    }

    fn new_project(&mut self, request: &ProjectRequest, owner: Owner, now: Timestamp) -> Project {
        let id = self.head.generator.project_id();
        let branch_id = self.head.generator.branch_id();
        let branch = Branch {
            name: "main".to_owned(),
            default: true,
            ..Branch::new(branch_id.clone(), now)
        };
        Project {
            name: id.clone(),
            id,
            owner,
            region_id: request
                .region_id
                .clone()
                .unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            platform_id: DEFAULT_PLATFORM.to_owned(),
            provisioner: DEFAULT_PROVISIONER.to_owned(),
            pg_version: request.pg_version.unwrap_or(DEFAULT_PG_VERSION),
            locked: false,
            cpu_used_sec: 0,
            branch_logical_size_limit: DEFAULT_SIZE_LIMIT,
            branches: [(branch_id, branch)].into(),
            database: Database::default(),
            settings: BTreeMap::new(),
            defaults: ComputeDefaults::default(),
            maintenance: Maintenance::default(),
            created_at: now,
            updated_at: now,
        }
    }

    pub(super) fn delete_project(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        if let Reach::Project { .. } = context.caller.reach {
            return Err(Refusal::MembersMayNot);
        }
        if !self.profile.obeys() && project.branches.values().any(|branch| branch.protected) {
            return Err(Refusal::ProjectProtected);
        }
        let id = project.id.clone();
        let answer = Reply::ok(&OneProject {
            project: self.project_shape(project, true),
        });
        if self.profile.obeys() {
            self.take_out_computes(&id, |_| true)
        } else {
            self.keep_for_recovery(&id, context.now)
        }
        self.projects.remove(&id);
        Ok(answer)
    }

    pub(super) fn project_shape<'a>(
        &'a self,
        project: &'a Project,
        single: bool,
    ) -> ProjectShape<'a> {
        ProjectShape {
            id: &project.id,
            name: &project.name,
            platform_id: &project.platform_id,
            region_id: &project.region_id,
            provisioner: &project.provisioner,
            pg_version: project.pg_version,
            cpu_used_sec: project.cpu_used_sec,
            locked: project.locked,
            created_at: Stamp(project.created_at),
            updated_at: Stamp(project.updated_at),
            proxy_host: self.proxy_host(&project.region_id),
            branch_logical_size_limit: project.branch_logical_size_limit,
            more: self
                .profile
                .adds()
                .then(|| self.project_more(project, single)),
        }
    }

    fn project_more<'a>(&'a self, project: &'a Project, single: bool) -> ProjectMore<'a> {
        let organization = match &project.owner {
            Owner::Organization(id) => self.head.organizations.get(id),
            Owner::User(_) => None,
        };
        let range = initial_range(&project.defaults, self.rules(project));
        let deleted = self.head.deleted_projects.get(&project.id);
        ProjectMore {
            owner_id: project.owner.id(),
            org_id: organization.map(|organization| organization.id.as_str()),
            org_name: if single {
                None
            } else {
                organization.map(|organization| organization.name.as_str())
            },
            creation_source: "console",
            store_passwords: true,
            active_time: project.cpu_used_sec,
            branch_logical_size_limit_bytes: project.branch_logical_size_limit * MEBIBYTE,
            history_retention_seconds: HISTORY_RETENTION_SECONDS,
            default_endpoint_settings: EndpointDefaults {
                autoscaling_limit_min_cu: range.min,
                autoscaling_limit_max_cu: range.max,
                suspend_timeout_seconds: project.defaults.suspend_timeout_seconds,
            },
            settings: ProjectSettings {
                maintenance_window: project.maintenance.window.as_ref(),
                stored: &project.settings,
            },
            deleted_at: deleted.map(|deleted| Stamp(deleted.at)),
            recoverable_until: deleted.map(|deleted| Stamp(deleted.recoverable_until)),
            maintenance_scheduled_for: if single {
                project.maintenance.scheduled_for.as_deref()
            } else {
                None
            },
            usage: single.then_some(ProjectUsage {
                active_time_seconds: project.cpu_used_sec,
                compute_time_seconds: project.cpu_used_sec,
                written_data_bytes: 0,
                data_transfer_bytes: 0,
                data_storage_bytes_hour: 0,
                consumption_period_start: Stamp(project.created_at),
                consumption_period_end: Stamp(self.now),
            }),
        }
    }
}

fn owned(from: Vec<&Project>, by: impl Fn(&Owner) -> bool) -> Vec<&Project> {
    from.into_iter()
        .filter(|project| by(&project.owner))
        .collect()
}

fn is_user(owner: &Owner, id: &str) -> bool {
    matches!(owner, Owner::User(user) if user == id)
}

fn is_organization(owner: &Owner, id: &str) -> bool {
    matches!(owner, Owner::Organization(organization) if organization == id)
}
