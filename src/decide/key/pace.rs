//! How often the list of an organization's keys is read.

use std::time::Duration;

/// A list begins within a minute of the end of the previous one: the observer's intervals are up to
/// a tenth longer than this.
const EVERY: Duration = Duration::from_secs(54);
/// Above this number of keys, the interval grows in proportion to their number.
const MANY: usize = 1000;
/// Lists take at most one of this many requests of the account.
const PART: u32 = 10;
/// The assumed number of keys on a page. A list without pages costs less than this suggests.
const PAGE: usize = 100;
const MINUTE: Duration = Duration::from_secs(60);

/// The time between two lists of `keys` keys. It is at most three quarters of `key_check`, so that
/// a key check finds a list that is fresh enough. The exception is a list that would take too many
/// requests.
pub fn list_interval(keys: usize, requests_per_minute: u32, key_check: Duration) -> Duration {
    let times = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let wanted = EVERY.saturating_mul(times(keys.max(MANY))) / times(MANY);
    let affordable = MINUTE
        .saturating_mul(times(keys.div_ceil(PAGE).max(1)))
        .saturating_mul(PART)
        / requests_per_minute.max(1);
    wanted.min(key_check * 3 / 4).max(affordable)
}

#[cfg(test)]
mod tests;
