//! Strays of unanswered creates: an unbound resource binds to one, a bound resource reports it.

mod deleting;

use super::*;
use crate::decide::Action;

const MARK: &str = "orders-c1u57e-3pk3zawwrdgc0-00000001";
const DAY: i64 = 24 * 3600;

fn record(mark: Option<&str>) -> CreateIntent {
    CreateIntent {
        at: at(-100),
        platform: None,
        branch: BRANCH.into(),
        baseline: Some(["ep-0".into()].into()),
        newest: None,
        mark: mark.map(Into::into),
        asked: Some(Settings {
            min: cu(1.),
            max: cu(1.),
            ..Settings::default()
        }),
    }
}

fn recording(given: GivenCompute, records: impl IntoIterator<Item = CreateIntent>) -> GivenCompute {
    let given = given.observing(|observed| observed.meta.has_finalizer = true);
    given.identity(|identity| identity.unanswered = records.into_iter().collect())
}

/// An unbound resource with an unanswered create of 100 s ago.
fn empty() -> GivenCompute {
    recording(GivenCompute::new(), [record(None)])
}

/// A read replica that is bound to ep-1 and has the same unanswered create.
fn bound() -> GivenCompute {
    let given = recording(
        GivenCompute::bound().declaring(json!({"type": "ReadOnly"})),
        [record(None)],
    );
    given.seeing([replica("ep-0"), replica("ep-1")])
}

fn named(compute: Compute, name: &str) -> Compute {
    with(compute, |compute| compute.name = Some(name.into()))
}

fn keeping_names(given: GivenCompute) -> GivenCompute {
    given.observing(|observed| observed.name_support = NameSupport::Kept)
}

fn takes(given: &GivenCompute, id: &str) -> Vec<CreateIntent> {
    match given.step() {
        ComputeStep::Bind {
            binding,
            unanswered,
            ..
        } => {
            assert_eq!((binding.id.as_str(), binding.origin), (id, Origin::Created));
            unanswered
        }
        other => panic!("{other:?}"),
    }
}

fn creates(given: &GivenCompute) -> CreateIntent {
    match given.step() {
        ComputeStep::Create { intent, .. } => intent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_create_that_was_never_answered_is_kept_on_record_and_one_that_was_refused_is_not() {
    let given = GivenCompute::intended();
    let intent = given.observed.identity.clone().unwrap().intent.unwrap();
    assert_eq!(
        given.clone().after(50).step(),
        ComputeStep::DropIntent {
            unanswered: vec![intent.clone()]
        }
    );
    let earlier = recording(given.clone(), [record(Some(MARK))]);
    let both = vec![record(Some(MARK)), intent];
    assert_eq!(
        earlier.clone().after(50).step(),
        ComputeStep::DropIntent { unanswered: both }
    );
    let refused = earlier.failed(Action::Create, refused());
    assert_eq!(
        refused.step(),
        ComputeStep::DropIntent {
            unanswered: vec![record(Some(MARK))]
        }
    );
}

#[test]
fn equal_creates_share_a_record() {
    let mut later = record(None);
    later.at = at(0);
    later.baseline = Some(["ep-0".into(), "ep-7".into()].into());
    later.newest = Some(at(-10));
    let first = CreateIntent {
        newest: Some(at(-200)),
        ..record(None)
    };
    let shared = later.noted_in(std::slice::from_ref(&first));
    assert_eq!(
        shared,
        vec![CreateIntent { at: at(0), ..first }],
        "what was new to either is looked for"
    );
    let other = record(Some(MARK)).noted_in(&shared);
    assert_eq!(other.len(), 2);
}

#[test]
fn a_late_compute_is_bound_by_a_resource_without_one() {
    assert_eq!(
        takes(&empty().seeing([compute("ep-9")]), "ep-9"),
        vec![record(None)],
        "the record stands"
    );
    let replicas = empty().declaring(json!({"type": "ReadOnly"}));
    takes(
        &replicas.clone().seeing([replica("ep-0"), replica("ep-9")]),
        "ep-9",
    );
    takes(
        &replicas
            .declaring(json!({"branchID": "br-dev"}))
            .seeing([replica("ep-9")]),
        "ep-9",
    );
}

#[test]
fn what_does_not_match_a_record_is_ignored() {
    let other = |edit: fn(&mut Compute)| empty().seeing([with(compute("ep-9"), edit)]);
    for given in [
        other(|compute| compute.settings.max = cu(4.)),
        other(|compute| compute.name = Some("a person's".into())),
        empty().seeing([compute("ep-0")]),
    ] {
        given
            .rest()
            .stalled(Reason::PrimaryExists, &["existing to Adopt"]);
    }
    creates(&other(|compute| compute.branch_id = "br-dev".into()));
    empty()
        .seeing([compute("ep-9")])
        .claimed("ep-9", false)
        .rest()
        .stalled(Reason::ClaimedByAnother, &["ep-9"]);
    let day = empty().after(DAY - 100).seeing([compute("ep-9")]);
    day.rest().stalled(Reason::PrimaryExists, &["ep-9"]);
}

#[test]
fn nothing_is_created_beside_what_only_its_time_shows_to_be_older() {
    let older = |given: GivenCompute| {
        let record = CreateIntent {
            newest: Some(at(-60)),
            ..record(None)
        };
        recording(given, [record]).seeing([replica("ep-0"), replica("ep-1"), replica("ep-9")])
    };
    let empty =
        older(GivenCompute::new().declaring(json!({"type": "ReadOnly"}))).claimed("ep-1", false);
    empty.rest().stalled(
        Reason::AmbiguousCreate,
        &["ep-9", "dbplane.dev/not-created=ep-9"],
    );
    let behind = empty
        .clone()
        .observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    behind.rest().progressing(Reason::ConfirmingCreate);
    creates(&empty.observing(|observed| observed.not_created = ["ep-9".into()].into()));
    older(bound())
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9"]);
}

#[test]
fn what_carries_the_mark_is_bound_whatever_else_there_is() {
    let given = |record| {
        keeping_names(recording(
            GivenCompute::new().declaring(json!({"type": "ReadOnly"})),
            [record],
        ))
    };
    let seen = [
        replica("ep-7"),
        replica("ep-8"),
        named(with(replica("ep-9"), |c| c.settings.max = cu(4.)), MARK),
    ];
    takes(&given(record(Some(MARK))).seeing(seen.clone()), "ep-9");
    creates(&given(record(Some("another"))).seeing(seen));
}

#[test]
fn several_matches_are_reported_with_the_command_that_decides() {
    let given = empty()
        .declaring(json!({"type": "ReadOnly"}))
        .seeing([replica("ep-8"), replica("ep-9")]);
    let words = [
        "ep-8, ep-9",
        "kubectl -n shop annotate --overwrite compute orders 'dbplane.dev/not-created=ep-8,ep-9'",
    ];
    given.rest().stalled(Reason::AmbiguousCreate, &words);
}

#[test]
fn what_may_be_anothers_is_not_bound_before_that_is_resolved() {
    let given = empty().seeing([compute("ep-9")]);
    let given = given.observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    given.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn the_next_create_carries_the_same_mark() {
    let given = recording(GivenCompute::new(), [record(None), record(Some(MARK))]);
    assert_eq!(
        creates(&keeping_names(given.clone())).mark.as_deref(),
        Some(MARK)
    );
    assert_eq!(
        creates(&given).mark,
        None,
        "where names are not kept there is none"
    );
}

#[test]
fn one_resolved_create_keeps_the_records_of_the_others() {
    let intent = CreateIntent {
        at: at(-10),
        mark: Some(MARK.into()),
        ..record(None)
    };
    let given = recording(
        GivenCompute::intended().intent(|stands| *stands = intent.clone()),
        [record(None)],
    );
    let seen = given.seeing([named(compute("ep-9"), MARK)]);
    assert_eq!(takes(&seen, "ep-9"), vec![record(None), intent.clone()]);
    let known = |stands: &mut CreateIntent| {
        stands
            .baseline
            .iter_mut()
            .for_each(|known| known.extend(["ep-9".into()]))
    };
    let earlier = recording(GivenCompute::intended().intent(known), [record(None)]);
    takes(&earlier.seeing([compute("ep-9")]), "ep-9");
    let answered = seen.remembering(|memory| memory.created = Some("ep-9".into()));
    assert_eq!(takes(&answered, "ep-9"), vec![record(None)]);
    let alone = GivenCompute::intended().seeing([compute("ep-9")]);
    assert_eq!(takes(&alone, "ep-9"), vec![]);
}

#[test]
fn what_people_exclude_is_not_the_result_of_a_create() {
    let excluding = |given: GivenCompute, ids: &[&str]| {
        given.observing(|observed| {
            observed.not_created = ids.iter().map(|id| (*id).into()).collect()
        })
    };
    let several = || {
        empty()
            .declaring(json!({"type": "ReadOnly"}))
            .seeing([replica("ep-8"), replica("ep-9")])
    };
    takes(&excluding(several(), &["ep-8"]), "ep-9");
    creates(&excluding(several(), &["ep-8", "ep-9"]));
    let late = bound().seeing([replica("ep-0"), replica("ep-1"), replica("ep-9")]);
    excluding(late.clone(), &["ep-9"]).rest().in_sync();
    let command = "dbplane.dev/not-created=ep-5,ep-9";
    excluding(late.clone(), &["ep-5"])
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9", command]);
    let forged = "x'; touch /tmp/y; '";
    let quoted = r"orders 'dbplane.dev/not-created=ep-9,x'\''; touch /tmp/y; '\'''";
    excluding(late, &[forged])
        .rest()
        .out_of_sync(Reason::StrayCompute, &[quoted]);
}

#[test]
fn a_late_compute_is_reported_by_a_bound_resource() {
    let given = bound().seeing([replica("ep-0"), replica("ep-1"), replica("ep-9")]);
    let reported = given.rest();
    reported.ready();
    let commands = [
        "ep-9",
        "billed",
        "spec.computeID",
        "kubectl -n shop annotate --overwrite compute orders 'dbplane.dev/not-created=ep-9'",
    ];
    reported.out_of_sync(Reason::StrayCompute, &commands);
    reported.until(at(30));
    given
        .clone()
        .after(2 * DAY)
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9"]);
    given.clone().claimed("ep-9", false).rest().in_sync();
    given
        .observing(|observed| observed.claims.creating = Some(rival("other", -1)))
        .rest()
        .in_sync();
}

#[test]
fn with_marks_only_a_marked_compute_is_reported() {
    let given = keeping_names(recording(bound(), [record(Some(MARK))]));
    let seen = [
        replica("ep-1"),
        replica("ep-8"),
        named(replica("ep-9"), MARK),
    ];
    let reported = given.clone().seeing(seen).rest();
    reported.out_of_sync(Reason::StrayCompute, &[" ep-9."]);
    given
        .seeing([named(replica("ep-1"), MARK)])
        .rest()
        .in_sync();
}

#[test]
fn a_record_is_dropped_after_a_day_without_a_report() {
    let reported = bound().rest();
    reported.in_sync();
    reported.until(at(DAY - 100));
    assert_eq!(
        bound().after(DAY - 100).step(),
        ComputeStep::RecordUnanswered { unanswered: vec![] }
    );
    let young = CreateIntent {
        at: at(0),
        ..record(Some(MARK))
    };
    let both = recording(bound(), [record(None), young.clone()]);
    both.rest().until(at(DAY - 100));
    assert_eq!(
        both.after(DAY - 100).step(),
        ComputeStep::RecordUnanswered {
            unanswered: vec![young]
        }
    );
}
