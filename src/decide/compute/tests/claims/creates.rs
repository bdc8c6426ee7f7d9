//! The order of creates on a branch.

use super::*;

fn other_than(type_: ComputeType) -> ComputeType {
    match type_ {
        ComputeType::ReadWrite => ComputeType::ReadOnly,
        ComputeType::ReadOnly => ComputeType::ReadWrite,
    }
}

fn creates(by: &str, evidence: Evidence) -> Reservations {
    Reservations {
        creates: vec![(holder(by), evidence)],
        ..Reservations::default()
    }
}

/// The resource whose create comes first.
fn by(claims: &Claims) -> Option<&str> {
    claims.creating.as_ref().map(|rival| rival.by.name.as_str())
}

#[test]
fn a_new_create_waits_for_every_unresolved_one_of_its_type_on_the_branch() {
    let other = || ClaimingCompute::new("other");
    for (what, other, of_primaries, of_replicas) in [
        ("an unresolved one", other().creating(0), true, true),
        (
            "changed in the spec since",
            other().creating(0).elsewhere(),
            true,
            true,
        ),
        (
            "on another branch",
            other().elsewhere().creating(0),
            false,
            false,
        ),
        (
            "resolved",
            other().creating(0).bound("ep-1", 0),
            false,
            false,
        ),
        ("none", other(), false, false),
    ] {
        for (mine, waits) in [
            (ClaimingCompute::new("mine"), of_primaries),
            (ClaimingCompute::new("mine").replica(), of_replicas),
        ] {
            let type_ = mine.0.spec.type_;
            let alike = other.clone().declaring(|spec| spec.type_ = type_);
            assert_eq!(mine.with([&alike]).creating.is_some(), waits, "{what}");
            let unlike = other
                .clone()
                .declaring(|spec| spec.type_ = other_than(type_));
            assert_eq!(
                mine.with([&unlike]).creating,
                None,
                "{what}, of the other type"
            );
            let outside = Other {
                admitted: false,
                ..alike.as_other()
            };
            let claims = mine.among(Evidence::ByBaseline, [outside], &Reservations::default());
            assert_eq!(
                claims.creating, None,
                "{what}, and its account does not admit it"
            );
        }
    }
    let begun = ClaimingCompute::new("mine").among(
        Evidence::ByBaseline,
        [],
        &creates("other", Evidence::ByBaseline),
    );
    assert_eq!(by(&begun), Some("other"), "begun in this process");
}

#[test]
fn a_primary_that_may_still_appear_is_waited_for_and_not_for_ever() {
    let by = |mine: &ClaimingCompute, other: &ClaimingCompute| {
        mine.with([other]).unanswered.map(|rival| rival.by.name)
    };
    let (mine, other) = (
        ClaimingCompute::new("mine"),
        ClaimingCompute::new("other").unanswered(-60),
    );
    assert_eq!(by(&mine, &other).as_deref(), Some("other"));
    assert_eq!(
        by(&mine, &ClaimingCompute::new("other").unanswered(-86_400)),
        None,
        "a day later"
    );
    assert_eq!(
        by(
            &mine,
            &ClaimingCompute::new("other").elsewhere().unanswered(-60)
        ),
        None,
        "on another branch"
    );
    assert_eq!(
        by(&mine.clone().replica(), &other.clone().replica()),
        None,
        "there may be many"
    );
    let outside = Other {
        admitted: false,
        ..other.as_other()
    };
    assert_eq!(
        mine.among(Evidence::ByMark, [outside], &Reservations::default())
            .unanswered,
        None
    );
    // If two wait for each other, one has to continue.
    let earlier = ClaimingCompute::new("earlier").unanswered(-90);
    assert_eq!(
        (by(&earlier, &other), by(&other, &earlier).as_deref()),
        (None, Some("earlier"))
    );
    assert_eq!(
        by(&ClaimingCompute::new("bound").bound("ep-1", -30), &other),
        None,
        "whose compute is missing"
    );
    assert_eq!(
        mine.with([&other]).marks,
        [("mark-other".to_owned(), holder("other"))].into()
    );
    assert_eq!(
        mine.with([&other.bound("ep-1", -30)]).marks,
        BTreeMap::new(),
        "what it made besides may be imported"
    );
}

#[test]
fn creates_of_replicas_that_are_told_by_their_marks_wait_only_for_those_that_are_not() {
    let intending = |name: &str, since, evidence| {
        let resource = ClaimingCompute::new(name).replica();
        let create = resource.create(since, evidence);
        resource.recording(|identity| identity.intent = Some(create))
    };
    let mine = ClaimingCompute::new("mine").replica();
    for (now, theirs, waits) in [
        (Evidence::ByMark, Evidence::ByMark, false),
        (Evidence::ByMark, Evidence::ByBaseline, true),
        (Evidence::ByBaseline, Evidence::ByMark, true),
        (Evidence::ByBaseline, Evidence::ByBaseline, true),
    ] {
        let recorded = mine.among(
            now,
            [intending("other", 0, theirs).as_other()],
            &Reservations::default(),
        );
        assert_eq!(recorded.creating.is_some(), waits, "{now:?} and {theirs:?}");
        let begun = mine.among(now, [], &creates("other", theirs));
        assert_eq!(
            begun.creating.is_some(),
            waits,
            "{now:?} and {theirs:?} in this process"
        );
        let primary = ClaimingCompute::new("mine").among(now, [], &creates("other", theirs));
        assert!(primary.creating.is_some(), "a branch has one primary");
    }
    let (by_mark, by_baseline) = (
        intending("mark", 0, Evidence::ByMark),
        intending("baseline", 0, Evidence::ByBaseline),
    );
    let mine = intending("mine", 5, Evidence::ByMark);
    assert_eq!(
        mine.with([&by_mark]).creating,
        None,
        "nor with an intent of its own"
    );
    assert_eq!(by(&mine.with([&by_mark, &by_baseline])), Some("baseline"));
}

#[test]
fn unresolved_creates_are_resolved_from_the_first_to_the_last() {
    let [c, b, a] = [("c", 3), ("b", 1), ("a", 1)]
        .map(|(name, since)| ClaimingCompute::new(name).creating(since));
    let all = [&a, &b, &c];
    assert_eq!(a.with(all).creating, None);
    assert_eq!(
        by(&b.with(all)),
        Some("a"),
        "the UID decides within one moment"
    );
    assert_eq!(by(&c.with(all)), Some("a"));
    let marks = [
        ("mark-a".to_owned(), holder("a")),
        ("mark-b".to_owned(), holder("b")),
    ];
    assert_eq!(c.with(all).marks, marks.into());
    assert_eq!(
        c.clone().replica().with(all).creating,
        None,
        "what is not of one type is not mixed up"
    );
    let begun = a.among(
        Evidence::ByBaseline,
        [],
        &creates("d", Evidence::ByBaseline),
    );
    assert_eq!(begun.creating, None, "what is begun now is later");
}
