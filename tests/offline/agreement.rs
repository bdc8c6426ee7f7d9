//! The controller must be able to parse every schedule and duration that the rules accept.

use dbplane::api::Duration;
use dbplane::decide::cron::Cron;
use dbplane::validate::Checker;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn compute(spec: Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": {"name": "a"},
        "spec": {"accountRef": {"name": "a"}, "projectID": "p", "branchID": "b", "type": "ReadWrite"},
    });
    for (name, value) in spec.as_object().unwrap() {
        manifest["spec"][name] = value.clone();
    }
    manifest
}

/// Numbers around all bounds, both sorts of names, and invalid values.
fn value() -> impl Strategy<Value = String> {
    const NAMES: [&str; 8] = ["SUN", "mon", "Fri", "SAT", "JAN", "feb", "DEC", "x"];
    prop_oneof![
        4 => (0..66_u8).prop_map(|number| number.to_string()),
        1 => (0..12_u8).prop_map(|number| format!("0{number}")),
        2 => select(&NAMES[..]).prop_map(str::to_owned),
    ]
}

fn item() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => value(),
        3 => (value(), value()).prop_map(|(first, last)| format!("{first}-{last}")),
        1 => (value(), value()).prop_map(|(start, step)| format!("{start}/{step}")),
        1 => (value(), value(), value()).prop_map(|(first, last, step)| format!("{first}-{last}/{step}")),
        1 => value().prop_map(|step| format!("*/{step}")),
        1 => Just("L".to_owned()),
        1 => (value(), select(&["L", "W", "#3", "#6"][..])).prop_map(|(value, suffix)| format!("{value}{suffix}")),
    ]
}

/// Only one field has several items, so that most schedules have at most one error.
fn schedule() -> impl Strategy<Value = String> {
    (0..5_usize, prop::collection::vec(item(), 1..3)).prop_map(|(place, items)| {
        let mut fields = vec!["*".to_owned(); 5];
        fields[place] = items.join(",");
        fields.join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_schedule_can_be_parsed(schedule in schedule()) {
        thread_local!(static CHECKER: Checker = Checker::new().unwrap());
        let window = json!({"schedule": schedule, "duration": "1h"});
        let manifest = compute(json!({"disruption": {"policy": "Window", "window": window}}));
        if CHECKER.with(|checker| checker.check(&manifest, None)).is_ok() {
            let read = Cron::parse(&schedule, None);
            prop_assert!(read.is_ok(), "{schedule}: {:?}", read.err());
        }
    }

    #[test]
    fn an_accepted_duration_is_parsed_correctly(text in "([0-9]{1,4}[hms]|-|1d|0|[0-9]\\.5h| ){0,4}") {
        thread_local!(static CHECKER: Checker = Checker::new().unwrap());
        let manifest = compute(json!({"scaleToZero": {"after": text}}));
        if CHECKER.with(|checker| checker.check(&manifest, None)).is_ok() {
            let seconds = Duration(text.clone()).value().map(|length| length.as_secs());
            prop_assert!(seconds.is_some_and(|seconds| (60..=168 * 3600).contains(&seconds)), "{text}: {seconds:?}");
        }
    }
}
