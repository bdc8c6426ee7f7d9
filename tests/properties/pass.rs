//! One pass over one resource, as `controller::reconcile` makes it: observe, decide, perform a step or say how things stand.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dbplane::api::{Compute, ProjectKey};
use dbplane::cluster::{Owner, SecretState, resource_version};
use dbplane::controller::{
    Hands, Managed, Seen, StepError, compute_ids, key_listing, key_secret_view, learn_compute, perform_compute,
    perform_key, secret_view,
};
use dbplane::decide::compute::{self, ComputeObserved, ComputeStep, Scope, SecretView, claims};
use dbplane::decide::key::{self, KeyObserved, KeySecretView, KeyStep, Probe};
use dbplane::decide::names::ClusterId;
use dbplane::decide::{AccountView, Decision, Memory, Report, Wake, identity, names};
use dbplane::platform::{Platform, Snapshot};
use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Resource as _, ResourceExt};
use serde_json::json;

use super::process::{Process, limits};
use super::stage::{BASE_URL, PROJECT, Resource};

/// What a pass came to.
pub enum End {
    /// Something was done, or went wrong: another pass is due.
    Again,
    /// Nothing to do until then.
    Rest(Option<Timestamp>),
    /// The process died.
    Died,
}

const POLL: Duration = Duration::from_secs(30);

impl Process {
    /// A reading of the project.
    pub fn read(&mut self) -> bool {
        let (began, at) = (self.tick(), self.now());
        self.stage.lock().acting = None;
        let platform = self.platform();
        let Poll::Ready(read) = poll(platform.list_computes(PROJECT)) else { return false };
        match read {
            Ok(mut computes) => {
                computes.sort_by(|one, other| one.id.cmp(&other.id));
                self.view.snapshot = Some(Arc::new(Snapshot { began, at, computes }));
                self.view.fault = None;
            }
            Err(fault) => self.view.fault = Some(fault),
        }
        true
    }

    pub fn pass(&self, resource: &Resource) -> End {
        self.stage.lock().acting = Some(resource.clone());
        let end = match resource.0 {
            "Compute" => poll(self.of_compute(&resource.1)),
            _ => poll(self.of_key(&resource.1)),
        };
        match end {
            Poll::Pending => End::Died,
            Poll::Ready(Ok(end)) => end,
            Poll::Ready(Err(_)) => End::Again,
        }
    }

    fn current<K: Managed>(&self, name: &str) -> Option<K> {
        let object = self.stage.lock().cluster.get::<K>(name)?;
        let known = self.traces().get(&object.uid()?).version;
        (known <= resource_version(&object)).then_some(object)
    }

    async fn of_compute(&self, name: &str) -> Result<End, kube::Error> {
        let Some(object) = self.current::<Compute>(name) else { return Ok(End::Rest(None)) };
        let now = self.now();
        let mut observed = self.observe_compute(&object, now).await?;
        let mut decision = compute::decide(&object.spec, &observed, now);
        if let Some(step) = decision.step.take() {
            let performed = perform_compute(self, &object, &step).await;
            match self.after(&object, performed)? {
                None => return Ok(End::Again),
                Some(memory) => observed.memory = memory,
            }
            decision = compute::decide(&object.spec, &observed, self.now());
        }
        let old = object.status.clone().unwrap_or_default();
        let status = |report: &Report| json!(compute::status(report, &observed, &old, now));
        self.conclude::<_, ComputeStep>(&object, decision, status).await
    }

    async fn of_key(&self, name: &str) -> Result<End, kube::Error> {
        let Some(object) = self.current::<ProjectKey>(name) else { return Ok(End::Rest(None)) };
        let now = self.now();
        let mut observed = self.observe_key(&object, now).await?;
        let mut decision = key::decide(&object.spec, &observed, now);
        if let Some(step) = decision.step.take() {
            let performed = perform_key(self, &object, &observed, &step).await;
            match self.after(&object, performed)? {
                None => return Ok(End::Again),
                Some(memory) => observed.memory = memory,
            }
            decision = key::decide(&object.spec, &observed, self.now());
        }
        let old = object.status.clone().unwrap_or_default();
        let status = |report: &Report| json!(key::status(report, &observed, &old, &object.spec, now));
        self.conclude::<_, KeyStep>(&object, decision, status).await
    }

    /// What is remembered of a step that failed, where the pass goes on.
    fn after<K: Managed>(&self, object: &K, performed: Result<(), StepError>) -> Result<Option<Memory>, kube::Error> {
        match performed {
            Ok(()) => Ok(None),
            Err(StepError::Cluster(error)) => Err(error),
            Err(StepError::Failed(action, problem)) => {
                let (generation, now) = (object.meta().generation.unwrap(), self.now());
                let trace = self.traces().update(&object.uid().unwrap(), |trace| {
                    trace.memory.failed(action, problem, generation, now);
                    trace.clone()
                });
                Ok((trace.version <= resource_version(object)).then_some(trace.memory))
            }
        }
    }

    async fn conclude<K: Managed + HasStatus, S>(
        &self,
        object: &K,
        decision: Decision<S>,
        status: impl Fn(&Report) -> serde_json::Value,
    ) -> Result<End, kube::Error> {
        if decision.step.is_some() {
            return Ok(End::Again);
        }
        // Something is not known yet.
        let Some(report) = &decision.report else { return Ok(End::Again) };
        {
            let status = status(report);
            if json!(object.status()) != status {
                let version = resource_version(&self.say(object, &status).await?);
                self.traces().update(&object.uid().unwrap(), |trace| trace.version = trace.version.max(version));
            }
        }
        Ok(End::Rest(match decision.wake {
            Wake::OnChange => None,
            Wake::At(time) => Some(time),
        }))
    }

    async fn observe_compute(&self, object: &Compute, now: Timestamp) -> Result<ComputeObserved, kube::Error> {
        let uid = object.uid().unwrap();
        let meta = object.meta_observed();
        let identity = identity::of_compute(object.annotations(), meta.object_key());
        let known = identity.clone().unwrap_or_default();
        let tick = (known.binding.is_none() && self.traces().get(&uid).wrote.is_none()).then(|| self.tick());
        let wrote = self.traces().update(&uid, |trace| {
            trace.wrote = tick.or(trace.wrote);
            trace.wrote
        });
        let seen = Seen::in_view(object, &known, &self.view, wrote, (now, POLL + limits().settle));
        let Seen { snapshot, name_support, stale_from } = seen;
        let memory = self.traces().update(&uid, |trace| {
            learn_compute(&mut trace.memory, object, &known, &snapshot, now);
            trace.memory.clone()
        });
        if known.binding.is_some() || known.intent.is_none() {
            self.creating().unless_running(&uid);
        }
        let ids = compute_ids(&known, &snapshot);
        let scope = Scope::of(object, &known, &ids);
        let others = self.stage.lock().cluster.all::<Compute>();
        let others: Vec<_> =
            others.into_iter().filter(|other| other.uid().as_ref() != Some(&uid) && scope.concerns(other)).collect();
        let claims = claims(object, &others, |uid| self.creating().has(uid));
        Ok(ComputeObserved {
            meta,
            identity,
            account: AccountView::Usable { organization: Some("org".into()) },
            snapshot,
            claims,
            secret: self.connection(object).await?,
            name_support,
            memory,
            stale_from,
            limits: limits(),
            cluster: cluster(),
            draw: self.draw(),
            uid,
        })
    }

    async fn connection(&self, object: &Compute) -> Result<SecretView, kube::Error> {
        let (Some(connection), Some(owner)) = (&object.spec.connection, Owner::of(object)) else {
            return Ok(SecretView::NotWanted);
        };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(SecretView::NotWanted);
        }
        Ok(secret_view(&owner, self.secret(&owner, &connection.secret_name).await?))
    }

    async fn observe_key(&self, object: &ProjectKey, now: Timestamp) -> Result<KeyObserved, kube::Error> {
        let uid = object.uid().unwrap();
        let meta = object.meta_observed();
        let identity = identity::of_key(object.annotations(), meta.object_key());
        let intended = identity.as_ref().ok().and_then(|identity| identity.intent.as_ref()).map(|intent| intent.at);
        let trace = self.traces().update(&uid, |trace| {
            trace.memory.note_unresolved(intended, now);
            trace.clone()
        });
        let owner = Owner::of(object).unwrap();
        let state: SecretState = self.secret(&owner, &object.spec.secret.name).await?;
        let (secret, secret_deleting): (KeySecretView, bool) = key_secret_view(&object.spec, state, BASE_URL);
        Ok(KeyObserved {
            meta,
            account: AccountView::Usable { organization: Some("org".into()) },
            rival: None,
            secret,
            secret_deleting,
            revoked: object.annotations().get(names::REVOKED_KEYS).cloned(),
            created: object.meta().creation_timestamp.as_ref().map_or(now, |time| time.0),
            identity,
            listing: key_listing(trace.key.listing, now),
            probe: trace.key.probe.unwrap_or(Probe::NotAsked(None)),
            unsaved: self.unsaved().get(&uid).map(|unsaved| unsaved.key),
            memory: trace.memory,
            limits: limits(),
            cluster: cluster(),
            draw: self.draw(),
            uid,
        })
    }

    /// Another number for each pass: the clock does not stand still between two.
    fn draw(&self) -> u32 {
        let nanos = self.now().as_millisecond();
        u32::try_from(nanos.rem_euclid(i64::from(u32::MAX))).unwrap()
    }
}

fn cluster() -> ClusterId {
    "c1u57e".parse().unwrap()
}

/// Runs what waits for nothing but effects, which end at once; pending is what died.
fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
