//! Reports in the ordinary life of resources: events and status.

use std::fs::{self, File};
use std::sync::Arc;

use serde_json::{Value, json};

use super::history::{Declared, Event, History, compute, key};
use super::run::Run;
use super::watching::{history, replica};

#[test]
fn of_a_compute() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    assert_eq!(
        run.take_events(),
        ["r0 Created: Created compute ID on branch b0"]
    );
    let operation = run.status_of(&compute(0))["lastOperation"].clone();
    assert_eq!(
        (&operation["action"], &operation["failures"]),
        (&json!("start_compute"), &Value::Null),
        "{operation}"
    );
    let elsewhere = |run: &mut Run| {
        run.apply(
            &compute(0),
            &json!({"connection": {"secretName": "elsewhere"}}),
        )
    };
    let unused = "r0 SecretUnused: Secret to-r0 is not updated any more, since spec.connection.secretName is elsewhere. \
                  Once no client uses it: kubectl -n shop delete secret to-r0";
    assert_eq!(run.events_after(60, |_| ()), Vec::<String>::new());
    assert_eq!(run.events_after(60, elsewhere), [unused]);
    for (event, seconds, expected) in [
        (
            Event::Resize(0, 1),
            60,
            &["r0 Changed: Changed compute ID: size is 1, declared is 2"][..],
        ),
        (
            Event::Restart(0, 1),
            60,
            &["r0 Restarted: Restarted compute ID"],
        ),
        (
            Event::ComputeRemoved(0),
            300,
            &[
                "r0 ComputeNotFound: Compute ID is not in the project's list. dbplane reads the list again",
                "r0 Recreated: Compute ID no longer exists. Created compute ID on branch b0. Its host is another one",
            ],
        ),
        (Event::Delete(0), 60, &["r0 Deleted: Deleted compute ID"]),
    ] {
        assert_eq!(
            run.events_after(seconds, |run| run.happen(&event)),
            expected,
            "{event:?}"
        );
    }
    assert!(
        !run.simulation
            .lock()
            .cluster
            .objects
            .contains_key(&compute(0))
    );
}

/// Creates and changes have their own events, so `Available` is not reported for them.
#[test]
fn available_is_reported_only_after_a_problem() {
    let history = history(&[replica()], true);
    let mut run = Run::begin(&history).unwrap();
    let reported = |run: &Run| {
        let reported = &run.simulation.lock().ledger.events;
        reported
            .iter()
            .filter(|(_, reason, _)| reason == "Available")
            .map(|(name, ..)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(reported(&run), Vec::<String>::new());
    run.happen(&Event::Resize(0, 1));
    run.run_for(60).unwrap();
    assert_eq!(reported(&run), Vec::<String>::new());
    run.happen(&Event::KeyRevoked);
    run.run_for(600).unwrap();
    assert_eq!(reported(&run), ["ci"]);
}

#[test]
fn of_a_compute_that_exists_already() {
    let history = history(
        &[Declared {
            primary: true,
            ..replica()
        }],
        false,
    );
    let spec = history.spec(&compute(0)).unwrap();
    let with = |more: Value| {
        let mut spec = spec.clone();
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        spec
    };
    for (reported, fields) in [
        (
            "Adopted compute ID",
            (|_| json!({"existing": "Adopt"})) as fn(String) -> Value,
        ),
        ("Imported compute ID", |id| json!({"computeID": id})),
        ("Observing compute ID", |_| json!({"management": "Observe"})),
    ] {
        let nothing = History {
            computes: Vec::new(),
            ..history.clone()
        };
        let mut run = Run::begin(&nothing).unwrap();
        run.happen(&Event::ForeignCompute(0, true));
        let fields = {
            let mut simulation = run.simulation.lock();
            let id = simulation.world.console_computes(None)[0].id.clone();
            // Records the compute as ours. Otherwise touching it counts as a violation.
            simulation.ledger.computes.insert(id.clone(), compute(0));
            fields(id)
        };
        let expected = format!("r0 Linked: {reported}");
        assert_eq!(
            run.events_after(60, |run| run.apply(&compute(0), &with(fields)))[0],
            expected
        );
    }
}

#[test]
fn of_a_key() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    assert_eq!(run.take_events(), ["ci KeyCreated: Created key NAME (ID)"]);
    for (event, seconds, expected) in [
        (
            Event::SecretRemoved,
            60,
            &[
                "ci KeyReplaced: Secret ci was deleted or altered and no longer contains key NAME. The key is being replaced",
                "ci KeyCreated: Created key NAME (ID)",
                "ci KeyRevoked: Revoked key NAME (ID)",
            ][..],
        ),
        (
            Event::KeyRevoked,
            700,
            &[
                "ci KeyRevoked: The platform does not accept key NAME. dbplane checks whether it was revoked",
                "ci KeyReplaced: Key NAME was revoked on the platform. It is being replaced",
                "ci KeyCreated: Created key NAME (ID)",
            ],
        ),
        (
            Event::KeyDeleted,
            60,
            &["ci KeyRevoked: Revoked key NAME (ID)"],
        ),
    ] {
        assert_eq!(
            run.events_after(seconds, |run| run.happen(&event)),
            expected,
            "{event:?}"
        );
    }
    assert!(!run.simulation.lock().cluster.objects.contains_key(&key()));
}

#[test]
fn log_lines_name_what_was_done_and_where() {
    let text = logged(|| {
        let history = history(&[replica()], true);
        let mut run = Run::begin(&history).unwrap();
        for event in [
            Event::Resize(0, 1),
            Event::Restart(0, 1),
            Event::SecretRemoved,
            Event::Rebuild,
        ] {
            run.happen(&event);
            run.run_for(120).unwrap();
        }
        let mut imports = history.spec(&compute(0)).unwrap();
        imports["computeID"] = run.status_of(&compute(0))["computeID"].clone();
        run.apply(&compute(0), &json!({"deletion": "Orphan"}));
        run.happen(&Event::Delete(0));
        run.run_for(60).unwrap();
        run.apply(&compute(0), &imports);
        for event in [Event::Nothing, Event::Delete(0), Event::KeyDeleted] {
            run.happen(&event);
            run.run_for(120).unwrap();
        }
    });
    let compute = [" project=\"p\"", " compute=\"ep-"];
    let key = [" project=\"p\"", " key=\"ci-", " key_id="];
    for (said, action, fields) in [
        (" event=\"Created\"", "create", &compute[..]),
        (" event=\"Changed\"", "change", &compute),
        (" event=\"Restarted\"", "restart", &compute),
        (" event=\"Deleted\"", "delete", &compute),
        ("Found compute", "link", &compute),
        ("Imported compute", "link", &compute),
        (" event=\"KeyCreated\"", "create_key", &key),
        (" event=\"KeyRevoked\"", "revoke", &key),
        (
            "Adopted Secret ci",
            "adopt_secret",
            &[" key=\"ci-", " secret=\"ci\""],
        ),
        (" action=\"write_secret\"", "write_secret", &[" secret=\""]),
        (
            " action=\"protect_secret\"",
            "protect_secret",
            &[" secret=\"platform-api-key\""],
        ),
        (
            " action=\"unprotect_secret\"",
            "unprotect_secret",
            &[" secret=\"platform-api-key\""],
        ),
    ] {
        assert_named(&text, said, action, fields);
    }
}

/// The log lines written during `happens`.
pub fn logged(happens: impl FnOnce()) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = Arc::new(File::create(&path).unwrap());
    // With only one subscriber, tracing asks only that of the first thread at each line, and other
    // tests have none.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log)
        .finish();
    tracing::subscriber::with_default(lines, happens);
    fs::read_to_string(path).unwrap()
}

/// Asserts that lines contain `said`, and that each of them has this action and these fields.
pub fn assert_named(log: &str, said: &str, action: &str, fields: &[&str]) {
    let action = format!(" action=\"{action}\" ");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(said)).collect();
    let nameless: Vec<_> = lines
        .iter()
        .filter(|line| !line.contains(&action) || !fields.iter().all(|field| line.contains(field)))
        .collect();
    assert!(
        !lines.is_empty() && nameless.is_empty(),
        "{said}: {nameless:#?}\n{log}"
    );
}
