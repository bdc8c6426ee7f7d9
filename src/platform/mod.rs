//! The platform: the port in domain terms, the adapters behind it, and what keeps the calls within the platform's limits.

mod budget;
#[cfg(test)]
mod fake;
mod fault;
mod http;
mod model;
mod observer;
mod port;
mod rate_limited;
mod wire;

pub use budget::{Budget, Jitter, Priority, Rate};
pub use fault::Fault;
pub use http::{Endpoint, EndpointError, HttpOptions, HttpPlatform, Transport, Unanswered};
pub use model::{
    Compute, ComputeChange, ComputeId, CreatedKey, CredentialKind, KeyEntry, NewCompute, Operation, OrganizationId,
    Project, ProjectId, Role, Settings, SuspendAfter,
};
pub use observer::{Interest, LatestSnapshot, Observers, Snapshot, Source, Tick};
pub use port::{Answer, Platform};
pub use rate_limited::{Admitted, Meter, NoMeter, RateLimited};
