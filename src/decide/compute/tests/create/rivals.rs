//! Other resources that claim the compute, or whose create comes first.

use super::*;

#[test]
fn what_another_resource_is_bound_to_is_not_adopted() {
    for (what, given) in [
        (
            "adopted",
            GivenCompute::new()
                .declaring(json!({"existing": "Adopt"}))
                .seeing([compute("ep-1")]),
        ),
        ("refused", GivenCompute::new().seeing([compute("ep-1")])),
        (
            "observed",
            GivenCompute::new()
                .declaring(json!({"management": "Observe"}))
                .seeing([compute("ep-1")]),
        ),
        (
            "imported",
            GivenCompute::new()
                .declaring(json!({"computeID": "ep-1"}))
                .seeing([compute("ep-1")]),
        ),
    ] {
        for older in [true, false] {
            let reported = given.clone().claimed("ep-1", older).rest();
            reported.stalled(
                Reason::ClaimedByAnother,
                &["Compute shop/other", "ep-1", "Delete one"],
            );
            assert_eq!(reported.wake, Wake::At(at(30)), "{what}");
        }
    }
}

#[test]
fn a_branch_has_the_primary_of_one_resource() {
    let rival = |given: GivenCompute| {
        given.observing(|observed| observed.claims.primary = Some(holder("first")))
    };
    rival(GivenCompute::new())
        .rest()
        .stalled(Reason::ClaimedByAnother, &["Compute shop/first", BRANCH]);
    creates(&rival(
        GivenCompute::new().declaring(json!({"type": "ReadOnly"})),
    ));
    binds(
        &rival(
            GivenCompute::new()
                .declaring(json!({"computeID": "ep-1"}))
                .seeing([compute("ep-1")]),
        ),
        "ep-1",
        Origin::Imported,
    );
}

#[test]
fn what_another_namespace_has_is_told_without_a_name_and_logged_with_it() {
    let by = || Holder {
        namespace: "evil".into(),
        name: "secret-plan".into(),
    };
    let claimed = Claim {
        by: by(),
        first: true,
    };
    let given = GivenCompute::new()
        .seeing([compute("ep-1")])
        .declaring(json!({"existing": "Adopt"}));
    for given in [
        given
            .clone()
            .observing(|seen| seen.claims.primary = Some(by())),
        given
            .clone()
            .observing(|seen| seen.claims.bound = [("ep-1".into(), claimed.clone())].into()),
        GivenCompute::bound()
            .observing(|seen| seen.claims.bound = [("ep-1".into(), claimed.clone())].into()),
    ] {
        let report = given.decide().report.unwrap();
        let Health::Stalled(Reason::ClaimedByAnother, text) = &report.health else {
            panic!("{report:?}")
        };
        assert!(
            text.contains("A resource of another namespace already has") && !text.contains("evil"),
            "{text}"
        );
        assert_eq!(report.holder.as_deref(), Some("Compute evil/secret-plan"));
    }
    let rival = RivalCreate {
        by: by(),
        ..rival("first", -60)
    };
    let waiting = given.observing(|seen| seen.claims.creating = Some(rival));
    assert_eq!(
        waiting.decide().report.unwrap().holder.as_deref(),
        Some("Compute evil/secret-plan")
    );
    let waiting = waiting.rest();
    let text = format!(
        "Waiting for a resource of another namespace, whose create on branch {BRANCH} comes first."
    );
    assert_eq!(waiting.health, Health::Progressing(Reason::Creating, text));
}

/// The primary on the branch may be the result of the other resource's create, which is not bound
/// yet.
#[test]
fn what_another_resource_may_have_created_is_not_adopted() {
    let given = GivenCompute::new()
        .seeing([compute("ep-1")])
        .declaring(json!({"existing": "Adopt"}));
    binds(&given, "ep-1", Origin::Adopted);
    let behind = given
        .clone()
        .observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    behind.rest().progressing(Reason::Creating);
    // An unanswered create may have made it, unless its mark would show that.
    let unanswered = |evidence| {
        let rival = RivalCreate {
            evidence,
            ..rival("first", -1)
        };
        given
            .clone()
            .observing(|observed| observed.claims.unanswered = Some(rival))
    };
    unanswered(Evidence::ByBaseline)
        .rest()
        .progressing(Reason::Creating);
    binds(&unanswered(Evidence::ByMark), "ep-1", Origin::Adopted);
    unanswered(Evidence::ByMark)
        .seeing([])
        .rest()
        .progressing(Reason::Creating);
    let marked = [with(compute("ep-1"), |compute| {
        compute.name = Some("theirs".into())
    })];
    let named = GivenCompute::new()
        .declaring(json!({"computeID": "ep-1"}))
        .seeing(marked);
    binds(&named, "ep-1", Origin::Imported);
    let named = named.observing(|observed| {
        observed.claims.marks = [("theirs".to_owned(), holder("first"))].into()
    });
    named.rest().progressing(Reason::ConfirmingCreate);
}

#[test]
fn a_create_waits_its_turn_on_the_branch() {
    let given = GivenCompute::new()
        .observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    let reported = given.rest();
    reported.progressing(Reason::Creating);
    reported.until(at(5));
}

/// With fifty waiting, a change of turn must not cause fifty writes.
#[test]
fn whose_create_it_is_is_told_where_it_takes_long() {
    for (begun, told) in [
        (-1, "another Compute"),
        (-9, "another Compute"),
        (-10, "Compute shop/first"),
    ] {
        let given = GivenCompute::new()
            .observing(|seen| seen.claims.creating = Some(rival("first", begun)));
        let message = format!("Waiting for {told}, whose create on branch {BRANCH} comes first.");
        assert_eq!(
            given.rest().health,
            Health::Progressing(Reason::Creating, message),
            "{begun}"
        );
    }
}
