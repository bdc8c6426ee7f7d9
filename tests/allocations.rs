//! Memory per Compute and number of allocations, which are the same on every machine. More is a
//! defect; after an improvement, lower the numbers here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

use dbplane::api::{Compute, Known};
use dbplane::decide::compute::subjects;
use dbplane::decide::identity::{Binding, ComputeIdentity, Origin, written};
use dbplane::decide::names::{FINALIZER, RECORD};
use jiff::Timestamp;
use serde_json::{Value, json};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

const COUNT: usize = 1000;

/// A ready Compute as the API server sends it.
fn stored(number: usize) -> Vec<u8> {
    let mut compute: Compute = serde_json::from_value(declared(number)).unwrap();
    let binding = Binding {
        id: format!("ep-cool-darkness-{number:08}").into(),
        project: "project-1".into(),
        platform: Some("https://platform.example/api/v2".to_owned()),
        branch: Some("br-1".into()),
        origin: Origin::Created,
        at: Timestamp::UNIX_EPOCH,
    };
    let bound = ComputeIdentity {
        binding: Some(binding),
        ..ComputeIdentity::default()
    };
    let record = written(&bound, &compute.metadata);
    compute
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(RECORD.to_owned(), record.clone());
    compute.status = Some(serde_json::from_value(status(number, record)).unwrap());
    serde_json::to_vec(&compute).unwrap()
}

/// A Compute whose annotation has many small entries.
fn forged(number: usize) -> Known<Compute> {
    let mut compute: Compute = serde_json::from_value(declared(number)).unwrap();
    let create = json!({"at": "2026-01-01T00:00:00Z", "branch": ""});
    let identity = json!({"unanswered": vec![create; 100]});
    let record = written(&identity, &compute.metadata);
    compute
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(RECORD.to_owned(), record);
    Known::new(compute).unwrap()
}

fn declared(number: usize) -> Value {
    json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": "Compute",
        "metadata": {
            "name": format!("compute-{number}"),
            "namespace": "shop",
            "uid": format!("6a1f9a5e-6f0f-4c0b-9d3a-{number:012}"),
            "resourceVersion": format!("{}", 10_000 + number),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": [FINALIZER],
        },
        "spec": {
            "accountRef": {"name": "prod"},
            "projectID": "project-1",
            "branchID": "br-main-42",
            "type": "ReadOnly",
            "size": {"autoscaling": {"min": 0.25, "max": 2}},
            "scaleToZero": {"never": true},
        },
    })
}

fn status(number: usize, record: String) -> Value {
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Available", "message": "The compute is active.",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:05Z",
        })
    };
    json!({
        "computeID": format!("ep-cool-darkness-{number:08}"),
        "type": "ReadOnly",
        "region": "aws-eu-central-1",
        "createdAt": "2026-01-01T00:00:02Z",
        "host": format!("ep-cool-darkness-{number:08}.eu-central-1.aws.platform.example"),
        "state": "active",
        "size": "0.25-2",
        "observedGeneration": 1,
        "conditions": [condition("Ready"), condition("Synced")],
        "record": record,
    })
}

/// Allocated blocks during `work` and bytes still allocated afterwards, each per object of `COUNT`.
fn taken<T>(work: impl FnOnce() -> T) -> (u64, usize, T) {
    let before = dhat::HeapStats::get();
    let done = work();
    let after = dhat::HeapStats::get();
    let blocks = (after.total_blocks - before.total_blocks) / COUNT as u64;
    (blocks, (after.curr_bytes - before.curr_bytes) / COUNT, done)
}

#[test]
fn the_memory_of_a_compute_is_bounded() {
    let texts: Vec<_> = (0..COUNT).map(stored).collect();
    let _counting = dhat::Profiler::builder().testing().build();
    let read = || {
        texts
            .iter()
            .map(|text| serde_json::from_slice(text).unwrap())
            .collect()
    };
    let (blocks, bytes, computes): (_, _, Vec<Known<Compute>>) = taken(read);
    let (of_a_record, record_bytes, ()) = taken(|| {
        computes
            .iter()
            .for_each(|compute| assert!(compute.record().is_ok()))
    });
    let forged: Vec<Known<Compute>> = (0..COUNT).map(forged).collect();
    let (_, forged_bytes, ()) = taken(|| {
        forged
            .iter()
            .for_each(|compute| assert!(compute.record().is_ok_and(|record| record.wish.is_some())))
    });
    let (of_claims, ..) = taken(|| computes.iter().for_each(|compute| drop(subjects(compute))));
    let rows = [
        ("bytes that a Compute takes", bytes as u64, 3308),
        (
            "bytes that its parsed record takes",
            record_bytes as u64,
            770,
        ),
        ("bytes that a forged record takes", forged_bytes as u64, 0),
        ("blocks to read it", blocks, 35),
        ("blocks to read its record", of_a_record, 21),
        ("blocks to know what it claims", of_claims, 7),
    ];
    let wrong: Vec<_> = rows
        .iter()
        .filter(|(_, count, most)| count > most)
        .collect();
    assert!(wrong.is_empty(), "more than it was: {wrong:?}");
}
