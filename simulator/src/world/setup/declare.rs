//! Creates a world from its file.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::world::api::errors::Refusal;
use crate::world::api::routes::is_path_id;
use crate::world::computes::config::{ComputeRequest, Rules, SUSPEND_RANGE};
use crate::world::computes::sizes::judge;
use crate::world::model::{
    Branch, ComputeDefaults, ComputeKind, Database, Key, Maintenance, Organization, Owner, Project,
    Reach, Role, State, User,
};
use crate::world::projects::{
    DEFAULT_PG_VERSION, DEFAULT_PLATFORM, DEFAULT_PROVISIONER, DEFAULT_REGION, DEFAULT_SIZE_LIMIT,
};
use crate::world::setup::file::{
    DeclaredBranch, DeclaredCompute, DeclaredKey, DeclaredKeyKind, DeclaredOrganization,
    DeclaredProject, DeclaredUser, WorldFile, WorldFileError, fault,
};
use crate::world::store::ids::Generator;
use crate::world::{Profile, World};

impl World {
    /// The world that a file declares, at time `now`. All generated values derive from `seed`.
    pub fn new(
        file: &WorldFile,
        profile: Profile,
        seed: u64,
        now: Timestamp,
    ) -> Result<Self, WorldFileError> {
        let mut world = Self::bare(profile);
        world.now = now;
        world.head.settings = file.settings.clone();
        world.head.generator = Generator::new(seed);
        unique("users", file.users.iter().map(|user| &user.id))?;
        unique(
            "organizations",
            file.organizations
                .iter()
                .map(|organization| &organization.id),
        )?;
        unique("projects", file.projects.iter().map(|project| &project.id))?;
        unique_computes(&file.projects)?;
        for user in &file.users {
            world.head.users.insert(user.id.clone(), user.build());
        }
        for (index, organization) in file.organizations.iter().enumerate() {
            world.add_organization(&format!("organizations[{index}]"), organization)?;
        }
        for (index, project) in file.projects.iter().enumerate() {
            world.add_project(&format!("projects[{index}]"), project)?;
        }
        for (index, key) in file.keys.iter().enumerate() {
            world.add_key(&format!("keys[{index}]"), key)?;
        }
        Ok(world)
    }

    fn add_organization(
        &mut self,
        path: &str,
        declared: &DeclaredOrganization,
    ) -> Result<(), WorldFileError> {
        for (index, member) in declared.members.iter().enumerate() {
            if !self.head.users.contains_key(&member.user) {
                return fault(
                    format!("{path}.members[{index}].user"),
                    format!("there is no user {}", member.user),
                );
            }
        }
        path_id(path, &declared.id)?;
        if self.head.users.contains_key(&declared.id) {
            return fault(
                format!("{path}.id"),
                format!("{} is the id of a user", declared.id),
            );
        }
        let organization = Organization {
            id: declared.id.clone(),
            name: declared.name.clone().unwrap_or_else(|| declared.id.clone()),
            plan: declared.plan,
            members: declared
                .members
                .iter()
                .map(|member| (member.user.clone(), member.role))
                .collect(),
            created_at: self.now,
        };
        self.head
            .organizations
            .insert(organization.id.clone(), organization);
        Ok(())
    }

    fn add_project(
        &mut self,
        path: &str,
        declared: &DeclaredProject,
    ) -> Result<(), WorldFileError> {
        let owner = self.owner(&declared.owner);
        let Some(owner) = owner else {
            return fault(
                format!("{path}.owner"),
                format!("there is no organization or user {}", declared.owner),
            );
        };
        let project = declared.build(path, owner, self.now)?;
        let rules = self.rules(&project);
        declared.check_defaults(path, rules)?;
        self.projects.insert(project.id.clone(), project);
        for (index, compute) in declared.computes.iter().enumerate() {
            let added = self.declare_compute(&declared.id, compute);
            added.or_else(|message| fault(format!("{path}.computes[{index}]"), message))?;
        }
        Ok(())
    }

    /// Creates a compute as the API would, and lets it settle at once.
    fn declare_compute(
        &mut self,
        project_id: &str,
        declared: &DeclaredCompute,
    ) -> Result<(), String> {
        let kind = match declared.kind {
            ComputeKind::ReadWrite => "read_write",
            ComputeKind::ReadOnly => "read_only",
        };
        let request = ComputeRequest {
            branch_id: Some(declared.branch.clone()),
            kind: Some(kind.to_owned()),
            autoscaling_limit_min_cu: declared.size.map(|size| size.min.cu()),
            autoscaling_limit_max_cu: declared.size.map(|size| size.max.cu()),
            suspend_timeout_seconds: declared.suspend_timeout_seconds,
            name: declared.name.clone(),
            disabled: Some(declared.disabled),
            ..ComputeRequest::default()
        };
        let now = self.now;
        let (mut key, _) = self
            .make_compute(project_id, &request, now)
            .map_err(|refusal| refusal.message())?;
        if let Some(id) = &declared.id
            && let Some(mut compute) = self.computes.remove(&key)
        {
            if !id.starts_with("ep-") || !is_path_id(id) {
                return Err(format!(
                    "the id {id} does not begin with ep-, or has other signs than a-z, 0-9 and hyphens"
                ));
            }
            compute.host = compute.host.replacen(&compute.id, id, 1);
            compute.id.clone_from(id);
            key.1.clone_from(id);
            self.computes.insert(key.clone(), compute);
        }
        if let Some(compute) = self.compute_mut(&key) {
            compute.steps.clear();
            compute.last_active = declared.active.then_some(now);
            compute.started_at = declared.active.then_some(now);
            compute.state = if declared.active {
                State::Active
            } else {
                State::Idle
            };
        }
        // The compute counts as existing from the beginning, so it has no operations.
        self.forget_operations(project_id, 0);
        Ok(())
    }

    /// The organization or user with this id.
    pub(in crate::world) fn owner(&self, id: &str) -> Option<Owner> {
        match (
            self.head.organizations.contains_key(id),
            self.head.users.contains_key(id),
        ) {
            (true, _) => Some(Owner::Organization(id.to_owned())),
            (false, true) => Some(Owner::User(id.to_owned())),
            (false, false) => None,
        }
    }

    fn add_key(&mut self, path: &str, declared: &DeclaredKey) -> Result<(), WorldFileError> {
        let (reach, created_by) = self.declared_reach(path, declared)?;
        let token = declared
            .token
            .clone()
            .unwrap_or_else(|| self.head.generator.token());
        if self.keys.find(&token).is_some() {
            return fault(format!("{path}.token"), "another key has the same token");
        }
        let id = self.keys.next_id();
        self.keys.add(Key {
            id,
            token,
            name: declared.name.clone(),
            reach,
            created_by,
            created_at: self.now,
            last_used_at: None,
            last_used_from_addr: String::new(),
            revoked_at: None,
        });
        Ok(())
    }

    fn declared_reach(
        &self,
        path: &str,
        declared: &DeclaredKey,
    ) -> Result<(Reach, String), WorldFileError> {
        let organization = || match self.head.organizations.get(&declared.owner) {
            Some(organization) => match administrator(organization) {
                Some(by) => Ok((organization.id.clone(), by)),
                // Only an administrator can have created the key.
                None => fault(
                    format!("{path}.owner"),
                    format!("{} has no administrator", declared.owner),
                ),
            },
            None => fault(
                format!("{path}.owner"),
                format!("there is no organization {}", declared.owner),
            ),
        };
        match (declared.kind, &declared.project) {
            (DeclaredKeyKind::Personal, _) => match self.head.users.get(&declared.owner) {
                Some(user) => Ok((
                    Reach::Personal {
                        user: user.id.clone(),
                    },
                    user.id.clone(),
                )),
                None => fault(
                    format!("{path}.owner"),
                    format!("there is no user {}", declared.owner),
                ),
            },
            (DeclaredKeyKind::Organization, _) => {
                organization().map(|(organization, by)| (Reach::Organization { organization }, by))
            }
            (DeclaredKeyKind::Project, None) => fault(
                format!("{path}.project"),
                "a project-scoped key names its project",
            ),
            (DeclaredKeyKind::Project, Some(project)) => {
                let (organization, by) = organization()?;
                let reach = self.scope(organization, project.clone());
                let reach = reach.or_else(|_| {
                    fault(
                        format!("{path}.project"),
                        format!("the owner has no project {project}"),
                    )
                })?;
                Ok((reach, by))
            }
        }
    }
}

/// The recorded creator of the organization's keys; only administrators can create keys.
pub(in crate::world) fn administrator(organization: &Organization) -> Option<String> {
    organization
        .members
        .iter()
        .find(|(_, role)| **role == Role::Admin)
        .map(|(user, _)| user.clone())
}

impl DeclaredUser {
    fn build(&self) -> User {
        User {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            email: self
                .email
                .clone()
                .unwrap_or_else(|| format!("{}@example.com", self.id)),
            plan: self.plan,
        }
    }
}

impl DeclaredProject {
    /// The defaults for new computes must themselves be valid.
    fn check_defaults(&self, path: &str, rules: Rules) -> Result<(), WorldFileError> {
        if let Some(size) = self.default_size
            && let Err(refused) = judge(size.min.cu(), size.max.cu(), rules.plan, rules.profile)
        {
            return fault(
                format!("{path}.default_size"),
                Refusal::SizeRefused(refused).message(),
            );
        }
        if SUSPEND_RANGE.contains(&self.default_suspend_timeout_seconds) {
            Ok(())
        } else {
            fault(
                format!("{path}.default_suspend_timeout_seconds"),
                "it must be between -1 and 604800",
            )
        }
    }

    fn build(&self, path: &str, owner: Owner, now: Timestamp) -> Result<Project, WorldFileError> {
        path_id(path, &self.id)?;
        unique(
            &format!("{path}.branches"),
            self.branches.iter().map(|branch| &branch.id),
        )?;
        let marked = self.branches.iter().any(|branch| branch.default);
        let mut branches = BTreeMap::new();
        for (index, branch) in self.branches.iter().enumerate() {
            path_id(&format!("{path}.branches[{index}]"), &branch.id)?;
            let default = if marked { branch.default } else { index == 0 };
            let orphan = branch
                .parent
                .as_ref()
                .filter(|parent| !self.branches.iter().any(|other| other.id == **parent));
            if let Some(parent) = orphan {
                return fault(
                    format!("{path}.branches[{index}].parent"),
                    format!("there is no branch {parent}"),
                );
            }
            branches.insert(branch.id.clone(), branch.build(default, now));
        }
        let or = |given: &Option<String>, otherwise: &str| {
            given.clone().unwrap_or_else(|| otherwise.to_owned())
        };
        Ok(Project {
            id: self.id.clone(),
            name: or(&self.name, &self.id),
            owner,
            region_id: or(&self.region_id, DEFAULT_REGION),
            platform_id: or(&self.platform_id, DEFAULT_PLATFORM),
            provisioner: or(&self.provisioner, DEFAULT_PROVISIONER),
            pg_version: self.pg_version.unwrap_or(DEFAULT_PG_VERSION),
            locked: self.locked,
            cpu_used_sec: 0,
            branch_logical_size_limit: self.branch_logical_size_limit.unwrap_or(DEFAULT_SIZE_LIMIT),
            branches,
            database: Database::default(),
            settings: BTreeMap::new(),
            defaults: ComputeDefaults {
                range: self.default_size,
                suspend_timeout_seconds: self.default_suspend_timeout_seconds,
            },
            maintenance: Maintenance {
                window: self.maintenance_window.clone(),
                scheduled_for: self.maintenance_scheduled_for.clone(),
            },
            created_at: now,
            updated_at: now,
        })
    }
}

impl DeclaredBranch {
    fn build(&self, default: bool, now: Timestamp) -> Branch {
        Branch {
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            parent: self.parent.clone(),
            default,
            protected: self.protected,
            ..Branch::new(self.id.clone(), now)
        }
    }
}

fn unique<'a>(path: &str, ids: impl Iterator<Item = &'a String>) -> Result<(), WorldFileError> {
    let mut seen = BTreeSet::new();
    for (index, id) in ids.enumerate() {
        if id.is_empty() {
            return fault(format!("{path}[{index}].id"), "an id cannot be empty");
        }
        if !seen.insert(id) {
            return fault(
                format!("{path}[{index}].id"),
                format!("{id} is declared twice"),
            );
        }
    }
    Ok(())
}

/// Ids of declared objects must be usable in paths.
fn path_id(path: &str, id: &str) -> Result<(), WorldFileError> {
    if is_path_id(id) {
        Ok(())
    } else {
        fault(
            format!("{path}.id"),
            "an id has 1 to 60 lower case letters, digits and hyphens",
        )
    }
}

/// Compute ids are unique on the whole platform, not just in a project.
fn unique_computes(projects: &[DeclaredProject]) -> Result<(), WorldFileError> {
    let mut seen = BTreeSet::new();
    for (project_index, project) in projects.iter().enumerate() {
        for (index, compute) in project.computes.iter().enumerate() {
            if let Some(id) = compute.id.as_ref().filter(|id| !seen.insert(*id)) {
                return fault(
                    format!("projects[{project_index}].computes[{index}].id"),
                    format!("{id} is declared twice"),
                );
            }
        }
    }
    Ok(())
}
