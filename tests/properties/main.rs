//! Whatever people do and whatever fails meanwhile: the promises hold.
//!
//! Stories are made up: which resources there are, what people do with them, which of the operator's calls fail and how. The
//! shipped decisions and the shipped steps run against the simulator's world and a cluster in memory, with a clock of their
//! own. A story that breaks a promise is shrunk, and its seed kept in `main.regressions`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod cluster;
mod faults;
mod history;
mod pass;
mod process;
mod promises;
mod run;
mod stage;

use dbplane_simulator::world::Profile;
use faults::{Carried, Fault, Hit, faults, late_faults};
use history::{Chapter, Declared, Event, Story, Subject, chapters, computes, event, profile};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed, TestCaseError};

/// The same stories each time, so that a change is judged by what it changes. `PROPTEST_CASES` asks for so many new ones.
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

fn holds(story: &Story) -> Result<(), TestCaseError> {
    run::tell(story).map_err(TestCaseError::fail)
}

/// Stories that once did not end well: a backup without owners, and one that was made between the two writes of a Secret.
#[test]
fn a_rebuilt_cluster_recognizes_its_connection_secrets() {
    for faults in [vec![], vec![Hit { after: 7, fault: Fault::Dies(Carried::Now) }]] {
        let computes = vec![Declared { branch: 0, primary: false, size: 0 }];
        let chapters =
            vec![Chapter { event: Event::Nothing, seconds: 2 }, Chapter { event: Event::Rebuild, seconds: 0 }];
        let story = Story { profile: Profile::Default, computes, key: false, chapters, faults };
        run::tell(&story).unwrap();
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// One compute, and nothing but faults.
    #[test]
    fn one_compute_is_created_once(profile in profile(), computes in computes(1), faults in faults()) {
        holds(&Story { profile, computes, key: false, chapters: Vec::new(), faults })?;
    }

    /// One key, and nothing but faults.
    #[test]
    fn one_key_is_created_and_kept(profile in profile(), faults in faults()) {
        holds(&Story { profile, computes: Vec::new(), key: true, chapters: Vec::new(), faults })?;
    }

    /// Requests that arrive when nobody reckons with them any more bring forth what is told, and nothing else.
    #[test]
    fn what_comes_late_is_told(profile in profile(), computes in computes(1..=2), chapters in chapters(event(Subject::Computes)), faults in late_faults()) {
        holds(&Story { profile, computes, key: true, chapters, faults })?;
    }

    /// Several computes, and what people do with them.
    #[test]
    fn computes_survive_what_people_do(profile in profile(), computes in computes(1..=3), chapters in chapters(event(Subject::Computes)), faults in faults()) {
        holds(&Story { profile, computes, key: false, chapters, faults })?;
    }

    /// A key, and what people do with it.
    #[test]
    fn a_key_survives_what_people_do(profile in profile(), chapters in chapters(event(Subject::Key)), faults in faults()) {
        holds(&Story { profile, computes: Vec::new(), key: true, chapters, faults })?;
    }
}
