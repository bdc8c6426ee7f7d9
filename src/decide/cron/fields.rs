//! Parses a cron expression as CronJob does, with the additions of dbplane: L, W, # and 7 for
//! Sunday.

use super::calendar::{Calendar, Days, EVERY, LAST, bit};

/// The range of one field.
struct CronField {
    name: &'static str,
    least: u8,
    most: u8,
    /// Ordered by their numbers, which begin at `least`.
    names: &'static [&'static str],
}

const MINUTE: CronField = CronField {
    name: "minute",
    least: 0,
    most: 59,
    names: &[],
};
const HOUR: CronField = CronField {
    name: "hour",
    least: 0,
    most: 23,
    names: &[],
};
const DAY: CronField = CronField {
    name: "day of month",
    least: 1,
    most: 31,
    names: &[],
};
const MONTH: CronField = CronField {
    name: "month",
    least: 1,
    most: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAY: CronField = CronField {
    name: "day of week",
    least: 0,
    most: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};
const SUNDAY_AGAIN: u8 = 7;

/// The numbers of a field. `any`: a `*` names all of them.
#[derive(Default)]
struct NamedValues {
    numbers: u64,
    any: bool,
}

pub(super) fn parse(expression: &str) -> Result<Calendar, String> {
    let fields: Vec<_> = expression.split_ascii_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(format!("it has {} fields, not five", fields.len()));
    };
    Ok(Calendar {
        minutes: MINUTE.parse(minute)?.numbers,
        hours: HOUR.parse(hour)?.numbers,
        months: MONTH.parse(month)?.numbers,
        days: days(day, weekday)?,
    })
}

fn days(of_month: &str, of_week: &str) -> Result<Days, String> {
    let mut days = Days::default();
    for part in of_month.split(',') {
        if part == "L" {
            days.last = true;
        } else if let Some(day) = part.strip_suffix('W') {
            days.nearest |= bit(DAY.number(day)?);
        } else {
            let named = DAY.part(part)?;
            days.of_month |= named.numbers;
            days.any |= named.any;
        }
    }
    for part in of_week.split(',') {
        if let Some((weekday, nth)) = part.split_once('#') {
            let nth: Option<u8> = nth.parse().ok().filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| WEEKDAY.unreadable(part))?;
            days.on(WEEKDAY.number(weekday)?, 1 << nth);
        } else if let Some(weekday) = part.strip_suffix('L') {
            days.on(WEEKDAY.number(weekday)?, LAST);
        } else {
            let named = WEEKDAY.part(part)?;
            days.any |= named.any;
            (0..=SUNDAY_AGAIN)
                .filter(|weekday| named.numbers & bit(*weekday) != 0)
                .for_each(|weekday| days.on(weekday, EVERY));
        }
    }
    Ok(days)
}

impl Days {
    fn on(&mut self, weekday: u8, which: u8) {
        if let Some(of_week) = self.of_week.get_mut(usize::from(weekday % SUNDAY_AGAIN)) {
            *of_week |= which;
        }
    }
}

impl CronField {
    fn parse(&self, field: &str) -> Result<NamedValues, String> {
        field
            .split(',')
            .try_fold(NamedValues::default(), |all, part| {
                let named = self.part(part)?;
                Ok(NamedValues {
                    numbers: all.numbers | named.numbers,
                    any: all.any | named.any,
                })
            })
    }

    /// A number, a range or a `*`, each with or without a step.
    fn part(&self, part: &str) -> Result<NamedValues, String> {
        let (range, step) = part
            .split_once('/')
            .map_or((part, None), |(range, step)| (range, Some(step)));
        let step = match step {
            Some(step) => step
                .parse()
                .ok()
                .filter(|step| *step > 0)
                .ok_or_else(|| self.unreadable(part))?,
            None => 1,
        };
        let any = range == "*" || range == "?";
        let (least, most) = match range.split_once('-') {
            _ if any => (self.least, self.most),
            Some((least, most)) => (self.number(least)?, self.number(most)?),
            None => {
                let only = self.number(range)?;
                // With a step, a single number is the beginning of the range.
                (
                    only,
                    if part.contains('/') {
                        self.most.max(only)
                    } else {
                        only
                    },
                )
            }
        };
        if least > most {
            return Err(format!("its {} {part:?} runs backwards", self.name));
        }
        let numbers = (least..=most)
            .step_by(usize::from(step))
            .fold(0, |numbers, number| numbers | bit(number));
        // As in CronJob, `*/2` is a list of days, not a `*`.
        Ok(NamedValues {
            numbers,
            any: any && step == 1_u8,
        })
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        let named = self
            .names
            .iter()
            .zip(self.least..)
            .find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = named
            .map(|(_, number)| number)
            .or_else(|| text.parse().ok());
        let most = if self.most == WEEKDAY.most {
            SUNDAY_AGAIN
        } else {
            self.most
        };
        number
            .filter(|number| (self.least..=most).contains(number))
            .ok_or_else(|| self.unreadable(text))
    }

    fn unreadable(&self, text: &str) -> String {
        format!("{text:?} is no {}", self.name)
    }
}
