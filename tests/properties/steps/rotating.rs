//! Keys that are replaced because people ask for it: once, never by one that the platform refuses, and never by ever more of them.

use dbplane::decide::names;
use kube::ResourceExt;
use serde_json::json;

use crate::faults::{Carried, Fault};
use crate::history::{Event, key};
use crate::rotating::{MOST_KEYS, rotation};
use crate::run::Run;
use crate::simulation::Simulation;
use crate::snares::{CREATE_KEY, LIST, Snag, Times};
use crate::watching::history;

const CREATED: &str = "ci KeyCreated: Created key NAME (ID)";
const REVOKED: &str = "ci KeyRevoked: Revoked key NAME (ID)";
const REVOKE: &str = "Delete /organizations/org/api_keys/*";

/// The number of the key in the Secret.
fn held(simulation: &Simulation) -> Option<i64> {
    simulation.cluster.secrets["ci"].annotations().get(names::SECRET_KEY_ID)?.parse().ok()
}

impl Run<'_> {
    /// The numbers of the valid keys.
    fn valid(&self) -> Vec<i64> {
        self.simulation.lock().keys_of(&key()).into_iter().map(|(id, _)| id).collect()
    }

    fn held(&self) -> Option<i64> {
        held(&self.simulation.lock())
    }
}

#[test]
fn a_key_that_people_ask_for_is_created_once_and_the_one_before_goes_after_an_hour() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    let before = run.held();
    run.told();
    assert_eq!(run.told_after(60, |run| run.request_key(1)), [CREATED]);
    assert_eq!(run.valid().len(), 2);
    assert_ne!(run.held(), before);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
    // The same again, and none at all, is no other request; nor is a process that knows nothing of the first.
    run.kill();
    assert_eq!(run.told_after(60, |run| run.annotate(&key(), names::ROTATE, "r1")), Vec::<String>::new());
    assert_eq!(run.told_after(60, |run| run.annotate(&key(), names::ROTATE, "")), Vec::<String>::new());
    assert_eq!(run.told_after(3600, |_| ()), [REVOKED]);
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
}

/// As if the platform refused each new key: it is revoked before anybody can use it.
fn refuse(simulation: &mut Simulation) {
    let (held, now) = (held(simulation), simulation.now);
    for (id, _) in simulation.keys_of(&key()) {
        if Some(id) != held {
            simulation.world.console_revoke_key(id, now).unwrap();
        }
    }
}

#[test]
fn a_new_key_that_the_platform_refuses_is_not_switched_to() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    let before = run.held();
    run.told();
    run.snare(LIST, Times::Always, Snag::Meanwhile(refuse));
    let told = run.told_after(40, |run| run.request_key(1));
    let refused = "ci NewKeyRefused: The platform does not accept the new key NAME (ID) that it has created. Key NAME stays in use";
    assert_eq!(told, [CREATED, refused, REVOKED]);
    assert_eq!((run.held(), run.valid()), (before, before.into_iter().collect()));
    assert_eq!(run.condition(&key(), "Ready"), "Available: Secret ci contains key NAME");
    assert!(run.condition(&key(), "Synced").starts_with("NewKeyRefused"), "{}", run.condition(&key(), "Synced"));
    // With pauses that grow to an hour.
    let tries = run.told_after(3600, |_| ()).iter().filter(|told| **told == CREATED).count();
    assert!((2..=8).contains(&tries), "{tries}");
    run.without_snares();
    run.go_on(3700).unwrap();
    assert_ne!(run.held(), before);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
}

#[test]
fn a_new_key_that_was_not_tried_before_the_process_died_is_revoked_and_another_one_is_created() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.told();
    // The next question to the platform after the creation is the one to the new key.
    let die: fn(&mut Simulation) =
        |simulation| simulation.snares.set(LIST, Times::Once, Snag::Fault(Fault::Dies(Carried::Never)));
    run.snare(CREATE_KEY, Times::Once, Snag::Meanwhile(die));
    let told = run.told_after(300, |run| run.request_key(1));
    assert_eq!(told, [REVOKED, CREATED]);
    assert_eq!(run.valid().len(), 2);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
}

#[test]
fn however_often_people_ask_the_number_of_keys_is_bounded() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.snare(REVOKE, Times::Always, Snag::Fault(Fault::Refused(403)));
    for value in 0..20 {
        run.request_key(value);
        run.go_on(600).unwrap();
        assert!(run.valid().len() < MOST_KEYS, "{:?}", run.valid());
    }
    assert_eq!(run.valid().len(), 4);
    run.without_snares();
    run.go_on(3600 * 3).unwrap();
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r19");
}

#[test]
fn a_key_whose_use_the_platform_does_not_show_is_kept_until_the_deadline() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.apply(&key(), &json!({"rotation": rotation(2)}));
    run.go_on(5).unwrap();
    run.told();
    assert_eq!(run.told_after(5000, |run| run.happen(&Event::KeyRequested(1))), [CREATED]);
    assert_eq!(run.valid().len(), 2);
    let ready = run.condition(&key(), "Ready");
    assert!(ready.contains("because the platform does not show when it was last used"), "{ready}");
    let told = run.told_after(600, |_| ());
    let words = "ci KeyRevokedInUse: Revoked key NAME (ID). It may still be in use: spec.rotation.deadline is over";
    assert!(told.len() == 1 && told[0].starts_with(words), "{told:?}");
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
}
