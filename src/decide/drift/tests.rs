//! Tests of differing fields and their corrections.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::domain::{ComputeState, Role, Support};

fn spec(more: Value) -> ComputeSpec {
    let mut spec = json!({"accountRef": {"name": "a"}, "projectID": "p", "branchID": "br-1", "type": "ReadWrite"});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn cu(value: f64) -> Option<ComputeUnits> {
    ComputeUnits::new(value)
}

/// A compute that reports only the required fields.
fn silent() -> Compute {
    Compute {
        id: "ep-1".into(),
        project_id: "p".into(),
        branch_id: "br-1".into(),
        region: None,
        role: Role::Primary,
        host: None,
        pooled_host: None,
        name: None,
        current_state: ComputeState::Active,
        pending_state: None,
        settings: Settings::default(),
        last_active: None,
        created_at: None,
        updated_at: None,
        started_at: None,
        support: Support::default(),
    }
}

fn settings() -> Settings {
    Settings {
        min: cu(1.),
        max: cu(2.),
        suspend_after: Some(SuspendAfter::Default),
        pooler_enabled: Some(false),
        pooler_mode: Some(PoolingMode::Transaction),
        postgres: PostgresSettings(BTreeMap::from([
            ("work_mem".into(), "4MB".into()),
            ("theirs".into(), "on".into()),
        ])),
        passwordless_access: Some(true),
        disabled: Some(false),
    }
}

fn seen() -> Compute {
    Compute {
        settings: settings(),
        ..silent()
    }
}

#[test]
fn nothing_that_is_not_declared_differs() {
    assert_eq!(differences(&spec(json!({})), &seen()), []);
    assert_eq!(differences(&spec(json!({})), &silent()), []);
}

#[test]
fn what_is_in_force_does_not_differ() {
    for declared in [
        json!({"size": {"autoscaling": {"min": 1, "max": 2}}}),
        json!({"scaleToZero": {"after": "5m"}}),
        json!({"pooler": {"enabled": false}}),
        json!({"pooler": {"enabled": false, "mode": "Transaction"}}),
        json!({"passwordlessAccess": true}),
        json!({"disabled": false}),
        json!({"postgresSettings": {"work_mem": "4MB"}}),
    ] {
        assert_eq!(
            differences(&spec(declared.clone()), &seen()),
            [],
            "{declared}"
        );
    }
}

/// The one difference of these declared fields: its text, and the change that corrects it.
fn corrects(declared: Value, expected_text: &str, disruptive: bool, expected: &ComputeChange) {
    let found = differences(&spec(declared), &seen());
    let [difference] = found.as_slice() else {
        panic!("{expected_text}: {found:?}")
    };
    assert_eq!(text(&[difference]), expected_text);
    assert_eq!(difference.disruptive, disruptive, "{expected_text}");
    assert!(difference.reported, "{expected_text}");
    assert_eq!(change(&[difference]), *expected, "{expected_text}");
}

fn sets(edit: impl FnOnce(&mut Settings)) -> ComputeChange {
    let mut change = ComputeChange::default();
    edit(&mut change.settings);
    change
}

#[test]
fn a_field_whose_change_disrupts_is_reported_and_corrected() {
    let moved = ComputeChange {
        branch_id: Some("br-2".into()),
        ..ComputeChange::default()
    };
    for (declared, text, change) in [
        (
            json!({"branchID": "br-2"}),
            "branchID is br-1, declared is br-2",
            moved,
        ),
        (
            json!({"size": {"fixed": 1}}),
            "size is 1-2, declared is 1",
            sets(|it| (it.min, it.max) = (cu(1.), cu(1.))),
        ),
        (
            json!({"size": {"autoscaling": {"min": 1, "max": 4}}}),
            "size is 1-2, declared is 1-4",
            sets(|it| (it.min, it.max) = (cu(1.), cu(4.))),
        ),
    ] {
        corrects(declared, text, true, &change);
    }
}

#[test]
fn every_other_field_that_differs_is_reported_and_corrected() {
    let postgres = [("jit", "off"), ("theirs", "on"), ("work_mem", "8MB")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (declared, text, change) in [
        (
            json!({"scaleToZero": {"after": "10m"}}),
            "scaleToZero is the platform's default, declared is after 600s",
            sets(|it| it.suspend_after = Some(SuspendAfter::Seconds(600))),
        ),
        (
            json!({"scaleToZero": {"never": true}}),
            "scaleToZero is the platform's default, declared is never",
            sets(|it| it.suspend_after = Some(SuspendAfter::Never)),
        ),
        (
            json!({"pooler": {"enabled": true}}),
            "pooler.enabled is false, declared is true",
            sets(|it| it.pooler_enabled = Some(true)),
        ),
        (
            json!({"passwordlessAccess": false}),
            "passwordlessAccess is true, declared is false",
            sets(|it| it.passwordless_access = Some(false)),
        ),
        (
            json!({"disabled": true}),
            "disabled is false, declared is true",
            sets(|it| it.disabled = Some(true)),
        ),
        (
            json!({"postgresSettings": {"work_mem": "8MB", "jit": "off"}}),
            "postgresSettings differ: jit, work_mem",
            sets(|it| it.postgres.0 = postgres.into()),
        ),
    ] {
        corrects(declared, text, false, &change);
    }
}

#[test]
fn what_the_platform_does_not_report_differs_and_is_marked() {
    for declared in [
        json!({"size": {"fixed": 1}}),
        json!({"scaleToZero": {"after": "5m"}}),
        json!({"pooler": {"enabled": false}}),
        json!({"passwordlessAccess": true}),
        json!({"disabled": false}),
    ] {
        let found = differences(&spec(declared.clone()), &silent());
        let [difference] = found.as_slice() else {
            panic!("{declared}: {found:?}")
        };
        assert!(
            difference.text.contains("is not reported, declared is"),
            "{declared}: {}",
            difference.text
        );
        assert!(!difference.reported, "{declared}");
    }
    let modes = differences(
        &spec(json!({"pooler": {"enabled": false, "mode": "Transaction"}})),
        &silent(),
    );
    assert_eq!(modes.len(), 2);
}

#[test]
fn each_field_can_be_left_to_others() {
    let all = json!({
        "size": {"fixed": 4}, "scaleToZero": {"never": true}, "pooler": {"enabled": true, "mode": "Transaction"},
        "postgresSettings": {"work_mem": "8MB"}, "passwordlessAccess": false, "disabled": true,
    });
    let fields = |ignored: Value| {
        let mut declared = all.clone();
        declared["ignore"] = ignored;
        let found = differences(
            &spec(declared),
            &Compute {
                settings: Settings {
                    pooler_mode: None,
                    ..settings()
                },
                ..silent()
            },
        );
        found
            .into_iter()
            .map(|difference| difference.field)
            .collect::<Vec<_>>()
    };
    let every = [
        "size",
        "scaleToZero",
        "pooler.enabled",
        "pooler.mode",
        "passwordlessAccess",
        "disabled",
        "postgresSettings",
    ];
    assert_eq!(fields(json!([])), every);
    for field in [
        "size",
        "scaleToZero",
        "pooler",
        "passwordlessAccess",
        "disabled",
        "postgresSettings",
    ] {
        let left: Vec<_> = every
            .into_iter()
            .filter(|other| other.split('.').next() != Some(field))
            .collect();
        assert_eq!(fields(json!([field])), left, "{field}");
    }
    let everything = json!([
        "size",
        "scaleToZero",
        "pooler",
        "passwordlessAccess",
        "disabled",
        "postgresSettings"
    ]);
    assert_eq!(fields(everything), [""; 0]);
}

#[test]
fn five_minutes_are_the_default_and_other_times_are_not() {
    let compute = |after| Compute {
        settings: Settings {
            suspend_after: Some(after),
            ..settings()
        },
        ..silent()
    };
    for (declared, seen, differs) in [
        (json!({"after": "5m"}), SuspendAfter::Default, false),
        (json!({"after": "300s"}), SuspendAfter::Seconds(300), false),
        (json!({"after": "5m"}), SuspendAfter::Never, true),
        (json!({"after": "5m"}), SuspendAfter::Seconds(301), true),
        (json!({"after": "6m"}), SuspendAfter::Default, true),
        (json!({"never": true}), SuspendAfter::Never, false),
        (json!({"never": true}), SuspendAfter::Seconds(300), true),
    ] {
        let found = differences(
            &spec(json!({"scaleToZero": declared.clone()})),
            &compute(seen),
        );
        assert_eq!(!found.is_empty(), differs, "{declared} {seen:?}");
    }
}

#[test]
fn one_change_corrects_all_differences() {
    let declared = json!({"branchID": "br-2", "size": {"fixed": 4}, "pooler": {"enabled": true}, "disabled": true});
    let found = differences(&spec(declared), &seen());
    let whole = change(&found.iter().collect::<Vec<_>>());
    assert_eq!(whole.branch_id.as_deref(), Some("br-2"));
    let expected = Settings {
        min: cu(4.),
        max: cu(4.),
        pooler_enabled: Some(true),
        disabled: Some(true),
        ..Settings::default()
    };
    assert_eq!(whole.settings, expected);
}

#[test]
fn a_create_has_all_declared_fields() {
    let all = json!({
        "size": {"fixed": 2}, "scaleToZero": {"after": "1h30m"}, "pooler": {"enabled": true, "mode": "Transaction"},
        "postgresSettings": {"work_mem": "8MB"}, "passwordlessAccess": false, "disabled": true,
    });
    let expected = Settings {
        min: cu(2.),
        max: cu(2.),
        suspend_after: Some(SuspendAfter::Seconds(5400)),
        pooler_enabled: Some(true),
        pooler_mode: Some(PoolingMode::Transaction),
        postgres: PostgresSettings(BTreeMap::from([("work_mem".into(), "8MB".into())])),
        passwordless_access: Some(false),
        disabled: Some(true),
    };
    assert_eq!(declared(&spec(all)), expected);
    assert_eq!(declared(&spec(json!({}))), Settings::default());
}

#[test]
fn another_branch_and_another_size_interrupt_and_nothing_else_does() {
    let to = |branch: &str| ComputeChange {
        branch_id: Some(branch.into()),
        ..ComputeChange::default()
    };
    for (change, expected) in [
        (ComputeChange::default(), false),
        (to("br-1"), false),
        (to("br-2"), true),
        (of_settings(|it| (it.min, it.max) = (cu(1.), cu(2.))), false),
        (of_settings(|it| (it.min, it.max) = (cu(1.), cu(4.))), true),
        (
            of_settings(|it| it.suspend_after = Some(SuspendAfter::Never)),
            false,
        ),
        (of_settings(|it| it.disabled = Some(true)), false),
    ] {
        assert_eq!(interrupts(&change, &seen()), expected, "{change:?}");
    }
}

#[test]
fn settings_are_shown_by_name_and_value_and_those_of_the_database_without() {
    assert_eq!(shown(&Settings::default()), []);
    let expected = [
        ("size", "1-2"),
        ("scaleToZero", "the platform's default"),
        ("pooler.enabled", "false"),
        ("pooler.mode", "transaction"),
        ("passwordlessAccess", "true"),
        ("disabled", "false"),
        ("postgresSettings.theirs", "not shown"),
        ("postgresSettings.work_mem", "not shown"),
    ];
    assert_eq!(
        shown(&settings()),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// Both state which reported settings differ; only one puts it in words.
#[test]
fn a_reported_difference_contradicts() {
    let edits: [fn(&mut Settings); 8] = [
        |settings| settings.min = cu(2.),
        |settings| settings.suspend_after = Some(SuspendAfter::Seconds(300)),
        |settings| settings.suspend_after = Some(SuspendAfter::Never),
        |settings| settings.pooler_enabled = Some(true),
        |settings| settings.pooler_mode = Some(PoolingMode::Other("session".into())),
        |settings| settings.passwordless_access = Some(false),
        |settings| settings.disabled = Some(true),
        |_| {},
    ];
    let edited = |edit: &fn(&mut Settings)| {
        let mut settings = Settings {
            postgres: PostgresSettings::default(),
            ..settings()
        };
        edit(&mut settings);
        settings
    };
    let all: Vec<Settings> = edits
        .iter()
        .map(edited)
        .chain([Settings::default()])
        .collect();
    for (wanted, seen) in all
        .iter()
        .flat_map(|wanted| all.iter().map(move |seen| (wanted, seen)))
    {
        let is_told = unmet(wanted, seen)
            .iter()
            .any(|difference| difference.reported);
        assert_eq!(contradicts(wanted, seen), is_told, "{wanted:?} {seen:?}");
    }
}
