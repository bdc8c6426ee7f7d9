//! Logs, traces, metrics and health.

pub mod debug;
pub mod health;
mod lines;
pub mod logs;
pub mod metrics;
mod served;
pub mod traces;

pub use health::Readiness;
pub use metrics::Metrics;
pub use served::{Source, served};
