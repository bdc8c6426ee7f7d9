use super::*;

#[test]
fn a_list_is_read_each_minute_within_a_tenth_of_the_budget_and_more_rarely_for_more_keys() {
    for (keys, requests_per_minute, key_check, seconds) in [
        (0, 600, 600, 54),
        (1, 600, 600, 54),
        (1000, 600, 600, 54),
        (2000, 600, 600, 108),
        // As often as key checks need it.
        (10_000, 600, 600, 450),
        (1, 600, 60, 45),
        (1, 600, 5, 3),
        // Ten requests are a tenth of a hundred.
        (1000, 100, 600, 60),
        (900, 60, 600, 90),
        (10_000, 60, 600, 1000),
        (1, 6, 600, 100),
        (usize::MAX, 1, 600, u64::MAX),
    ] {
        let interval =
            list_interval(keys, requests_per_minute, Duration::from_secs(key_check)).as_secs();
        match seconds {
            u64::MAX => assert!(interval > 1 << 32, "{interval}"),
            seconds => assert_eq!(
                interval, seconds,
                "{keys} keys, {requests_per_minute} requests"
            ),
        }
    }
}
