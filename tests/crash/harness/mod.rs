//! Crash points: the real binary against a real API server and a simulated platform. A proxy in
//! front of both numbers the requests and makes one of them fail. Every request of each scenario is
//! tried in every mode.
//!
//! A point is named `scenario:mode:number`, for instance `create-key:kill-after:7`. Requests for
//! the Lease are numbered separately (`create-elected:lost:lease-1`). A second fault follows after
//! a plus (`create-key:lost:5+kill-after:9`).

#![allow(
    dead_code,
    unused_imports,
    reason = "the tests use a part of what make verify uses"
)]

mod acts;
mod enumerate;
mod gate;
#[path = "../../in_memory/promises.rs"]
mod guarantees;
mod lab;
mod manifests;
mod modes;
mod objects;
mod pairs;
mod passages;
mod planned;
mod planted;
mod platform;
mod point;
mod promises;
mod proxy;
mod recorded;
mod scenarios;
mod secrecy;
mod site;
mod world;

pub use enumerate::{Tally, enumerate, single};
pub use lab::Lab;
pub use manifests::{account, compute, key, key_secret, secret, with};
pub use modes::Extent;
pub use objects::condition;
pub use planned::{Compared, planned};
pub use planted::{Plant, violations_of};
pub use platform::{ADMIN, BRANCH_TO_ADOPT, EMPTY_BRANCH, FOREIGN, SHARED_BRANCH, TO_ADOPT};
pub use point::prepare;
pub use recorded::{Recorder, Version, recorded};
pub use scenarios::{Act, Goal, Scenario, scenarios};
pub use site::{FOREIGN_SECRET, Site};
