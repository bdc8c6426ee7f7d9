//! Tests of keys that a user has revoked.

use super::*;

/// Key 1 in use, key 5 kept for the overlap, key 8 lost.
fn given(annotation: &str) -> GivenKey {
    let records = KeyRecords {
        previous: vec![retired(5, 9000)],
        lost: vec![lost(&key(8).name)],
        ..records(1)
    };
    GivenKey::in_use()
        .records(records)
        .but(|_, seen| seen.revoked = Some(annotation.to_owned()))
}

fn left_of(given: &GivenKey) -> (Vec<String>, String) {
    match given.step(1) {
        KeyStep::Acknowledge { records, event } => {
            (records.names().map(str::to_owned).collect(), event)
        }
        other => panic!("not acknowledged: {other:?}"),
    }
}

fn deleting(given: GivenKey) -> GivenKey {
    given.but(|_, seen| seen.meta.deleting = true)
}

#[test]
fn only_the_named_keys_are_dropped() {
    let (one, five, eight) = (key(1).name, key(5).name, key(8).name);
    let all = [&one, &five, &eight];
    let cases: [(&str, &[&String], &[&String]); 6] = [
        (&eight, &[&one, &five], &[&one, &five]),
        (" 5 , ", &[&one, &eight], &[&one, &eight]),
        ("all", &[&one, &five], &[]),
        // The key in use is checked instead.
        (&one, &all, &[&five, &eight]),
        ("1", &all, &[&five, &eight]),
        ("laptop", &all, &all),
    ];
    for (annotation, in_use, at_the_end) in cases {
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let owned = |names: &[&String]| sorted(names.iter().map(|name| (*name).clone()).collect());
        assert_eq!(
            sorted(left_of(&given(annotation)).0),
            owned(in_use),
            "{annotation}"
        );
        assert_eq!(
            sorted(left_of(&deleting(given(annotation))).0),
            owned(at_the_end),
            "{annotation}, deleting"
        );
    }
}

#[test]
fn the_event_names_dropped_and_unknown_keys() {
    let unknown = "These do not name a key that has to be revoked by hand";
    let (_, event) = left_of(&given(&format!("{},laptop", key(8).name)));
    assert!(
        event.contains(&key(8).name) && event.contains(&format!("{unknown}: laptop.")),
        "{event}"
    );
    for annotation in [key(8).name.as_str(), "all"] {
        let (_, event) = left_of(&given(annotation));
        assert!(!event.contains(unknown), "{event}");
    }
    let (_, event) = left_of(&given(" , "));
    assert!(event.contains("none"), "{event}");
}

/// The annotation was handled, and then these keys were lost.
fn acknowledged(annotation: &str, lost_now: &[&String]) -> GivenKey {
    let KeyStep::Acknowledge { records, .. } = given(annotation).step(1) else {
        panic!("{annotation}")
    };
    let lost = lost_now.iter().map(|name| lost(name)).collect();
    given(annotation).records(KeyRecords { lost, ..records })
}

/// The keys that remain to be revoked, on a platform that offers no revocation.
fn to_revoke(given: GivenKey) -> String {
    let sync = given
        .but(|_, seen| seen.listing = KeyListing::NotOffered)
        .reported(1)
        .1;
    let Sync::OutOfSync(Reason::RevocationUnsupported, text) = sync else {
        panic!("{sync:?}")
    };
    text
}

#[test]
fn what_is_said_counts_once() {
    let (eight, nine) = (key(8).name, key(9).name);
    for annotation in ["all", eight.as_str()] {
        let standing = acknowledged(annotation, &[])
            .observed
            .facts
            .identity
            .unwrap();
        let named = standing.records.acknowledged.unwrap().keys;
        assert_eq!(named, std::slice::from_ref(&eight), "{annotation}");
        let later = acknowledged(annotation, &[&nine]);
        assert!(
            !matches!(later.step(1), KeyStep::Acknowledge { .. }),
            "{annotation} says nothing of a later loss"
        );
        let text = to_revoke(later);
        assert!(
            text.contains(&format!("--overwrite 'dbplane.dev/revoked-keys={nine}'")),
            "{text}"
        );
        assert!(!text.contains("Remove it first"), "{text}");
    }
}

#[test]
fn the_same_value_counts_again_once_the_annotation_was_removed() {
    let nine = key(9).name;
    // The annotation named it before it was lost.
    let early = acknowledged(&nine, &[&nine]);
    let text = to_revoke(early.clone());
    assert!(text.contains("Remove it first"), "{text}");
    let gone = early.but(|_, seen| seen.revoked = None);
    let KeyStep::Record {
        records,
        event: None,
    } = gone.clone().step(1)
    else {
        panic!()
    };
    assert_eq!((records.acknowledged, records.lost.len()), (None, 1));
    assert_eq!(
        deleting(gone).step(1),
        KeyStep::ListKeys,
        "what is said does not matter any more"
    );
    let nothing = given("").but(|_, seen| seen.revoked = None);
    assert_eq!(nothing.step(1), KeyStep::ListKeys, "nothing was said");
}

#[test]
fn it_needs_no_account_and_waits_for_an_open_creation() {
    let missing = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    left_of(&given("all").but(|_, seen| seen.account = missing.clone()));
    left_of(&deleting(given("all")).but(|_, seen| seen.account = missing));
    let open = given("all").intent(intent(NAME, 0));
    assert_eq!(open.step(1), KeyStep::ListKeys);
    let paused = given("all").but(|_, seen| seen.meta.paused = true);
    assert!(matches!(paused.reported(1).0, Health::Paused(_)));
}
