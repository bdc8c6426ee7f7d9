//! Rules of times: cron expressions and time zones.

use kube::core::Rule;

use super::{matches, rule};

/// In the order of their numbers, from 1.
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
/// In the order of their numbers, from 0.
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// `self` is a cron expression of five fields as for CronJob, or with L, W, # or 7 for Sunday.
pub(in crate::api) fn cron() -> Rule {
    let day = "(0?[1-9]|[12][0-9]|3[01])";
    let month = "(0?[1-9]|1[0-2])";
    let weekday = format!("([0-7]|(?i:{}))", WEEKDAYS.join("|"));
    let fields = [
        list(&steps(&range("[0-5]?[0-9]"), "(0?[1-9]|[1-5][0-9])")),
        list(&steps(
            &range("([01]?[0-9]|2[0-3])"),
            "(0?[1-9]|1[0-9]|2[0-3])",
        )),
        list(&format!("({}|L|{day}W)", steps(&range(day), day))),
        list(&steps(&named_range(month, &MONTHS), month)),
        list(&format!(
            "({}|{weekday}L|{weekday}#[1-5])",
            steps(&named_range("[0-7]", &WEEKDAYS), "[1-7]")
        )),
    ];
    rule(
        matches("self", &format!("^{}$", fields.join(" +"))),
        "write a cron expression of five fields: minute, hour, day of month, month and day of week, such as 0 3 * * SUN",
    )
}

fn list(item: &str) -> String {
    format!("{item}(,{item})*")
}

fn range(value: &str) -> String {
    format!("{value}(-{value})?")
}

/// A range has two numbers or two names: no rule could check if FRI-2 runs backwards.
fn named_range(number: &str, names: &[&str]) -> String {
    let name = format!("(?i:{})", names.join("|"));
    format!("{}|{}", range(number), range(&name))
}

fn steps(ranges: &str, step: &str) -> String {
    format!(r"((\*|{ranges})(/{step})?)")
}

/// No range of the cron expression `self` runs backwards. Such a range is common in countries where
/// the week ends with Sunday.
pub(in crate::api) fn cron_ranges() -> Rule {
    let names = format!(
        "(?i)[ ,]({}|{})($|[ ,/])",
        backwards(&WEEKDAYS),
        backwards(&MONTHS)
    );
    let numbers = "self.findAll('[0-9]{1,2}-[0-9]{1,2}').all(range, \
                   int(range.split('-')[0]) <= int(range.split('-')[1]))";
    rule(
        format!("!{} && {numbers}", matches("self", &names)),
        "write ranges upwards (a week begins with SUN, or 0); instead of SAT-SUN write SAT,SUN",
    )
}

fn backwards(names: &[&str]) -> String {
    let pairs = (1..names.len())
        .map(|first| format!("({})-{}", names[first..].join("|"), names[first - 1]));
    pairs.collect::<Vec<_>>().join("|")
}

/// `self` is a valid name of a time zone.
pub(in crate::api) fn time_zone() -> Rule {
    rule(
        format!(
            "self != 'Local' && {}",
            matches("self", "^[A-Za-z][-+_A-Za-z0-9]*(/[-+_A-Za-z0-9]+){0,2}$")
        ),
        "write the IANA name of a time zone, such as Europe/Berlin or UTC",
    )
}
