//! The port: the calls that the controller makes to a platform, in domain terms.

use async_trait::async_trait;
use secrecy::SecretString;

use crate::domain::{
    BranchId, Compute, ComputeChange, ComputeId, CreatedKey, Fault, KeyEntry, KeyId, Listed,
    NewCompute, Operation, OrganizationId, Project, ProjectId,
};

/// The result of a change of a compute: the compute, if the answer contains it, and the operations
/// that were started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeAnswer {
    pub compute: Option<Compute>,
    pub operations: Vec<Operation>,
}

/// One platform, called with one credential.
///
/// Every method makes at most one request that changes something, never retries a change, and
/// reports failures as a [`Fault`]. An unreadable entry of a list is no failure: [`Listed`] shows
/// what it proves. Not every platform offers the last three methods: they return
/// [`Fault::Unsupported`] there.
#[async_trait]
pub trait Platform: Send + Sync + std::fmt::Debug {
    /// All projects that the credential can list, from all pages.
    async fn list_projects(&self) -> Result<Listed<Project>, Fault>;
    /// All computes of a project.
    async fn list_computes(&self, project: &ProjectId) -> Result<Listed<Compute>, Fault>;
    /// Checks with its own request if a compute exists. Changes nothing.
    async fn has_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<bool, Fault>;
    /// Checks if a branch exists. Only a plan asks: a create without its branch is refused anyway.
    async fn has_branch(&self, _project: &ProjectId, _branch: &BranchId) -> Result<bool, Fault> {
        Err(Fault::Unsupported {
            status: 404,
            message: "branches are not listed".to_owned(),
        })
    }
    /// Creates a compute, and returns it with the operations that were started. Not idempotent.
    async fn create_compute(
        &self,
        project: &ProjectId,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault>;
    /// Changes the named attributes of a compute.
    async fn update_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
        change: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault>;
    /// Deletes a compute. An already deleted one is a success if the platform answers 204.
    async fn delete_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<(), Fault>;
    /// Restarts a compute, which interrupts connections.
    async fn restart_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<ChangeAnswer, Fault>;
    /// Creates a project-scoped key of an organization. Not idempotent. The secret is returned only
    /// this once. A key with another name or project than requested is [`Fault::OtherKey`].
    async fn create_key(
        &self,
        organization: &OrganizationId,
        name: &str,
        project: &ProjectId,
    ) -> Result<CreatedKey, Fault>;
    /// Checks if the platform accepts another secret for the project. `Ok` means that it does. A
    /// fault other than a refusal or [`Fault::Unauthorized`] proves nothing.
    async fn probe_key(&self, secret: &SecretString, project: &ProjectId) -> Result<(), Fault>;

    /// The operations of a compute among the latest ones of its project, newest first.
    async fn list_operations(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<Listed<Operation>, Fault>;
    /// All keys of the organization.
    async fn list_keys(&self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault>;
    /// Revokes a key of the organization permanently.
    async fn revoke_key(&self, organization: &OrganizationId, id: KeyId) -> Result<(), Fault>;
}

/// A client of the platform that keeps to its account's budget.
pub trait PlatformClient: Platform + Clone + 'static {
    /// The same client, which sends requests even after the platform refused its key.
    #[must_use]
    fn probing(&self) -> Self;
    /// The same client, for one call that already has its place in the budget.
    #[must_use]
    fn with_place(&self) -> Self;
    /// The same client, for calls of this namespace. In the budget, namespaces take turns.
    #[must_use]
    fn for_namespace(&self, namespace: &str) -> Self;
    /// Call this when the platform has refused the key for so long that it is no longer only in
    /// doubt.
    fn refused(&self);
    /// The reason why no calls are made, while the platform refuses the key.
    fn suspended(&self) -> Option<Fault>;
    /// True if there is another clone of this client, which may still call the platform with its
    /// key.
    fn is_held_elsewhere(&self) -> bool;
}
