//! What came of the last pass over each resource, for people who look for a cause. Kept only where somebody may ask for it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::super::pass::Pass;

/// By UID.
#[derive(Debug, Default)]
pub struct Trail(Option<Mutex<HashMap<String, Traced>>>);

/// What is kept of one resource.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// How many passes have ended.
    pub passes: u64,
    /// When the last of them ended.
    pub at: Option<Timestamp>,
    /// What it came to, and when the next one is due without any other cause.
    pub ended: Option<(Pass, Timestamp)>,
    /// Why it could not be made.
    pub error: Option<String>,
    /// The last step.
    pub step: Option<Step>,
}

/// A step that was begun then.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: Timestamp,
    /// As the log shows it.
    pub text: String,
}

impl Trail {
    /// One that keeps something, or nothing.
    pub fn kept(kept: bool) -> Self {
        Self(kept.then(Mutex::default))
    }

    pub fn step(&self, uid: &str, step: &dyn Debug, at: Timestamp) {
        self.with(uid, |traced| traced.step = Some(Step { at, text: format!("{step:?}") }));
    }

    pub fn ended(&self, uid: &str, pass: Pass, next: Timestamp, at: Timestamp) {
        self.with(uid, |traced| {
            traced.passes += 1;
            (traced.at, traced.ended, traced.error) = (Some(at), Some((pass, next)), None);
        });
    }

    pub fn failed(&self, uid: &str, error: &kube::Error, at: Timestamp) {
        self.with(uid, |traced| {
            traced.passes += 1;
            (traced.at, traced.error) = (Some(at), Some(error.to_string()));
        });
    }

    /// The resource is gone.
    pub fn forget(&self, uid: &str) {
        if let Some(all) = &self.0 {
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        }
    }

    pub fn get(&self, uid: &str) -> Option<Traced> {
        self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).get(uid).cloned()
    }

    fn with(&self, uid: &str, change: impl FnOnce(&mut Traced)) {
        if let Some(all) = &self.0 {
            change(all.lock().unwrap_or_else(PoisonError::into_inner).entry(uid.to_owned()).or_default());
        }
    }
}
