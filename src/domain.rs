//! The platform's objects and faults as plain data, in the platform's terms. Decisions and the port
//! use them. This is the lowest module: it imports no other.

mod compute_state;
mod fault;
mod id;
mod last_use;
mod listed;
mod model;
mod support;
mod units;

pub use compute_state::ComputeState;
pub use fault::{Fault, Form, NO_REASON};
pub use id::{BranchId, ComputeId, KeyId, OrganizationId, ProjectId};
pub use last_use::is_same_use;
pub use listed::{Listed, Shown, Unreadable, UnreadableEntry};
pub use model::{
    Compute, ComputeChange, CreatedKey, KeyEntry, NewCompute, Operation, PoolingMode,
    PostgresSettings, Project, Role, Settings, SuspendAfter,
};
pub use support::{NameSupport, Support};
pub use units::{COMPUTE_SIZES, ComputeUnits};
