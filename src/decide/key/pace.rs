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
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_each_minute_within_a_tenth_of_the_budget_and_more_rarely_for_more_keys() {
        for (keys, requests_per_minute, key_check, seconds) in [
            (0, 600, 600, 54),
            (1, 600, 600, 54),
            (1000, 600, 600, 54),
            (2000, 600, 600, 108),
            // As often as key checks need it.
            (10_000, 600, 600, 450),
            (1, 600, 60, 45),
            (1, 600, 5, 3),
            // Ten requests are a tenth of a hundred.
            (1000, 100, 600, 60),
            (900, 60, 600, 90),
            (10_000, 60, 600, 1000),
            (1, 6, 600, 100),
            (usize::MAX, 1, 600, u64::MAX),
        ] {
            let interval =
                list_interval(keys, requests_per_minute, Duration::from_secs(key_check)).as_secs();
            match seconds {
                u64::MAX => assert!(interval > 1 << 32, "{interval}"),
                seconds => assert_eq!(
                    interval, seconds,
                    "{keys} keys, {requests_per_minute} requests"
                ),
            }
        }
    }
}
