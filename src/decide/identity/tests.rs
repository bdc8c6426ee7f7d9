//! Which version of a record counts.

use serde_json::{Value, json};

use super::*;

const NAME: &str = "orders";
const UID: &str = "uid-1";

/// A Compute with these texts of its record, in the annotation and in the status.
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
    let binding = Binding { id: id.to_owned(), project: "p-1".to_owned(), platform: None, origin: Origin::Created, at };
    ComputeIdentity { binding: Some(binding), ..ComputeIdentity::default() }
}

/// The versions of a record, each bound to the compute of its number.
fn versions(uid: &str, count: usize) -> Vec<String> {
    let mut object = compute(None, None);
    object.metadata.uid = Some(uid.to_owned());
    let mut texts = Vec::new();
    for number in 1..=count {
        let text = of_compute(&object).unwrap().next(&bound(&format!("ep-{number}")), &object.metadata);
        object.metadata.annotations = Some([(RECORD.to_owned(), text.clone())].into());
        texts.push(text);
    }
    texts
}

fn read(annotation: Option<&str>, status: Option<&str>) -> (Option<String>, bool) {
    let record = of_compute(&compute(annotation, status)).unwrap();
    (record.identity.binding.map(|binding| binding.id), record.is_annotated)
}

#[test]
fn what_was_written_is_read_back() {
    let meta = compute(None, None).metadata;
    let at = Timestamp::UNIX_EPOCH;
    let intent = CreateIntent {
        at,
        branch: "br-1".to_owned(),
        platform: Some("https://platform.example/api/v2".to_owned()),
        baseline: Some(["ep-0".to_owned()].into()),
        newest: Some(at),
        mark: Some("orders-1".to_owned()),
        asked: Some(Settings { passwordless_access: Some(true), ..Settings::default() }),
    };
    let calling = BeforeRestart { updated_at: Some(at), started_at: None };
    let restart = RestartRecord {
        token: "one".to_owned(),
        annotation: "two".to_owned(),
        at,
        maintained: None,
        calling: Some(calling),
    };
    let identity = ComputeIdentity {
        intent: Some(intent.clone()),
        unanswered: vec![intent],
        restart: Some(restart),
        ..bound("ep-1")
    };
    let text = Record::default().next(&identity, &meta);
    assert_eq!(of_compute(&compute(Some(&text), None)).unwrap().identity, identity);
    assert_eq!(of_compute(&compute(None, Some(&text))).unwrap().identity, identity);
    let key = KeyIdentity { id: i64::MAX, name: "ci".to_owned(), at, created_at: None, created_by: None };
    let lost = LostKey { id: None, name: "gone".to_owned(), since: at, because: LostBecause::Unanswered };
    let records = KeyRecords { current: Some(key), lost: vec![lost], ..KeyRecords::default() };
    let intent = KeyIntent { name: "ci-2".to_owned(), at, previous_revoked: true, ..KeyIntent::default() };
    let identity = ProjectKeyIdentity { records, intent: Some(intent) };
    let text = Record::default().next(&identity, &meta);
    let key: ProjectKey = serde_json::from_value(json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": "ProjectKey",
        "metadata": {"namespace": "shop", "name": NAME, "uid": UID, "annotations": {RECORD: text}},
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "secret": {"name": "ci", "key": "api-key"}},
    }))
    .unwrap();
    assert_eq!(of_key(&key).unwrap().identity, identity);
}

#[test]
fn why_a_key_is_lost_is_written_where_it_is_not_the_usual_cause() {
    for (because, written) in [
        (LostBecause::Unanswered, Value::Null),
        (LostBecause::Retired, json!("Retired")),
        (LostBecause::OtherKey, json!("OtherKey")),
    ] {
        let lost = LostKey { id: Some(4), name: "gone".to_owned(), since: Timestamp::UNIX_EPOCH, because };
        let text = serde_json::to_value(&lost).unwrap();
        assert_eq!(text["because"], written);
        assert_eq!(serde_json::from_value::<LostKey>(text).unwrap(), lost);
    }
}

#[test]
fn what_is_recorded_of_a_compute_that_cannot_be_read_is_in_its_annotation() {
    let text = versions(UID, 1).remove(0);
    let unreadable: Record<ComputeIdentity> = of_unreadable(&compute(Some(&text), None).metadata).unwrap();
    assert_eq!(unreadable.identity, bound("ep-1"));
}

#[test]
fn what_the_status_still_says_is_known_while_the_annotation_is_newer() {
    let texts = versions(UID, 2);
    let before = |annotation: &str, status: &str| of_compute(&compute(Some(annotation), Some(status))).unwrap().before;
    assert_eq!(before(&texts[1], &texts[0]), Some(bound("ep-1")));
    assert_eq!(before(&texts[1], &texts[1]), None);
    assert_eq!(before(&texts[0], &texts[1]), None);
}

#[test]
fn the_newer_version_counts() {
    let texts = versions(UID, 3);
    let [one, two, three] = texts.as_slice() else { panic!("{texts:?}") };
    let ep = |number: usize| Some(format!("ep-{number}"));
    for (what, annotation, status, expected) in [
        ("nothing recorded", None, None, (None, true)),
        ("a backup without status", Some(two), None, (ep(2), true)),
        ("replaced by a manifest", None, Some(two), (ep(2), false)),
        ("the same", Some(two), Some(two), (ep(2), true)),
        ("the status is not written yet", Some(three), Some(two), (ep(3), true)),
        ("an older annotation was applied", Some(one), Some(three), (ep(3), false)),
    ] {
        assert_eq!(read(annotation.map(String::as_str), status.map(String::as_str)), expected, "{what}");
    }
}

#[test]
fn an_annotation_of_a_former_resource_of_the_name_is_older() {
    let (former, here) = (versions("uid-0", 5), versions(UID, 1));
    assert_eq!(read(Some(&former[4]), Some(&here[0])), (Some("ep-1".to_owned()), false));
    assert_eq!(read(Some(&former[4]), None), (Some("ep-5".to_owned()), true), "it came from a backup");
    assert_eq!(read(Some(&former[4]), Some(&former[3])), (Some("ep-5".to_owned()), true), "with its status");
    let next = of_compute(&compute(Some(&former[4]), None)).unwrap();
    let next = next.next(&bound("ep-6"), &compute(None, None).metadata);
    assert_eq!(read(Some(&former[4]), Some(&next)), (Some("ep-6".to_owned()), false));
}

#[test]
fn an_invalid_annotation_matters_only_where_the_status_has_no_record() {
    let good = versions(UID, 2).remove(1);
    let elsewhere = {
        let mut meta = compute(None, None).metadata;
        meta.name = Some("other".to_owned());
        Record::default().next(&bound("ep-9"), &meta)
    };
    let edited = good.replace("ep-2", "ep-9");
    for (text, problem) in [
        (edited.as_str(), InvalidAnnotation::Edited),
        (elsewhere.as_str(), InvalidAnnotation::CopiedFrom("shop/other".to_owned())),
    ] {
        assert_eq!(of_compute(&compute(Some(text), None)).unwrap_err(), problem);
        assert_eq!(read(Some(text), Some(&good)), (Some("ep-2".to_owned()), false));
        assert_eq!(
            read(Some(&good), Some(text)),
            (Some("ep-2".to_owned()), true),
            "in the status it counts for nothing"
        );
    }
    assert!(matches!(of_compute(&compute(Some("{"), None)), Err(InvalidAnnotation::Unreadable(_))));
    let other: Value = json!({"serial": 1, "uid": UID, "binding": {"id": 7}});
    let text = seal::seal(RECORD, &other, ObjectKey { namespace: "shop", name: NAME });
    assert!(matches!(of_compute(&compute(Some(&text), None)), Err(InvalidAnnotation::Unreadable(_))));
}

/// The same text in this form, with something that no version before has recorded.
fn of_form(form: u32, text: &str) -> String {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    fields.insert("form".to_owned(), json!(form));
    fields.insert("promised".to_owned(), json!("something"));
    seal::seal(RECORD, &fields, object_key(&compute(None, None).metadata))
}

#[test]
fn what_a_newer_version_recorded_is_not_taken_for_what_it_does_not_say() {
    let texts = versions(UID, 2);
    let (older, text) = (texts[0].as_str(), of_form(FORM + 1, &texts[1]));
    for (annotation, status) in [
        (Some(text.as_str()), None),
        (None, Some(text.as_str())),
        (Some(&text), Some(older)),
        (Some(older), Some(&text)),
    ] {
        assert_eq!(
            of_compute(&compute(annotation, status)).unwrap_err(),
            InvalidAnnotation::Newer,
            "{annotation:?} {status:?}"
        );
    }
    assert!(!older.contains("form"), "the first form is not written");
    assert_eq!(read(Some(&of_form(FORM, older)), None).0.as_deref(), Some("ep-1"), "it is understood where it is");
}

/// The same text with what an older version recorded of a hand-over.
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
    let texts = versions(UID, 3);
    for hand_over in [released, predecessor] {
        let text = with_hand_over(&texts[1], &hand_over);
        for (annotation, status) in [
            (Some(text.as_str()), None),
            (None, Some(text.as_str())),
            (Some(&text), Some(&text)),
            // Neither an older version of the record counts instead, nor a newer one.
            (Some(&text), Some(&texts[0])),
            (Some(&texts[0]), Some(&text)),
            (Some(&text), Some(&texts[2])),
            (Some(&texts[2]), Some(&text)),
        ] {
            let read = of_compute(&compute(annotation, status));
            assert_eq!(read.unwrap_err(), InvalidAnnotation::HandOver, "{annotation:?} {status:?}");
        }
        let unreadable = of_unreadable::<ComputeIdentity>(&compute(Some(&text), None).metadata);
        assert_eq!(unreadable.unwrap_err(), InvalidAnnotation::HandOver);
        let edited = text.replace("ep-2", "ep-9");
        assert_eq!(of_compute(&compute(Some(&edited), None)).unwrap_err(), InvalidAnnotation::Edited);
    }
    assert_eq!(read(Some(&with_hand_over(&texts[0], &Value::Null)), None).0.as_deref(), Some("ep-1"));
}
