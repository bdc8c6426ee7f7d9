//! Collects data about the cluster and the operator's installation.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::GROUP;
use crate::cluster::explained;
use crate::controller;
use crate::decide::names::LEASE;

/// The label that the manifests and the chart set on all their objects.
const OPERATOR: &str = "app.kubernetes.io/name=dbplane";
const MOST_EVENTS: usize = 200;

type Section = Result<Value, String>;

fn failed(error: kube::Error) -> String {
    explained(&error)
}

pub async fn versions(client: &Client) -> Section {
    let server = client.apiserver_version().await.map_err(failed)?;
    Ok(
        json!({"dbplane": env!("CARGO_PKG_VERSION"), "kubernetes": server.git_version, "platform": server.platform}),
    )
}

pub async fn definitions(client: &Client) -> Section {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut found = Vec::new();
    for definition in controller::definitions() {
        let name = definition.name_any();
        found.push(match api.get_opt(&name).await.map_err(failed)? {
            None => json!({"definition": name, "isInstalled": false}),
            Some(installed) => json!({
                "definition": name,
                "isInstalled": true,
                "isOfThisVersion": is_same(&installed, &definition),
                "versions": installed.spec.versions.iter().map(|version| &version.name).collect::<Vec<_>>(),
                "storedVersions": installed.status.as_ref().and_then(|status| status.stored_versions.as_ref()),
            }),
        });
    }
    Ok(Value::Array(found))
}

fn is_same(installed: &CustomResourceDefinition, ours: &CustomResourceDefinition) -> bool {
    schemas(installed) == schemas(ours)
}

/// In the form that the API server stores, which leaves out `nullable: false`.
fn schemas(of: &CustomResourceDefinition) -> Value {
    let mut schemas = json!(
        of.spec
            .versions
            .iter()
            .map(|version| (&version.name, &version.schema))
            .collect::<Vec<_>>()
    );
    leave_out_false(&mut schemas);
    schemas
}

fn leave_out_false(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "nullable" || *value != Value::Bool(false));
            fields.values_mut().for_each(leave_out_false);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_false),
        _ => {}
    }
}

pub async fn lease(client: &Client, namespace: &str) -> Section {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let lease = api
        .get_opt(LEASE)
        .await
        .map_err(failed)?
        .ok_or("there is none; the operator may run without --leader-elect")?;
    let spec = lease.spec.unwrap_or_default();
    Ok(json!({
        "holder": spec.holder_identity,
        "acquired": spec.acquire_time,
        "renewed": spec.renew_time,
        "seconds": spec.lease_duration_seconds,
        "transitions": spec.lease_transitions,
    }))
}

pub async fn deployments(client: &Client, namespace: &str) -> Section {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let listed = api
        .list(&ListParams::default().labels(OPERATOR))
        .await
        .map_err(failed)?;
    let found = listed.into_iter().map(|deployment| {
        let (spec, status) = (deployment.spec.as_ref(), deployment.status.as_ref());
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        json!({
            "deployment": deployment.name_any(),
            "replicas": spec.and_then(|spec| spec.replicas),
            "available": status.and_then(|status| status.available_replicas),
            "containers": pod.map(|pod| pod.containers.iter().map(container).collect::<Vec<_>>()),
        })
    });
    Ok(found.collect())
}

/// Only the names of the environment variables: values may be secret.
fn container(container: &Container) -> Value {
    let environment = container
        .env
        .iter()
        .flatten()
        .map(|variable| &variable.name);
    json!({
        "container": container.name,
        "image": container.image,
        "args": container.args,
        "environment": environment.collect::<Vec<_>>(),
        "resources": container.resources,
    })
}

pub async fn pods(client: &Client, namespace: &str) -> Section {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let listed = api
        .list(&ListParams::default().labels(OPERATOR))
        .await
        .map_err(failed)?;
    let found = listed.into_iter().map(|pod| {
        let status = pod.status.clone().unwrap_or_default();
        json!({
            "pod": pod.name_any(),
            "phase": status.phase,
            "started": status.start_time,
            "containers": status.container_statuses.iter().flatten().map(container_status).collect::<Vec<_>>(),
        })
    });
    Ok(found.collect())
}

fn container_status(status: &ContainerStatus) -> Value {
    let ended = status
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    json!({
        "container": status.name,
        "ready": status.ready,
        "restarts": status.restart_count,
        "image": status.image_id,
        "endedBefore": ended.map(|ended| json!({"code": ended.exit_code, "reason": ended.reason, "at": ended.finished_at})),
    })
}

/// The latest events of dbplane's resources, newest first.
pub async fn events(client: &Client, namespace: Option<&str>) -> Section {
    let api: Api<Event> = namespace.map_or_else(
        || Api::all(client.clone()),
        |name| Api::namespaced(client.clone(), name),
    );
    let mut events = api
        .list(&ListParams::default())
        .await
        .map_err(failed)?
        .items;
    events.retain(|event| {
        let version = event
            .regarding
            .as_ref()
            .and_then(|of| of.api_version.as_deref());
        version.is_some_and(|version| version.starts_with(GROUP))
    });
    events.sort_by_key(|event| std::cmp::Reverse(last_seen(event)));
    Ok(events.iter().take(MOST_EVENTS).map(event).collect())
}

fn last_seen(event: &Event) -> Option<jiff::Timestamp> {
    let series = event
        .series
        .as_ref()
        .map(|series| series.last_observed_time.0);
    series.or_else(|| event.event_time.as_ref().map(|time| time.0))
}

fn event(event: &Event) -> Value {
    let regarding = event.regarding.as_ref();
    json!({
        "at": last_seen(event),
        "times": event.series.as_ref().map_or(1, |series| series.count),
        "type": event.type_,
        "reason": event.reason,
        "kind": regarding.and_then(|of| of.kind.as_ref()),
        "namespace": regarding.and_then(|of| of.namespace.as_ref()),
        "name": regarding.and_then(|of| of.name.as_ref()),
        "note": event.note,
    })
}
