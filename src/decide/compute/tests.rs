//! Tables of all decisions about a Compute. A case lists only its differences from [`GivenCompute::new`]
//! or [`GivenCompute::bound`].

mod changes;
mod claims;
mod connection;
mod cost;
mod create;
mod delete;
mod keep;
mod maintenance;
mod obstacles;
mod operations;
mod recovery;
mod restarts;
mod schedules;
mod status;
mod stray;
mod twin;
mod unreadable;
mod wish;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::decide::conditions::PostponedChanges;
use crate::decide::connection::ConnectionSecret;
use crate::decide::identity::{Binding, CreateIntent, Evidence, Origin};
use crate::decide::names;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{AccountView, Limits, Meta, Sync};
use crate::domain::{
    ComputeChange, ComputeUnits, NewCompute, PoolingMode, PostgresSettings, Settings, Support,
    SuspendAfter,
};

pub const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
pub const SETTLE: Duration = Duration::from_secs(60);
pub const BRANCH: &str = "br-main";
pub const GENERATION: i64 = 3;

/// `seconds` after now; before now if negative.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW.as_second() + seconds).unwrap()
}

pub fn cu(value: f64) -> Option<ComputeUnits> {
    Some(ComputeUnits::new(value).unwrap())
}

/// An active primary of the branch, with 1 CU.
pub fn compute(id: &str) -> Compute {
    Compute {
        id: id.into(),
        project_id: "p-1".into(),
        branch_id: BRANCH.into(),
        region: Some("region-1".into()),
        role: Role::Primary,
        host: Some(format!("{id}.postgres.example")),
        pooled_host: None,
        name: None,
        current_state: ComputeState::Active,
        pending_state: None,
        settings: Settings {
            min: cu(1.),
            max: cu(1.),
            suspend_after: Some(SuspendAfter::Default),
            pooler_enabled: Some(false),
            pooler_mode: Some(PoolingMode::Transaction),
            passwordless_access: Some(true),
            disabled: Some(false),
            ..Settings::default()
        },
        last_active: None,
        created_at: Some(at(-7200)),
        updated_at: Some(at(-3600)),
        started_at: Some(at(-3600)),
        support: Support::default(),
    }
}

pub fn with(mut compute: Compute, edit: impl FnOnce(&mut Compute)) -> Compute {
    edit(&mut compute);
    compute
}

pub fn replica(id: &str) -> Compute {
    with(compute(id), |compute| compute.role = Role::Replica)
}

pub fn idle(id: &str) -> Compute {
    with(compute(id), |compute| {
        compute.current_state = ComputeState::Idle
    })
}

/// A resource whose create comes first, begun `seconds` after now.
pub fn rival(name: &str, seconds: i64) -> RivalCreate {
    RivalCreate {
        by: holder(name),
        since: Some(at(seconds)),
        evidence: Evidence::ByBaseline,
    }
}

/// Another Compute of the same namespace.
pub fn holder(name: &str) -> Holder {
    Holder {
        namespace: "shop".into(),
        name: name.into(),
    }
}

pub fn refused() -> Fault {
    Fault::Rejected {
        status: 422,
        message: "not on this plan".into(),
    }
}

pub fn lost() -> Fault {
    Fault::Unknown {
        message: "the connection was closed".into(),
    }
}

pub fn version(spec: &ComputeSpec, generation: i64) -> VersionedSpec<'_> {
    VersionedSpec { spec, generation }
}

/// The input of a decision: a spec, an observation and the time.
#[derive(Clone)]
pub struct GivenCompute {
    pub spec: ComputeSpec,
    pub observed: ComputeObserved,
    pub now: Timestamp,
}

impl GivenCompute {
    /// A Compute without any request so far, with a usable account and a project without computes.
    pub fn new() -> Self {
        let spec = json!({"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": BRANCH, "type": "ReadWrite"});
        let observed = ComputeObserved {
            meta: Meta {
                namespace: "shop".into(),
                name: "orders".into(),
                generation: GENERATION,
                ..Meta::default()
            },
            uid: "0a1b2c3d-4e5f".into(),
            account: AccountView::Usable { organization: None },
            memory: Memory::default(),
            limits: Limits {
                settle: SETTLE,
                ..Limits::default()
            },
            cluster: "c1u57e".parse().unwrap(),
            random: 7,
            facts: ComputeFacts {
                identity: Ok(ComputeIdentity::default()),
                wish: None,
                waiting_since: None,
                restart_annotation: None,
                not_created: BTreeSet::new(),
                platform: None,
                project_gone: false,
                snapshot: SnapshotState::Taken {
                    at: NOW,
                    computes: Listed::default(),
                },
                claims: Claims::default(),
                secret: SecretView::NotWanted,
                credentials: CredentialsView::NotWanted,
                last_seen: None,
                connection_secret: None,
                unused_secrets: Vec::new(),
                name_support: NameSupport::Unseen,
                returned: Vec::new(),
                stale_from: None,
            },
        };
        Self {
            spec: serde_json::from_value(spec).unwrap(),
            observed,
            now: NOW,
        }
    }

    /// A Compute whose compute ep-1 was created an hour ago and is as declared.
    pub fn bound() -> Self {
        let mut given = Self::new().seeing([compute("ep-1")]);
        given.observed.meta.has_finalizer = true;
        let binding = Binding {
            id: "ep-1".into(),
            project: "p-1".into(),
            platform: None,
            branch: Some(BRANCH.into()),
            origin: Origin::Created,
            at: at(-3600),
        };
        let restart = RestartRecord {
            at: at(-3600),
            ..RestartRecord::default()
        };
        given.identity(|identity| {
            identity.binding = Some(binding);
            identity.restart = Some(restart);
        })
    }

    /// A Compute whose create began 10 s ago and is not resolved.
    pub fn intended() -> Self {
        let (branch, baseline) = (BRANCH.into(), Some(["ep-0".into()].into()));
        let intent = CreateIntent {
            at: at(-10),
            branch,
            platform: None,
            baseline,
            newest: None,
            mark: None,
            asked: Some(Settings::default()),
        };
        let mut given = Self::new();
        given.observed.meta.has_finalizer = true;
        given.identity(|identity| identity.intent = Some(intent))
    }

    /// The record is invalid for this reason.
    pub fn with_invalid_record(self, problem: &InvalidAnnotation) -> Self {
        self.observing(|observed| observed.identity = Err(problem.clone()))
    }

    /// Merges more fields into the spec.
    pub fn declaring(mut self, more: Value) -> Self {
        let mut spec = serde_json::to_value(&self.spec).unwrap();
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.spec = serde_json::from_value(spec).unwrap();
        self
    }

    pub fn seeing(mut self, computes: impl IntoIterator<Item = Compute>) -> Self {
        self.observed.snapshot = SnapshotState::Taken {
            at: self.now,
            computes: computes.into_iter().collect(),
        };
        self
    }

    /// The same observation, `seconds` later.
    pub fn after(mut self, seconds: i64) -> Self {
        self.now = at(seconds);
        if let SnapshotState::Taken { at, .. } = &mut self.observed.snapshot {
            *at = self.now;
        }
        self
    }

    pub fn identity(mut self, edit: impl FnOnce(&mut ComputeIdentity)) -> Self {
        edit(self.observed.identity.as_mut().unwrap());
        self
    }

    pub fn intent(self, edit: impl FnOnce(&mut CreateIntent)) -> Self {
        self.identity(|identity| edit(identity.intent.as_mut().unwrap()))
    }

    pub fn binding(self, edit: impl FnOnce(&mut Binding)) -> Self {
        self.identity(|identity| edit(identity.binding.as_mut().unwrap()))
    }

    pub fn observing(mut self, edit: impl FnOnce(&mut ComputeObserved)) -> Self {
        edit(&mut self.observed);
        self
    }

    pub fn remembering(mut self, edit: impl FnOnce(&mut Memory)) -> Self {
        edit(&mut self.observed.memory);
        self
    }

    pub fn claimed(mut self, id: &str, first: bool) -> Self {
        self.observed.claims.bound.insert(
            id.into(),
            Claim {
                by: holder("other"),
                first,
            },
        );
        self
    }

    /// Lets an action fail now.
    pub fn failed(mut self, action: crate::decide::Action, fault: Fault) -> Self {
        let problem = crate::decide::memory::ActionProblem::Platform(fault);
        let recorded = self
            .observed
            .identity
            .as_ref()
            .ok()
            .and_then(ComputeIdentity::recorded);
        recorded
            .into_iter()
            .for_each(|at| self.observed.memory.recorded(action, at));
        self.observed
            .memory
            .failed(action, problem, self.observed.meta.generation, self.now);
        self
    }

    /// The spec with the settings of its schedules.
    pub fn in_force(&self) -> ComputeSpec {
        let agenda = super::schedules::agenda(
            &self.spec,
            self.observed.memory.agenda.as_ref(),
            GENERATION,
            self.now,
        );
        super::schedules::in_force(&self.spec, agenda.as_deref()).into_owned()
    }

    pub fn decide(&self) -> ComputeDecision {
        decide(&self.spec, &self.observed, self.now)
    }

    pub fn step(&self) -> ComputeStep {
        let choice = self.decide();
        let is_in_sync = |report: &Report| report.sync == Sync::InSync;
        assert!(!choice.report.iter().any(is_in_sync), "{choice:?}");
        choice
            .step
            .clone()
            .unwrap_or_else(|| panic!("no step: {choice:?}"))
    }

    /// The report; fails if the decision has a step.
    pub fn rest(&self) -> Reported {
        let choice = self.decide();
        assert_eq!(choice.step, None);
        Reported::of(choice)
    }
}

/// A decision without a step.
#[derive(Debug)]
pub struct Reported {
    pub health: Health,
    pub sync: Sync,
    pub wake: Wake,
}

impl Reported {
    fn of(choice: ComputeDecision) -> Self {
        let report = choice
            .report
            .unwrap_or_else(|| panic!("nothing is reported"));
        Self {
            health: report.health,
            sync: report.sync,
            wake: choice.wake,
        }
    }

    pub fn stalled(&self, reason: Reason, words: &[&str]) {
        let Health::Stalled(seen, text) = &self.health else {
            panic!("not stalled: {self:?}")
        };
        assert_eq!(*seen, reason, "{text}");
        mentions(text, words);
    }

    pub fn progressing(&self, reason: Reason) {
        assert!(
            matches!(&self.health, Health::Progressing(seen, _) if *seen == reason),
            "{self:?}"
        );
    }

    pub fn unknown(&self, reason: Reason) {
        assert!(
            matches!(&self.health, Health::Unknown(seen, _) if *seen == reason),
            "{self:?}"
        );
    }

    pub fn paused(&self) {
        assert!(matches!(&self.health, Health::Paused(_)), "{self:?}");
    }

    /// The compute serves, and declared settings are refused.
    pub fn refused(&self, reason: Reason, words: &[&str]) {
        self.ready();
        let Sync::Refused(seen, text) = &self.sync else {
            panic!("not refused: {self:?}")
        };
        assert_eq!(*seen, reason, "{text}");
        mentions(text, words);
    }

    pub fn ready(&self) {
        assert!(matches!(&self.health, Health::Ready(..)), "{self:?}");
    }

    pub fn in_sync(&self) {
        self.ready();
        assert_eq!(self.sync, Sync::InSync);
    }

    pub fn out_of_sync(&self, reason: Reason, words: &[&str]) {
        let Sync::OutOfSync(seen, text) = &self.sync else {
            panic!("not out of sync: {self:?}")
        };
        assert_eq!(*seen, reason, "{text}");
        mentions(text, words);
    }

    pub fn until(&self, time: Timestamp) {
        assert_eq!(self.wake, Wake::At(time));
    }
}

fn mentions(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}
