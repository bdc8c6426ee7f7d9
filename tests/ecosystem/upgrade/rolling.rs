//! A rolling update under load, in both directions: the leading version ends, and the other one
//! takes over.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Version;
use super::site::{Operator, Site};
use crate::recorded::{BEFORE, Call, Object, Platform, Seen, by_object, objects, says};
use crate::support::{PATIENCE, wait_for};

const FLAGS: [&str; 1] = ["--leader-elect"];
const READY: (&str, &str) = ("Ready", "Available");

/// Objects that exist before the update, and objects that are declared while the old leader ends.
const SETTLED: [&str; 5] = ["primary", "replica", "key", "rotating", "set"];
const DECLARED: [&str; 4] = [
    "full",
    "create-dropped",
    "create-replica-dropped",
    "key-dropped",
];

/// The longest time without calls to the platform. A successor checks the lease every 2 s, and
/// first reads the platform; the rest is reserve for a busy machine.
const AFTER_A_RELEASE: Duration = Duration::from_secs(12);
/// The same plus the 15 s until an abandoned lease expires.
const AFTER_A_KILL: Duration = Duration::from_secs(27);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// SIGTERM, as from a Deployment.
    Evidence,
    Killed,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_under_load_does_nothing_twice() {
    let gap = rolled(Version::Of(BEFORE), Version::This, End::Evidence).await;
    assert!(gap < AFTER_A_RELEASE, "{gap:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_whose_former_leader_is_killed_under_load_does_nothing_twice() {
    let gap = rolled(Version::Of(BEFORE), Version::This, End::Killed).await;
    assert!(gap < AFTER_A_KILL, "{gap:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_under_load_does_nothing_twice() {
    let gap = rolled(Version::This, Version::Of(BEFORE), End::Evidence).await;
    assert!(gap < AFTER_A_RELEASE, "{gap:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_from_a_version_that_is_killed_under_load_does_nothing_twice() {
    let gap = rolled(Version::This, Version::Of(BEFORE), End::Killed).await;
    assert!(gap < AFTER_A_KILL, "{gap:?}");
}

fn of(names: &[&str]) -> Vec<Object> {
    objects(Profile::Default)
        .into_iter()
        .filter(|object| names.contains(&object.state.name))
        .collect()
}

/// Returns the time without calls to the platform.
async fn rolled(from: Version, to: Version, end: End) -> Duration {
    let (settled, declared) = (of(&SETTLED), of(&DECLARED));
    let all = [settled.clone(), declared.clone()].concat();
    let site = Site::open(from, Profile::Default, &all).await;
    let mut former = site.start(from, "former", &FLAGS).await;
    declare(&site, &settled).await;
    until_ready(&site, &settled).await;
    site.until_at_rest().await;
    let before = platform(&site);
    for file in to.definitions() {
        site.cluster
            .kubectl(&[
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                &file.display().to_string(),
            ])
            .await
            .unwrap();
    }
    let successor = site.launch(to, "successor", &FLAGS);
    until_waiting(&successor).await;
    let since = site.requests();
    load(&site, &declared).await;
    wait_for("a create to be under way", PATIENCE, async || {
        is_under_way(&site, since).then_some(())
    })
    .await
    .unwrap();
    let ended = end_of(&site, &mut former, end).await;
    site.platform.clear_faults();
    until_ready(&site, &all).await;
    until_changed(&site).await;
    site.until_at_rest().await;
    nothing_twice(&site, &before, &all, since, end);
    let gap = gap(&site, ended);
    let changes = site.changes(since).len();
    // Written directly to stderr, because the test harness shows a passing test's output only on
    // request.
    let _ = writeln!(
        std::io::stderr(),
        "{from:?} to {to:?}, {end:?}: {changes} changes on the platform, nobody called it for {gap:?}"
    );
    drop(successor);
    gap
}

async fn declare(site: &Site, objects: &[Object]) {
    for object in objects {
        site.create(&object.manifest(&site.account())).await;
    }
}

/// Causes creates, changes, a rotation and a larger set, on a slow platform.
async fn load(site: &Site, declared: &[Object]) {
    let slow = json!({"method": "POST", "delay_ms": 1500, "times": 1_000_000});
    site.platform
        .order_fault(serde_json::from_value(slow).unwrap())
        .unwrap();
    declare(site, declared).await;
    for copy in 0..4 {
        site.patch(
            "Compute",
            &format!("replica-{copy}"),
            &json!({"spec": {"size": {"fixed": 2}}}),
        )
        .await;
    }
    for copy in 0..2 {
        let rotate = json!({"metadata": {"annotations": {"dbplane.dev/rotate": "once"}}});
        site.patch("ProjectKey", &format!("rotating-{copy}"), &rotate)
            .await;
    }
    site.patch("ReadReplicaSet", "set-0", &json!({"spec": {"replicas": 5}}))
        .await;
}

/// True if the platform is working on a create.
fn is_under_way(site: &Site, since: u64) -> bool {
    let requests = site.platform.requests(since);
    requests
        .iter()
        .any(|entry| entry.method == "POST" && entry.status.is_none() && !entry.over)
}

async fn until_waiting(successor: &Operator) {
    wait_for("the successor to wait for the lead", PATIENCE, async || {
        successor
            .process
            .log()
            .contains("waiting for the lead")
            .then_some(())
    })
    .await
    .unwrap();
}

/// Ends the leading process, and returns the number of its last possible request.
async fn end_of(site: &Site, former: &mut Operator, end: End) -> u64 {
    match end {
        End::Evidence => drop(former.process.terminate(PATIENCE).await.unwrap()),
        End::Killed => drop(former.process.kill().unwrap()),
    }
    site.requests()
}

async fn until_ready(site: &Site, objects: &[Object]) {
    site.until("everything to be ready", async || {
        let mut missing = Vec::new();
        for kind in ["Compute", "ProjectKey", "ReadReplicaSet"] {
            let all = site.all(kind).await;
            let waiting = objects
                .iter()
                .filter(|object| object.state.kind == kind && !says(&all[&object.name], READY));
            missing.extend(waiting.map(|object| {
                format!(
                    "{}: {}",
                    object.name, all[&object.name]["status"]["conditions"]
                )
            }));
        }
        missing
    })
    .await;
}

/// Waits until the changes are visible.
async fn until_changed(site: &Site) {
    site.until("the changes to show", async || {
        let (computes, keys, sets) = (
            site.all("Compute").await,
            site.all("ProjectKey").await,
            site.all("ReadReplicaSet").await,
        );
        let mut missing: Vec<String> = Vec::new();
        let mut wanted = |object: &Value, field: &str, value: Value| {
            if object["status"][field] != value {
                missing.push(format!(
                    "{}: {field} {}",
                    object["metadata"]["name"], object["status"][field]
                ));
            }
        };
        (0..4).for_each(|copy| wanted(&computes[&format!("replica-{copy}")], "size", json!("2")));
        (0..2).for_each(|copy| {
            wanted(
                &keys[&format!("rotating-{copy}")],
                "lastHandledRotate",
                json!("once"),
            )
        });
        wanted(&sets["set-0"], "readyReplicas", json!(5));
        missing
    })
    .await;
}

fn platform(site: &Site) -> Platform {
    let world = site.platform.with_world(|world, now| {
        world.advance_to(now);
        world.clone()
    });
    Platform::of(&world.unwrap())
}

/// How many computes and keys an object has to have.
fn computes_and_keys(object: &Object) -> (usize, usize) {
    match (object.state.kind, object.name.as_str()) {
        ("ReadReplicaSet", "set-0") => (5, 0),
        ("ReadReplicaSet", _) => (3, 0),
        ("ProjectKey", name) if name.starts_with("rotating") => (0, 2),
        ("ProjectKey", _) => (0, 1),
        _ => (1, 0),
    }
}

/// Checks that each object has exactly its computes and keys, and that no call was superfluous.
fn nothing_twice(site: &Site, before: &Platform, all: &[Object], since: u64, end: End) {
    let after = platform(site);
    // Some requests were executed although their answer was lost.
    let asked: Vec<_> = site
        .asked(since)
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    let changes = changes_of(&asked, before, &after);
    let seen = Seen {
        before,
        after: &after,
    };
    let calls = by_object(&changes, seen, all).unwrap();
    for object in all {
        let made = calls.get(&object.name).cloned().unwrap_or_default();
        let count = |call: Call| made.iter().filter(|one| **one == call).count();
        let there = (
            after.computes_on(&object.branch()).len(),
            after.keys_of(&object.name).len(),
        );
        assert_eq!(
            there,
            computes_and_keys(object),
            "{}: {made:?}",
            object.name
        );
        assert_eq!(
            (count(Call::Restart), count(Call::DeleteCompute)),
            (0, 0),
            "{}: {made:?}",
            object.name
        );
        // A change is idempotent, so it may be repeated. A key whose secret was lost with the
        // process is replaced.
        let again = usize::from(end == End::Killed);
        let changed = usize::from(object.state.name == "replica" && object.copy < 4);
        assert!(
            (changed..=changed * (1 + again)).contains(&count(Call::ChangeCompute)),
            "{}: {made:?}",
            object.name
        );
        assert!(
            count(Call::RevokeKey) <= again && count(Call::CreateKey) <= 1 + again,
            "{}: {made:?}",
            object.name
        );
    }
    // A create whose answer was lost with the process may be repeated.
    let creates = site
        .asked(since)
        .into_iter()
        .filter(|(method, path, _)| method == "POST" && path.ends_with("/endpoints"));
    let (answered, unanswered): (Vec<_>, Vec<_>) =
        creates.partition(|(.., status)| status.is_some());
    let new = after.computes.len() - before.computes.len();
    let most = answered.len() + unanswered.len();
    assert!(
        (answered.len()..=most).contains(&new),
        "{new} new computes, {answered:?}, {unanswered:?}"
    );
    assert!(
        end == End::Killed || unanswered.is_empty(),
        "{unanswered:?}"
    );
}

/// The paths of creates do not name objects, so creates are counted by their results.
fn changes_of(
    asked: &[(String, String)],
    before: &Platform,
    after: &Platform,
) -> Vec<(String, String)> {
    let one = |path: &str| {
        asked
            .iter()
            .find(|(method, asked)| method == "POST" && asked.ends_with(path))
            .cloned()
    };
    let computes = after
        .computes
        .keys()
        .filter(|id| !before.computes.contains_key(*id))
        .count();
    let keys = after
        .keys
        .keys()
        .filter(|id| !before.keys.contains_key(*id))
        .count();
    let creates = |path: &str| {
        asked
            .iter()
            .filter(|(method, asked)| method == "POST" && asked.ends_with(path))
            .count()
    };
    let others = asked
        .iter()
        .filter(|(method, path)| method != "POST" || path.ends_with("/restart"))
        .cloned();
    assert!(
        creates("/endpoints") >= computes && creates("/api_keys") >= keys,
        "{asked:?}"
    );
    let repeated =
        |call: Option<(String, String)>, times: usize| vec![call; times].into_iter().flatten();
    others
        .chain(repeated(one("/endpoints"), computes))
        .chain(repeated(one("/api_keys"), keys))
        .collect()
}

/// The time from the last request of the old leader to the first of its successor.
fn gap(site: &Site, ended: u64) -> Duration {
    let times: BTreeMap<u64, Timestamp> = site
        .platform
        .requests(0)
        .into_iter()
        .map(|entry| (entry.n, entry.at.parse().unwrap()))
        .collect();
    let (last, first) = (
        times.range(..=ended).next_back().unwrap(),
        times.range(ended + 1..).next().unwrap(),
    );
    Duration::try_from(first.1.duration_since(*last.1)).unwrap()
}
