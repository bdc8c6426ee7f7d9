//! Tests of the rate of deletions, by account and namespace.

use super::*;
use crate::decide::brake::DeletionRefusal;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Deletions through one account, each of another resource.
#[derive(Default)]
struct DeletionDesk(DeletionWindow);

impl DeletionDesk {
    fn ask_as(
        &mut self,
        rules: Rules,
        account: &str,
        deletion: (&str, &str),
        now: i64,
    ) -> Result<(), DeletionRefusal> {
        let (namespace, target) = deletion;
        let uid = format!("{namespace}/{target}");
        self.0.admit(
            &DeletionRequest {
                account,
                namespace,
                target,
                uid: &uid,
            },
            &rules,
            at(now),
        )
    }

    fn ask(&mut self, limit: u32, deletion: (&str, &str), now: i64) -> Result<(), DeletionRefusal> {
        self.ask_as(slow(limit), "prod", deletion, now)
    }

    /// Makes as many deletions at once as an account allows with this limit.
    fn full(limit: u32) -> Self {
        let mut desk = Self::default();
        for number in 0..limit {
            for namespace in ["n1", "n2", "n3", "n4"] {
                assert_eq!(
                    desk.ask(limit, (namespace, &format!("ep-{number}")), 0),
                    Ok(())
                );
            }
        }
        desk
    }
}

fn slow(limit: u32) -> Rules {
    Rules {
        limit,
        policy: MassDeletionPolicy::Slow,
        others_wait: false,
    }
}

fn turn(refused: Result<(), DeletionRefusal>) -> i64 {
    match refused {
        Err(DeletionRefusal::Slowed { turn, .. }) => turn.as_second(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_minute_takes_as_many_as_are_allowed() {
    let mut desk = DeletionDesk::default();
    for (target, now, expected) in [
        ("ep-1", 0, Ok(())),
        ("ep-2", 30, Ok(())),
        ("ep-3", 59, Err(DeletionRefusal::Full(2))),
        // The first one is a minute ago.
        ("ep-3", 60, Ok(())),
        ("ep-4", 89, Err(DeletionRefusal::Full(2))),
        ("ep-4", 90, Ok(())),
    ] {
        assert_eq!(
            desk.ask(2, ("shop", target), now),
            expected,
            "{target} at {now}"
        );
    }
}

#[test]
fn each_account_and_namespace_has_a_limit_of_its_own() {
    let mut desk = DeletionDesk::default();
    for (account, namespace, target, expected) in [
        ("prod", "shop", "ep-1", Ok(())),
        ("prod", "shop", "ep-2", Err(DeletionRefusal::Full(1))),
        ("prod", "bank", "ep-3", Ok(())),
        ("prod", "bank", "ep-4", Err(DeletionRefusal::Full(1))),
        ("test", "shop", "ep-5", Ok(())),
        ("test", "shop", "ep-6", Err(DeletionRefusal::Full(1))),
        // A deletion of another namespace is no retry of this one.
        ("prod", "shop", "ep-3", Err(DeletionRefusal::Full(1))),
    ] {
        assert_eq!(
            desk.ask_as(slow(1), account, (namespace, target), 1),
            expected,
            "{account} {namespace} {target}"
        );
    }
}

#[test]
fn what_is_tried_again_counts_once() {
    let mut desk = DeletionDesk::default();
    for second in 0..20 {
        assert_eq!(desk.ask(2, ("shop", "ep-1"), second), Ok(()));
    }
    assert_eq!(desk.ask(2, ("shop", "ep-2"), 20), Ok(()));
    let others_wait = Rules {
        others_wait: true,
        ..slow(2)
    };
    assert_eq!(
        desk.ask_as(others_wait, "prod", ("shop", "ep-1"), 21),
        Ok(()),
        "it was admitted before the others"
    );
    assert_eq!(
        desk.ask(2, ("shop", "ep-3"), 22),
        Err(DeletionRefusal::Full(2))
    );
}

#[test]
fn while_others_of_the_namespace_wait_so_does_the_next() {
    let mut desk = DeletionDesk::default();
    let others_wait = Rules {
        others_wait: true,
        ..slow(2)
    };
    assert_eq!(
        desk.ask_as(others_wait, "prod", ("shop", "ep-1"), 0),
        Err(DeletionRefusal::OthersWait)
    );
    assert_eq!(desk.ask(2, ("shop", "ep-1"), 1), Ok(()));
}

#[test]
fn a_pass_that_began_earlier_does_not_forget_one_that_was_admitted_before_it() {
    let mut desk = DeletionDesk::default();
    assert_eq!(desk.ask(1, ("shop", "ep-1"), 10), Ok(()));
    assert_eq!(
        desk.ask(1, ("shop", "ep-2"), 9),
        Err(DeletionRefusal::Full(1))
    );
}

#[test]
fn a_clock_that_is_put_back_delays_nothing_for_long() {
    let mut desk = DeletionDesk::default();
    assert_eq!(desk.ask(1, ("shop", "ep-1"), 7200), Ok(()));
    assert_eq!(desk.ask(1, ("shop", "ep-2"), 3600), Ok(()));
    assert_eq!(
        desk.ask(1, ("shop", "ep-3"), 3540),
        Ok(()),
        "a whole minute"
    );
    assert_eq!(
        desk.ask(1, ("shop", "ep-4"), 3481),
        Err(DeletionRefusal::Full(1))
    );

    let mut desk = DeletionDesk::default();
    for namespace in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        let _ = desk.ask(1, (namespace, "ep"), 7200);
    }
    for namespace in ["n1", "n2", "n3", "n4"] {
        assert_eq!(
            desk.ask(1, (namespace, "later"), 3600),
            Ok(()),
            "{namespace}"
        );
    }
    assert_eq!(turn(desk.ask(1, ("n7", "ep"), 3601)), 3603);
}

#[test]
fn a_namespace_is_never_paused_by_others_and_waits_its_turn() {
    let mut desk = DeletionDesk::default();
    // Twenty namespaces delete everything through one account.
    let namespaces: Vec<String> = (0..20).map(|number| format!("evil-{number:02}")).collect();
    let mut made = 0;
    for namespace in &namespaces {
        for number in 0..40 {
            made += usize::from(
                desk.ask(30, (namespace, &format!("ep-{number}")), 0)
                    .is_ok(),
            );
        }
    }
    assert_eq!(made, 30 * PER_ACCOUNT);
    let single = desk.ask(30, ("shop", "ep"), 1);
    let turn = turn(single);
    assert!((2..=2 + 16 * 2).contains(&turn), "{turn}");
}

#[test]
fn beyond_the_limit_of_the_account_one_is_made_every_two_seconds_each_namespace_in_turn() {
    let mut desk = DeletionDesk::full(10);
    let mut waiting: BTreeMap<(&str, String), i64> = BTreeMap::new();
    for (namespace, count) in [("a", 4), ("b", 1), ("c", 2)] {
        for number in 0..count {
            waiting.insert((namespace, format!("ep-{number}")), 1);
        }
    }
    let mut order = Vec::new();
    for now in 1..30 {
        for ((namespace, target), ask) in &mut waiting {
            if *ask != now {
                continue;
            }
            match desk.ask(10, (namespace, target), now) {
                Ok(()) => order.push((now, *namespace)),
                Err(DeletionRefusal::Slowed { ask: next, .. }) => *ask = next.as_second(),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(
        order,
        [
            (3, "a"),
            (5, "b"),
            (7, "c"),
            (9, "a"),
            (11, "c"),
            (13, "a"),
            (15, "a")
        ]
    );
}

#[test]
fn a_turn_that_nobody_takes_is_lost_after_a_while() {
    let mut desk = DeletionDesk::full(9);
    assert_eq!(turn(desk.ask(9, ("a", "one"), 1)), 3);
    assert_eq!(turn(desk.ask(9, ("a", "two"), 1)), 5);
    assert_eq!(
        turn(desk.ask(9, ("a", "two"), 13)),
        15,
        "the one before it may still come"
    );
    assert_eq!(desk.ask(9, ("a", "two"), 15), Ok(()));
}

#[test]
fn a_resource_that_is_gone_leaves_its_turn_to_the_next() {
    let mut desk = DeletionDesk::full(9);
    assert_eq!(turn(desk.ask(9, ("a", "one"), 1)), 3);
    assert_eq!(turn(desk.ask(9, ("b", "two"), 1)), 5);
    assert_eq!(turn(desk.ask(9, ("a", "three"), 1)), 7);
    desk.0.leave("b/two");
    assert_eq!(turn(desk.ask(9, ("a", "three"), 2)), 5);
    desk.0.leave("a/one");
    assert_eq!(desk.ask(9, ("a", "three"), 3), Ok(()));
}

#[test]
fn what_waits_long_asks_again_every_minute() {
    let mut desk = DeletionDesk::full(100);
    for number in 0..100 {
        let _ = desk.ask(100, ("a", &format!("ep-{number}")), 0);
    }
    assert_eq!(
        turn(desk.ask(100, ("b", "ep"), 0)),
        4,
        "another namespace has the next turn"
    );
    let Err(DeletionRefusal::Slowed { turn, ask }) = desk.ask(100, ("a", "ep-99"), 0) else {
        panic!("it does not wait")
    };
    assert_eq!((turn, ask), (at(202), at(60)));
}

#[test]
fn what_waits_its_turn_counts_for_its_namespace_and_is_not_paused_later() {
    let mut desk = DeletionDesk::full(2);
    assert_eq!(turn(desk.ask(2, ("a", "one"), 1)), 3);
    assert_eq!(turn(desk.ask(2, ("a", "two"), 1)), 5);
    assert_eq!(
        desk.ask(2, ("a", "three"), 1),
        Err(DeletionRefusal::Full(2)),
        "a whole namespace does not trickle away"
    );
    assert_eq!(desk.ask(2, ("a", "one"), 3), Ok(()));
    assert_eq!(turn(desk.ask(2, ("a", "two"), 4)), 5);
    assert_eq!(desk.ask(2, ("a", "two"), 5), Ok(()));
}

#[test]
fn the_administrator_can_have_deletions_paused_beyond_the_limit_of_the_account() {
    let mut desk = DeletionDesk::full(1);
    let pause = Rules {
        policy: MassDeletionPolicy::Pause,
        ..slow(1)
    };
    assert_eq!(
        desk.ask_as(pause, "prod", ("n5", "ep"), 1),
        Err(DeletionRefusal::AccountFull(4))
    );
    assert_eq!(
        desk.ask_as(pause, "test", ("n5", "ep"), 1),
        Ok(()),
        "another account"
    );
    assert_eq!(desk.ask_as(pause, "prod", ("n5", "ep"), 60), Ok(()));
}

#[test]
fn who_does_not_wait_leaves_nothing_behind() {
    let mut desk = DeletionDesk::full(9);
    for target in ["one", "two", "three"] {
        let _ = desk.ask(9, ("a", target), 1);
    }
    assert_eq!(desk.ask_as(slow(9), "test", ("a", "ep"), 100), Ok(()));
    let left = format!("{:?}", desk.0);
    assert!(!left.contains("two") && !left.contains("prod"), "{left}");
}
