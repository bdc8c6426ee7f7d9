//! The times of actions on a compute: interruptions, regular restarts and scheduled settings.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ScaleToZero, Size};
use crate::api::common::Duration;
use crate::api::rules;

/// When dbplane may make changes that interrupt connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::demand(
    "self.policy != 'Window' || has(self.window)",
    "policy Window needs to know when: add window",
))]
#[x_kube(validation = rules::demand(
    "!(self.policy in ['Immediate', 'WhenIdle']) || !has(self.window)",
    "window has no effect with this policy: remove it, or set policy: Window",
))]
#[x_kube(validation = rules::demand(
    "!(self.policy in ['Immediate', 'Window']) || !has(self.deadline)",
    "deadline has no effect with this policy: remove it, or set policy: WhenIdle",
))]
pub struct Disruption {
    /// Immediate (at once), WhenIdle (only while the compute is suspended) or Window (only while the window is open). With WhenIdle and without a deadline, changes of a compute that never suspends wait forever.
    pub policy: DisruptionPolicy,
    /// How long a change may wait for the compute to be idle, 1m to 8760h. After that, dbplane makes it although it interrupts connections. Only with policy WhenIdle; without a limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "8760h"))]
    pub deadline: Option<Duration>,
    /// The recurring maintenance window; required with policy Window and rejected with any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// When dbplane may make changes that interrupt connections.
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

/// A recurring time window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When the window opens, as a cron expression with the rules of CronJob, such as 0 3 * * SUN. It has five fields: minute, hour, day of month, month and day of week.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub schedule: String,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// How long the window stays open, 1m to 24h. A change that begins in the window may end after it.
    #[x_kube(validation = rules::duration("1m", "24h"))]
    pub duration: Duration,
}

/// Regular maintenance of a compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// When to restart the compute. A compute that never suspends gets the platform's updates this way.
    pub restart: MaintenanceRestart,
}

/// Regular restarts: one for each time of the schedule. dbplane skips a restart while the compute is idle, and if the platform shows that the compute has started since the previous scheduled time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceRestart {
    /// When to restart, as a cron expression with the rules of CronJob, such as 0 3 * * SUN. It has five fields: minute, hour, day of month, month and day of week.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub schedule: String,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// The upper limit of a delay, 1m to 24h, so that many computes do not restart at once. Each compute has its own delay, which is always the same. When absent, there is no delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "24h"))]
    pub jitter: Option<Duration>,
    /// How late a restart may be because spec.disruption did not allow it or dbplane did not run, 1m to 168h; 1h when absent. Later than that, dbplane skips it.
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
    /// A name for users, such as office-hours.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::entry_name())]
    pub name: String,
    /// When the entry begins to apply, as a cron expression of five fields with the rules of CronJob, such as 0 8 * * MON-FRI. L as the day is the last day of the month.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub start: String,
    /// When the entry stops applying, as a cron expression of five fields with the rules of CronJob, such as 0 18 * * MON-FRI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron(), validation = rules::cron_ranges())]
    pub end: Option<String>,
    /// How long the entry applies, 1m to 744h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "744h"))]
    pub duration: Option<Duration>,
    /// IANA name of the time zone of start and end, such as Europe/Berlin; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::time_zone())]
    pub time_zone: Option<String>,
    /// The size while the entry applies, instead of spec.size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("fixed", "autoscaling"))]
    pub size: Option<Size>,
    /// The suspension while the entry applies, instead of spec.scaleToZero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("after", "never"))]
    pub scale_to_zero: Option<ScaleToZero>,
    /// Immediate: dbplane makes the size changes to and from this entry at once, regardless of spec.disruption. When absent they wait like any other change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<ScheduledDisruption>,
}

/// When dbplane makes a scheduled change that interrupts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScheduledDisruption {
    /// At once.
    Immediate,
}
