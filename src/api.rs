//! The custom resources of group `dbplane.dev`: types, validation rules and printer columns,
//! without logic.
//!
//! References and unions are atomic: the field manager that applies one owns all its fields. A user
//! can therefore switch from one alternative to the other without removing the first. (Structs use
//! `MapMerge` too, because a definition only has `x-kubernetes-map-type`.)
//!
//! `kubectl explain` prints the doc comments, so they address the author of a manifest.

// The lint mistakes the parts of one kube attribute for separate attributes.
#![allow(clippy::duplicated_attributes)]

mod account;
mod common;
mod compute;
mod known;
mod project_key;
mod read_replica_set;
mod rules;
mod schema;
mod units;

pub use account::{
    Account, AccountCapabilities, AccountSpec, AccountStatus, ClusterAccount, ClusterAccountSpec,
    ClusterSecretKeyRef, MassDeletionPolicy, NamespaceAccess, PlatformAccess, RateLimit,
    SecretKeyRef, SeenProjects,
};
pub use common::{AccountKind, AccountRef, Condition, Duration, ObjectMeta};
pub use compute::{
    Autoscaling, Capacity, Compute, ComputeSpec, ComputeStatus, ComputeType, Connection,
    CredentialsFrom, Deletion, Disruption, DisruptionPolicy, Existing, IgnoredField, LastOperation,
    Maintenance, MaintenanceRestart, MaintenanceStatus, Management, NotApplied, OnMissing, Pooler,
    PoolerMode, RestartStatus, ScaleToZero, Schedule, ScheduleStatus, ScheduledDisruption,
    ServiceBinding, Size, WaitingChanges, Window,
};
pub use known::{ApiObject, Incomplete, Known, Parsed, Uid, is_namespaced};
pub use project_key::{
    KeyDeletion, KeyRecord, KeySecret, OnRevoked, ProjectKey, ProjectKeySpec, ProjectKeyStatus,
    RevokePrevious, Rotation,
};

pub use read_replica_set::{
    ReadReplicaSet, ReadReplicaSetSpec, ReadReplicaSetStatus, ReplicaMetadata, ReplicaSelector,
    ReplicaSpec, ReplicaStrategy, ReplicaTemplate, Share,
};
pub use rules::choices;

/// The API group of every resource, and the prefix of every annotation, label and finalizer.
pub const GROUP: &str = "dbplane.dev";
