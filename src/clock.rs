//! The one file that reads clocks. Everything else is given the time.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// The time now.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A clock that nobody sets, and that goes on while the process is frozen or the machine sleeps. Its zero differs from machine
/// to machine.
pub fn since_boot() -> Duration {
    // Linux stops the other monotonic clock while the machine sleeps.
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    // Without a clock nobody may lead.
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}
