//! When something is done to a compute: interruptions, regular restarts, scheduled settings.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::common::Duration;
use super::super::rules;
use super::{ScaleToZero, Size};

/// When changes that interrupt connections may be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::demand(
    "self.policy != 'Window' || has(self.window)",
    "policy Window needs to know when: add window",
))]
#[x_kube(validation = rules::demand(
    "self.policy == 'Window' || !has(self.window)",
    "window has no effect with this policy: remove it, or set policy: Window",
))]
#[x_kube(validation = rules::demand(
    "self.policy == 'WhenIdle' || !has(self.deadline)",
    "deadline has no effect with this policy: remove it, or set policy: WhenIdle",
))]
pub struct Disruption {
    /// Immediate (at once), WhenIdle (only while the compute is suspended; without a deadline, a change of one that never suspends waits forever) or Window (only while the window is open).
    pub policy: DisruptionPolicy,
    /// How long a change may wait for the compute to be idle, 1m to 8760h; after that it is made although it interrupts connections. Only with policy WhenIdle; no end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "8760h"))]
    pub deadline: Option<Duration>,
    /// The recurring maintenance window; required with policy Window and refused with any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// When changes that interrupt connections may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionPolicy {
    /// At once.
    #[default]
    Immediate,
    /// Only while the compute is suspended.
    WhenIdle,
    /// Only within a recurring window.
    Window,
}

/// A recurring window of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When the window opens, as a cron expression of five fields (minute, hour, day of month, month, day of week) by the rules of CronJob, such as 0 3 * * SUN.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub schedule: String,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// How long the window stays open, 1m to 24h. A change that begins while it is open may end later.
    #[x_kube(validation = rules::duration("1m", "24h"))]
    pub duration: Duration,
}

/// What is done regularly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// When the compute is restarted, so that one that never suspends gets the platform's updates.
    pub restart: MaintenanceRestart,
}

/// Regular restarts: one for each time of the schedule. None is made while the compute is idle, or when it has started anyway since the time before, as far as the platform shows that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceRestart {
    /// When to restart, as a cron expression of five fields (minute, hour, day of month, month, day of week) by the rules of CronJob, such as 0 3 * * SUN.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub schedule: String,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// So that many computes do not restart at once, each restarts later than the schedule says by a length of its own, which is always the same and shorter than this: 1m to 24h; at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "24h"))]
    pub jitter: Option<Duration>,
    /// How late a restart may be, because spec.disruption did not allow it or dbplane did not run; after that it is left out. 1m to 168h; 1h when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "168h"))]
    pub starting_deadline: Option<Duration>,
}

/// Settings that apply at recurring times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::exactly_one_of("end", "duration"))]
#[x_kube(validation = rules::demand(
    "has(self.size) || has(self.scaleToZero)",
    "the entry changes nothing: set size or scaleToZero",
))]
pub struct Schedule {
    /// What people call it, such as office-hours.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::entry_name())]
    pub name: String,
    /// When it begins to apply, as a cron expression of five fields by the rules of CronJob, such as 0 8 * * MON-FRI; L as the day is the last of the month.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub start: String,
    /// When it ceases to apply, as a cron expression of five fields by the rules of CronJob, such as 0 18 * * MON-FRI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub end: Option<String>,
    /// How long it applies, 1m to 744h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "744h"))]
    pub duration: Option<Duration>,
    /// IANA name of the time zone of start and end, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// The size meanwhile, in the place of spec.size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("fixed", "autoscaling"))]
    pub size: Option<Size>,
    /// The suspension meanwhile, in the place of spec.scaleToZero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("after", "never"))]
    pub scale_to_zero: Option<ScaleToZero>,
    /// Immediate: the changes of size to and from this entry are made at once, whatever spec.disruption says. When absent they wait as any other change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<ScheduledDisruption>,
}

/// When a scheduled change that interrupts connections is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScheduledDisruption {
    /// At once.
    Immediate,
}
