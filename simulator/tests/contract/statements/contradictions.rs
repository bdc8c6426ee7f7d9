//! docs/platform.md must list exactly the contradictions between the specification and the public
//! API.

use std::collections::BTreeSet;

use super::*;

const PAGE: &str = include_str!("../../../../docs/platform.md");
const HEADING: &str = "## Where the description and the public API differ";

/// Each row of the page's table with the statements that prove it.
const ROWS: &[(&str, &[&str])] = &[
    (
        "a personal key and an organization's project",
        &["personal_organization", "authentication_7_changes"],
    ),
    (
        "the project list, personal key",
        &[
            "personal_own_projects_in_the_list",
            "personal_organization_in_the_list",
        ],
    ),
    ("the project list, project-scoped key", &["scoped_list"]),
    (
        "the project list, more than ten projects",
        &["list_projects_sends_nothing"],
    ),
    (
        "creating a key with the name of another",
        &["key_none_create_same_name"],
    ),
    (
        "creating a key with a name of more than 64 characters",
        &["key_none_create_long_name"],
    ),
    (
        "deleting a branch with a project-scoped key",
        &["scoped_destroys_nothing"],
    ),
    ("`settings` of a fresh compute", &["compute_settings"]),
    (
        "creating a compute without `type`",
        &["create_compute_type"],
    ),
    (
        "creating a compute with `disabled`",
        &["none_create_disabled"],
    ),
    (
        "moving, restarting or deleting while operations are in progress",
        &["any_move"],
    ),
    (
        "moving a read replica to a branch with a primary",
        &["any_move_condition", "update_compute_condition"],
    ),
    ("changing `type`", &["update_compute_type"]),
    ("restarting an idle compute", &["any_restart"]),
    (
        "deleting an active compute",
        &["any_delete", "delete_compute"],
    ),
    (
        "deleting a compute on a protected branch",
        &["any_delete_on_a_protected_branch"],
    ),
    (
        "deleting a compute that is not there",
        &["delete_compute_absent"],
    ),
    ("changing an idle compute", &["service_6_idle"]),
    ("giving an active compute a new name", &["service_6_name"]),
    ("the widest autoscaling range", &["limit_autoscaling"]),
    ("sizes of the paid plans", &["limit_paid_plans"]),
    (
        "sizes of the free plan",
        &["limit_free_plan", "limit_paid_sizes"],
    ),
    ("scale to zero by plan", &["limit_inactivity_by_plan"]),
    (
        "inactivity above 16 compute units",
        &["active_inactivity_of_a_large_one"],
    ),
    ("disk for temporary files", &["limit_temporary_disk"]),
];

fn statements() -> impl Iterator<Item = &'static Statement> {
    let sections = [
        service::STATEMENTS,
        fields::STATEMENTS,
        sizes::STATEMENTS,
        keys::STATEMENTS,
        states::STATEMENTS,
        endpoints::STATEMENTS,
        authentication::STATEMENTS,
        limits::STATEMENTS,
    ];
    sections.into_iter().flatten()
}

#[test]
fn each_statement_is_named_once() {
    let (mut names, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for statement in statements() {
        assert!(
            names.insert(statement.name) && texts.insert(statement.says),
            "{statement:?}"
        );
    }
}

#[test]
fn what_differs_in_public_is_in_the_table_of_the_page() {
    let differ: BTreeSet<&str> = statements()
        .filter(|it| it.expected.default != it.expected.public)
        .map(|it| it.name)
        .collect();
    let listed: BTreeSet<&str> = ROWS.iter().flat_map(|(_, names)| *names).copied().collect();
    assert_eq!(listed, differ);
    let topics: Vec<&str> = rows_of_the_page().iter().map(|row| row[0]).collect();
    assert_eq!(
        topics,
        ROWS.iter().map(|(topic, _)| *topic).collect::<Vec<_>>()
    );
}

#[test]
fn the_table_of_the_page_names_minimal_where_it_differs_from_default() {
    for (row, (_, names)) in rows_of_the_page().into_iter().zip(ROWS) {
        let mut shown = statements().filter(|it| names.contains(&it.name));
        let differs = shown.any(|it| it.expected.minimal != it.expected.default);
        assert!(!differs || row[1].contains("minimal"), "{row:?}");
    }
}

fn rows_of_the_page() -> Vec<Vec<&'static str>> {
    let section = PAGE.split_once(HEADING).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|row| row.split(" | ").collect::<Vec<_>>());
    rows.filter(|row| row[0] != "topic").collect()
}
