//! Mistakes of a user in the spec of a Compute, as far as the definitions admit them, and their
//! corrections.

use std::sync::OnceLock;

use dbplane::cluster::merge;
use dbplane::domain::Fault;
use dbplane::platform::LatestSnapshot;
use dbplane::validate::{Check, Checker};
use serde_json::{Value, json};

use crate::history::compute;
use crate::in_memory::Resource;
use crate::run::Run;
use crate::simulation::PROJECT;

#[derive(Clone, Copy, Debug)]
pub enum Mistake {
    ComputeId,
    Project,
    Account,
}

const MISTAKES: [Mistake; 3] = [Mistake::ComputeId, Mistake::Project, Mistake::Account];

impl Mistake {
    /// The JSON pointer of the field, its wrong value, and its right one.
    fn field(self) -> (&'static str, Value, Value) {
        match self {
            Self::ComputeId => ("/computeID", json!("ep-of-nobody"), Value::Null),
            Self::Project => ("/projectID", json!("p-of-nobody"), json!(PROJECT)),
            Self::Account => ("/accountRef/name", json!("of-nobody"), json!("prod")),
        }
    }
}

impl Run<'_> {
    /// Makes a mistake, or corrects it.
    pub fn mistake(&mut self, which: usize, mistake: Mistake) {
        if !self.correct(&compute(which), mistake) {
            let (field, wrong, _) = mistake.field();
            self.write(&compute(which), field, &wrong);
        }
    }

    /// Corrects all mistakes.
    pub fn correct_all(&mut self) {
        for resource in self.history.resources() {
            for mistake in MISTAKES {
                self.correct(&resource, mistake);
            }
        }
    }

    /// Returns whether the mistake was made.
    fn correct(&mut self, resource: &Resource, mistake: Mistake) -> bool {
        let (field, wrong, right) = mistake.field();
        let simulation = self.simulation.lock();
        let stored = simulation.cluster.objects.get(resource);
        let made = stored.is_some_and(|it| it.value["spec"].pointer(field) == Some(&wrong));
        drop(simulation);
        if made {
            assert!(self.write(resource, field, &right), "{mistake:?} stays");
        }
        made
    }

    /// Writes a field of the spec, unless the definitions refuse it.
    fn write(&mut self, resource: &Resource, field: &str, value: &Value) -> bool {
        let names = field.trim_start_matches('/').split('/').rev();
        let spec = names.fold(value.clone(), |inner, name| json!({name: inner}));
        let patch = json!({"spec": spec});
        let mut simulation = self.simulation.lock();
        let Some(stored) = simulation.cluster.objects.get(resource) else {
            return false;
        };
        let old: Value = stored.value.clone();
        let mut new = old.clone();
        merge(&mut new, &patch);
        let admitted = is_admitted(&new, &old);
        if admitted {
            simulation.cluster.edit(resource, &patch);
        }
        admitted
    }
}

/// The list of a project that does not exist.
pub fn unknown_project() -> LatestSnapshot {
    let message = "project not found".to_owned();
    LatestSnapshot {
        fault: Some(Fault::NotFound { message }),
        ..LatestSnapshot::default()
    }
}

fn is_admitted(new: &Value, old: &Value) -> bool {
    static CHECKER: OnceLock<Checker> = OnceLock::new();
    let checker = CHECKER.get_or_init(|| Checker::new().unwrap());
    let problems = checker.check(new, Some(old)).err().unwrap_or_default();
    problems.iter().all(|problem| problem.check != Check::Rule)
}
