//! Tests: the record that counts for a resource.

use crate::decide::record_of;
use serde_json::{Value, json};

use super::*;
use crate::api::{Compute, ProjectKey};
use crate::domain::{ComputeUnits, KeyId};

const NAME: &str = "orders";
const UID: &str = "uid-1";

/// A Compute with these record texts in the annotation and in the status.
fn compute(annotation: Option<&str>, status: Option<&str>) -> Compute {
    let mut object = json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": "Compute",
        "metadata": {"namespace": "shop", "name": NAME, "uid": UID},
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": "br-1", "type": "ReadOnly"},
    });
    if let Some(text) = annotation {
        object["metadata"]["annotations"] = json!({RECORD: text});
    }
    if let Some(text) = status {
        object["status"] = json!({"record": text});
    }
    serde_json::from_value(object).unwrap()
}

fn bound(id: &str) -> ComputeIdentity {
    let at = Timestamp::UNIX_EPOCH;
    let project = "p-1".into();
    let binding = Binding {
        id: id.into(),
        project,
        platform: None,
        branch: None,
        origin: Origin::Created,
        at,
    };
    ComputeIdentity {
        binding: Some(binding),
        ..ComputeIdentity::default()
    }
}

/// The record of a resource with this UID that is bound to a compute.
fn record(uid: &str, id: &str) -> String {
    let mut meta = compute(None, None).metadata;
    meta.uid = Some(uid.to_owned());
    written(&bound(id), &meta)
}

fn id(identity: ComputeIdentity) -> Option<String> {
    identity.binding.map(|binding| binding.id.to_string())
}

/// The compute of the record, the compute of the wish, and whether the annotation is up to date.
fn read(annotation: Option<&str>, status: Option<&str>) -> (Option<String>, Option<String>, bool) {
    let record = record_of(&compute(annotation, status)).unwrap();
    (
        id(record.identity),
        record.wish.and_then(|wish| id(*wish)),
        record.is_annotated,
    )
}

/// A record with every part set.
fn full_identity() -> ComputeIdentity {
    let at = Timestamp::UNIX_EPOCH;
    let intent = CreateIntent {
        at,
        branch: "br-1".into(),
        platform: Some("https://platform.example/api/v2".to_owned()),
        baseline: Some(["ep-0".into()].into()),
        newest: Some(at),
        mark: Some("orders-1".to_owned()),
        asked: Some(Settings {
            passwordless_access: Some(true),
            ..Settings::default()
        }),
    };
    let before = RestartRecord {
        at,
        noted: true,
        ..RestartRecord::default()
    };
    let calling = BeforeRestart {
        updated_at: Some(at),
        started_at: None,
        size: Some((
            ComputeUnits::new(0.25).unwrap(),
            ComputeUnits::new(2.).unwrap(),
        )),
        branch: Some("br-1".into()),
        answered: Some(RestartAnswer::Plainly),
        unclear: true,
        record: Some(Box::new(before)),
    };
    let restart = RestartRecord {
        token: "one".to_owned(),
        annotation: "two".to_owned(),
        calling: Some(calling),
        in_vain: Some(InVain { calls: 2, at }),
        ..RestartRecord::default()
    };
    ComputeIdentity {
        intent: Some(intent.clone()),
        unanswered: vec![intent],
        restart: Some(restart),
        ..bound("ep-1")
    }
}

#[test]
fn the_record_of_a_compute_is_read_back() {
    let meta = compute(None, None).metadata;
    let identity = full_identity();
    let text = written(&identity, &meta);
    assert_eq!(
        record_of(&compute(Some(&text), None))
            .unwrap()
            .wish
            .as_deref(),
        Some(&identity)
    );
    assert_eq!(
        record_of(&compute(None, Some(&text))).unwrap().identity,
        identity
    );
    assert_eq!(
        written(&identity, &meta),
        text,
        "what is the same is written the same"
    );
}

#[test]
fn the_record_of_a_key_is_read_back() {
    let meta = compute(None, None).metadata;
    let at = Timestamp::UNIX_EPOCH;
    let key = KeyIdentity {
        id: KeyId(i64::MAX),
        name: "ci".to_owned(),
        at,
        created_at: None,
        created_by: None,
    };
    let lost = LostKey {
        id: None,
        name: "gone".to_owned(),
        since: at,
        because: LostBecause::Unanswered,
        unlisted: None,
    };
    let records = KeyRecords {
        current: Some(key),
        lost: vec![lost],
        ..KeyRecords::default()
    };
    let intent = KeyIntent {
        name: "ci-2".to_owned(),
        at,
        previous_revoked: true,
        ..KeyIntent::default()
    };
    let identity = ProjectKeyIdentity {
        records,
        intent: Some(intent),
    };
    let text = written(&identity, &meta);
    let key: ProjectKey = serde_json::from_value(json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": "ProjectKey",
        "metadata": {"namespace": "shop", "name": NAME, "uid": UID},
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "secret": {"name": "ci", "key": "api-key"}},
        "status": {"record": text},
    }))
    .unwrap();
    assert_eq!(record_of(&key).unwrap().identity, identity);
}

#[test]
fn why_a_key_is_lost_is_written_where_it_is_not_the_usual_cause() {
    for (because, written) in [
        (LostBecause::Unanswered, Value::Null),
        (LostBecause::Retired, json!("Retired")),
        (LostBecause::OtherKey, json!("OtherKey")),
    ] {
        let lost = LostKey {
            id: Some(KeyId(4)),
            name: "gone".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            because,
            unlisted: None,
        };
        let text = serde_json::to_value(&lost).unwrap();
        assert_eq!(text["because"], written);
        assert_eq!(serde_json::from_value::<LostKey>(text).unwrap(), lost);
    }
}

#[test]
fn what_is_recorded_of_a_compute_that_cannot_be_read_comes_with_its_metadata() {
    let unreadable =
        |uid: &str| of_unreadable(&compute(Some(&record(uid, "ep-1")), None).metadata).unwrap();
    assert_eq!(
        (unreadable(UID).identity, unreadable(UID).wish),
        (bound("ep-1"), None)
    );
    assert_eq!(
        (unreadable("uid-0").identity, unreadable("uid-0").wish),
        (ComputeIdentity::default(), Some(Box::new(bound("ep-1"))))
    );
}

#[test]
fn the_status_counts_and_an_annotation_is_a_wish_where_the_status_says_nothing() {
    let (one, two, former) = (
        record(UID, "ep-1"),
        record(UID, "ep-2"),
        record("uid-0", "ep-3"),
    );
    let (one, two, former) = (
        Some(one.as_str()),
        Some(two.as_str()),
        Some(former.as_str()),
    );
    let ep = |number: usize| Some(format!("ep-{number}"));
    for (what, annotation, status, expected) in [
        ("nothing recorded", None, None, (None, None, true)),
        ("a backup without status", former, None, (None, ep(3), true)),
        ("the status was removed", two, None, (None, ep(2), true)),
        ("replaced by a manifest", None, two, (ep(2), None, false)),
        ("the same", two, two, (ep(2), None, true)),
        (
            "another annotation of this very resource",
            one,
            two,
            (ep(2), None, false),
        ),
        (
            "one of a former resource of the name",
            former,
            two,
            (ep(2), None, false),
        ),
        (
            "a backup with its status",
            former,
            former,
            (None, ep(3), true),
        ),
        (
            "its status, and an annotation that names this resource",
            two,
            former,
            (None, ep(3), true),
        ),
    ] {
        assert_eq!(read(annotation, status), expected, "{what}");
    }
}

#[test]
fn what_is_sealed_with_a_higher_serial_number_counts_no_more_than_any_other_annotation() {
    let forged = |uid: &str, serial: Value| {
        let binding = json!({"id": "ep-9", "project": "p-1", "origin": "Created", "at": "2026-01-05T08:00:00Z"});
        let fields = json!({"serial": serial, "uid": uid, "binding": binding});
        seal::seal(RECORD, &fields, object_key(&compute(None, None).metadata))
    };
    let status = record(UID, "ep-1");
    for serial in [json!(0), json!(u64::MAX), json!("high"), Value::Null] {
        for uid in [UID, "uid-0", ""] {
            let text = forged(uid, serial.clone());
            let alone = read(Some(&text), None);
            assert_eq!(alone, (None, Some("ep-9".into()), true), "{text}");
            let beside = read(Some(&text), Some(&status));
            assert_eq!(beside, (Some("ep-1".into()), None, false), "{text}");
        }
    }
}

#[test]
fn an_invalid_annotation_matters_only_where_the_status_has_no_record() {
    let good = record(UID, "ep-2");
    let elsewhere = {
        let mut meta = compute(None, None).metadata;
        meta.name = Some("other".to_owned());
        written(&bound("ep-9"), &meta)
    };
    let edited = good.replace("ep-2", "ep-9");
    for (text, problem) in [
        (edited.as_str(), InvalidAnnotation::Edited),
        (
            elsewhere.as_str(),
            InvalidAnnotation::CopiedFrom("shop/other".to_owned()),
        ),
    ] {
        assert_eq!(record_of(&compute(Some(text), None)).unwrap_err(), problem);
        assert_eq!(
            read(Some(text), Some(&good)),
            (Some("ep-2".into()), None, false)
        );
        assert_eq!(
            read(Some(&good), Some(text)),
            (None, Some("ep-2".into()), true),
            "in the status it counts for nothing"
        );
    }
    assert!(matches!(
        record_of(&compute(Some("{"), None)),
        Err(InvalidAnnotation::Unreadable(_))
    ));
    let other: Value = json!({"uid": UID, "binding": {"id": 7}});
    let text = seal::seal(
        RECORD,
        &other,
        ObjectKey {
            namespace: "shop",
            name: NAME,
        },
    );
    assert!(matches!(
        record_of(&compute(Some(&text), None)),
        Err(InvalidAnnotation::Unreadable(_))
    ));
}

/// The same text in this format version, with a field that no earlier version recorded.
fn of_form(form: u32, text: &str) -> String {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    fields.insert("form".to_owned(), json!(form));
    fields.insert("promised".to_owned(), json!("something"));
    seal::seal(RECORD, &fields, object_key(&compute(None, None).metadata))
}

#[test]
fn what_a_newer_version_recorded_is_not_taken_for_what_it_does_not_say() {
    let (older, text) = (record(UID, "ep-1"), of_form(FORM + 1, &record(UID, "ep-2")));
    let older = older.as_str();
    for (annotation, status) in [
        (Some(text.as_str()), None),
        (None, Some(text.as_str())),
        (Some(&text), Some(older)),
        (Some(older), Some(&text)),
    ] {
        assert_eq!(
            record_of(&compute(annotation, status)).unwrap_err(),
            InvalidAnnotation::Newer,
            "{annotation:?} {status:?}"
        );
    }
    assert!(!older.contains("form"), "the first form is not written");
    assert_eq!(
        read(None, Some(&of_form(FORM, older))).0.as_deref(),
        Some("ep-1"),
        "it is understood where it is"
    );
}

/// The same text with a hand-over recorded by an older version.
fn with_hand_over(text: &str, hand_over: &Value) -> String {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    fields.insert("hand_over".to_owned(), hand_over.clone());
    seal::seal(RECORD, &fields, object_key(&compute(None, None).metadata))
}

#[test]
fn a_record_of_a_hand_over_is_invalid_wherever_it_is() {
    let place = json!({"namespace": "shop", "name": "new"});
    let released = json!({"released": {"to": place, "uid": "uid-2", "at": "2026-01-05T08:00:00Z", "taken": true}});
    let predecessor = json!({"predecessor": {"place": place, "uid": "uid-2", "released": "2026-01-05T08:00:00Z"}});
    let texts = ["ep-1", "ep-2", "ep-3"].map(|id| record(UID, id));
    for hand_over in [released, predecessor] {
        let text = with_hand_over(&texts[1], &hand_over);
        for (annotation, status) in [
            (Some(text.as_str()), None),
            (None, Some(text.as_str())),
            (Some(&text), Some(&text)),
            // No other record replaces it.
            (Some(&text), Some(&texts[0])),
            (Some(&texts[0]), Some(&text)),
            (Some(&text), Some(&texts[2])),
            (Some(&texts[2]), Some(&text)),
        ] {
            let read = record_of(&compute(annotation, status));
            assert_eq!(
                read.unwrap_err(),
                InvalidAnnotation::HandOver,
                "{annotation:?} {status:?}"
            );
        }
        let unreadable = of_unreadable::<ComputeIdentity>(&compute(Some(&text), None).metadata);
        assert_eq!(unreadable.unwrap_err(), InvalidAnnotation::HandOver);
        let edited = text.replace("ep-2", "ep-9");
        assert_eq!(
            record_of(&compute(Some(&edited), None)).unwrap_err(),
            InvalidAnnotation::Edited
        );
    }
    assert_eq!(
        read(None, Some(&with_hand_over(&texts[0], &Value::Null)))
            .0
            .as_deref(),
        Some("ep-1")
    );
}

#[test]
fn a_copy_without_the_last_restart_restores_as_much() {
    let at = Timestamp::UNIX_EPOCH;
    let restart = RestartRecord {
        token: "one".into(),
        at,
        ..RestartRecord::default()
    };
    let identity = ComputeIdentity {
        restart: Some(restart),
        ..bound("ep-1")
    };
    let status = written(&identity, &compute(None, None).metadata);
    let edited = record(UID, "ep-1").replace("ep-1", "ep-2");
    for (copy, is_annotated) in [
        (record(UID, "ep-1"), true),
        (record(UID, "ep-2"), false),
        (record("uid-0", "ep-1"), false),
        (edited, false),
        (String::new(), false),
    ] {
        assert_eq!(
            read(Some(&copy), Some(&status)),
            (Some("ep-1".into()), None, is_annotated),
            "{copy}"
        );
    }
}
