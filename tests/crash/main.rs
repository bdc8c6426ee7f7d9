//! Kills the operator before and after every request of a creation, and loses every answer once. No
//! compute is created twice, and no key is lost. `make verify` tries more scenarios in more modes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod harness;
#[path = "../support/mod.rs"]
mod support;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use harness::{
    Compared, Extent, Lab, Plant, Tally, enumerate, planned, scenarios, single, violations_of,
};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;

const QUICK: [&str; 6] = [
    "create",
    "create-minimal",
    "create-two-minimal",
    "create-key",
    "create-key-minimal",
    "set-scale-up",
];

/// One test at a time: each fills the machine with operators.
static TURN: Mutex<()> = Mutex::const_new(());

async fn lab() -> (MutexGuard<'static, ()>, Arc<Lab>) {
    let turn = TURN.lock().await;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dbplane"));
    (turn, Lab::shared(program).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_created_twice_or_lost_wherever_the_operator_dies() {
    let (_turn, lab) = lab().await;
    let mut running = JoinSet::new();
    for scenario in scenarios()
        .into_iter()
        .filter(|scenario| QUICK.contains(&scenario.name))
    {
        let lab = lab.clone();
        running.spawn(async move { enumerate(lab, scenario, Extent::Quick).await });
    }
    let tallies = running.join_all().await;
    assert_eq!(tallies.len(), QUICK.len());
    for tally in &tallies {
        // Written to stderr directly, because the test harness shows captured output only for
        // failed tests.
        writeln!(
            std::io::stderr(),
            "{}: {} points tried, {} violations",
            tally.scenario,
            tally.tried,
            tally.violations.len()
        )
        .unwrap();
    }
    let violations: Vec<&String> = tallies.iter().flat_map(|tally| &tally.violations).collect();
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(
        tallies.iter().all(Tally::reached_most),
        "too many points were not reached: {tallies:?}"
    );
}

/// A rolling update with several changes in progress, a successor of a frozen or killed leader, and
/// two consecutive faults.
const FURTHER: [&str; 6] = [
    "busy-elected:rolled:9",
    "busy-elected:rolled:17",
    "create-key-elected:frozen:lease-1",
    "resize-elected:kill-after:1",
    "create:lost:8+kill-after:9",
    "create-key:kill-before:8+lost:14",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_created_twice_or_lost_after_a_takeover_or_two_faults() {
    let (_turn, lab) = lab().await;
    for tally in join_all(FURTHER.map(|point| single(lab.clone(), point))).await {
        let tally = tally.unwrap();
        assert!(tally.violations.is_empty() && tally.tried == 1, "{tally:?}");
    }
}

/// For every scenario: stop the operator, act, plan, and compare the plan with what the operator
/// does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_steps_are_performed() {
    let (_turn, lab) = lab().await;
    let (mut compared, mut broken) = (Vec::new(), Vec::new());
    for ended in join_all(
        scenarios()
            .into_iter()
            .map(|scenario| planned(lab.clone(), scenario)),
    )
    .await
    {
        match ended {
            Ok(one) => compared.push(one),
            Err(error) => broken.push(error.to_string()),
        }
    }
    compared.sort_by(|one, other| one.scenario.cmp(&other.scenario));
    let mut table = Vec::new();
    for Compared {
        scenario,
        planned,
        made,
        differences,
    } in &compared
    {
        let (planned, made, differences) = (planned.len(), made.len(), differences.len());
        writeln!(
            table,
            "{scenario}: {planned} planned, {made} made, {differences} differences"
        )
        .unwrap();
    }
    std::io::stderr().write_all(&table).unwrap();
    let differences: Vec<&String> = compared
        .iter()
        .flat_map(|one| &one.differences)
        .chain(&broken)
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(
        compared
            .iter()
            .filter(|one| !one.planned.is_empty())
            .count()
            >= 30
    );
}

/// Tests the checks: a correct state has no violations, and each broken promise is reported.
#[tokio::test]
async fn broken_promises_are_reported() {
    let planted: [(Plant, &[&str]); 8] = [
        (Plant::Nothing, &[""]),
        (
            Plant::ForgottenKey,
            &[
                "is valid and belongs to no resource",
                "keys created: 2 instead of 1",
            ],
        ),
        (
            Plant::SecondCompute,
            &["belongs to no resource", "computes created: 2 instead of 1"],
        ),
        (
            Plant::AdoptableChange,
            &["unasked: PATCH /projects/aged-wind-123456/endpoints/ep-waits-for-us-1"],
        ),
        (
            Plant::ForeignChange,
            &["unasked: PATCH", "foreign things changed"],
        ),
        (
            Plant::ForeignSecret,
            &["Secret unrelated, which is not ours, was changed"],
        ),
        (
            Plant::Token,
            &["a token of 41 characters is in the resources"],
        ),
        (
            Plant::RevokedKey,
            &["the key in Secret ci-key is answered with 401"],
        ),
    ];
    let (_turn, lab) = lab().await;
    let found = violations_of(lab, &planted.map(|(plant, _)| plant))
        .await
        .unwrap();
    assert_eq!(found[0], "");
    for ((plant, expected), found) in planted.iter().zip(&found) {
        assert!(
            expected.iter().all(|text| found.contains(text)),
            "{plant:?}: {found:?}"
        );
    }
}
