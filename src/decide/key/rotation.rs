//! Rotation: when to replace a usable key, and when to revoke the previous one.

use std::time::Duration;

use jiff::Timestamp;

use super::{KeyCase, KeyListing};
use crate::api::{RevokePrevious, Rotation};
use crate::decide::identity::{KeyIdentity, LastUse, LostBecause, RetiredKey};
use crate::decide::{Reason, later, names};
use crate::domain::KeyEntry;

/// How long a key stays valid after a requested replacement, if the spec declares no overlap.
const OVERLAP: Duration = Duration::from_secs(3600);
/// The maximum number of replaced keys that are valid at a time.
pub const MOST: usize = 3;
/// The maximum number of replaced keys that wait for a user to revoke them.
const MOST_LEFT: usize = 10;
/// A request up to this length is recorded as it is, a longer one as its digest.
const LONGEST_REQUEST: usize = 64;
/// How long a list counts as evidence that a key is not in use.
const FRESH: Duration = Duration::from_secs(30);

/// The recorded form of a user's request for another key.
pub(super) fn request(case: &KeyCase) -> Option<String> {
    let text = case
        .observed
        .rotate
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())?;
    Some(if text.len() <= LONGEST_REQUEST {
        text.to_owned()
    } else {
        names::digest(text)
    })
}

/// Returns true if a user requests another key. The next created key serves every request made by
/// then.
pub(super) fn is_requested(case: &KeyCase) -> bool {
    request(case).is_some_and(|asked| case.identity.records.rotated_for.as_ref() != Some(&asked))
}

/// When a key created at `created` is replaced without a request; `None` if it is not.
pub fn due_regularly(rotation: Option<&Rotation>, created: Timestamp) -> Option<Timestamp> {
    Some(later(created, rotation?.every.value()?))
}

/// When a usable key is replaced.
pub(super) enum RotationDue {
    /// Now. The previous key stays valid at least until that time.
    Now(Timestamp),
    At(Timestamp),
    Never,
}

pub(super) fn due(case: &KeyCase, current: &KeyIdentity) -> RotationDue {
    let rotation = case.spec.rotation.as_ref();
    let overlap = rotation
        .and_then(|rotation| rotation.overlap.value())
        .unwrap_or(OVERLAP);
    match due_regularly(rotation, current.at) {
        Some(due) if due <= case.now => RotationDue::Now(later(case.now, overlap)),
        _ if is_requested(case) => RotationDue::Now(later(case.now, overlap)),
        Some(due) => RotationDue::At(due),
        None => RotationDue::Never,
    }
}

/// Why a due rotation has to wait: keys must not pile up, however often users request them.
pub(super) fn postponed(case: &KeyCase) -> Option<(Reason, String)> {
    let records = &case.identity.records;
    if records.previous.len() >= MOST {
        let message = format!(
            "{} replaced keys are still valid. The key is replaced once one of them is revoked: see status.previousKeys.",
            records.previous.len()
        );
        return Some((Reason::RotationWaiting, message));
    }
    let left = records
        .lost
        .iter()
        .filter(|key| key.because == LostBecause::Retired && case.issued(&key.name));
    let left: Vec<&str> = left.map(|key| key.name.as_str()).collect();
    if left.len() < MOST_LEFT {
        return None;
    }
    let (reason, message) =
        super::manual_revocation::to_revoke_by_hand(case, left.iter().copied())?;
    Some((
        reason,
        format!(
            "{} replaced keys are still valid, so the key is not replaced. {message}",
            left.len()
        ),
    ))
}

/// When a replaced key is revoked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RevocationTurn {
    /// Now. The text says what is known of its use, if it may be in use.
    Now(Option<String>),
    /// At that time, or look again at that time.
    At(Timestamp),
    /// A list has to show first whether it is in use.
    Look,
    /// A list shows another last use than before. Record it, and start the time again.
    Watch(RetiredKey),
}

/// The wait before a replaced key is revoked; `None` from `of` if it is revoked at the end of its
/// overlap.
struct WhenUnused {
    unused_for: Duration,
    deadline: Timestamp,
}

impl WhenUnused {
    fn of(rotation: Option<&Rotation>, key: &RetiredKey) -> Option<Self> {
        let waits = |rotation: &&Rotation| {
            key.rotated && rotation.revoke_previous == RevokePrevious::WhenUnused
        };
        let rotation = rotation.filter(waits)?;
        let unused_for = rotation.unused_for.as_ref()?.value()?;
        let deadline = later(key.since, rotation.deadline.as_ref()?.value()?).max(key.retire_at);
        Some(Self {
            unused_for,
            deadline,
        })
    }
}

/// The latest time at which a replaced key is revoked.
pub(super) fn revoked_by(rotation: Option<&Rotation>, key: &RetiredKey) -> Timestamp {
    WhenUnused::of(rotation, key).map_or(key.retire_at, |policy| policy.deadline)
}

/// A changed last use is recorded at most eight times in spec.rotation.unusedFor. A key in constant
/// use has another last use in each list.
fn pause(unused_for: Duration) -> Duration {
    unused_for / 8
}

/// When to revoke a replaced key. The platform's times are compared only with each other: its clock
/// and ours may be days apart.
pub(super) fn turn(case: &KeyCase, key: &RetiredKey) -> RevocationTurn {
    let Some(WhenUnused {
        unused_for,
        deadline,
    }) = WhenUnused::of(case.spec.rotation.as_ref(), key)
    else {
        return if key.retire_at <= case.now {
            RevocationTurn::Now(None)
        } else {
            RevocationTurn::At(key.retire_at)
        };
    };
    let use_ = last_use(&case.observed.known, key);
    let is_over = deadline <= case.now;
    if !is_over && matches!(use_, Use::Unread) {
        return RevocationTurn::Look;
    }
    if !is_over && let Some(watched) = watched(case, key, &use_, unused_for) {
        return RevocationTurn::Watch(watched);
    }
    let seen = key.last_use.as_ref();
    let same = seen.filter(|seen| Some(seen.at) == use_.shown());
    let proof =
        same.map(|seen| later(seen.since, pause(unused_for) + unused_for).max(key.retire_at));
    let again = proof.or(seen.map(|seen| later(seen.since, pause(unused_for))));
    let shown = match (&case.observed.known, proof) {
        (KeyListing::Read { at, .. }, Some(proof)) if *at >= proof => Some(*at),
        _ => None,
    };
    match (shown, again) {
        (Some(at), _) if case.now <= later(at, FRESH) && is_read(case) => RevocationTurn::Now(None),
        (_, _) if is_over => RevocationTurn::Now(Some(why_now(&use_))),
        (Some(_), _) => RevocationTurn::Look,
        (_, Some(again)) if again <= case.now => RevocationTurn::Look,
        (_, again) => RevocationTurn::At(again.unwrap_or(deadline).min(deadline)),
    }
}

/// The key with the last use in the newest list, if it differs from the record. A record from the
/// future was made before our clock was set back.
fn watched(
    case: &KeyCase,
    key: &RetiredKey,
    use_: &Use,
    unused_for: Duration,
) -> Option<RetiredKey> {
    let (seen, shown) = (key.last_use.as_ref(), use_.shown());
    let read_at = if let KeyListing::Read { at, .. } = &case.observed.known {
        *at
    } else {
        case.now
    };
    let is_same = seen.map(|seen| seen.at) == shown;
    let is_news = match seen {
        None => !is_same,
        Some(seen) if seen.since > case.now => true,
        Some(seen) => !is_same && read_at >= later(seen.since, pause(unused_for)),
    };
    let was_used = shown.flatten().or(seen.and_then(|seen| seen.at)).is_some();
    is_news.then(|| RetiredKey {
        last_use: shown.map(|at| LastUse {
            at,
            since: case.now,
        }),
        worked: key.worked || was_used,
        ..key.clone()
    })
}

/// Returns true if the key in use was seen to work: a list shows a use, or an account has its
/// credentials from the Secret.
pub(super) fn is_seen_to_work(case: &KeyCase) -> bool {
    let Some(current) = &case.identity.records.current else {
        return false;
    };
    let is_used = match &case.observed.known {
        KeyListing::Read { keys, .. } => keys
            .shown()
            .iter()
            .any(|entry| entry.id == current.id && shows_use(entry)),
        KeyListing::NotRead | KeyListing::NotOffered => false,
    };
    is_used || !case.observed.accounts.is_empty()
}

fn is_read(case: &KeyCase) -> bool {
    matches!(case.observed.listing, KeyListing::Read { .. })
}

/// The last use of a key according to a list.
enum Use<'a> {
    /// No list has been read yet.
    Unread,
    /// The platform does not show it, or not for this key.
    NotShown,
    Never,
    Last {
        at: Timestamp,
        from: Option<&'a str>,
    },
}

impl Use<'_> {
    /// The last use, or the fact that there was none; `None` if unknown.
    fn shown(&self) -> Option<Option<Timestamp>> {
        match self {
            Self::Last { at, .. } => Some(Some(*at)),
            Self::Never => Some(None),
            Self::Unread | Self::NotShown => None,
        }
    }
}

fn last_use<'a>(known: &'a KeyListing, key: &RetiredKey) -> Use<'a> {
    let keys = match known {
        KeyListing::NotRead => return Use::Unread,
        KeyListing::NotOffered => return Use::NotShown,
        KeyListing::Read { keys, .. } => keys.shown(),
    };
    let Some(entry) = keys
        .iter()
        .find(|entry| entry.id == key.id && entry.name == key.name)
    else {
        return Use::NotShown;
    };
    let from = entry.last_used_from.as_deref();
    match entry.last_used_at {
        Some(at) => Use::Last { at, from },
        None if !key.worked && keys.iter().any(shows_use) => Use::Never,
        None => Use::NotShown,
    }
}

fn shows_use(entry: &KeyEntry) -> bool {
    entry.last_used_at.is_some()
}

fn why_now(use_: &Use) -> String {
    let known = match use_ {
        Use::Last {
            at,
            from: Some(from),
        } if !from.is_empty() => format!("it was last used at {at} from {from}"),
        Use::Last { at, .. } => format!("it was last used at {at}"),
        Use::Never => "it was not used so far".to_owned(),
        Use::NotShown | Use::Unread => {
            "the platform does not show when it was last used".to_owned()
        }
    };
    format!("spec.rotation.deadline is over, and {known}.")
}

/// The message about replaced keys that are revoked once they are unused.
pub(super) fn outlook(case: &KeyCase) -> Option<String> {
    let rotation = case.spec.rotation.as_ref();
    let mut texts = Vec::new();
    for key in &case.identity.records.previous {
        let Some(policy) = WhenUnused::of(rotation, key) else {
            continue;
        };
        let (name, deadline) = (&key.name, policy.deadline);
        let unused_for = rotation
            .and_then(|rotation| rotation.unused_for.as_ref())
            .map_or("", |length| &length.0);
        texts.push(match last_use(&case.observed.known, key) {
            Use::NotShown => format!(
                "Key {name} stays valid until {deadline}, because the platform does not show when it was last used."
            ),
            Use::Unread | Use::Never | Use::Last { .. } => {
                format!(
                    "Key {name} stays valid until it was not used for {unused_for}, and until {deadline} at the latest."
                )
            }
        });
    }
    (!texts.is_empty()).then(|| texts.join(" "))
}
