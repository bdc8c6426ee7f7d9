//! Computes the wait between two reads of one list.

use std::time::Duration;

/// Bounds of the wait while a change is pending and recent.
const PENDING_FROM: Duration = Duration::from_secs(1);
const PENDING_TO: Duration = Duration::from_secs(2);
/// A change that has been pending for a time is read again after 1/80 of that time, so reads become
/// rarer. That is every 1.5 s after two minutes, and every 15 s after twenty.
const PENDING_PART: u32 = 80;
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Retries after faults happen at least this often, and at least as often as regular polls.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// While the key is refused, nothing is read. Opening the gate wakes the task; this is only a
/// fallback.
const SUSPENDED: Duration = Duration::from_secs(600);

/// The inputs for the wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub poll_interval: Duration,
    /// How long the newest pending change has been pending.
    pub pending_for: Option<Duration>,
    /// Consecutive failed reads.
    pub failures: u32,
    pub retry_after: Option<Duration>,
    /// The platform refused the key.
    pub suspended: bool,
    /// The platform does not offer the list; the value says how long to believe it.
    pub not_offered: Option<Duration>,
}

impl Pace {
    /// The wait. `jitter` is from 0 to 1.
    pub fn delay(self, jitter: f64) -> Duration {
        if self.suspended {
            return SUSPENDED.max(self.poll_interval);
        }
        if let Some(believed) = self.not_offered {
            return believed
                .mul_f64(0.9 + jitter / 5.0)
                .max(self.retry_after.unwrap_or_default());
        }
        if self.failures > 0 {
            let doubled = FIRST_BACKOFF.saturating_mul(1 << (self.failures - 1).min(20));
            let backoff = doubled.min(LONGEST_BACKOFF.max(self.poll_interval));
            let backoff = backoff.mul_f64(1.0 - jitter / 2.0);
            return backoff.max(self.retry_after.unwrap_or_default());
        }
        match self.pending_for {
            Some(age) => {
                let between = PENDING_FROM + (PENDING_TO - PENDING_FROM).mul_f64(jitter);
                between.max(age / PENDING_PART).min(self.poll_interval)
            }
            None => self.poll_interval.mul_f64(0.9 + jitter / 5.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(pace: Pace, jitter: f64) -> f64 {
        pace.delay(jitter).as_secs_f64()
    }

    fn every(poll_interval: u64) -> Pace {
        Pace {
            poll_interval: Duration::from_secs(poll_interval),
            ..Pace::default()
        }
    }

    #[test]
    fn quiet_is_the_poll_interval_give_or_take_a_tenth() {
        for (jitter, expected) in [(0.0, 27.0), (0.5, 30.0), (1.0, 33.0)] {
            assert!((seconds(every(30), jitter) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn pending_is_fast_and_slows_down() {
        for (age, from, to) in [
            (0, 1.0, 2.0),
            (80, 1.0, 2.0),
            (240, 3.0, 3.0),
            (1200, 15.0, 15.0),
            (86400, 30.0, 30.0),
        ] {
            let pace = Pace {
                pending_for: Some(Duration::from_secs(age)),
                ..every(30)
            };
            assert_eq!(
                (seconds(pace, 0.0), seconds(pace, 1.0)),
                (from, to),
                "{age}"
            );
        }
    }

    #[test]
    fn faults_back_off_up_to_a_minute_or_the_poll_interval() {
        for (poll_interval, failures, longest) in
            [(30, 1, 1.0), (30, 3, 4.0), (30, 50, 60.0), (300, 50, 300.0)]
        {
            let pace = Pace {
                failures,
                ..every(poll_interval)
            };
            assert_eq!(
                (seconds(pace, 0.0), seconds(pace, 1.0)),
                (longest, longest / 2.0),
                "{failures}"
            );
        }
        let asked = Pace {
            failures: 1,
            retry_after: Some(Duration::from_secs(90)),
            ..every(30)
        };
        assert_eq!(seconds(asked, 0.7), 90.0);
    }

    #[test]
    fn what_is_not_offered_is_asked_for_again_after_a_while() {
        let pace = Pace {
            not_offered: Some(Duration::from_secs(100)),
            failures: 1,
            ..every(30)
        };
        assert_eq!((seconds(pace, 0.0), seconds(pace, 1.0)), (90.0, 110.0));
    }

    #[test]
    fn a_refused_key_is_not_used() {
        let pace = Pace {
            suspended: true,
            failures: 3,
            ..every(30)
        };
        assert_eq!(seconds(pace, 0.5), 600.0);
    }
}
