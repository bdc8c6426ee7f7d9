//! Renders times as relative, with the exact time as tooltip.

use jiff::Timestamp;
use maud::{Markup, html};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Renders a time of the world; a text that is no time is shown as it is.
pub fn moment(at: &str, now: Timestamp) -> Markup {
    match at.parse::<Timestamp>() {
        Ok(time) => html! { time datetime=(at) title=(exact(time)) { (short(time, now)) } },
        Err(_) => html! { (at) },
    }
}

/// E.g. `2026-01-05 08:00:00 UTC`.
pub fn exact(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn short(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - time.as_second();
    match seconds {
        ..0 => format!("in {}", length(-seconds)),
        0..5 => "just now".to_owned(),
        5.. => format!("{} ago", length(seconds)),
    }
}

fn length(seconds: i64) -> String {
    match seconds {
        ..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds < 2 * DAY => "1 day".to_owned(),
        _ => format!("{} days", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms() {
        let now: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let cases = [
            ("2026-01-05T08:00:00Z", "just now"),
            ("2026-01-05T07:59:56Z", "just now"),
            ("2026-01-05T07:59:30Z", "30 s ago"),
            ("2026-01-05T07:56:30Z", "3 min ago"),
            ("2026-01-05T05:00:01Z", "2 h ago"),
            ("2026-01-04T08:00:00Z", "1 day ago"),
            ("2025-12-05T08:00:00Z", "31 days ago"),
            ("2026-01-05T08:00:07Z", "in 7 s"),
        ];
        for (at, expected) in cases {
            assert_eq!(short(at.parse().unwrap(), now), expected, "{at}");
        }
    }

    #[test]
    fn the_exact_time_is_behind_it() {
        let now: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let shown = moment("2026-01-05T07:56:30Z", now).into_string();
        assert_eq!(
            shown,
            r#"<time datetime="2026-01-05T07:56:30Z" title="2026-01-05 07:56:30 UTC">3 min ago</time>"#
        );
    }
}
