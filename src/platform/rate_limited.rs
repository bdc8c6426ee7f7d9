//! The rate-limited client: it keeps to the account's budget, and stops once its key is refused.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::Instant;

use super::gate::{Gate, proves_acceptance};
use super::organizations::OrganizationClaim;
use super::{Budget, ChangeAnswer, FOR, Party, Platform, PlatformClient, Priority};
use crate::domain::{
    BranchId, Compute, ComputeChange, ComputeId, CreatedKey, Fault, KeyEntry, KeyId, Listed,
    NewCompute, Operation, OrganizationId, Project, ProjectId,
};
use crate::leadership::Leadership;
use crate::spans;

/// Records every call to the platform, including failed ones.
pub trait Meter: Send + Sync {
    /// `call` is the method of [`Platform`]; `outcome` is `ok` or the fault's
    /// [`kind`](Fault::kind). `seconds` does not include the wait for the budget.
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn call(&self, _: &'static str, _: &'static str, _: f64) {}
}

/// A platform within its account's budget, behind a gate.
///
/// A 401 closes the gate. Calls then fail with [`Fault::KeyInDoubt`] and send no request, until a
/// [`probing`](Self::probing) call shows that the key is accepted. After
/// [refused](PlatformClient::refused) they fail with [`Fault::Unauthorized`]. A new key of the
/// account gets a new `RateLimited`. [`probe_key`](Platform::probe_key) is about another key: its
/// 401 leaves the gate open, and it runs after `refused`. If the account's own key is refused too,
/// it does not return the 401: that would look like a revocation.
///
/// Clones share everything except the priority of their reads and their namespaces.
#[derive(Clone)]
pub struct RateLimited {
    shared: Arc<SharedClient>,
    reads: Priority,
    entry: Admittance,
    leadership: Leadership,
    /// The namespaces of the requests, for a fair budget.
    party: Party,
}

struct SharedClient {
    inner: Arc<dyn Platform>,
    budget: Arc<Budget>,
    meter: Arc<dyn Meter>,
    gate: Gate,
    candidate: OnceLock<OrganizationClaim>,
}

impl SharedClient {
    async fn room(&self, priority: Priority, party: &Party) {
        spans::budget(priority.name(), self.budget.acquire(priority, party)).await;
    }

    async fn room_for_a_key(&self, party: &Party) {
        spans::budget(
            Priority::Change.name(),
            self.budget.acquire_key_creation(party),
        )
        .await;
    }
}

/// The checks that a call has to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admittance {
    GateAndBudget,
    /// The call checks if the gate can be opened.
    Budget,
    /// The call already has its place in the budget.
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

/// The longest pause, as the platform asks for it, that a change waits for.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl RateLimited {
    /// `inner` within `budget`, with an open gate and reads of [`Priority::FreshRead`].
    pub fn new(inner: Arc<dyn Platform>, budget: Arc<Budget>, meter: Arc<dyn Meter>) -> Self {
        let shared = SharedClient {
            inner,
            budget,
            meter,
            gate: Gate::open(),
            candidate: OnceLock::new(),
        };
        let leadership = Leadership::default();
        Self {
            shared: Arc::new(shared),
            reads: Priority::FreshRead,
            entry: Admittance::GateAndBudget,
            leadership,
            party: Party::default(),
        }
    }

    /// The same platform, which makes changes only while `leadership` holds.
    #[must_use]
    pub fn while_leading(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// The same platform. After the key is accepted, it shares the organization's budget.
    #[must_use]
    pub fn of_organization(self, candidate: OrganizationClaim) -> Self {
        // A client has one organization.
        let _ = self.shared.candidate.set(candidate);
        self
    }

    /// The same platform, with reads of this priority. Changes always have [`Priority::Change`].
    #[must_use]
    pub fn at(&self, priority: Priority) -> Self {
        Self {
            reads: priority,
            ..self.clone()
        }
    }

    /// Waits for the budget, so that the caller can record the real start of its read.
    pub async fn admit(&self, priority: Priority, party: &Party) -> Admitted {
        self.leadership.resumed().await;
        if self.suspended().is_none() {
            self.shared.room(priority, party).await;
        }
        Admitted(Self {
            party: Arc::clone(party),
            ..self.with_place()
        })
    }

    /// Waits for the budget of one change, which the caller then makes with the result. A change
    /// whose intent is recorded must not wait any more.
    ///
    /// # Errors
    /// [`Fault::Throttled`] if the platform asked for a pause that is too long for a caller.
    pub async fn admit_change(&self) -> Result<Self, Fault> {
        self.not_paused()?;
        if self.suspended().is_none() {
            self.shared.room(Priority::Change, &self.party).await;
        }
        Ok(self.with_place())
    }

    /// The same for the create of one key, which the platform limits more strictly.
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

    /// Returns a fault instead of a long wait, so that the caller can report it and can be stopped.
    fn not_paused(&self) -> Result<(), Fault> {
        match self
            .shared
            .budget
            .pause()
            .filter(|pause| *pause > LONGEST_WAIT)
        {
            Some(pause) => Err(Fault::Throttled {
                status: 429,
                retry_after: Some(pause),
            }),
            None => Ok(()),
        }
    }

    /// Watches the gate: `Some` while it is closed.
    pub fn watch_gate(&self) -> watch::Receiver<Option<Fault>> {
        self.shared.gate.watch()
    }

    /// The budget of this platform's calls.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }

    /// True if both share one credential, gate and budget.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    async fn read<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        // Another process may lead and use the same rate limit.
        self.leadership.resumed().await;
        self.gate()?;
        if self.entry != Admittance::Gate {
            self.shared.room(self.reads, &self.party).await;
        }
        // The gate may have closed while this call waited.
        self.gate()?;
        self.own(self.timed(name, call).await)
    }

    async fn change<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.gate()?;
        if self.entry != Admittance::Gate {
            self.not_paused()?;
            self.shared.room(Priority::Change, &self.party).await;
        }
        self.gate()?;
        self.leads()?;
        self.own(self.timed(name, call).await)
    }

    /// Checked right before a change is sent.
    fn leads(&self) -> Result<(), Fault> {
        if self.leadership.holds() {
            return Ok(());
        }
        let message = "this process may no longer be the leader; nothing was sent".to_owned();
        Err(Fault::Transport { message })
    }

    /// Handles the answer to a call whose path names the organization.
    fn organization<T>(
        &self,
        organization: &OrganizationId,
        outcome: Result<T, Fault>,
    ) -> Result<T, Fault> {
        if outcome.is_ok()
            && !self.shared.budget.has_joined()
            && let Some(accepted) = self
                .shared
                .candidate
                .get()
                .and_then(|it| it.accepted_for(organization))
        {
            self.shared.budget.join(accepted);
        }
        outcome
    }

    /// True if the platform currently accepts the account's own key.
    async fn is_accepted(&self, project: &ProjectId) -> bool {
        proves_acceptance(&self.list_computes(project).await)
    }

    fn gate(&self) -> Result<(), Fault> {
        match self.shared.gate.why() {
            Some(fault) if self.entry != Admittance::Budget => Err(fault),
            _ => Ok(()),
        }
    }

    /// Updates the gate from the outcome of a call with the account's own key.
    fn own<T>(&self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        self.shared
            .gate
            .record(outcome, self.entry == Admittance::Budget)
    }

    async fn timed<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let start = Instant::now();
        let outcome = FOR.scope(Arc::clone(&self.party), call).await;
        let kind = outcome.as_ref().map_or_else(Fault::kind, |_| "ok");
        self.shared
            .meter
            .call(name, kind, start.elapsed().as_secs_f64());
        match &outcome {
            Err(Fault::Throttled { retry_after, .. }) => self.shared.budget.throttled(*retry_after),
            // For a change, 503 leaves the outcome unknown; the account pauses as well.
            Err(Fault::Server { status: 503, .. }) => self.shared.budget.throttled(None),
            Err(
                Fault::Transport { .. }
                | Fault::Unknown { .. }
                | Fault::Server { .. }
                | Fault::Gateway { .. },
            ) => {}
            _ => self.shared.budget.succeeded(),
        }
        outcome
    }
}

/// A place in the budget for one read.
#[derive(Debug)]
pub struct Admitted(RateLimited);

impl Admitted {
    /// All computes of a project.
    ///
    /// # Errors
    /// As [`Platform::list_computes`].
    pub async fn list_computes(self, project: &ProjectId) -> Result<Listed<Compute>, Fault> {
        self.0.list_computes(project).await
    }

    /// All keys of an organization.
    ///
    /// # Errors
    /// As [`Platform::list_keys`].
    pub async fn list_keys(self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        self.0.list_keys(organization).await
    }
}

impl PlatformClient for RateLimited {
    fn with_place(&self) -> Self {
        Self {
            entry: Admittance::Gate,
            ..self.clone()
        }
    }

    /// The same platform, called even if the gate is closed. An accepted key opens the gate.
    fn probing(&self) -> Self {
        Self {
            entry: Admittance::Budget,
            ..self.clone()
        }
    }

    fn for_namespace(&self, namespace: &str) -> Self {
        Self {
            party: Party::from([Arc::from(namespace)]),
            ..self.clone()
        }
    }

    fn refused(&self) {
        self.shared.gate.refuse();
    }

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
        self.read("list_projects", self.shared.inner.list_projects())
            .await
    }

    async fn list_computes(&self, project: &ProjectId) -> Result<Listed<Compute>, Fault> {
        self.read("list_computes", self.shared.inner.list_computes(project))
            .await
    }

    async fn has_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<bool, Fault> {
        self.read(
            "has_compute",
            self.shared.inner.has_compute(project, compute),
        )
        .await
    }

    async fn has_branch(&self, project: &ProjectId, branch: &BranchId) -> Result<bool, Fault> {
        self.read("has_branch", self.shared.inner.has_branch(project, branch))
            .await
    }

    async fn create_compute(
        &self,
        project: &ProjectId,
        new: &NewCompute,
    ) -> Result<(Compute, Vec<Operation>), Fault> {
        let call = self.shared.inner.create_compute(project, new);
        self.change("create_compute", call).await
    }

    async fn update_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
        change: &ComputeChange,
    ) -> Result<ChangeAnswer, Fault> {
        let call = self.shared.inner.update_compute(project, compute, change);
        self.change("update_compute", call).await
    }

    async fn delete_compute(&self, project: &ProjectId, compute: &ComputeId) -> Result<(), Fault> {
        let call = self.shared.inner.delete_compute(project, compute);
        self.change("delete_compute", call).await
    }

    async fn restart_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<ChangeAnswer, Fault> {
        self.change(
            "restart_compute",
            self.shared.inner.restart_compute(project, compute),
        )
        .await
    }

    async fn create_key(
        &self,
        organization: &OrganizationId,
        name: &str,
        project: &ProjectId,
    ) -> Result<CreatedKey, Fault> {
        self.gate()?;
        if self.entry != Admittance::Gate {
            self.not_paused()?;
            self.shared.room_for_a_key(&self.party).await;
        }
        self.gate()?;
        self.leads()?;
        let call = self.shared.inner.create_key(organization, name, project);
        self.organization(organization, self.own(self.timed("create_key", call).await))
    }

    async fn probe_key(&self, secret: &SecretString, project: &ProjectId) -> Result<(), Fault> {
        if let Some(fault @ Fault::KeyInDoubt { .. }) = self.shared.gate.why() {
            return Err(fault);
        }
        self.shared.room(self.reads, &self.party).await;
        let asked = self
            .timed("probe_key", self.shared.inner.probe_key(secret, project))
            .await;
        match asked {
            Err(Fault::Unauthorized { .. }) if !self.is_accepted(project).await => {
                let message = "the platform refuses the key, but also the account's own: that does not show that the key is revoked".to_owned();
                Err(Fault::Unknown { message })
            }
            other => other,
        }
    }

    /// Only a report waits for it.
    async fn list_operations(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<Listed<Operation>, Fault> {
        let call = self.shared.inner.list_operations(project, compute);
        self.at(Priority::Poll).read("list_operations", call).await
    }

    async fn list_keys(&self, organization: &OrganizationId) -> Result<Listed<KeyEntry>, Fault> {
        let listed = self
            .read("list_keys", self.shared.inner.list_keys(organization))
            .await;
        self.organization(organization, listed)
    }

    async fn revoke_key(&self, organization: &OrganizationId, id: KeyId) -> Result<(), Fault> {
        self.change("revoke_key", self.shared.inner.revoke_key(organization, id))
            .await
    }
}

#[cfg(test)]
mod tests;
