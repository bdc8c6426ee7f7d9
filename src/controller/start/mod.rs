//! Starting and stopping: what is waited for, who leads, and everything that runs.

mod assembly;
mod feed;
mod leader;
mod reconcile;
mod relay;
mod run;
mod slots;
mod state_page;
mod unreadable;
mod waiting;
mod wake;

pub use leader::led_by;
pub use run::{Operator, run};
