//! Databases, roles and connection URIs of a branch. Nothing listens there, and every role has the
//! same password.

use serde::Serialize;

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::Stamp;
use crate::world::model::{Branch, Compute, ComputeKind, Database, Project};
use crate::world::operations::pooled_host;
use crate::world::{Context, World};

const PASSWORD: &str = "simulated";

#[derive(Debug, Serialize)]
struct ConnectionUri {
    uri: String,
}

#[derive(Debug, Serialize)]
struct RolePassword {
    password: &'static str,
}

#[derive(Debug, Serialize)]
struct Schema {
    sql: &'static str,
}

#[derive(Debug, Serialize)]
struct DatabaseList<'a> {
    databases: [DatabaseShape<'a>; 1],
}

#[derive(Debug, Serialize)]
struct RoleList<'a> {
    roles: [RoleShape<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct DatabaseShape<'a> {
    id: u32,
    branch_id: &'a str,
    name: &'a str,
    owner_name: &'a str,
    created_at: Stamp,
    updated_at: Stamp,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct RoleShape<'a> {
    branch_id: &'a str,
    name: &'a str,
    /// Only in the answer to a creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'static str>,
    protected: bool,
    created_at: Stamp,
    updated_at: Stamp,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ConnectionShape<'a> {
    connection_uri: String,
    connection_parameters: ConnectionParameters<'a>,
}

#[derive(Debug, Serialize)]
struct ConnectionParameters<'a> {
    database: &'a str,
    password: &'static str,
    role: &'a str,
    host: &'a str,
    pooler_host: String,
}

/// The databases, roles and connection URIs in the answer to a branch creation.
#[derive(Debug, Serialize)]
pub(in crate::world) struct Access<'a> {
    databases: [DatabaseShape<'a>; 1],
    roles: [RoleShape<'a>; 1],
    connection_uris: Vec<ConnectionShape<'a>>,
}

impl World {
    /// The database and role of a new branch, with its connection URI if it has a compute.
    pub(in crate::world) fn access<'a>(
        &'a self,
        project: &'a Project,
        branch: &'a Branch,
    ) -> Access<'a> {
        let role = RoleShape {
            password: Some(PASSWORD),
            ..role(project, branch)
        };
        let compute = self.compute_to_connect(&project.id, &branch.id);
        let uris = compute.map(|compute| connection(&compute.host, &project.database));
        Access {
            databases: [database(project, branch)],
            roles: [role],
            connection_uris: uris.into_iter().collect(),
        }
    }

    /// The primary of a branch, or otherwise any of its computes.
    fn compute_to_connect(&self, project_id: &str, branch_id: &str) -> Option<&Compute> {
        let of_branch = self
            .computes_of(project_id)
            .filter(|compute| compute.config.branch_id == branch_id);
        of_branch.max_by_key(|compute| compute.kind == ComputeKind::ReadWrite)
    }

    pub(in crate::world) fn get_connection_uri(
        &self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let project = self.project(context)?;
        let request = context.request;
        let required = |name: &str| {
            request
                .query_value(name)
                .ok_or_else(|| Refusal::invalid(format!("{name} is required")))
        };
        let database = Database {
            name: required("database_name")?,
            role: required("role_name")?,
        };
        let default_branch = project.default_branch().map(|branch| branch.id.clone());
        let branch = request
            .query_value("branch_id")
            .or(default_branch)
            .unwrap_or_default();
        let compute = match request.query_value("endpoint_id") {
            Some(id) => self
                .computes_of(&project.id)
                .find(|compute| compute.id == id),
            None => self.compute_to_connect(&project.id, &branch),
        };
        let compute = compute.ok_or(Refusal::Absent { what: "endpoint" })?;
        // Some clients do not write booleans in lower case.
        let pooled = request
            .query_value("pooled")
            .is_some_and(|pooled| pooled.eq_ignore_ascii_case("true"));
        let host = if pooled {
            pooled_host(&compute.host)
        } else {
            compute.host.clone()
        };
        Ok(Reply::ok(&ConnectionUri {
            uri: uri(&host, &database),
        }))
    }

    pub(in crate::world) fn list_branch_databases(
        &self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let (project, branch) = self.branch(context)?;
        Ok(Reply::ok(&DatabaseList {
            databases: [database(project, branch)],
        }))
    }

    pub(in crate::world) fn list_branch_roles(
        &self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let (project, branch) = self.branch(context)?;
        Ok(Reply::ok(&RoleList {
            roles: [role(project, branch)],
        }))
    }

    pub(in crate::world) fn reveal_password(
        &self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        self.branch(context)?;
        Ok(Reply::ok(&RolePassword { password: PASSWORD }))
    }

    /// Databases are always empty.
    pub(in crate::world) fn get_branch_schema(
        &self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let (project, _) = self.branch(context)?;
        let name = context.request.query_value("db_name");
        if name.ok_or_else(|| Refusal::invalid("db_name is required"))? == project.database.name {
            Ok(Reply::ok(&Schema { sql: "" }))
        } else {
            Err(Refusal::Absent { what: "database" })
        }
    }
}

fn database<'a>(project: &'a Project, branch: &'a Branch) -> DatabaseShape<'a> {
    DatabaseShape {
        id: 1,
        branch_id: &branch.id,
        name: &project.database.name,
        owner_name: &project.database.role,
        created_at: Stamp(branch.created_at),
        updated_at: Stamp(branch.created_at),
    }
}

fn role<'a>(project: &'a Project, branch: &'a Branch) -> RoleShape<'a> {
    RoleShape {
        branch_id: &branch.id,
        name: &project.database.role,
        password: None,
        protected: false,
        created_at: Stamp(branch.created_at),
        updated_at: Stamp(branch.created_at),
    }
}

fn connection<'a>(host: &'a str, database: &'a Database) -> ConnectionShape<'a> {
    ConnectionShape {
        connection_uri: uri(host, database),
        connection_parameters: ConnectionParameters {
            database: &database.name,
            password: PASSWORD,
            role: &database.role,
            host,
            pooler_host: pooled_host(host),
        },
    }
}

fn uri(host: &str, database: &Database) -> String {
    format!(
        "postgresql://{}:{PASSWORD}@{host}/{}?sslmode=require",
        database.role, database.name
    )
}
