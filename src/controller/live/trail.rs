//! The result of the last pass over each resource, for debugging. Kept only if the state page is
//! enabled.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::controller::pass::Pass;

/// By UID.
#[derive(Debug, Default)]
pub struct Trail(Option<Mutex<HashMap<String, Traced>>>);

/// The trail of one resource.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// The number of ended passes.
    pub passes: u64,
    /// When the last pass ended.
    pub at: Option<Timestamp>,
    /// The result of the last pass, and when the next one is due if nothing else triggers it.
    pub ended: Option<(Pass, Timestamp)>,
    /// The error of the last pass.
    pub error: Option<String>,
    pub step: Option<Step>,
}

/// A step, and when it began.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: Timestamp,
    /// As the log shows it.
    pub text: String,
}

impl Trail {
    /// A trail that keeps its entries, or drops them all.
    pub fn kept(kept: bool) -> Self {
        Self(kept.then(Mutex::default))
    }

    pub fn step(&self, uid: &str, step: &dyn Debug, at: Timestamp) {
        self.with(uid, |traced| {
            traced.step = Some(Step {
                at,
                text: format!("{step:?}"),
            })
        });
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

    pub fn forget(&self, uid: &str) {
        if let Some(all) = &self.0 {
            all.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(uid);
        }
    }

    pub fn get(&self, uid: &str) -> Option<Traced> {
        self.0
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid)
            .cloned()
    }

    fn with(&self, uid: &str, change: impl FnOnce(&mut Traced)) {
        if let Some(all) = &self.0 {
            change(
                all.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .entry(uid.to_owned())
                    .or_default(),
            );
        }
    }
}
