//! Rate limits: requests of an account per minute, and of an account on one route per second.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use crate::world::api::routes::Call;
use crate::world::setup::settings::RateLimit;

const SECOND: i128 = 1_000_000_000;

/// The meters of all accounts. They are not saved, so a restarted platform starts counting from
/// zero.
#[derive(Debug, Clone, Default)]
pub struct Meters {
    accounts: BTreeMap<String, Account>,
}

#[derive(Debug, Clone, Default)]
struct Account {
    all: Meter,
    keys: Meter,
    routes: BTreeMap<u8, Meter>,
}

/// Times of admitted requests in nanoseconds, as far as they still count.
#[derive(Debug, Clone, Default)]
struct Meter(VecDeque<i128>);

/// `count` requests in any `period` nanoseconds, possibly all at once. The platform does not define
/// its minute; a sliding window is the strictest reading.
#[derive(Debug, Clone, Copy)]
struct Quota {
    count: u32,
    period: i128,
}

impl Meter {
    /// Nanoseconds until one more request is admitted; 0 admits it now.
    fn wait(&mut self, quota: Quota, now: i128) -> i128 {
        while self
            .0
            .front()
            .is_some_and(|admitted| admitted + quota.period <= now)
        {
            self.0.pop_front();
        }
        let counted = usize::try_from(quota.count.max(1)).unwrap_or(usize::MAX);
        let Some(leaves) = self
            .0
            .len()
            .checked_sub(counted)
            .and_then(|first| self.0.get(first))
        else {
            return 0;
        };
        leaves + quota.period - now
    }

    fn take(&mut self, now: i128) {
        self.0.push_back(now);
    }
}

impl Meters {
    /// Admits one request of the account, or returns the whole seconds to wait (at least 1).
    pub fn admit(
        &mut self,
        account: &str,
        call: Call,
        limit: &RateLimit,
        now: Timestamp,
    ) -> Result<(), u64> {
        let now = now.as_nanosecond();
        let meters = self.accounts.entry(account.to_owned()).or_default();
        let route = meters.routes.entry(call as u8).or_default();
        let mut due = vec![
            (
                &mut meters.all,
                Quota {
                    count: limit.per_minute,
                    period: 60 * SECOND,
                },
            ),
            (
                route,
                Quota {
                    count: limit.per_second_per_route,
                    period: SECOND,
                },
            ),
        ];
        if call == Call::CreateOrganizationKey {
            due.push((
                &mut meters.keys,
                Quota {
                    count: limit.key_creations_per_second,
                    period: SECOND,
                },
            ));
        }
        let wait = due
            .iter_mut()
            .map(|(meter, quota)| meter.wait(*quota, now))
            .max()
            .unwrap_or_default();
        if wait > 0 {
            return Err(u64::try_from((wait + SECOND - 1) / SECOND).unwrap_or(1));
        }
        for (meter, _) in due {
            meter.take(now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + milliseconds).unwrap()
    }

    fn admitted(meters: &mut Meters, call: Call, times: usize, now: Timestamp) -> usize {
        let limit = RateLimit::default();
        (0..times)
            .filter(|_| meters.admit("org", call, &limit, now).is_ok())
            .count()
    }

    #[test]
    fn a_burst_on_one_route_is_40_a_second() {
        let mut meters = Meters::default();
        assert_eq!(admitted(&mut meters, Call::ListComputes, 100, at(0)), 40);
        assert_eq!(admitted(&mut meters, Call::GetCompute, 100, at(0)), 40);
        assert_eq!(admitted(&mut meters, Call::ListComputes, 100, at(1000)), 40);
    }

    #[test]
    fn keys_are_created_10_a_second() {
        assert_eq!(
            admitted(
                &mut Meters::default(),
                Call::CreateOrganizationKey,
                100,
                at(0)
            ),
            10
        );
    }

    #[test]
    fn an_account_has_700_in_any_minute_and_is_told_how_long_to_wait() {
        let mut meters = Meters::default();
        let mut seconds = |of: std::ops::Range<i64>| -> usize {
            of.map(|second| admitted(&mut meters, Call::ListComputes, 40, at(second * 1000)))
                .sum()
        };
        assert_eq!(seconds(0..60), 700);
        assert_eq!(seconds(60..120), 700);
        let limit = RateLimit {
            per_minute: 1,
            ..RateLimit::default()
        };
        let mut meters = Meters::default();
        assert_eq!(meters.admit("user", Call::GetAuth, &limit, at(0)), Ok(()));
        assert_eq!(
            meters.admit("user", Call::GetAuth, &limit, at(1500)),
            Err(59)
        );
        assert_eq!(
            meters.admit("other", Call::GetAuth, &limit, at(1500)),
            Ok(())
        );
        assert_eq!(
            meters.admit("user", Call::GetAuth, &limit, at(60_000)),
            Ok(())
        );
    }
}
