use super::*;

fn policy(policy: DisruptionPolicy) -> Disruption {
    Disruption {
        policy,
        deadline: None,
        window: None,
    }
}

fn sundays() -> Disruption {
    Disruption {
        policy: DisruptionPolicy::Window,
        deadline: None,
        window: Some(Window {
            schedule: "0 3 * * SUN".into(),
            time_zone: Some("Europe/Berlin".into()),
            duration: Duration("2h".into()),
        }),
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_policies() {
    let now = at("2026-11-21T00:00:00Z");
    assert_eq!(permit(None, false, now, now), Permit::Now);
    assert_eq!(
        permit(Some(&policy(DisruptionPolicy::Immediate)), false, now, now),
        Permit::Now
    );
    assert_eq!(
        permit(Some(&policy(DisruptionPolicy::WhenIdle)), true, now, now),
        Permit::Now
    );
    assert_eq!(
        permit(Some(&policy(DisruptionPolicy::WhenIdle)), false, now, now),
        Permit::WhenIdle(None)
    );
}

#[test]
fn a_deadline_ends_the_wait_for_an_idle_compute() {
    let hour = Disruption {
        deadline: Some(Duration("1h".into())),
        ..policy(DisruptionPolicy::WhenIdle)
    };
    let (since, end) = (at("2026-11-21T00:00:00Z"), at("2026-11-21T01:00:00Z"));
    let permit = |idle, now| permit(Some(&hour), idle, since, at(now));
    assert_eq!(
        permit(false, "2026-11-21T00:59:59Z"),
        Permit::WhenIdle(Some(end))
    );
    assert_eq!(permit(false, "2026-11-21T01:00:00Z"), Permit::Now);
    assert_eq!(permit(true, "2026-11-21T00:00:00Z"), Permit::Now);
}

#[test]
fn a_window_opens_in_its_time_zone_and_closes_after_its_duration() {
    let opening = at("2026-11-22T02:00:00Z");
    for (now, expected) in [
        ("2026-11-22T01:59:59Z", Permit::At(opening)),
        ("2026-11-22T02:00:00Z", Permit::Now),
        ("2026-11-22T03:59:59Z", Permit::Now),
        (
            "2026-11-22T04:00:00Z",
            Permit::At(at("2026-11-29T02:00:00Z")),
        ),
        ("2026-07-05T01:00:00Z", Permit::Now),
    ] {
        assert_eq!(
            permit(Some(&sundays()), false, at(now), at(now)),
            expected,
            "{now}"
        );
    }
}

#[test]
fn a_window_that_is_not_followed_never_opens() {
    let now = at("2026-11-22T02:00:00Z");
    let given = |schedule: &str, zone: &str| {
        let mut window = sundays();
        let declared = window.window.as_mut().unwrap();
        (declared.schedule, declared.time_zone) = (schedule.into(), Some(zone.into()));
        permit(Some(&window), true, now, now)
    };
    assert!(matches!(
        given("0 3 * * SUN", "Mars/Base"),
        Permit::Never(_)
    ));
    assert!(matches!(given("0 0 31 2 *", "UTC"), Permit::Never(_)));
    assert_eq!(
        given("0 0 29 2 *", "UTC"),
        Permit::At(at("2028-02-29T00:00:00Z"))
    );
    assert!(
        matches!(given("0 0 * 2 MON#5", "UTC"), Permit::NotSoon(_)),
        "the next one is in 2044"
    );
}
