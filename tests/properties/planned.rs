//! The operator makes exactly the calls of the plan, for every recorded resource.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::http;
use dbplane::api::PlatformAccess;
use dbplane::controller::environment::PassSettings;
use dbplane::decide::Limits;
use dbplane::plan::{self, Beginning, Outside, Plan, Planned, PlannedStep};
use dbplane::platform::{
    ConnectError, Endpoint, HttpOptions, HttpPlatform, Platform, Platforms, Reach, Transport,
    Unanswered,
};
use dbplane_simulator::world::message::Method;
use dbplane_simulator::world::{Profile, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use secrecy::SecretString;
use serde_json::Value;

use super::ledger::Changed;
use super::process::{Process, poll, translated};
use super::recorded::{run_until_stable, stored};
use super::simulation::{REQUEST_TIMEOUT, Shared};
use super::upgrade::{BEFORE, Recording, folder};

/// A read-only copy of the cluster and the platform at one moment.
#[derive(Clone)]
struct Frozen {
    now: Timestamp,
    secrets: Arc<BTreeMap<String, Secret>>,
    world: Arc<Mutex<World>>,
    /// Requests other than reads.
    writes: Arc<Mutex<Vec<String>>>,
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frozen")
    }
}

impl Frozen {
    fn of(simulation: &Shared) -> Self {
        let simulation = simulation.lock();
        let secrets = simulation
            .cluster
            .secrets
            .iter()
            .map(|(name, secret)| (name.clone(), secret.clone_inner()));
        Self {
            now: simulation.now,
            secrets: Arc::new(secrets.collect()),
            world: Arc::new(Mutex::new(simulation.world.clone())),
            writes: Arc::default(),
        }
    }
}

#[async_trait]
impl Outside for Frozen {
    async fn secret(&self, _: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        Ok(self.secrets.get(name).cloned())
    }

    async fn is_namespace_terminating(&self, _: &str) -> Result<bool, kube::Error> {
        Ok(false)
    }

    fn connect(
        &self,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Arc<dyn Platform>, ConnectError> {
        let endpoint = Endpoint {
            base_url: access.base_url.clone(),
            organization_id: access.organization_id.clone(),
            reach: Reach {
                insecure: true,
                ..Reach::default()
            },
        };
        Ok(Arc::new(HttpPlatform::over(
            Arc::new(self.clone()),
            endpoint,
            key,
            &HttpOptions::default(),
        )?))
    }
}

#[async_trait]
impl Transport for Frozen {
    async fn carry(&self, request: reqwest::Request) -> Result<reqwest::Response, Unanswered> {
        let arrived = translated(&request, self.now);
        if arrived.method != Method::Get {
            self.writes
                .lock()
                .unwrap()
                .push(format!("{:?} {}", arrived.method, arrived.path));
        }
        let response = self.world.lock().unwrap().respond(&arrived, self.now);
        Ok(reqwest::Response::from(
            http::Response::builder()
                .status(response.status)
                .body(response.body)
                .unwrap(),
        ))
    }
}

/// The plan for all resources.
pub fn plan_of(simulation: &Shared) -> Plan {
    let frozen = Frozen::of(simulation);
    let objects: Vec<Value> = simulation
        .lock()
        .cluster
        .objects
        .values()
        .map(|stored| stored.value.clone())
        .collect();
    let selected: BTreeSet<_> = objects.iter().filter_map(plan::Id::of_value).collect();
    let beginning = Beginning {
        now: frozen.now,
        settings: PassSettings {
            limits: Limits {
                deletes_per_minute: 1000,
                ..Limits::default()
            },
            request_timeout: REQUEST_TIMEOUT,
            cluster: "c1u57e".parse().unwrap(),
            namespaces: Vec::new(),
            cluster_accounts: true,
            platforms: Platforms::default(),
        },
        objects,
        namespaces: BTreeMap::from([("shop".to_owned(), BTreeMap::new())]),
        manifests: Vec::new(),
        namespace: "shop".to_owned(),
        selected,
        given: None,
        not_read: Vec::new(),
    };
    let std::task::Poll::Ready(made) = poll(plan::make(beginning, Arc::new(frozen.clone()))) else {
        panic!("a plan waits for nothing")
    };
    assert_eq!(
        *frozen.writes.lock().unwrap(),
        [] as [String; 0],
        "a plan only reads"
    );
    let plan = made.unwrap();
    assert_eq!(plan.not_read, [] as [String; 0]);
    plan
}

/// A planned step as a call: verb, target and attributes, in the format of `made_call`.
fn planned_call(step: &PlannedStep) -> Option<String> {
    let fields = |fields: &[plan::FieldChange]| {
        let words: BTreeSet<String> = fields
            .iter()
            .map(|field| match field.field.as_str() {
                "size" => format!("size={}", field.after),
                "branchID" => format!("branchID={}", field.after),
                name => name.to_owned(),
            })
            .collect();
        words.into_iter().collect::<Vec<_>>().join(" ")
    };
    match step {
        PlannedStep::CreateCompute {
            branch,
            type_,
            fields: set,
            ..
        } => Some(format!("create {type_} on {branch}: {}", fields(set))),
        PlannedStep::ChangeCompute {
            compute,
            fields: set,
            ..
        } => Some(format!("change {compute}: {}", fields(set))),
        PlannedStep::RestartCompute { compute, .. } => Some(format!("restart {compute}")),
        PlannedStep::DeleteCompute { compute, .. } => Some(format!("delete {compute}")),
        PlannedStep::CreateKey { .. } => Some("create key".to_owned()),
        PlannedStep::RevokeKey { key } => Some(format!("revoke {key}")),
        _ => None,
    }
}

/// The attributes that a request sends, named as in the spec.
fn sent(endpoint: &Value) -> String {
    let mut words = BTreeSet::new();
    let units = |name: &str| endpoint[name].as_f64();
    if let (Some(min), Some(max)) = (
        units("autoscaling_limit_min_cu"),
        units("autoscaling_limit_max_cu"),
    ) {
        words.insert(if min.to_bits() == max.to_bits() {
            format!("size={min}")
        } else {
            format!("size={min}-{max}")
        });
    }
    for (name, word) in [
        ("suspend_timeout_seconds", "scaleToZero"),
        ("pooler_enabled", "pooler.enabled"),
        ("pooler_mode", "pooler.mode"),
        ("passwordless_access", "passwordlessAccess"),
        ("disabled", "disabled"),
    ] {
        words.extend((!endpoint[name].is_null()).then(|| word.to_owned()));
    }
    let postgres = endpoint["settings"]["pg_settings"].as_object();
    words.extend(
        postgres
            .into_iter()
            .flatten()
            .map(|(name, _)| format!("postgresSettings.{name}")),
    );
    words.into_iter().collect::<Vec<_>>().join(" ")
}

pub fn made_call(changed: &Changed, new: &BTreeSet<String>) -> String {
    let body: Value = serde_json::from_slice(&changed.request.body).unwrap_or_default();
    let endpoint = &body["endpoint"];
    let segments: Vec<&str> = changed.request.path.trim_matches('/').split('/').collect();
    let known = |id: &str| {
        if new.contains(id) {
            "a new one".to_owned()
        } else {
            id.to_owned()
        }
    };
    match (changed.request.method, segments.as_slice()) {
        (Method::Post, ["projects", _, "endpoints"]) => {
            let type_ = if endpoint["type"] == "read_write" {
                "ReadWrite"
            } else {
                "ReadOnly"
            };
            format!(
                "create {type_} on {}: {}",
                endpoint["branch_id"].as_str().unwrap(),
                sent(endpoint)
            )
        }
        (Method::Patch, ["projects", _, "endpoints", id]) => {
            let branch = endpoint["branch_id"]
                .as_str()
                .map(|branch| format!("branchID={branch}"));
            let words = branch
                .into_iter()
                .chain(Some(sent(endpoint)).filter(|words| !words.is_empty()));
            format!("change {id}: {}", words.collect::<Vec<_>>().join(" "))
        }
        (Method::Post, ["projects", _, "endpoints", id, "restart"]) => format!("restart {id}"),
        (Method::Delete, ["projects", _, "endpoints", id]) => format!("delete {id}"),
        (Method::Post, ["organizations", _, "api_keys"]) => "create key".to_owned(),
        (Method::Delete, ["organizations", _, "api_keys", id]) => format!("revoke {}", known(id)),
        other => panic!("an unknown call: {other:?}"),
    }
}

#[derive(Debug, Default)]
struct Tally {
    resources: usize,
    planned: usize,
    made: usize,
    later: usize,
    differences: Vec<String>,
}

/// Reasons for waiting while the outcome of an earlier call is unknown. No plan can know what
/// follows.
const UNCERTAIN: [&str; 3] = ["ConfirmingCreate", "Restarting", "RestartUnconfirmed"];

/// Compares the planned with the actual calls: they must be equal, in the same order. Further calls
/// are allowed only if the plan waits for the outcome of an earlier call, and only after the time
/// that it names.
fn compare(planned: &Planned, made: &[(Timestamp, String)], tally: &mut Tally) {
    let steps: Vec<String> = planned.steps.iter().filter_map(planned_call).collect();
    tally.resources += 1;
    tally.planned += steps.len();
    tally.made += made.len();
    let same = steps
        .iter()
        .zip(made)
        .take_while(|(one, (_, other))| *one == other)
        .count();
    let rest = &made[same..];
    let uncertain = planned
        .waits
        .as_ref()
        .filter(|waits| UNCERTAIN.contains(&waits.reason.as_str()));
    let until = uncertain.and_then(|waits| waits.until);
    let is_later = |(at, _): &(Timestamp, String)| until.is_some_and(|until| *at >= until);
    if same == steps.len() && rest.iter().all(is_later) {
        tally.later += rest.len();
        return;
    }
    tally.differences.push(format!(
        "{}: planned {steps:?}, made {made:?}; next {:?}, waits {:?}, unknown {:?}",
        planned.id, planned.next, planned.waits, planned.unknown
    ));
}

fn what_is_planned_is_done(profile: Profile, least: usize) {
    let simulation = stored(&Recording::load(&folder(BEFORE, profile)));
    let plan = plan_of(&simulation);
    run_until_stable(&simulation, Process::new(&simulation, 1000));
    let changes = simulation.lock().ledger.changes.clone();
    let new: BTreeSet<String> = simulation
        .lock()
        .ledger
        .keys
        .keys()
        .map(ToString::to_string)
        .collect();
    let mut tally = Tally::default();
    for planned in &plan.resources {
        let is_of = |changed: &&Changed| {
            changed
                .actor
                .as_ref()
                .is_some_and(|(kind, name)| *kind == planned.id.kind && *name == planned.id.name)
        };
        let made: Vec<_> = changes
            .iter()
            .filter(is_of)
            .map(|it| (it.at, made_call(it, &new)))
            .collect();
        compare(planned, &made, &mut tally);
    }
    let Tally {
        resources,
        planned,
        made,
        later,
        differences,
    } = &tally;
    // Written to stderr directly, because the test harness shows captured output only for failed
    // tests.
    let table = format!(
        "{profile:?}: {resources} resources, {planned} calls planned, {made} made, of these {later} after a time that the plan names; {} differences\n",
        differences.len()
    );
    std::io::stderr().write_all(table.as_bytes()).unwrap();
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(*planned >= least, "{planned}");
}

#[test]
fn what_is_planned_is_done_where_the_platform_has_names_and_lists() {
    what_is_planned_is_done(Profile::Default, 20);
}

#[test]
fn what_is_planned_is_done_where_the_platform_has_neither() {
    what_is_planned_is_done(Profile::Minimal, 6);
}
