//! Reads the times of an answer.
//!
//! The platform writes UTC. A time that cannot be read is unknown: it is neither early nor late,
//! and proves nothing.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserializer;

use super::lenient;

/// A time, with or without the letter of its zone. Null, absent or unreadable: unknown.
pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(lenient::<_, String>(deserializer)?.and_then(|text| read(text.trim())))
}

fn read(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| in_utc(text))
}

/// A date without a time of day is a whole day, and a time with the name of a zone may not be UTC.
/// Both are rejected.
fn in_utc(text: &str) -> Option<Timestamp> {
    let (_, time_of_day) = text.split_once(['T', 't', ' '])?;
    let plain = time_of_day
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | ','));
    if !plain {
        return None;
    }
    let time: DateTime = text.parse().ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Deserialize)]
    struct WithTime {
        #[serde(default, deserialize_with = "time")]
        at: Option<Timestamp>,
    }

    fn of(value: &Value) -> Option<String> {
        let body = json!({"at": value}).to_string();
        serde_json::from_str::<WithTime>(&body)
            .unwrap()
            .at
            .map(|at| at.to_string())
    }

    #[test]
    fn a_time_without_a_zone_is_utc_and_what_cannot_be_read_is_unknown() {
        for (value, expected) in [
            (json!("2025-02-07T07:00:05Z"), "2025-02-07T07:00:05Z"),
            (json!("2025-02-07T07:00:05z"), "2025-02-07T07:00:05Z"),
            (json!("2025-02-07T09:00:05+02:00"), "2025-02-07T07:00:05Z"),
            (
                json!("2025-02-07 07:00:05.25+00"),
                "2025-02-07T07:00:05.25Z",
            ),
            (json!("2025-02-07T07:00:05"), "2025-02-07T07:00:05Z"),
            (
                json!("2025-02-07T07:00:05.123456789"),
                "2025-02-07T07:00:05.123456789Z",
            ),
            (json!("2025-02-07 07:00:05"), "2025-02-07T07:00:05Z"),
            (json!("2025-02-07T07:00"), "2025-02-07T07:00:00Z"),
            (json!(" 2025-02-07T07:00:05 "), "2025-02-07T07:00:05Z"),
        ] {
            assert_eq!(of(&value).as_deref(), Some(expected), "{value}");
        }
        for value in [
            Value::Null,
            json!(1_738_911_605),
            json!(""),
            json!("2025-02-07"),
            json!("yesterday"),
            json!("2025-02-30T07:00:05"),
            json!("2025-02-07T07:00:05 CET"),
            json!("2025-02-07T07:00:05[Europe/Berlin]"),
            json!({"seconds": 1}),
        ] {
            assert_eq!(of(&value), None, "{value}");
        }
        assert!(serde_json::from_str::<WithTime>("{}").unwrap().at.is_none());
    }
}
