//! The port to the API server for a plan: reads reach the cluster, and writes stay in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::Status;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::PlanError;
use super::objects::{Id, Objects, Preconditions};
use super::outside::Outside;
use super::secrets::{SecretName, SecretWrite, Secrets};
use super::steps::Step;
use super::trail::StepTrail;
use crate::api::Known;
use crate::cluster::{AppliedSecret, Cluster, Event, Object, merge};
use crate::decide::Recorded;

#[derive(Debug)]
pub struct InMemoryCluster {
    objects: Mutex<Objects>,
    secrets: Mutex<Secrets>,
    outside: Arc<dyn Outside>,
    trail: Arc<StepTrail>,
    now: Timestamp,
}

fn refused(code: u16) -> kube::Error {
    let message = match code {
        404 => "not found",
        409 => "somebody else was faster",
        _ => "not as its kind",
    };
    kube::Error::Api(Box::new(Status {
        code,
        message: message.to_owned(),
        ..Status::default()
    }))
}

fn read<K: Object>(value: Value) -> Result<K, kube::Error> {
    serde_json::from_value(value).map_err(kube::Error::SerdeError)
}

/// True if the user lacks the right for this request.
pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

impl InMemoryCluster {
    pub fn new(
        objects: Objects,
        secrets: Secrets,
        outside: Arc<dyn Outside>,
        trail: Arc<StepTrail>,
        now: Timestamp,
    ) -> Self {
        Self {
            objects: Mutex::new(objects),
            secrets: Mutex::new(secrets),
            outside,
            trail,
            now,
        }
    }

    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn trail(&self) -> &StepTrail {
        &self.trail
    }

    pub fn shared_trail(&self) -> Arc<StepTrail> {
        Arc::clone(&self.trail)
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Reads each Secret once. There is no plan if one may not be read, unless it is that of an
    /// account whose key the user gave.
    async fn known(&self, place: &SecretName) -> Result<Option<Secret>, kube::Error> {
        if let Some(known) = self.secrets().known.get(place) {
            return Ok(known.clone());
        }
        let secret = match self.outside.secret(&place.0, &place.1).await {
            Err(error) if is_forbidden(&error) => {
                let given = self.secrets().given.get(place).cloned();
                if given.is_none() {
                    self.trail.fail(PlanError::Secret {
                        namespace: place.0.clone(),
                        name: place.1.clone(),
                    });
                }
                Some(given.ok_or(error)?)
            }
            read => read?,
        };
        self.secrets().known.insert(place.clone(), secret.clone());
        Ok(secret)
    }

    /// Reports a write of a Secret.
    fn report_write(&self, name: &str, written: &SecretWrite) {
        if written.new || !written.entries.is_empty() {
            let entries = written.entries.iter().cloned().collect();
            self.trail.record(Step::WriteSecret {
                name: name.to_owned(),
                new: written.new,
                entries,
            });
        }
    }

    fn change<K: Object>(
        &self,
        object: &K,
        version: Option<&str>,
        change: impl FnOnce(&mut Value),
    ) -> Result<K, kube::Error> {
        let uid = object.uid();
        let expected = Preconditions {
            uid: uid.as_deref(),
            version,
        };
        let written = self
            .objects()
            .change(&Id::of(object), expected, change)
            .map_err(refused)?;
        self.forget_secrets();
        read(written)
    }

    /// Drops the Secrets of objects that are gone.
    fn forget_secrets(&self) {
        let uids: Vec<String> = {
            let objects = self.objects();
            objects
                .gone
                .iter()
                .filter_map(|(_, gone)| gone.value["metadata"]["uid"].as_str().map(str::to_owned))
                .collect()
        };
        for uid in &uids {
            self.secrets().collect(uid);
        }
    }
}

impl Cluster for InMemoryCluster {
    async fn patch<K: Object>(&self, object: &K, patch: &Value) -> Result<K, kube::Error> {
        let before = self.objects().value(&Id::of(object)).cloned();
        let version = patch["metadata"]["resourceVersion"].as_str();
        let patched = self.change(object, version, |stored| merge(stored, patch))?;
        if patch.get("spec").is_some()
            && before.is_some_and(|before| before["spec"] != json!(patched)["spec"])
        {
            self.trail.record(Step::ChangeObject {
                kind: K::kind(&()).into_owned(),
                name: object.name_any(),
            });
        }
        Ok(patched)
    }

    async fn apply_status<K>(&self, object: &K, status: &K::Status) -> Result<K, kube::Error>
    where
        K: Object + HasStatus<Status: Serialize + Sync>,
    {
        let status = json!(status);
        self.change(object, object.resource_version().as_deref(), |stored| {
            stored["status"] = status
        })
    }

    async fn current<K: Object>(&self, object: &K) -> Result<Option<K>, kube::Error> {
        let found = self.objects().value(&Id::of(object)).cloned();
        let found: Option<K> = found.map(read).transpose()?;
        Ok(found.filter(|found| found.meta().uid == object.meta().uid))
    }

    async fn exists<K: Object>(&self, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        let namespace = Some(namespace.to_owned());
        let id = Id {
            kind: K::kind(&()).into_owned(),
            namespace,
            name: name.to_owned(),
        };
        Ok(self.objects().value(&id).is_some())
    }

    async fn create<K: Object + Recorded>(&self, object: &K) -> Result<Known<K>, kube::Error> {
        let mut value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        value["apiVersion"] = json!(K::api_version(&()));
        value["kind"] = json!(K::kind(&()));
        let created = self.objects().create(value, self.now).map_err(refused)?;
        self.trail.record(Step::CreateObject {
            kind: K::kind(&()).into_owned(),
            name: object.name_any(),
        });
        read(created)
    }

    async fn delete<K: Object>(&self, object: &K) -> Result<(), kube::Error> {
        let (uid, version) = (object.uid(), object.resource_version());
        let expected = Preconditions {
            uid: uid.as_deref(),
            version: version.as_deref(),
        };
        self.objects()
            .delete(&Id::of(object), expected, self.now)
            .map_err(refused)?;
        self.forget_secrets();
        self.trail.record(Step::DeleteObject {
            kind: K::kind(&()).into_owned(),
            name: object.name_any(),
        });
        Ok(())
    }

    /// A plan publishes no events, because nothing happens.
    async fn publish<K: Object>(&self, _: &K, _: &Event) {}

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        self.known(&(namespace.to_owned(), name.to_owned())).await
    }

    async fn create_secret(&self, namespace: &str, secret: &Secret) -> Result<(), kube::Error> {
        let place = (namespace.to_owned(), secret.name_any());
        self.known(&place).await?;
        let written = self.secrets().create(&place, secret).map_err(refused)?;
        self.report_write(&place.1, &written);
        Ok(())
    }

    async fn apply_secret(
        &self,
        namespace: &str,
        secret: &AppliedSecret,
        dry_run: bool,
    ) -> Result<Secret, kube::Error> {
        self.known(&(namespace.to_owned(), secret.name.clone()))
            .await?;
        let (applied, written) = self
            .secrets()
            .apply(namespace, secret, dry_run)
            .map_err(refused)?;
        if !dry_run {
            self.report_write(&secret.name, &written);
        }
        Ok(applied)
    }

    async fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let place = (namespace.to_owned(), name.to_owned());
        self.known(&place).await?;
        let written = self.secrets().patch(&place, patch).map_err(refused)?;
        self.report_write(name, &written);
        Ok(())
    }

    async fn is_namespace_terminating(&self, name: &str) -> Result<bool, kube::Error> {
        match self.outside.is_namespace_terminating(name).await {
            Err(error) if is_forbidden(&error) => {
                self.trail.not_read(format!(
                    "Namespace {name}: you may not. It is assumed to stay."
                ));
                Ok(false)
            }
            other => other,
        }
    }
}
