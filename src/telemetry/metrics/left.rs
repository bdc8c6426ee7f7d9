//! Reads the remaining budget from the metrics of a running operator.

use std::fmt;

use serde::Serialize;

use super::bound::AccountLabels;

pub(super) const REQUESTS_LEFT: &str = "budget_requests_left";
/// In seconds; the exposed name includes the unit.
pub(super) const PAUSE: &str = "budget_pause";

pub(super) const LEADER: &str = "leader";

/// True if these metrics are the leader's, because only the leader has budgets. `None` if they are
/// not dbplane's.
pub fn is_of_leader(metrics: &str) -> Option<bool> {
    let start = format!("dbplane_{LEADER} ");
    Some(metrics.lines().find_map(|line| line.strip_prefix(&start))? == "1")
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLeft {
    /// Requests that may be sent at once; none during a pause.
    pub requests: u32,
    /// Remaining pause that the platform asked for.
    pub pause_seconds: f64,
}

impl BudgetLeft {
    /// The budget of this account. `None` if the operator does not know it, does not name it, or is
    /// not the leader.
    pub fn of(metrics: &str, account: &AccountLabels) -> Option<Self> {
        let pause = format!("{PAUSE}_seconds");
        Some(Self {
            requests: value(metrics, REQUESTS_LEFT, account)?.parse().ok()?,
            pause_seconds: value(metrics, &pause, account)?.parse().ok()?,
        })
    }
}

fn value<'a>(metrics: &'a str, metric: &str, account: &AccountLabels) -> Option<&'a str> {
    // Names of objects need no escapes.
    let AccountLabels {
        namespace,
        kind,
        name,
    } = account;
    let labels = format!(r#"namespace="{namespace}",kind="{kind}",account="{name}""#);
    let start = format!("dbplane_{metric}{{{labels}}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&start))
}

impl fmt::Display for BudgetLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pause_seconds.ceil() {
            0.0 => write!(f, "{} left now", self.requests),
            seconds => write!(f, "none for {seconds} s: the platform asked for a pause"),
        }
    }
}
