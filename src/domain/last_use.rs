//! Compares the times of a key's last use.

use jiff::Timestamp;

const HOUR: i64 = 3600;

/// True if two times count as the same last use: for a key in constant use, one use per hour
/// counts.
pub fn is_same_use(one: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    let hour = |time: Timestamp| time.as_second().div_euclid(HOUR);
    one.map(hour) == other.map(hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_use_in_each_hour_counts() {
        let at = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        for (one, other, same) in [
            ("", "", true),
            ("2026-01-05T08:00:00Z", "2026-01-05T08:59:59.9Z", true),
            ("2026-01-05T08:59:59Z", "2026-01-05T09:00:00Z", false),
            ("2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z", false),
            ("", "2026-01-05T08:00:00Z", false),
        ] {
            assert_eq!(is_same_use(at(one), at(other)), same, "{one} {other}");
        }
    }
}
