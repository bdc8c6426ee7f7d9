//! Readings that fail.

use super::*;
use crate::domain::{NewCompute, Role, Settings};
use crate::platform::Platform;
use crate::platform::fake::{broken, unauthorized};

#[tokio::test(start_paused = true)]
async fn faults_trigger_once_and_are_retried_less_and_less_often() {
    let mut stage = Stage::settled(2).await;
    stage.fake.fail(broken());
    assert_eq!(stage.after(30.0).await, ["ep-000", "ep-001"]);
    let view = stage.read("ep-000");
    assert!(view.snapshot.is_some() && view.fault == Some(broken()));
    let before = stage.fake.count();
    assert_eq!(stage.after(600.0).await, Vec::<String>::new());
    let attempts = stage.fake.count() - before;
    assert!((10..=20).contains(&attempts), "{attempts}");
    stage.fake.fail(Fault::Transport { message: "down".to_owned() });
    assert_eq!(stage.after(60.0).await, ["ep-000", "ep-001"], "another kind");
    stage.fake.fail(None);
    assert_eq!(stage.after(60.0).await, ["ep-000", "ep-001"], "recovery");
    assert_eq!(stage.read("ep-000").fault, None);
}

#[tokio::test(start_paused = true)]
async fn a_fault_answers_a_request_once_and_is_not_retried_at_once() {
    let mut stage = Stage::settled(2).await;
    stage.fake.fail(broken());
    let written = stage.observers.tick();
    stage.ask("ep-000", since(written));
    assert_eq!(stage.after(0.2).await, ["ep-000", "ep-001"]);
    let before = stage.fake.count();
    for _ in 0..100 {
        stage.ask("ep-000", since(written));
        assert_eq!(stage.after(0.1).await, Vec::<String>::new());
    }
    assert!(stage.fake.count() - before <= 5, "{:?}", stage.fake.gaps());
    // A later write is a sign of life, and worth one more attempt.
    stage.after(120.0).await;
    let before = stage.fake.count();
    stage.ask("ep-001", since(stage.observers.tick()));
    assert_eq!(stage.after(0.2).await, ["ep-001"]);
    assert_eq!(stage.fake.count() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed() {
    let mut stage = Stage::settled(1).await;
    let throttled = Fault::Throttled { status: 429, retry_after: Some(Duration::from_secs(100)) };
    stage.fake.fail(throttled);
    stage.ask("ep-000", since(stage.observers.tick()));
    stage.after(1.0).await;
    stage.fake.fail(None);
    stage.ask("ep-000", since(stage.observers.tick()));
    stage.after(300.0).await;
    let longest = stage.fake.gaps().into_iter().fold(0.0, f64::max);
    assert!((100.0..102.0).contains(&longest), "{longest}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_stops_reading_until_the_gate_opens() {
    let mut stage = Stage::settled(1).await;
    stage.fake.fail(unauthorized());
    let new = NewCompute { branch_id: "b".to_owned(), role: Role::Replica, name: None, settings: Settings::default() };
    assert!(stage.source.platform.create_compute("p", &new).await.is_err());
    let asked = stage.fake.count();
    assert_eq!(stage.after(0.1).await, ["ep-000"], "told at once, although another call met the 401");
    assert_eq!(stage.read("ep-000").fault, Some(unauthorized()));
    stage.ask("ep-000", since(stage.observers.tick()));
    assert_eq!(stage.after(0.2).await, ["ep-000"]);
    stage.after(3600.0).await;
    assert_eq!(stage.fake.count(), asked);
    stage.fake.fail(None);
    stage.source.platform.probing().list_projects().await.unwrap();
    assert_eq!(stage.after(0.1).await, ["ep-000"]);
    assert_eq!(stage.read("ep-000").fault, None);
}

#[tokio::test(start_paused = true)]
async fn a_panic_counts_as_a_fault_and_observation_goes_on() {
    let mut stage = Stage::settled(1).await;
    *stage.fake.panics.lock().unwrap() = true;
    assert_eq!(stage.after(30.0).await, ["ep-000"]);
    assert_eq!(stage.read("ep-000").fault.map(|fault| fault.kind()), Some("unknown_outcome"));
    stage.after(600.0).await;
    assert!(stage.fake.count() < 25);
    *stage.fake.panics.lock().unwrap() = false;
    assert_eq!(stage.after(60.0).await, ["ep-000"]);
    assert_eq!(stage.read("ep-000").fault, None);
}
