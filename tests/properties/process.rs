//! One operator process: its memory, and what its steps are performed with.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http;
use dbplane::api::{AccountRef, Compute};
use dbplane::cluster::{MetadataPatch, Note, Owner, SecretContent, SecretState};
use dbplane::controller::{Creating, Hands, Managed, Traces, Unsaved, Usable};
use dbplane::decide::Limits;
use dbplane::platform::{Endpoint, HttpOptions, HttpPlatform, LatestSnapshot, Observers, Tick, Transport, Unanswered};
use dbplane_simulator::world::message::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::SecretString;
use tokio::sync::mpsc::unbounded_channel;

use super::cluster::refused;
use super::faults::Fault;
use super::stage::{BASE_URL, REQUEST_TIMEOUT, Shared, Stage, TOKEN};

pub struct Process {
    pub stage: Shared,
    traces: Traces,
    unsaved: Unsaved,
    creating: Creating,
    /// The UIDs of the Computes that it knows of.
    known: BTreeSet<String>,
    /// Only for its clock.
    observers: Observers<String>,
    /// What the project was last seen like.
    pub view: LatestSnapshot,
}

pub fn limits() -> Limits {
    Limits::default()
}

impl Process {
    pub fn new(stage: &Shared) -> Self {
        Self {
            stage: stage.clone(),
            traces: Traces::default(),
            unsaved: Unsaved::default(),
            creating: Creating::default(),
            known: BTreeSet::new(),
            observers: Observers::new(unbounded_channel().0, || Timestamp::UNIX_EPOCH, || 0.5),
            view: LatestSnapshot::default(),
        }
    }

    /// Hears of Computes that are gone.
    pub fn hear(&mut self) {
        let there = self.stage.lock().cluster.all::<Compute>();
        let there: BTreeSet<String> = there.iter().filter_map(|compute| compute.uid()).collect();
        for gone in self.known.difference(&there) {
            self.creating.gone(gone);
        }
        self.known = there;
    }

    pub fn platform(&self) -> HttpPlatform {
        let endpoint =
            Endpoint { base_url: BASE_URL.into(), organization_id: Some("org".into()), allow_insecure: false };
        let wire = Arc::new(Wire(self.stage.clone()));
        HttpPlatform::over(wire, endpoint, &SecretString::from(TOKEN), &HttpOptions::default()).unwrap()
    }

    async fn cluster<T: Send>(
        &self,
        carry: impl Fn(&mut Stage) -> Result<T, kube::Error> + Send + Sync,
    ) -> Result<T, kube::Error> {
        let late = |stage: &mut Stage, _| drop(carry(stage));
        match self.stage.effect(&carry, late).await {
            Ok(outcome) => outcome,
            Err(Fault::Refused(409)) => Err(refused(409, "somebody else was faster")),
            Err(fault) => Err(refused(500, &format!("{fault:?}"))),
        }
    }

    async fn write<T: Send>(
        &self,
        what: &str,
        carry: impl Fn(&mut Stage) -> Result<T, kube::Error> + Send + Sync,
    ) -> Result<T, kube::Error> {
        self.cluster(|stage| {
            let done = carry(stage)?;
            stage.ledger.writes.push(what.to_owned());
            Ok(done)
        })
        .await
    }

    /// Writes a status.
    pub async fn say<K: Managed>(&self, object: &K, status: &serde_json::Value) -> Result<K, kube::Error> {
        self.change(object, |stage| stage.cluster.set_status(object, status), status).await
    }

    /// Changes an object, and counts that where it makes a difference.
    async fn change<K: Managed>(
        &self,
        object: &K,
        carry: impl Fn(&mut Stage) -> Result<(K, bool), kube::Error> + Send + Sync,
        what: &serde_json::Value,
    ) -> Result<K, kube::Error> {
        self.cluster(|stage| {
            let (changed, news) = carry(stage)?;
            if news {
                stage.ledger.writes.push(format!("{} {what}", object.name_any()));
            }
            Ok(changed)
        })
        .await
    }
}

impl Hands for Process {
    type Platform = HttpPlatform;

    fn now(&self) -> Timestamp {
        self.stage.lock().now
    }

    fn slack(&self) -> Duration {
        limits().settle.saturating_sub(REQUEST_TIMEOUT)
    }

    fn tick(&self) -> Tick {
        self.observers.tick()
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }

    fn unsaved(&self) -> &Unsaved {
        &self.unsaved
    }

    fn creating(&self) -> &Creating {
        &self.creating
    }

    fn account<K: Managed>(&self, _: &AccountRef, _: &K) -> Option<Usable<HttpPlatform>> {
        Some(Usable { platform: self.platform(), base_url: BASE_URL.into(), organization: Some("org".into()) })
    }

    fn base_url<K: Managed>(&self, _: &AccountRef, _: &K) -> String {
        BASE_URL.into()
    }

    async fn admit_change(&self, _: &HttpPlatform) -> Result<Option<HttpPlatform>, dbplane::platform::Fault> {
        Ok(Some(self.platform()))
    }

    async fn admit_key_creation(&self, _: &HttpPlatform) -> Result<Option<HttpPlatform>, dbplane::platform::Fault> {
        Ok(Some(self.platform()))
    }

    async fn patch<K: Managed>(&self, object: &K, links: &MetadataPatch) -> Result<K, kube::Error> {
        let patch = links.patch(object);
        self.change(object, |stage| stage.cluster.patch(object, &patch), &patch).await
    }

    async fn note<K: Managed>(&self, _: &K, note: &Note) {
        // What was done is told as well; that alone does not ask anybody to see to it.
        if note.warning {
            self.stage.lock().ledger.told.push_str(&format!("{}\n", note.text));
        }
    }

    async fn secret(&self, owner: &Owner, name: &str) -> Result<SecretState, kube::Error> {
        self.cluster(|stage| Ok(SecretState::of(stage.cluster.secrets.get(name).cloned(), owner))).await
    }

    async fn create_secret(&self, owner: &Owner, name: &str) -> Result<(), kube::Error> {
        self.write("a Secret is created", |stage| stage.cluster.create_secret(owner, name)).await
    }

    async fn write_secret(
        &self,
        owner: &Owner,
        name: &str,
        uid: Option<&str>,
        content: &SecretContent,
    ) -> Result<Secret, kube::Error> {
        self.write("a Secret is written", |stage| stage.cluster.write_secret(owner, (name, uid), content)).await
    }

    async fn adopt_secret(&self, owner: &Owner, name: &str, version: &str) -> Result<(), kube::Error> {
        self.write("a Secret is taken back", |stage| stage.cluster.adopt_secret(owner, name, version)).await
    }

    async fn dry_run_secret(&self, _: &Owner, _: &str, _: &SecretContent) -> Result<(), kube::Error> {
        self.cluster(|_| Ok(())).await
    }

    fn unwatch(&self, _: &Compute) {}

    fn account_may_go<K: Managed>(&self, _: &AccountRef, _: &K) {}
}

/// The way to the simulated platform.
#[derive(Debug)]
struct Wire(Shared);

#[async_trait]
impl Transport for Wire {
    async fn carry(&self, request: reqwest::Request) -> Result<reqwest::Response, Unanswered> {
        let arrived = translated(&request, self.0.lock().now);
        let now = |stage: &mut Stage| {
            let actor = stage.acting.clone();
            stage.carry(&arrived, actor.as_ref())
        };
        let answer = |status: u16, body: Vec<u8>| {
            let answer = http::Response::builder().status(status).body(body).unwrap();
            Ok(reqwest::Response::from(answer))
        };
        match self.0.effect(now, |stage, after| stage.post(arrived.clone(), after)).await {
            Ok(response) => answer(response.status, response.body),
            Err(Fault::Refused(status)) => answer(status, br#"{"message": "no"}"#.to_vec()),
            Err(Fault::Cut) => answer(201, b"{".to_vec()),
            Err(Fault::Unreachable) => Err(Unanswered { sent: false, message: "no connection".into() }),
            Err(fault) => Err(Unanswered { sent: true, message: format!("{fault:?}") }),
        }
    }
}

fn translated(request: &reqwest::Request, now: Timestamp) -> Request {
    let path = request.url().path().trim_start_matches("/api/v2").to_owned();
    let mut arrived = Request::new(Method::parse(request.method().as_str()), path, now);
    arrived.query = request.url().query().unwrap_or_default().to_owned();
    let authorization = request.headers().get("authorization").unwrap().to_str().unwrap();
    arrived = arrived.bearer(authorization.trim_start_matches("Bearer "));
    arrived.body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default().to_vec();
    arrived
}
