//! Stores all statuses that the controller writes: the API server silently drops fields that are
//! not in the definitions.

use std::fmt::Debug;

use dbplane::api::{
    Account, AccountCapabilities, AccountStatus, Capacity, ClusterAccount, Compute, ComputeStatus,
    ComputeType, Condition, KeyRecord, LastOperation, MaintenanceStatus, NotApplied, ProjectKey,
    ProjectKeyStatus, RestartStatus, ScheduleStatus, SeenProjects, ServiceBinding, WaitingChanges,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::object::HasStatus;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster;
use dbplane::domain::KeyId;

/// A time with a fraction, as real clocks have.
fn instant() -> Timestamp {
    "2026-11-20T10:00:00.123456789Z".parse().unwrap()
}

fn conditions() -> Vec<Condition> {
    vec![Condition {
        last_transition_time: Time("2026-11-20T10:00:00Z".parse().unwrap()),
        message: String::new(),
        observed_generation: Some(1),
        reason: "Ready".to_owned(),
        status: "True".to_owned(),
        type_: "Ready".to_owned(),
    }]
}

async fn comes_back<K, S>(api: Api<K>, spec: Value, status: S)
where
    K: Resource<DynamicType = ()>
        + HasStatus<Status = S>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
    S: Clone + Debug + PartialEq + Serialize,
{
    let (version, kind) = (K::api_version(&()), K::kind(&()));
    let object =
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "full"}, "spec": spec});
    let created = api
        .create(
            &PostParams::default(),
            &serde_json::from_value(object).unwrap(),
        )
        .await
        .unwrap();
    // No operator has observed it. kstatus reports InProgress, because the observed generation
    // differs from its own.
    let not_observed = json!({"observedGeneration": -1});
    assert_eq!(
        serde_json::to_value(created.status()).unwrap(),
        not_observed
    );
    let read = api.get(&created.name_any()).await.unwrap();
    assert_eq!(serde_json::to_value(read.status()).unwrap(), not_observed);
    let patch = json!({"apiVersion": version, "kind": kind, "status": status});
    let mut params = PatchParams::apply("test");
    params.field_validation = Some(ValidationDirective::Strict);

    let stored = api
        .patch_status(&created.name_any(), &params, &Patch::Apply(&patch))
        .await
        .unwrap();

    assert_eq!(stored.status(), Some(&status));
}

async fn client() -> Client {
    cluster().await.client().await.unwrap()
}

fn account_status() -> AccountStatus {
    AccountStatus {
        project_count: Some(2),
        checked_at: Some(Timestamp::constant(1_800_000_000, 0)),
        organization_keys: Some(9_000),
        organization_keys_at: Some(Timestamp::constant(1_800_000_000, 0)),
        projects: vec!["a".into(), "b".into()],
        in_use: true,
        seen_projects: Some(SeenProjects {
            base_url: "https://platform.example/api/v2".to_owned(),
            organization_id: Some("org-1".into()),
            secret_uid: "uid-1".to_owned(),
            secret_version: "7".to_owned(),
            projects: vec!["a".into()],
        }),
        capabilities: Some(AccountCapabilities {
            key_listing: true,
            compute_names: false,
            scale_to_zero: true,
        }),
        conditions: conditions(),
        last_handled_reconcile_at: Some("now".to_owned()),
        observed_generation: Some(1),
    }
}

#[tokio::test]
async fn of_an_account() {
    let spec = json!({"baseURL": "https://platform.example/v2", "apiKeySecretRef": {"name": "a"}});
    comes_back::<Account, _>(
        Api::default_namespaced(client().await),
        spec,
        account_status(),
    )
    .await;
}

#[tokio::test]
async fn of_a_cluster_account() {
    let secret = json!({"namespace": "a", "name": "a"});
    let spec = json!({"baseURL": "https://platform.example/v2", "apiKeySecretRef": secret});
    comes_back::<ClusterAccount, _>(Api::all(client().await), spec, account_status()).await;
}

fn capacity() -> Capacity {
    Capacity {
        vcpu: "4".to_owned(),
        memory: "16GB".to_owned(),
        local_file_cache: "12.8GB".to_owned(),
        max_connections: 112,
    }
}

fn compute_status() -> ComputeStatus {
    let text = |text: &str| Some(text.to_owned());
    ComputeStatus {
        compute_id: Some("ep-1".into()),
        type_: Some(ComputeType::ReadOnly),
        region: text("region-1"),
        created_at: Some(instant()),
        host: text("ep-1.platform.example"),
        pooled_host: text("ep-1-pooler.platform.example"),
        state: text("active"),
        pending_state: text("idle"),
        last_seen_serving: Some(true),
        unseen_since: Some(instant()),
        size: text("0.25-4"),
        capacity: Some(Box::new(capacity())),
        last_active: Some(instant()),
        last_operation: Some(LastOperation {
            id: "1".to_owned(),
            action: "start_compute".to_owned(),
            status: "running".to_owned(),
            failures: Some(2),
            error: text("no room"),
        }),
        waiting: Some(Box::new(WaitingChanges {
            changes: "size is 1, declared is 2".to_owned(),
            since: instant(),
            until: Some(instant()),
        })),
        not_applied: vec![NotApplied {
            setting: "scaleToZero".to_owned(),
            declared: "after 600s".to_owned(),
            since: instant(),
        }],
        restart: Some(Box::new(RestartStatus {
            token: "1".to_owned(),
            requested_at: Some(instant()),
            completed_at: Some(instant()),
        })),
        maintenance: Some(Box::new(MaintenanceStatus {
            next_restart: Some(instant()),
            missed: Some(instant()),
        })),
        schedule: Some(Box::new(ScheduleStatus {
            applies: "office".to_owned(),
            overridden: text("night"),
            next: text("2026-11-23T17:00:00Z size 1 (no schedule)"),
        })),
        connection_secret: Some("orders-db".to_owned()),
        binding: Some(ServiceBinding {
            name: "orders-db".to_owned(),
        }),
        unused_secrets: vec!["orders".to_owned()],
        conditions: conditions(),
        record: Some("{}".to_owned()),
        last_handled_reconcile_at: Some("now".to_owned()),
        observed_generation: Some(1),
    }
}

#[tokio::test]
async fn of_a_compute() {
    let spec = json!({"accountRef": {"name": "a"}, "projectID": "p", "branchID": "b", "type": "ReadWrite"});
    comes_back::<Compute, _>(
        Api::default_namespaced(client().await),
        spec,
        compute_status(),
    )
    .await;
}

#[tokio::test]
async fn of_a_project_key() {
    let record = |id| KeyRecord {
        id,
        name: "ci-1".to_owned(),
        since: instant(),
        revoke_at: id.map(|_| instant()),
    };
    let status = ProjectKeyStatus {
        key_id: Some(KeyId(i64::MAX)),
        key_name: Some("ci-2".to_owned()),
        created_at: Some(instant()),
        created_by: Some("user-1".to_owned()),
        secret_name: Some("ci".to_owned()),
        last_used_at: Some(instant()),
        last_used_from: Some("192.0.2.1".to_owned()),
        rotated_at: Some(instant()),
        previous_keys: vec![record(Some(KeyId(1)))],
        acknowledged_keys: vec!["ci-c1u57e-0a1b2c3d-00000001".to_owned()],
        lost_keys: vec![record(None)],
        conditions: conditions(),
        record: Some("{}".to_owned()),
        last_handled_reconcile_at: Some("now".to_owned()),
        last_handled_rotate: Some("now".to_owned()),
        observed_generation: Some(1),
    };
    let spec = json!({"accountRef": {"name": "a"}, "projectID": "p", "keyName": "ci", "secret": {"name": "ci"}});
    comes_back::<ProjectKey, _>(Api::default_namespaced(client().await), spec, status).await;
}
