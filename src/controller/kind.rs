//! What the generic reconcile needs to know of a kind.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use crate::api::{AccountStatus, ComputeStatus, Condition, ProjectKeyStatus};
use crate::decide::memory::Problem;
use crate::decide::{Action, Brake, Decision, Memory, Meta, Report, names};

/// The status of a custom resource of ours.
pub trait Status: Clone + Default + PartialEq + Serialize + Send + Sync {
    fn conditions(&self) -> &[Condition];
}

impl Status for AccountStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

impl Status for ComputeStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

impl Status for ProjectKeyStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// A custom resource of ours.
pub trait Managed:
    Resource<DynamicType = ()>
    + HasStatus<Status: Status>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// The API that the object is reached by.
    fn api(&self, client: &Client) -> Api<Self>;

    /// What every observation says of the object itself.
    fn meta_observed(&self) -> Meta {
        Meta {
            namespace: self.namespace().unwrap_or_default(),
            name: self.name_any(),
            generation: self.meta().generation.unwrap_or_default(),
            deleting: self.meta().deletion_timestamp.is_some(),
            has_finalizer: self.finalizers().iter().any(|finalizer| finalizer == names::FINALIZER),
            paused: self.says(names::PAUSED),
            brake: Brake::of(
                self.says(names::CONFIRM_DELETION),
                self.status().map(Status::conditions).unwrap_or_default(),
            ),
        }
    }

    /// Whether people have set an annotation to "true".
    fn says(&self, annotation: &str) -> bool {
        self.annotations().get(annotation).is_some_and(|value| value == "true")
    }
}

/// The API of a namespaced object.
pub fn namespaced<K>(object: &K, client: &Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

/// How one kind is observed, decided on and acted on.
pub trait Kind: Send + Sync + 'static {
    type Object: Managed;
    type Observed: Send + Sync;
    type Step: Debug + Send + Sync;

    fn observe(
        context: &Context,
        object: &Self::Object,
        now: Timestamp,
    ) -> impl Future<Output = Result<Self::Observed, kube::Error>> + Send;

    fn decide(object: &Self::Object, observed: &Self::Observed, now: Timestamp) -> Decision<Self::Step>;

    fn perform(
        context: &Context,
        object: &Self::Object,
        observed: &Self::Observed,
        step: &Self::Step,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    fn status(
        report: &Report,
        object: &Self::Object,
        observed: &Self::Observed,
        now: Timestamp,
    ) -> <Self::Object as HasStatus>::Status;

    /// Puts what is remembered of the object where decisions see it.
    fn remember(observed: &mut Self::Observed, memory: Memory);

    /// What a step deletes or revokes on the platform.
    fn removes(_step: &Self::Step) -> Option<&str> {
        None
    }

    /// Puts what the resource is told by the brake on mass deletion where decisions see it.
    fn hold(_observed: &mut Self::Observed, _told: String) {}

    /// Tells others what was seen.
    fn conclude(_context: &Context, _object: &Self::Object, _observed: &Self::Observed) {}
}

/// Why a step could not be performed.
#[derive(Debug)]
pub enum StepError {
    /// It was refused or went wrong; that is remembered, and the next decision rests on it.
    Failed(Action, Problem),
    /// The API server could not be asked, or refuses.
    Cluster(kube::Error),
}

impl From<kube::Error> for StepError {
    fn from(error: kube::Error) -> Self {
        Self::Cluster(error)
    }
}

/// The stable identity of an object.
pub fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// An object shared by the controller.
pub type Shared<K> = Arc<<K as Kind>::Object>;
