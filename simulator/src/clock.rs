//! The simulated clock, and the only file of the simulator that reads the real one.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Simulated time: a start, plus the real time since then at some speed, plus what it was advanced by.
///
/// It goes on while the simulator is down, as the platform would.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    simulated: Timestamp,
    real: Timestamp,
    /// Simulated seconds for each real one; 0 stands still but for advances.
    speed: f64,
}

impl Clock {
    /// A clock that shows `at`, or the real time, from now on.
    pub fn start(at: Option<Timestamp>, speed: f64) -> Self {
        let real = Self::real();
        Self { simulated: at.unwrap_or(real), real, speed }
    }

    /// A saved clock, running on at another speed from now on.
    #[must_use]
    pub fn resumed(self, speed: f64) -> Self {
        Self { simulated: self.now(), real: Self::real(), speed }
    }

    /// The simulated time.
    pub fn now(&self) -> Timestamp {
        let elapsed = Self::real().duration_since(self.real).as_secs_f64().max(0.0) * self.speed;
        let elapsed = SignedDuration::try_from_secs_f64(elapsed).unwrap_or(SignedDuration::ZERO);
        self.simulated.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Puts the clock forward.
    pub fn advance(&mut self, by: SignedDuration) {
        self.simulated = self.simulated.checked_add(by.max(SignedDuration::ZERO)).unwrap_or(Timestamp::MAX);
    }

    /// Simulated seconds for each real one.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// The real time, which nobody advances.
    pub fn real() -> Timestamp {
        Timestamp::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_clock_moves_by_advances_only() {
        let start: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let mut clock = Clock::start(Some(start), 0.0);
        assert_eq!(clock.now(), start);
        clock.advance(SignedDuration::from_secs(90));
        assert_eq!(clock.now(), start + SignedDuration::from_secs(90));
        assert_eq!(clock.resumed(1.0).simulated, clock.now());
    }

    #[test]
    fn a_fast_clock_runs_ahead() {
        let start: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let hour_ago = Clock { simulated: start, real: Clock::real() - SignedDuration::from_hours(1), speed: 24.0 };
        assert!(hour_ago.now() >= start + SignedDuration::from_hours(24));
    }
}
