//! Rotation on request: it happens once, never switches to a key that the platform refuses, and
//! never piles up keys.

use dbplane::decide::names;
use dbplane_simulator::world::message::{Method, Request};
use jiff::SignedDuration;
use kube::ResourceExt;
use serde_json::json;

use crate::faults::{Carried, Fault};
use crate::history::{Event, key};
use crate::injector::{CREATE_KEY, Injected, LIST, Times};
use crate::rotating::{MOST_KEYS, rotation};
use crate::run::Run;
use crate::simulation::Simulation;
use crate::watching::history;

const CREATED: &str = "ci KeyCreated: Created key NAME (ID)";
const REVOKED: &str = "ci KeyRevoked: Revoked key NAME (ID)";
const REVOKE: &str = "Delete /organizations/org/api_keys/*";

/// The number of the key in the Secret.
fn held(simulation: &Simulation) -> Option<i64> {
    simulation.cluster.secrets["ci"]
        .annotations()
        .get(names::SECRET_KEY_ID)?
        .parse()
        .ok()
}

impl Run<'_> {
    /// The numbers of the valid keys.
    fn valid(&self) -> Vec<i64> {
        self.simulation
            .lock()
            .keys_of(&key())
            .into_iter()
            .map(|(id, _)| id)
            .collect()
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
    run.take_events();
    assert_eq!(run.events_after(60, |run| run.request_key(1)), [CREATED]);
    assert_eq!(run.valid().len(), 2);
    assert_ne!(run.held(), before);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
    // The same value again, or an empty one, is no new request. That holds for a new process as
    // well.
    run.kill();
    assert_eq!(
        run.events_after(60, |run| run.annotate(&key(), names::ROTATE, "r1")),
        Vec::<String>::new()
    );
    assert_eq!(
        run.events_after(60, |run| run.annotate(&key(), names::ROTATE, "")),
        Vec::<String>::new()
    );
    assert_eq!(run.events_after(3600, |_| ()), [REVOKED]);
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
}

/// Acts as if the platform refused each new key, by revoking it before its first use.
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
    run.take_events();
    run.inject(LIST, Times::Always, Injected::Meanwhile(refuse));
    let reported = run.events_after(80, |run| run.request_key(1));
    let refused = "ci NewKeyRefused: The platform does not accept the new key NAME (ID) that it has created. Key NAME stays in use";
    assert_eq!(reported, [CREATED, refused, REVOKED]);
    assert_eq!(
        (run.held(), run.valid()),
        (before, before.into_iter().collect())
    );
    assert_eq!(
        run.condition(&key(), "Ready"),
        "Available: Secret ci contains key NAME"
    );
    assert!(
        run.condition(&key(), "Synced").starts_with("NewKeyRefused"),
        "{}",
        run.condition(&key(), "Synced")
    );
    // Retries back off up to one hour.
    let tries = run
        .events_after(3600, |_| ())
        .iter()
        .filter(|reported| **reported == CREATED)
        .count();
    assert!((2..=8).contains(&tries), "{tries}");
    run.without_injected_faults();
    run.run_for(3700).unwrap();
    assert_ne!(run.held(), before);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
}

#[test]
fn a_new_key_that_was_not_tried_before_the_process_died_is_revoked_and_another_one_is_created() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.take_events();
    // The next request after the create is the check of the new key.
    let die: fn(&mut Simulation) = |simulation| {
        simulation.injector.set(
            LIST,
            Times::Once,
            Injected::Fault(Fault::Dies(Carried::Never)),
        )
    };
    run.inject(CREATE_KEY, Times::Once, Injected::Meanwhile(die));
    let reported = run.events_after(300, |run| run.request_key(1));
    assert_eq!(reported, [REVOKED, CREATED]);
    assert_eq!(run.valid().len(), 2);
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r1");
}

#[test]
fn however_often_people_ask_the_number_of_keys_is_bounded() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.inject(REVOKE, Times::Always, Injected::Fault(Fault::Refused(403)));
    for value in 0..20 {
        run.request_key(value);
        run.run_for(600).unwrap();
        assert!(run.valid().len() < MOST_KEYS, "{:?}", run.valid());
    }
    assert_eq!(run.valid().len(), 4);
    run.without_injected_faults();
    run.run_for(3600 * 3).unwrap();
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
    assert_eq!(run.status_of(&key())["lastHandledRotate"], "r19");
}

#[test]
fn a_key_that_nobody_uses_any_more_is_revoked_before_the_deadline() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.apply(&key(), &json!({"rotation": rotation(2)}));
    run.run_for(5).unwrap();
    run.take_events();
    assert_eq!(
        run.events_after(3000, |run| run.happen(&Event::KeyRequested(1))),
        [CREATED]
    );
    assert_eq!(run.valid().len(), 2);
    assert_eq!(
        run.events_after(2000, |_| ()),
        [REVOKED],
        "it was unused for an hour"
    );
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
}

#[test]
fn a_key_that_is_used_is_kept_until_the_deadline() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.apply(&key(), &json!({"rotation": rotation(2)}));
    run.run_for(5).unwrap();
    run.take_events();
    let before = run.entry("api-key").unwrap();
    run.happen(&Event::KeyRequested(1));
    for _ in 0..8 {
        run.run_for(600).unwrap();
        run.call_with(&before);
    }
    assert_eq!(
        (run.take_events(), run.valid().len()),
        (vec![CREATED.to_owned()], 2)
    );
    let ready = run.condition(&key(), "Ready");
    assert!(
        ready.contains("stays valid until it was not used for 1h"),
        "{ready}"
    );
    let reported = run.events_after(1200, |_| ());
    let words = "ci KeyRevokedInUse: Revoked key NAME (ID). It may still be in use: spec.rotation.deadline is over, and it was last used at";
    assert!(
        reported.len() == 1 && reported[0].starts_with(words),
        "{reported:?}"
    );
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
}

/// Consumers keep using the previous key. The record of its uses survives a restart of the process.
#[test]
fn the_platforms_clock_may_be_a_day_apart() {
    for ahead in [-24, 24] {
        let history = history(&[], true);
        let mut run = Run::begin(&history).unwrap();
        run.simulation.lock().ahead = SignedDuration::from_hours(ahead);
        let rotation = json!({
            "every": "8760h", "overlap": "1m", "revokePrevious": "WhenUnused", "unusedFor": "1h", "deadline": "12h",
        });
        run.apply(&key(), &json!({"rotation": rotation}));
        run.run_for(5).unwrap();
        run.take_events();
        let before = run.entry("api-key").unwrap();
        run.call_with(&before);
        run.happen(&Event::KeyRequested(1));
        for _ in 0..30 {
            run.run_for(600).unwrap();
            run.call_with(&before);
        }
        assert_eq!(
            (run.take_events(), run.valid().len()),
            (vec![CREATED.to_owned()], 2),
            "{ahead}"
        );
        assert_eq!(
            run.events_after(3000, |_| ()),
            Vec::<String>::new(),
            "{ahead}"
        );
        run.kill();
        assert_eq!(run.events_after(2400, |_| ()), [REVOKED], "{ahead}");
        assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
    }
}

impl Run<'_> {
    /// An entry of the Secret.
    fn entry(&self, name: &str) -> Option<String> {
        let simulation = self.simulation.lock();
        let bytes = simulation.cluster.secrets["ci"]
            .data
            .as_ref()?
            .get(name)?
            .0
            .clone();
        Some(String::from_utf8(bytes).unwrap())
    }

    /// A consumer calls the platform with this key.
    fn call_with(&self, token: &str) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        let request = Request::new(Method::Get, "/projects/p/endpoints", now).bearer(token);
        assert_eq!(simulation.world.respond(&request, now).status, 200);
    }
}

/// The entry of `previousKey` is added by a rotation and removed when its key is revoked.
fn declared() -> serde_json::Value {
    let template = json!({"url": "https://platform.example/api/v2", "organization": "org"});
    json!({"secret": {"previousKey": "before", "template": template}, "rotation": {"every": "8760h", "overlap": "10m"}})
}

#[test]
fn the_key_before_stays_in_the_secret_until_it_is_revoked() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.apply(&key(), &declared());
    run.run_for(5).unwrap();
    let first = run.entry("api-key");
    assert_eq!(
        (run.entry("before"), run.entry("organization").as_deref()),
        (None, Some("org"))
    );
    // The answer to the write is lost once, so it is repeated and overwrites itself.
    run.inject(
        "write of Secret ci",
        Times::Once,
        Injected::Fault(Fault::Silence(Carried::Now)),
    );
    run.request_key(1);
    run.run_for(120).unwrap();
    let second = run.entry("api-key");
    assert_ne!(second, first);
    assert_eq!(run.entry("before"), first);
    run.kill();
    run.run_for(60).unwrap();
    run.request_key(2);
    run.run_for(60).unwrap();
    assert_eq!(
        run.entry("before"),
        second,
        "the one before, and not the one before that"
    );
    // The entry moves when its declared name changes.
    run.apply(&key(), &json!({"secret": {"previousKey": "former"}}));
    run.run_for(60).unwrap();
    assert_eq!((run.entry("before"), run.entry("former")), (None, second));
    run.run_for(1200).unwrap();
    assert_eq!(run.valid(), run.held().into_iter().collect::<Vec<_>>());
    assert_eq!((run.entry("before"), run.entry("former")), (None, None));
    assert_eq!(
        run.entry("url").as_deref(),
        Some("https://platform.example/api/v2")
    );
}

#[test]
fn the_key_before_is_not_kept_where_it_is_of_no_use_or_was_altered() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.apply(&key(), &declared());
    run.run_for(5).unwrap();
    // A revoked key is not kept as the previous one.
    run.happen(&Event::KeyRevoked);
    run.run_for(700).unwrap();
    assert_eq!((run.entry("before"), run.valid().len()), (None, 1));
    run.request_key(1);
    run.run_for(60).unwrap();
    assert!(run.entry("before").is_some());
    let alter: fn(&mut Simulation) = |simulation| {
        let mut secret = simulation.cluster.secrets["ci"].clone_inner();
        let entry = k8s_openapi::ByteString(b"altered".to_vec());
        secret
            .data
            .as_mut()
            .unwrap()
            .insert("before".to_owned(), entry);
        simulation
            .cluster
            .secrets
            .insert("ci".to_owned(), crate::in_memory::Print::of(secret));
    };
    alter(&mut run.simulation.lock());
    run.take_events();
    assert_eq!(
        run.events_after(60, |_| ()),
        Vec::<String>::new(),
        "that is no reason for another key"
    );
    assert_eq!(run.entry("before"), None);
}

#[test]
fn a_secret_has_the_declared_type() {
    let history = history(&[], false);
    let mut run = Run::begin(&history).unwrap();
    let declared = |type_: &str, name: &str| {
        json!({
            "accountRef": {"name": "prod"}, "projectID": crate::simulation::PROJECT,
            "secret": {"name": name, "type": type_},
        })
    };
    run.apply(&key(), &declared("example.com/api-key", "typed"));
    run.run_for(60).unwrap();
    let type_ = run.simulation.lock().cluster.secrets["typed"].type_.clone();
    assert_eq!(type_.as_deref(), Some("example.com/api-key"));
}
