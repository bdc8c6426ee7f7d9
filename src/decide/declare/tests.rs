//! Tests: the derived spec declares all settings of a compute, and omits those of a fresh one.

use serde_json::{Value, json, to_value};

use super::*;
use crate::api::ComputeSpec;
use crate::decide::drift;

fn cu(value: f64) -> Option<ComputeUnits> {
    ComputeUnits::new(value)
}

/// Every combination of the values that each attribute can have.
fn every_shape() -> Vec<Settings> {
    let sizes = [
        (None, None),
        (cu(0.25), cu(0.25)),
        (cu(0.5), cu(8.0)),
        (cu(56.0), cu(56.0)),
    ];
    let suspensions = [
        None,
        Some(0),
        Some(-1),
        Some(60),
        Some(300),
        Some(5400),
        Some(604_800),
    ];
    let switches = [None, Some(true), Some(false)];
    let modes = [
        None,
        Some(PoolingMode::Transaction),
        Some(PoolingMode::Other("session".into())),
    ];
    let settings = [vec![], vec![("work_mem", "64MB"), ("geqo", "on")]];
    let mut all = vec![Settings::default()];
    let mut each = |variants: usize, set: &dyn Fn(&mut Settings, usize)| {
        all = all
            .iter()
            .flat_map(|base| {
                (0..variants).map(move |index| {
                    let mut one = base.clone();
                    set(&mut one, index);
                    one
                })
            })
            .collect();
    };
    each(sizes.len(), &|it, n| (it.min, it.max) = sizes[n]);
    each(suspensions.len(), &|it, n| {
        it.suspend_after = suspensions[n].map(|seconds: i64| match seconds {
            0 => SuspendAfter::Default,
            ..0 => SuspendAfter::Never,
            _ => SuspendAfter::Seconds(u32::try_from(seconds).unwrap()),
        });
    });
    each(switches.len(), &|it, n| it.pooler_enabled = switches[n]);
    each(modes.len(), &|it, n| it.pooler_mode = modes[n].clone());
    each(switches.len(), &|it, n| {
        it.passwordless_access = switches[n]
    });
    each(switches.len(), &|it, n| it.disabled = switches[n]);
    each(settings.len(), &|it, n| {
        it.postgres.0 = settings[n]
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
    });
    all
}

fn spec(fields: &Fields) -> ComputeSpec {
    let mut spec = json!({"accountRef": {"name": "a"}, "projectID": "p", "branchID": "b", "type": "ReadWrite"});
    spec.as_object_mut()
        .unwrap()
        .extend(to_value(fields).unwrap().as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

#[test]
fn what_is_declared_of_a_compute_differs_in_nothing_from_it() {
    let shapes = every_shape();
    assert_eq!(shapes.len(), 4 * 7 * 3 * 3 * 3 * 3 * 2);
    for seen in shapes {
        for declared in [fields(&seen), fields(&beyond_defaults(&seen))] {
            let differences = drift::unmet(&drift::declared(&spec(&declared)), &seen);
            assert_eq!(differences, [], "{declared:?} of {seen:?}");
        }
    }
}

#[test]
fn all_that_is_reported_is_declared() {
    for seen in every_shape() {
        let declared = to_value(fields(&seen)).unwrap();
        let has = |field: &str| declared.get(field).is_some();
        let reported = [
            ("size", seen.min.is_some()),
            ("scaleToZero", seen.suspend_after.is_some()),
            ("pooler", seen.pooler_enabled.is_some()),
            ("postgresSettings", !seen.postgres.is_empty()),
            ("passwordlessAccess", seen.passwordless_access.is_some()),
            ("disabled", seen.disabled.is_some()),
        ];
        for (field, reported) in reported {
            assert_eq!(has(field), reported, "{field} of {seen:?}");
        }
        // A mode that a spec cannot express is left to the platform.
        let mode = seen
            .pooler_enabled
            .and(seen.pooler_mode.as_ref())
            .and_then(|mode| match mode {
                PoolingMode::Transaction => Some(json!("Transaction")),
                PoolingMode::Other(_) => None,
            });
        assert_eq!(declared["pooler"].get("mode"), mode.as_ref(), "{seen:?}");
    }
}

#[test]
fn of_a_fresh_compute_only_the_size_is_declared() {
    let settings = |more: Value| {
        let mut whole =
            json!({"min": 1, "max": 2, "poolerEnabled": false, "poolerMode": "transaction"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value::<Settings>(whole).unwrap()
    };
    let size = json!({"autoscaling": {"min": 1, "max": 2}});
    for (more, expected) in [
        (
            json!({"suspendAfter": "Default", "passwordlessAccess": true, "disabled": false}),
            json!({"size": size}),
        ),
        (
            json!({"suspendAfter": {"Seconds": 300}}),
            json!({"size": size}),
        ),
        (
            json!({"suspendAfter": {"Seconds": 301}}),
            json!({"size": size, "scaleToZero": {"after": "5m1s"}}),
        ),
        (
            json!({"suspendAfter": "Never"}),
            json!({"size": size, "scaleToZero": {"never": true}}),
        ),
        (
            json!({"poolerEnabled": true}),
            json!({"size": size, "pooler": {"enabled": true}}),
        ),
        (
            json!({"passwordlessAccess": false}),
            json!({"size": size, "passwordlessAccess": false}),
        ),
        (
            json!({"disabled": true}),
            json!({"size": size, "disabled": true}),
        ),
        (
            json!({"postgres": {"geqo": "off"}}),
            json!({"size": size, "postgresSettings": {"geqo": "off"}}),
        ),
    ] {
        let declared = fields(&beyond_defaults(&settings(more.clone())));
        assert_eq!(to_value(&declared).unwrap(), expected, "{more}");
    }
}

#[test]
fn durations_are_written_in_the_largest_units() {
    for (seconds, text) in [
        (0, "0s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (5400, "1h30m"),
        (604_800, "168h"),
    ] {
        assert_eq!(duration(seconds).0, text);
        assert_eq!(
            duration(seconds).value().unwrap().as_secs(),
            u64::from(seconds)
        );
    }
}
