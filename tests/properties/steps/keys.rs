//! Steps of keys: no key is created that could not be saved, and no key is forgotten.

use std::time::Duration;

use dbplane::decide::names;
use dbplane::decide::seal::{ObjectKey, seal};
use dbplane::telemetry::metrics::KeyChange;
use dbplane_simulator::world::Profile;
use serde_json::json;

use crate::faults::{Carried, Fault};
use crate::history::{Event, History, key};
use crate::in_memory::cluster::NAMESPACE;
use crate::injector::{CREATE_KEY, Injected, Times};
use crate::run::Run;
use crate::simulation::Simulation;
use crate::watching::history;

const SECRET: &str = "ci";
/// Interval at which a key is checked with the platform.
const CHECK: Duration = Duration::from_secs(600);
const CREATED: &str = "ci KeyCreated: Created key NAME (ID)";
const WRITE: &str = "write of Secret ci";
const DRY_RUN: &str = "dry run of Secret ci";

impl Run<'_> {
    /// Number of valid keys of the resource.
    fn live_keys(&self) -> usize {
        self.simulation.lock().keys_of(&key()).len()
    }
}

fn without_list() -> History {
    History {
        profile: Profile::Minimal,
        ..history(&[], true)
    }
}

#[test]
fn no_key_is_created_whose_secret_would_be_denied() {
    let history = history(&[], true);
    let mut run = Run::prepared(&history);
    run.inject(DRY_RUN, Times::Always, Injected::Fault(Fault::Denied));
    let denied = "Secret ci could not be written: a policy denies it";
    assert_eq!(
        run.events_after(600, Run::declare),
        [format!("ci SecretNotWritten: {denied}")]
    );
    assert_eq!((run.live_keys(), run.calls("Post", "ProjectKey")), (0, 0));
    run.without_injected_faults();
    assert_eq!(run.events_after(120, |_| ()), [CREATED]);
}

#[test]
fn the_secret_of_a_backup_is_adopted_with_its_key() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.run_for(60).unwrap();
    run.take_events();
    let adopted = "ci Linked: Adopted Secret ci, which holds key NAME";
    assert_eq!(
        run.events_after(120, |run| run.happen(&Event::Rebuild)),
        [adopted]
    );
    assert_eq!(run.live_keys(), 1);
}

#[test]
fn a_key_that_people_have_revoked_is_forgotten_and_the_others_are_kept() {
    let history = without_list();
    let mut run = Run::prepared(&history);
    run.inject(
        CREATE_KEY,
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Now)),
    );
    let reported = run.events_after(120, Run::declare);
    assert!(
        reported
            .iter()
            .any(|text| text
                .starts_with("ci KeyLeft: dbplane never received the secret of key NAME")),
        "{reported:?}"
    );
    let lost = |run: &Run| {
        run.status_of(&key())["lostKeys"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!((lost(&run), run.live_keys()), (1, 2));
    assert_eq!(run.simulation.lock().ledger.keys_counted, [KeyChange::Lost]);
    let current = run.key_record().records.current;
    let reported = run.events_after(60, |run| run.annotate(&key(), names::REVOKED_KEYS, "all"));
    assert_eq!(
        reported,
        [
            "ci KeyForgotten: Considered revoked, because of the annotation dbplane.dev/revoked-keys: NAME"
        ]
    );
    assert_eq!((lost(&run), run.key_record().records.current), (0, current));
}

#[test]
fn a_lost_key_is_acknowledged_by_its_name_alone() {
    let history = without_list();
    let mut run = Run::prepared(&history);
    run.inject(
        CREATE_KEY,
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Now)),
    );
    run.inject(
        CREATE_KEY,
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Now)),
    );
    run.declare();
    run.run_for(300).unwrap();
    let lost = |run: &Run| -> Vec<String> {
        let keys = run.status_of(&key())["lostKeys"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        keys.iter()
            .map(|key| key["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let [first, second] = lost(&run).try_into().unwrap();
    assert!(
        run.condition(&key(), "Synced")
            .starts_with("RevocationUnsupported")
    );
    run.annotate(&key(), names::REVOKED_KEYS, &first);
    run.run_for(60).unwrap();
    assert_eq!(
        (lost(&run), &run.status_of(&key())["acknowledgedKeys"]),
        (vec![second.clone()], &json!([first]))
    );
    run.annotate(&key(), names::REVOKED_KEYS, &second);
    run.run_for(60).unwrap();
    assert_eq!(lost(&run), Vec::<String>::new());
    assert!(run.condition(&key(), "Synced").starts_with("InSync"));
}

/// dbplane cannot or may not revoke the key, so users do. The list of keys shows that, even while
/// dbplane is still refused.
#[test]
fn a_lost_key_that_people_have_revoked_leaves_the_list_by_itself() {
    for (status, stays) in [(403, false), (403, true), (405, true)] {
        let history = history(&[], true);
        let mut run = Run::prepared(&history);
        run.inject(
            CREATE_KEY,
            Times::Once,
            Injected::Fault(Fault::Silence(Carried::Now)),
        );
        run.inject(
            "Delete /organizations/org/api_keys/*",
            Times::Always,
            Injected::Fault(Fault::Refused(status)),
        );
        run.declare();
        run.run_for(600).unwrap();
        assert_eq!(
            run.status_of(&key())["lostKeys"].as_array().map(Vec::len),
            Some(1),
            "{status}: it is listed"
        );
        run.happen(&Event::KeyRevoked);
        if !stays {
            run.without_injected_faults();
        }
        run.run_for(3600).unwrap();
        assert_eq!(
            (run.status_of(&key()).get("lostKeys"), run.live_keys()),
            (None, 1),
            "{status} {stays}"
        );
    }
}

#[test]
fn a_creation_that_nobody_carried_out_is_made_again() {
    let history = history(&[], true);
    let mut run = Run::prepared(&history);
    run.inject(
        CREATE_KEY,
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Never)),
    );
    assert_eq!(run.events_after(300, Run::declare), [CREATED]);
    assert_eq!(run.live_keys(), 1);
}

#[test]
fn what_is_declared_of_the_secret_is_written_without_another_key() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.take_events();
    let spec = json!({"secret": {"labels": {"team": "shop"}}});
    assert_eq!(
        run.events_after(60, |run| run.apply(&key(), &spec)),
        Vec::<String>::new()
    );
    let labels = run.simulation.lock().cluster.secrets["ci"]
        .metadata
        .labels
        .clone()
        .unwrap();
    assert_eq!(
        (labels.get("team").map(String::as_str), run.live_keys()),
        (Some("shop"), 1)
    );
}

/// A process freezes with an unsaved key in its memory, and another one takes over.
#[test]
fn who_wakes_up_with_a_key_that_was_given_up_has_it_revoked() {
    let history = history(&[], true);
    let mut run = Run::prepared(&history);
    run.inject(WRITE, Times::Always, Injected::Fault(Fault::Refused(500)));
    run.declare();
    run.run_for(5).unwrap();
    let frozen = run.process.take();
    assert_eq!(
        (
            frozen.as_ref().unwrap().unsaved_keys().len(),
            run.live_keys()
        ),
        (1, 1)
    );
    run.without_injected_faults();
    run.take_events();
    let reported = run.events_after(300, |_| ());
    assert_eq!(reported, ["ci KeyRevoked: Revoked key NAME (ID)", CREATED]);
    let current = run.key_record();
    run.process = frozen;
    let reported = run.events_after(300, |_| ());
    assert_eq!(reported, ["ci KeyRevoked: Revoked key NAME (ID)"]);
    assert_eq!(
        run.process.as_ref().unwrap().unsaved_keys(),
        Vec::<String>::new()
    );
    assert_eq!((run.key_record(), run.live_keys()), (current, 1));
}

/// A newer version of dbplane writes the annotation just before the Secret is written.
#[test]
fn a_key_in_memory_is_kept_while_the_record_cannot_be_read() {
    fn annotate(simulation: &mut Simulation, record: Option<String>) {
        let patch = json!({"metadata": {"annotations": {names::RECORD: record}}});
        simulation.cluster.edit(&key(), &patch);
    }
    let history = history(&[], true);
    let mut run = Run::prepared(&history);
    run.inject(WRITE, Times::Always, Injected::Fault(Fault::Refused(500)));
    run.declare();
    run.run_for(5).unwrap();
    run.without_injected_faults();
    run.inject(
        "read of ProjectKey ci",
        Times::Once,
        Injected::Meanwhile(|it| annotate(it, Some(newer_record()))),
    );
    run.run_for(60).unwrap();
    assert!(
        run.condition(&key(), "Ready")
            .starts_with("BindingConflict"),
        "{}",
        run.condition(&key(), "Ready")
    );
    let unsaved = |run: &Run| run.process.as_ref().unwrap().unsaved_keys().len();
    assert_eq!((unsaved(&run), run.live_keys()), (1, 1));
    annotate(&mut run.simulation.lock(), None);
    run.run_for(60).unwrap();
    assert_eq!((unsaved(&run), run.live_keys()), (0, 1));
    assert!(run.condition(&key(), "Ready").starts_with("Available"));
}

/// A record in a form that this version does not know.
fn newer_record() -> String {
    let place = ObjectKey {
        namespace: NAMESPACE,
        name: SECRET,
    };
    seal(names::RECORD, &json!({"form": 99, "uid": ""}), place)
}

/// The platform has no call to revoke keys. Only a request with the key itself shows if users have
/// revoked it.
#[test]
fn a_key_that_reached_no_secret_can_still_be_asked() {
    let history = without_list();
    let mut run = Run::prepared(&history);
    run.inject(WRITE, Times::Always, Injected::Fault(Fault::Denied));
    run.declare();
    run.run_for(60).unwrap();
    assert_eq!(run.live_keys(), 1);
    run.delete_now(&key());
    run.run_for(120).unwrap();
    assert!(run.is_there(&key()));
    run.happen(&Event::KeyRevoked);
    run.run_for(120).unwrap();
    assert!(!run.is_there(&key()), "{}", run.condition(&key(), "Ready"));
}

/// A user restores an older Secret just before the key in it is checked, and then undoes that.
#[test]
fn another_key_than_the_one_in_use_is_not_asked() {
    fn replace(simulation: &mut Simulation, with: &str) {
        let kept = simulation.cluster.secrets[with].clone();
        simulation.cluster.secrets.insert(SECRET.to_owned(), kept);
    }
    let keep = |run: &mut Run, name: &str| {
        let mut simulation = run.simulation.lock();
        let kept = simulation.cluster.secrets[SECRET].clone();
        simulation.cluster.secrets.insert(name.to_owned(), kept);
    };
    let history = without_list();
    let mut run = Run::begin(&history).unwrap();
    keep(&mut run, "older");
    run.happen(&Event::SecretRemoved);
    run.run_for(60).unwrap();
    keep(&mut run, "newer");
    let created = run.key_record().records.current.unwrap().at;
    run.run_until(created + CHECK, CHECK).unwrap();
    run.take_events();
    // The first reads come before the check, while passes find that the platform lists no keys.
    let reads: [fn(&mut Simulation); 4] = [
        |_| (),
        |_| (),
        |it| replace(it, "older"),
        |it| replace(it, "newer"),
    ];
    for happens in reads {
        run.inject(
            "read of Secret ci",
            Times::Once,
            Injected::Meanwhile(happens),
        );
    }
    let asked = |run: &Run| run.simulation.lock().injector.is_empty();
    assert_eq!(run.events_after(5, |_| ()), Vec::<String>::new());
    assert!(asked(&run), "the key was not to be asked");
    assert_eq!(
        run.condition(&key(), "Ready"),
        "Available: Secret ci contains key NAME"
    );
}
