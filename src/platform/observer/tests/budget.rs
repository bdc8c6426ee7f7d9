//! Reads and the budget that they share with changes and with other lists.

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn while_changes_wait_what_is_pending_is_read_with_the_regular_polls_alone() {
    let fake = Fake::of([compute("ep-000", "br-000")]);
    let mut fixture = Fixture::with(
        fake.clone(),
        fake.within(Rate {
            requests_per_minute: 600,
            burst: 20,
        }),
    );
    fixture.ask("ep-000", pending());
    fixture.after(1.0).await;
    let platform = Arc::clone(&fixture.source.platform);
    let change = |platform: Arc<RateLimited>| async move {
        loop {
            platform
                .budget()
                .acquire(Priority::Change, &Party::default())
                .await;
        }
    };
    let changes = [0, 1].map(|_| tokio::spawn(change(platform.clone())));
    let before = fixture.fake.count();
    fixture.after(300.0).await;
    assert!(
        (9..=11).contains(&(fixture.fake.count() - before)),
        "{:?}",
        fixture.fake.gaps()
    );
    changes.iter().for_each(tokio::task::JoinHandle::abort);
    let before = fixture.fake.count();
    fixture.ask(
        "ep-000",
        Interest {
            after: Some(fixture.tick()),
            ..pending()
        },
    );
    fixture.after(60.0).await;
    assert!(
        fixture.fake.count() - before > 30,
        "{:?}",
        fixture.fake.gaps()
    );
}

#[tokio::test(start_paused = true)]
async fn a_requested_read_does_not_queue_with_the_polls() {
    let fake = Fake::of([compute("ep-000", "br-000")]);
    let platform = fake.within(Rate {
        requests_per_minute: 12,
        burst: 6,
    });
    let mut fixture = Fixture::with(fake, Arc::clone(&platform));
    fixture.read("ep-000");
    fixture.after(26.0).await;
    // Half of the budget is used up, so polls have no share left.
    for _ in 0..3 {
        platform
            .budget()
            .acquire(Priority::Poll, &Party::default())
            .await;
    }
    fixture.after(6.0).await;
    assert_eq!(fixture.fake.count(), 1, "the poll waits for its share");
    fixture.ask("ep-000", since(fixture.tick()));
    assert_eq!(fixture.after(0.1).await, ["ep-000"]);
    assert_eq!(fixture.fake.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_budget_spreads_the_reads_of_an_account() {
    let fake = Fake::of([compute("ep-000", "br-000")]);
    let platform = fake.within(Rate {
        requests_per_minute: 60,
        burst: 2,
    });
    let mut fixture = Fixture::with(fake, platform);
    for project in 0..100 {
        fixture.source.of = format!("p-{project}").into();
        fixture.ask(&format!("s-{project}"), pending());
    }
    let start = Instant::now();
    fixture.after(240.0).await;
    let rate = fixture.fake.count() as f64 / start.elapsed().as_secs_f64();
    assert!(rate < 0.85, "{rate} requests a second, of a budget of one");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_two_namespaces_share_does_not_wait_behind_the_lists_of_one() {
    let fake = Fake::of([compute("ep-a", "br-a")]);
    let fixture = Fixture::with(
        Arc::clone(&fake),
        fake.within(Rate {
            requests_per_minute: 60,
            burst: 1,
        }),
    );
    let source = |of: String| Source {
        of: of.into(),
        ..fixture.source.clone()
    };
    let ask = |of: String, subscriber: String| {
        fixture
            .observers
            .read(&source(of), &subscriber, Interest::default())
    };
    for number in 0..200 {
        ask(format!("p-{number}"), format!("evil/{number}"));
        sleep(Duration::from_millis(1)).await;
    }
    // The last in the queue, until another namespace needs it.
    ask("shared".to_owned(), "evil/shared".to_owned());
    sleep(Duration::from_millis(1)).await;
    ask("shared".to_owned(), "shop/orders".to_owned());
    let start = Instant::now();
    let known = || fixture.observers.known("a", &"shared".into());
    while known().attempted.is_none() {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}
