//! The rate limit for requests.

use std::num::NonZeroU32;

use governor::Quota;

/// Reserve 1 % of the rate.
const UNUSED_PART: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Limit for any minute.
    pub requests_per_minute: u32,
    /// Limit for a burst after a quiet time; at most half of the requests per minute.
    pub burst: u32,
}

impl Rate {
    /// The greater value of each.
    #[must_use]
    pub fn or_greater(self, other: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.max(other.requests_per_minute),
            burst: self.burst.max(other.burst),
        }
    }

    /// A percentage of the rate. A full burst and the steady rate after it together stay below the
    /// limit for a minute. They stay slightly below it because requests that are sent a minute
    /// apart may arrive closer together.
    pub(super) fn share(self, percent: u32) -> Quota {
        let burst = self.burst.min(self.requests_per_minute / 2);
        let steady = self.requests_per_minute - burst - self.requests_per_minute / UNUSED_PART;
        Quota::per_minute(at_least_one(part(steady, percent)))
            .allow_burst(at_least_one(part(burst, percent)))
    }
}

fn part(whole: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(whole) * u64::from(percent) / 100).unwrap_or(u32::MAX)
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            requests_per_minute: 600,
            burst: 20,
        }
    }
}

pub(super) fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
