//! Wishes: records that the status does not have. They come from a backup, or from somebody who
//! wants another resource's compute.

use super::*;
use crate::decide::memory::ExistenceAnswer;

const PLATFORM: &str = "https://platform.example/api/v2";
/// The name that this cluster gives a compute of the resource.
const MARK: &str = "orders-c1u57e-3pk3zawwrdgc0-00000001";

/// A resource without a record in its status.
fn wishing(wish: ComputeIdentity) -> GivenCompute {
    let platform = Some(PLATFORM.to_owned());
    GivenCompute::new().observing(|seen| (seen.wish, seen.platform) = (Some(wish), platform))
}

fn binding(id: &str) -> Binding {
    let (project, platform, branch) =
        ("p-1".into(), Some(PLATFORM.to_owned()), Some(BRANCH.into()));
    Binding {
        id: id.into(),
        project,
        platform,
        branch,
        origin: Origin::Created,
        at: at(-3600),
    }
}

fn bound_to(binding: Binding) -> GivenCompute {
    wishing(ComputeIdentity {
        binding: Some(binding),
        ..ComputeIdentity::default()
    })
}

/// An open create with an empty baseline: any compute on the branch would be new.
fn create(mark: Option<&str>) -> CreateIntent {
    CreateIntent {
        at: at(-10),
        branch: BRANCH.into(),
        platform: Some(PLATFORM.to_owned()),
        baseline: Some(BTreeSet::new()),
        newest: None,
        mark: mark.map(str::to_owned),
        asked: Some(Settings::default()),
    }
}

/// The two places of a create in a wish: the intent, or the unanswered creates.
fn creating(create: &CreateIntent) -> [GivenCompute; 2] {
    let intent = ComputeIdentity {
        intent: Some(create.clone()),
        ..ComputeIdentity::default()
    };
    let unanswered = ComputeIdentity {
        unanswered: vec![create.clone()],
        ..ComputeIdentity::default()
    };
    [intent, unanswered].map(wishing)
}

fn deleted(given: GivenCompute) -> GivenCompute {
    given.observing(|observed| (observed.meta.deleting, observed.meta.has_finalizer) = (true, true))
}

fn named(id: &str, name: &str) -> Compute {
    with(compute(id), |compute| compute.name = Some(name.into()))
}

#[test]
fn a_restored_resource_finds_its_compute_again_and_does_not_restart_it() {
    let calling = Some(crate::decide::identity::BeforeRestart::default());
    let restart = RestartRecord {
        token: "one".into(),
        at: at(-60),
        calling,
        ..RestartRecord::default()
    };
    let identity = ComputeIdentity {
        binding: Some(binding("ep-1")),
        restart: Some(restart),
        ..ComputeIdentity::default()
    };
    let given = wishing(identity)
        .declaring(json!({"restartToken": "two"}))
        .seeing([compute("ep-1"), compute("ep-0")]);
    for given in [given.clone(), deleted(given)] {
        let ComputeStep::Bind {
            binding: found,
            restart,
            unanswered,
            made,
            restored,
        } = given.step()
        else {
            panic!("{:?}", given.step())
        };
        assert_eq!(made, vec![]);
        assert_eq!(
            (found, unanswered, restored),
            (
                Binding {
                    at: NOW,
                    ..binding("ep-1")
                },
                Vec::new(),
                true
            )
        );
        assert_eq!(
            (restart.token.as_str(), restart.calling, restart.noted),
            ("two", None, true)
        );
    }
}

#[test]
fn it_is_bound_as_it_was_as_far_as_its_spec_says_so() {
    for (management, before, after) in [
        ("Full", Origin::Adopted, Origin::Adopted),
        ("Full", Origin::Imported, Origin::Imported),
        ("Full", Origin::Observed, Origin::Imported),
        ("Observe", Origin::Created, Origin::Observed),
    ] {
        let given = bound_to(Binding {
            origin: before,
            ..binding("ep-1")
        })
        .seeing([compute("ep-1")]);
        match given.declaring(json!({"management": management})).step() {
            ComputeStep::Bind { binding, .. } => assert_eq!(binding.origin, after),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_another_resource_has_is_neither_taken_nor_deleted() {
    for first in [true, false] {
        let given = bound_to(binding("ep-1"))
            .seeing([compute("ep-1")])
            .claimed("ep-1", first);
        given.rest().stalled(Reason::ClaimedByAnother, &["ep-1"]);
        assert_eq!(deleted(given).step(), ComputeStep::RemoveFinalizer);
    }
}

#[test]
fn another_project_or_platform_than_the_spec_names_is_a_conflict_and_nothing_is_deleted_there() {
    let project = Binding {
        project: "p-2".into(),
        ..binding("ep-1")
    };
    let platform = Binding {
        platform: Some("https://other.example".into()),
        ..binding("ep-1")
    };
    for (wish, word) in [(project, "p-2"), (platform, "https://other.example")] {
        for seen in [vec![], vec![compute("ep-1")]] {
            let given = bound_to(wish.clone()).seeing(seen);
            let forget = "kubectl -n shop annotate compute orders dbplane.dev/record-";
            given
                .rest()
                .stalled(Reason::BindingConflict, &["ep-1", word, forget]);
            assert_eq!(deleted(given.clone()).step(), ComputeStep::RemoveFinalizer);
            let named = given
                .declaring(json!({"computeID": "ep-2"}))
                .seeing([compute("ep-2")]);
            match named.step() {
                ComputeStep::Bind { binding, .. } => {
                    assert_eq!(binding.id, "ep-2", "the spec counts")
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_compute_of_the_other_type_is_refused() {
    let given = bound_to(binding("ep-1")).seeing([replica("ep-1")]);
    given
        .rest()
        .stalled(Reason::BindingConflict, &["ep-1", "read replica"]);
}

#[test]
fn one_list_without_the_compute_proves_nothing() {
    let given = bound_to(binding("ep-1"));
    let reported = given.rest();
    reported.unknown(Reason::ComputeNotFound);
    reported.until(at(60));
    let missing = given
        .remembering(|memory| memory.missing_since = Some(NOW))
        .after(60);
    assert_eq!(missing.step(), ComputeStep::Ask { id: "ep-1".into() });
    let asked = |exists| Some(ExistenceAnswer { at: at(60), exists });
    missing
        .clone()
        .remembering(|memory| memory.asked = asked(true))
        .rest()
        .unknown(Reason::ComputeNotFound);
    let gone = missing.remembering(|memory| memory.asked = asked(false));
    assert!(
        matches!(gone.step(), ComputeStep::Create { .. }),
        "it goes on as a new one"
    );

    let given = deleted(bound_to(binding("ep-1")));
    assert_eq!(given.step(), ComputeStep::Ask { id: "ep-1".into() });
    let asked = |exists| {
        given
            .clone()
            .remembering(|memory| memory.asked = Some(ExistenceAnswer { at: NOW, exists }))
    };
    asked(true).rest().unknown(Reason::ComputeNotFound);
    assert_eq!(asked(false).step(), ComputeStep::RemoveFinalizer);
}

#[test]
fn a_deletion_waits_until_the_account_shows_whether_there_is_something_to_delete() {
    let given = |account| {
        deleted(bound_to(binding("ep-1"))).observing(|observed| observed.account = account)
    };
    let missing = given(AccountView::Missing {
        name: "Account prod".into(),
    });
    missing
        .rest()
        .stalled(Reason::AccountNotFound, &["Account prod", "Orphan"]);
    assert_eq!(
        missing.declaring(json!({"deletion": "Orphan"})).step(),
        ComputeStep::RemoveFinalizer
    );
    let failed = deleted(bound_to(binding("ep-1")))
        .observing(|seen| seen.snapshot = SnapshotState::Failed(lost()));
    failed.rest().unknown(Reason::PlatformUnreachable);
}

#[test]
fn a_create_that_is_wished_for_binds_and_deletes_nothing_but_what_carries_a_mark_of_this_resource()
{
    let foreign = "orders-0ther0-3pk3zawwrdgc0-00000001";
    let another = "orders-c1u57e-3pk3zawwrdgc1-00000001";
    for (what, mark, seen, found) in [
        ("its mark", Some(MARK), named("ep-1", MARK), true),
        (
            "what is new, by a baseline that excludes nothing",
            None,
            compute("ep-1"),
            false,
        ),
        (
            "what is new and shows no mark",
            Some(MARK),
            compute("ep-1"),
            false,
        ),
        (
            "the mark of another cluster",
            Some(foreign),
            named("ep-1", foreign),
            false,
        ),
        (
            "the mark of another resource",
            Some(another),
            named("ep-1", another),
            false,
        ),
        (
            "a name that people gave",
            Some("orders"),
            named("ep-1", "orders"),
            false,
        ),
        (
            "another type",
            Some(MARK),
            with(named("ep-1", MARK), |it| it.role = Role::Replica),
            false,
        ),
    ] {
        for given in creating(&create(mark)) {
            binds_only_if(found, &given.seeing([seen.clone()]), what);
        }
    }
}

/// Now and after two hours, and while the resource is being deleted.
fn binds_only_if(found: bool, given: &GivenCompute, what: &str) {
    for given in [given.clone(), given.clone().after(7200)] {
        let given = given.observing(|seen| seen.name_support = NameSupport::Kept);
        for given in [given.clone(), deleted(given.clone())] {
            let binds = matches!(given.decide().step, Some(ComputeStep::Bind { .. }));
            assert_eq!(binds, found, "{what}: {:?}", given.decide());
        }
        if !found {
            assert_eq!(
                deleted(given).step(),
                ComputeStep::RemoveFinalizer,
                "{what}"
            );
        }
    }
}

#[test]
fn a_mark_of_this_resource_on_what_another_one_has_is_ignored() {
    for given in creating(&create(Some(MARK))) {
        let given = given.seeing([named("ep-1", MARK)]).claimed("ep-1", false);
        assert_eq!(given.decide().step, None);
        assert_eq!(deleted(given).step(), ComputeStep::RemoveFinalizer);
    }
}

#[test]
fn what_is_wished_for_waits_for_nothing_where_it_shows_nothing() {
    for given in creating(&create(Some(MARK))) {
        assert!(
            matches!(given.step(), ComputeStep::Create { .. }),
            "it is created anew"
        );
    }
    assert_eq!(
        deleted(wishing(ComputeIdentity::default())).step(),
        ComputeStep::RemoveFinalizer
    );
}
