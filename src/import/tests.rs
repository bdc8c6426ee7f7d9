//! Tests of names, of omitted objects, and of the layout of files.

use std::collections::BTreeSet;

use super::*;
use crate::api::AccountKind;
use crate::domain::{ComputeUnits, PoolingMode, PostgresSettings, SuspendAfter};

fn found(id: &str, branch: &str, name: Option<&str>) -> FoundCompute {
    FoundCompute {
        id: id.into(),
        project: "p-1".into(),
        branch: branch.into(),
        role: Role::Primary,
        name: name.map(str::to_owned),
        created_at: None,
        settings: Settings::default(),
        notes: Vec::new(),
    }
}

fn choices() -> Choices {
    Choices {
        account: AccountRef {
            name: "prod".into(),
            kind: AccountKind::Account,
        },
        namespace: None,
        management: Management::Observe,
        deletion: Deletion::Orphan,
        all_fields: false,
    }
}

fn declared(computes: Vec<FoundCompute>, choices: &Choices) -> Import {
    import(
        &Subjects {
            computes,
            ..Subjects::default()
        },
        choices,
        &Checker::new().unwrap(),
    )
}

fn text<'a>(import: &'a Import, path: &str) -> &'a str {
    let file = import.files.iter().find(|file| file.path == path);
    &file
        .unwrap_or_else(|| panic!("no {path} in {import:#?}"))
        .text
}

#[test]
fn names_are_readable_and_no_two_are_alike() {
    let long = "x".repeat(64);
    for (name, branch, expected) in [
        (Some("orders"), "br-1", "orders"),
        (Some("Orders (EU)"), "br-1", "orders-eu"),
        (Some("--a__b--"), "br-1", "a-b"),
        (Some("Bücher"), "br-1", "b-cher"),
        (Some("日本"), "br-main-42", "br-main-42-primary"),
        (None, "br-main-42", "br-main-42-primary"),
        (Some("orders-c1u57e-0a1b2c3d-000000ff"), "br-1", "orders"),
        (Some(long.as_str()), "br-1", &long[..46]),
    ] {
        let assigned = names::assign(&[found("ep-1", branch, name)], &BTreeSet::new());
        assert_eq!(assigned["ep-1"], expected, "{name:?}");
    }
    let same: Vec<FoundCompute> = (0..2000)
        .map(|n| found(&format!("ep-{n}"), "br-1", Some("Orders")))
        .collect();
    let assigned = names::assign(&same, &BTreeSet::new());
    let distinct: BTreeSet<&String> = assigned.values().collect();
    assert_eq!(distinct.len(), same.len());
    assert!(
        distinct
            .iter()
            .all(|name| name.starts_with("orders") && name.len() <= 63)
    );
}

#[test]
fn a_younger_compute_never_takes_the_name_of_an_older_one() {
    let at = |found: FoundCompute, time: &str| FoundCompute {
        created_at: Some(time.parse().unwrap()),
        ..found
    };
    let older = at(
        found("ep-z", "br-1", Some("orders")),
        "2026-01-01T00:00:00Z",
    );
    let younger = at(
        found("ep-a", "br-2", Some("orders")),
        "2026-02-01T00:00:00Z",
    );
    let alone = names::assign(std::slice::from_ref(&older), &BTreeSet::new());
    let both = names::assign(&[younger, older], &BTreeSet::new());
    assert_eq!(
        (alone["ep-z"].as_str(), both["ep-z"].as_str()),
        ("orders", "orders")
    );
    assert!(both["ep-a"].starts_with("orders-"), "{both:?}");
    let taken = BTreeSet::from(["orders".to_owned()]);
    assert_ne!(
        names::assign(&[found("ep-z", "br-1", Some("orders"))], &taken)["ep-z"],
        "orders"
    );
}

#[test]
fn what_no_resource_can_say_is_left_out_and_named() {
    let mut odd = found("ep-1", "br-1", Some("odd"));
    odd.settings = Settings {
        min: ComputeUnits::new(18.0),
        max: ComputeUnits::new(20.0),
        suspend_after: Some(SuspendAfter::Seconds(30)),
        pooler_enabled: Some(true),
        pooler_mode: Some(PoolingMode::Other("session".into())),
        postgres: PostgresSettings([("a\nb".to_owned(), "canary".to_owned())].into()),
        passwordless_access: Some(false),
        ..Settings::default()
    };
    let import = declared(vec![odd], &choices());
    let manifest = text(&import, "p-1/odd.yaml");
    for field in [
        "spec.size",
        "spec.scaleToZero",
        "spec.pooler.mode",
        "spec.postgresSettings",
    ] {
        let named = manifest
            .lines()
            .any(|line| line.starts_with(&format!("# Not declared: {field}")));
        assert!(named, "{field}: {manifest}");
    }
    assert!(
        manifest.ends_with("  pooler:\n    enabled: true\n  passwordlessAccess: false\n"),
        "{manifest}"
    );
    assert!(!manifest.contains("canary"), "{manifest}");
    assert_eq!((import.computes, import.undeclared.len()), (1, 0));
}

#[test]
fn a_platform_leads_no_file_out_of_the_folder() {
    let wrong = [
        FoundCompute {
            project: "../../etc".into(),
            ..found("ep-1", "br-1", Some("a"))
        },
        FoundCompute {
            project: "P/1".into(),
            ..found("ep-2", "br-1", Some("b"))
        },
        found("../ep-3", "br-1", Some("c")),
        found("ep-4", "br 1", Some("../../d")),
    ];
    let import = declared(wrong.to_vec(), &choices());
    assert_eq!(import.undeclared.len(), wrong.len(), "{import:#?}");
    let paths: Vec<&str> = import.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["kustomization.yaml"]);
    assert!(
        import.undeclared[0].starts_with("compute ep-1: spec.projectID: "),
        "{:?}",
        import.undeclared
    );
}

#[test]
fn what_is_chosen_stands_in_each_manifest() {
    let choices = Choices {
        account: AccountRef {
            name: "company".into(),
            kind: AccountKind::ClusterAccount,
        },
        namespace: Some("shop".into()),
        management: Management::Full,
        deletion: Deletion::Delete,
        all_fields: true,
    };
    let mut one = found("ep-1", "br-1", Some("orders"));
    one.settings = Settings {
        min: ComputeUnits::new(0.25),
        max: ComputeUnits::new(2.0),
        suspend_after: Some(SuspendAfter::Default),
        ..Settings::default()
    };
    let import = declared(vec![one], &choices);
    let expected = "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata:
  name: orders
  namespace: shop
spec:
  accountRef:
    name: company
    kind: ClusterAccount
  projectID: p-1
  branchID: br-1
  computeID: ep-1
  type: ReadWrite
  management: Full
  deletion: Delete
  size:
    autoscaling:
      min: 0.25
      max: 2
  scaleToZero:
    after: 5m
";
    assert_eq!(text(&import, "p-1/orders.yaml"), expected);
    assert!(text(&import, "p-1/kustomization.yaml").ends_with("resources:\n- orders.yaml\n"));
    assert!(text(&import, "kustomization.yaml").ends_with("resources:\n- p-1\n"));
}

#[test]
fn comments_stay_comments() {
    let mut odd = found("ep-1", "br-1", Some("a\nspec: {deletion: Delete}\u{2028}"));
    odd.notes = vec!["first\r\nsecond".into()];
    let keys = [FoundKey {
        project: "p-1".into(),
        name: "b\n- evil.yaml".into(),
        id: "7".into(),
        address: None,
    }];
    let subjects = Subjects {
        computes: vec![odd],
        keys: keys.to_vec(),
        ..Subjects::default()
    };
    let import = import(&subjects, &choices(), &Checker::new().unwrap());
    let name = "p-1/a-spec-deletion-delete.yaml";
    assert!(
        text(&import, name)
            .contains("# The platform calls it a?spec: {deletion: Delete}?.\n# first??second\n")
    );
    assert!(text(&import, "p-1/kustomization.yaml").contains("#   b?- evil.yaml (id 7)\n"));
}

#[test]
fn a_compute_of_another_cluster_is_told() {
    let import = declared(
        vec![found(
            "ep-1",
            "br-1",
            Some("orders-c1u57e-0a1b2c3d-000000ff"),
        )],
        &choices(),
    );
    let manifest = text(&import, "p-1/orders.yaml");
    assert!(
        manifest.contains("for a cluster with the identity c1u57e"),
        "{manifest}"
    );
}
