//! Property tests: the promises hold for random histories of user actions and faults.
//!
//! A history is random: it has resources, user actions, and calls of the operator that fail. The
//! shipped decisions and steps run against the simulator's world and a cluster in memory, with
//! their own clock. A history that breaks a promise is shrunk, and its seed is kept in
//! `main.regressions`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod accounts;
mod brake;
mod console;
mod deviations;
mod elsewhere;
mod faults;
mod history;
#[path = "../in_memory/mod.rs"]
mod in_memory;
mod injector;
mod known;
mod ledger;
mod listing;
mod mistakes;
mod organization;
mod planned;
mod process;
mod promises;
mod recorded;
mod reports;
mod rewriting;
mod role;
mod rotating;
mod run;
mod sets;
mod simulation;
mod steps;
mod tenant;
#[path = "../upgrade/mod.rs"]
mod upgrade;
mod waiting;
mod watching;
mod week;

use faults::{faults, late_faults};
use history::{History, Subject, account, chapters, computes, deletes_per_minute, event, profile};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed, TestCaseError};
use role::role_at_last;

/// Uses a fixed seed, so that results change only with the code. `PROPTEST_CASES` asks for that
/// many new histories.
fn config(cases: u32) -> ProptestConfig {
    let persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as Box<_>);
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig {
            failure_persistence: persistence,
            ..ProptestConfig::default()
        },
        None => ProptestConfig {
            cases,
            failure_persistence: persistence,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        },
    }
}

fn holds(history: &History) -> Result<(), TestCaseError> {
    run::check(history).map_err(TestCaseError::fail)
}

#[test]
fn histories_that_once_failed_hold() {
    for (what, history) in known::histories() {
        run::check(&history).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// One compute and faults, without user actions.
    #[test]
    fn one_compute_is_created_once(profile in profile(), account in account(), computes in computes(1), faults in faults()) {
        holds(&History { profile, computes, key: false, chapters: Vec::new(), faults, account, deletes_per_minute: 30 })?;
    }

    /// One key and faults, without user actions.
    #[test]
    fn one_key_is_created_and_kept(profile in profile(), account in account(), faults in faults()) {
        holds(&History { profile, computes: Vec::new(), key: true, chapters: Vec::new(), faults, account, deletes_per_minute: 30 })?;
    }

    /// Creates that arrive after the request timeout, or twice, leave nothing that is not reported.
    #[test]
    fn late_creates_are_reported(profile in profile(), account in account(), computes in computes(1..=2), chapters in chapters(event(Subject::Computes)), faults in late_faults()) {
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute: 30 })?;
    }

    /// Several computes, user actions and faults.
    #[test]
    fn computes_survive_what_people_do(profile in profile(), account in account(), deletes_per_minute in deletes_per_minute(), computes in computes(1..=3), chapters in chapters(event(Subject::Computes)), faults in faults()) {
        holds(&History { profile, computes, key: false, chapters, faults, account, deletes_per_minute })?;
    }

    /// A password is added, changed and removed while users change the compute.
    #[test]
    fn no_former_password_stays_in_a_connection_secret(profile in profile(), account in account(), computes in computes(1), more in chapters(event(Subject::Computes)), last in role_at_last(), faults in faults()) {
        let chapters = more.into_iter().take(2).chain(last).collect();
        holds(&History { profile, computes, key: false, chapters, faults, account, deletes_per_minute: 30 })?;
    }

    /// Another tenant of the same ClusterAccount forges records in its own namespace.
    #[test]
    fn a_hostile_tenant_changes_nothing_of_others(profile in profile(), deletes_per_minute in deletes_per_minute(), computes in computes(1..=2), chapters in chapters(tenant::event()), faults in faults()) {
        let account = history::Access::ClusterAccount;
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute })?;
    }

    /// The same with its ProjectKeys and Secrets.
    #[test]
    fn a_hostile_tenant_changes_no_key_of_others(profile in profile(), deletes_per_minute in deletes_per_minute(), computes in computes(0..=1), chapters in chapters(tenant::key_event()), faults in faults()) {
        let account = history::Access::ClusterAccount;
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute })?;
    }

    /// One key, user actions and faults.
    #[test]
    fn a_key_survives_what_people_do(profile in profile(), account in account(), chapters in chapters(event(Subject::Key)), faults in faults()) {
        holds(&History { profile, computes: Vec::new(), key: true, chapters, faults, account, deletes_per_minute: 30 })?;
    }
}
