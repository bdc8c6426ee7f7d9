//! The times of a cron expression in a time zone, by the rules of CronJob: a time comes whenever a clock of that zone shows what the
//! expression says. One that is repeated when clocks are put back comes twice; one that is left out when they are put forward does not
//! come. docs/decisions/0038 says why no library does this.

mod calendar;
mod fields;
#[cfg(test)]
pub(super) mod tests;

use calendar::Calendar;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A cron expression and its time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    calendar: Calendar,
    zone: TimeZone,
}

/// CronJob looks no further for a time.
const MOST_YEARS: i16 = 5;
const UTC: &str = "UTC";
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// Years that are all alike to a schedule and a zone: each weekday begins a leap year and a common year, and no zone has changes of the
/// clocks of its own that late.
const EVERY_YEAR: (i16, i16) = (2101, 2129);

/// Why a schedule is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// There is no such time zone.
    Zone,
    /// The expression cannot be read.
    Unreadable(String),
    /// No month that it names has such a day.
    NoDay,
    /// Its times are in the hour that is left out when clocks are put forward, every year.
    LeftOut,
}

impl Flaw {
    /// For people, with what they have written.
    pub fn describe(&self, expression: &str, zone: Option<&str>) -> String {
        let zone = zone.unwrap_or(UTC);
        match self {
            Self::Zone => format!("there is no time zone {zone:?}"),
            Self::Unreadable(error) => format!("the schedule {expression:?} cannot be read: {error}"),
            Self::NoDay => format!("the schedule {expression:?} never comes: no month that it names has such a day"),
            Self::LeftOut => format!(
                "the schedule {expression:?} never comes: clocks of {zone} are put forward just then, every year"
            ),
        }
    }
}

impl Cron {
    /// # Errors
    /// Where the expression or the time zone cannot be read, or no such time ever comes.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, String> {
        Self::examine(expression, zone).map_err(|flaw| flaw.describe(expression, zone))
    }

    /// # Errors
    /// As `parse`, for whoever must not repeat what people have written.
    pub fn examine(expression: &str, zone: Option<&str>) -> Result<Self, Flaw> {
        let cron = Self::read(expression, zone)?;
        match () {
            () if !cron.calendar.has_a_day() => Err(Flaw::NoDay),
            () if !cron.has_a_time() => Err(Flaw::LeftOut),
            () => Ok(cron),
        }
    }

    /// The schedule, which may never come.
    fn read(expression: &str, zone: Option<&str>) -> Result<Self, Flaw> {
        let zone = TimeZone::get(zone.unwrap_or(UTC)).map_err(|_| Flaw::Zone)?;
        let calendar = fields::parse(expression).map_err(Flaw::Unreadable)?;
        Ok(Self { calendar, zone })
    }

    /// Whether clocks of the zone ever show what the calendar says.
    fn has_a_time(&self) -> bool {
        let (first, end) = (at_midnight(EVERY_YEAR.0), at_midnight(EVERY_YEAR.1));
        let from = first.and_then(|first| self.zone.to_timestamp(first).ok());
        from.zip(end).is_none_or(|(from, end)| self.first(from, end).is_some())
    }

    /// The first time after `after`; `None` where there is none within five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        count(Work::Evaluation);
        let from = Timestamp::from_second(after.as_second().div_euclid(60).checked_add(1)?.checked_mul(60)?).ok()?;
        self.first(from, at_midnight(self.year(after.checked_add(SECOND).ok()?).saturating_add(MOST_YEARS + 1))?)
    }

    /// The first time from the full minute `from` on, and before clocks show `horizon`.
    fn first(&self, mut from: Timestamp, horizon: DateTime) -> Option<Timestamp> {
        // Between two changes of the clocks a calendar has each time once.
        loop {
            count(Work::Offset);
            let offset = self.zone.to_offset(from);
            let begins = offset.to_datetime(from);
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            let ends = change.map_or(horizon, |change| offset.to_datetime(change)).min(horizon);
            if let Some(found) = self.calendar.first(begins, ends) {
                return offset.to_timestamp(found).ok();
            }
            from = change.filter(|_| ends < horizon)?;
        }
    }

    /// The last time up to `until`; `None` where there is none within five years.
    pub fn last(&self, until: Timestamp) -> Option<Timestamp> {
        count(Work::Evaluation);
        let mut until = until;
        let horizon = at_midnight(self.year(until).saturating_sub(MOST_YEARS))?;
        loop {
            count(Work::Offset);
            let offset = self.zone.to_offset(until);
            let after = until.checked_add(SECOND).ok()?;
            let ends = offset.to_datetime(after);
            let change = self.zone.preceding(after).next().map(|change| change.timestamp());
            let begins = change.map_or(horizon, |change| offset.to_datetime(change)).max(horizon);
            if let Some(found) = self.calendar.last(begins, ends) {
                return offset.to_timestamp(found).ok();
            }
            until = change.filter(|_| begins > horizon)?.checked_sub(SECOND).ok()?;
        }
    }

    fn year(&self, time: Timestamp) -> i16 {
        self.zone.to_datetime(time).year()
    }
}

/// When that year begins, as far as there are calendars.
fn at_midnight(year: i16) -> Option<DateTime> {
    (-9999..=9999).contains(&year).then(|| date(year, 1, 1).at(0, 0, 0, 0))
}

/// What takes time, counted by tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// A next or last time was looked for.
    Evaluation,
    /// Times between two changes of the clocks were looked for.
    Offset,
    /// The days of a month were looked at.
    Month,
}

#[cfg(not(test))]
fn count(_: Work) {}

#[cfg(test)]
fn count(work: Work) {
    tests::count(work);
}
