//! Tests of failed reads.

use super::*;
use crate::domain::{NewCompute, Role, Settings, UnreadableEntry};
use crate::platform::fake::{broken, unauthorized};
use crate::platform::{Platform, PlatformClient};

/// The author of an Account chooses the server, and so the size of its answers.
#[tokio::test(start_paused = true)]
async fn a_list_for_which_its_namespace_has_no_room_is_not_kept_and_the_one_before_is() {
    let mut fixture = Fixture::new(2);
    // The list is small at first, and grows beyond the memory limit.
    fixture.source.room = Arc::new(Room::new(128 << 10));
    fixture.read("ep-000");
    fixture.after(1.0).await;
    let kept = fixture.read("ep-000").snapshot.unwrap();
    let many = (128 << 10) / ProjectComputes::weight(&compute("ep-000", "br")) + 1;
    *fixture.fake.computes.lock().unwrap() = (0..many)
        .map(|it| compute(&format!("ep-{it:03}"), "br"))
        .collect();
    assert_eq!(fixture.after(31.0).await, ["ep-000"]);
    let view = fixture.read("ep-000");
    assert!(
        view.snapshot == Some(kept),
        "the last one that there was room for"
    );
    assert!(
        matches!(view.fault, Some(Fault::TooLarge { .. })),
        "{:?}",
        view.fault
    );
    assert!(
        fixture
            .observers
            .too_large("a")
            .unwrap()
            .contains("project p")
    );
    assert_eq!(fixture.observers.too_large("b"), None);
    // Two lists use up the memory, so the third one is not even read.
    let asked = |fixture: &Fixture| fixture.fake.count();
    fixture.fake.computes.lock().unwrap().truncate(2);
    let another = |of: &str| Source {
        of: of.into(),
        ..fixture.source.clone()
    };
    let ask = |of: &str| {
        fixture
            .observers
            .read(&another(of), &of.to_owned(), Interest::default())
    };
    ask("q");
    sleep(Duration::from_secs(61)).await;
    assert_eq!(
        (ask("q").fault, fixture.observers.too_large("a")),
        (None, None),
        "what shrinks again is kept again"
    );
    let before = asked(&fixture);
    ask("r");
    sleep(Duration::from_millis(100)).await;
    assert!(matches!(ask("r").fault, Some(Fault::TooLarge { .. })));
    assert_eq!(asked(&fixture), before);
    // Ending a subscription frees memory.
    fixture.observers.forget(&"q".to_owned());
    sleep(Duration::from_secs(61)).await;
    assert!(ask("r").snapshot.is_some() && ask("r").fault.is_none());
}

#[tokio::test(start_paused = true)]
async fn faults_trigger_once_and_are_retried_less_and_less_often() {
    let mut fixture = Fixture::settled(2).await;
    fixture.fake.fail(broken());
    assert_eq!(fixture.after(30.0).await, ["ep-000", "ep-001"]);
    let view = fixture.read("ep-000");
    assert!(view.snapshot.is_some() && view.fault == Some(broken()));
    let before = fixture.fake.count();
    assert_eq!(fixture.after(600.0).await, Vec::<String>::new());
    let attempts = fixture.fake.count() - before;
    assert!((10..=20).contains(&attempts), "{attempts}");
    fixture.fake.fail(Fault::Transport {
        message: "down".to_owned(),
    });
    assert_eq!(
        fixture.after(60.0).await,
        ["ep-000", "ep-001"],
        "another kind"
    );
    fixture.fake.fail(None);
    assert_eq!(fixture.after(60.0).await, ["ep-000", "ep-001"], "recovery");
    assert_eq!(fixture.read("ep-000").fault, None);
}

#[tokio::test(start_paused = true)]
async fn a_fault_answers_a_request_once_and_is_not_retried_at_once() {
    let mut fixture = Fixture::settled(2).await;
    fixture.fake.fail(broken());
    let written = fixture.tick();
    fixture.ask("ep-000", since(written));
    assert_eq!(fixture.after(0.2).await, ["ep-000", "ep-001"]);
    let before = fixture.fake.count();
    for _ in 0..100 {
        fixture.ask("ep-000", since(written));
        assert_eq!(fixture.after(0.1).await, Vec::<String>::new());
    }
    assert!(
        fixture.fake.count() - before <= 5,
        "{:?}",
        fixture.fake.gaps()
    );
    // A later write causes one more attempt.
    fixture.after(120.0).await;
    let before = fixture.fake.count();
    fixture.ask("ep-001", since(fixture.tick()));
    assert_eq!(fixture.after(0.2).await, ["ep-001"]);
    assert_eq!(fixture.fake.count() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed() {
    let mut fixture = Fixture::settled(1).await;
    let throttled = Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(100)),
    };
    fixture.fake.fail(throttled);
    fixture.ask("ep-000", since(fixture.tick()));
    fixture.after(1.0).await;
    fixture.fake.fail(None);
    fixture.ask("ep-000", since(fixture.tick()));
    fixture.after(300.0).await;
    let longest = fixture.fake.gaps().into_iter().fold(0.0, f64::max);
    assert!((100.0..102.0).contains(&longest), "{longest}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_stops_reading_until_the_gate_opens() {
    let mut fixture = Fixture::settled(1).await;
    fixture.fake.fail(unauthorized());
    let new = NewCompute {
        branch_id: "b".into(),
        role: Role::Replica,
        name: None,
        settings: Settings::default(),
    };
    assert!(
        fixture
            .source
            .platform
            .create_compute(&"p".into(), &new)
            .await
            .is_err()
    );
    let asked = fixture.fake.count();
    assert_eq!(
        fixture.after(0.1).await,
        ["ep-000"],
        "triggered at once, although another call met the 401"
    );
    assert_eq!(
        fixture.read("ep-000").fault.map(|fault| fault.kind()),
        Some("key_in_doubt")
    );
    fixture.source.platform.refused();
    assert_eq!(fixture.after(0.1).await, ["ep-000"]);
    assert_eq!(fixture.read("ep-000").fault, Some(unauthorized()));
    fixture.ask("ep-000", since(fixture.tick()));
    assert_eq!(fixture.after(0.2).await, ["ep-000"]);
    fixture.after(3600.0).await;
    assert_eq!(fixture.fake.count(), asked);
    fixture.fake.fail(None);
    fixture
        .source
        .platform
        .probing()
        .list_projects()
        .await
        .unwrap();
    assert_eq!(fixture.after(0.1).await, ["ep-000"]);
    assert_eq!(fixture.read("ep-000").fault, None);
}

#[tokio::test(start_paused = true)]
async fn a_panic_counts_as_a_fault_and_observation_goes_on() {
    let mut fixture = Fixture::settled(1).await;
    *fixture.fake.panics.lock().unwrap() = true;
    assert_eq!(fixture.after(30.0).await, ["ep-000"]);
    assert_eq!(
        fixture.read("ep-000").fault.map(|fault| fault.kind()),
        Some("unknown_outcome")
    );
    fixture.after(600.0).await;
    assert!(fixture.fake.count() < 25);
    *fixture.fake.panics.lock().unwrap() = false;
    assert_eq!(fixture.after(60.0).await, ["ep-000"]);
    assert_eq!(fixture.read("ep-000").fault, None);
}

/// An unreadable entry may concern any subscriber, and so may its end.
#[tokio::test(start_paused = true)]
async fn an_entry_that_cannot_be_read_triggers_all_once_and_once_more_when_it_is_gone() {
    let mut fixture = Fixture::settled(2).await;
    let all = ["ep-000", "ep-001"];
    fixture
        .fake
        .unreadable
        .lock()
        .unwrap()
        .push(UnreadableEntry {
            id: None,
            field: "type".to_owned(),
        });
    assert_eq!(fixture.after(34.0).await, all);
    let snapshot = fixture.read("ep-000").snapshot.unwrap();
    let (known, gone) = ("ep-000".into(), "ep-gone".into());
    assert!(matches!(snapshot.compute(&known), Shown::Entry(_)));
    assert!(matches!(snapshot.compute(&gone), Shown::Unclear(_)));
    assert_eq!(
        (
            snapshot.count(),
            fixture.observers.unreadable("a")["p"].len()
        ),
        (3, 1)
    );
    assert!(fixture.observers.unreadable("b").is_empty());
    assert_eq!(
        fixture.after(34.0).await,
        [""; 0],
        "the same again is no news"
    );
    fixture.fake.unreadable.lock().unwrap().clear();
    assert_eq!(fixture.after(34.0).await, all);
    assert!(fixture.observers.unreadable("a").is_empty());
}
