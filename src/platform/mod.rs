//! The platform: the port in domain terms, the adapters behind it, and what keeps the calls within the platform's limits.

mod budget;
mod fault;
mod model;
mod port;

pub use budget::{Budget, Jitter, Priority, Rate};
pub use fault::Fault;
pub use model::{
    Compute, ComputeChange, ComputeId, CredentialKind, KeyEntry, MintedKey, NewCompute, Operation, OrganizationId,
    Project, ProjectId, Role, Settings, SuspendAfter,
};
pub use port::{Answer, Platform};
