//! Creates that are interrupted, unanswered or late, and their records.

use std::time::Duration;

use dbplane_simulator::world::Profile;
use serde_json::json;

use crate::faults::{Carried, Fault};
use crate::history::{Event, History, compute};
use crate::injector::{ADMISSION, CREATE, Injected, Times};
use crate::run::Run;
use crate::watching::{history, replica};

const CREATED: &str = "r0 Created: Created compute ID on branch b0";
const FOUND: &str = "r0 Linked: Found compute ID, which an interrupted create had made";
const MISSING: &str =
    "r0 ComputeNotFound: Compute ID is not in the project's list. dbplane reads the list again";
const AN_HOUR: Duration = Duration::from_secs(3600);

#[test]
fn the_process_that_follows_finds_what_was_created() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    let dies = || Injected::Fault(Fault::Dies(Carried::Now));
    run.inject(CREATE, Times::Once, dies());
    assert_eq!(run.events_after(120, Run::declare), [FOUND]);
    run.inject(CREATE, Times::Once, dies());
    assert_eq!(
        run.events_after(300, |run| run.happen(&Event::ComputeRemoved(0))),
        [MISSING, FOUND]
    );
    assert_eq!(run.simulation.lock().made_for(&compute(0)).len(), 1);
}

#[test]
fn what_an_unanswered_create_makes_late_is_reported_for_a_day() {
    let history = History {
        profile: Profile::Minimal,
        ..history(&[replica()], false)
    };
    for (carried, strays) in [(Carried::Late(150), 1), (Carried::Never, 0)] {
        let mut run = Run::prepared(&history);
        run.inject(
            CREATE,
            Times::Once,
            Injected::Fault(Fault::Silence(carried)),
        );
        let reported = run.events_after(130, Run::declare);
        assert_eq!(
            reported.last().map(String::as_str),
            Some(CREATED),
            "{reported:?}"
        );
        assert_eq!(
            (run.record(0).intent, run.record(0).unanswered.len()),
            (None, 1)
        );
        let reported = run.events_after(60, |_| ());
        let reported = reported
            .iter()
            .filter(|text| text.starts_with("r0 StrayCompute: "))
            .count();
        assert_eq!(reported, strays, "{reported:?}");
        run.simulation.lock().advance(25 * AN_HOUR);
        run.run_for(60).unwrap();
        // No record is dropped while there is something to report.
        assert_eq!(run.record(0).unanswered.len(), strays);
    }
}

#[test]
fn duplicates_of_a_repeated_create_are_deleted_after_a_day_without_use() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    // An existing compute shows that the platform has names.
    run.happen(&Event::ForeignCompute(0, true));
    let mut spec = history.spec(&compute(0)).unwrap();
    // A disabled compute does not start. Here, every started compute counts as used.
    spec["disabled"] = json!(true);
    run.inject(CREATE, Times::Once, Injected::Fault(Fault::Repeated));
    run.events_after(120, |run| run.apply(&compute(0), &spec));
    let made = |run: &Run| run.simulation.lock().made_for(&compute(0));
    assert_eq!(made(&run).len(), 2);
    assert!(
        run.condition(&compute(0), "Synced")
            .starts_with("StrayCompute: ")
    );
    let own = run.record(0).binding.unwrap().id.to_string();
    run.apply(&compute(0), &json!({"disabled": false}));
    run.run_for(300).unwrap();
    run.in_console(|world, now| world.console_activity(&own, None, now))
        .unwrap();
    run.simulation.lock().advance(23 * AN_HOUR);
    run.run_for(60).unwrap();
    assert_eq!(made(&run).len(), 2);
    run.simulation.lock().advance(2 * AN_HOUR);
    let reported = run.events_after(300, |_| ());
    let deleted = "r0 Deleted: Deleted compute ID, which a create of this resource had made besides, and nobody used";
    assert!(
        reported.iter().any(|text| text == deleted),
        "{reported:?} {}",
        run.condition(&compute(0), "Synced")
    );
    assert_eq!((made(&run), run.record(0).twins.len()), (vec![own], 0));
    assert!(run.condition(&compute(0), "Synced").starts_with("InSync: "));
}

#[test]
fn duplicates_of_a_repeated_create_are_deleted_with_their_resource() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    run.happen(&Event::ForeignCompute(0, true));
    run.inject(CREATE, Times::Once, Injected::Fault(Fault::Repeated));
    run.events_after(120, Run::declare);
    assert_eq!(run.simulation.lock().made_for(&compute(0)).len(), 2);
    assert!(
        run.condition(&compute(0), "Synced")
            .starts_with("StrayCompute: A create of this resource was carried out")
    );
    run.delete_now(&compute(0));
    run.run_for(300).unwrap();
    assert!(!run.is_there(&compute(0)));
    assert_eq!(
        run.simulation.lock().made_for(&compute(0)),
        Vec::<String>::new()
    );
}

#[test]
fn a_compute_that_was_just_created_needs_no_restart() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    let token =
        |run: &mut Run, token: &str| run.apply(&compute(0), &json!({"restartToken": token}));
    run.declare();
    token(&mut run, "t0");
    assert_eq!(run.events_after(60, |_| ()), [CREATED]);
    let record = run.record(0);
    assert_eq!(
        (record.intent, record.restart.map(|restart| restart.token)),
        (None, Some("t0".to_owned()))
    );
    let removed = |run: &mut Run| {
        run.happen(&Event::ComputeRemoved(0));
        token(run, "t1");
    };
    let recreated = "r0 Recreated: Compute ID no longer exists. Created compute ID on branch b0. Its host is another one";
    assert_eq!(run.events_after(300, removed), [MISSING, recreated]);
}

#[test]
fn a_create_waits_for_its_place_in_the_budget_and_then_for_a_new_list() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    run.inject(ADMISSION, Times::Always, Injected::Slow(40));
    let begun = run.now();
    assert_eq!(run.events_after(120, Run::declare), [CREATED]);
    let created = run.record(0).binding.unwrap().at;
    assert!(created >= begun + Duration::from_secs(40), "{created}");

    // A list that is one minute old is too old for a create, even with a place in the budget.
    let mut run = Run::prepared(&history);
    run.inject("read of Secret to-r0", Times::Always, Injected::Slow(70));
    assert_eq!(run.events_after(900, Run::declare), Vec::<String>::new());
    run.without_injected_faults();
    assert_eq!(run.events_after(60, |_| ()), [CREATED]);
}

/// After some time without a call, a successor concludes that nothing was created.
#[test]
fn a_call_that_is_recorded_late_or_not_at_all_is_not_made() {
    let history = history(&[replica()], false);
    for (snag, why) in [
        (Injected::Slow(31), "took too long"),
        (Injected::Fault(Fault::Denied), "did not record"),
    ] {
        let mut run = Run::prepared(&history);
        run.inject("status of Compute r0", Times::Always, snag);
        run.declare();
        run.run_for(600).unwrap();
        assert!(run.in_console(|world, _| world.console_computes(None).is_empty()));
        run.without_injected_faults();
        run.run_for(120).unwrap();
        let reported = run.simulation.lock().ledger.writes.join(" ");
        assert!(
            reported.contains("CallNotRecorded") && reported.contains(why),
            "{reported}"
        );
        assert!(
            run.condition(&compute(0), "Ready")
                .starts_with("Available: ")
        );
    }
}

#[test]
fn whose_compute_is_only_observed_is_deleted_at_once() {
    let history = History {
        computes: Vec::new(),
        ..history(&[], false)
    };
    let mut run = Run::prepared(&history);
    run.happen(&Event::ForeignCompute(0, true));
    let observer = History {
        computes: vec![crate::history::Declared {
            primary: true,
            ..replica()
        }],
        ..history.clone()
    };
    let mut spec = observer.spec(&compute(0)).unwrap();
    spec["management"] = json!("Observe");
    assert_eq!(
        run.events_after(60, |run| run.apply(&compute(0), &spec)),
        ["r0 Linked: Observing compute ID"]
    );
    assert_eq!(run.finalizers_of(&compute(0)), Vec::<String>::new());
    run.delete_now(&compute(0));
    assert!(!run.is_there(&compute(0)));
}

/// In order: the finalizer, the intent, the call, the binding, the connection Secret, the copy of
/// the record. Progress is reported only with writes that happen anyway.
#[test]
fn a_create_takes_four_writes_and_reports_each_state() {
    let history = history(&[replica(), replica()], false);
    let mut run = Run::prepared(&history);
    run.declare();
    run.run_for(60).unwrap();
    let writes = run.simulation.lock().ledger.writes.clone();
    let of = |name: &str| {
        let resource = format!("(\"Compute\", \"{name}\")");
        let about = writes.iter().filter(|write| write.contains(&resource));
        let states = [
            "Waiting for another",
            "is being created",
            "is starting",
            "can be used",
        ];
        let reported = |write: &str| states.into_iter().find(|state| write.contains(state));
        about
            .map(|write| reported(write).unwrap_or_else(|| write.split(' ').next().unwrap()))
            .collect::<Vec<_>>()
    };
    let reported = [
        "Patch",
        "is being created",
        "Post",
        "is starting",
        "is starting",
        "Patch",
        "can be used",
    ];
    assert_eq!(
        (of("r0"), of("r1")),
        (reported.to_vec(), reported.to_vec()),
        "the first one's is resolved when the second one looks"
    );
}
