//! The platform over HTTP: [`HttpPlatform`].
//!
//! Each method sends at most one request that changes something. This module decides what a fault
//! means for a change: only a refusal or a failed connection prove that nothing was done.

mod address;
mod endpoint;
mod exchange;
mod list;
mod missing;
mod reads_only;
mod refusal;
mod special;
mod text;
mod transport;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::Method;
use secrecy::SecretString;
use serde::Serialize;

use self::exchange::{Body, Call, Exchange, not_sent};
use self::list::List;
use self::missing::{is_missing, is_plain_missing, missing_call};
use self::text::{described, has_form};
use self::wire::{ChangeBody, CreateBody, CreateKeyBody, DecodeError};
use super::{Budget, ChangeAnswer, ConnectError, Endpoint, FOR, Platform, Priority, Room};
use crate::domain::{
    BranchId, Compute, ComputeChange, ComputeId, CreatedKey, Fault, Form, KeyEntry, KeyId, Listed,
    NewCompute, Operation, OrganizationId, Project, ProjectId, Shown,
};
use crate::spans;

pub use self::reads_only::{ReadAnswer, ReadsOnly};
pub use self::text::{replace_runs, without_tokens};
pub use self::transport::{Clients, Transport, Unanswered, client_error};

/// Sent once a platform pages its projects. Its own default may be as small as ten.
const PROJECTS_A_PAGE: &str = "400";
/// Concurrent passes each hold a branch's computes in memory. The platform documents no limit.
const MOST_ON_A_BRANCH: usize = 1000;
/// Enough to contain those of one compute; further pages are not read.
const OPERATIONS: &str = "100";

/// Options of the client, besides its endpoint and its credential.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// For connecting, including TLS; at most half of the request timeout.
    pub connect_timeout: Duration,
    /// For a whole request, until the last byte of the answer.
    pub request_timeout: Duration,
    /// The platform's name for the type of a read replica.
    pub replica_type: String,
    /// Use HTTPS_PROXY and similar variables.
    pub environment_proxies: bool,
    /// For a Retry-After that is a date, if the answer has no Date header.
    pub clock: fn() -> Timestamp,
    /// The memory limit of the namespace: large answers are read in turn.
    pub room: Arc<Room>,
    /// Connections, which accounts with the same options share.
    pub clients: Clients,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            replica_type: "read_only".to_owned(),
            environment_proxies: true,
            clock: crate::clock::now,
            room: Arc::default(),
            clients: Clients::default(),
        }
    }
}

/// A platform that is called over HTTP with one API key. Connections are reused.
///
/// Create one per account and keep it until its key or address changes. Keeping it is cheap.
#[derive(Debug)]
pub struct HttpPlatform {
    exchange: Exchange,
    replica_type: String,
    budget: Option<Arc<Budget>>,
}

impl HttpPlatform {
    /// A client for the platform at `endpoint`. White space around `secret` is dropped.
    ///
    /// # Errors
    /// If the base URL or the key is unusable. Nothing is sent.
    pub fn new(
        endpoint: Endpoint,
        secret: SecretString,
        options: &HttpOptions,
    ) -> Result<Self, ConnectError> {
        Ok(Self::with(
            Exchange::new(&endpoint, &secret, options)?,
            options,
        ))
    }

    /// The same over a transport other than the network.
    ///
    /// # Errors
    /// If the base URL or the key is unusable.
    pub fn over(
        transport: Arc<dyn Transport>,
        endpoint: Endpoint,
        secret: &SecretString,
        options: &HttpOptions,
    ) -> Result<Self, ConnectError> {
        Ok(Self::with(
            Exchange::over(transport, &endpoint, secret, options)?,
            options,
        ))
    }

    fn with(exchange: Exchange, options: &HttpOptions) -> Self {
        Self {
            exchange,
            replica_type: options.replica_type.clone(),
            budget: None,
        }
    }

    /// Further requests of a call use `budget`: more pages, and reads that clarify an answer.
    #[must_use]
    pub fn sharing(self, budget: Arc<Budget>) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    async fn further_request(&self) {
        if let Some(budget) = &self.budget {
            let priority = Priority::FreshRead;
            let party = FOR.try_with(Clone::clone).unwrap_or_default();
            spans::budget(priority.name(), budget.acquire(priority, &party)).await;
        }
    }

    fn undecodable(&self, error: DecodeError) -> Fault {
        self.exchange.unreadable(&error.path, &error.message)
    }

    async fn change(
        &self,
        method: Method,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<Result<Body, Fault>, Fault> {
        let body = serde_json::to_vec(body)
            .map_err(|_| not_sent("the request cannot be written as JSON"))?;
        let call = Call {
            body: Some(body),
            ..Call::new(method, segments)
        };
        self.exchange.send(call).await
    }

    /// Another body, such as a login page, is a gateway's: the platform may not have been reached.
    fn of_the_platform(&self, body: &[u8]) -> Result<(), Fault> {
        if has_form(body) {
            Ok(())
        } else {
            Err(self.exchange.unreadable("the body", described(body)))
        }
    }

    /// The answer to a change of a compute.
    fn answer(&self, body: &[u8], project: &ProjectId) -> Result<ChangeAnswer, DecodeError> {
        let answer = wire::answer(body, project)?;
        let operations = answer
            .operations
            .into_iter()
            .map(|operation| self.exchange.tidied(operation))
            .collect();
        Ok(ChangeAnswer {
            operations,
            ..answer
        })
    }

    async fn read_keys(&self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        let list = List {
            of: format!("API keys of organization {organization}"),
            remedy: "Revoke keys that nobody needs",
            segments: &["organizations", organization, "api_keys"],
            limit: None,
        };
        self.pages(list, wire::keys, |key| key.id.to_string())
            .await
            .map_err(missing_call)
    }
}

#[async_trait]
impl Platform for HttpPlatform {
    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        let list = List {
            of: "projects".to_owned(),
            remedy: "Use an API key that reaches fewer projects",
            segments: &["projects"],
            limit: Some(PROJECTS_A_PAGE),
        };
        self.pages(list, wire::projects, |project| project.id.to_string())
            .await
    }

    async fn list_computes(&self, project: &ProjectId) -> Result<Listed<Compute>, Fault> {
        let list = List {
            of: format!("computes of project {project}"),
            remedy: "Delete computes that nobody needs, or divide them among several projects",
            segments: &["projects", project, "endpoints"],
            limit: None,
        };
        let listed = self
            .pages(
                list,
                |body| wire::computes(body, project),
                |compute| compute.id.to_string(),
            )
            .await?;
        let (mut computes, unreadable) = listed.into_parts();
        // If a list shifts while its pages are read, a compute appears twice: the later page wins.
        computes.reverse();
        computes.sort_by(|one, other| one.id.cmp(&other.id));
        computes.dedup_by(|other, one| other.id == one.id);
        let mut branches = HashMap::<&str, usize>::new();
        for compute in &computes {
            *branches.entry(&compute.branch_id).or_default() += 1;
        }
        match branches.into_values().max() {
            Some(most) if most > MOST_ON_A_BRANCH => Err(Fault::TooLarge {
                message: format!(
                    "a branch of project {project} has {most} computes, and dbplane reads lists with {MOST_ON_A_BRANCH} at most. \
                     Delete computes that nobody needs"
                ),
            }),
            _ => Ok(Listed::new(computes, unreadable)),
        }
    }

    async fn has_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<bool, Fault> {
        let answered = self.shows_compute(project, compute).await;
        if !is_plain_missing(&answered) {
            return answered;
        }
        self.further_request().await;
        self.list_computes(project).await?;
        self.further_request().await;
        match self.shows_compute(project, compute).await {
            again if is_plain_missing(&again) => Ok(false),
            other => other,
        }
    }

    async fn has_branch(&self, project: &ProjectId, branch: &BranchId) -> Result<bool, Fault> {
        let list = List {
            of: format!("branches of project {project}"),
            remedy: "Delete branches that nobody needs",
            segments: &["projects", project, "branches"],
            limit: None,
        };
        let listed = self
            .pages(list, wire::branches, BranchId::to_string)
            .await
            .map_err(missing_call)?;
        match listed.find(Some(branch), |listed| listed == branch) {
            Shown::Entry(_) => Ok(true),
            Shown::Absent => Ok(false),
            Shown::Unclear(entry) => Err(self.exchange.unreadable(
                "the list of branches",
                &format!("an entry that may be branch {branch}: {entry}"),
            )),
        }
    }

    async fn create_compute(
        &self,
        project: &ProjectId,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        let segments: [&str; 3] = ["projects", project, "endpoints"];
        let body = self
            .change(
                Method::POST,
                &segments,
                &CreateBody::new(new, &self.replica_type),
            )
            .await??;
        let answer = self
            .answer(&body, project)
            .map_err(|error| self.undecodable(error))?;
        match answer.compute {
            Some(compute) => Ok((compute, answer.operations)),
            None => Err(self.exchange.unreadable("endpoint", "missing")),
        }
    }

    async fn update_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
        change: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault> {
        let segments: [&str; 4] = ["projects", project, "endpoints", compute];
        let body = self
            .change(Method::PATCH, &segments, &ChangeBody::from(change))
            .await??;
        if body.is_empty() {
            return Ok(ChangeAnswer::default());
        }
        self.answer(&body, project)
            .map_err(|error| self.undecodable(error))
    }

    async fn delete_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<(), Fault> {
        let segments: [&str; 4] = ["projects", project, "endpoints", compute];
        let body = self
            .exchange
            .send(Call::new(Method::DELETE, &segments))
            .await?;
        // A lost body does not change the result.
        body.map_or(Ok(()), |body| self.of_the_platform(&body))
    }

    async fn restart_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<ChangeAnswer, Fault> {
        let segments: [&str; 5] = ["projects", project, "endpoints", compute, "restart"];
        let body = self
            .exchange
            .send(Call::new(Method::POST, &segments))
            .await??;
        self.of_the_platform(&body)?;
        Ok(self.answer(&body, project).unwrap_or_default())
    }

    async fn create_key(
        &self,
        organization: &OrganizationId,
        name: &str,
        project: &ProjectId,
    ) -> Result<CreatedKey, Fault> {
        let body = CreateKeyBody {
            key_name: name,
            project_id: project,
        };
        let segments: [&str; 3] = ["organizations", organization, "api_keys"];
        let answer = self.change(Method::POST, &segments, &body).await??;
        let key = wire::created(&answer, name).map_err(|error| self.undecodable(error))?;
        match wire::difference(&key, name, project) {
            None => Ok(key),
            Some(difference) => Err(Fault::OtherKey {
                id: key.id,
                message: difference.to_owned(),
            }),
        }
    }

    async fn probe_key(&self, secret: &SecretString, project: &ProjectId) -> Result<(), Fault> {
        let segments: [&str; 3] = ["projects", project, "endpoints"];
        let exchange = self.exchange.with_secret(secret);
        match exchange.send(Call::get(&segments)).await? {
            Ok(body) => wire::computes(&body, project)
                .map(drop)
                .map_err(|error| self.undecodable(error)),
            Err(Fault::TooLarge { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    async fn list_operations(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<Listed<Operation>, Fault> {
        let segments: [&str; 3] = ["projects", project, "operations"];
        let call = Call {
            query: &[("limit", OPERATIONS)],
            ..Call::get(&segments)
        };
        let body = self.exchange.send(call).await.map_err(missing_call)??;
        let listed = wire::operations(&body).map_err(|error| self.undecodable(error))?;
        let (operations, unreadable) = listed.into_parts();
        let of_compute = operations
            .into_iter()
            .filter(|operation| operation.compute_id.as_ref() == Some(compute));
        Ok(Listed::new(
            of_compute
                .map(|operation| self.exchange.tidied(operation))
                .collect(),
            unreadable,
        ))
    }

    async fn list_keys(&self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        let answered = self.read_keys(organization).await;
        if !is_plain_missing(&answered) {
            return answered;
        }
        self.further_request().await;
        let projects = self.list_projects().await;
        if projects.as_ref().is_err_and(|fault| !fault.is_refusal()) {
            return answered;
        }
        self.further_request().await;
        self.read_keys(organization)
            .await
            .map_err(|fault| match fault {
                Fault::Gateway {
                    status,
                    form: Form::Text,
                    message,
                } if is_missing(status) => Fault::Unsupported { status, message },
                fault => fault,
            })
    }

    async fn revoke_key(&self, organization: &OrganizationId, id: KeyId) -> Result<(), Fault> {
        let id_text = id.to_string();
        let segments: [&str; 4] = ["organizations", organization, "api_keys", &id_text];
        match self
            .exchange
            .send(Call::new(Method::DELETE, &segments))
            .await
        {
            Ok(Ok(body)) if body.is_empty() => Ok(()),
            Ok(body) => match body.ok().and_then(|body| wire::revoked(&body)) {
                Some(true) => Ok(()),
                Some(false) => Err(not_revoked(
                    "the answer to the revocation says that the key is not revoked",
                )),
                None if self.is_listed(organization, id).await? => Err(not_revoked(
                    "the answer to the revocation is unreadable, and the key is still listed",
                )),
                None => Ok(()),
            },
            Err(missing) if missing.is_missing() => {
                Err(self.explain_missing(organization, id, missing).await)
            }
            Err(fault) => Err(fault),
        }
    }
}

fn not_revoked(message: &str) -> Fault {
    Fault::Rejected {
        status: 200,
        message: message.to_owned(),
    }
}
