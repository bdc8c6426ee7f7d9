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
