//! A bound Compute.

mod missing;

use super::*;
use crate::decide::Action;
use crate::decide::memory::ExistenceAnswer;

#[test]
fn nothing_is_done_where_everything_is_as_declared() {
    for (compute, words) in [
        (compute("ep-1"), "can be used"),
        (idle("ep-1"), "Idle"),
        (
            with(idle("ep-1"), |compute| {
                compute.settings.disabled = Some(true)
            }),
            "Disabled",
        ),
        (
            with(compute("ep-1"), |compute| {
                compute.pending_state = Some(ComputeState::Idle)
            }),
            "can be used",
        ),
    ] {
        let reported = GivenCompute::bound().seeing([compute]).rest();
        reported.in_sync();
        assert_eq!(reported.wake, Wake::OnChange);
        assert!(
            matches!(&reported.health, Health::Ready(Reason::Available, text) if text.contains(words)),
            "{reported:?}"
        );
    }
}

#[test]
fn a_start_is_waited_for_and_not_for_ever() {
    let init = || {
        with(compute("ep-1"), |compute| {
            compute.current_state = ComputeState::Init
        })
    };
    let young = GivenCompute::bound()
        .binding(|binding| binding.at = at(-10))
        .seeing([init()]);
    let reported = young.rest();
    reported.progressing(Reason::Starting);
    reported.until(at(590));
    assert_eq!(reported.sync, Sync::InSync);
    let late = young.after(590).rest();
    late.stalled(Reason::StartTimeout, &["ep-1", "console"]);
    assert_eq!(late.wake, Wake::OnChange);
}

fn in_states(current: &str, pending: Option<&str>) -> GivenCompute {
    let state = |word: &str| ComputeState::from(word.to_owned());
    GivenCompute::bound().seeing([with(compute("ep-1"), |seen| {
        (seen.current_state, seen.pending_state) = (state(current), pending.map(state));
    })])
}

#[test]
fn a_state_that_is_not_known_is_neither_good_nor_bad() {
    for (current, pending) in [
        ("failed", None),
        ("degraded", None),
        ("unknown", None),
        ("Active", None),
        ("failed", Some("active")),
        ("active", Some("failed")),
    ] {
        let given = in_states(current, pending);
        let rest = given.rest();
        rest.unknown(Reason::StateUnknown);
        let Health::Unknown(_, text) = &rest.health else {
            panic!()
        };
        assert!(
            text.contains(&format!("\"{current}\"")) && text.contains(pending.unwrap_or("ep-1")),
            "{text}"
        );
        let ours = given
            .clone()
            .remembering(|memory| memory.changing = true)
            .rest();
        ours.unknown(Reason::StateUnknown);
    }
    for (current, pending) in [
        ("active", None),
        ("idle", None),
        ("active", Some("idle")),
        ("idle", Some("active")),
    ] {
        in_states(current, pending).rest().in_sync();
    }
    // The spec is still enforced, and a refusal does not mean that the compute cannot be used.
    let smaller = in_states("degraded", None).declaring(json!({"size": {"fixed": 2}}));
    assert!(matches!(smaller.step(), ComputeStep::Change { .. }));
    let refused = smaller.failed(Action::Change, refused()).rest();
    refused.unknown(Reason::StateUnknown);
    assert!(
        matches!(refused.sync, Sync::Refused(Reason::Refused, _)),
        "{refused:?}"
    );
}

#[test]
fn what_we_changed_is_not_ready_until_it_is_settled() {
    let pending = with(compute("ep-1"), |compute| {
        compute.pending_state = Some(ComputeState::Active)
    });
    let given = GivenCompute::bound().seeing([pending]);
    given.rest().ready();
    given
        .remembering(|memory| memory.changing = true)
        .rest()
        .progressing(Reason::Updating);
}

#[test]
fn a_snapshot_is_recorded_in_memory() {
    let given = GivenCompute::bound().declaring(json!({"size": {"fixed": 2}}));
    let mut memory = Memory::default();
    memory.changing = true;
    let mut remember = |found: Option<Compute>, now| {
        let shown = found.as_ref().map_or(Shown::Absent, Shown::Entry);
        remember(
            &mut memory,
            version(&given.spec, GENERATION),
            None,
            &shown,
            now,
        );
        (memory.changing, memory.missing_since)
    };
    let pending = with(compute("ep-1"), |compute| {
        compute.pending_state = Some(ComputeState::Active)
    });
    assert_eq!(remember(Some(pending), at(0)), (true, None));
    assert_eq!(remember(Some(compute("ep-1")), at(1)), (false, None));
    assert_eq!(remember(None, at(2)), (false, Some(at(2))));
    assert_eq!(remember(None, at(3)), (false, Some(at(2))));
    assert_eq!(remember(Some(compute("ep-1")), at(4)), (false, None));
}

#[test]
fn the_platform_is_polled_fast_while_a_change_is_expected() {
    let pending = || {
        with(compute("ep-1"), |compute| {
            compute.pending_state = Some(ComputeState::Active)
        })
    };
    let init = || {
        with(compute("ep-1"), |compute| {
            compute.current_state = ComputeState::Init
        })
    };
    let mut deleted = Memory::default();
    deleted.deleted = Some(("ep-1".into(), NOW));
    let plain = Memory::default();
    for (given, deleting, memory, seen, expected) in [
        (GivenCompute::new(), false, &plain, None, false),
        (GivenCompute::intended(), false, &plain, None, true),
        (
            GivenCompute::bound(),
            false,
            &plain,
            Some(compute("ep-1")),
            false,
        ),
        (
            GivenCompute::bound(),
            false,
            &plain,
            Some(idle("ep-1")),
            false,
        ),
        (GivenCompute::bound(), false, &plain, Some(pending()), true),
        (GivenCompute::bound(), false, &plain, Some(init()), true),
        (GivenCompute::bound(), false, &plain, None, true),
        (
            GivenCompute::bound(),
            true,
            &plain,
            Some(compute("ep-1")),
            false,
        ),
        (
            GivenCompute::bound(),
            true,
            &deleted,
            Some(compute("ep-1")),
            true,
        ),
    ] {
        let identity = given.observed.facts.identity.unwrap();
        let shown = identity
            .binding
            .as_ref()
            .map(|_| seen.as_ref().map_or(Shown::Absent, Shown::Entry));
        assert_eq!(
            is_awaiting(&identity, deleting, memory, shown),
            expected,
            "{identity:?} {seen:?}"
        );
    }
}

/// Users paste the command, and the record may be forged.
#[test]
fn a_forged_project_adds_nothing_to_the_command() {
    let forged = r#"x"}}'; touch /tmp/y; '"#;
    let quoted = r#"-p '{"spec":{"projectID":"x\"}}'\''; touch /tmp/y; '\''"}}'"#;
    GivenCompute::bound()
        .binding(|binding| binding.project = forged.into())
        .rest()
        .refused(Reason::BindingConflict, &[quoted]);
}

#[test]
fn a_contradicting_binding_is_not_acted_on() {
    let differing = || GivenCompute::bound().declaring(json!({"size": {"fixed": 4}}));
    let elsewhere = differing().binding(|binding| binding.project = "p-2".into());
    let misnamed = differing().declaring(json!({"computeID": "ep-2"}));
    for (given, words) in [
        (elsewhere, ["p-2", r#"-p '{"spec":{"projectID":"p-2"}}'"#]),
        (misnamed, ["ep-2", r#"-p '{"spec":{"computeID":"ep-1"}}'"#]),
    ] {
        let words = [
            &["ep-1", "kubectl -n shop patch compute orders"],
            &words[..],
        ]
        .concat();
        given.rest().refused(Reason::BindingConflict, &words);
        let unlisted = given.seeing([]);
        unlisted.rest().stalled(Reason::BindingConflict, &words);
        let ready = unlisted.observing(|observed| observed.meta.ready = true);
        ready.rest().refused(Reason::BindingConflict, &words);
    }
    differing()
        .seeing([replica("ep-1")])
        .rest()
        .stalled(Reason::BindingConflict, &["a read replica", "ReadWrite"]);
    differing()
        .claimed("ep-1", true)
        .rest()
        .stalled(Reason::ClaimedByAnother, &["Compute shop/other"]);
    assert!(
        matches!(
            differing().claimed("ep-1", false).step(),
            ComputeStep::Change { .. }
        ),
        "the older one keeps it"
    );
}

#[test]
fn a_binding_is_recorded_with_the_branch_that_the_compute_was_moved_to() {
    let moved = with(compute("ep-1"), |compute| {
        compute.branch_id = "br-dev".into()
    });
    let given = GivenCompute::bound()
        .declaring(json!({"branchID": "br-dev"}))
        .seeing([moved]);
    let ComputeStep::RecordBinding { binding } = given.step() else {
        panic!("{:?}", given.step())
    };
    assert_eq!(
        (binding.branch.as_deref(), binding.at),
        (Some("br-dev"), at(-3600))
    );
    given.binding(|known| *known = binding).rest().in_sync();
}

#[test]
fn an_account_of_another_platform_says_nothing_of_the_compute() {
    let (here, there) = (
        "https://here.example/api/v2",
        "https://there.example/api/v2",
    );
    let on = |platform: &str| {
        let given = GivenCompute::bound().binding(|binding| binding.platform = Some(here.into()));
        given.observing(|observed| observed.platform = Some(platform.into()))
    };
    on(here).rest().in_sync();
    let words = ["ep-1", here, there, "spec.accountRef", "Orphan"];
    let deleting = |given: GivenCompute| given.observing(|observed| observed.meta.deleting = true);
    for seconds in [0, 7200] {
        on(there)
            .seeing([])
            .after(seconds)
            .rest()
            .stalled(Reason::BindingConflict, &words);
        deleting(on(there))
            .seeing([])
            .after(seconds)
            .rest()
            .stalled(Reason::BindingConflict, &words);
    }
    let orphaned = deleting(on(there))
        .seeing([])
        .declaring(json!({"deletion": "Orphan"}));
    assert_eq!(orphaned.step(), ComputeStep::RemoveFinalizer);
    on(there).rest().stalled(Reason::BindingConflict, &words);
    let ready = on(there).observing(|observed| observed.meta.ready = true);
    let words = [
        &words[..],
        &["kubectl -n shop get accounts", "patch compute orders"],
    ]
    .concat();
    ready.rest().refused(Reason::BindingConflict, &words);
    deleting(ready)
        .rest()
        .stalled(Reason::BindingConflict, &words);
    let open = GivenCompute::intended().intent(|intent| intent.platform = Some(here.into()));
    let open = open
        .observing(|observed| observed.platform = Some(there.into()))
        .after(7200);
    open.rest()
        .stalled(Reason::BindingConflict, &["create", here, there]);
    deleting(open)
        .rest()
        .stalled(Reason::BindingConflict, &["create", here, there]);
}

#[test]
fn the_finalizer_is_added_before_the_compute_is_changed() {
    let given = GivenCompute::bound()
        .declaring(json!({"size": {"fixed": 4}}))
        .observing(|observed| observed.meta.has_finalizer = false);
    assert_eq!(given.step(), ComputeStep::Restore { record: None });
}

#[test]
fn an_observed_compute_is_never_changed() {
    let given = GivenCompute::bound()
        .declaring(json!({"management": "Observe", "restartToken": "now", "connection": {"secretName": "db"}}))
        .observing(|observed| {
            observed.meta.has_finalizer = false;
            observed.secret = SecretView::Absent;
        });
    given.rest().in_sync();
    let reported = given
        .declaring(json!({"size": {"fixed": 4}, "branchID": "br-dev"}))
        .rest();
    reported.ready();
    reported.out_of_sync(
        Reason::Drifted,
        &[
            "branchID is br-main, declared is br-dev",
            "size is 1, declared is 4",
        ],
    );
}
