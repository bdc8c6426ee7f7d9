//! What is explored: how many resources, which faults and how many of them, for how long.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use dbplane::api::{ComputeSpec, ProjectKeySpec};
use dbplane::decide::Limits;
use dbplane::decide::names::ClusterId;
use serde_json::json;

use super::memo::Memos;
use super::mutation::Mutation;

/// The length of one tick of the model's clock, and of the longest request: who has recorded a call has one tick left to
/// make it, and it is over one tick later.
pub const TICK: Duration = Duration::from_secs(30);

/// What the resources are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// So many Computes on one branch; `marks` tells whether the platform keeps names.
    Computes { count: usize, marks: bool },
    /// One ProjectKey; `revoke` tells whether the platform lists and revokes keys.
    Key { revoke: bool },
}

/// One model. Every number is how often a thing may happen at most.
pub struct Bound {
    pub subject: Subject,
    /// Calls of the platform or the API server whose answer is lost, whether they were carried out or not.
    pub lost: u8,
    /// Calls of either that are refused or fail without effect.
    pub refused: u8,
    /// Processes that die, at any point.
    pub crashes: u8,
    /// Processes that lead at the same time.
    pub leaders: u8,
    /// Ticks of the clock before the faults end.
    pub ticks: u8,
    /// Writes of the cluster that are carried out at once and answered later.
    pub slow: u8,
    /// Whether users delete the resources.
    pub deletion: bool,
    /// Computes or keys that someone else creates at any time.
    pub foreign: u8,
    /// Lists that show the platform as it was one tick before.
    pub lagging: u8,
    /// Whether a request whose answer was lost may be carried out at any later time, and not only within a tick.
    pub late: bool,
    /// Creates that reach the platform before the faults end.
    pub creates: u8,
    /// More states than this are a failure: a check that is cut off proves nothing.
    pub most: usize,
    pub mutation: Option<Mutation>,
    pub memos: Memos,
}

impl Bound {
    pub fn of(subject: Subject) -> Self {
        Self {
            subject,
            lost: 0,
            refused: 0,
            crashes: 0,
            leaders: 1,
            ticks: 2,
            slow: 0,
            deletion: false,
            foreign: 0,
            lagging: 0,
            late: false,
            creates: u8::MAX,
            most: 400_000,
            mutation: None,
            memos: Memos::default(),
        }
    }

    pub fn count(&self) -> usize {
        match self.subject {
            Subject::Computes { count, .. } => count,
            Subject::Key { .. } => 1,
        }
    }

    pub fn deletions(&self) -> u8 {
        if self.deletion { u8::try_from(self.count()).unwrap() } else { 0 }
    }

    pub fn marks(&self) -> bool {
        matches!(self.subject, Subject::Computes { marks: true, .. })
    }

    pub fn is_of_key(&self) -> bool {
        matches!(self.subject, Subject::Key { .. })
    }

    pub fn revokes(&self) -> bool {
        matches!(self.subject, Subject::Key { revoke: true })
    }

    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            Subject::Computes { count: 1, marks: true } => "a Compute, names kept".to_owned(),
            Subject::Computes { count: 1, marks: false } => "a Compute, no names".to_owned(),
            Subject::Computes { count, marks: true } => format!("{count} Computes of a branch, names kept"),
            Subject::Computes { count, marks: false } => format!("{count} Computes of a branch, no names"),
            Subject::Key { revoke: true } => "a ProjectKey".to_owned(),
            Subject::Key { revoke: false } => "a ProjectKey, no calls to list and revoke".to_owned(),
        };
        let mut parts = vec![subject];
        let mut count = |number: u8, one: &str, several: &str| match number {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            _ => parts.push(format!("{number} {several}")),
        };
        count(self.lost, "lost answer", "lost answers");
        count(self.refused, "refusal", "refusals");
        count(self.slow, "slow answer", "slow answers");
        count(self.crashes, "crash", "crashes");
        count(self.deletions(), "deletion", "deletions");
        count(self.foreign, "foreign create", "foreign creates");
        count(self.lagging, "lagging list", "lagging lists");
        count(self.leaders - 1, "second leader", "more leaders");
        count(self.ticks, "tick", "ticks");
        parts.extend(self.late.then(|| "creates of any lateness".to_owned()));
        parts.extend((self.creates < u8::MAX).then(|| format!("creates: {}", self.creates)));
        if let Some(mutation) = self.mutation {
            parts.insert(0, format!("{mutation:?}"));
        }
        f.write_str(&parts.join(", "))
    }
}

pub fn limits() -> Limits {
    Limits { settle: 2 * TICK, key_check: Duration::from_secs(86_400), ..Limits::default() }
}

pub fn cluster() -> ClusterId {
    ClusterId::of_uid("5e71ed00").unwrap()
}

/// A read replica that declares one setting, so that what somebody else creates can be told from it.
pub fn compute_spec() -> ComputeSpec {
    static SPEC: LazyLock<ComputeSpec> = LazyLock::new(read_replica);
    SPEC.clone()
}

fn read_replica() -> ComputeSpec {
    let spec = json!({
        "accountRef": {"name": "prod"},
        "projectID": "p-1",
        "branchID": "br-1",
        "type": "ReadOnly",
        "passwordlessAccess": true,
    });
    serde_json::from_value(spec).unwrap()
}

pub fn key_spec() -> ProjectKeySpec {
    static SPEC: LazyLock<ProjectKeySpec> = LazyLock::new(key_in_a_secret);
    SPEC.clone()
}

fn key_in_a_secret() -> ProjectKeySpec {
    let spec = json!({
        "accountRef": {"name": "prod"},
        "projectID": "p-1",
        "keyName": "ci",
        "secret": {"name": "ci", "key": "api-key"},
    });
    serde_json::from_value(spec).unwrap()
}
