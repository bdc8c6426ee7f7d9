//! The largest objects of each kind that the definitions admit, with the maximum number of
//! everything. The caller chooses the length of long texts.

use serde_json::{Map, Value, json};

/// The maximum length of texts.
pub const LONGEST: usize = 4096;

/// The names in an object, and its references.
#[derive(Clone, Debug)]
pub struct Place {
    pub name: String,
    pub namespace: String,
    pub account: String,
    pub project: String,
    pub branch: String,
    /// The length of long texts.
    pub length: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            name: "n".repeat(253),
            namespace: "evil".to_owned(),
            account: "a".repeat(253),
            project: "p".repeat(60),
            branch: "b".repeat(60),
            length: LONGEST,
        }
    }
}

fn object(kind: &str, place: &Place, spec: Value) -> Value {
    json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": place.name, "namespace": place.namespace},
        "spec": spec,
    })
}

fn named(count: usize, name: impl Fn(usize) -> String, text: &str) -> Value {
    (0..count)
        .map(|number| (name(number), json!(text)))
        .collect::<Map<_, _>>()
        .into()
}

/// Keys have the maximum length of label and annotation keys.
fn entries(text: &str) -> Value {
    named(
        32,
        |number| format!("{}/{}{number:02}", "p".repeat(253), "k".repeat(61)),
        text,
    )
}

fn labels() -> Value {
    entries(&"l".repeat(63))
}

fn template(entries: usize, placeholder: &str, length: usize) -> Value {
    named(
        entries,
        |number| format!("t-{number:02}"),
        &placeholder.repeat(length / placeholder.len()),
    )
}

fn connection(place: &Place) -> Value {
    json!({
        "secretName": place.name,
        "database": "d".repeat(63),
        "credentialsFrom": {"name": "login"},
        "pooled": true,
        "labels": labels(),
        "annotations": entries(&"a".repeat(place.length)),
        "template": template(32, "{{ host }}", place.length),
    })
}

/// The spec of a Compute without its type, as in the template of a set.
fn of_a_compute(place: &Place) -> Value {
    let schedule = |number: usize| json!({"name": format!("e-{number}"), "start": "*/2 * * * *", "end": "1-59/2 * * * *", "timeZone": "Africa/Casablanca", "size": {"fixed": 1}});
    let times = |more: (&str, &str)| {
        let mut times = json!({"schedule": "* * * * *", "timeZone": "Africa/Casablanca"});
        times[more.0] = json!(more.1);
        times
    };
    json!({
        "accountRef": {"name": place.account},
        "projectID": place.project,
        "branchID": place.branch,
        "size": {"fixed": 1},
        "postgresSettings": named(128, |number| format!("{}{number:03}", "s".repeat(124)), &"v".repeat(place.length.min(1024))),
        "schedules": (0..16).map(schedule).collect::<Vec<_>>(),
        "maintenance": {"restart": times(("jitter", "24h"))},
        "disruption": {"policy": "Window", "window": times(("duration", "1m"))},
    })
}

pub fn compute(place: &Place) -> Value {
    let mut spec = of_a_compute(place);
    spec["type"] = json!("ReadWrite");
    spec["connection"] = connection(place);
    object("Compute", place, spec)
}

pub fn read_replica_set(place: &Place, replicas: usize) -> Value {
    let metadata = json!({"labels": labels(), "annotations": entries(&"a".repeat(place.length))});
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels()},
        "template": {"metadata": metadata, "spec": of_a_compute(place)},
        "strategy": {"maxSurge": "100%", "maxUnavailable": "100%"},
        "connection": connection(place),
    });
    object("ReadReplicaSet", place, spec)
}

pub fn project_key(place: &Place, entries_of_template: usize) -> Value {
    let spec = json!({
        "accountRef": {"name": place.account},
        "projectID": place.project,
        "keyName": "a",
        "secret": {
            "name": place.name,
            "key": "e".repeat(253),
            "previousKey": "p".repeat(253),
            "labels": labels(),
            "annotations": entries(&"a".repeat(place.length)),
            "template": template(entries_of_template, "{{ keyName }}", place.length),
        },
        "rotation": {"every": "8760h", "overlap": "0s", "revokePrevious": "WhenUnused", "unusedFor": "1h", "deadline": "8759h"},
    });
    object("ProjectKey", place, spec)
}

/// An Account for the platform at this URL, with the key in the Secret `credentials`.
pub fn account(place: &Place, base_url: &str) -> Value {
    let spec = json!({
        "baseURL": base_url,
        "organizationID": "org-cool-darkness-1",
        "apiKeySecretRef": {"name": "credentials", "key": "api-key"},
        "rateLimit": {"requestsPerMinute": 100_000, "burst": 1000},
        "pollInterval": "1h",
    });
    object("Account", place, spec)
}

/// A ClusterAccount with this many named namespaces besides a selector, and the maximum number of
/// projects.
pub fn cluster_account(place: &Place, base_url: &str, namespaces: usize) -> Value {
    let numbered = |count: usize, length: usize| {
        (0..count)
            .map(|number| format!("{number:0length$}"))
            .collect::<Vec<_>>()
    };
    let expression = |number: usize| json!({"key": format!("k{number:02}"), "operator": "NotIn", "values": numbered(64, 63)});
    let mut account = account(place, base_url);
    account["kind"] = json!("ClusterAccount");
    account["metadata"] = json!({"name": place.name});
    account["spec"]["apiKeySecretRef"]["namespace"] = json!(place.namespace);
    account["spec"]["namespaces"] = json!({
        "names": numbered(namespaces, 63),
        "projects": numbered(256, 60),
        "selector": {"matchLabels": labels(), "matchExpressions": (0..32).map(expression).collect::<Vec<_>>()},
    });
    account
}
