//! The side effects of a Compute.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::decide::connection::ConnectionSecret;
use crate::decide::identity::{Binding, CreateIntent, RestartRecord};
use crate::domain::{ComputeChange, ComputeId, NewCompute};

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeStep {
    /// Write intent and finalizer, create, bind. `seen` is when the list behind it began.
    Create {
        intent: CreateIntent,
        new: Box<NewCompute>,
        restart: RestartRecord,
        seen: Timestamp,
    },
    /// Record the binding, the creates that stay unanswered, and those that have made a compute.
    /// `restored` if the record of a backup named the compute.
    Bind {
        binding: Binding,
        restart: RestartRecord,
        unanswered: Vec<CreateIntent>,
        made: Vec<CreateIntent>,
        restored: bool,
    },
    /// Remove the intent: its create was not carried out, or dbplane no longer waits for it.
    DropIntent {
        unanswered: Vec<CreateIntent>,
    },
    /// Record the binding with the compute's current branch.
    RecordBinding {
        binding: Binding,
    },
    RecordUnanswered {
        unanswered: Vec<CreateIntent>,
    },
    /// Record the computes that a create made in addition, and when each was first named.
    RecordTwins {
        twins: BTreeMap<ComputeId, Timestamp>,
    },
    /// Write the finalizer again, so that the resource stays until its compute is deleted or
    /// orphaned. Also write the copy of the record if it is lost.
    Restore {
        record: Option<String>,
    },
    /// Change a compute; `parts` is the change for each field. `drift` if somebody else changed a
    /// setting that was in force. A change that interrupts connections also makes the requested
    /// restart, which is recorded before and after it.
    Change {
        id: ComputeId,
        change: ComputeChange,
        parts: BTreeMap<String, ComputeChange>,
        because: String,
        drift: bool,
        restart: Option<RestartRecord>,
    },
    /// Write the restart record, call the platform, complete the record.
    Restart {
        id: ComputeId,
        record: RestartRecord,
    },
    /// Record a restart that needs no call, or the outcome of a call. `restarted` is the compute
    /// that was seen to restart.
    RecordRestart {
        record: RestartRecord,
        restarted: Option<ComputeId>,
    },
    /// Write the connection Secret, and remove the entries in `without`.
    WriteConnection {
        secret: Box<ConnectionSecret>,
        without: BTreeSet<String>,
    },
    /// Read one compute that the platform's list lacks.
    Ask {
        id: ComputeId,
    },
    /// Read the operations of a compute that takes long, or whose operation has failed.
    AskOperations {
        id: ComputeId,
    },
    Delete {
        id: ComputeId,
    },
    /// Delete a compute that a create made in addition to the bound one. The resource stays.
    DeleteTwin {
        id: ComputeId,
    },
    RemoveFinalizer,
    /// Emit an event about possible own computes that stay, then remove the finalizer.
    RemoveFinalizerReportingStrays {
        event: String,
    },
    /// Emit an event that the project is gone, then remove the finalizer.
    ReleaseWithProject {
        event: String,
    },
}
