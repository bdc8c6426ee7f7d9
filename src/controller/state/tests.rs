mod accounts;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::*;
use crate::api::{AccountKind, ComputeType, PlatformAccess};
use crate::decide::account::Availability;
use crate::decide::compute::{Holder, Reserved, ReservedPlace};
use crate::decide::identity::{Evidence, KeyIdentity, KeyIntent};
use crate::decide::memory::ExistenceAnswer;
use crate::decide::put_back::Doubt;
use crate::domain::NameSupport;
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

fn reserve(state: &State, uid: &str, place: ReservedPlace, evidence: Evidence) -> bool {
    state.reserve(
        uid,
        place,
        Holder {
            namespace: "shop".into(),
            name: uid.into(),
        },
        evidence,
    )
}

fn begin(state: &State, uid: &str) -> bool {
    reserve(state, uid, place("a", "br-1"), Evidence::ByBaseline)
}

fn resolved(state: &State, uid: &str) -> bool {
    state.resolved(uid, Some(1)).is_some()
}

#[test]
fn an_intent_that_may_be_written_keeps_its_turn_until_it_is_seen() {
    let state = State::default();
    let begun = || {
        let step = state.begin_step("one");
        assert!(begin(&state, "one"));
        let first = state.recording("one", Some(7));
        drop(step);
        first
    };
    assert!(begun());
    assert!(!begun(), "the one before may be written");
    assert!(
        state.resolved("one", Some(7)).is_none(),
        "the cache may be behind"
    );
    assert!(
        state.resolved("one", Some(8)).is_some(),
        "this version shows whether it was written"
    );
    // A step that ends before it writes its own intent says nothing about the previous one.
    assert!(begun());
    let step = state.begin_step("one");
    assert!(begin(&state, "one"));
    drop(step);
    assert!(state.resolved("one", Some(7)).is_none());
    state.recorded("one");
    assert!(
        state.resolved("one", Some(7)).is_some(),
        "the API server answered"
    );

    assert!(begin(&state, "one"));
    assert!(state.recording("one", Some(7)));
    state.not_recorded("one");
    assert!(
        begin(&state, "two"),
        "nobody waits for what may never be written"
    );
}

#[test]
fn a_finalizer_that_may_be_there_keeps_its_account_until_it_is_seen() {
    let state = State::default();
    state.patch_unanswered("one", Some(7));
    assert!(state.is_busy("one", Some(6)), "the cache may be behind");
    assert!(state.is_busy("one", Some(7)));
    assert!(
        !state.is_busy("one", Some(8)),
        "this version shows whether it was written"
    );
    assert!(!state.is_busy("two", Some(7)));
    state.wrote_version("one", Some(7));
    assert!(
        state.is_busy("one", Some(7)),
        "a write that changes nothing makes no version"
    );
    state.version_seen("one", Some(8), None);
    assert_eq!(state.resource("one").unanswered, None);
}

#[test]
fn nothing_that_rests_on_a_version_outlives_storage_that_is_put_back() {
    let state = State::default();
    state.wrote_version("one", Some(9));
    state.patch_unanswered("one", Some(9));
    state.write_conflicted("one", Some(9));
    state.child_written("one", "child", Done::Changed(Some(9)));
    let step = state.begin_step("one");
    assert!(begin(&state, "one"));
    assert!(state.recording("one", Some(9)));
    drop(step);
    state.compute_asked(
        "one",
        ExistenceAnswer {
            at: Timestamp::UNIX_EPOCH,
            exists: true,
        },
    );
    assert!(state.is_outdated("one", Some(3)));
    state.storage_put_back();
    assert!(!state.is_outdated("one", Some(3)));
    assert_eq!(state.doubt("one", Some(3)), None);
    let known = state.resource("one");
    assert_eq!(
        (known.unanswered, known.conflict, known.children.len()),
        (None, None, 0)
    );
    assert!(
        known.memory.asked.is_some(),
        "the platform was not put back"
    );
    assert!(
        state.resolved("one", Some(3)).is_some(),
        "what is listed now shows whether it was written"
    );
    assert!(!state.is_busy("one", Some(3)));
    state.wrote_version("one", Some(4));
    assert!(state.is_outdated("one", Some(3)));
}

#[test]
fn a_cache_that_is_behind_or_that_nothing_can_be_written_onto_is_in_doubt() {
    let state = State::default();
    assert_eq!(state.doubt("one", Some(3)), None);
    state.wrote_version("one", Some(4));
    assert_eq!(state.doubt("one", Some(3)), Some(Doubt::Behind(4)));
    assert_eq!(state.doubt("one", Some(4)), None);
    state.write_conflicted("one", Some(4));
    assert_eq!(state.doubt("one", Some(4)), Some(Doubt::Conflict(4)));
    assert_eq!(
        state.doubt("one", Some(5)),
        None,
        "the watch shows another version"
    );
    state.pass_succeeded("one");
    assert_eq!(state.doubt("one", Some(4)), None);
}

#[test]
fn a_record_that_a_list_lacks_is_written_again_once_storage_was_put_back() {
    let state = State::default();
    let goes_back = |uid: &str| state.went_back(uid, Some(9), Some("bound".to_owned()));
    goes_back("one");
    assert!(state.is_outdated("one", Some(3)), "it is not decided on");
    assert_eq!(state.lost_record("one"), None, "the list may be late");
    state.version_seen("one", Some(10), Some(&"bound".to_owned()));
    state.storage_put_back();
    assert_eq!(state.lost_record("one"), None, "the list was late");
    goes_back("one");
    state.wrote_version("one", Some(10));
    state.storage_put_back();
    assert_eq!(state.lost_record("one"), None, "there is a newer record");
    for without in [None, Some("of the backup".to_owned())] {
        goes_back("two");
        state.version_seen("two", Some(10), without.as_ref());
        assert_eq!(
            state.lost_record("two").as_deref(),
            Some("bound"),
            "an edit made it newer"
        );
        state.record_restored("two");
    }
    goes_back("one");
    state.version_seen("one", Some(9), None);
    state.storage_put_back();
    assert_eq!(state.lost_record("one").as_deref(), Some("bound"));
    state.wrote_version("one", Some(4));
    assert_eq!(
        state.lost_record("one").as_deref(),
        Some("bound"),
        "something else was written"
    );
    state.record_restored("one");
    assert_eq!(state.lost_record("one"), None);
}

#[test]
fn a_branch_has_one_create_at_a_time_until_it_is_resolved() {
    let state = State::default();
    let step = state.begin_step("one");
    assert!(begin(&state, "one"));
    assert!(!begin(&state, "two"));
    assert!(reserve(
        &state,
        "three",
        place("a", "br-2"),
        Evidence::ByBaseline
    ));
    assert!(
        reserve(&state, "four", place("b", "br-1"), Evidence::ByBaseline),
        "another platform"
    );
    assert!(!resolved(&state, "one"), "it is running");
    drop(step);
    assert!(!begin(&state, "two"), "it is not resolved");
    let first = (
        Holder {
            namespace: "shop".into(),
            name: "one".into(),
        },
        Evidence::ByBaseline,
    );
    assert_eq!(
        state.reserved_by_others("two", &place("a", "br-1")),
        [first]
    );
    assert_eq!(state.reserved_by_others("one", &place("a", "br-1")), []);
    let step = state.begin_step("one");
    assert!(begin(&state, "one"), "its own turn");
    drop(step);
    assert!(resolved(&state, "one"));
    assert!(!resolved(&state, "one"));
    assert!(begin(&state, "two"));
}

#[test]
fn creates_that_are_told_by_their_marks_share_a_turn() {
    let state = State::default();
    let begin = |uid: &str, evidence| reserve(&state, uid, place("a", "br-1"), evidence);
    let step = state.begin_step("one");
    assert!(begin("one", Evidence::ByMark));
    assert!(begin("two", Evidence::ByMark));
    assert!(!begin("three", Evidence::ByBaseline));
    drop(step);
    assert!(resolved(&state, "one"));
    state.forget("two");
    assert!(begin("three", Evidence::ByBaseline));
    assert!(!begin("one", Evidence::ByMark));
}

#[test]
fn after_its_finalizer_is_removed_no_older_version_is_decided_on_until_it_is_gone() {
    let state = State::default();
    let step = state.begin_step("one");
    assert!(begin(&state, "one"));
    state.wrote_version("one", Some(8));
    state.released("one", Some(8));
    drop(step);
    assert!(
        state.is_outdated("one", Some(8)),
        "the API server answers with the version from before"
    );
    assert!(
        !state.is_outdated("one", Some(9)),
        "somebody else's finalizer holds it"
    );
    assert_eq!(state.reserved_by_others("any", &place("a", "br-1")), []);
    state.forget("one");
    assert!(state.contents().resources.is_empty());
    // The watch was faster than the answer.
    let step = state.begin_step("two");
    state.wrote_version("two", Some(8));
    state.forget("two");
    state.released("two", Some(8));
    drop(step);
    assert!(state.contents().resources.is_empty());
}

#[test]
fn a_resource_that_is_deleted_keeps_nobody_waiting() {
    let state = State::default();
    let step = state.begin_step("one");
    assert!(begin(&state, "one"));
    drop(step);
    state.forget("one");
    assert_eq!(state.reserved_by_others("any", &place("a", "br-1")), []);
    // Deleted while its create waits for its place in the budget.
    let step = state.begin_step("two");
    assert!(begin(&state, "two"));
    state.forget("two");
    assert!(!begin(&state, "one"), "it is running");
    drop(step);
    assert!(begin(&state, "one"));
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
        let find = |child: &str| {
            let (_, version, deleting) = seen.iter().find(|(uid, ..)| *uid == child)?;
            Some((Some(*version), *deleting))
        };
        state
            .children_seen("set", find)
            .into_keys()
            .collect::<Vec<_>>()
    };
    for (child, done) in done {
        state.child_written("set", child, done);
    }
    assert_eq!(left(&[("b", 7, false), ("c", 9, false)]), ["a", "b", "c"]);
    assert_eq!(
        left(&[("a", 5, false), ("b", 8, false), ("c", 9, false)]),
        ["c"]
    );
    assert_eq!(left(&[("c", 10, true)]), [""; 0]);
    state.child_written("set", "b", Done::Changed(Some(9)));
    assert_eq!(left(&[]), [""; 0], "what the watch showed before is gone");
    state.child_written("set", "a", Done::Created("reads-0".to_owned()));
    state.child_gone("set", "a");
    assert_eq!(left(&[]), [""; 0]);
}

#[test]
fn who_waits_is_counted_by_kind_and_reason() {
    let state = State::default();
    let (paused, protected) = (Reason::DeletionPaused, Reason::DeletionProtected);
    for (uid, kind) in [
        ("one", "Compute"),
        ("one", "Compute"),
        ("two", "Compute"),
        ("key", "ProjectKey"),
    ] {
        state.waits(uid, kind, Some(paused));
    }
    assert_eq!(state.waiting("Compute"), [(paused, 2)].into());
    assert_eq!(state.waiting("ProjectKey"), [(paused, 1)].into());
    state.waits("two", "Compute", Some(protected));
    assert_eq!(
        state.waiting("Compute"),
        [(paused, 1), (protected, 1)].into()
    );
    state.waits("two", "Compute", None);
    state.forget("one");
    assert_eq!(
        state.waiting("Compute"),
        [(paused, 0), (protected, 0)].into(),
        "who is gone does not wait"
    );
}

#[test]
fn a_key_in_memory_is_not_in_debug() {
    let key = KeyIdentity {
        id: 1,
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
        "uid",
        UnsavedKey {
            key,
            intent,
            secret,
            trial: None,
            namespace: "shop".to_owned(),
            name: "ci".to_owned(),
        },
    );
    let text = format!("{state:?} {state:#?} {:?}", state.unsaved_key("uid"));
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
    state.step_failed("one", (Action::Change, fault()), 3, Timestamp::UNIX_EPOCH);
    state.revocation_not_offered("one", Timestamp::UNIX_EPOCH);
    let waits = || {
        state
            .resource("one")
            .memory
            .backoff(Action::Change, 3, Timestamp::UNIX_EPOCH)
            .is_some()
    };
    assert!(waits());
    assert!(state.reconcile_requested("one", "a"));
    assert!(!state.reconcile_requested("one", "a"));
    assert!(state.reconcile_requested("one", "b"));
    state.invalidate("one", Tick::at(5));
    let known = state.resource("one");
    let tick = Some(Tick::at(5));
    assert_eq!(
        (known.wrote_at(), known.key.anew, known.key.not_offered),
        (tick, tick, None)
    );
    assert_eq!(known.key.probe, Some(Probe::WANTED));
    assert!(!waits(), "what was refused is tried again");
}
