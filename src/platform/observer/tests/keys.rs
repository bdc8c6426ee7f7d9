//! Tests that all ProjectKeys of an organization share one list.

use std::sync::atomic::AtomicUsize;

use futures::future::join_all;
use tokio::time::Instant;

use super::*;
use crate::domain::{KeyId, OrganizationId};
use crate::platform::fake::{broken, key};

const POLL: Duration = Duration::from_secs(600);

/// Subscribers named after the ID of their key.
struct OrganizationFixture {
    fake: Arc<Fake>,
    observers: Observers<String, Keys>,
    source: Source<OrganizationId>,
    triggers: UnboundedReceiver<String>,
}

impl OrganizationFixture {
    fn new(keys: i64) -> Self {
        let fake = Fake::of([]);
        *fake.keys.lock().unwrap() = (0..keys).map(|id| key(id, &format!("key-{id}"))).collect();
        let (sender, triggers) = unbounded_channel();
        let source = Source {
            account: "a".to_owned(),
            of: "o".into(),
            platform: fake.rate_limited(),
            poll_interval: POLL,
            room: Arc::default(),
        };
        Self {
            fake,
            observers: Observers::new(Ticks::default(), sender, noon, || 0.5),
            source,
            triggers,
        }
    }

    /// Returns after all subscribers have seen the first read.
    async fn settled(keys: i64) -> Self {
        let mut organization = Self::new(keys);
        for id in 0..keys {
            organization.read(id);
        }
        organization.after(1.0).await;
        organization
    }

    fn interest(id: i64) -> KeyInterest {
        Interest {
            filter: KeyFilter {
                ids: vec![KeyId(id)],
                ..KeyFilter::default()
            },
            ..Interest::default()
        }
    }

    fn read(&self, id: i64) -> LatestKeys {
        self.observers
            .read(&self.source, &id.to_string(), Self::interest(id))
    }

    async fn read_again(&self, id: i64) -> LatestKeys {
        self.observers
            .read_again(&self.source, &id.to_string(), Self::interest(id))
            .await
    }

    async fn after(&mut self, seconds: f64) -> Vec<String> {
        sleep(Duration::from_secs_f64(seconds)).await;
        let mut triggered: Vec<String> =
            std::iter::from_fn(|| self.triggers.try_recv().ok()).collect();
        triggered.sort();
        triggered
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_costs_the_same_whatever_the_number_of_keys() {
    for keys in [1, 10_000] {
        let mut organization = OrganizationFixture::settled(keys).await;
        let first = organization.fake.count();
        assert_eq!(organization.after(3600.0).await, Vec::<String>::new());
        assert_eq!((first, organization.fake.count() - first), (1, 6), "{keys}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_those_whose_key_changed_are_triggered() {
    let mut organization = OrganizationFixture::settled(10).await;
    organization
        .fake
        .keys
        .lock()
        .unwrap()
        .retain(|key| key.id != KeyId(3));
    organization.fake.keys.lock().unwrap()[5].last_used_at = Some(noon());
    assert_eq!(organization.after(610.0).await, ["3", "6"]);
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_share_one_list_that_began_after_they_asked() {
    let organization = OrganizationFixture::settled(100).await;
    *organization.fake.delay.lock().unwrap() = Duration::from_secs(5);
    // This read is in progress when the others ask.
    let first = organization.read_again(0);
    let (first, others) = tokio::join!(first, async {
        sleep(Duration::from_secs(3)).await;
        organization
            .fake
            .keys
            .lock()
            .unwrap()
            .push(key(100, "created meanwhile"));
        join_all((1..100).map(|id| organization.read_again(id))).await
    });
    assert_eq!(first.snapshot.unwrap().items.len(), 100);
    assert!(
        others
            .iter()
            .all(|latest| latest.snapshot.as_ref().unwrap().items.len() == 101)
    );
    assert_eq!(organization.fake.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_asked_for_begin_a_second_apart() {
    let organization = OrganizationFixture::settled(1).await;
    let start = Instant::now();
    for _ in 0..5 {
        organization.read_again(0).await;
    }
    assert!(
        (3.9..5.1).contains(&start.elapsed().as_secs_f64()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_learns_of_a_fault_and_keeps_what_was_read_before() {
    let organization = OrganizationFixture::settled(2).await;
    organization.fake.fail(broken());
    let latest = organization.read_again(1).await;
    assert_eq!(latest.fault, Some(broken()));
    assert_eq!(latest.snapshot.unwrap().items.len(), 2);
    let after = organization.observers.hub.ticks.now();
    assert!(latest.attempted.unwrap() < after);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_offered_is_asked_for_every_two_minutes_for_all() {
    let mut organization = OrganizationFixture::new(100);
    organization.fake.fail(Fault::Unsupported {
        status: 405,
        message: String::new(),
    });
    for id in 0..100 {
        organization.read(id);
    }
    assert_eq!(
        organization.after(1.0).await.len(),
        100,
        "all are told once"
    );
    assert_eq!(organization.after(3600.0).await, Vec::<String>::new());
    let asked = organization.fake.count();
    assert!((29..=32).contains(&asked), "{asked}");
    organization.fake.fail(None);
    assert_eq!(
        organization.after(130.0).await.len(),
        100,
        "all are told that it is offered by now"
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_does_not_wait_for_an_observer_that_ends() {
    let organization = OrganizationFixture::settled(1).await;
    *organization.fake.delay.lock().unwrap() = Duration::from_secs(60);
    let ended = AtomicUsize::new(0);
    tokio::join!(
        async {
            assert_eq!(organization.read_again(0).await, LatestKeys::default());
            ended.fetch_add(1, Ordering::SeqCst);
        },
        async {
            sleep(Duration::from_secs(2)).await;
            assert_eq!(ended.load(Ordering::SeqCst), 0);
            organization.observers.shutdown().await;
        }
    );
    assert_eq!(organization.observers.lists(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_costs_nothing_to_ask() {
    let organization = OrganizationFixture::settled(3).await;
    let known = |of| {
        organization
            .observers
            .known("a", &OrganizationId::from(of))
            .snapshot
            .map(|list| list.items.len())
    };
    assert_eq!(
        (known("o"), known("elsewhere"), organization.fake.count()),
        (Some(3), None, 1)
    );
}
