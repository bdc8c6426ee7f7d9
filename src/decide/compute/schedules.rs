//! Scheduled settings: what a Compute declares at a time is a function of its spec and that time.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::super::cron::Cron;
use super::super::drift;
use super::super::{Health, Reason, Report, later};
use crate::api::{ComputeSpec, Duration, Schedule, ScheduleStatus, ScheduledDisruption};
use crate::domain::{Compute, ComputeUnits};

/// After so many changes of what applies, none of which changes a setting, nothing is said of the next.
const MOST_CHANGES: usize = 64;

/// An entry whose schedules can be read.
struct Entry<'a> {
    declared: &'a Schedule,
    start: Cron,
    end: End,
}

enum End {
    At(Cron),
    After(std::time::Duration),
}

impl<'a> Entry<'a> {
    fn of(declared: &'a Schedule) -> Result<Self, String> {
        let cron = |expression: &str| {
            Cron::parse(expression, declared.time_zone.as_deref())
                .map_err(|error| format!("The entry {} of spec.schedules never applies: {error}.", declared.name))
        };
        let length = declared.duration.as_ref().and_then(Duration::value);
        let end = match &declared.end {
            Some(end) => End::At(cron(end)?),
            None => End::After(length.unwrap_or_default()),
        };
        Ok(Self { declared, start: cron(&declared.start)?, end })
    }

    fn applies(&self, now: Timestamp) -> bool {
        let Some(started) = self.start.last(now) else { return false };
        match &self.end {
            End::After(length) => now < later(started, *length),
            // One that ends as the next begins goes on.
            End::At(end) => end.last(now).is_none_or(|ended| ended <= started),
        }
    }

    /// The next time at which it may begin or cease to apply.
    fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = match &self.end {
            End::At(end) => end.next(now),
            End::After(length) => {
                self.start.last(now).map(|started| later(started, *length)).filter(|ends| *ends > now)
            }
        };
        self.start.next(now).into_iter().chain(ends).min()
    }
}

fn entries(spec: &ComputeSpec) -> Vec<Entry<'_>> {
    spec.schedules.iter().filter_map(|entry| Entry::of(entry).ok()).collect()
}

/// What cannot be read of the schedules.
fn errors(spec: &ComputeSpec) -> Option<String> {
    let errors: Vec<_> = spec.schedules.iter().filter_map(|entry| Entry::of(entry).err()).collect();
    (!errors.is_empty()).then(|| errors.join(" "))
}

/// The entries that set something at that time: of several that set the same field, the first.
#[derive(Default)]
struct Applying<'a> {
    size: Option<&'a Schedule>,
    scale_to_zero: Option<&'a Schedule>,
    overridden: Vec<&'a str>,
}

impl<'a> Applying<'a> {
    fn at(entries: &[Entry<'a>], now: Timestamp) -> Self {
        let mut applying = Self::default();
        for entry in entries.iter().filter(|entry| entry.applies(now)).map(|entry| entry.declared) {
            let sets_size = entry.size.is_some() && applying.size.is_none();
            let sets_scale = entry.scale_to_zero.is_some() && applying.scale_to_zero.is_none();
            applying.size = applying.size.or(Some(entry).filter(|_| sets_size));
            applying.scale_to_zero = applying.scale_to_zero.or(Some(entry).filter(|_| sets_scale));
            if !sets_size && !sets_scale {
                applying.overridden.push(&entry.name);
            }
        }
        applying
    }

    /// Their names, in the order of the list.
    fn names(&self, spec: &ComputeSpec) -> Vec<String> {
        let names: BTreeSet<_> =
            [self.size, self.scale_to_zero].into_iter().flatten().map(|entry| &entry.name).collect();
        spec.schedules.iter().map(|entry| &entry.name).filter(|name| names.contains(name)).cloned().collect()
    }

    fn in_force(&self, spec: &ComputeSpec) -> ComputeSpec {
        ComputeSpec {
            size: self.size.map_or(spec.size, |entry| entry.size),
            scale_to_zero: self
                .scale_to_zero
                .map_or_else(|| spec.scale_to_zero.clone(), |entry| entry.scale_to_zero.clone()),
            ..spec.clone()
        }
    }
}

/// The spec as it applies at that time.
pub fn in_force(spec: &ComputeSpec, now: Timestamp) -> Cow<'_, ComputeSpec> {
    if spec.schedules.is_empty() {
        return Cow::Borrowed(spec);
    }
    Cow::Owned(Applying::at(&entries(spec), now).in_force(spec))
}

/// When something else applies, and what.
struct Next {
    at: Timestamp,
    text: String,
}

fn next(spec: &ComputeSpec, entries: &[Entry], now: Timestamp) -> Option<Next> {
    let before = Applying::at(entries, now).in_force(spec);
    let mut at = now;
    for _ in 0..MOST_CHANGES {
        at = entries.iter().filter_map(|entry| entry.next(at)).min()?;
        let applying = Applying::at(entries, at);
        let then = applying.in_force(spec);
        if (before.size, &before.scale_to_zero) == (then.size, &then.scale_to_zero) {
            continue;
        }
        let names = applying.names(spec);
        let names = if names.is_empty() { "no schedule".to_owned() } else { names.join(", ") };
        return Some(Next { at, text: format!("{at} {} ({names})", drift::changes(&before, &then)) });
    }
    None
}

/// When something else applies.
pub(super) fn next_change(spec: &ComputeSpec, now: Timestamp) -> Option<Timestamp> {
    next(spec, &entries(spec), now).map(|next| next.at)
}

/// What the status shows; `None` where nothing is scheduled.
pub(super) fn status(spec: &ComputeSpec, now: Timestamp) -> Option<ScheduleStatus> {
    if spec.schedules.is_empty() {
        return None;
    }
    let entries = entries(spec);
    let applying = Applying::at(&entries, now);
    let names = applying.names(spec);
    Some(ScheduleStatus {
        applies: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        overridden: (!applying.overridden.is_empty()).then(|| applying.overridden.join(", ")),
        next: next(spec, &entries, now).map(|next| next.text),
    })
}

/// Whether the size that applies now is set at once, whatever spec.disruption says: its entry says so, or that of the entry which
/// the compute still has the size of.
pub(super) fn is_immediate(spec: &ComputeSpec, compute: &Compute, now: Timestamp) -> bool {
    let immediate = |entry: &Schedule| entry.disruption == Some(ScheduledDisruption::Immediate);
    match Applying::at(&entries(spec), now).size {
        Some(entry) => immediate(entry),
        None => spec.schedules.iter().filter(|entry| immediate(entry)).any(|entry| has_size(compute, entry)),
    }
}

fn has_size(compute: &Compute, entry: &Schedule) -> bool {
    let in_force: Option<(ComputeUnits, ComputeUnits)> = compute.settings.min.zip(compute.settings.max);
    in_force.is_some() && in_force == drift::limits(entry.size)
}

/// The same report, and what cannot be read of the schedules.
pub(super) fn reported(spec: &ComputeSpec, report: Report) -> Report {
    match errors(spec) {
        Some(errors) => report.beside(Health::Stalled(Reason::InvalidSchedule, errors)),
        None => report,
    }
}
