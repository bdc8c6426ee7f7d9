//! Tests: a new key is tried before it replaces a working one.

use super::*;
use crate::domain::Form;

/// Key 2 was created to replace key 1, and is in memory.
fn created_beside() -> GivenKey {
    let rotating = KeyIntent {
        rotates: true,
        retire_previous_at: Some(at(100)),
        ..intent(&key(2).name, 0)
    };
    GivenKey::in_use()
        .intent(rotating)
        .but(|_, seen| seen.unsaved = Some(key(2)))
}

fn told(given: GivenKey, probe: Probe) -> GivenKey {
    given.but(|_, seen| seen.unsaved_probe = probe)
}

fn out_of_sync(given: &GivenKey, second: i64) -> (Reason, String, Wake) {
    let (health, sync, wake) = given.reported(second);
    assert!(
        matches!(health, Health::Ready(..)),
        "the key before it works: {health:?}"
    );
    let Sync::OutOfSync(reason, text) = sync else {
        panic!("{sync:?}")
    };
    (reason, text, wake)
}

#[test]
fn a_new_key_is_saved_once_the_platform_accepts_it() {
    assert_eq!(created_beside().step(1), KeyStep::TryUnsaved);
    assert_eq!(
        told(created_beside(), Probe::Accepted(at(1))).step(1),
        KeyStep::SaveSecret
    );
}

#[test]
fn a_new_key_that_is_refused_for_a_minute_is_given_up_and_the_other_one_stays() {
    let once = told(created_beside(), Probe::NotAsked(None).refused(at(1)));
    let (reason, text, wake) = out_of_sync(&once, 1);
    assert_eq!((reason, wake), (Reason::NewKeyRefused, Wake::At(at(6))));
    assert!(
        text.contains(&key(1).name) && text.contains(&key(2).name),
        "{text}"
    );
    assert_eq!(once.step(6), KeyStep::TryUnsaved);
    // A platform may need time to accept a new key everywhere.
    let often = told(
        created_beside(),
        Probe::NotAsked(None).refused(at(1)).refused(at(56)),
    );
    assert_eq!(often.step(61), KeyStep::TryUnsaved);
    let long = told(
        created_beside(),
        Probe::NotAsked(None).refused(at(1)).refused(at(61)),
    );
    let KeyStep::GiveUpRefused {
        records: after,
        message,
    } = long.step(61)
    else {
        panic!()
    };
    let refused = LostKey {
        id: Some(KeyId(2)),
        because: LostBecause::Refused,
        ..lost(&key(2).name)
    };
    assert_eq!(
        after,
        KeyRecords {
            lost: vec![refused],
            ..records(1)
        }
    );
    assert!(message.contains("stays in use"), "{message}");
    // The refused key is revoked before another is created, and that is not soon.
    let listed = listed(61, &[(1, &key(1).name), (2, &key(2).name)]);
    let left = GivenKey::in_use()
        .records(after)
        .listing(listed)
        .but(|spec, _| spec.rotation = Some(rotation("1h", "0s")));
    let left = left.but(|_, seen| {
        seen.memory
            .failed(Action::TryKey, ActionProblem::NewKey(message), 1, at(3600))
    });
    assert!(revokes_key(&left.step(3600), 2));
    let revoked = left.records(records(1)).probe(Probe::Accepted(at(3600)));
    let (reason, _, wake) = out_of_sync(&revoked, 3601);
    assert_eq!((reason, wake), (Reason::NewKeyRefused, Wake::At(at(3630))));
    created(revoked.step(3630));
}

#[test]
fn a_platform_that_does_not_answer_is_asked_again_and_not_for_ever() {
    let silent = created_beside().failed(Action::TryKey, unanswered(), 1);
    let (reason, _, wake) = out_of_sync(&silent, 1);
    assert_eq!(
        (reason, wake),
        (Reason::PlatformUnreachable, Wake::At(at(2)))
    );
    assert_eq!(silent.step(2), KeyStep::TryUnsaved);
    // Its secret is only in memory, and nothing shows that it is refused.
    assert_eq!(silent.step(29), KeyStep::TryUnsaved);
    assert_eq!(silent.step(30), KeyStep::SaveSecret);
    // A refused key is never switched to.
    let refused = told(silent, Probe::NotAsked(None).refused(at(1)));
    assert!(matches!(refused.step(65), KeyStep::GiveUpRefused { .. }));
}

#[test]
fn what_the_platform_answers_to_a_new_key_says_whether_it_accepts_it() {
    let message = || "no".to_owned();
    let asked = |answer| tried(Probe::NotAsked(None), answer, at(9));
    assert_eq!(asked(Ok(())), Ok(Probe::Accepted(at(9))));
    for accepted in [
        refused(),
        Fault::NotFound { message: message() },
        Fault::Unsupported {
            status: 405,
            message: message(),
        },
        Fault::TooLarge { message: message() },
    ] {
        assert_eq!(
            asked(Err(accepted.clone())),
            Ok(Probe::Accepted(at(9))),
            "{accepted:?}"
        );
    }
    for unknown in [
        Fault::Gateway {
            status: 403,
            form: Form::Foreign,
            message: message(),
        },
        Fault::Undecodable {
            path: String::new(),
            message: message(),
        },
        Fault::KeyInDoubt { message: message() },
        unanswered(),
        Fault::Transport { message: message() },
        Fault::Server {
            status: 503,
            message: message(),
        },
        Fault::Throttled {
            status: 429,
            retry_after: None,
        },
        Fault::Busy {
            message: message(),
            retry_after: None,
        },
    ] {
        assert_eq!(asked(Err(unknown.clone())), Err(unknown));
    }
}

#[test]
fn a_refused_key_keeps_the_time_of_its_first_refusal() {
    let unauthorized = || {
        Err(Fault::Unauthorized {
            message: "no".to_owned(),
        })
    };
    let before = Probe::NotAsked(None);
    assert_eq!(
        tried(before, unauthorized(), at(9)),
        Ok(before.refused(at(9)))
    );
    let again = tried(before.refused(at(1)), unauthorized(), at(16)).unwrap();
    assert_eq!(
        again,
        Probe::Refused {
            at: at(16),
            since: at(1),
            was_accepted: false
        }
    );
}

#[test]
fn where_no_other_key_works_a_new_one_is_saved_at_once() {
    let revoked = KeyIntent {
        previous_revoked: true,
        ..intent(&key(2).name, 0)
    };
    for given in [
        created_beside().secret(KeySecretView::Ours(SecretContents::Altered)),
        created_beside().secret(KeySecretView::Ours(SecretContents::Nothing)),
        created_beside().secret(KeySecretView::Absent),
        created_beside().probe(Probe::Refused {
            at: at(0),
            since: at(0),
            was_accepted: true,
        }),
        created_beside().intent(revoked),
        created_beside().records(KeyRecords::default()),
        // It was already written, and is to be recorded.
        created_beside().with_key(2),
    ] {
        assert_eq!(
            given.step(1),
            KeyStep::SaveSecret,
            "{:?}",
            given.observed.secret
        );
    }
    let KeyStep::CreateKey { try_first, .. } = GivenKey::in_use()
        .secret(KeySecretView::Ours(SecretContents::Altered))
        .step(1)
    else {
        panic!()
    };
    assert!(!try_first);
}
