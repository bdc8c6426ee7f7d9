//! The one file that reads the clock. Everything else is given the time.

use jiff::Timestamp;

/// The time now.
pub fn now() -> Timestamp {
    Timestamp::now()
}
