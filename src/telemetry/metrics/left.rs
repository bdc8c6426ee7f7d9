//! What is left of a budget, read back from the metrics of a running operator.

use std::fmt;

use serde::Serialize;

pub(super) const REQUESTS_LEFT: &str = "budget_requests_left";
/// In seconds, which the exposed name says too.
pub(super) const PAUSE: &str = "budget_pause";

pub(super) const LEADER: &str = "leader";

/// Whether these metrics are of the process that leads: another one has no budgets. `None` where they are not dbplane's.
pub fn is_of_leader(metrics: &str) -> Option<bool> {
    let start = format!("dbplane_{LEADER} ");
    Some(metrics.lines().find_map(|line| line.strip_prefix(&start))? == "1")
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLeft {
    /// That may be made at once; none during a pause.
    pub requests: u32,
    /// How long no request may be made because the platform asked for fewer.
    pub pause_seconds: f64,
}

impl BudgetLeft {
    /// Of the account with this UID; `None` where the operator knows of none, or does not lead.
    pub fn of(metrics: &str, account: &str) -> Option<Self> {
        let value = |name: &str| {
            let start = format!("dbplane_{name}{{account=\"{account}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&start))
        };
        Some(Self {
            requests: value(REQUESTS_LEFT)?.parse().ok()?,
            pause_seconds: value(&format!("{PAUSE}_seconds"))?.parse().ok()?,
        })
    }
}

impl fmt::Display for BudgetLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pause_seconds.ceil() {
            0.0 => write!(f, "{} left now", self.requests),
            seconds => write!(f, "none for {seconds} s: the platform asked for a pause"),
        }
    }
}
