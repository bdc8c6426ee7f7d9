//! The times of a cron expression in a time zone. Each time of the calendar counts once: one that is repeated when clocks are put
//! back counts the first time, and one that is left out when they are put forward comes at once after it.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// A cron expression and its time zone.
#[derive(Debug)]
pub struct Cron {
    /// Its times are those of the calendar, as if they were UTC.
    calendar: cronexpr::Crontab,
    zone: TimeZone,
}

impl Cron {
    /// # Errors
    /// Where the expression or the time zone cannot be read.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, String> {
        let name = zone.unwrap_or("UTC");
        let zone = TimeZone::get(name).map_err(|_| format!("there is no time zone {name:?}"))?;
        let calendar = cronexpr::parse_crontab(&format!("{expression} UTC"))
            .map_err(|error| format!("the schedule {expression:?} cannot be read: {error}"))?;
        Ok(Self { calendar, zone })
    }

    /// The first time after `after`; `None` where there is none within four years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let mut calendar = TimeZone::UTC.to_timestamp(self.zone.to_datetime(after)).ok()?;
        loop {
            calendar = self.calendar.find_next(calendar).ok()?.timestamp();
            let time = self.instant(TimeZone::UTC.to_datetime(calendar))?;
            // A time that is repeated has been there.
            if time > after {
                return Some(time);
            }
        }
    }

    /// The last time up to `until`; `None` where there is none within eight years.
    pub fn last(&self, until: Timestamp) -> Option<Timestamp> {
        let back = |length| until.checked_sub(length).ok();
        let comes = |from: &Timestamp| self.next(*from).is_some_and(|time| time <= until);
        let mut length = SignedDuration::from_mins(1);
        let mut after = back(length)?;
        let mut before = until;
        while !comes(&after) {
            length = length.checked_mul(2).filter(|length| *length < EIGHT_YEARS)?;
            (before, after) = (after, back(length)?);
        }
        // From `after` on one comes, from `before` on none.
        while before.duration_since(after) > SignedDuration::from_secs(1) {
            let middle = after.checked_add(before.duration_since(after) / 2).ok()?;
            match comes(&middle) {
                true => after = middle,
                false => before = middle,
            }
        }
        self.next(after)
    }

    fn instant(&self, calendar: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(calendar);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { before, .. } => {
                let behind = before.to_timestamp(calendar).ok()?;
                self.zone.preceding(behind).next().map(|transition| transition.timestamp())
            }
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.compatible().ok(),
        }
    }
}

const EIGHT_YEARS: SignedDuration = SignedDuration::from_hours(8 * 366 * 24);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn berlin(expression: &str) -> Cron {
        Cron::parse(expression, Some("Europe/Berlin")).unwrap()
    }

    #[test]
    fn times_follow_the_calendar_of_the_zone() {
        // 2 h ahead of UTC in summer, 1 h from 2026-10-25T01:00:00Z on.
        for (expression, after, next) in [
            ("30 2 * * *", "2026-10-24T00:29:59Z", "2026-10-24T00:30:00Z"),
            ("30 2 * * *", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"),
            // 02:30 is there twice, and counts once.
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
            ("*/20 * * * *", "2026-10-25T00:40:00Z", "2026-10-25T02:00:00Z"),
            // 2026-03-29 has no 02:30: after 01:59:59 it is 03:00.
            ("30 2 * * *", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"),
            ("30 2 * * *", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"),
            ("30 2 * * *", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
            ("0 3 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T02:00:00Z"),
        ] {
            assert_eq!(berlin(expression).next(at(after)), Some(at(next)), "{expression} after {after}");
        }
    }

    #[test]
    fn the_last_time_is_the_one_before_the_next() {
        for expression in ["30 2 * * *", "0 3 * * SUN", "*/10 2 * * *", "*/20 * * * *", "0 3 29 2 *", "59 23 31 12 *"] {
            for from in ["2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z", "2027-12-31T22:00:00Z"] {
                last_follows_next(&berlin(expression), at(from));
            }
        }
    }

    fn last_follows_next(cron: &Cron, from: Timestamp) {
        let second = SignedDuration::from_secs(1);
        let times: Vec<_> = std::iter::successors(cron.next(from), |time| cron.next(*time)).take(30).collect();
        for (time, next) in times.iter().zip(times.iter().skip(1)) {
            for until in [*time, *time + second, *next - second] {
                assert_eq!(cron.last(until), Some(*time), "{cron:?} until {until}");
            }
        }
    }

    #[test]
    fn a_date_that_never_comes_has_no_times() {
        let never = berlin("0 3 30 2 *");
        let now = at("2026-11-22T00:00:00Z");
        assert_eq!((never.next(now), never.last(now)), (None, None));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |expression, zone| Cron::parse(expression, Some(zone)).unwrap_err();
        assert_eq!(error("0 3 * * *", "Mars/Base"), "there is no time zone \"Mars/Base\"");
        assert!(error("0 25 * * *", "UTC").starts_with("the schedule \"0 25 * * *\" cannot be read: "));
    }
}
