//! Crash-point enumeration: the real binary against a real API server and a simulated platform, with a proxy in front of
//! both that numbers the requests and lets one of them go wrong. For each scenario every request is tried in every way.
//!
//! A point is named `scenario:mode:number`, for instance `create-key:kill-after:7`.

#![allow(dead_code, unused_imports, reason = "the tests use a part of what make verify uses")]

mod enumerate;
mod gate;
#[path = "../../in_memory/promises.rs"]
mod guarantees;
mod lab;
mod manifests;
mod modes;
mod objects;
mod planted;
mod platform;
mod point;
mod promises;
mod proxy;
mod scenarios;
mod secrecy;
mod site;
mod world;

pub use enumerate::{Tally, enumerate, single};
pub use lab::Lab;
pub use modes::Extent;
pub use planted::{Plant, violations_of};
pub use scenarios::{Scenario, scenarios};
