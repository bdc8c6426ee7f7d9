//! When a key was last used.

use jiff::Timestamp;

const HOUR: i64 = 3600;

/// Whether two times of a last use are reported as one: of a key that is used all the time, one use in each hour counts.
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
