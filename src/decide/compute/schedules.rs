//! Scheduled settings: the settings of a Compute at a time depend only on its spec and that time.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::unfollowed::{Unfollowed, length, unfollowed};
use crate::api::{ComputeSpec, Schedule, ScheduleStatus, ScheduledDisruption};
use crate::decide::cron::Cron;
use crate::decide::drift;
use crate::decide::later;
use crate::domain::{Compute, ComputeUnits};

/// How many starts and ends are examined to find one that changes a setting.
const MOST_STEPS: usize = 256;

/// The settings from the schedules of one generation, until the next schedule starts or ends. The
/// process keeps it that long, so that a pass need not compute it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agenda {
    generation: i64,
    from: Timestamp,
    until: Option<Timestamp>,
    applying: Applying,
    next: NextChange,
    shown: ScheduleStatus,
    /// The schedules of the whole spec that are not followed.
    unfollowed: Vec<Unfollowed>,
}

/// The time and the text of the next change of a setting. Without a text, no setting changes before
/// that time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NextChange {
    at: Option<Timestamp>,
    text: Option<String>,
}

impl Agenda {
    fn of(spec: &ComputeSpec, generation: i64, now: Timestamp) -> Self {
        let declared = spec.schedules.iter().enumerate();
        let mut entries: Vec<_> = declared
            .filter_map(|(index, declared)| AgendaEntry::of(index, declared, now))
            .collect();
        let applying = Applying::at(&entries);
        let until = entries.iter().filter_map(AgendaEntry::changes).min();
        let next = next(spec, &mut entries, &applying);
        let names = applying.names(spec);
        let overridden: Vec<_> = applying
            .overridden
            .iter()
            .filter_map(|index| name(spec, *index))
            .collect();
        let shown = ScheduleStatus {
            applies: if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            },
            overridden: (!overridden.is_empty()).then(|| overridden.join(", ")),
            next: next.text.clone(),
        };
        Self {
            generation,
            from: now,
            until,
            applying,
            next,
            shown,
            unfollowed: unfollowed(spec, "spec"),
        }
    }

    fn holds(&self, generation: i64, now: Timestamp) -> bool {
        self.generation == generation
            && self.from <= now
            && self.until.is_none_or(|until| now < until)
    }

    pub(super) fn unfollowed(&self) -> &[Unfollowed] {
        &self.unfollowed
    }

    /// The time for deciding again.
    pub(super) fn wake(&self) -> Option<Timestamp> {
        self.next.at
    }
}

/// The current agenda, from the last pass if it is still valid. `None` if the spec has no schedules.
pub(super) fn agenda(
    spec: &ComputeSpec,
    remembered: Option<&Arc<Agenda>>,
    generation: i64,
    now: Timestamp,
) -> Option<Arc<Agenda>> {
    if spec.schedules.is_empty() {
        return None;
    }
    match remembered {
        Some(agenda) if agenda.holds(generation, now) => Some(Arc::clone(agenda)),
        _ => Some(Arc::new(Agenda::of(spec, generation, now))),
    }
}

/// An entry with its last and next start and end, relative to some time.
struct AgendaEntry<'a> {
    index: usize,
    declared: &'a Schedule,
    start: Cron,
    end: End,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    starts: Option<Timestamp>,
    ends: Option<Timestamp>,
}

enum End {
    At(Cron),
    After(std::time::Duration),
}

impl<'a> AgendaEntry<'a> {
    /// `None` if the entry is not followed.
    fn of(index: usize, declared: &'a Schedule, now: Timestamp) -> Option<Self> {
        let cron = |expression: &str| Cron::examine(expression, declared.time_zone.as_deref()).ok();
        let start = cron(&declared.start)?;
        let (started, starts) = (start.last(now), start.next(now));
        let (end, ended, ends) = match &declared.end {
            Some(end) => {
                let end = cron(end)?;
                let (ended, ends) = (end.last(now), end.next(now));
                (End::At(end), ended, ends)
            }
            None => {
                let length = length(declared)?;
                let end = started.map(|started| later(started, length));
                (
                    End::After(length),
                    end.filter(|end| *end <= now),
                    end.filter(|end| *end > now),
                )
            }
        };
        Some(Self {
            index,
            declared,
            start,
            end,
            started,
            ended,
            starts,
            ends,
        })
    }

    fn applies(&self) -> bool {
        // An entry that ends as its next time begins continues.
        self.started
            .is_some_and(|started| self.ended.is_none_or(|ended| ended <= started))
    }

    /// The next time at which the entry starts or ends.
    fn changes(&self) -> Option<Timestamp> {
        self.starts.into_iter().chain(self.ends).min()
    }

    /// Moves to the time `at`, at which the entry starts or ends.
    fn advance(&mut self, at: Timestamp) {
        if self.ends == Some(at) {
            self.ended = Some(at);
            self.ends = match &self.end {
                End::At(end) => end.next(at),
                End::After(_) => None,
            };
        }
        if self.starts == Some(at) {
            self.started = Some(at);
            self.starts = self.start.next(at);
            if let End::After(length) = self.end {
                self.ends = Some(later(at, length));
            }
        }
    }
}

/// The entries that apply at a time, by index. If several set the same field, the first wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Applying {
    size: Option<usize>,
    scale_to_zero: Option<usize>,
    overridden: Vec<usize>,
}

impl Applying {
    fn at(entries: &[AgendaEntry]) -> Self {
        let mut applying = Self::default();
        for entry in entries.iter().filter(|entry| entry.applies()) {
            let sets_size = entry.declared.size.is_some() && applying.size.is_none();
            let sets_scale =
                entry.declared.scale_to_zero.is_some() && applying.scale_to_zero.is_none();
            if sets_size {
                applying.size = Some(entry.index);
            }
            if sets_scale {
                applying.scale_to_zero = Some(entry.index);
            }
            if !sets_size && !sets_scale {
                applying.overridden.push(entry.index);
            }
        }
        applying
    }

    /// The names of the entries that set something, in the order of the list.
    fn names<'a>(&self, spec: &'a ComputeSpec) -> Vec<&'a str> {
        let places: BTreeSet<_> = self.size.into_iter().chain(self.scale_to_zero).collect();
        places
            .into_iter()
            .filter_map(|index| name(spec, index))
            .collect()
    }

    fn in_force(&self, spec: &ComputeSpec) -> ComputeSpec {
        let entry = |index: Option<usize>| index.and_then(|index| spec.schedules.get(index));
        let scale_to_zero = match entry(self.scale_to_zero) {
            Some(entry) => entry.scale_to_zero.clone(),
            None => spec.scale_to_zero.clone(),
        };
        ComputeSpec {
            size: entry(self.size).map_or(spec.size, |entry| entry.size),
            scale_to_zero,
            ..spec.clone()
        }
    }

    /// True if `other` results in the same settings.
    fn sets_as(&self, other: &Self, spec: &ComputeSpec) -> bool {
        let entry = |index: Option<usize>| index.and_then(|index| spec.schedules.get(index));
        let size = |index| entry(index).map_or(spec.size, |entry| entry.size);
        let scale_to_zero =
            |index| entry(index).map_or(&spec.scale_to_zero, |entry| &entry.scale_to_zero);
        size(self.size) == size(other.size)
            && scale_to_zero(self.scale_to_zero) == scale_to_zero(other.scale_to_zero)
    }
}

fn name(spec: &ComputeSpec, index: usize) -> Option<&str> {
    spec.schedules.get(index).map(|entry| entry.name.as_str())
}

/// The spec with the settings of the agenda.
pub(super) fn in_force<'a>(spec: &'a ComputeSpec, agenda: Option<&Agenda>) -> Cow<'a, ComputeSpec> {
    agenda.map_or(Cow::Borrowed(spec), |agenda| {
        Cow::Owned(agenda.applying.in_force(spec))
    })
}

/// Moves from one start or end to the next until a setting changes.
fn next(spec: &ComputeSpec, entries: &mut [AgendaEntry], before: &Applying) -> NextChange {
    let mut steps = 0;
    while let Some(at) = entries.iter().filter_map(AgendaEntry::changes).min() {
        for entry in entries
            .iter_mut()
            .filter(|entry| entry.changes() == Some(at))
        {
            entry.advance(at);
            steps += 1;
        }
        let then = Applying::at(entries);
        if !then.sets_as(before, spec) {
            let names = then.names(spec);
            let names = if names.is_empty() {
                "no schedule".to_owned()
            } else {
                names.join(", ")
            };
            let changes = drift::changes(&before.in_force(spec), &then.in_force(spec));
            return NextChange {
                at: Some(at),
                text: Some(format!("{at} {changes} ({names})")),
            };
        }
        if steps >= MOST_STEPS {
            return NextChange {
                at: Some(at),
                text: None,
            };
        }
    }
    NextChange::default()
}

pub(super) fn status(agenda: &Agenda) -> ScheduleStatus {
    agenda.shown.clone()
}

/// True if the current size is set at once, regardless of spec.disruption. The entry that sets the
/// size decides. If there is none, the entry decides whose size the compute still has.
pub(super) fn is_immediate(spec: &ComputeSpec, agenda: Option<&Agenda>, compute: &Compute) -> bool {
    let immediate = |entry: &Schedule| entry.disruption == Some(ScheduledDisruption::Immediate);
    let sets_size = agenda.and_then(|agenda| spec.schedules.get(agenda.applying.size?));
    match sets_size {
        Some(entry) => immediate(entry),
        None => spec
            .schedules
            .iter()
            .filter(|entry| immediate(entry))
            .any(|entry| has_size(compute, entry)),
    }
}

fn has_size(compute: &Compute, entry: &Schedule) -> bool {
    let in_force: Option<(ComputeUnits, ComputeUnits)> =
        compute.settings.min.zip(compute.settings.max);
    in_force.is_some() && in_force == drift::limits(entry.size)
}
