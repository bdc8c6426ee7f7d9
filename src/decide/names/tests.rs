use super::*;

const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const CI: ObjectKey = ObjectKey {
    namespace: "shop",
    name: "ci",
};

fn cluster(text: &str) -> ClusterId {
    text.parse().unwrap()
}

#[test]
fn finalizers_are_recognized_whichever_operator_has_set_them() {
    let confined = AccountFinalizers::confined_to(&["shop".to_owned()]);
    for (finalizer, is_own, is_of_credentials) in [
        (FINALIZER, true, false),
        (confined.account.as_str(), true, false),
        (CREDENTIAL_FINALIZER, true, true),
        (confined.credential.as_str(), true, true),
        (format!("{FINALIZER}s").as_str(), false, false),
        (format!("{CREDENTIAL_FINALIZER}2").as_str(), false, false),
        ("kubernetes.io/pvc-protection", false, false),
    ] {
        assert_eq!(
            (is_finalizer(finalizer), is_for_credentials(finalizer)),
            (is_own, is_of_credentials),
            "{finalizer}"
        );
    }
}

#[test]
fn names_are_unique_for_each_attempt_and_never_too_long() {
    let here = cluster("c1u57e");
    assert_eq!(
        unique("ci", &here, CI, 255),
        "ci-c1u57e-vpzc5qrz22arf-000000ff"
    );
    assert_ne!(unique("ci", &here, CI, 1), unique("ci", &here, CI, 2));
    assert_ne!(
        unique("ci", &here, CI, 1),
        unique("ci", &cluster("0ther0"), CI, 1)
    );
    let long = unique(&"x".repeat(200), &here, CI, 1);
    assert_eq!(long.len(), 64);
    assert!(
        long.starts_with(&"x".repeat(LONGEST_READABLE)),
        "whatever people may choose has room: {long}"
    );
    assert!(here.issued(&long));
}

#[test]
fn a_long_name_is_shortened_and_stays_distinct() {
    let longest = "12345678901234567890123456789012";
    assert_eq!(shortened(longest), longest);
    let [one, other] = ["a", "b"]
        .map(|end| shortened(&format!("team-of-the-warehouse-x.{}{end}", "y".repeat(40))));
    assert!(
        one.starts_with("team-of-the-warehouse-x-") && one.len() == 32,
        "{one}"
    );
    assert_ne!(one, other);
    assert_eq!(shortened(&"y".repeat(40)).len(), 32);
}

#[test]
fn names_at_the_limits_are_derived_within_them() {
    let here = cluster("c1u57e");
    for length in [1, 32, 33, 63, 64, 236, 237, 249, 250, 251, 252, 253] {
        let [one, other] = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(length - 1)));
        let namespace = "n".repeat(63);
        let [of_one, of_other] = [&one, &other].map(|name| ObjectKey {
            namespace: &namespace,
            name,
        });
        // A key or compute on the platform.
        let [first, second] =
            [of_one, of_other].map(|key| unique(&shortened(key.name), &here, key, u32::MAX));
        assert!(first.len() <= LONGEST_NAME && first != second, "{length}");
        assert!(
            is_attempt(&first, &shortened(&one), &here, of_one),
            "{length}"
        );
        assert!(
            !is_attempt(&second, &shortened(&one), &here, of_one),
            "{length}"
        );
        // A Compute of a set, and an event.
        for tail in ["-0", "-10", "-199", ".7fffffffffffffff"] {
            let [first, second] = [&one, &other].map(|name| derived(name, tail));
            assert!(
                first.len() <= LONGEST_OBJECT && first.ends_with(tail) && first != second,
                "{length} {tail}"
            );
            assert_eq!(
                first == format!("{one}{tail}"),
                length + tail.len() <= LONGEST_OBJECT,
                "{length} {tail}"
            );
        }
    }
    // No part of the name ends with a sign.
    let dotted = derived(
        &format!("{}.{}", "x".repeat(218), "y".repeat(34)),
        ".7fffffffffffffff",
    );
    assert!(
        dotted.starts_with(&format!("{}-", "x".repeat(218))),
        "{dotted}"
    );
    // Finalizers may have 63 characters after their domain.
    let finalizers = AccountFinalizers::confined_to(&vec!["n".repeat(63); 100]);
    for finalizer in [finalizers.account, finalizers.credential] {
        assert!(
            finalizer
                .split_once('/')
                .is_some_and(|(_, name)| name.len() <= 63),
            "{finalizer}"
        );
    }
}

#[test]
fn a_name_shows_the_cluster_and_the_resource_that_it_was_issued_for() {
    let name = unique("a-b-c", &cluster("c1u57e"), CI, 255);
    let mark = Mark::of(&name).unwrap();
    assert_eq!((mark.cluster, mark.chosen), ("c1u57e", "a-b-c"));
    assert!(mark.is_for(CI) && !mark.is_of_earlier_version());
    for other in [
        ObjectKey {
            namespace: "evil",
            ..CI
        },
        ObjectKey { name: "cd", ..CI },
        ObjectKey {
            namespace: "sho",
            name: "p/ci",
        },
        ObjectKey {
            namespace: "shop/ci",
            name: "",
        },
    ] {
        assert!(!mark.is_for(other), "{other}");
    }
    assert!(!cluster("0ther0").issued(&name));
    let before = Mark::of("ci-c1u57e-0a1b2c3d-000000ff").unwrap();
    assert!(before.is_of_earlier_version() && !before.is_for(CI));
    for other in [
        "laptop",
        "ci-0a1b2c3d-000000ff",
        "-c1u57e-0a1b2c3d-000000ff",
        "ci-c1u57e-0a1b2c3d-00000ff",
        "ci-C1U57E-0a1b2c3d-000000ff",
        "ci-c1u57e-0a1b2c3d0a1b-000000ff",
        "ci-c1u57e-0a1b2c3d0a1bu-000000ff",
        "",
    ] {
        assert_eq!(Mark::of(other), None, "{other}");
    }
}

#[test]
fn attempts_of_a_resource_differ_in_their_last_part_alone() {
    let here = cluster("c1u57e");
    let attempt = |name: &str| is_attempt(name, "ci", &here, CI);
    assert!(attempt(&unique("ci", &here, CI, 255)) && attempt(&unique("ci", &here, CI, 7)));
    for other in [
        unique("cd", &here, CI, 7),
        unique("ci", &cluster("0ther0"), CI, 7),
        unique(
            "ci",
            &here,
            ObjectKey {
                namespace: "evil",
                ..CI
            },
            7,
        ),
        unique("ci", &here, CI, 7).replace("00000007", "0000zzzz"),
        "\u{e9}".to_owned(),
    ] {
        assert!(!attempt(&other), "{other}");
    }
}

#[test]
fn an_annotation_names_so_many_things_and_no_more() {
    assert_eq!(listed(" a,,b c , d").collect::<Vec<_>>(), ["a", "b c", "d"]);
    assert_eq!(listed(&"a,".repeat(100_000)).count(), MOST_LISTED);
    assert_eq!(listed(&",".repeat(100_000)).count(), 0);
}

#[test]
fn a_cluster_is_identified_by_six_letters_or_digits() {
    assert_eq!(ClusterId::of_uid(UID).unwrap().to_string(), "0a1b2c");
    assert_eq!(ClusterId::of_uid("0a1"), None);
    for wrong in ["", "0a1b2", "0a1b2c3", "0A1B2C", "0a1-2c"] {
        assert!(
            wrong.parse::<ClusterId>().unwrap_err().contains('6'),
            "{wrong}"
        );
    }
}
