mod accounts;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::*;
use crate::api::{AccountKind, ComputeType, PlatformAccess};
use crate::decide::Reason;
use crate::decide::account::Availability;
use crate::decide::compute::{Holder, Reserved, ReservedPlace};
use crate::decide::identity::{Evidence, KeyIdentity, KeyIntent};
use crate::decide::memory::{ActionProblem, ExistenceAnswer};
use crate::decide::put_back::Doubt;
use crate::domain::{KeyId, NameSupport};
use crate::leadership::Leadership;
use crate::platform::{
    Connect, ConnectOptions, Endpoint, NoMeter, OverHttp, PlatformClient, Rate, RateLimited,
};

type State = ProcessState<()>;

fn place(platform: &str, branch: &str) -> ReservedPlace {
    let what = Reserved::Create {
        branch: branch.into(),
        type_: ComputeType::ReadOnly,
    };
    ReservedPlace {
        platform: platform.into(),
        project: "p-1".into(),
        what,
    }
}

fn reserve(state: &State, uid: &Uid, place: ReservedPlace, evidence: Evidence) -> bool {
    state.reserve(
        uid,
        place,
        Holder {
            namespace: "shop".into(),
            name: uid.to_string(),
        },
        evidence,
    )
}

fn begin(state: &State, uid: &Uid) -> bool {
    reserve(state, uid, place("a", "br-1"), Evidence::ByBaseline)
}

fn resolved(state: &State, uid: &Uid) -> bool {
    state.resolved(uid, Some(1)).is_some()
}

#[test]
fn an_intent_that_may_be_written_keeps_its_turn_until_it_is_seen() {
    let state = State::default();
    let begun = || {
        let step = state.begin_step(&"one".into());
        assert!(begin(&state, &"one".into()));
        let first = state.recording(&"one".into(), Some(7));
        drop(step);
        first
    };
    assert!(begun());
    assert!(!begun(), "the one before may be written");
    assert!(
        state.resolved(&"one".into(), Some(7)).is_none(),
        "the cache may be behind"
    );
    assert!(
        state.resolved(&"one".into(), Some(8)).is_some(),
        "this version shows whether it was written"
    );
    // A step that ends before it writes its own intent says nothing about the previous one.
    assert!(begun());
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()));
    drop(step);
    assert!(state.resolved(&"one".into(), Some(7)).is_none());
    state.recorded(&"one".into());
    assert!(
        state.resolved(&"one".into(), Some(7)).is_some(),
        "the API server answered"
    );

    assert!(begin(&state, &"one".into()));
    assert!(state.recording(&"one".into(), Some(7)));
    state.not_recorded(&"one".into());
    assert!(
        begin(&state, &"two".into()),
        "nobody waits for what may never be written"
    );
}

#[test]
fn a_finalizer_that_may_be_there_keeps_its_account_until_it_is_seen() {
    let state = State::default();
    state.patch_unanswered(&"one".into(), Some(7));
    assert!(
        state.is_busy(&"one".into(), Some(6)),
        "the cache may be behind"
    );
    assert!(state.is_busy(&"one".into(), Some(7)));
    assert!(
        !state.is_busy(&"one".into(), Some(8)),
        "this version shows whether it was written"
    );
    assert!(!state.is_busy(&"two".into(), Some(7)));
    state.wrote_version(&"one".into(), Some(7));
    assert!(
        state.is_busy(&"one".into(), Some(7)),
        "a write that changes nothing makes no version"
    );
    state.version_seen(&"one".into(), Some(8), None);
    assert_eq!(state.resource(&"one".into()).unanswered, None);
}

#[test]
fn nothing_that_rests_on_a_version_outlives_storage_that_is_put_back() {
    let state = State::default();
    state.wrote_version(&"one".into(), Some(9));
    state.patch_unanswered(&"one".into(), Some(9));
    state.write_conflicted(&"one".into(), Some(9));
    state.child_written(&"one".into(), &"child".into(), Done::Changed(Some(9)));
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()));
    assert!(state.recording(&"one".into(), Some(9)));
    drop(step);
    state.compute_asked(
        &"one".into(),
        ExistenceAnswer {
            at: Timestamp::UNIX_EPOCH,
            exists: true,
        },
    );
    assert!(state.is_outdated(&"one".into(), Some(3)));
    state.storage_put_back();
    assert!(!state.is_outdated(&"one".into(), Some(3)));
    assert_eq!(state.doubt(&"one".into(), Some(3)), None);
    let known = state.resource(&"one".into());
    assert_eq!(
        (known.unanswered, known.conflict, known.children.len()),
        (None, None, 0)
    );
    assert!(
        known.memory.asked.is_some(),
        "the platform was not put back"
    );
    assert!(
        state.resolved(&"one".into(), Some(3)).is_some(),
        "what is listed now shows whether it was written"
    );
    assert!(!state.is_busy(&"one".into(), Some(3)));
    state.wrote_version(&"one".into(), Some(4));
    assert!(state.is_outdated(&"one".into(), Some(3)));
}

#[test]
fn a_cache_that_is_behind_or_that_nothing_can_be_written_onto_is_in_doubt() {
    let state = State::default();
    assert_eq!(state.doubt(&"one".into(), Some(3)), None);
    state.wrote_version(&"one".into(), Some(4));
    assert_eq!(state.doubt(&"one".into(), Some(3)), Some(Doubt::Behind(4)));
    assert_eq!(state.doubt(&"one".into(), Some(4)), None);
    state.write_conflicted(&"one".into(), Some(4));
    assert_eq!(
        state.doubt(&"one".into(), Some(4)),
        Some(Doubt::Conflict(4))
    );
    assert_eq!(
        state.doubt(&"one".into(), Some(5)),
        None,
        "the watch shows another version"
    );
    state.pass_succeeded(&"one".into());
    assert_eq!(state.doubt(&"one".into(), Some(4)), None);
}

#[test]
fn a_record_that_a_list_lacks_is_written_again_once_storage_was_put_back() {
    let state = State::default();
    let goes_back = |uid: &Uid| state.went_back(uid, Some(9), Some("bound".to_owned()));
    goes_back(&"one".into());
    assert!(
        state.is_outdated(&"one".into(), Some(3)),
        "it is not decided on"
    );
    assert_eq!(
        state.lost_record(&"one".into()),
        None,
        "the list may be late"
    );
    state.version_seen(&"one".into(), Some(10), Some("bound"));
    state.storage_put_back();
    assert_eq!(state.lost_record(&"one".into()), None, "the list was late");
    goes_back(&"one".into());
    state.wrote_version(&"one".into(), Some(10));
    state.storage_put_back();
    assert_eq!(
        state.lost_record(&"one".into()),
        None,
        "there is a newer record"
    );
    for without in [None, Some("of the backup")] {
        goes_back(&"two".into());
        state.version_seen(&"two".into(), Some(10), without);
        assert_eq!(
            state.lost_record(&"two".into()).as_deref(),
            Some("bound"),
            "an edit made it newer"
        );
        state.record_restored(&"two".into());
    }
    goes_back(&"one".into());
    state.version_seen(&"one".into(), Some(9), None);
    state.storage_put_back();
    assert_eq!(state.lost_record(&"one".into()).as_deref(), Some("bound"));
    state.wrote_version(&"one".into(), Some(4));
    assert_eq!(
        state.lost_record(&"one".into()).as_deref(),
        Some("bound"),
        "something else was written"
    );
    state.record_restored(&"one".into());
    assert_eq!(state.lost_record(&"one".into()), None);
}

#[test]
fn a_branch_has_one_create_at_a_time_until_it_is_resolved() {
    let state = State::default();
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()));
    assert!(!begin(&state, &"two".into()));
    assert!(reserve(
        &state,
        &"three".into(),
        place("a", "br-2"),
        Evidence::ByBaseline
    ));
    assert!(
        reserve(
            &state,
            &"four".into(),
            place("b", "br-1"),
            Evidence::ByBaseline
        ),
        "another platform"
    );
    assert!(!resolved(&state, &"one".into()), "it is running");
    drop(step);
    assert!(!begin(&state, &"two".into()), "it is not resolved");
    let first = (
        Holder {
            namespace: "shop".into(),
            name: "one".into(),
        },
        Evidence::ByBaseline,
    );
    assert_eq!(
        state.reserved_by_others(&"two".into(), &place("a", "br-1")),
        [first]
    );
    assert_eq!(
        state.reserved_by_others(&"one".into(), &place("a", "br-1")),
        []
    );
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()), "its own turn");
    drop(step);
    assert!(resolved(&state, &"one".into()));
    assert!(!resolved(&state, &"one".into()));
    assert!(begin(&state, &"two".into()));
}

#[test]
fn creates_that_are_told_by_their_marks_share_a_turn() {
    let state = State::default();
    let begin = |uid: &Uid, evidence| reserve(&state, uid, place("a", "br-1"), evidence);
    let step = state.begin_step(&"one".into());
    assert!(begin(&"one".into(), Evidence::ByMark));
    assert!(begin(&"two".into(), Evidence::ByMark));
    assert!(!begin(&"three".into(), Evidence::ByBaseline));
    drop(step);
    assert!(resolved(&state, &"one".into()));
    state.forget(&"two".into());
    assert!(begin(&"three".into(), Evidence::ByBaseline));
    assert!(!begin(&"one".into(), Evidence::ByMark));
}

#[test]
fn after_its_finalizer_is_removed_no_older_version_is_decided_on_until_it_is_gone() {
    let state = State::default();
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()));
    state.wrote_version(&"one".into(), Some(8));
    state.released(&"one".into(), Some(8));
    drop(step);
    assert!(
        state.is_outdated(&"one".into(), Some(8)),
        "the API server answers with the version from before"
    );
    assert!(
        !state.is_outdated(&"one".into(), Some(9)),
        "somebody else's finalizer holds it"
    );
    assert_eq!(
        state.reserved_by_others(&"any".into(), &place("a", "br-1")),
        []
    );
    state.forget(&"one".into());
    assert!(state.contents().resources.is_empty());
    // The watch was faster than the answer.
    let step = state.begin_step(&"two".into());
    state.wrote_version(&"two".into(), Some(8));
    state.forget(&"two".into());
    state.released(&"two".into(), Some(8));
    drop(step);
    assert!(state.contents().resources.is_empty());
}

#[test]
fn a_resource_that_is_deleted_keeps_nobody_waiting() {
    let state = State::default();
    let step = state.begin_step(&"one".into());
    assert!(begin(&state, &"one".into()));
    drop(step);
    state.forget(&"one".into());
    assert_eq!(
        state.reserved_by_others(&"any".into(), &place("a", "br-1")),
        []
    );
    // Deleted while its create waits for its place in the budget.
    let step = state.begin_step(&"two".into());
    assert!(begin(&state, &"two".into()));
    state.forget(&"two".into());
    assert!(!begin(&state, &"one".into()), "it is running");
    drop(step);
    assert!(begin(&state, &"one".into()));
}

#[test]
fn what_was_done_to_children_counts_until_the_watch_shows_it() {
    let state = State::default();
    let done = [
        ("a", Done::Created("reads-0".to_owned())),
        ("b", Done::Changed(Some(8))),
        ("c", Done::Deleted),
    ];
    let left = |seen: &[(&str, u64, bool)]| {
        let find = |child: &Uid| {
            let (_, version, deleting) = seen.iter().find(|(uid, ..)| *uid == child.as_str())?;
            Some((Some(*version), *deleting))
        };
        state
            .children_seen(&"set".into(), find)
            .into_keys()
            .map(|child| child.to_string())
            .collect::<Vec<_>>()
    };
    for (child, done) in done {
        state.child_written(&"set".into(), &child.into(), done);
    }
    assert_eq!(left(&[("b", 7, false), ("c", 9, false)]), ["a", "b", "c"]);
    assert_eq!(
        left(&[("a", 5, false), ("b", 8, false), ("c", 9, false)]),
        ["c"]
    );
    assert_eq!(left(&[("c", 10, true)]), [""; 0]);
    state.child_written(&"set".into(), &"b".into(), Done::Changed(Some(9)));
    assert_eq!(left(&[]), [""; 0], "what the watch showed before is gone");
    state.child_written(
        &"set".into(),
        &"a".into(),
        Done::Created("reads-0".to_owned()),
    );
    state.child_gone(&"set".into(), &"a".into());
    assert_eq!(left(&[]), [""; 0]);
}

#[test]
fn who_waits_is_counted_by_kind_namespace_and_reason() {
    let state = State::default();
    let wait = |kind: &str, namespace: &str, reason| Wait {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        reason,
    };
    let paused = |kind, namespace| wait(kind, namespace, Reason::DeletionPaused);
    for (uid, waits) in [
        ("one", paused("Compute", "shop")),
        ("one", paused("Compute", "shop")),
        ("two", paused("Compute", "shop")),
        ("three", paused("Compute", "ledger")),
        ("key", paused("ProjectKey", "shop")),
    ] {
        state.waits(&uid.into(), Some(waits));
    }
    let mut expected = BTreeMap::from([
        (paused("Compute", "shop"), 2),
        (paused("Compute", "ledger"), 1),
        (paused("ProjectKey", "shop"), 1),
    ]);
    assert_eq!(state.waiting(), expected);
    let protected = wait("Compute", "shop", Reason::DeletionProtected);
    state.waits(&"two".into(), Some(protected.clone()));
    expected.insert(paused("Compute", "shop"), 1);
    expected.insert(protected, 1);
    assert_eq!(state.waiting(), expected);
    state.waits(&"two".into(), None);
    for uid in ["one", "three"] {
        state.forget(&uid.into());
    }
    assert_eq!(
        state.waiting(),
        [(paused("ProjectKey", "shop"), 1)].into(),
        "who is gone does not wait"
    );
}

#[test]
fn a_key_in_memory_is_not_in_debug() {
    let key = KeyIdentity {
        id: KeyId(1),
        name: "ci".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        created_at: None,
        created_by: None,
    };
    let intent = KeyIntent {
        name: "ci".to_owned(),
        ..KeyIntent::default()
    };
    let state = State::default();
    let secret = SecretString::from("canary-in-memory");
    state.key_created(
        &"uid".into(),
        UnsavedKey {
            key,
            intent,
            secret,
            trial: None,
            namespace: "shop".to_owned(),
            name: "ci".to_owned(),
        },
    );
    let text = format!(
        "{state:?} {state:#?} {:?}",
        state.unsaved_key(&"uid".into())
    );
    assert!(text.contains("shop") && !text.contains("canary"), "{text}");
}

#[test]
fn a_request_to_look_again_counts_once() {
    let state = State::default();
    let fault = || {
        ActionProblem::Platform(crate::domain::Fault::Rejected {
            status: 422,
            message: "no".into(),
        })
    };
    state.change_memory(&"one".into(), |memory| {
        memory.failed(Action::Change, fault(), 3, Timestamp::UNIX_EPOCH);
    });
    state.revocation_not_offered(&"one".into(), Timestamp::UNIX_EPOCH);
    let waits = || {
        state
            .resource(&"one".into())
            .memory
            .backoff(Action::Change, 3, Timestamp::UNIX_EPOCH)
            .is_some()
    };
    assert!(waits());
    assert!(state.reconcile_requested(&"one".into(), "a"));
    assert!(!state.reconcile_requested(&"one".into(), "a"));
    assert!(state.reconcile_requested(&"one".into(), "b"));
    state.invalidate(&"one".into(), Tick::at(5));
    let known = state.resource(&"one".into());
    let tick = Some(Tick::at(5));
    assert_eq!(
        (known.wrote_at(), known.key.anew, known.key.not_offered),
        (tick, tick, None)
    );
    assert_eq!(known.key.probe, Some(Probe::WANTED));
    assert!(!waits(), "what was refused is tried again");
}
