//! An intent without a binding: what became of the create?

use super::*;
use crate::decide::Action;

/// The mark that an intent carries.
const MARK: &str = "orders-c1u57e-0a1b2c3d-00000001";

fn marked() -> Scene {
    Scene::intended()
        .intent(|intent| intent.mark = Some(MARK.into()))
        .observing(|seen| seen.name_support = NameSupport::Kept)
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

fn gives_up(scene: &Scene) {
    assert!(matches!(scene.step(), ComputeStep::DropIntent { .. }));
}

/// The create asked for 1 CU and suspension after ten minutes.
fn asking() -> Scene {
    let size = (cu(1.), cu(1.));
    let asked =
        Settings { min: size.0, max: size.1, suspend_after: Some(SuspendAfter::Seconds(600)), ..Settings::default() };
    Scene::intended().intent(|intent| intent.asked = Some(asked))
}

fn suspending(after: Option<SuspendAfter>) -> Compute {
    with(compute("ep-1"), |compute| compute.settings.suspend_after = after)
}

#[test]
fn the_one_that_was_not_there_before_and_fits_is_ours() {
    finds(&Scene::intended().seeing([compute("ep-0"), compute("ep-1")]), "ep-1");
    for seen in [None, Some(SuspendAfter::Seconds(600))] {
        finds(&asking().seeing([suspending(seen)]), "ep-1");
    }
}

#[test]
fn what_was_asked_for_counts_and_not_what_is_declared_since() {
    let since = json!({"size": {"fixed": 4}, "scaleToZero": {"never": true}, "pooler": {"enabled": true}});
    finds(&asking().declaring(since.clone()).seeing([suspending(None)]), "ep-1");
    let other = asking().declaring(since).seeing([suspending(Some(SuspendAfter::Never))]);
    other.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
}

#[test]
fn an_intent_of_an_earlier_version_is_compared_with_the_spec() {
    let earlier = || Scene::intended().intent(|intent| intent.asked = None);
    finds(&earlier().declaring(json!({"size": {"fixed": 4}})).seeing([compute("ep-1")]), "ep-1");
    let pooler = earlier().declaring(json!({"pooler": {"enabled": true}})).seeing([compute("ep-1")]);
    pooler.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
}

#[test]
fn nothing_new_is_a_proof_only_after_the_settle_time() {
    for seen in [vec![], vec![compute("ep-0")], vec![replica("ep-5")]] {
        let scene = Scene::intended().seeing(seen);
        let said = scene.rest();
        said.progressing(Reason::ConfirmingCreate);
        said.until(at(50));
        assert_eq!(scene.clone().after(49).rest().wake, Wake::At(at(50)));
        gives_up(&scene.after(50));
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
    let scene = asking().seeing([suspending(Some(SuspendAfter::Never))]);
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
        assert_eq!(matches!(choice.step, Some(ComputeStep::DropIntent { .. })), dropped, "{fault:?}");
    }
}

#[test]
fn the_mark_tells_where_the_platform_keeps_names() {
    finds(&marked().seeing([named("ep-1", "another"), compute("ep-3"), named("ep-2", MARK)]), "ep-2");
    // It is ours by its mark alone.
    let elsewhere = with(named("ep-2", MARK), |compute| compute.branch_id = "br-dev".into());
    let asked = Settings { max: cu(8.), ..Settings::default() };
    finds(&marked().intent(|intent| intent.asked = Some(asked)).seeing([elsewhere]), "ep-2");
}

#[test]
fn what_does_not_carry_the_mark_is_not_ours_where_the_platform_keeps_names() {
    for seen in [named("ep-1", "another"), compute("ep-1")] {
        let scene = marked().seeing([seen]);
        let said = scene.rest();
        said.progressing(Reason::ConfirmingCreate);
        said.until(at(50));
        gives_up(&scene.after(50));
    }
}

#[test]
fn where_no_name_was_ever_seen_the_baseline_tells_once_a_mark_would_have_shown() {
    let offered =
        |seen: Vec<Compute>| marked().observing(|observed| observed.name_support = NameSupport::Offered).seeing(seen);
    let said = offered(vec![compute("ep-1")]).rest();
    said.progressing(Reason::ConfirmingCreate);
    said.until(at(50));
    finds(&offered(vec![compute("ep-1")]).after(50), "ep-1");
    offered(vec![compute("ep-1"), compute("ep-2")]).after(50).rest().stalled(Reason::AmbiguousCreate, &["ep-1, ep-2"]);
    gives_up(&offered(vec![]).after(50));
}

#[test]
fn a_name_that_was_not_given_is_somebodys() {
    let scene = Scene::intended().seeing([named("ep-1", "a person's")]);
    scene.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
    let anothers = |observed: &mut ComputeObserved| observed.claims.marks.extend(["another's".to_owned()]);
    finds(&Scene::intended().seeing([named("ep-1", "another's"), compute("ep-2")]).observing(anothers), "ep-2");
}

#[test]
fn an_earlier_create_on_the_branch_is_resolved_first() {
    let behind =
        |scene: Scene| scene.observing(|observed| observed.claims.creating = Some("Compute shop/first".into()));
    let said = behind(Scene::intended().seeing([compute("ep-1")])).rest();
    said.progressing(Reason::ConfirmingCreate);
    said.until(at(2));
    assert!(matches!(&said.health, Health::Progressing(_, text) if text.contains("Compute shop/first")), "{said:?}");
    // Where nothing can be mixed up nobody waits.
    behind(Scene::intended()).rest().until(at(50));
    gives_up(&behind(Scene::intended()).after(50));
    finds(&behind(marked()).seeing([named("ep-2", MARK)]), "ep-2");
    let deleting = behind(Scene::intended().seeing([compute("ep-1")])).observing(|seen| seen.meta.deleting = true);
    deleting.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn what_was_refused_once_says_nothing_of_a_later_create() {
    let scene = Scene::intended().intent(|intent| intent.at = at(1)).failed(Action::Create, refused());
    scene.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn the_intent_holds_where_the_branch_was_declared_anew() {
    let scene = Scene::intended().declaring(json!({"branchID": "br-dev"})).seeing([compute("ep-1")]);
    finds(&scene, "ep-1");
}

#[test]
fn a_person_can_say_which_it_is() {
    let scene = Scene::intended().declaring(json!({"computeID": "ep-2"})).seeing([compute("ep-1"), compute("ep-2")]);
    match scene.step() {
        ComputeStep::Bind { binding, .. } => {
            assert_eq!((binding.id.as_str(), binding.origin), ("ep-2", Origin::Imported))
        }
        other => panic!("{other:?}"),
    }
}
