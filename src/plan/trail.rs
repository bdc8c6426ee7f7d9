//! Records the steps of each resource, where they would be performed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::PlanError;
use super::id::Id;
use super::steps::PlannedStep;

/// The steps so far.
#[derive(Debug, Default)]
pub struct StepTrail(Mutex<RecordedSteps>);

#[derive(Debug, Default)]
struct RecordedSteps {
    acting: Option<Id>,
    steps: BTreeMap<Id, Vec<PlannedStep>>,
    /// Number of steps so far.
    count: u64,
    not_read: Vec<String>,
    failure: Option<PlanError>,
}

impl StepTrail {
    /// Starts a pass over this resource.
    pub fn begin(&self, id: &Id) {
        self.with(|recorded| recorded.acting = Some(id.clone()));
    }

    /// Adds a step to the resource of the current pass.
    pub fn record(&self, step: PlannedStep) {
        self.with(|recorded| {
            recorded.count += 1;
            let Some(id) = recorded.acting.clone() else {
                return;
            };
            let steps = recorded.steps.entry(id).or_default();
            let known = steps.iter().position(|known| is_same_secret(known, &step));
            let known = known.map(|position| steps.remove(position));
            steps.push(known.map_or(step.clone(), |known| together(known, step)));
        });
    }

    /// Records something that could not be read, once.
    pub fn not_read(&self, what: impl Into<String>) {
        let what = what.into();
        self.with(|recorded| {
            if !recorded.not_read.contains(&what) {
                recorded.not_read.push(what);
            }
        });
    }

    pub fn all_not_read(&self) -> Vec<String> {
        self.with(|recorded| recorded.not_read.clone())
    }

    /// Records why there is no plan. The first reason counts.
    pub fn fail(&self, why: PlanError) {
        self.with(|noted| {
            noted.failure.get_or_insert(why);
        });
    }

    pub fn take_failure(&self) -> Option<PlanError> {
        self.with(|noted| noted.failure.take())
    }

    pub fn of(&self, id: &Id) -> Vec<PlannedStep> {
        self.with(|recorded| recorded.steps.get(id).cloned().unwrap_or_default())
    }

    pub fn count(&self) -> u64 {
        self.with(|recorded| recorded.count)
    }

    fn with<T>(&self, run: impl FnOnce(&mut RecordedSteps) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_same_secret(known: &PlannedStep, step: &PlannedStep) -> bool {
    matches!((known, step), (PlannedStep::WriteSecret { name: one, .. }, PlannedStep::WriteSecret { name: other, .. }) if one == other)
}

/// Merges the create of an empty Secret and its later write, so that users see one step.
fn together(known: PlannedStep, step: PlannedStep) -> PlannedStep {
    match (known, step) {
        (
            PlannedStep::WriteSecret {
                new,
                entries: before,
                ..
            },
            PlannedStep::WriteSecret {
                name,
                new: is_new,
                entries,
            },
        ) => {
            let all: BTreeSet<String> = before.into_iter().chain(entries).collect();
            PlannedStep::WriteSecret {
                name,
                new: new || is_new,
                entries: all.into_iter().collect(),
            }
        }
        (_, step) => step,
    }
}
