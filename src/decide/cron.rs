//! The times of a cron expression in a time zone, by the rules of CronJob: a time is due whenever
//! clocks in that zone match the expression. A time that is repeated when clocks are set back is
//! due twice. A time that is skipped when they are set forward is not due. docs/decisions/0038 says
//! why no library does this.

mod calendar;
mod fields;
#[cfg(test)]
pub(super) mod tests;

use calendar::Calendar;
use jiff::civil::{DateTime, date};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// A cron expression and its time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    calendar: Calendar,
    zone: TimeZone,
}

/// CronJob also searches no more than five years ahead.
const MOST_YEARS: i16 = 5;
const UTC: &str = "UTC";
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// Years with every kind of calendar: each weekday begins a leap year and a common year. That late,
/// every zone follows its yearly rule.
const EVERY_YEAR: (i16, i16) = (2101, 2129);

/// Why a schedule cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The time zone does not exist. One that may be meant is named.
    Zone(Option<String>),
    Unreadable(String),
    /// None of its months has such a day.
    NoDay,
    /// All its times are in the hour that is skipped when clocks are set forward, every year.
    LeftOut,
}

impl Flaw {
    /// A message with the expression and the zone from the spec.
    pub fn describe(&self, expression: &str, zone: Option<&str>) -> String {
        let zone = zone.unwrap_or(UTC);
        match self {
            Self::Zone(None) => format!("there is no time zone {zone:?}"),
            Self::Zone(Some(near)) => format!("there is no time zone {zone:?} (nearest: {near})"),
            Self::Unreadable(error) => {
                format!("the schedule {expression:?} cannot be read: {error}")
            }
            Self::NoDay => format!(
                "the schedule {expression:?} never comes: no month that it names has such a day"
            ),
            Self::LeftOut => format!(
                "the schedule {expression:?} never comes: clocks of {zone} are put forward just then, every year"
            ),
        }
    }
}

impl Cron {
    /// # Errors
    /// If the expression or the time zone cannot be read, or if the schedule is never due.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, String> {
        Self::examine(expression, zone).map_err(|flaw| flaw.describe(expression, zone))
    }

    /// # Errors
    /// As `parse`, for callers that must not repeat user input.
    pub fn examine(expression: &str, zone: Option<&str>) -> Result<Self, Flaw> {
        let cron = Self::read(expression, zone)?;
        if !cron.calendar.has_a_day() {
            Err(Flaw::NoDay)
        } else if !cron.has_a_time() {
            Err(Flaw::LeftOut)
        } else {
            Ok(cron)
        }
    }

    /// Parses a schedule without checking that it is ever due.
    fn read(expression: &str, zone: Option<&str>) -> Result<Self, Flaw> {
        let name = zone.unwrap_or(UTC);
        let zone = find_zone(name).ok_or_else(|| Flaw::Zone(nearest_zone(name)))?;
        let calendar = fields::parse(expression).map_err(Flaw::Unreadable)?;
        Ok(Self { calendar, zone })
    }

    /// Returns true if clocks of the zone ever match the calendar.
    fn has_a_time(&self) -> bool {
        let (first, end) = (at_midnight(EVERY_YEAR.0), at_midnight(EVERY_YEAR.1));
        let from = first.and_then(|first| self.zone.to_timestamp(first).ok());
        from.zip(end)
            .is_none_or(|(from, end)| self.first(from, end).is_some())
    }

    /// The first time after `after`; `None` if there is none within five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        count(CountedWork::Evaluation);
        let from = Timestamp::from_second(
            after
                .as_second()
                .div_euclid(60)
                .checked_add(1)?
                .checked_mul(60)?,
        )
        .ok()?;
        self.first(
            from,
            at_midnight(
                self.year(after.checked_add(SECOND).ok()?)
                    .saturating_add(MOST_YEARS + 1),
            )?,
        )
    }

    /// The first time from the full minute `from` on, before local time `horizon`.
    fn first(&self, mut from: Timestamp, horizon: DateTime) -> Option<Timestamp> {
        // Between two clock changes, each local time occurs once.
        loop {
            count(CountedWork::Offset);
            let offset = self.zone.to_offset(from);
            let begins = offset.to_datetime(from);
            let change = self
                .zone
                .following(from)
                .next()
                .map(|change| change.timestamp());
            let ends = change
                .map_or(horizon, |change| offset.to_datetime(change))
                .min(horizon);
            if let Some(found) = self.calendar.first(begins, ends) {
                return offset.to_timestamp(found).ok();
            }
            if ends >= horizon {
                return None;
            }
            from = change?;
        }
    }

    /// The last time up to `until`; `None` if there is none within five years.
    pub fn last(&self, until: Timestamp) -> Option<Timestamp> {
        count(CountedWork::Evaluation);
        let mut until = until;
        let horizon = at_midnight(self.year(until).saturating_sub(MOST_YEARS))?;
        loop {
            count(CountedWork::Offset);
            let offset = self.zone.to_offset(until);
            let after = until.checked_add(SECOND).ok()?;
            let ends = offset.to_datetime(after);
            let change = self
                .zone
                .preceding(after)
                .next()
                .map(|change| change.timestamp());
            let begins = change
                .map_or(horizon, |change| offset.to_datetime(change))
                .max(horizon);
            if let Some(found) = self.calendar.last(begins, ends) {
                return offset.to_timestamp(found).ok();
            }
            if begins <= horizon {
                return None;
            }
            until = change?.checked_sub(SECOND).ok()?;
        }
    }

    fn year(&self, time: Timestamp) -> i16 {
        self.zone.to_datetime(time).year()
    }
}

/// The names are those of this program: the files of a machine could differ from the operator's, or
/// be unreadable for a moment.
fn find_zone(name: &str) -> Option<TimeZone> {
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    (!zone.is_unknown()).then_some(zone)
}

/// The similarity from which a time zone counts as misspelled.
const ALIKE: f64 = 0.9;

/// The time zone that `name` may be a misspelling of. People also write a city alone. None is near a
/// name with a number: Etc/GMT+1 is an hour behind UTC, which nobody expects.
fn nearest_zone(name: &str) -> Option<String> {
    if name.contains(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let wanted = name.to_lowercase();
    let likeness = |zone: &str| {
        let zone = zone.to_lowercase();
        let city = zone.rsplit('/').next().unwrap_or_default();
        strsim::jaro_winkler(&zone, &wanted).max(strsim::jaro_winkler(city, &wanted))
    };
    TimeZoneDatabase::bundled()
        .available()
        .map(|zone| (likeness(zone.as_str()), zone.to_string()))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, zone)| zone)
}

/// The beginning of a year, if it is in the supported range.
fn at_midnight(year: i16) -> Option<DateTime> {
    (-9999..=9999)
        .contains(&year)
        .then(|| date(year, 1, 1).at(0, 0, 0, 0))
}

/// The expensive steps, which tests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedWork {
    /// A search for a next or last time.
    Evaluation,
    /// A search between two clock changes.
    Offset,
    /// An evaluation of the days of a month.
    Month,
}

#[cfg(not(test))]
fn count(_: CountedWork) {}

#[cfg(test)]
fn count(work: CountedWork) {
    tests::count(work);
}
