//! An intent without a binding: what became of the create?

use super::*;
use crate::decide::Action;

/// The mark that an intent carries.
const MARK: &str = "orders-0a1b2c3d-00000001";

fn marked() -> Scene {
    Scene::intended().intent(|intent| intent.mark = Some(MARK.into()))
}

fn named(id: &str, name: &str) -> Compute {
    with(compute(id), |compute| compute.name = Some(name.into()))
}

fn finds(scene: &Scene, id: &str) {
    match scene.step() {
        ComputeStep::Bind { binding, .. } => assert_eq!((binding.id.as_str(), binding.origin), (id, Origin::Created)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_one_that_was_not_there_before_and_fits_is_ours() {
    finds(&Scene::intended().seeing([compute("ep-0"), compute("ep-1")]), "ep-1");
    // Its size may have been declared anew since, and what is not reported tells nothing.
    let silent = with(compute("ep-1"), |compute| compute.settings.suspend_after = None);
    let scene = Scene::intended().declaring(json!({"size": {"fixed": 4}, "scaleToZero": {"after": "10m"}}));
    finds(&scene.seeing([silent]), "ep-1");
}

#[test]
fn nothing_new_is_a_proof_only_after_the_settle_time() {
    for seen in [vec![], vec![compute("ep-0")], vec![replica("ep-5")]] {
        let scene = Scene::intended().seeing(seen);
        let said = scene.rest();
        said.progressing(Reason::ConfirmingCreate);
        said.until(at(50));
        assert_eq!(scene.clone().after(49).rest().wake, Wake::At(at(50)));
        assert_eq!(scene.after(50).step(), ComputeStep::DropIntent);
    }
}

#[test]
fn the_reading_has_to_be_late_enough_not_the_clock() {
    let mut scene = Scene::intended();
    scene.now = at(500);
    scene.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn one_that_does_not_fit_is_told_and_not_taken() {
    let scene = Scene::intended().declaring(json!({"pooler": {"enabled": true}})).seeing([compute("ep-1")]);
    for seconds in [0, 100] {
        let said = scene.clone().after(seconds).rest();
        said.stalled(Reason::AmbiguousCreate, &["ep-1", "kubectl -n shop patch compute orders", "create-intent-"]);
    }
}

#[test]
fn several_are_told_and_not_guessed_between() {
    let scene = Scene::intended().declaring(json!({"type": "ReadOnly"}));
    let scene = scene.seeing([replica("ep-0"), replica("ep-1"), replica("ep-2")]);
    scene.rest().stalled(Reason::AmbiguousCreate, &["ep-1, ep-2"]);
    finds(&scene.claimed("ep-2", false), "ep-1");
}

#[test]
fn the_answer_is_remembered_where_only_the_link_could_not_be_written() {
    let scene = Scene::intended().declaring(json!({"type": "ReadOnly"}));
    let scene = scene.seeing([replica("ep-1"), replica("ep-2")]);
    finds(&scene.remembering(|memory| memory.created = Some("ep-2".into())), "ep-2");
}

#[test]
fn what_certainly_did_not_happen_is_dropped_at_once() {
    for (fault, dropped) in [
        (refused(), true),
        (Fault::Conflict { message: "exists".into() }, true),
        (Fault::Transport { message: "refused".into() }, true),
        (lost(), false),
        (Fault::Server { status: 502, message: "bad gateway".into() }, false),
        (Fault::Undecodable { path: "endpoint".into(), message: "missing".into() }, false),
    ] {
        let choice = Scene::intended().failed(Action::Create, fault.clone()).decide();
        assert_eq!(choice.step == Some(ComputeStep::DropIntent), dropped, "{fault:?}");
    }
}

#[test]
fn the_mark_tells_where_the_platform_shows_names() {
    finds(&marked().seeing([named("ep-1", "another"), named("ep-2", MARK)]), "ep-2");
    // It fits by its mark alone.
    finds(&marked().declaring(json!({"pooler": {"enabled": true}})).seeing([named("ep-2", MARK)]), "ep-2");
}

#[test]
fn others_names_are_not_ours() {
    let scene = marked().seeing([named("ep-1", "another")]);
    scene.rest().progressing(Reason::ConfirmingCreate);
    assert_eq!(scene.after(50).step(), ComputeStep::DropIntent);
}

#[test]
fn one_without_a_name_is_not_passed_over_where_a_mark_was_sent() {
    let scene = marked().seeing([compute("ep-1")]);
    let said = scene.rest();
    said.progressing(Reason::ConfirmingCreate);
    said.until(at(50));
    scene.after(50).rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
}

#[test]
fn the_intent_holds_where_the_branch_was_declared_anew() {
    let scene = Scene::intended().declaring(json!({"branchId": "br-dev"})).seeing([compute("ep-1")]);
    finds(&scene, "ep-1");
}

#[test]
fn a_person_can_say_which_it_is() {
    let scene = Scene::intended().declaring(json!({"computeId": "ep-2"})).seeing([compute("ep-1"), compute("ep-2")]);
    match scene.step() {
        ComputeStep::Bind { binding, .. } => {
            assert_eq!((binding.id.as_str(), binding.origin), ("ep-2", Origin::Imported))
        }
        other => panic!("{other:?}"),
    }
}
