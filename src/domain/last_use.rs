//! Compares the times of a key's last use.

use jiff::Timestamp;

const HOUR: i64 = 3600;

/// True if two times count as the same last use: for a key in constant use, one use per hour
/// counts.
pub fn is_same_use(one: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    let hour = |time: Timestamp| time.as_second().div_euclid(HOUR);
    one.map(hour) == other.map(hour)
}

#[cfg(test)]
mod tests;
