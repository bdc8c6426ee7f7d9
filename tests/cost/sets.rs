//! Sets of replicas.

use std::collections::BTreeSet;
use std::sync::Arc;

use dbplane::api::{Compute, Known, ReadReplicaSetSpec, ReadReplicaSetStatus};
use dbplane::decide::connection::{CredentialsView, SecretView};
use dbplane::decide::names::derived;
use dbplane::decide::replica_set::{
    FoundReplica, SetFacts, SetObserved, SetStep, decide, relation, status,
};
use dbplane::decide::{AccountView, Limits, Memory, Meta, kept};
use serde_json::{Value, json};

use super::worst::{Place, read_replica_set};
use super::{NOW, excess, is_worst};

const UID: &str = "5e700000-0000-4000-8000-000000000000";
/// The limit.
const REPLICAS: usize = 100;
/// Number of names that the tenant uses for other objects in its namespace.
const NAMES: usize = 10_000;

fn manifest(replicas: usize) -> Value {
    read_replica_set(&Place::default(), replicas)
}

/// Computes of the set as the operator caches them, with a change of their specs.
fn replicas(count: usize, change: impl Fn(&mut Value)) -> Vec<Arc<Known<Compute>>> {
    let template = manifest(1)["spec"]["template"].clone();
    let mut spec = template["spec"].clone();
    spec["type"] = json!("ReadOnly");
    change(&mut spec);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Available", "message": "m".repeat(4096), "lastTransitionTime": "2026-11-20T10:00:00Z"});
    let replica = |number: usize| {
        let host = format!("{}-{number}.example", "h".repeat(240));
        let mut compute: Compute = serde_json::from_value(json!({
            "metadata": {
                "namespace": "shop", "name": format!("reads-{number}"), "uid": format!("uid-{number}"), "resourceVersion": "7", "generation": 1,
                "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
                "ownerReferences": [{"apiVersion": "dbplane.dev/v1alpha1", "kind": "ReadReplicaSet", "name": "n".repeat(253), "uid": UID, "controller": true}],
            },
            "spec": spec,
            "status": {
                "computeID": format!("ep-{number:057}"), "host": host, "pooledHost": host, "state": "idle", "lastSeenServing": true,
                "observedGeneration": 1, "conditions": [condition("Ready"), condition("Synced")],
            },
        }))
        .unwrap();
        kept::trim(&mut compute.metadata, true);
        assert_eq!(kept::fits(&mut compute.metadata), Ok(()));
        Arc::new(Known::new(compute).unwrap())
    };
    (0..count).map(replica).collect()
}

struct Given {
    spec: ReadReplicaSetSpec,
    observed: SetObserved,
}

impl Given {
    fn new(replicas: usize, computes: Vec<Arc<Known<Compute>>>, names: BTreeSet<String>) -> Self {
        let spec: ReadReplicaSetSpec =
            serde_json::from_value(manifest(replicas)["spec"].clone()).unwrap();
        let found = |compute: Arc<Known<Compute>>| {
            Some(FoundReplica {
                relation: relation(&spec, &UID.into(), &compute)?,
                compute,
            })
        };
        let credentials = CredentialsView::Found {
            user: "u".repeat(4096).into(),
            password: "p".repeat(4096).into(),
        };
        let observed = SetObserved {
            meta: Meta {
                namespace: "evil".to_owned(),
                name: "n".repeat(253),
                generation: 1,
                ..Meta::default()
            },
            uid: UID.into(),
            account: AccountView::NotNeeded,
            memory: Memory::default(),
            limits: Limits::default(),
            cluster: "c1u57e".parse().unwrap(),
            random: 7,
            facts: SetFacts {
                computes: computes.into_iter().filter_map(found).collect(),
                settled: true,
                unreadable: 0,
                names,
                secret: SecretView::Absent,
                credentials,
                connection_secret: None,
                unused_secrets: Vec::new(),
            },
        };
        Self { spec, observed }
    }

    fn step(&self) -> Option<SetStep> {
        decide(&self.spec, &self.observed, NOW).step
    }

    fn pass(&self) {
        let report = decide(&self.spec, &self.observed, NOW).report.unwrap();
        status(
            &report,
            &self.spec,
            &self.observed,
            &ReadReplicaSetStatus::default(),
            NOW,
        );
    }
}

/// All Computes and the Secret are in sync.
fn at_rest(count: usize) -> Given {
    let mut given = Given::new(count, replicas(count, |_| {}), BTreeSet::new());
    let Some(SetStep::WriteConnection { secret, .. }) = given.step() else {
        panic!("no Secret is written")
    };
    given.observed.secret = SecretView::Ours(*secret);
    assert_eq!(given.step(), None);
    given
}

fn changed(count: usize) -> Given {
    let given = Given::new(
        count,
        replicas(count, |spec| spec["size"] = json!({"fixed": 2})),
        BTreeSet::new(),
    );
    assert!(matches!(given.step(), Some(SetStep::Update(_))));
    given
}

/// As many Computes on the former branch as on the new one.
fn replaced(count: usize) -> Given {
    let former = replicas(count, |spec| spec["branchID"] = json!("former"));
    let given = Given::new(
        count,
        [former, replicas(count, |_| {})].concat(),
        BTreeSet::new(),
    );
    assert!(matches!(given.step(), Some(SetStep::Retire(_))));
    given
}

/// Other objects in the namespace occupy the names that the set would generate.
fn without_a_name(count: usize) -> Given {
    let last = derived(&"n".repeat(253), &format!("-{count}"));
    let beginning = last.strip_suffix(&count.to_string()).unwrap();
    let given = Given::new(
        1,
        Vec::new(),
        (0..count)
            .map(|number| format!("{beginning}{number}"))
            .collect(),
    );
    assert_eq!(given.step(), Some(SetStep::Create { name: last }));
    given
}

pub fn rows() -> Vec<Option<String>> {
    is_worst(
        &manifest(REPLICAS),
        &manifest(REPLICAS + 1),
        "spec.replicas",
    );
    vec![
        excess("a set at rest", REPLICAS, at_rest, Given::pass),
        excess(
            "a set whose replicas are changed",
            REPLICAS,
            changed,
            Given::pass,
        ),
        excess(
            "a set whose replicas are replaced",
            REPLICAS,
            replaced,
            Given::pass,
        ),
        excess(
            "a set whose names others have",
            NAMES,
            without_a_name,
            Given::pass,
        ),
    ]
}
