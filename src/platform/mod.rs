//! The platform: the port in domain terms, the adapters behind it, and what keeps the calls within the platform's limits.

mod budget;
#[cfg(test)]
mod fake;
mod fault;
mod governed;
mod http;
mod model;
mod observer;
mod port;
mod wire;

pub use budget::{Budget, Jitter, Priority, Rate};
pub use fault::Fault;
pub use governed::{Admitted, Governed, Meter, NoMeter};
pub use http::{Endpoint, EndpointError, HttpOptions, HttpPlatform, Transport, Unanswered};
pub use model::{
    Compute, ComputeChange, ComputeId, CredentialKind, KeyEntry, MintedKey, NewCompute, Operation, OrganizationId,
    Project, ProjectId, Role, Settings, SuspendAfter,
};
pub use observer::{Interest, Observers, Reading, Source, Tick, View};
pub use port::{Answer, Platform};
