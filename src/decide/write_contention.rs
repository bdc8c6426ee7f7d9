//! WriteContention that something else undoes each time. They are rate-limited and reported, so that two
//! writers do not fight at full speed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;

use super::later;

/// One thing is written again at once at most this many times within `WINDOW`.
pub const AT_ONCE: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// The thing that is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrittenPart {
    /// The record and the finalizer of the resource.
    Metadata,
    Status,
    Secret(String),
    /// A Compute of a set.
    Compute(String),
}

impl fmt::Display for WrittenPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata => f.write_str("the annotation dbplane.dev/record or the finalizer"),
            Self::Status => f.write_str("the status"),
            Self::Secret(name) => write!(f, "Secret {name}"),
            Self::Compute(name) => write!(f, "Compute {name}"),
        }
    }
}

/// A write that restores an earlier content, or repeats it. A write caused by a spec change is not
/// a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    pub what: WrittenPart,
    /// A hash of the content: equal contents have equal hashes.
    pub content: u64,
}

#[derive(Clone, Debug, Default)]
pub struct WriteContention(BTreeMap<String, ContendedResource>);

/// The repairs of one resource.
#[derive(Clone, Debug, Default)]
struct ContendedResource {
    /// By the thing that is written.
    made: BTreeMap<WrittenPart, MadeRepairs>,
    /// The reported message.
    told: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct MadeRepairs {
    content: u64,
    times: VecDeque<Timestamp>,
}

impl Repair {
    pub fn of(what: WrittenPart, content: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self {
            what,
            content: hasher.finish(),
        }
    }
}

impl MadeRepairs {
    fn is_over(&self, now: Timestamp) -> bool {
        self.times
            .back()
            .is_none_or(|last| later(*last, WINDOW) <= now)
    }

    /// When it may be made again, if it was made too often.
    fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let first = self
            .times
            .len()
            .checked_sub(AT_ONCE)
            .and_then(|first| self.times.get(first))?;
        Some(later(*first, WINDOW)).filter(|until| now < *until)
    }
}

impl WriteContention {
    /// Counts a repair that is made.
    pub fn made(&mut self, uid: &str, repair: Repair, now: Timestamp) {
        let resource = self.0.entry(uid.to_owned()).or_default();
        resource.made.retain(|_, made| !made.is_over(now));
        let made = resource.made.entry(repair.what).or_default();
        if made.content != repair.content {
            *made = MadeRepairs {
                content: repair.content,
                ..MadeRepairs::default()
            };
        }
        if made.times.len() == AT_ONCE {
            made.times.pop_front();
        }
        made.times.push_back(now);
    }

    /// When a repair may be made, if it has to wait.
    pub fn waits_until(&self, uid: &str, repair: &Repair, now: Timestamp) -> Option<Timestamp> {
        let made = self
            .0
            .get(uid)?
            .made
            .get(&repair.what)
            .filter(|made| made.content == repair.content)?;
        made.waits_until(now)
    }

    /// Keeps the message that was reported.
    pub fn keep_message(&mut self, uid: &str, message: String) {
        self.0.entry(uid.to_owned()).or_default().told = Some(message);
    }

    /// The reported message, and until when it is true at least. A resource without a repair for a
    /// minute is forgotten.
    pub fn reported(&mut self, uid: &str, now: Timestamp) -> Option<(String, Timestamp)> {
        let resource = self.0.get(uid)?;
        let Some(until) = resource
            .made
            .values()
            .filter_map(|made| made.waits_until(now))
            .max()
        else {
            if resource.made.values().all(|made| made.is_over(now)) {
                self.0.remove(uid);
            }
            return None;
        };
        resource.told.clone().map(|told| (told, until))
    }

    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

/// Returns true for a time within the last two seconds. The times of managed fields are whole
/// seconds.
pub fn is_recent(time: Timestamp, now: Timestamp) -> bool {
    now < later(time, Duration::from_secs(2))
}

/// The message about a thing that is written again and again. `by` is the last writer, if known.
pub fn message(what: &WrittenPart, by: Option<&str>) -> String {
    let who = by.map_or_else(
        || "Something else".to_owned(),
        |by| format!("{by} (a field manager)"),
    );
    format!(
        "{who} changes {what} back each time dbplane writes it, {AT_ONCE} times within a minute. dbplane writes it less often until that \
         ends. Find what it is with kubectl get --show-managed-fields, and have it leave this alone."
    )
}

#[cfg(test)]
mod tests;
