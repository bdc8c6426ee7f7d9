//! Open creates whose result is found by its name.

use super::*;

#[test]
fn a_conflict_is_looked_up_by_the_mark() {
    let conflict = || Fault::Conflict {
        message: "read_write endpoint already exists".into(),
    };
    let refused = |given: GivenCompute| given.failed(Action::Create, conflict());
    // A proxy sent the create twice: the first request made the compute, and the answer is for the
    // second.
    finds(&refused(marked()).seeing([named("ep-1", MARK)]), "ep-1");
    // The compute may still appear later.
    let step = refused(marked())
        .seeing([named("ep-1", "somebody-elses")])
        .step();
    let ComputeStep::DropIntent { unanswered } = step else {
        panic!("{step:?}")
    };
    assert_eq!(unanswered.len(), 1);
    // Without marks, an existing compute more likely belongs to somebody else.
    let step = refused(GivenCompute::intended())
        .seeing([compute("ep-1")])
        .step();
    assert!(
        matches!(&step, ComputeStep::DropIntent { unanswered } if unanswered.is_empty()),
        "{step:?}"
    );
}

#[test]
fn the_mark_decides_where_the_platform_keeps_names() {
    finds(
        &marked().seeing([
            named("ep-1", "another"),
            compute("ep-3"),
            named("ep-2", MARK),
        ]),
        "ep-2",
    );
    // The mark alone identifies it.
    let elsewhere = with(named("ep-2", MARK), |compute| {
        compute.branch_id = "br-dev".into()
    });
    let asked = Settings {
        max: cu(8.),
        ..Settings::default()
    };
    finds(
        &marked()
            .intent(|intent| intent.asked = Some(asked))
            .seeing([elsewhere]),
        "ep-2",
    );
}

#[test]
fn of_two_with_the_mark_the_one_is_bound_that_nobody_has() {
    let given = marked().seeing([named("ep-1", MARK), named("ep-2", MARK)]);
    finds(&given, "ep-1");
    finds(&given.claimed("ep-1", false), "ep-2");
}

#[test]
fn without_the_mark_a_compute_is_not_bound_where_the_platform_keeps_names() {
    for seen in [named("ep-1", "another"), compute("ep-1")] {
        let given = marked().seeing([seen]);
        let reported = given.rest();
        reported.progressing(Reason::ConfirmingCreate);
        reported.until(at(50));
        gives_up(&given.after(50));
    }
}

#[test]
fn without_names_the_baseline_decides_once_a_mark_would_have_shown() {
    let offered = |seen: Vec<Compute>| {
        marked()
            .observing(|observed| observed.name_support = NameSupport::Offered)
            .seeing(seen)
    };
    let reported = offered(vec![compute("ep-1")]).rest();
    reported.progressing(Reason::ConfirmingCreate);
    reported.until(at(50));
    finds(&offered(vec![compute("ep-1")]).after(50), "ep-1");
    offered(vec![compute("ep-1"), compute("ep-2")])
        .after(50)
        .rest()
        .stalled(Reason::AmbiguousCreate, &["ep-1, ep-2"]);
    gives_up(&offered(vec![]).after(50));
}

#[test]
fn without_names_nothing_tells_what_a_create_by_its_mark_alone_has_made() {
    let given = |seen: Vec<Compute>| {
        let given = marked()
            .intent(|intent| intent.baseline = None)
            .seeing(seen);
        given
            .observing(|observed| observed.name_support = NameSupport::Offered)
            .after(50)
    };
    given(vec![compute("ep-1")])
        .rest()
        .stalled(Reason::AmbiguousCreate, &["ep-1"]);
    finds(&given(vec![compute("ep-1"), named("ep-2", MARK)]), "ep-2");
    gives_up(&given(vec![]));
}

#[test]
fn a_compute_with_another_name_is_not_bound() {
    let given = GivenCompute::intended().seeing([named("ep-1", "a person's")]);
    given.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
    let anothers = |observed: &mut ComputeObserved| {
        observed
            .claims
            .marks
            .extend([("another's".to_owned(), holder("other"))])
    };
    finds(
        &GivenCompute::intended()
            .seeing([named("ep-1", "another's"), compute("ep-2")])
            .observing(anothers),
        "ep-2",
    );
}
