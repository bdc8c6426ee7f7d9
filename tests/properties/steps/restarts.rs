//! Restarts whose requests or answers are lost. Only the compute itself shows if a restart
//! happened.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::changes::settled;
use crate::faults::{Carried, Fault};
use crate::history::{Event, History, compute};
use crate::injector::{Injected, LIST, Times};
use crate::run::Run;
use crate::simulation::Simulation;
use crate::watching::{history, replica};

const RESTART: &str = "Post *";
const PROFILES: [Profile; 3] = [Profile::Default, Profile::Public, Profile::Minimal];

fn on(profile: Profile) -> History {
    History {
        profile,
        ..history(&[replica()], false)
    }
}

fn interruptions(run: &mut Run) -> u64 {
    run.in_console(|world, _| world.console_computes(None)[0].interruptions)
}

fn is_completed(run: &Run) -> bool {
    run.status_of(&compute(0))["restart"]["completedAt"].is_string()
}

fn change_in_console(run: &mut Run, attributes: &Value) {
    run.in_console(|world, now| {
        let id = world.console_computes(None)[0].id.clone();
        world.console_change_compute(&id, attributes, now).unwrap();
    });
}

#[test]
fn what_something_else_answers_is_no_restart() {
    for profile in PROFILES {
        // A page, or a body with the form of an answer.
        for answer in [Fault::Page(200), Fault::Refused(200)] {
            let history = on(profile);
            let mut run = settled(&history, 60);
            run.inject(RESTART, Times::Once, Injected::Fault(answer));
            run.happen(&Event::Restart(0, 1));
            run.run_for(30).unwrap();
            assert!(!is_completed(&run));
            run.run_for(120).unwrap();
            assert_eq!(
                (interruptions(&mut run), is_completed(&run)),
                (1, true),
                "{profile:?}"
            );
        }
    }
}

#[test]
fn what_is_answered_in_vain_again_and_again_is_reported() {
    let history = on(Profile::Public);
    let mut run = settled(&history, 60);
    run.inject(RESTART, Times::Always, Injected::Fault(Fault::Page(200)));
    run.happen(&Event::Restart(0, 1));
    run.run_for(150).unwrap();
    assert!(
        run.condition(&compute(0), "Ready")
            .starts_with("Available: ")
    );
    assert!(
        run.condition(&compute(0), "Synced")
            .starts_with("RestartUnconfirmed: ")
    );
    assert_eq!((interruptions(&mut run), is_completed(&run)), (0, false));
}

/// The minimal profile does not show when a compute started, so that the answer counts.
#[test]
fn an_answer_that_cannot_be_recorded_at_once_still_counts() {
    let history = on(Profile::Minimal);
    let mut run = settled(&history, 60);
    let refuse_status = |simulation: &mut Simulation| {
        simulation.injector.set(
            "status of Compute r0",
            Times::Once,
            Injected::Fault(Fault::Refused(503)),
        );
        simulation
            .injector
            .set(LIST, Times::Once, Injected::Slow(10));
    };
    run.inject(RESTART, Times::Once, Injected::Meanwhile(refuse_status));
    run.happen(&Event::Restart(0, 1));
    run.run_for(150).unwrap();
    assert_eq!(
        (interruptions(&mut run), is_completed(&run)),
        (1, true),
        "{}",
        run.condition(&compute(0), "Synced")
    );
}

#[test]
fn no_change_of_our_own_is_a_trace_of_a_restart() {
    for profile in PROFILES {
        for lost in [Fault::Dies(Carried::Never), Fault::Silence(Carried::Never)] {
            let history = on(profile);
            let mut run = settled(&history, 60);
            run.inject(RESTART, Times::Once, Injected::Fault(lost));
            // The minimal profile never shows this setting, so each process sends it.
            run.apply(
                &compute(0),
                &json!({"restartToken": "t1", "scaleToZero": {"after": "20m"}}),
            );
            run.run_for(150).unwrap();
            assert_eq!(
                (interruptions(&mut run), is_completed(&run)),
                (1, true),
                "{profile:?}"
            );
        }
    }
}

#[test]
fn a_change_by_others_is_no_trace_of_a_restart() {
    for (profile, made) in [
        (Profile::Default, 1),
        (Profile::Public, 1),
        (Profile::Minimal, 0),
    ] {
        let history = on(profile);
        let mut run = settled(&history, 60);
        run.inject(
            RESTART,
            Times::Once,
            Injected::Fault(Fault::Silence(Carried::Never)),
        );
        run.happen(&Event::Restart(0, 1));
        run.run_for(2).unwrap();
        change_in_console(&mut run, &json!({"pooler_enabled": true}));
        run.run_for(100).unwrap();
        assert_eq!(
            (interruptions(&mut run), is_completed(&run)),
            (made, made > 0),
            "{profile:?}"
        );
        let synced = run.condition(&compute(0), "Synced");
        assert_eq!(
            synced.starts_with("RestartUnconfirmed: "),
            made == 0,
            "{profile:?} {synced}"
        );
        // The compute has suspended, so its next connection starts it again: that completes the
        // restart.
        run.run_for(900).unwrap();
        assert!(is_completed(&run));
        assert!(run.condition(&compute(0), "Synced").starts_with("InSync: "));
    }
}
