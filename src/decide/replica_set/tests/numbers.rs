//! Tests: the number of replicas, the one to delete, and the one to change.

use super::*;
use crate::decide::Sync;

#[test]
fn a_set_has_as_many_as_are_declared() {
    for (replicas, there, expected) in [
        (0, 0, "rests"),
        (1, 0, "creates reads-0"),
        (3, 2, "creates reads-2"),
        (3, 3, "rests"),
        (2, 3, "retires reads-2"),
        (0, 1, "retires reads-0"),
    ] {
        assert_eq!(
            GivenSet::of(replicas, ready(there)).does(),
            expected,
            "{replicas} of {there}"
        );
    }
}

#[test]
fn a_name_is_the_lowest_number_that_nobody_has() {
    let gone = replica(
        0,
        &json!({"metadata": {"deletionTimestamp": "2026-11-20T10:00:00Z"}}),
    );
    assert_eq!(
        GivenSet::of(1, [gone]).does(),
        "creates reads-1",
        "one that is being deleted has its name still"
    );
    let somebody = replica(
        1,
        &json!({"metadata": {"ownerReferences": null, "labels": null}}),
    );
    assert_eq!(
        GivenSet::of(2, [replica(0, &json!({})), somebody]).does(),
        "creates reads-2"
    );
    assert_eq!(
        GivenSet::of(2, [replica(2, &json!({}))]).does(),
        "creates reads-0"
    );
}

#[test]
fn the_least_recently_active_goes_first() {
    let state =
        |state: &str, last: Option<&str>| json!({"status": {"state": state, "lastActive": last}});
    let (early, late) = (Some("2026-11-20T10:00:00Z"), Some("2026-11-20T10:59:00Z"));
    let protected = json!({"spec": {"deletionProtection": true}});
    let no_compute = json!({"status": {"computeID": null, "host": null, "lastSeenServing": false, "conditions": []}});
    for (one, other, expected) in [
        (state("idle", early), state("idle", late), 0),
        (state("idle", late), state("idle", early), 1),
        (state("idle", late), state("active", early), 0),
        (state("idle", None), state("idle", early), 0),
        (starting(), state("idle", None), 0),
        (state("idle", None), starting(), 1),
        (starting(), no_compute, 1),
        (unseen(), starting(), 1),
        (
            state("idle", late),
            merged(state("idle", early), unseen()),
            1,
        ),
        (
            merged(state("idle", late), unseen()),
            state("idle", early),
            1,
        ),
        (protected, state("active", late), 1),
        (json!({}), json!({}), 1),
    ] {
        let given = GivenSet::of(1, [replica(0, &one), replica(1, &other)]);
        assert_eq!(
            given.does(),
            format!("retires reads-{expected}"),
            "{one} {other}"
        );
    }
    let ten = (2..=10).map(|number| replica(number, &json!({})));
    assert_eq!(
        GivenSet::of(8, ten).does(),
        "retires reads-10",
        "numbers are not sorted as text"
    );
}

#[test]
fn who_belongs_to_the_set() {
    let orphan = |more: &Value| {
        let mut patch = json!({"metadata": {"ownerReferences": null}});
        merge(&mut patch, more);
        GivenSet::of(0, [replica(0, &patch)]).does()
    };
    assert_eq!(orphan(&json!({})), "adopts reads-0");
    let owner = json!({"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "other", "controller": true});
    for more in [
        json!({"metadata": {"labels": {"app": "other"}}}),
        json!({"metadata": {"ownerReferences": [owner]}}),
        json!({"metadata": {"deletionTimestamp": "2026-11-20T10:00:00Z"}}),
        json!({"spec": {"type": "ReadWrite"}}),
        json!({"spec": {"projectID": "p-2"}}),
        json!({"spec": {"management": "Observe", "computeID": "ep-0"}}),
    ] {
        assert_eq!(orphan(&more), "rests", "{more}");
    }
    let unlabelled = replica(0, &json!({"metadata": {"labels": {"app": "other"}}}));
    assert_eq!(GivenSet::of(1, [unlabelled]).does(), "releases reads-0");
}

#[test]
fn of_another_branch_are_replaced_new_before_old() {
    let old = |count: u32| {
        (0..count)
            .map(|number| replica(number, &former()))
            .collect::<Vec<_>>()
    };
    let new = |number: u32, more: &Value| replica(number, more);
    assert_eq!(GivenSet::of(2, old(2)).does(), "creates reads-2");
    let elsewhere = json!({"spec": {"projectID": "p-0"}});
    let of_another_project = [0, 1].map(|number| replica(number, &elsewhere));
    assert_eq!(
        GivenSet::of(2, of_another_project).does(),
        "creates reads-2"
    );
    let begun = |more: &Value| GivenSet::of(2, old(2).into_iter().chain([new(2, more)])).does();
    assert_eq!(
        begun(&starting()),
        "rests",
        "until it is ready, both former ones stay"
    );
    assert_eq!(begun(&json!({})), "retires reads-1");
    let one_gone = GivenSet::of(2, [replica(0, &former()), new(2, &json!({}))]);
    assert_eq!(one_gone.does(), "creates reads-1");
    let last = GivenSet::of(
        2,
        [
            replica(0, &former()),
            new(1, &json!({})),
            new(2, &json!({})),
        ],
    );
    assert_eq!(last.does(), "retires reads-0");
    let broken = GivenSet::of(
        2,
        [
            replica(0, &former()),
            replica(1, &merged(former(), starting())),
            new(2, &starting()),
        ],
    );
    assert_eq!(
        broken.does(),
        "retires reads-1",
        "what is not ready is missed by nobody"
    );
}

/// A rollout stops while nothing can be observed, whatever the strategy allows.
#[test]
fn what_cannot_be_seen_is_neither_replaced_nor_changed() {
    let size = json!({"size": {"fixed": 2}});
    for strategy in [
        json!({}),
        json!({"maxUnavailable": 3}),
        json!({"maxSurge": 0}),
        json!({"maxSurge": 0, "maxUnavailable": 3}),
    ] {
        for blind in blind() {
            let all = |more: &Value| {
                (0..3)
                    .map(|number| replica(number, &merged(blind.clone(), more.clone())))
                    .collect::<Vec<_>>()
            };
            let strategy = json!({"strategy": strategy});
            let changed = GivenSet::new(spec(3, &strategy, &size), all(&json!({})));
            assert_eq!(changed.does(), "rests", "{strategy} {blind}");
            // A new replica may be created, and waits. With it the maximum number is reached.
            let new = replica(
                3,
                &merged(starting(), json!({"status": {"computeID": null}})),
            );
            let rolled = GivenSet::new(
                spec(3, &strategy, &json!({})),
                all(&former()).into_iter().chain([new]),
            );
            assert_eq!(rolled.does(), "rests", "{strategy} {blind}");
        }
    }
}

#[test]
fn one_that_cannot_be_seen_counts_as_not_ready_and_is_left_alone() {
    let size = json!({"size": {"fixed": 2}});
    let changed = |unavailable: u32, computes: [Arc<Known<Compute>>; 3]| {
        let strategy = json!({"strategy": {"maxUnavailable": unavailable}});
        GivenSet::new(spec(3, &strategy, &size), computes).does()
    };
    let of = |number| replica(number, &json!({}));
    let dark = || replica(0, &unseen());
    assert_eq!(changed(1, [dark(), of(1), of(2)]), "rests");
    assert_eq!(changed(2, [dark(), of(1), of(2)]), "updates reads-1");
    assert_eq!(
        changed(1, [dark(), of(1), replica(2, &starting())]),
        "updates reads-2"
    );
    // A replica that serves although it is not ready does not block its own change.
    let refused = json!({"status": {"conditions": [conditioned("Ready", "False", "Refused", "")]}});
    assert_eq!(
        changed(1, [replica(0, &refused), of(1), of(2)]),
        "updates reads-0"
    );
    let old = |number, more: &Value| replica(number, &merged(former(), more.clone()));
    let replaced = |new: &Value| {
        let new = (3..6).map(|number| replica(number, new));
        GivenSet::of(3, [old(0, &unseen())].into_iter().chain(new)).does()
    };
    assert_eq!(replaced(&starting()), "rests");
    assert_eq!(
        replaced(&json!({})),
        "retires reads-0",
        "all that are declared are ready"
    );
}

#[test]
fn a_smaller_surge_takes_nothing_that_may_serve() {
    let new = (3..5).map(|number| replica(number, &starting()));
    let old = (0..3).map(|number| replica(number, &merged(former(), unseen())));
    let spec = |replicas| spec(replicas, &json!({"strategy": {"maxSurge": 0}}), &json!({}));
    let computes: Vec<_> = old.chain(new).collect();
    assert_eq!(GivenSet::new(spec(3), computes.clone()).does(), "rests");
    assert_eq!(
        GivenSet::new(spec(2), computes.clone()).does(),
        "retires reads-2",
        "fewer are declared"
    );
    assert_eq!(GivenSet::new(spec(0), computes).does(), "retires reads-4");
}

#[test]
fn what_cannot_be_seen_is_moved_to_another_account_and_not_changed() {
    let template = json!({"accountRef": {"name": "new"}, "size": {"fixed": 2}});
    let moved = |more: &Value, of_template: &Value| {
        let computes = (0..2).map(|number| replica(number, more));
        GivenSet::new(spec(2, &json!({}), of_template), computes).does()
    };
    assert_eq!(moved(&unseen(), &template), "moves reads-0");
    assert_eq!(
        moved(&merged(former(), unseen()), &template),
        "moves reads-0"
    );
    assert_eq!(
        moved(&json!({}), &template),
        "updates reads-0",
        "what can be seen is changed in turn"
    );
    let done = json!({"spec": {"accountRef": {"name": "new"}}});
    assert_eq!(moved(&merged(done, unseen()), &template), "rests");
}

#[test]
fn one_that_cannot_be_read_is_there() {
    let given = |replicas, there, hidden| {
        GivenSet::of(replicas, ready(there)).observing(|seen| seen.unreadable = hidden)
    };
    assert_eq!(given(3, 2, 1).does(), "rests");
    assert_eq!(given(3, 1, 1).does(), "creates reads-1");
    assert_eq!(given(2, 2, 1).does(), "retires reads-1");
    // Metadata that is too large loses its labels, so only the owner reference shows the set.
    let meta = |owner: &str, deleted: Value| {
        let owners = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner, "controller": true}]);
        serde_json::from_value(json!({"ownerReferences": owners, "deletionTimestamp": deleted}))
            .unwrap()
    };
    assert!(is_replica_of(&SET.into(), &meta(SET, Value::Null)));
    assert!(!is_replica_of(&SET.into(), &meta("another", Value::Null)));
    assert!(!is_replica_of(
        &SET.into(),
        &meta(SET, json!("2026-01-01T00:00:00Z"))
    ));
}

#[test]
fn how_many_are_replaced_at_the_same_time() {
    let old = |count: u32| {
        (0..count)
            .map(|number| replica(number, &former()))
            .collect::<Vec<_>>()
    };
    let rolling = |replicas: u32, strategy: Value, more: Vec<Arc<Known<Compute>>>| {
        let spec = spec(replicas, &json!({"strategy": strategy}), &json!({}));
        GivenSet::new(spec, old(replicas).into_iter().chain(more)).does()
    };
    let begun = |count: u32, from: u32| {
        (from..from + count)
            .map(|number| replica(number, &starting()))
            .collect()
    };
    assert_eq!(
        rolling(4, json!({"maxSurge": 2}), begun(1, 4)),
        "creates reads-5"
    );
    assert_eq!(rolling(4, json!({"maxSurge": 2}), begun(2, 4)), "rests");
    assert_eq!(
        rolling(5, json!({"maxSurge": "21%"}), begun(1, 5)),
        "creates reads-6",
        "rounded up to 2"
    );
    assert_eq!(rolling(5, json!({"maxSurge": "20%"}), begun(1, 5)), "rests");
    let in_place = json!({"maxSurge": 0, "maxUnavailable": 2});
    assert_eq!(rolling(4, in_place.clone(), Vec::new()), "retires reads-3");
    let spec = spec(4, &json!({"strategy": in_place}), &json!({}));
    assert_eq!(
        GivenSet::new(spec.clone(), old(3)).does(),
        "creates reads-3",
        "no more than are declared"
    );
    assert_eq!(
        GivenSet::new(spec, old(3).into_iter().chain(begun(1, 3))).does(),
        "retires reads-2"
    );
}

#[test]
fn scaling_down_takes_those_of_the_former_branch_first() {
    let computes = [
        replica(0, &former()),
        replica(1, &former()),
        replica(2, &json!({})),
    ];
    assert_eq!(GivenSet::of(1, computes.clone()).does(), "retires reads-1");
    assert_eq!(GivenSet::of(0, computes).does(), "retires reads-2");
    assert_eq!(
        GivenSet::of(0, [replica(0, &former())]).does(),
        "retires reads-0"
    );
}

#[test]
fn changes_are_made_one_after_the_other() {
    let size = json!({"size": {"fixed": 2}});
    let changed = |computes: Vec<Arc<Known<Compute>>>| {
        GivenSet::new(spec(3, &json!({}), &size), computes).does()
    };
    let done = |number: u32| replica(number, &json!({"spec": size}));
    let under_way = |number: u32| {
        replica(
            number,
            &json!({"spec": size, "metadata": {"generation": 2}}),
        )
    };
    assert_eq!(changed(ready(3)), "updates reads-0");
    assert_eq!(
        changed(vec![
            under_way(0),
            replica(1, &json!({})),
            replica(2, &json!({}))
        ]),
        "rests"
    );
    assert_eq!(
        changed(vec![
            done(0),
            replica(1, &json!({})),
            replica(2, &json!({}))
        ]),
        "updates reads-1"
    );
    assert_eq!(
        changed(vec![done(0), done(1), replica(2, &starting())]),
        "updates reads-2"
    );
    assert_eq!(
        changed(vec![
            under_way(0),
            replica(1, &json!({})),
            replica(2, &starting())
        ]),
        "updates reads-2",
        "what is not ready has nothing to lose"
    );
    assert_eq!(changed(vec![done(0), done(1), done(2)]), "rests");
}

#[test]
fn a_stray_compute_beside_a_replica_does_not_keep_the_others_from_changing() {
    let size = json!({"size": {"fixed": 2}});
    let synced = |reason: &str| {
        let conditions = [
            conditioned("Ready", "True", "Available", ""),
            conditioned("Synced", "False", reason, "It is."),
        ];
        replica(
            0,
            &json!({"spec": size, "status": {"conditions": conditions}}),
        )
    };
    for (reason, expected) in [
        ("StrayCompute", "updates reads-1"),
        ("RestartUnconfirmed", "rests"),
        ("WaitingForDisruption", "rests"),
    ] {
        let computes = [synced(reason), replica(1, &json!({}))];
        assert_eq!(
            GivenSet::new(spec(2, &json!({}), &size), computes).does(),
            expected,
            "{reason}"
        );
    }
    let one = GivenSet::new(spec(1, &json!({}), &size), [synced("StrayCompute")]);
    let report = one.decide().report.unwrap();
    assert_eq!(
        report.headline(),
        (
            Reason::Available,
            "Replicas: 1 declared, 1 ready, 1 up to date."
        )
    );
    assert_eq!(
        report.sync,
        Sync::OutOfSync(Reason::StrayCompute, "Compute reads-0: It is.".to_owned())
    );
}

#[test]
fn how_many_are_changed_at_the_same_time() {
    let size = json!({"size": {"fixed": 2}});
    let computes = |under_way: u32| {
        let changed = json!({"spec": size, "metadata": {"generation": 2}});
        let of = |number| {
            if number < under_way {
                replica(number, &changed)
            } else {
                replica(number, &json!({}))
            }
        };
        (0..5).map(of).collect::<Vec<_>>()
    };
    for (share, under_way, expected) in [
        (json!(2), 1, "updates reads-1"),
        (json!(2), 2, "rests"),
        (json!("59%"), 1, "updates reads-1"),
        (json!("59%"), 2, "rests"),
        (json!("0%"), 0, "updates reads-0"),
        (json!("0%"), 1, "rests"),
    ] {
        let spec = spec(5, &json!({"strategy": {"maxUnavailable": share}}), &size);
        assert_eq!(
            GivenSet::new(spec, computes(under_way)).does(),
            expected,
            "{share} {under_way}"
        );
    }
}

#[test]
fn a_replica_is_changed_back_but_for_what_the_template_does_not_have() {
    let edited = |more: Value| GivenSet::of(1, [replica(0, &more)]).does();
    assert_eq!(
        edited(json!({"spec": {"size": {"fixed": 8}}})),
        "updates reads-0"
    );
    assert_eq!(
        edited(json!({"metadata": {"labels": {"more": "x"}}})),
        "rests"
    );
    for more in [
        json!({"spec": {"deletionProtection": true}}),
        json!({"spec": {"connection": {"secretName": "own"}}}),
    ] {
        assert_eq!(edited(more.clone()), "rests", "{more}");
    }
    let mut labelled = GivenSet::of(1, ready(1));
    labelled
        .spec
        .template
        .metadata
        .labels
        .insert("team".into(), "shop".into());
    assert_eq!(labelled.does(), "updates reads-0");
    let mut annotated = GivenSet::of(1, ready(1));
    annotated
        .spec
        .template
        .metadata
        .annotations
        .insert("note".into(), "x".into());
    assert_eq!(annotated.does(), "updates reads-0");
}
