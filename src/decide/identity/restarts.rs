//! What is recorded of restarts: what asked for the last one, and what its call rests on until the outcome is known.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{Compute, ComputeUnits};

/// The restart that was asked for last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRecord {
    /// The spec's token that is being carried out, or was carried out last.
    pub token: String,
    /// The same for the annotation that people set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    pub at: Timestamp,
    /// Nothing was started at that time: the resource was bound to a compute that was there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
    /// The last time of spec.maintenance that is done with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintained: Option<Maintained>,
    /// Present until the outcome of the call is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<BeforeRestart>,
    /// The calls since `at` that the compute shows nothing of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_vain: Option<InVain>,
}

impl RestartRecord {
    /// When the compute was started, as far as the record shows that.
    pub fn started(&self) -> Option<Timestamp> {
        (!self.noted && self.calling.is_none()).then_some(self.at)
    }
}

/// How far a schedule of regular restarts has been followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintained {
    /// As it is declared, with its time zone: another schedule begins anew.
    pub schedule: String,
    /// Up to this time of the schedule.
    pub time: Timestamp,
    /// When the restart for it was begun; absent where none was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
}

/// The compute before the call: what a restart is recognized by later, without comparing clocks. And the record before it, which
/// applies again where the call was not carried out.
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
    pub branch: Option<String>,
    /// How the platform has answered that it carries the call out; absent where it has not, or what answered is not the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// The settle time is over, and what the compute shows may have other causes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// Absent in what earlier versions recorded.
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
            record: Some(Box::new(RestartRecord { calling: None, ..record.clone() })),
        }
    }

    /// Whether the compute has another size or another branch now: that stops it, whoever has changed it.
    pub fn was_changed(&self, compute: &Compute) -> bool {
        let size = compute.settings.min.zip(compute.settings.max);
        self.size.zip(size).is_some_and(|(before, now)| before != now)
            || self.branch.as_ref().is_some_and(|before| *before != compute.branch_id)
    }
}

/// What the answer to a call shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answered {
    /// That it was accepted, and nothing more: the platform's description shows no body.
    Plainly,
    /// It names the compute, or operations on it.
    ForCompute,
}

/// Calls that were answered, or not, and that the compute shows nothing of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InVain {
    pub calls: u32,
    /// When the last one was made.
    pub at: Timestamp,
}
