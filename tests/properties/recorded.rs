//! This version continues from any state that the previous one can leave. `tests/ecosystem/upgrade`
//! recorded these states with the program of that version on a real control plane.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::in_memory::cluster::Stored;
use super::in_memory::{Cluster, Print, Resource};
use super::process::{End, Process};
use super::simulation::Shared;
use super::upgrade::{BEFORE, Before, KINDS, Recording, changed, differences, folder, objects};

/// Age of the recording when this version starts. By then, all keys are due for a check, and unused
/// computes are idle.
const LATER: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_secs(2);
/// Longer than the settle time and the pauses between two tries.
const REST: Duration = Duration::from_secs(150);
const MOST_ROUNDS: usize = 600;
/// The most consecutive passes over one resource in a round.
const AT_ONCE: usize = 3;

#[test]
fn states_of_the_previous_version_continue_on_a_platform_with_names_and_lists() {
    continue_from(BEFORE, Profile::Default, 120);
}

#[test]
fn states_of_the_previous_version_continue_on_a_minimal_platform() {
    continue_from(BEFORE, Profile::Minimal, 120);
}

fn continue_from(version: &str, profile: Profile, count: usize) {
    let (recording, objects) = (Recording::load(&folder(version, profile)), objects(profile));
    assert!(recording.count() >= count, "{} objects", recording.count());
    for object in &objects {
        assert!(
            recording.get(object.state.kind, &object.name).is_some(),
            "{} is not recorded: make record-objects",
            object.name
        );
    }
    let simulation = stored(&recording);
    run_until_stable(&simulation, Process::new(&simulation, 1000));
    let after = now(&simulation);
    let found = differences(
        &Before {
            recording: &recording,
            objects: &objects,
        },
        &after,
        &changes(&simulation),
    );
    assert!(found.is_empty(), "{found:#?}");
    // A second process must have nothing left to do.
    let before = changes(&simulation);
    run_until_stable(&simulation, Process::new(&simulation, 1000));
    assert_eq!(changes(&simulation), before);
    assert_eq!(changed(&after, &now(&simulation)), [] as [String; 0]);
}

/// The cluster and the platform as recorded, at a later time.
pub fn stored(recording: &Recording) -> Shared {
    let mut cluster = Cluster::default();
    for kind in KINDS.into_iter().filter(|kind| *kind != "Secret") {
        for object in &recording.objects[kind] {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            cluster
                .objects
                .insert((kind, name), Stored::read(object.clone()).unwrap());
        }
    }
    for secret in &recording.objects["Secret"] {
        let secret: Secret = serde_json::from_value(secret.clone()).unwrap();
        cluster
            .secrets
            .insert(secret.metadata.name.clone().unwrap(), Print::of(secret));
    }
    Shared::with(
        recording.at + LATER,
        recording.world.clone(),
        cluster,
        Vec::new(),
    )
}

fn now(simulation: &Shared) -> Recording {
    let simulation = simulation.lock();
    let of_kind = |kind: &str| {
        let objects = simulation
            .cluster
            .objects
            .iter()
            .filter(|((of, _), _)| *of == kind);
        objects.map(|(_, stored)| stored.value.clone()).collect()
    };
    let mut found: BTreeMap<String, Vec<_>> = KINDS
        .into_iter()
        .map(|kind| (kind.to_owned(), of_kind(kind)))
        .collect();
    let secrets = simulation
        .cluster
        .secrets
        .values()
        .map(|secret| json!(secret.clone_inner()))
        .collect();
    found.insert("Secret".to_owned(), secrets);
    Recording::new(simulation.now, found, simulation.world.clone())
}

/// Method and path of the operator's changes on the platform.
fn changes(simulation: &Shared) -> Vec<(String, String)> {
    let writes = simulation.lock().ledger.writes.clone();
    let words = |write: &String| {
        let mut words = write.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        path.starts_with('/').then(|| (method.to_uppercase(), path))
    };
    writes.iter().filter_map(words).collect()
}

/// Runs a process until nothing was written for some time.
pub fn run_until_stable(simulation: &Shared, mut process: Process) {
    let mut since = simulation.lock().now;
    let mut written = simulation.lock().ledger.writes.len();
    let mut due: BTreeMap<Resource, Timestamp> = BTreeMap::new();
    for _ in 0..MOST_ROUNDS {
        process.handle_deletions();
        assert!(process.read());
        let resources = simulation.lock().cluster.resources();
        let now = simulation.lock().now;
        let is_due = |resource: &Resource| due.get(resource).is_none_or(|time| *time <= now);
        let resources: Vec<Resource> = resources.into_iter().filter(is_due).collect();
        for resource in resources {
            let next = next_look(simulation, &process, &resource);
            due.insert(resource, next);
        }
        due.extend(process.woken().into_iter().map(|resource| (resource, now)));
        let mut simulation = simulation.lock();
        if simulation.ledger.writes.len() > written {
            (written, since) = (simulation.ledger.writes.len(), simulation.now);
        }
        if simulation.now > since + REST {
            return;
        }
        let now = simulation.now;
        let next = due.values().min().copied().unwrap_or(now).max(now + MOMENT);
        simulation.advance(Duration::try_from(next.duration_since(now)).unwrap());
    }
    panic!("it does not come to rest");
}

/// Runs passes over a resource. Returns the time of the next ones: soon if something was written.
fn next_look(simulation: &Shared, process: &Process, resource: &Resource) -> Timestamp {
    let before = simulation.lock().ledger.writes.len();
    let mut wake = None;
    for _ in 0..AT_ONCE {
        match process.pass(resource) {
            End::Again => {}
            End::Died => panic!("nothing fails here"),
            End::Rest(time) => {
                wake = Some(time);
                break;
            }
        }
    }
    let simulation = simulation.lock();
    match wake {
        Some(time) if simulation.ledger.writes.len() == before => {
            let poll = simulation.now + POLL;
            time.unwrap_or(poll).clamp(simulation.now + SOON, poll)
        }
        // It waits for the delivery of its own write or for a first list; both take only time.
        _ if simulation.ledger.writes.len() == before => simulation.now + SOON,
        _ => simulation.now + MOMENT,
    }
}
