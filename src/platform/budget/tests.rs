use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::advance;

use super::*;

fn budget(requests_per_minute: u32, burst: u32) -> Arc<Budget> {
    Arc::new(Budget::with_jitter(
        Rate {
            requests_per_minute,
            burst,
        },
        || 0.0,
    ))
}

fn of(namespace: &str) -> Party {
    Party::from([std::sync::Arc::from(namespace)])
}

/// The time that `count` requests of one priority take.
async fn time_for(budget: &Budget, priority: Priority, count: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        budget.acquire(priority, &of("a")).await;
    }
    start.elapsed()
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Queues a request, which sends its name when it is granted.
async fn enqueue(
    budget: &Arc<Budget>,
    priority: Priority,
    name: &'static str,
    granted: &mpsc::UnboundedSender<&'static str>,
) {
    let (budget, granted) = (Arc::clone(budget), granted.clone());
    tokio::spawn(async move {
        budget.acquire(priority, &of("a")).await;
        granted.send(name).unwrap();
    });
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_then_the_rate() {
    let budget = budget(65, 5);
    assert_eq!(time_for(&budget, Priority::Change, 5).await, Duration::ZERO);
    let took = time_for(&budget, Priority::Change, 10).await;
    assert!((took.as_secs_f64() - 10.0).abs() < 0.1, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn no_minute_has_more_than_is_allowed_and_hardly_less() {
    for (per_minute, burst) in [(700, 20), (700, 40), (600, 20), (60, 50), (10, 20), (3, 1)] {
        let budget = budget(per_minute, burst);
        let mut sent = Vec::new();
        for _ in 0..4 * per_minute {
            budget.acquire(Priority::Change, &of("a")).await;
            sent.push(Instant::now());
            if sent.len() % (2 * per_minute as usize) == 0 {
                advance(Duration::from_secs(90)).await;
            }
        }
        let most = sent.iter().map(|first| {
            let minute = *first..*first + Duration::from_secs(60);
            sent.iter().filter(|at| minute.contains(at)).count()
        });
        let (most, allowed) = (most.max().unwrap_or_default(), per_minute as usize);
        assert!(
            (allowed - allowed.div_ceil(40)..=allowed).contains(&most),
            "{most} of {allowed} with {burst} at once"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn polls_and_reads_leave_room_for_changes() {
    let budget = budget(70, 10);
    assert_eq!(time_for(&budget, Priority::Poll, 5).await, Duration::ZERO);
    let (granted, mut order) = mpsc::unbounded_channel();
    enqueue(&budget, Priority::Poll, "sixth poll", &granted).await;
    assert!(order.try_recv().is_err());
    assert_eq!(
        time_for(&budget, Priority::FreshRead, 3).await,
        Duration::ZERO
    );
    assert_eq!(time_for(&budget, Priority::Change, 2).await, Duration::ZERO);
    assert_eq!(order.recv().await, Some("sixth poll"));
    // A minute of nothing but polling uses half of the budget.
    advance(Duration::from_secs(60)).await;
    time_for(&budget, Priority::Poll, 5).await;
    let took = time_for(&budget, Priority::Poll, 30).await;
    assert!((took.as_secs_f64() - 60.0).abs() < 1.0, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_go_by_priority_and_then_by_arrival() {
    let budget = budget(60, 1);
    budget.acquire(Priority::Change, &of("a")).await;
    let (granted, mut order) = mpsc::unbounded_channel();
    for (priority, name) in [
        (Priority::Poll, "poll"),
        (Priority::FreshRead, "read"),
        (Priority::Change, "change 1"),
        (Priority::Change, "change 2"),
    ] {
        enqueue(&budget, priority, name, &granted).await;
    }
    for expected in ["change 1", "change 2", "read", "poll"] {
        assert_eq!(order.recv().await, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_run_of_changes_does_not_starve_reads() {
    let budget = budget(60, 1);
    budget.acquire(Priority::Change, &of("a")).await;
    let (granted, mut order) = mpsc::unbounded_channel();
    enqueue(&budget, Priority::FreshRead, "read", &granted).await;
    for _ in 0..100 {
        enqueue(&budget, Priority::Change, "change", &granted).await;
    }
    let mut before = 0;
    while order.recv().await == Some("change") {
        before += 1;
    }
    let patience = PATIENCE[Priority::FreshRead as usize];
    assert!((patience..=patience + 2).contains(&before), "{before}");
}

#[tokio::test(start_paused = true)]
async fn a_poll_before_its_time_waits_for_all_others() {
    let budget = budget(60, 1);
    budget.acquire(Priority::Change, &of("a")).await;
    let (granted, mut order) = mpsc::unbounded_channel();
    enqueue(&budget, Priority::EarlyPoll, "early poll", &granted).await;
    for _ in 0..50 {
        enqueue(&budget, Priority::Change, "change", &granted).await;
    }
    enqueue(&budget, Priority::Poll, "poll", &granted).await;
    for _ in 0..51 {
        assert_ne!(order.recv().await, Some("early poll"));
    }
    assert_eq!(order.recv().await, Some("early poll"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_delays_nobody() {
    let budget = budget(60, 1);
    budget.acquire(Priority::Change, &of("a")).await;
    let party = of("a");
    let impatient = tokio::time::timeout(
        Duration::from_millis(100),
        budget.acquire(Priority::Change, &party),
    );
    assert!(impatient.await.is_err());
    let took = time_for(&budget, Priority::Poll, 1).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_for_all_and_ends_without_a_burst() {
    let budget = budget(60, 5);
    budget.throttled(Some(Duration::from_secs(30)));
    budget.throttled(Some(Duration::from_secs(10)));
    assert_eq!(budget.pause(), Some(Duration::from_secs(30)));
    let took = time_for(&budget, Priority::Change, 1).await;
    assert!((30.0..31.1).contains(&took.as_secs_f64()), "{took:?}");
    let took = time_for(&budget, Priority::Change, 5).await;
    assert!(
        took > Duration::from_secs(4),
        "a burst after a pause: {took:?}"
    );
    assert_eq!(budget.pause(), None);
}

#[tokio::test(start_paused = true)]
async fn a_pause_applies_to_those_who_wait_already() {
    let budget = budget(60, 1);
    budget.acquire(Priority::Change, &of("a")).await;
    let (granted, mut order) = mpsc::unbounded_channel();
    enqueue(&budget, Priority::Change, "change", &granted).await;
    budget.throttled(Some(Duration::from_secs(20)));
    advance(Duration::from_secs(19)).await;
    settle().await;
    assert!(order.try_recv().is_err());
    assert_eq!(order.recv().await, Some("change"));
}

#[tokio::test(start_paused = true)]
async fn pauses_of_unknown_length_double_until_something_succeeds() {
    let budget = budget(6000, 10);
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        budget.throttled(None);
        budget.throttled(None);
        assert_eq!(budget.pause(), Some(Duration::from_secs(expected)));
        budget.acquire(Priority::Poll, &of("a")).await;
    }
    budget.succeeded();
    budget.throttled(None);
    assert_eq!(budget.pause(), Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn jitter_takes_away_at_most_half() {
    let budget = Budget::with_jitter(Rate::default(), || 0.999);
    budget.throttled(None);
    let pause = budget.pause().unwrap();
    assert!((0.5..0.51).contains(&pause.as_secs_f64()), "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_have_a_limit_of_their_own_that_delays_nothing_else() {
    let budget = budget(6000, 100);
    let start = Instant::now();
    for _ in 0..6 {
        budget.acquire_key_creation(&of("a")).await;
    }
    let took = start.elapsed().as_secs_f64();
    assert!((1.9..2.1).contains(&took), "{took}");
    assert_eq!(
        time_for(&budget, Priority::Change, 10).await,
        Duration::ZERO
    );
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_zero_becomes_one() {
    let budget = budget(0, 0);
    budget.acquire(Priority::Poll, &of("a")).await;
    assert!(time_for(&budget, Priority::Poll, 1).await <= Duration::from_secs(61));
}

#[tokio::test(start_paused = true)]
async fn the_figures_say_what_is_left_and_how_long_requests_wait() {
    let budget = budget(66, 6);
    let left = || budget.figures().left;
    assert_eq!((budget.figures().requests_per_minute, left()), (66, 6));
    assert_eq!(time_for(&budget, Priority::Change, 5).await, Duration::ZERO);
    assert_eq!(left(), 1);
    advance(Duration::from_secs(3)).await;
    assert_eq!(left(), 4, "one a second");
    advance(Duration::from_secs(60)).await;
    assert_eq!(left(), 6, "and no more than a burst");

    assert_eq!(time_for(&budget, Priority::Change, 6).await, Duration::ZERO);
    let (granted, mut order) = mpsc::unbounded_channel();
    for name in ["one", "two"] {
        enqueue(&budget, Priority::Change, name, &granted).await;
    }
    advance(Duration::from_millis(500)).await;
    let waits = |priority: Priority| {
        let WaitFigures {
            waiting, waited, ..
        } = budget.figures().waits[priority as usize];
        (waiting, waited.as_millis())
    };
    assert_eq!(
        waits(Priority::Change),
        (2, 1000),
        "each half a second so far"
    );
    assert_eq!(
        (order.recv().await, order.recv().await),
        (Some("one"), Some("two"))
    );
    assert_eq!(
        waits(Priority::Change),
        (0, 3000),
        "one of them a second, the other two"
    );
    assert_eq!(waits(Priority::Poll), (0, 0));

    advance(Duration::from_secs(60)).await;
    budget.throttled(Some(Duration::from_secs(10)));
    assert_eq!(
        (left(), budget.figures().pause),
        (0, Duration::from_secs(10))
    );
    advance(Duration::from_secs(10)).await;
    assert_eq!(
        time_for(&budget, Priority::Change, 1).await,
        Duration::from_secs(1),
        "what was saved up is gone"
    );
    assert_eq!((left(), budget.figures().pause), (0, Duration::ZERO));
}

/// Number of requests that are granted before the last one. It is a single request of `quiet`,
/// behind a thousand of `noisy`.
async fn before_the_single(
    priority: Option<Priority>,
    noisy: &'static str,
    quiet: &'static str,
) -> usize {
    let budget = budget(6000, 1);
    let (granted, mut order) = mpsc::unbounded_channel();
    for number in 0..=1000 {
        let (budget, granted) = (Arc::clone(&budget), granted.clone());
        let namespace = if number < 1000 { noisy } else { quiet };
        tokio::spawn(async move {
            match priority {
                Some(priority) => budget.acquire(priority, &of(namespace)).await,
                None => budget.acquire_key_creation(&of(namespace)).await,
            }
            granted.send(number).unwrap();
        });
        tokio::task::yield_now().await;
    }
    let mut before = 0;
    while order.recv().await != Some(1000) {
        before += 1;
    }
    before
}

#[tokio::test(start_paused = true)]
async fn a_thousand_requests_of_one_namespace_delay_that_of_another_by_about_a_turn() {
    let classes = Priority::ALL.map(Some).into_iter().chain([None]);
    for class in classes {
        // Some requests are granted before the last one is queued.
        let before = before_the_single(class, "evil", "shop").await;
        assert!(before <= 6, "{class:?}: {before}");
        assert_eq!(
            before_the_single(class, "evil", "evil").await,
            1000,
            "in one namespace the first comes first"
        );
    }
}
