//! The times of a cron expression in a calendar without clock changes.

use jiff::civil::{Date, DateTime};

use super::{CountedWork, count};

/// The minutes, hours, months and days of an expression, as bit sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calendar {
    pub minutes: u64,
    pub hours: u64,
    pub months: u64,
    pub days: Days,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Days {
    pub of_month: u64,
    /// The last day of the month.
    pub last: bool,
    /// The days whose nearest weekday is due.
    pub nearest: u64,
    /// For each day of the week from Sunday: bits 1 to 5 for the first to fifth of a month, bit 0
    /// for the last.
    pub of_week: [u8; 7],
    /// One of the two fields is `*` or `?`. A day then has to match both fields, otherwise either
    /// of them.
    pub any: bool,
}

/// Every such weekday of a month.
pub(super) const EVERY: u8 = 0b11_1110;
pub(super) const LAST: u8 = 1;

/// The months of each length, as bit sets.
const FEBRUARY: u64 = 1 << 2;
const OF_30_DAYS: u64 = 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11;
const OF_31_DAYS: u64 = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12;

impl Calendar {
    /// The first time in `from..before`.
    pub fn first(&self, from: DateTime, before: DateTime) -> Option<DateTime> {
        let today = self
            .is_day(from.date())
            .then(|| self.time_from(from))
            .flatten();
        let found = match today {
            Some((hour, minute)) => at(from.date(), hour, minute)?,
            None => at(
                self.day_after(from.date(), before.date())?,
                lowest(self.hours, 0)?,
                lowest(self.minutes, 0)?,
            )?,
        };
        (found < before).then_some(found)
    }

    /// The last time in `from..before`.
    pub fn last(&self, from: DateTime, before: DateTime) -> Option<DateTime> {
        let today = self
            .is_day(before.date())
            .then(|| self.time_before(before))
            .flatten();
        let found = match today {
            Some((hour, minute)) => at(before.date(), hour, minute)?,
            None => at(
                self.day_before(before.date(), from.date())?,
                highest(self.hours, 64)?,
                highest(self.minutes, 64)?,
            )?,
        };
        (found >= from).then_some(found)
    }

    /// Returns true if the expression matches a day of any year.
    pub fn has_a_day(&self) -> bool {
        // Months are checked by their lengths: each month begins on every day of the week in some
        // year.
        [
            (28, FEBRUARY),
            (29, FEBRUARY),
            (30, OF_30_DAYS),
            (31, OF_31_DAYS),
        ]
        .into_iter()
        .filter(|(_, months)| self.months & months != 0)
        .any(|(length, _)| (0..7).any(|first| self.days.look(first, length) != 0))
    }

    fn time_from(&self, time: DateTime) -> Option<(u8, u8)> {
        let (hour, minute) = (number(time.hour()), number(time.minute()));
        let minute = if time.second() == 0 && time.subsec_nanosecond() == 0 {
            minute
        } else {
            minute + 1
        };
        match lowest(self.minutes, minute) {
            Some(minute) if self.hours & bit(hour) != 0 => Some((hour, minute)),
            _ => lowest(self.hours, hour + 1).zip(lowest(self.minutes, 0)),
        }
    }

    fn time_before(&self, time: DateTime) -> Option<(u8, u8)> {
        let (hour, minute) = (number(time.hour()), number(time.minute()));
        let minute = if time.second() == 0 && time.subsec_nanosecond() == 0 {
            minute
        } else {
            minute + 1
        };
        match highest(self.minutes, minute) {
            Some(minute) if self.hours & bit(hour) != 0 => Some((hour, minute)),
            _ => highest(self.hours, hour).zip(highest(self.minutes, 64)),
        }
    }

    fn is_day(&self, day: Date) -> bool {
        self.in_month(day) & bit(number(day.day())) != 0
    }

    /// The first day after `day`, up to the month of `most`.
    fn day_after(&self, day: Date, most: Date) -> Option<Date> {
        let mut month = day.first_of_month();
        let mut found = lowest(self.in_month(month), number(day.day()) + 1);
        while found.is_none() && month < most {
            month = neighbour(month, 1)?;
            found = lowest(self.in_month(month), 1);
        }
        in_that(month, found?)
    }

    /// The last day before `day`, down to the month of `least`.
    fn day_before(&self, day: Date, least: Date) -> Option<Date> {
        let mut month = day.first_of_month();
        let mut found = highest(self.in_month(month), number(day.day()));
        while found.is_none() && month > least {
            month = neighbour(month, -1)?;
            found = highest(self.in_month(month), 64);
        }
        in_that(month, found?)
    }

    /// The matching days in the month of `day`.
    fn in_month(&self, day: Date) -> u64 {
        if self.months & bit(number(day.month())) == 0 {
            return 0;
        }
        self.days.look(
            number(day.first_of_month().weekday().to_sunday_zero_offset()),
            number(day.days_in_month()),
        )
    }
}

impl Days {
    fn look(&self, first: u8, length: u8) -> u64 {
        count(CountedWork::Month);
        self.of(first, length)
    }

    /// The days in a month of that length whose first day is that day of the week.
    fn of(&self, first: u8, length: u8) -> u64 {
        let (mut of_month, mut of_week) = (self.of_month, 0);
        if self.last {
            of_month |= bit(length);
        }
        for day in 1..=length {
            let weekday = (first + day - 1) % 7;
            if self.nearest & bit(day) != 0 {
                of_month |= bit(nearest(day, weekday, length));
            }
            let named = self
                .of_week
                .get(usize::from(weekday))
                .copied()
                .unwrap_or_default();
            let nth = u64::from(named) & bit((day - 1) / 7 + 1) != 0;
            if nth || named & LAST != 0 && day + 7 > length {
                of_week |= bit(day);
            }
        }
        let days = if self.any {
            of_month & of_week
        } else {
            of_month | of_week
        };
        days & (bit(length + 1) - 1)
    }
}

/// The nearest day from Monday to Friday in the same month.
fn nearest(day: u8, weekday: u8, length: u8) -> u8 {
    match weekday {
        6 if day > 1 => day - 1,
        6 => day + 2,
        0 if day < length => day + 1,
        0 => day - 2,
        _ => day,
    }
}

fn at(day: Date, hour: u8, minute: u8) -> Option<DateTime> {
    Some(day.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0))
}

/// The first day of the next or the previous month.
fn neighbour(month: Date, by: i16) -> Option<Date> {
    let (year, number) = match (month.month(), by) {
        (12, 1) => (month.year().checked_add(1)?, 1),
        (1, -1) => (month.year().checked_sub(1)?, 12),
        (number, 1) => (month.year(), number + 1),
        (number, _) => (month.year(), number - 1),
    };
    Date::new(year, number, 1).ok()
}

fn in_that(month: Date, day: u8) -> Option<Date> {
    Date::new(month.year(), month.month(), i8::try_from(day).ok()?).ok()
}

/// Numbers of a calendar are never negative.
fn number(of_calendar: i8) -> u8 {
    of_calendar.unsigned_abs()
}

pub(super) fn bit(number: u8) -> u64 {
    1_u64.checked_shl(u32::from(number)).unwrap_or_default()
}

/// The lowest of these numbers from `least` on.
fn lowest(numbers: u64, least: u8) -> Option<u8> {
    let left = numbers & !(bit(least).wrapping_sub(1));
    if left == 0 {
        return None;
    }
    u8::try_from(left.trailing_zeros()).ok()
}

/// The highest of these numbers below `limit`.
fn highest(numbers: u64, limit: u8) -> Option<u8> {
    let left = numbers & bit(limit).wrapping_sub(1);
    u8::try_from(left.checked_ilog2()?).ok()
}
