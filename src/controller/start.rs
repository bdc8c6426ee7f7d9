//! Starts and stops the operator: start-up checks, leader election, and all tasks.

mod aside;
mod assembly;
mod feed;
mod lanes;
mod leader;
mod put_back;
mod reconcile;
mod relay;
mod run;
mod slots;
mod unreadable;
mod waiting;
mod wake;
mod watched;
mod withdrawn;

pub use aside::Aside;
pub use leader::{Election, led_by};
pub use run::{Operator, run};
