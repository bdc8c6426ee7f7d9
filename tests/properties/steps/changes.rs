//! Changes and restarts are made once, whatever happens to their answers and records.

use dbplane::decide::names;
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::model::{Action, FailureOrder};
use serde_json::{Value, json};

use crate::faults::{Carried, Fault};
use crate::history::{Access, Event, History, compute};
use crate::injector::{ADMISSION, Injected, LIST, Times};
use crate::run::Run;
use crate::simulation::BASE_URL;
use crate::watching::{history, replica};

const CHANGED: &str = "r0 Changed: Changed compute ID: size is 1, declared is 2";
const RESTARTED: &str = "r0 Restarted: Restarted compute ID";

impl Run<'_> {
    fn restarts(&self) -> usize {
        self.calls("Post", "Compute")
    }
}

/// Runs until the declared resources are ready, then clears the ledger.
pub(super) fn settled(history: &History, seconds: u16) -> Run<'_> {
    let mut run = Run::begin(history).unwrap();
    run.run_for(seconds).unwrap();
    {
        let mut simulation = run.simulation.lock();
        simulation.ledger.calls.clear();
        simulation.ledger.events.clear();
    }
    run
}

#[test]
fn a_restart_is_made_with_a_change_that_interrupts_anyway() {
    let history = history(&[replica()], false);
    let mut run = settled(&history, 60);
    let spec = json!({"size": {"fixed": 2}, "restartToken": "t1"});
    assert_eq!(
        run.events_after(300, |run| run.apply(&compute(0), &spec)),
        [CHANGED]
    );
    assert_eq!((run.calls("Patch", "Compute"), run.restarts()), (1, 0));
}

#[test]
fn a_list_from_before_a_change_says_nothing_of_it() {
    let history = history(&[replica()], false);
    let unreachable = "r0 PlatformUnreachable: The platform failed (500): no";
    for (spec, reported) in [
        (json!({"size": {"fixed": 2}}), Some(CHANGED)),
        (json!({"restartToken": "t1"}), None),
        (
            json!({"size": {"fixed": 2}, "restartToken": "t1"}),
            Some(CHANGED),
        ),
    ] {
        let mut run = settled(&history, 60);
        run.inject(LIST, Times::Always, Injected::Fault(Fault::Refused(500)));
        let expected: Vec<&str> = reported.into_iter().chain([unreachable]).collect();
        assert_eq!(
            run.events_after(5, |run| run.apply(&compute(0), &spec)),
            expected
        );
        // An answer alone does not complete a restart.
        let calling = run.record(0).restart.unwrap().calling;
        assert_eq!(
            calling.is_some_and(|it| it.answered.is_some()),
            spec["restartToken"].is_string(),
            "{spec}"
        );
        run.without_injected_faults();
        run.run_for(120).unwrap();
        assert_eq!(run.record(0).restart.unwrap().calling, None, "{spec}");
        assert_eq!(run.calls("Patch", "Compute") + run.restarts(), 1, "{spec}");
    }
}

/// Records the call, its answer, and what the lists show. A restore from a backup does not need
/// them, so the annotation is left out.
#[test]
fn a_restart_is_recorded_in_the_status_alone() {
    let history = history(&[replica()], false);
    let mut run = settled(&history, 60);
    let before = run.simulation.lock().ledger.writes.len();
    run.happen(&Event::Restart(0, 1));
    run.run_for(120).unwrap();
    let writes = run.simulation.lock().ledger.writes[before..].to_vec();
    let kinds: Vec<&str> = writes
        .iter()
        .map(|write| write.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "ApplyStatus",
            "Post",
            "ApplyStatus",
            "ApplyStatus",
            "ApplyStatus"
        ],
        "{writes:#?}"
    );
}

#[test]
fn a_restart_whose_answer_is_lost_is_not_made_again() {
    let history = history(&[replica()], false);
    let mut run = settled(&history, 60);
    run.inject(
        "Post *",
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Now)),
    );
    run.happen(&Event::Restart(0, 1));
    run.run_for(300).unwrap();
    assert_eq!(run.restarts(), 1);
    assert_eq!(run.record(0).restart.unwrap().calling, None);
    assert!(
        run.condition(&compute(0), "Ready")
            .starts_with("Available: ")
    );
}

#[test]
fn a_compute_that_is_idle_is_not_woken_for_a_restart() {
    let history = history(&[replica()], false);
    let mut run = settled(&history, 900);
    run.happen(&Event::Restart(0, 1));
    run.run_for(60).unwrap();
    let status = |run: &mut Run| run.in_console(|world, _| world.console_computes(None)[0].status);
    assert_eq!(status(&mut run), "Idle");
    run.in_console(|world, now| {
        let id = world.console_computes(None)[0].id.clone();
        world.console_activity(&id, None, now).unwrap();
    });
    assert_eq!(run.events_after(120, |_| ()), Vec::<String>::new());
    assert_eq!((status(&mut run), run.restarts()), ("Active", 0));
}

/// The record is written shortly before its call, so earlier delays of the step do not matter.
#[test]
fn whatever_comes_slowly_is_done_all_the_same() {
    let history = history(&[replica()], true);
    let mut run = Run::prepared(&history);
    run.run_for(5).unwrap();
    run.inject("read of Secret to-r0", Times::Always, Injected::Slow(9));
    run.inject("read of Secret ci", Times::Always, Injected::Slow(9));
    run.inject("patch of *", Times::Always, Injected::Slow(25));
    run.declare();
    let reported = run.events_after(600, |run| {
        run.apply(&compute(0), &json!({"scaleToZero": {"never": true}}))
    });
    assert_eq!(
        reported,
        [
            "ci KeyCreated: Created key NAME (ID)",
            "r0 Created: Created compute ID on branch b0"
        ]
    );
    run.inject(ADMISSION, Times::Always, Injected::Slow(9));
    assert_eq!(
        run.events_after(600, |run| run.happen(&Event::Restart(0, 1))),
        [RESTARTED]
    );
    let spec = json!({"size": {"fixed": 2}, "restartToken": "t2"});
    // All in one pass, however long it takes.
    assert_eq!(
        run.events_after(5, |run| run.apply(&compute(0), &spec)),
        [CHANGED]
    );
}

#[test]
fn an_operation_that_fails_later_is_asked_for_and_shown() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    run.in_console(|world, now| {
        let error = "no capacity".to_owned();
        world.console_fail_operations(
            FailureOrder {
                action: Action::StartCompute,
                operations: 1,
                tries: 3,
                error,
            },
            now,
        );
    });
    run.declare();
    run.run_for(5).unwrap();
    let failures = |run: &Run| run.status_of(&compute(0))["lastOperation"]["failures"].clone();
    assert_eq!(failures(&run), Value::Null);
    run.run_for(600).unwrap();
    assert_eq!(failures(&run), json!(3));
    let synced = run.condition(&compute(0), "Synced");
    assert!(synced.starts_with("OperationFailed: "), "{synced}");
}

#[test]
fn a_setting_that_is_never_shown_is_not_sent_by_each_process() {
    let history = History {
        profile: Profile::Minimal,
        ..history(&[replica()], false)
    };
    let mut run = settled(&history, 60);
    run.apply(&compute(0), &json!({"scaleToZero": {"after": "10m"}}));
    run.run_for(60).unwrap();
    let before = run.simulation.lock().ledger.writes.clone();
    for _ in 0..5 {
        run.kill();
        run.run_for(30).unwrap();
    }
    assert_eq!(run.simulation.lock().ledger.writes, before);
    assert_eq!(run.calls("Patch", "Compute"), 1);
    run.run_for(100).unwrap();
    assert_eq!(run.calls("Patch", "Compute"), 2, "after five minutes");
}

#[test]
fn a_platform_that_is_spelled_differently_is_the_same() {
    let history = history(&[replica()], false);
    let mut run = settled(&history, 60);
    let spelled = "https://PLATFORM.example:443/api/v2/";
    run.apply(&Access::Account.resource(), &json!({"baseURL": spelled}));
    run.run_for(60).unwrap();
    assert_eq!(
        run.record(0).binding.unwrap().platform.as_deref(),
        Some(BASE_URL)
    );
    assert!(
        run.condition(&compute(0), "Ready")
            .starts_with("Available: ")
    );
    let before = run.simulation.lock().ledger.writes.len();
    run.annotate(&compute(0), names::RECONCILE, "now");
    run.run_for(60).unwrap();
    let written = run.simulation.lock().ledger.writes[before..].to_vec();
    // Only the status is written: it records the handled request.
    assert_eq!(written.len(), 1, "{written:#?}");
}
