//! The record of restarts: the request for the last one, and the evidence to recognize its outcome.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{BranchId, Compute, ComputeUnits};

/// The last requested restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRecord {
    /// The token in the spec that is or was last carried out.
    pub token: String,
    /// The same for the annotation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    pub at: Timestamp,
    /// Nothing was started at that time: the resource was bound to an existing compute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
    /// The last handled time of spec.maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintained: Option<Maintained>,
    /// Present until the outcome of the call is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<BeforeRestart>,
    /// The calls since `at` without a visible effect on the compute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_vain: Option<InVain>,
}

impl RestartRecord {
    /// When the compute was started, as far as the record shows that.
    pub fn started(&self) -> Option<Timestamp> {
        (!self.noted && self.calling.is_none()).then_some(self.at)
    }
}

/// The progress on a schedule of regular restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintained {
    /// As declared, with its time zone. Another schedule starts from the beginning.
    pub schedule: String,
    /// The schedule is handled up to this time.
    pub time: Timestamp,
    /// When the restart for it began; absent if none was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
}

/// The compute before the call, which shows a later restart without comparing clocks. Also the
/// record before the call, which applies again if the call was not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeRestart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Its smallest and its largest size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(ComputeUnits, ComputeUnits)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// The platform's confirmation that it carries out the call. Absent without an answer, or if
    /// the answer is not from the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<RestartAnswer>,
    /// The settle time is over, and the compute's state may have other causes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// Absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<RestartRecord>>,
}

impl BeforeRestart {
    pub fn of(compute: &Compute, record: &RestartRecord) -> Self {
        Self {
            updated_at: compute.updated_at,
            started_at: compute.started_at,
            size: compute.settings.min.zip(compute.settings.max),
            branch: Some(compute.branch_id.clone()),
            answered: None,
            unclear: false,
            record: Some(Box::new(RestartRecord {
                calling: None,
                ..record.clone()
            })),
        }
    }

    /// Returns true if the compute has another size or branch now. Such a change stops it, whatever
    /// its origin.
    pub fn was_changed(&self, compute: &Compute) -> bool {
        let size = compute.settings.min.zip(compute.settings.max);
        self.size
            .zip(size)
            .is_some_and(|(before, now)| before != now)
            || self
                .branch
                .as_ref()
                .is_some_and(|before| *before != compute.branch_id)
    }
}

/// The evidence in the answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartAnswer {
    /// The call was accepted, and nothing more is known: the platform's description shows no body.
    Plainly,
    /// The answer names the compute, or operations on it.
    ForCompute,
}

/// Calls, answered or not, without a visible effect on the compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InVain {
    pub calls: u32,
    /// When the last call was made.
    pub at: Timestamp,
}
