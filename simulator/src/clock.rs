//! The simulated clock, and the only file of the simulator that reads the real one.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Simulated time: a start, plus scaled real time since then, plus all advances.
///
/// It keeps running while the simulator is down, as the platform would.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    simulated: Timestamp,
    real: Timestamp,
    /// Simulated seconds per real second; at 0 the clock moves only by advances.
    speed: f64,
    /// While paused, the clock moves only by advances and keeps its speed. Older state files lack
    /// this.
    #[serde(default)]
    paused: bool,
}

/// Checks a clock speed; the error says why it is invalid.
pub fn speed(speed: f64) -> Result<f64, &'static str> {
    if speed.is_finite() && speed >= 0.0 {
        Ok(speed)
    } else {
        Err("a clock runs forwards, at a finite speed")
    }
}

/// Checks how far the clock is to be advanced; the error says why it is invalid.
pub fn step(seconds: f64) -> Result<SignedDuration, &'static str> {
    let step = SignedDuration::try_from_secs_f64(seconds)
        .ok()
        .filter(|step| !step.is_negative());
    step.ok_or("seconds must be 0 or more")
}

impl Clock {
    /// A clock that starts at `at`, or at the real time.
    pub fn start(at: Option<Timestamp>, speed: f64) -> Self {
        let real = Self::real();
        Self {
            simulated: at.unwrap_or(real),
            real,
            speed,
            paused: false,
        }
    }

    /// Changes the speed; a paused clock stays paused.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self {
            simulated: self.now(),
            real: Self::real(),
            speed,
            ..self
        }
    }

    /// Pauses or resumes the clock.
    #[must_use]
    pub fn held(self, paused: bool) -> Self {
        Self {
            simulated: self.now(),
            real: Self::real(),
            paused,
            ..self
        }
    }

    pub fn now(&self) -> Timestamp {
        let speed = if self.paused { 0.0 } else { self.speed };
        let elapsed = Self::real()
            .duration_since(self.real)
            .as_secs_f64()
            .max(0.0)
            * speed;
        let elapsed = SignedDuration::try_from_secs_f64(elapsed).unwrap_or(SignedDuration::ZERO);
        self.simulated
            .checked_add(elapsed)
            .unwrap_or(Timestamp::MAX)
    }

    pub fn advance(&mut self, by: SignedDuration) {
        self.simulated = self
            .simulated
            .checked_add(by.max(SignedDuration::ZERO))
            .unwrap_or(Timestamp::MAX);
    }

    /// Simulated seconds per real second while the clock runs.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// True if the clock is paused.
    pub fn paused(&self) -> bool {
        self.paused
    }

    /// The real time; advances do not affect it.
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
        assert_eq!(clock.at_speed(1.0).simulated, clock.now());
    }

    #[test]
    fn a_paused_clock_stands_still_and_keeps_its_speed() {
        let start: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let running = Clock {
            real: Clock::real() - SignedDuration::from_hours(1),
            ..Clock::start(Some(start), 1.0)
        };
        let mut paused = running.held(true);
        let stopped = paused.now();
        assert!(
            stopped >= start + SignedDuration::from_hours(1),
            "what has passed has passed"
        );
        paused.real -= SignedDuration::from_hours(1);
        assert_eq!((paused.now(), paused.speed()), (stopped, 1.0));
        paused.advance(SignedDuration::from_secs(5));
        assert_eq!(
            paused.at_speed(24.0).now(),
            stopped + SignedDuration::from_secs(5)
        );
        let mut going = paused.held(false);
        going.real -= SignedDuration::from_hours(1);
        assert!(going.now() >= stopped + SignedDuration::from_hours(1));
    }

    #[test]
    fn speeds() {
        assert_eq!((speed(0.0), speed(60.0)), (Ok(0.0), Ok(60.0)));
        for refused in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(speed(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_fast_clock_runs_ahead() {
        let start: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let hour_ago = Clock {
            real: Clock::real() - SignedDuration::from_hours(1),
            ..Clock::start(Some(start), 24.0)
        };
        assert!(hour_ago.now() >= start + SignedDuration::from_hours(24));
    }
}
