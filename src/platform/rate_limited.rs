//! The rate-limited client: the platform within the account's budget, without calls once the account's key was refused.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::Instant;

use super::gate::{Gate, proves_acceptance};
use super::organizations::Candidate;
use super::{Answer, Budget, FOR, Leadership, Party, Platform, PlatformClient, Priority};
use crate::domain::{
    Compute, ComputeChange, ComputeId, CreatedKey, Fault, KeyEntry, Listed, NewCompute, Operation, Project,
};
use crate::spans;

/// Records every call that was sent to the platform, or could not be.
pub trait Meter: Send + Sync {
    /// `call` is the method of [`Platform`]; `outcome` is `ok` or the fault's [`kind`](Fault::kind). `seconds` counts
    /// from the first byte sent: waiting for the budget is not in it.
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64);
}

/// Measures nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn call(&self, _: &'static str, _: &'static str, _: f64) {}
}

/// A platform within its account's budget, behind a gate.
///
/// After a 401 the gate is closed: calls answer [`Fault::KeyInDoubt`] without a request, until [`probing`](Self::probing) finds the
/// key accepted again, or [refused](PlatformClient::refused) for good: then they answer [`Fault::Unauthorized`]. Another key of the
/// account comes with another `RateLimited`. The 401 of [`probe_key`](Platform::probe_key) is about another key, so it does not close
/// the gate, and a gate that was closed for good does not stop that call. If the platform refuses the account's own key as well, that 401 is not passed on: it would look like a proof of revocation.
///
/// Clones share everything but the priority of their reads and the namespaces that they are for.
#[derive(Clone)]
pub struct RateLimited {
    shared: Arc<Shared>,
    reads: Priority,
    entry: Entry,
    leadership: Leadership,
    /// For whom requests are made, so that the budget is fair.
    party: Party,
}

struct Shared {
    inner: Arc<dyn Platform>,
    budget: Arc<Budget>,
    meter: Arc<dyn Meter>,
    gate: Gate,
    candidate: OnceLock<Candidate>,
}

impl Shared {
    async fn room(&self, priority: Priority, party: &Party) {
        spans::budget(priority.name(), self.budget.acquire(priority, party)).await;
    }

    async fn room_for_a_key(&self, party: &Party) {
        spans::budget(Priority::Change.name(), self.budget.acquire_key_creation(party)).await;
    }
}

/// What a call has to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    GateAndBudget,
    /// It checks whether the gate can be opened.
    Budget,
    /// Its room in the budget was taken before.
    Gate,
}

impl fmt::Debug for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited")
            .field("inner", &self.shared.inner)
            .field("budget", &self.shared.budget)
            .field("reads", &self.reads)
            .field("entry", &self.entry)
            .field("suspended", &self.suspended())
            .finish_non_exhaustive()
    }
}

/// How long a change waits while the platform asks to be left alone.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl RateLimited {
    /// `inner` within `budget`. The gate is open, and reads have the priority of [`Priority::FreshRead`].
    pub fn new(inner: Arc<dyn Platform>, budget: Arc<Budget>, meter: Arc<dyn Meter>) -> Self {
        let shared = Shared { inner, budget, meter, gate: Gate::open(), candidate: OnceLock::new() };
        let leadership = Leadership::default();
        Self {
            shared: Arc::new(shared),
            reads: Priority::FreshRead,
            entry: Entry::GateAndBudget,
            leadership,
            party: Party::default(),
        }
    }

    /// The same platform; changes are made only while `leadership` holds.
    #[must_use]
    pub fn while_leading(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// The same platform; once it accepts the key for its organization, it shares the budget of that.
    #[must_use]
    pub fn of_organization(self, candidate: Candidate) -> Self {
        // A client is of one organization.
        let _ = self.shared.candidate.set(candidate);
        self
    }

    /// The same platform; its reads wait as `priority` says. Changes always have [`Priority::Change`].
    #[must_use]
    pub fn at(&self, priority: Priority) -> Self {
        Self { reads: priority, ..self.clone() }
    }

    /// Waits for room in the budget, so that the caller can record when its read really begins.
    pub async fn admit(&self, priority: Priority, party: &Party) -> Admitted {
        if self.suspended().is_none() {
            self.shared.room(priority, party).await;
        }
        Admitted(Self { party: Arc::clone(party), ..self.with_place() })
    }

    /// Waits for room in the budget for one change, which the caller then makes through what is returned: a change whose
    /// beginning was recorded must not wait any more.
    ///
    /// # Errors
    /// [`Fault::Throttled`] where the platform asked to be left alone for longer than a caller should wait.
    pub async fn admit_change(&self) -> Result<Self, Fault> {
        self.not_paused()?;
        if self.suspended().is_none() {
            self.shared.room(Priority::Change, &self.party).await;
        }
        Ok(self.with_place())
    }

    /// The same for the creation of one key, which the platform limits more narrowly.
    ///
    /// # Errors
    /// As [`RateLimited::admit_change`].
    pub async fn admit_key_creation(&self) -> Result<Self, Fault> {
        self.not_paused()?;
        if self.suspended().is_none() {
            self.shared.room_for_a_key(&self.party).await;
        }
        Ok(self.with_place())
    }

    /// A caller that would wait for long gets a fault instead: it can then report why nothing happens, and can be stopped.
    fn not_paused(&self) -> Result<(), Fault> {
        match self.shared.budget.pause().filter(|pause| *pause > LONGEST_WAIT) {
            Some(pause) => Err(Fault::Throttled { status: 429, retry_after: Some(pause) }),
            None => Ok(()),
        }
    }

    /// Follows the gate: `Some` while it is closed.
    pub fn watch_gate(&self) -> watch::Receiver<Option<Fault>> {
        self.shared.gate.watch()
    }

    /// The budget that this platform's calls come from.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }

    /// Whether both are views of one credential, gate and budget.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    async fn read<T>(&self, name: &'static str, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.gate()?;
        if self.entry != Entry::Gate {
            self.shared.room(self.reads, &self.party).await;
        }
        // It may have closed while this call waited.
        self.gate()?;
        self.own(self.timed(name, call).await)
    }

    async fn change<T>(&self, name: &'static str, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.gate()?;
        if self.entry != Entry::Gate {
            self.not_paused()?;
            self.shared.room(Priority::Change, &self.party).await;
        }
        self.gate()?;
        self.leads()?;
        self.own(self.timed(name, call).await)
    }

    /// Asked right before a change is sent.
    fn leads(&self) -> Result<(), Fault> {
        let message = || "this process may no longer be the leader; nothing was sent".to_owned();
        self.leadership.holds().then_some(()).ok_or_else(|| Fault::Transport { message: message() })
    }

    /// A call for an organization that it names in its path was answered.
    fn organization<T>(&self, organization: &str, outcome: Result<T, Fault>) -> Result<T, Fault> {
        if outcome.is_ok()
            && !self.shared.budget.has_joined()
            && let Some(accepted) = self.shared.candidate.get().and_then(|it| it.accepted_for(organization))
        {
            self.shared.budget.join(accepted);
        }
        outcome
    }

    /// Whether the platform accepts the account's own key just now.
    async fn is_accepted(&self, project: &str) -> bool {
        proves_acceptance(&self.list_computes(project).await)
    }

    fn gate(&self) -> Result<(), Fault> {
        match self.shared.gate.why() {
            Some(fault) if self.entry != Entry::Budget => Err(fault),
            _ => Ok(()),
        }
    }

    /// What the outcome of a call with this account's own key shows of the key.
    fn own<T>(&self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        self.shared.gate.note(outcome, self.entry == Entry::Budget)
    }

    async fn timed<T>(&self, name: &'static str, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let start = Instant::now();
        let outcome = FOR.scope(Arc::clone(&self.party), call).await;
        let kind = outcome.as_ref().map_or_else(Fault::kind, |_| "ok");
        self.shared.meter.call(name, kind, start.elapsed().as_secs_f64());
        match &outcome {
            Err(Fault::Throttled { retry_after, .. }) => self.shared.budget.throttled(*retry_after),
            // For a change, 503 leaves the outcome unknown; for the account it also means a pause.
            Err(Fault::Server { status: 503, .. }) => self.shared.budget.throttled(None),
            Err(Fault::Transport { .. } | Fault::Unknown { .. } | Fault::Server { .. } | Fault::Gateway { .. }) => {}
            _ => self.shared.budget.succeeded(),
        }
        outcome
    }
}

/// Room in the budget for one read.
#[derive(Debug)]
pub struct Admitted(RateLimited);

impl Admitted {
    /// All computes of a project.
    ///
    /// # Errors
    /// As [`Platform::list_computes`].
    pub async fn list_computes(self, project: &str) -> Result<Listed<Compute>, Fault> {
        self.0.list_computes(project).await
    }

    /// All keys of an organization.
    ///
    /// # Errors
    /// As [`Platform::list_keys`].
    pub async fn list_keys(self, organization: &str) -> Result<Listed<KeyEntry>, Fault> {
        self.0.list_keys(organization).await
    }
}

impl PlatformClient for RateLimited {
    fn with_place(&self) -> Self {
        Self { entry: Entry::Gate, ..self.clone() }
    }

    /// The same platform, called although the gate may be closed; an answer that shows the key accepted opens it.
    fn probing(&self) -> Self {
        Self { entry: Entry::Budget, ..self.clone() }
    }

    fn for_namespace(&self, namespace: &str) -> Self {
        Self { party: Party::from([Arc::from(namespace)]), ..self.clone() }
    }

    fn refused(&self) {
        self.shared.gate.refuse();
    }

    /// The fault that closed the gate, while it is closed.
    fn suspended(&self) -> Option<Fault> {
        self.shared.gate.why()
    }

    fn is_held_elsewhere(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

#[async_trait]
impl Platform for RateLimited {
    async fn list_projects(&self) -> Result<Listed<Project>, Fault> {
        self.read("list_projects", self.shared.inner.list_projects()).await
    }

    async fn list_computes(&self, project: &str) -> Result<Listed<Compute>, Fault> {
        self.read("list_computes", self.shared.inner.list_computes(project)).await
    }

    async fn has_compute(&self, project: &str, compute: &str) -> Result<bool, Fault> {
        self.read("has_compute", self.shared.inner.has_compute(project, compute)).await
    }

    async fn create_compute(&self, project: &str, new: &NewCompute) -> Result<(Compute, Vec<Operation>), Fault> {
        self.change("create_compute", self.shared.inner.create_compute(project, new)).await
    }

    async fn update_compute(&self, project: &str, compute: &str, change: &ComputeChange) -> Result<Answer, Fault> {
        let call = self.shared.inner.update_compute(project, compute, change);
        self.change("update_compute", call).await
    }

    async fn delete_compute(&self, project: &str, compute: &ComputeId) -> Result<(), Fault> {
        self.change("delete_compute", self.shared.inner.delete_compute(project, compute)).await
    }

    async fn restart_compute(&self, project: &str, compute: &ComputeId) -> Result<Answer, Fault> {
        self.change("restart_compute", self.shared.inner.restart_compute(project, compute)).await
    }

    async fn create_key(&self, organization: &str, name: &str, project: &str) -> Result<CreatedKey, Fault> {
        self.gate()?;
        if self.entry != Entry::Gate {
            self.not_paused()?;
            self.shared.room_for_a_key(&self.party).await;
        }
        self.gate()?;
        self.leads()?;
        let call = self.shared.inner.create_key(organization, name, project);
        self.organization(organization, self.own(self.timed("create_key", call).await))
    }

    async fn probe_key(&self, secret: &SecretString, project: &str) -> Result<(), Fault> {
        if let Some(fault @ Fault::KeyInDoubt { .. }) = self.shared.gate.why() {
            return Err(fault);
        }
        self.shared.room(self.reads, &self.party).await;
        let asked = self.timed("probe_key", self.shared.inner.probe_key(secret, project)).await;
        match asked {
            Err(Fault::Unauthorized { .. }) if !self.is_accepted(project).await => {
                let message = "the platform refuses the key, but also the account's own: that does not show that the key is revoked".to_owned();
                Err(Fault::Unknown { message })
            }
            other => other,
        }
    }

    /// Nothing waits for it but a report.
    async fn list_operations(&self, project: &str, compute: &str) -> Result<Listed<Operation>, Fault> {
        let call = self.shared.inner.list_operations(project, compute);
        self.at(Priority::Poll).read("list_operations", call).await
    }

    async fn list_keys(&self, organization: &str) -> Result<Listed<KeyEntry>, Fault> {
        let listed = self.read("list_keys", self.shared.inner.list_keys(organization)).await;
        self.organization(organization, listed)
    }

    async fn revoke_key(&self, organization: &str, id: i64) -> Result<(), Fault> {
        self.change("revoke_key", self.shared.inner.revoke_key(organization, id)).await
    }
}

#[cfg(test)]
#[path = "rate_limited_tests.rs"]
mod tests;
