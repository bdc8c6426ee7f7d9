//! The custom resources of group `dbplane.dev`: types, validation rules and printer columns; no logic.
//!
//! References and unions are atomic: whoever applies one owns all of it, so that switching from one alternative to the other
//! needs no removal of the first. (`MapMerge`, also for structs: a definition has `x-kubernetes-map-type` only.)
//!
//! The doc comments are what `kubectl explain` prints, so they are written for the person who writes a manifest.

// The lint takes the parts of one kube attribute for attributes of their own.
#![allow(clippy::duplicated_attributes)]

mod account;
mod common;
mod compute;
mod project_key;
mod read_replica_set;
mod rules;
mod schema;
mod units;

pub use account::{
    Account, AccountCapabilities, AccountSpec, AccountStatus, ClusterAccount, ClusterAccountSpec, ClusterSecretKeyRef,
    MassDeletionPolicy, NamespaceAccess, PlatformAccess, RateLimit, SecretKeyRef, SeenProjects,
};
pub use common::{AccountKind, AccountRef, Condition, Duration, ObjectMeta};
pub use compute::{
    Autoscaling, Capacity, Compute, ComputeSpec, ComputeStatus, ComputeType, Connection, CredentialsFrom, Deletion,
    Disruption, DisruptionPolicy, Existing, IgnoredField, LastOperation, Maintenance, MaintenanceRestart,
    MaintenanceStatus, Management, NotApplied, OnMissing, Pooler, PoolerMode, RestartStatus, ScaleToZero, Schedule,
    ScheduleStatus, ScheduledDisruption, ServiceBinding, Size, WaitingChanges, Window,
};
pub use project_key::{
    KeyDeletion, KeyRecord, KeySecret, OnRevoked, ProjectKey, ProjectKeySpec, ProjectKeyStatus, RevokePrevious,
    Rotation,
};

pub use read_replica_set::{
    ReadReplicaSet, ReadReplicaSetSpec, ReadReplicaSetStatus, ReplicaMetadata, ReplicaSelector, ReplicaSpec,
    ReplicaStrategy, ReplicaTemplate, Share,
};

/// The API group of every resource, and the prefix of every annotation, label and finalizer.
pub const GROUP: &str = "dbplane.dev";
