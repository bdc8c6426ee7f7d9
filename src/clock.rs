//! The one file that reads the clock. Everything else is handed the time, so that it can be tested at any time.

use jiff::Timestamp;

/// The present, by this machine's clock.
pub fn now() -> Timestamp {
    Timestamp::now()
}
