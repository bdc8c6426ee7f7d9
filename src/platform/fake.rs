//! A platform for tests: it answers as the test says, and records its calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::time::Instant;

use super::{Budget, ChangeAnswer, Meter, Platform, Rate, RateLimited};
use crate::domain::{
    Compute, ComputeChange, ComputeId, ComputeState, CreatedKey, Fault, KeyEntry, KeyId, Listed,
    NewCompute, Operation, OrganizationId, Project, ProjectId, Role, Settings, Support,
    UnreadableEntry,
};

/// An idle primary.
pub(crate) fn compute(id: &str, branch: &str) -> Compute {
    Compute {
        id: id.into(),
        project_id: "p".into(),
        branch_id: branch.into(),
        region: None,
        role: Role::Primary,
        host: None,
        pooled_host: None,
        name: None,
        current_state: ComputeState::Idle,
        pending_state: None,
        settings: Settings::default(),
        last_active: None,
        created_at: None,
        updated_at: None,
        started_at: None,
        support: Support::default(),
    }
}

/// A key that was never used.
pub(super) fn key(id: i64, name: &str) -> KeyEntry {
    KeyEntry {
        id: KeyId(id),
        name: name.to_owned(),
        project_id: None,
        created_at: None,
        last_used_at: None,
        last_used_from: None,
    }
}

pub(super) fn unauthorized() -> Fault {
    Fault::Unauthorized {
        message: "revoked".to_owned(),
    }
}

pub(super) fn broken() -> Fault {
    Fault::Server {
        status: 500,
        message: "broken".to_owned(),
    }
}

/// A clock that always shows the same time.
pub(super) fn noon() -> Timestamp {
    Timestamp::constant(1_763_632_800, 0)
}

#[derive(Debug, Default)]
pub(super) struct Fake {
    pub computes: Mutex<Vec<Compute>>,
    pub keys: Mutex<Vec<KeyEntry>>,
    /// Computes that are listed as unreadable.
    pub unreadable: Mutex<Vec<UnreadableEntry>>,
    /// The fault of every call.
    pub fault: Mutex<Option<Fault>>,
    /// The only call that fails; all calls if this is `None`.
    failing: Mutex<Option<&'static str>>,
    /// The duration of a call.
    pub delay: Mutex<Duration>,
    pub panics: Mutex<bool>,
    calls: Mutex<Vec<(&'static str, Instant)>>,
}

impl Fake {
    pub fn of(computes: impl IntoIterator<Item = Compute>) -> Arc<Self> {
        let fake = Self::default();
        *fake.computes.lock().unwrap() = computes.into_iter().collect();
        Arc::new(fake)
    }

    pub fn fail(&self, fault: impl Into<Option<Fault>>) {
        *self.fault.lock().unwrap() = fault.into();
    }

    /// Makes only calls of this name fail.
    pub fn fail_only(&self, name: &'static str, fault: Fault) {
        *self.failing.lock().unwrap() = Some(name);
        self.fail(fault);
    }

    pub fn edit(&self, id: &str, edit: impl FnOnce(&mut Compute)) {
        let mut computes = self.computes.lock().unwrap();
        edit(
            computes
                .iter_mut()
                .find(|compute| compute.id == id)
                .unwrap(),
        );
    }

    pub fn calls(&self) -> Vec<&'static str> {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .map(|(name, _)| *name)
            .collect()
    }

    pub fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The times between calls, in seconds.
    pub fn gaps(&self) -> Vec<f64> {
        let calls = self.calls.lock().unwrap();
        calls
            .windows(2)
            .map(|pair| (pair[1].1 - pair[0].1).as_secs_f64())
            .collect()
    }

    /// With a budget that a test does not exhaust by accident.
    pub fn rate_limited(self: &Arc<Self>) -> Arc<RateLimited> {
        self.within(Rate {
            requests_per_minute: 6000,
            burst: 100,
        })
    }

    pub fn within(self: &Arc<Self>, rate: Rate) -> Arc<RateLimited> {
        let budget = Arc::new(Budget::with_jitter(rate, || 0.0));
        Arc::new(RateLimited::new(
            Arc::clone(self) as Arc<dyn Platform>,
            budget,
            Arc::new(super::NoMeter),
        ))
    }

    async fn called<T>(&self, name: &'static str, answer: impl FnOnce() -> T) -> Result<T, Fault> {
        self.calls.lock().unwrap().push((name, Instant::now()));
        let delay = *self.delay.lock().unwrap();
        // The answer shows the state at the start of the call.
        let answer = answer();
        tokio::time::sleep(delay).await;
        if *self.panics.lock().unwrap() {
            panic!("a bug");
        }
        let fails = self
            .failing
            .lock()
            .unwrap()
            .is_none_or(|failing| failing == name);
        match &*self.fault.lock().unwrap() {
            Some(fault) if fails => Err(fault.clone()),
            _ => Ok(answer),
        }
    }
}

#[async_trait]
impl Platform for Fake {
    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        self.called("list_projects", Listed::default).await
    }
    async fn list_computes(&self, _: &ProjectId) -> Result<Listed<Compute>, Fault> {
        self.called("list_computes", || {
            let unreadable = self.unreadable.lock().unwrap().clone();
            Listed::new(self.computes.lock().unwrap().clone(), unreadable.into())
        })
        .await
    }
    async fn has_compute(&self, _: &ProjectId, id: &ComputeId) -> Result<bool, Fault> {
        self.called("has_compute", || {
            self.computes
                .lock()
                .unwrap()
                .iter()
                .any(|compute| compute.id == *id)
        })
        .await
    }
    async fn create_compute(
        &self,
        _: &ProjectId,
        _: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        self.called("create_compute", || (compute("ep-new", "br-1"), Vec::new()))
            .await
    }
    async fn update_compute(
        &self,
        _: &ProjectId,
        _: &ComputeId,
        _: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault> {
        self.called("update_compute", ChangeAnswer::default).await
    }
    async fn delete_compute(&self, _: &ProjectId, _: &ComputeId) -> Result<(), Fault> {
        self.called("delete_compute", || ()).await
    }
    async fn restart_compute(&self, _: &ProjectId, _: &ComputeId) -> Result<ChangeAnswer, Fault> {
        self.called("restart_compute", ChangeAnswer::default).await
    }
    async fn create_key(
        &self,
        _: &OrganizationId,
        name: &str,
        _: &ProjectId,
    ) -> Result<CreatedKey, Fault> {
        let key = CreatedKey {
            id: KeyId(1),
            name: name.to_owned(),
            secret: SecretString::from("secret"),
            created_at: None,
            created_by: None,
            project_id: None,
        };
        self.called("create_key", || key).await
    }
    async fn probe_key(&self, _: &SecretString, _: &ProjectId) -> Result<(), Fault> {
        self.called("probe_key", || ()).await
    }
    async fn list_operations(
        &self,
        _: &ProjectId,
        _: &ComputeId,
    ) -> Result<Listed<Operation>, Fault> {
        self.called("list_operations", Listed::default).await
    }
    async fn list_keys(&self, _: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        self.called("list_keys", || self.keys.lock().unwrap().clone().into())
            .await
    }
    async fn revoke_key(&self, _: &OrganizationId, _: KeyId) -> Result<(), Fault> {
        self.called("revoke_key", || ()).await
    }
}

/// Records its measurements.
#[derive(Debug, Default)]
pub(super) struct Notes(pub Mutex<Vec<(&'static str, &'static str, f64)>>);

impl Meter for Notes {
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64) {
        self.0.lock().unwrap().push((call, outcome, seconds));
    }
}
