//! Whatever people do and whatever fails meanwhile: the promises hold.
//!
//! Histories are made up: which resources there are, what people do with them, which of the operator's calls fail and how. The
//! shipped decisions and the shipped steps run against the simulator's world and a cluster in memory, with a clock of their
//! own. A history that breaks a promise is shrunk, and its seed kept in `main.regressions`.

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
mod known;
mod listing;
mod organization;
mod planned;
mod process;
mod promises;
mod recorded;
mod rewriting;
mod role;
mod rotating;
mod run;
mod sets;
mod simulation;
mod snares;
mod steps;
mod tenant;
mod told;
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

/// The same histories each time, so that a change is judged by what it changes. `PROPTEST_CASES` asks for so many new ones.
fn config(cases: u32) -> ProptestConfig {
    let persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as Box<_>);
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig { failure_persistence: persistence, ..ProptestConfig::default() },
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
fn histories_that_once_did_not_end_well_end_well() {
    for (what, history) in known::histories() {
        run::check(&history).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// One compute, and nothing but faults.
    #[test]
    fn one_compute_is_created_once(profile in profile(), account in account(), computes in computes(1), faults in faults()) {
        holds(&History { profile, computes, key: false, chapters: Vec::new(), faults, account, deletes_per_minute: 30 })?;
    }

    /// One key, and nothing but faults.
    #[test]
    fn one_key_is_created_and_kept(profile in profile(), account in account(), faults in faults()) {
        holds(&History { profile, computes: Vec::new(), key: true, chapters: Vec::new(), faults, account, deletes_per_minute: 30 })?;
    }

    /// Requests that arrive when nobody reckons with them any more bring forth what is reported, and nothing else.
    #[test]
    fn what_comes_late_is_reported(profile in profile(), account in account(), computes in computes(1..=2), chapters in chapters(event(Subject::Computes)), faults in late_faults()) {
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute: 30 })?;
    }

    /// Several computes, and what people do with them.
    #[test]
    fn computes_survive_what_people_do(profile in profile(), account in account(), deletes_per_minute in deletes_per_minute(), computes in computes(1..=3), chapters in chapters(event(Subject::Computes)), faults in faults()) {
        holds(&History { profile, computes, key: false, chapters, faults, account, deletes_per_minute })?;
    }

    /// A password that comes, changes and goes, and what people do with the compute meanwhile.
    #[test]
    fn no_former_password_stays_in_a_connection_secret(profile in profile(), account in account(), computes in computes(1), more in chapters(event(Subject::Computes)), last in role_at_last(), faults in faults()) {
        let chapters = more.into_iter().take(2).chain(last).collect();
        holds(&History { profile, computes, key: false, chapters, faults, account, deletes_per_minute: 30 })?;
    }

    /// Another tenant of the same ClusterAccount writes into its own namespace whatever might make it believed.
    #[test]
    fn a_hostile_tenant_changes_nothing_of_others(profile in profile(), deletes_per_minute in deletes_per_minute(), computes in computes(1..=2), chapters in chapters(tenant::event()), faults in faults()) {
        let account = history::Access::ClusterAccount;
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute })?;
    }

    /// The same with its ProjectKeys and its Secrets.
    #[test]
    fn a_hostile_tenant_changes_no_key_of_others(profile in profile(), deletes_per_minute in deletes_per_minute(), computes in computes(0..=1), chapters in chapters(tenant::key_event()), faults in faults()) {
        let account = history::Access::ClusterAccount;
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute })?;
    }

    /// A key, and what people do with it.
    #[test]
    fn a_key_survives_what_people_do(profile in profile(), account in account(), chapters in chapters(event(Subject::Key)), faults in faults()) {
        holds(&History { profile, computes: Vec::new(), key: true, chapters, faults, account, deletes_per_minute: 30 })?;
    }
}
