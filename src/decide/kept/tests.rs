use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use super::*;

fn texts<const N: usize>(entries: [(&str, &str); N]) -> Option<BTreeMap<String, String>> {
    Some(
        entries
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    )
}

fn owner(kind: &str) -> OwnerReference {
    OwnerReference {
        kind: kind.to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

fn full(owners: &[&str]) -> ObjectMeta {
    ObjectMeta {
        labels: texts([("team", "shop")]),
        annotations: texts([
            ("dbplane.dev/record", "r"),
            ("example.com/note", &"x".repeat(9000)),
        ]),
        managed_fields: Some(vec![ManagedFieldsEntry::default()]),
        owner_references: Some(owners.iter().map(|kind| owner(kind)).collect()),
        ..ObjectMeta::default()
    }
}

#[test]
fn what_nobody_reads_is_dropped() {
    let digest = text(&"x".repeat(9000)).into_owned();
    assert_eq!(digest.len(), "sha256:".len() + 16);
    for (owners, selected, labels, note) in [
        (&[][..], false, None, None),
        (&["ReadReplicaSet"], false, None, None),
        (&[], true, Some("shop"), None),
        (&["Application"], true, Some("shop"), None),
        (
            &["ReadReplicaSet"],
            true,
            Some("shop"),
            Some(digest.as_str()),
        ),
    ] {
        let mut meta = full(owners);
        trim(&mut meta, selected);
        let annotations = meta.annotations.unwrap();
        assert_eq!(
            meta.labels.as_ref().map(|labels| labels["team"].as_str()),
            labels,
            "{owners:?}"
        );
        assert_eq!(
            annotations.get("example.com/note").map(String::as_str),
            note,
            "{owners:?} {selected}"
        );
        assert_eq!(
            (
                annotations["dbplane.dev/record"].as_str(),
                meta.managed_fields
            ),
            ("r", None)
        );
    }
    assert_eq!(text("short"), "short");
}

#[test]
fn metadata_that_is_too_large_is_not_kept() {
    assert_eq!(fits(&mut full(&["ReadReplicaSet"])), Ok(()));
    let many = |count: usize| {
        (0..count)
            .map(|number| (format!("l{number}"), String::new()))
            .collect()
    };
    let large = |name: &str| texts([(name, &"r".repeat(40_000))]);
    let finalizers = |count: usize| Some(vec!["example.com/f".to_owned(); count]);
    for meta in [
        ObjectMeta {
            labels: Some(many(1000)),
            ..full(&[])
        },
        ObjectMeta {
            annotations: large("dbplane.dev/record"),
            ..full(&[])
        },
        ObjectMeta {
            finalizers: finalizers(1000),
            ..full(&[])
        },
        full(&["Application"; 1000]),
        ObjectMeta {
            owner_references: Some(vec![OwnerReference {
                uid: "u".repeat(40_000),
                ..owner("a")
            }]),
            ..full(&[])
        },
    ] {
        let mut meta = ObjectMeta {
            uid: Some("u".to_owned()),
            ..meta
        };
        let own = "dbplane.dev/finalizer".to_owned();
        meta.finalizers.get_or_insert_default().push(own.clone());
        assert!(fits(&mut meta).unwrap_err().contains("KiB"));
        assert!(fits(&mut meta).is_ok(), "what is left is small: {meta:?}");
        assert_eq!(
            (meta.uid.as_deref(), meta.finalizers),
            (Some("u"), Some(vec![own]))
        );
        assert_eq!((meta.labels, meta.annotations), (None, None));
    }
    let mut of_a_set = ObjectMeta {
        labels: Some(many(1000)),
        ..full(&["ReadReplicaSet"])
    };
    assert!(fits(&mut of_a_set).is_err());
    assert_eq!(
        of_a_set.owner_references,
        full(&["ReadReplicaSet"]).owner_references,
        "its set knows that it is there"
    );
}
