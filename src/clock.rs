//! The only file that reads clocks. All other code gets the time as an argument.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A clock that cannot be set, and that advances while the process is frozen or the machine sleeps.
/// Its zero differs between machines.
pub fn since_boot() -> Duration {
    // On Linux, the other monotonic clock stops while the machine sleeps.
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    // Without a clock, no process may lead.
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}
