mod budget;
mod faults;
mod keys;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::*;
use crate::domain::{ComputeState, ProjectId, Shown};
use crate::platform::fake::{Fake, compute, noon};
use crate::platform::{Party, Priority, Rate};

/// The namespace is the part before the slash.
impl Subscriber for String {
    fn namespace(&self) -> &str {
        self.split_once('/')
            .map(|(namespace, _)| namespace)
            .unwrap_or_default()
    }
}

/// One project of computes, with subscribers named after the compute that concerns them.
struct Fixture {
    fake: Arc<Fake>,
    observers: Observers<String, ProjectComputes>,
    source: Source<ProjectId>,
    triggers: UnboundedReceiver<String>,
}

impl Fixture {
    fn new(computes: usize) -> Self {
        let fake = Fake::of(
            (0..computes)
                .map(|index| compute(&format!("ep-{index:03}"), &format!("br-{index:03}"))),
        );
        let platform = fake.rate_limited();
        Self::with(fake, platform)
    }

    fn with(fake: Arc<Fake>, platform: Arc<RateLimited>) -> Self {
        let (sender, triggers) = unbounded_channel();
        let source = Source {
            account: "a".to_owned(),
            of: "p".into(),
            platform,
            poll_interval: Duration::from_secs(30),
            room: Arc::default(),
        };
        Self {
            fake,
            observers: Observers::new(Ticks::default(), sender, noon, || 0.5),
            source,
            triggers,
        }
    }

    /// A fixture whose subscribers have all seen the first read.
    async fn settled(computes: usize) -> Self {
        let mut fixture = Self::new(computes);
        for index in 0..computes {
            fixture.read(&format!("ep-{index:03}"));
        }
        fixture.after(1.0).await;
        fixture
    }

    fn tick(&self) -> Tick {
        self.observers.hub.ticks.now()
    }

    fn read(&self, id: &str) -> LatestSnapshot {
        self.ask(id, Interest::default())
    }

    fn ask(&self, id: &str, mut interest: ComputeInterest) -> LatestSnapshot {
        interest.filter.computes = vec![id.into()];
        self.observers.read(&self.source, &id.to_owned(), interest)
    }

    /// Waits, and returns the subscribers that were triggered meanwhile.
    async fn after(&mut self, seconds: f64) -> Vec<String> {
        sleep(Duration::from_secs_f64(seconds)).await;
        let mut triggered = Vec::new();
        while let Ok(subscriber) = self.triggers.try_recv() {
            triggered.push(subscriber);
        }
        triggered.sort();
        triggered
    }
}

fn pending() -> ComputeInterest {
    Interest {
        pending: true,
        ..Interest::default()
    }
}

fn since(tick: Tick) -> ComputeInterest {
    Interest {
        after: Some(tick),
        ..Interest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_read_is_made_at_once_and_triggers_all() {
    let mut fixture = Fixture::new(2);
    assert_eq!(fixture.read("ep-000"), LatestSnapshot::default());
    assert_eq!(fixture.read("ep-001"), LatestSnapshot::default());
    assert_eq!(fixture.after(0.1).await, ["ep-000", "ep-001"]);
    let view = fixture.read("ep-000");
    let snapshot = view.snapshot.unwrap();
    assert_eq!((snapshot.at, view.fault), (noon(), None));
    assert!(
        matches!(snapshot.compute(&"ep-001".into()), Shown::Entry(found) if found.branch_id == "br-001")
    );
    assert!(matches!(snapshot.compute(&"ep-x".into()), Shown::Absent));
    assert_eq!(snapshot.on_branch(&"br-000".into()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn ten_quiet_minutes_cost_one_request_a_poll_whatever_the_number_of_computes() {
    let mut fixture = Fixture::settled(100).await;
    assert_eq!(fixture.after(598.0).await, Vec::<String>::new());
    assert_eq!(fixture.fake.count(), 20);
    assert!(
        fixture
            .fake
            .gaps()
            .iter()
            .all(|gap| (29.9..30.1).contains(gap))
    );
}

#[tokio::test(start_paused = true)]
async fn only_those_whose_compute_changed_are_triggered() {
    let mut fixture = Fixture::settled(10).await;
    fixture
        .fake
        .edit("ep-003", |c| c.current_state = ComputeState::Active);
    fixture.fake.edit("ep-004", |c| c.updated_at = Some(noon()));
    assert_eq!(fixture.after(30.0).await, ["ep-003"]);
    fixture
        .fake
        .edit("ep-003", |c| c.last_active = Some(noon()));
    assert_eq!(fixture.after(30.0).await, Vec::<String>::new());
    fixture
        .fake
        .computes
        .lock()
        .unwrap()
        .retain(|c| c.id != "ep-005");
    assert_eq!(fixture.after(30.0).await, ["ep-005"]);
}

#[tokio::test(start_paused = true)]
async fn changes_on_a_branch_trigger_its_subscribers() {
    let mut fixture = Fixture::new(1);
    let filter = ComputeFilter {
        branches: vec!["br-new".into()],
        ..ComputeFilter::default()
    };
    let interest = Interest {
        filter,
        ..Interest::default()
    };
    fixture.ask("waits", interest);
    fixture.after(1.0).await;
    for branch in ["br-new", "br-elsewhere"] {
        fixture.fake.edit("ep-000", |c| c.branch_id = branch.into());
        assert_eq!(fixture.after(30.0).await, ["waits"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_in_progress_does_not_satisfy_a_later_write() {
    let mut fixture = Fixture::new(1);
    *fixture.fake.delay.lock().unwrap() = Duration::from_secs(1);
    fixture.read("ep-000");
    fixture.after(0.5).await;
    fixture
        .fake
        .edit("ep-000", |c| c.name = Some("written".to_owned()));
    let written = fixture.tick();
    assert_eq!(
        fixture.ask("ep-000", since(written)).since(Some(written)),
        None
    );
    assert_eq!(fixture.after(0.6).await, ["ep-000"], "the first read");
    assert_eq!(
        fixture.ask("ep-000", since(written)).since(Some(written)),
        None
    );
    assert_eq!(
        fixture.after(1.0).await,
        ["ep-000"],
        "the one that was asked for"
    );
    let view = fixture.ask("ep-000", since(written));
    assert_eq!(
        view.since(Some(written)).unwrap().items[0].name.as_deref(),
        Some("written")
    );
    assert_eq!(fixture.after(20.0).await, Vec::<String>::new());
    assert_eq!(fixture.fake.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_requested_read_triggers_its_subscribers_also_without_a_change() {
    let mut fixture = Fixture::settled(3).await;
    let written = fixture.tick();
    fixture.ask("ep-001", since(written));
    assert_eq!(fixture.after(0.2).await, ["ep-001"]);
    assert!(
        fixture
            .ask("ep-001", since(written))
            .since(Some(written))
            .is_some()
    );
    fixture.after(20.0).await;
    assert_eq!(fixture.fake.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_newer_than_the_latest_can_be_requested() {
    let mut fixture = Fixture::settled(1).await;
    let known = fixture.read("ep-000").snapshot.unwrap().began;
    fixture.ask("ep-000", since(known));
    assert_eq!(fixture.after(0.2).await, ["ep-000"]);
    assert!(fixture.read("ep-000").since(Some(known)).is_some());
}

#[tokio::test(start_paused = true)]
async fn many_writes_share_few_reads() {
    let mut fixture = Fixture::settled(100).await;
    let before = fixture.fake.count();
    for index in 0..100 {
        let written = fixture.tick();
        fixture.ask(&format!("ep-{index:03}"), since(written));
        sleep(Duration::from_millis(10)).await;
    }
    let triggered = fixture.after(1.0).await;
    assert_eq!(triggered.len(), 100);
    let reads = fixture.fake.count() - before;
    assert!((9..=12).contains(&reads), "{reads}");
}

#[tokio::test(start_paused = true)]
async fn fast_while_pending_and_slow_again() {
    let mut fixture = Fixture::settled(2).await;
    fixture.ask("ep-000", pending());
    fixture.after(60.0).await;
    let looks = fixture.fake.count();
    assert!((38..=42).contains(&looks), "{looks}");
    fixture.read("ep-000");
    fixture.after(300.0).await;
    assert!(
        fixture.fake.count() - looks <= 11,
        "{:?}",
        fixture.fake.gaps()
    );
}

#[tokio::test(start_paused = true)]
async fn what_stays_pending_is_read_less_often_until_something_new_is_pending() {
    let mut fixture = Fixture::settled(2).await;
    fixture.ask("ep-000", pending());
    fixture.after(3600.0).await;
    let hour = fixture.fake.count();
    assert!((80..500).contains(&hour), "{hour}");
    let last = *fixture.fake.gaps().last().unwrap();
    assert!(last > 25.0, "{last}");
    fixture.ask("ep-000", pending());
    fixture.after(60.0).await;
    assert!(fixture.fake.count() - hour <= 3);
    fixture.ask("ep-001", pending());
    fixture.after(60.0).await;
    assert!(fixture.fake.count() - hour > 30);
    fixture.after(3600.0).await;
    let written = Interest {
        after: Some(fixture.tick()),
        ..pending()
    };
    let later = fixture.fake.count();
    for _ in 0..6 {
        fixture.ask("ep-000", written.clone());
        fixture.after(10.0).await;
    }
    assert!(fixture.fake.count() - later > 30);
}

#[tokio::test(start_paused = true)]
async fn another_platform_replaces_the_old_one_and_its_snapshot() {
    let mut fixture = Fixture::settled(1).await;
    *fixture.fake.delay.lock().unwrap() = Duration::from_secs(5);
    fixture.ask("ep-000", since(fixture.tick()));
    fixture.after(1.0).await;
    let other = Fake::of([compute("ep-other", "br-000")]);
    fixture.source.platform = other.rate_limited();
    assert_eq!(fixture.read("ep-000"), LatestSnapshot::default());
    assert_eq!(fixture.after(0.2).await, ["ep-000"]);
    let snapshot = fixture.read("ep-000").snapshot.unwrap();
    assert_eq!(snapshot.items[0].id, "ep-other");
    fixture.after(10.0).await;
    assert!(
        Arc::ptr_eq(&fixture.read("ep-000").snapshot.unwrap(), &snapshot),
        "the old one's late answer is dropped"
    );
    assert_eq!((fixture.fake.count(), other.count()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_as_long_as_it_has_subscribers() {
    let mut fixture = Fixture::settled(2).await;
    fixture.observers.forget(&"ep-000".into());
    fixture
        .fake
        .edit("ep-000", |c| c.current_state = ComputeState::Active);
    assert_eq!(fixture.after(30.0).await, Vec::<String>::new());
    assert_eq!(fixture.observers.lists(), 1);
    fixture.observers.forget(&"ep-001".into());
    fixture.observers.forget(&"never seen".to_owned());
    assert_eq!(fixture.observers.lists(), 0);
    let asked = fixture.fake.count();
    fixture.after(300.0).await;
    assert_eq!(fixture.fake.count(), asked);
    assert_eq!(fixture.read("ep-000"), LatestSnapshot::default());
    assert_eq!(fixture.after(0.1).await, ["ep-000"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_has_one_project() {
    let mut fixture = Fixture::settled(1).await;
    fixture.source.of = "q".into();
    fixture.read("ep-000");
    assert_eq!(fixture.observers.lists(), 1);
    assert_eq!(fixture.after(1.0).await, ["ep-000"]);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_everything() {
    let mut fixture = Fixture::settled(3).await;
    fixture.observers.clone().shutdown().await;
    let asked = fixture.fake.count();
    assert_eq!(fixture.read("ep-000"), LatestSnapshot::default());
    fixture.after(300.0).await;
    assert_eq!(
        (fixture.fake.count(), fixture.observers.lists()),
        (asked, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_oldest_reading_of_each_account_is_known() {
    let mut fixture = Fixture::settled(1).await;
    assert_eq!(
        fixture.observers.oldest(),
        [("a".to_owned(), noon())].into()
    );
    let another = Source {
        account: "b".to_owned(),
        ..fixture.source.clone()
    };
    fixture
        .observers
        .read(&another, &"else".to_owned(), Interest::default());
    assert!(
        !fixture.observers.oldest().contains_key("b"),
        "nothing was read through it yet"
    );
    fixture.after(1.0).await;
    assert_eq!(fixture.observers.oldest().get("b"), Some(&noon()));
    fixture.observers.forget(&"ep-000".into());
    assert!(
        !fixture.observers.oldest().contains_key("a"),
        "nobody works with it any more"
    );
}
