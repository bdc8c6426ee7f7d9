//! An intent without a binding: the outcome of the create.

mod marks;

use super::*;
use crate::decide::Action;
use crate::domain::Form;

/// The mark of an intent.
const MARK: &str = "orders-c1u57e-3pk3zawwrdgc0-00000001";

fn marked() -> GivenCompute {
    GivenCompute::intended()
        .intent(|intent| intent.mark = Some(MARK.into()))
        .observing(|seen| seen.name_support = NameSupport::Kept)
}

fn named(id: &str, name: &str) -> Compute {
    with(compute(id), |compute| compute.name = Some(name.into()))
}

fn finds(given: &GivenCompute, id: &str) {
    match given.step() {
        ComputeStep::Bind {
            binding, restart, ..
        } => {
            assert_eq!((binding.id.as_str(), binding.origin), (id, Origin::Created));
            assert_eq!(
                (restart.at, restart.noted),
                (at(-10), false),
                "it started when it was created"
            );
        }
        other => panic!("{other:?}"),
    }
}

fn gives_up(given: &GivenCompute) {
    assert!(matches!(given.step(), ComputeStep::DropIntent { .. }));
}

/// The create asked for 1 CU and for suspension after ten minutes.
fn asking() -> GivenCompute {
    let size = (cu(1.), cu(1.));
    let asked = Settings {
        min: size.0,
        max: size.1,
        suspend_after: Some(SuspendAfter::Seconds(600)),
        ..Settings::default()
    };
    GivenCompute::intended().intent(|intent| intent.asked = Some(asked))
}

fn suspending(after: Option<SuspendAfter>) -> Compute {
    with(compute("ep-1"), |compute| {
        compute.settings.suspend_after = after
    })
}

#[test]
fn the_new_one_that_matches_is_bound() {
    finds(
        &GivenCompute::intended().seeing([compute("ep-0"), compute("ep-1")]),
        "ep-1",
    );
    for seen in [None, Some(SuspendAfter::Seconds(600))] {
        finds(&asking().seeing([suspending(seen)]), "ep-1");
    }
}

/// Compares only times of the platform. Two of its machines may differ, or a list may have lacked
/// older computes.
#[test]
fn what_is_new_by_its_id_and_older_by_its_time_is_neither_the_result_nor_its_absence() {
    let made = |id: &str, second| with(compute(id), |compute| compute.created_at = second);
    let intended = |newest| GivenCompute::intended().intent(|intent| intent.newest = newest);
    for (newest, created, is_new) in [
        (Some(at(-60)), Some(at(-61)), false),
        (Some(at(-60)), Some(at(-3660)), false),
        (Some(at(3600)), Some(at(-5)), false),
        (Some(at(-60)), Some(at(-60)), true),
        (Some(at(-60)), Some(at(-5)), true),
        (Some(at(-60)), Some(at(3600)), true),
        (Some(at(-60)), None, true),
        (None, Some(at(-61)), true),
    ] {
        let given = intended(newest).seeing([made("ep-1", created)]);
        if is_new {
            finds(&given, "ep-1");
        } else {
            given.clone().rest().stalled(
                Reason::AmbiguousCreate,
                &["ep-1", "dbplane.dev/not-created=ep-1"],
            );
            given
                .clone()
                .after(3600)
                .rest()
                .stalled(Reason::AmbiguousCreate, &["ep-1"]);
            given
                .clone()
                .claimed("ep-1", false)
                .rest()
                .progressing(Reason::ConfirmingCreate);
            gives_up(
                &given
                    .after(3600)
                    .observing(|seen| seen.not_created = ["ep-1".into()].into()),
            );
        }
    }
    let older = made("ep-1", Some(at(-61)));
    let seeing = |computes: Vec<Compute>| intended(Some(at(-60))).seeing(computes);
    // Either compute may be the result.
    seeing(vec![older.clone(), compute("ep-2")])
        .rest()
        .stalled(Reason::AmbiguousCreate, &["ep-1", "ep-2"]);
    seeing(vec![older.clone(), made("ep-2", Some(at(-62)))])
        .rest()
        .stalled(Reason::AmbiguousCreate, &["ep-1, ep-2"]);
    // A compute that does not match is certainly not the result.
    let other = with(older.clone(), |compute| {
        compute.name = Some("a person's".into())
    });
    finds(
        &seeing(vec![other.clone(), made("ep-2", Some(at(-5)))]),
        "ep-2",
    );
    gives_up(&seeing(vec![other]).after(50));
    // Another create on the branch may have made it.
    let behind = seeing(vec![older])
        .observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    behind.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn the_requested_settings_count_and_not_a_later_spec() {
    let since =
        json!({"size": {"fixed": 4}, "scaleToZero": {"never": true}, "pooler": {"enabled": true}});
    finds(
        &asking().declaring(since.clone()).seeing([suspending(None)]),
        "ep-1",
    );
    let other = asking()
        .declaring(since)
        .seeing([suspending(Some(SuspendAfter::Never))]);
    other.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
}

#[test]
fn an_intent_of_an_earlier_version_is_compared_with_the_spec() {
    let earlier = || GivenCompute::intended().intent(|intent| intent.asked = None);
    finds(
        &earlier()
            .declaring(json!({"size": {"fixed": 4}}))
            .seeing([compute("ep-1")]),
        "ep-1",
    );
    let pooler = earlier()
        .declaring(json!({"pooler": {"enabled": true}}))
        .seeing([compute("ep-1")]);
    pooler.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
}

/// A platform may rewrite a value that it was given.
#[test]
fn values_of_database_settings_count_where_the_platform_was_seen_to_return_them() {
    let settings = |values: &[(&str, &str)]| {
        PostgresSettings(
            values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    };
    let given = || {
        GivenCompute::intended().intent(|intent| {
            intent.asked = Some(Settings {
                postgres: settings(&[("work_mem", "64MB")]),
                ..Settings::default()
            });
        })
    };
    let showing = |values: Option<&[(&str, &str)]>, seen: GivenCompute| {
        let shown = with(compute("ep-1"), |compute| {
            compute.support.settings = values.is_some();
            compute.settings.postgres = settings(values.unwrap_or_default());
        });
        seen.seeing([shown])
    };
    let returned = |given: GivenCompute| {
        given.observing(|seen| seen.returned = vec![settings(&[("work_mem", "64MB")])])
    };
    let elsewhere = |given: GivenCompute| {
        given
            .observing(|seen| seen.returned = vec![settings(&[("work_mem", "1GB"), ("a", "64MB")])])
    };
    let ambiguous = |given: GivenCompute| given.rest().stalled(Reason::AmbiguousCreate, &["ep-1"]);
    for values in [
        &[("work_mem", "64MB")][..],
        &[("work_mem", "65536kB")],
        &[("Work_Mem", "65536kB"), ("a", "b")],
    ] {
        finds(&showing(Some(values), given()), "ep-1");
        finds(&showing(Some(values), elsewhere(given())), "ep-1");
    }
    finds(
        &showing(Some(&[("work_mem", "64MB")]), returned(given())),
        "ep-1",
    );
    ambiguous(showing(Some(&[("work_mem", "65536kB")]), returned(given())));
    // The names of the settings count if they are shown.
    for names in [&[][..], &[("maintenance_work_mem", "64MB")]] {
        ambiguous(showing(Some(names), given()));
    }
    finds(&showing(None, given()), "ep-1");
    // The other settings count too.
    let larger = with(compute("ep-1"), |compute| compute.settings.max = cu(4.));
    ambiguous(
        given()
            .intent(|intent| {
                let asked = intent.asked.as_mut().unwrap();
                (asked.min, asked.max) = (cu(1.), cu(1.));
            })
            .seeing([larger]),
    );
}

#[test]
fn nothing_new_is_a_proof_only_after_the_settle_time() {
    for seen in [vec![], vec![compute("ep-0")], vec![replica("ep-5")]] {
        let given = GivenCompute::intended().seeing(seen);
        let reported = given.rest();
        reported.progressing(Reason::ConfirmingCreate);
        reported.until(at(50));
        assert_eq!(given.clone().after(49).rest().wake, Wake::At(at(50)));
        gives_up(&given.after(50));
    }
}

#[test]
fn the_snapshot_has_to_be_late_enough_not_the_clock() {
    let mut given = GivenCompute::intended();
    given.now = at(500);
    given.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn one_that_does_not_match_is_reported_and_not_bound() {
    let given = asking().seeing([suspending(Some(SuspendAfter::Never))]);
    for seconds in [0, 100] {
        let reported = given.clone().after(seconds).rest();
        reported.stalled(
            Reason::AmbiguousCreate,
            &[
                "ep-1",
                "kubectl -n shop patch compute orders",
                "dbplane.dev/not-created=ep-1",
            ],
        );
    }
}

#[test]
fn several_are_reported_and_none_is_bound() {
    let given = GivenCompute::intended().declaring(json!({"type": "ReadOnly"}));
    let given = given.seeing([replica("ep-0"), replica("ep-1"), replica("ep-2")]);
    given
        .rest()
        .stalled(Reason::AmbiguousCreate, &["ep-1, ep-2"]);
    finds(&given.claimed("ep-2", false), "ep-1");
}

#[test]
fn the_answer_is_remembered_where_only_the_binding_could_not_be_written() {
    let given = GivenCompute::intended().declaring(json!({"type": "ReadOnly"}));
    let given = given.seeing([replica("ep-1"), replica("ep-2")]);
    finds(
        &given.remembering(|memory| memory.created = Some("ep-2".into())),
        "ep-2",
    );
}

#[test]
fn what_certainly_did_not_happen_is_dropped_at_once() {
    for (fault, dropped) in [
        (refused(), true),
        (
            Fault::Conflict {
                message: "exists".into(),
            },
            true,
        ),
        (
            Fault::Transport {
                message: "refused".into(),
            },
            true,
        ),
        (lost(), false),
        (
            Fault::Server {
                status: 502,
                message: "bad gateway".into(),
            },
            false,
        ),
        (
            Fault::Undecodable {
                path: "endpoint".into(),
                message: "missing".into(),
            },
            false,
        ),
        (
            Fault::TooLarge {
                message: "it has more than 7 bytes".into(),
            },
            false,
        ),
    ] {
        let choice = GivenCompute::intended()
            .failed(Action::Create, fault.clone())
            .decide();
        assert_eq!(
            matches!(choice.step, Some(ComputeStep::DropIntent { .. })),
            dropped,
            "{fault:?}"
        );
    }
}

#[test]
fn an_earlier_create_on_the_branch_is_resolved_first() {
    let behind = |given: GivenCompute| {
        given.observing(|observed| observed.claims.creating = Some(rival("first", -1)))
    };
    let reported = behind(GivenCompute::intended().seeing([compute("ep-1")])).rest();
    reported.progressing(Reason::ConfirmingCreate);
    reported.until(at(5));
    assert!(
        matches!(&reported.health, Health::Progressing(_, text) if text.contains("Compute shop/first")),
        "{reported:?}"
    );
    // If the creates cannot be confused, no resource waits.
    behind(GivenCompute::intended()).rest().until(at(50));
    gives_up(&behind(GivenCompute::intended()).after(50));
    finds(&behind(marked()).seeing([named("ep-2", MARK)]), "ep-2");
    let deleting = behind(GivenCompute::intended().seeing([compute("ep-1")]))
        .observing(|seen| seen.meta.deleting = true);
    deleting.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn an_earlier_refusal_does_not_count_for_a_later_create() {
    let given = GivenCompute::intended()
        .intent(|intent| intent.at = at(1))
        .failed(Action::Create, refused());
    given.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn the_intents_branch_counts_after_the_spec_changed_it() {
    let given = GivenCompute::intended()
        .declaring(json!({"branchID": "br-dev"}))
        .seeing([compute("ep-1")]);
    finds(&given, "ep-1");
}

#[test]
fn an_import_leaves_an_open_create_on_record() {
    let unanswered = |given: &GivenCompute| match given.step() {
        ComputeStep::Bind { unanswered, .. } => unanswered.len(),
        other => panic!("{other:?}"),
    };
    let importing = |id: &str| GivenCompute::intended().declaring(json!({"computeID": id}));
    let before = with(compute("ep-0"), |compute| compute.branch_id = BRANCH.into());
    let elsewhere = with(compute("ep-7"), |compute| {
        compute.branch_id = "br-dev".into()
    });
    assert_eq!(
        unanswered(&importing("ep-0").seeing([before.clone()])),
        1,
        "it was there before the create"
    );
    assert_eq!(
        unanswered(&importing("ep-7").seeing([elsewhere])),
        1,
        "on another branch"
    );
    assert_eq!(
        unanswered(&importing("ep-1").seeing([before.clone(), compute("ep-1")])),
        0,
        "it is what was created"
    );
    let refused = importing("ep-0").failed(Action::Create, refused());
    assert_eq!(
        unanswered(&refused.seeing([before])),
        0,
        "nothing was created"
    );
}

#[test]
fn a_person_can_name_the_compute() {
    let given = GivenCompute::intended()
        .declaring(json!({"computeID": "ep-2"}))
        .seeing([compute("ep-1"), compute("ep-2")]);
    match given.step() {
        ComputeStep::Bind { binding, .. } => {
            assert_eq!(
                (binding.id.as_str(), binding.origin),
                ("ep-2", Origin::Imported)
            )
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_is_not_the_platforms_leaves_the_create_open_and_is_shown() {
    let blocked = Fault::Gateway {
        status: 403,
        form: Form::Foreign,
        message: "an HTML page".to_owned(),
    };
    let given = GivenCompute::intended()
        .failed(Action::Create, blocked)
        .seeing([]);
    let report = given.decide().report.unwrap();
    let Health::Progressing(Reason::ConfirmingCreate, text) = report.health else {
        panic!("{report:?}")
    };
    assert!(
        text.contains("(403)") && text.contains("checks whether it was carried out"),
        "{text}"
    );
    finds(&given.seeing([compute("ep-1")]), "ep-1");
}
