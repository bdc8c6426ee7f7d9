//! The brake on mass deletion, under random deletions in several namespaces and accounts. A refused
//! deletion is retried at the time that the refusal names.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane::api::MassDeletionPolicy;
use dbplane::decide::brake::{
    DeletionRefusal, DeletionRequest, DeletionWindow, PER_ACCOUNT, Rules, SPACING,
};
use jiff::Timestamp;
use proptest::prelude::*;

/// Deletion of one resource.
#[derive(Clone, Copy, Debug)]
struct Deletion {
    second: u8,
    account: u8,
    namespace: u8,
    /// Its compute is orphaned before the deletion gets its turn.
    orphaned: bool,
}

fn deletions() -> impl Strategy<Value = Vec<Deletion>> {
    let one = (
        0..90_u8,
        0..2_u8,
        prop_oneof![3 => 0..2_u8, 1 => 0..12_u8],
        prop::bool::weighted(0.1),
    );
    let one = one.prop_map(|(second, account, namespace, orphaned)| Deletion {
        second,
        account,
        namespace,
        orphaned,
    });
    prop::collection::vec(one, 0..150)
}

/// Deletions that were made or paused, by number.
#[derive(Debug, Default)]
struct Outcome {
    made: BTreeMap<usize, i64>,
    paused: BTreeMap<usize, (i64, DeletionRefusal)>,
}

impl Outcome {
    fn of(deletions: &[Deletion], limit: u32) -> Self {
        let (mut window, mut outcome) = (DeletionWindow::default(), Self::default());
        let mut ask: BTreeMap<usize, i64> = deletions
            .iter()
            .map(|deletion| deletion.second.into())
            .enumerate()
            .collect();
        for now in 0..2000 {
            for number in 0..deletions.len() {
                if ask.get(&number) != Some(&now) {
                    continue;
                }
                let Deletion {
                    account,
                    namespace,
                    orphaned,
                    ..
                } = deletions[number];
                let (account, namespace) = (
                    format!("account-{account}"),
                    format!("namespace-{namespace}"),
                );
                let of_pair =
                    |other: &usize| (deletions[*other].account, deletions[*other].namespace);
                let others_wait = outcome
                    .paused
                    .keys()
                    .any(|other| of_pair(other) == of_pair(&number));
                let (target, rules) = (
                    format!("ep-{number}"),
                    Rules {
                        limit,
                        policy: MassDeletionPolicy::Slow,
                        others_wait,
                    },
                );
                let asked = DeletionRequest {
                    account: &account,
                    namespace: &namespace,
                    target: &target,
                    uid: &target,
                };
                match window.admit(&asked, &rules, Timestamp::from_second(now).unwrap()) {
                    Ok(()) => drop(outcome.made.insert(number, now)),
                    Err(DeletionRefusal::Slowed { .. }) if orphaned => {
                        window.leave(&target);
                        ask.remove(&number);
                    }
                    Err(DeletionRefusal::Slowed { ask: next, .. }) => {
                        ask.insert(number, next.as_second().max(now + 1));
                    }
                    Err(refusal) => drop(outcome.paused.insert(number, (now, refusal))),
                }
            }
        }
        outcome
    }
}

/// The largest number of these times within any minute.
fn most(times: impl Iterator<Item = i64> + Clone) -> usize {
    times
        .clone()
        .map(|from| {
            times
                .clone()
                .filter(|at| (from..from + 60).contains(at))
                .count()
        })
        .max()
        .unwrap_or_default()
}

proptest! {
    #![proptest_config(super::config(300))]

    #[test]
    fn a_namespace_is_paused_by_its_own_deletions_alone_and_every_deletion_has_its_turn(
        deletions in deletions(), limit in prop_oneof![Just(2_u32), Just(5), Just(30)],
    ) {
        let outcome = Outcome::of(&deletions, limit);
        let limit = limit as usize;
        for account in 0..2 {
            let of_account = |namespace: Option<u8>| {
                let concerned = move |it: &Deletion| it.account == account && namespace.is_none_or(|this| this == it.namespace);
                deletions.iter().enumerate().filter(move |(_, it)| concerned(it)).map(|(number, _)| number)
            };
            let made = of_account(None).filter_map(|number| outcome.made.get(&number).copied());
            let slowly = usize::try_from(60 / SPACING.as_secs()).unwrap();
            prop_assert!(most(made.clone()) <= limit * PER_ACCOUNT + slowly);
            for namespace in 0..12 {
                let own: Vec<usize> = of_account(Some(namespace)).collect();
                let made = own.iter().filter_map(|number| outcome.made.get(number).copied());
                prop_assert!(most(made) <= limit, "namespace {namespace} deletes more than its limit");
                let paused = own.iter().filter(|number| outcome.paused.contains_key(number)).count();
                prop_assert!(own.len() > limit || paused == 0, "namespace {namespace} is paused by others: {outcome:?}");
            }
        }
        for (number, deletion) in deletions.iter().enumerate() {
            let ended = outcome.made.contains_key(&number) || outcome.paused.contains_key(&number);
            prop_assert!(ended || deletion.orphaned, "{number} waits for ever: {deletion:?}");
        }
    }
}

#[test]
fn a_single_deletion_waits_no_longer_than_a_turn_for_each_namespace() {
    for namespaces in [4, 10, 30_u8] {
        let of = |namespace| Deletion {
            second: 0,
            account: 0,
            namespace,
            orphaned: false,
        };
        let mut deletions: Vec<Deletion> = (0..namespaces)
            .flat_map(|namespace| vec![of(namespace); 40])
            .collect();
        deletions.push(Deletion {
            second: 1,
            ..of(namespaces)
        });
        let outcome = Outcome::of(&deletions, 30);
        let waited = outcome.made[&(deletions.len() - 1)];
        let longest = SPACING * (u32::from(namespaces) + 2);
        assert!(
            Duration::from_secs(waited.unsigned_abs()) <= longest,
            "{waited} s behind {namespaces} namespaces"
        );
    }
}
