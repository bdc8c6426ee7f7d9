//! Decides when a change that interrupts connections may be made.

use jiff::Timestamp;

use super::cron::Cron;
use super::later;
use crate::api::{Disruption, DisruptionPolicy, Duration, Window};

/// The permission for such a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    Now,
    /// Once the compute is idle. With a deadline, at that time in any case.
    WhenIdle(Option<Timestamp>),
    /// When the window opens.
    At(Timestamp),
    /// Not within five years.
    NotSoon(String),
    /// Never: the window is invalid.
    Never(String),
}

/// The permission for a change that interrupts connections and has waited since `since`, for a
/// compute that is `idle` or not.
pub fn permit(
    disruption: Option<&Disruption>,
    idle: bool,
    since: Timestamp,
    now: Timestamp,
) -> Permit {
    let Some(disruption) = disruption else {
        return Permit::Now;
    };
    match (disruption.policy, &disruption.window) {
        (DisruptionPolicy::Immediate, _) => Permit::Now,
        (DisruptionPolicy::WhenIdle, _) => {
            let deadline = disruption
                .deadline
                .as_ref()
                .and_then(Duration::value)
                .map(|length| later(since, length));
            if idle || deadline.is_some_and(|deadline| deadline <= now) {
                Permit::Now
            } else {
                Permit::WhenIdle(deadline)
            }
        }
        (DisruptionPolicy::Window, Some(window)) => in_window(window, now),
        (DisruptionPolicy::Window, None) => {
            Permit::Never("spec.disruption.window is missing".into())
        }
    }
}

fn in_window(window: &Window, now: Timestamp) -> Permit {
    let Some(length) = window.duration.value() else {
        return Permit::Never(format!("{:?} is not a duration", window.duration.0));
    };
    let cron = match Cron::parse(&window.schedule, window.time_zone.as_deref()) {
        Ok(cron) => cron,
        Err(error) => return Permit::Never(error),
    };
    // The window is open if it opened within its length before now.
    let opened_after =
        Timestamp::from_second(now.as_second().saturating_sub_unsigned(length.as_secs()))
            .unwrap_or(now);
    match cron.next(opened_after) {
        Some(opening) if opening <= now => Permit::Now,
        Some(opening) => Permit::At(opening),
        None => Permit::NotSoon(format!(
            "the schedule {:?} has no time within five years",
            window.schedule
        )),
    }
}

#[cfg(test)]
mod tests;
