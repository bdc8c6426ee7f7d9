use std::cell::Cell;

use jiff::SignedDuration;

use super::*;

thread_local! {
    static EVALUATIONS: Cell<usize> = const { Cell::new(0) };
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn count(work: CountedWork) {
    let counter = if work == CountedWork::Evaluation {
        &EVALUATIONS
    } else {
        &LOOKS
    };
    counter.set(counter.get() + 1);
}

/// Counts the searches for a next or last time, and the months and clock changes that they looked
/// at.
pub fn work_of<T>(what: impl FnOnce() -> T) -> (usize, usize) {
    EVALUATIONS.set(0);
    LOOKS.set(0);
    what();
    (EVALUATIONS.get(), LOOKS.get())
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn berlin(expression: &str) -> Cron {
    Cron::read(expression, Some("Europe/Berlin")).unwrap()
}

/// `tests/cron` generates the tables: an expression, a time zone, a time, and the ten times after
/// it (fewer if there are no more).
fn compare(table: &str) {
    let mut wrong = Vec::new();
    for row in table.lines() {
        let [expression, zone, after, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let cron = Cron::read(expression, Some(zone)).unwrap();
        let minute = |time: &Timestamp| time.strftime("%Y-%m-%dT%H:%MZ").to_string();
        let after = at(&after.replace('Z', ":00Z"));
        let times: Vec<_> = std::iter::successors(cron.next(after), |time| cron.next(*time))
            .take(10)
            .collect();
        if times.iter().map(minute).collect::<Vec<_>>().join(" ") != expected {
            wrong.push(format!(
                "{row}\n    not {}",
                times.iter().map(minute).collect::<Vec<_>>().join(" ")
            ));
        }
        last_follows_next(&cron, &times);
    }
    assert!(
        wrong.is_empty(),
        "{} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn last_follows_next(cron: &Cron, times: &[Timestamp]) {
    for (time, next) in times.iter().zip(times.iter().skip(1)) {
        // Neither searches more than five years.
        for until in [
            *time,
            *time + SECOND,
            (*next - SECOND).min(*time + SignedDuration::from_hours(4 * 365 * 24)),
        ] {
            assert_eq!(cron.last(until), Some(*time), "{cron:?} until {until}");
        }
    }
}

#[test]
fn times_are_those_of_cronjob() {
    compare(include_str!("times.tsv"));
}

#[test]
fn the_last_day_of_a_month_is_that_of_croniter() {
    compare(include_str!("last.tsv"));
}

#[test]
fn a_time_comes_whenever_the_clock_shows_it() {
    // Clocks there change by half an hour. CronJob's library steps by whole hours, so it loses
    // hours of such a day, and its noon.
    let island = |expression| Cron::parse(expression, Some("Australia/Lord_Howe")).unwrap();
    for (expression, after, next) in [
        ("0 12 * * *", "2026-10-03T01:30:00Z", "2026-10-04T01:00:00Z"),
        // At 02:00 clocks jump to 02:30.
        ("15 2 * * *", "2026-10-02T15:45:00Z", "2026-10-04T15:15:00Z"),
        ("30 2 * * *", "2026-10-02T16:00:00Z", "2026-10-03T15:30:00Z"),
        // At 02:00 clocks go back to 01:30.
        ("45 1 * * *", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"),
    ] {
        assert_eq!(
            island(expression).next(at(after)),
            Some(at(next)),
            "{expression} after {after}"
        );
    }
}

#[test]
fn the_last_time_at_a_change_of_the_clocks_is_the_one_before_it() {
    for (until, last) in [
        ("2026-10-25T01:00:00Z", "2026-10-25T00:30:00Z"),
        ("2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"),
        ("2026-03-29T01:00:00Z", "2026-03-28T01:30:00Z"),
        ("2026-03-29T01:30:00Z", "2026-03-28T01:30:00Z"),
    ] {
        assert_eq!(
            berlin("30 2 * * *").last(at(until)),
            Some(at(last)),
            "{until}"
        );
    }
}

#[test]
fn the_nearest_weekday_is_in_the_same_month() {
    let next = |expression: &str, after: &str| {
        Cron::parse(expression, None)
            .unwrap()
            .next(at(after))
            .unwrap()
    };
    for (expression, after, expected) in [
        // A Sunday, a Saturday, and both at the end and at the beginning of a month.
        (
            "0 3 15W * *",
            "2026-11-01T00:00:00Z",
            "2026-11-16T03:00:00Z",
        ),
        (
            "0 3 15W * *",
            "2026-08-01T00:00:00Z",
            "2026-08-14T03:00:00Z",
        ),
        (
            "0 3 31W * *",
            "2027-01-01T00:00:00Z",
            "2027-01-29T03:00:00Z",
        ),
        ("0 3 1W * *", "2026-08-01T00:00:00Z", "2026-08-03T03:00:00Z"),
        (
            "0 3 30W 2,3 *",
            "2027-02-01T00:00:00Z",
            "2027-03-30T03:00:00Z",
        ),
    ] {
        assert_eq!(
            next(expression, after),
            at(expected),
            "{expression} after {after}"
        );
    }
}

#[test]
fn seven_is_sunday_too() {
    let cron = |expression: &str| Cron::parse(expression, None).unwrap().calendar;
    assert_eq!(cron("0 3 * * 7"), cron("0 3 * * SUN"));
    assert_eq!(cron("0 3 * * 5-7"), cron("0 3 * * FRI,SAT,SUN"));
    assert_eq!(cron("0 3 * * 7L"), cron("0 3 * * SUNL"));
    assert_eq!(cron("0 3 * * 7#2"), cron("0 3 * * 0#2"));
}

#[test]
fn what_never_comes_is_found_out_soon() {
    let now = at("2026-11-26T08:11:30Z");
    for expression in ["0 3 30 2 *", "0 3 31 2,4,6,9,11 *", "0 3 30W 2 *"] {
        let never = berlin(expression);
        let (evaluations, looks) =
            work_of(|| assert_eq!((never.next(now), never.last(now)), (None, None)));
        assert!(
            evaluations == 2 && looks <= 2 * 110,
            "{expression}: {looks}"
        );
    }
    // 2100 is no leap year. CronJob searches to the end of the fifth year after this one.
    let leap = berlin("0 3 29 2 *");
    let (before, after) = (at("2096-02-29T02:00:00Z"), at("2104-02-29T02:00:00Z"));
    for (time, next) in [
        ("2098-12-31T22:59:00Z", None),
        ("2099-01-01T00:00:00Z", Some(after)),
    ] {
        assert_eq!(leap.next(at(time)), next, "{time}");
    }
    for (time, last) in [
        ("2101-12-31T22:59:00Z", Some(before)),
        ("2102-01-01T00:00:00Z", None),
    ] {
        assert_eq!(leap.last(at(time)), last, "{time}");
    }
    // The supported calendar begins and ends there.
    for time in [Timestamp::MAX, Timestamp::MIN] {
        let daily = berlin("0 3 * * *");
        assert!(
            daily.next(time).is_none_or(|next| next > time)
                && daily.last(time).is_none_or(|last| last <= time)
        );
    }
}

/// The maximum cost of finding out whether a schedule is ever due. First the weekdays on which
/// months of each length begin. Then 28 years, each with its clock changes and the few matching
/// months.
pub const MOST_TO_READ: usize = 4 * 7 + 28 * (2 + 3);

#[test]
fn what_never_comes_is_refused() {
    const NO_DAY: &str = "no month that it names has such a day";
    const PUT_FORWARD: &str = "are put forward just then, every year";
    for (expression, zone, expected) in [
        ("0 0 31 2 *", "UTC", NO_DAY),
        ("0 0 30 2 *", "UTC", NO_DAY),
        ("0 0 30,31 FEB *", "Europe/Berlin", NO_DAY),
        ("0 0 31 4,6,9,11 *", "UTC", NO_DAY),
        ("0 0 31 */2 *", "UTC", ""),
        ("0 0 31 2-12/2 *", "UTC", ""),
        ("0 0 31 2,4,6,9,11 *", "America/New_York", NO_DAY),
        ("0 0 30W 2 *", "UTC", NO_DAY),
        ("0 0 31W 4,6 *", "UTC", NO_DAY),
        ("0 0 30W 2 ?", "UTC", NO_DAY),
        // Clocks go forward from 2:00 to 3:00 on exactly that day.
        ("30 2 * 3 SUNL", "Europe/Berlin", PUT_FORWARD),
        ("0-59 2 * MAR 7L", "Europe/Berlin", PUT_FORWARD),
        ("0 2 * 3 SUN#2", "America/New_York", PUT_FORWARD),
        // At midnight, and by half an hour.
        ("15 2 * 10 SUN#1", "Australia/Lord_Howe", PUT_FORWARD),
        // Valid schedules, however rare their times are.
        ("0 0 29 2 *", "UTC", ""),
        ("0 0 29W 2 *", "UTC", ""),
        ("0 0 31 1,2 *", "UTC", ""),
        ("0 0 L 2 *", "UTC", ""),
        ("0 0 30 2 MON", "UTC", ""),
        ("0 0 * 2 MON#5", "Europe/Berlin", ""),
        ("30 2 * 3 SUNL", "UTC", ""),
        ("30 2 * 3 SUN#4", "Europe/Berlin", ""),
        ("30 2 25-31 3 *", "Europe/Berlin", ""),
        ("30 2 25 3 *", "Europe/Berlin", ""),
        ("30 2,3 * 3 SUNL", "Europe/Berlin", ""),
        ("30 3 * 3 SUNL", "Europe/Berlin", ""),
        ("30 2 * 10 SUNL", "Europe/Berlin", ""),
        ("30 2 29 2 *", "Africa/Casablanca", ""),
        ("* * * * *", "Europe/Berlin", ""),
    ] {
        let (evaluations, looks) =
            work_of(|| match (Cron::parse(expression, Some(zone)), expected) {
                (Ok(_), "") => {}
                (Err(error), text) if !text.is_empty() => {
                    let begin = format!("the schedule {expression:?} never comes: ");
                    assert!(
                        error.starts_with(&begin) && error.ends_with(text),
                        "{expression} in {zone}: {error}"
                    );
                }
                (outcome, _) => panic!("{expression} in {zone}: {outcome:?}"),
            });
        assert!(
            evaluations == 0 && looks <= MOST_TO_READ,
            "{expression} in {zone}: {looks}"
        );
    }
}

#[test]
fn years_of_every_kind_are_looked_at() {
    let years = EVERY_YEAR.0..EVERY_YEAR.1;
    let kinds: std::collections::BTreeSet<_> = years
        .map(|year| date(year, 1, 1))
        .map(|day| (day.days_in_year(), day.weekday().to_sunday_zero_offset()))
        .collect();
    assert_eq!(kinds.len(), 14);
}

#[test]
fn what_cannot_be_read_is_named() {
    for (expression, problem) in [
        ("0 25 * * *", r#""25" is no hour"#),
        ("@daily", "it has 1 fields, not five"),
        ("0 3 * *", "it has 4 fields, not five"),
        ("5-1 3 * * *", r#"its minute "5-1" runs backwards"#),
        ("*/0 3 * * *", r#""*/0" is no minute"#),
        ("0 3 32W * *", r#""32" is no day of month"#),
        ("0 3 0 * *", r#""0" is no day of month"#),
        ("0 3 * 13 *", r#""13" is no month"#),
        ("0 3 * * 8", r#""8" is no day of week"#),
        ("0 3 * * MON#6", r#""MON#6" is no day of week"#),
        ("0 3 , * *", r#""" is no day of month"#),
    ] {
        assert_eq!(
            Cron::parse(expression, Some("UTC")).unwrap_err(),
            format!(r#"the schedule "{expression}" cannot be read: {problem}"#)
        );
    }
    assert_eq!(
        Cron::parse("0 3 * * *", Some("Mars/Base")).unwrap_err(),
        r#"there is no time zone "Mars/Base""#
    );
}

#[test]
fn a_misspelled_time_zone_has_a_nearest_one() {
    for (name, expected) in [
        ("Europe/Berln", Some("Europe/Berlin")),
        ("Berlin", Some("Europe/Berlin")),
        ("America/NewYork", Some("America/New_York")),
        ("Asia/Singapor", Some("Asia/Singapore")),
        ("GMT+1", None),
        ("Mars/Base", None),
    ] {
        let flaw = Cron::examine("0 3 * * *", Some(name)).unwrap_err();
        assert_eq!(flaw, Flaw::Zone(expected.map(str::to_owned)), "{name}");
    }
}

/// The operator's machine need not have the files of this one.
#[test]
fn time_zones_are_those_of_the_program() {
    for name in [
        "localtime",
        "posixrules",
        "right/UTC",
        "posix/Europe/Berlin",
        "Etc/Unknown",
    ] {
        let found = Cron::examine("0 3 * * *", Some(name));
        assert!(matches!(found, Err(Flaw::Zone(_))), "{name}: {found:?}");
    }
    for name in ["UTC", "US/Pacific", "Etc/GMT+1", "europe/berlin"] {
        assert!(Cron::examine("0 3 * * *", Some(name)).is_ok(), "{name}");
    }
}
