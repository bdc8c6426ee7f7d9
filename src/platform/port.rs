//! The port: what the controller asks of a platform, in domain terms.

use async_trait::async_trait;
use secrecy::SecretString;

use crate::domain::{
    Compute, ComputeChange, ComputeId, CreatedKey, Fault, KeyEntry, Listed, NewCompute, Operation, Project,
};

/// What a change of a compute returned: the compute where the answer held one, and the operations it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub compute: Option<Compute>,
    pub operations: Vec<Operation>,
}

/// One platform, called with one credential.
///
/// Every method makes at most one request that changes something, never retries a change by itself, and reports failures as
/// a [`Fault`]. A list of which an entry cannot be read is no failure: [`Listed`] says what it proves. The last three are not offered by every platform: they answer [`Fault::Unsupported`] there.
#[async_trait]
pub trait Platform: Send + Sync + std::fmt::Debug {
    /// All projects that the credential can list; pages are followed.
    async fn list_projects(&self) -> Result<Listed<Project>, Fault>;
    /// All computes of a project.
    async fn list_computes(&self, project: &str) -> Result<Listed<Compute>, Fault>;
    /// Whether a compute exists, by a request for it alone. Changes nothing.
    async fn has_compute(&self, project: &str, compute: &str) -> Result<bool, Fault>;
    /// Creates a compute, and returns it with the operations that this started. Not idempotent.
    async fn create_compute(&self, project: &str, new: &NewCompute) -> Result<(Compute, Vec<Operation>), Fault>;
    /// Changes the named attributes of a compute.
    async fn update_compute(&self, project: &str, compute: &str, change: &ComputeChange) -> Result<Answer, Fault>;
    /// Deletes a compute. One that is already gone is a success where the platform says so with 204.
    async fn delete_compute(&self, project: &str, compute: &ComputeId) -> Result<(), Fault>;
    /// Restarts a compute; connections are interrupted.
    async fn restart_compute(&self, project: &str, compute: &ComputeId) -> Result<Answer, Fault>;
    /// Creates a project-scoped key of an organization. Not idempotent, and the secret is shown this once. What is
    /// returned is what was asked for: another name or project is [`Fault::OtherKey`].
    async fn create_key(&self, organization: &str, name: &str, project: &str) -> Result<CreatedKey, Fault>;
    /// Asks, with another secret than this credential, whether the platform accepts it for the project. `Ok` means that it does; a
    /// fault that is neither a refusal nor [`Fault::Unauthorized`] shows nothing.
    async fn probe_key(&self, secret: &SecretString, project: &str) -> Result<(), Fault>;

    /// The operations of a compute among the last ones of its project, newest first.
    async fn list_operations(&self, project: &str, compute: &str) -> Result<Listed<Operation>, Fault>;
    /// All keys of the organization.
    async fn list_keys(&self, organization: &str) -> Result<Listed<KeyEntry>, Fault>;
    /// Revokes a key of the organization, for ever.
    async fn revoke_key(&self, organization: &str, id: i64) -> Result<(), Fault>;
}

/// A client of the platform that keeps to its account's budget.
pub trait PlatformClient: Platform + Clone + 'static {
    /// The same client, which asks although the platform refused its key before.
    #[must_use]
    fn probing(&self) -> Self;
    /// The same client for one call that has its place in the budget already.
    #[must_use]
    fn with_place(&self) -> Self;
    /// The same client, whose calls are made for the resources of this namespace: in the budget, namespaces take turns.
    #[must_use]
    fn for_namespace(&self, namespace: &str) -> Self;
    /// The platform has refused the key for so long that it counts as refused, and not as in doubt.
    fn refused(&self);
    /// Why no calls are made, while the platform refuses the key.
    fn suspended(&self) -> Option<Fault>;
    /// Whether somebody else has a view of this client, and may still call the platform with its key.
    fn is_held_elsewhere(&self) -> bool;
}
