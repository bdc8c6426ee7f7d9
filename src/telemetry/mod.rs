//! Logs, metrics and health.

pub mod debug;
pub mod health;
pub mod logs;
pub mod metrics;

pub use debug::StatePage;
pub use health::Readiness;
pub use metrics::Metrics;
