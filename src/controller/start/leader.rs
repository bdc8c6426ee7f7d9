//! Leader election by a Lease: one process at a time acts.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock;
use crate::cluster::explained;
use crate::controller::labels;
use crate::decide::names::LEASE;
use crate::leadership::Leadership;
use crate::leadership::lease::{LEASE_DURATION, LeaseCandidate, LeaseStep, LeaseView};

/// The timeout of one request, so that a leader has time for more if one renewal gets no answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// How often releasing the lease is tried, if it changes meanwhile or the API server refuses the
/// write. One renewal may be in progress, and earlier ones may never have been answered.
const RELEASES: usize = 4;
/// The pause before the next attempt after a refusal.
const RELEASE_PAUSE: Duration = Duration::from_secs(1);

/// The inputs of leader election. Use a thread of its own: the renewal of the lease must not wait
/// for passes.
pub struct Election {
    pub client: Client,
    /// Renews the lease.
    pub runtime: Handle,
    /// The right to make changes, which the lease gives.
    pub leadership: Leadership,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct Lead {
    pub leadership: Leadership,
    lost: CancellationToken,
    release: CancellationToken,
    renewal: JoinHandle<()>,
}

/// The current holder of the Lease in this namespace, or `None` if it was not renewed in time.
/// Writes nothing.
///
/// # Errors
/// If the Lease cannot be read.
pub async fn led_by(client: &Client, namespace: &str) -> kube::Result<Option<String>> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let mut candidate = LeaseCandidate::new(String::new());
    let mut first = None;
    loop {
        match candidate.next(clock::since_boot()) {
            LeaseStep::Write(_) => return Ok(None),
            LeaseStep::Wait(pause) => tokio::time::sleep(pause).await,
            LeaseStep::Read => {
                let lease = api.get_opt(LEASE).await?.as_ref().map(view);
                candidate.read(lease.clone(), clock::since_boot());
                let Some(LeaseView {
                    holder: Some(holder),
                    version,
                    ..
                }) = lease
                else {
                    continue;
                };
                if *first.get_or_insert_with(|| version.clone()) != version {
                    return Ok(Some(holder));
                }
            }
        }
    }
}

/// Waits for the lead; `None` if stopped first.
pub async fn lead(election: &Election, identity: &str, stop: &CancellationToken) -> Option<Lead> {
    let contender = Contender::new(election, identity);
    // A connection belongs to the runtime that made it, so all requests use the same runtime.
    let contender = election
        .runtime
        .spawn(contender.contend(stop.clone()))
        .await
        .ok()??;
    let leadership = election.leadership.clone();
    let (lost, release) = (CancellationToken::new(), CancellationToken::new());
    let renewal = election
        .runtime
        .spawn(contender.renew(lost.clone(), release.clone()));
    Some(Lead {
        leadership,
        lost,
        release,
        renewal,
    })
}

impl Lead {
    /// Returns when the lead is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Releases the lead, so that a successor need not wait for the lease to expire.
    pub async fn release(self) {
        self.release.cancel();
        let _ = self.renewal.await;
    }
}

/// A process that wants to lead, or leads, with its requests to the API server.
#[derive(Debug)]
struct Contender {
    api: Api<Lease>,
    candidate: LeaseCandidate,
    leadership: Leadership,
    /// As last read or written.
    lease: Option<Lease>,
}

impl Contender {
    fn new(election: &Election, identity: &str) -> Self {
        Self {
            api: Api::default_namespaced(election.client.clone()),
            // Another process with the same name, such as a restarted container, is another
            // candidate.
            candidate: LeaseCandidate::new(format!("{identity}_{:08x}", rand::random::<u32>())),
            leadership: election.leadership.clone(),
            lease: None,
        }
    }

    /// Waits for the lead; `None` if stopped first.
    async fn contend(mut self, stop: CancellationToken) -> Option<Self> {
        let identity = self.candidate.identity().to_owned();
        info!(lease = LEASE, identity, "waiting for the lead");
        while self.candidate.leads_until().is_none() {
            stop.run_until_cancelled(self.step()).await?;
        }
        info!(lease = LEASE, identity, action = labels::LEAD, "leading");
        Some(self)
    }

    /// Renews the lease until the lead is lost or released. If it cannot be renewed in time, nothing is
    /// changed until it is: as long as this process is the holder, no other one has led.
    async fn renew(mut self, lost: CancellationToken, release: CancellationToken) {
        let mut suspended = false;
        while self.candidate.leads_until().is_some() {
            tokio::select! {
                () = self.step() => {}
                () = release.cancelled() => return self.release().await,
            }
            let is_suspended =
                self.candidate.leads_until().is_some() && self.leadership.is_suspended();
            if std::mem::replace(&mut suspended, is_suspended) != suspended {
                if suspended {
                    warn!(
                        lease = LEASE,
                        "the lease could not be renewed in time: nothing is changed until it is"
                    )
                } else {
                    info!(lease = LEASE, "the lease is renewed: changes continue")
                }
            }
        }
        let identity = self.candidate.identity();
        warn!(
            lease = LEASE,
            identity,
            action = labels::LOSE_LEAD,
            "the lead is lost: another process has it"
        );
        lost.cancel();
    }

    /// Makes one request, or one pause.
    async fn step(&mut self) {
        let sent = clock::since_boot();
        let step = self.candidate.next(sent);
        let asked = match &step {
            LeaseStep::Wait(pause) => return tokio::time::sleep(*pause).await,
            LeaseStep::Read => self.within(self.api.get_opt(LEASE)).await,
            LeaseStep::Write(_) => self.within(self.write()).await.map(Some),
        };
        let now = clock::since_boot();
        match (step, asked) {
            (LeaseStep::Write(_), Ok(Some(lease))) => {
                self.candidate.written(view(&lease), sent, now);
                self.lease = Some(lease);
            }
            (_, Ok(lease)) => {
                self.candidate.read(lease.as_ref().map(view), now);
                self.lease = lease;
            }
            (LeaseStep::Write(_), Err(Failure::Changed)) => self.candidate.changed(),
            (_, Err(failure)) => {
                warn!(lease = LEASE, error = %failure, "the lease cannot be read or written");
                self.candidate.failed(now);
            }
        }
        match self.candidate.leads_until() {
            Some(until) => self.leadership.extend(until),
            None => self.leadership.lose(),
        }
    }

    /// Writes the lease with this process as holder, if it is unchanged since it was read.
    async fn write(&self) -> kube::Result<Lease> {
        let now = MicroTime(clock::now());
        let mut lease = self.lease.clone().unwrap_or_default();
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.candidate.identity()) {
            spec.holder_identity = Some(self.candidate.identity().to_owned());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(
                spec.lease_transitions
                    .map_or(0, |count| count.saturating_add(1)),
            );
        }
        spec.lease_duration_seconds = i32::try_from(LEASE_DURATION.as_secs()).ok();
        spec.renew_time = Some(now);
        match self.lease {
            Some(_) => {
                self.api
                    .replace(LEASE, &PostParams::default(), &lease)
                    .await
            }
            None => {
                lease.metadata.name = Some(LEASE.to_owned());
                self.api.create(&PostParams::default(), &lease).await
            }
        }
    }

    /// A renewal in progress may still be written meanwhile: then the lease is read again.
    async fn release(mut self) {
        self.leadership.end();
        let mut outcome = self.give_up().await;
        for _ in 1..RELEASES {
            match &outcome {
                Err(Failure::Changed) => match self.within(self.api.get_opt(LEASE)).await {
                    Ok(lease) => self.lease = lease,
                    Err(failure) => {
                        outcome = Err(failure);
                        continue;
                    }
                },
                Err(Failure::Refused(_)) => tokio::time::sleep(RELEASE_PAUSE).await,
                Ok(_) | Err(Failure::Unanswered) => break,
            }
            outcome = self.give_up().await;
        }
        let identity = self.candidate.identity();
        match outcome {
            Ok(true) => info!(
                lease = LEASE,
                identity,
                action = labels::RELEASE_LEAD,
                "the lead is released"
            ),
            Ok(false) => {}
            Err(failure) => {
                warn!(lease = LEASE, error = %failure, "the lease could not be released")
            }
        }
    }

    /// Removes this process as holder, if the lease is unchanged since it was read. Returns whether
    /// this process was the holder.
    async fn give_up(&self) -> Result<bool, Failure> {
        let Some(mut lease) = self.lease.clone() else {
            return Ok(false);
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.take().as_deref() != Some(self.candidate.identity()) {
            return Ok(false);
        }
        self.within(self.api.replace(LEASE, &PostParams::default(), &lease))
            .await
            .map(|_| true)
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(answer)) => Ok(answer),
            // Another process has written or deleted the lease.
            Ok(Err(kube::Error::Api(status)))
                if status.code == 409 || status.code == 404 && self.lease.is_some() =>
            {
                Err(Failure::Changed)
            }
            Ok(Err(error)) => Err(Failure::Refused(explained(&error))),
            Err(_) => Err(Failure::Unanswered),
        }
    }
}

/// Why a request for the lease failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it was changed meanwhile")]
    Changed,
    #[error("{0}")]
    Refused(String),
    #[error("no answer within {REQUEST_TIMEOUT:?}")]
    Unanswered,
}

fn view(lease: &Lease) -> LeaseView {
    let LeaseSpec {
        holder_identity,
        lease_duration_seconds,
        ..
    } = lease.spec.clone().unwrap_or_default();
    let seconds = lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .unwrap_or_default();
    LeaseView {
        holder: holder_identity.filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(seconds),
        version: lease.resource_version().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
