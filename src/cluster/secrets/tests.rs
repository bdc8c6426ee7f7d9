//! Tests of a Secret's ownership, and that no value is ever printed.

use super::*;

fn owner() -> Owner {
    let reference = reference("ProjectKey", "ci", "new");
    Owner {
        namespace: "shop".to_owned(),
        uid: reference.uid.clone(),
        reference,
    }
}

fn reference(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "dbplane.dev/v1alpha1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

#[test]
fn only_a_secret_of_dbplane_for_the_same_name_was_formerly_owned() {
    let old = || reference("ProjectKey", "ci", "old");
    let other_group = OwnerReference {
        api_version: "example.com/v1".to_owned(),
        ..old()
    };
    let cases = [
        (true, vec![old()], true),
        (false, vec![old()], false),
        (true, vec![], false),
        (true, vec![reference("ProjectKey", "cd", "old")], false),
        (true, vec![reference("Compute", "ci", "old")], false),
        (true, vec![other_group], false),
        (
            true,
            vec![old(), reference("Deployment", "shop", "1")],
            false,
        ),
    ];
    for (managed, owners, was) in cases {
        let mut secret = Secret::default();
        if managed {
            secret
                .labels_mut()
                .insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        }
        secret.metadata.owner_references = Some(owners);
        assert_eq!(owner().formerly_owned(&secret), was, "{secret:?}");
    }
}

#[test]
fn a_secret_without_owner_names_its_former_owner() {
    let of = |kind: &str, name: &str| Owner {
        reference: reference(kind, name, "new"),
        ..owner()
    };
    let mut secret = empty(&of("Compute", "ci"), "to-ci", None);
    secret.metadata.owner_references = None;
    assert!(of("Compute", "ci").formerly_owned(&secret));
    assert!(
        !of("Compute", "cd").formerly_owned(&secret)
            && !of("ProjectKey", "ci").formerly_owned(&secret)
    );
    secret.metadata.labels = None;
    assert!(!of("Compute", "ci").formerly_owned(&secret));
}

#[test]
fn nothing_of_a_secret_is_in_debug() {
    let entry = || BTreeMap::from([("api-key".to_owned(), SecretString::from("canary-content"))]);
    let content = SecretContent {
        data: entry(),
        ..SecretContent::default()
    };
    let data = BTreeMap::from([("api-key".to_owned(), ByteString(b"canary-state".to_vec()))]);
    let state = SecretState::Ours(Box::new(Secret {
        data: Some(data),
        ..Secret::default()
    }));
    let text = format!("{content:?} {content:#?} {state:?} {state:#?}");
    assert!(
        text.contains("api-key") && !text.contains("canary"),
        "{text}"
    );
}
