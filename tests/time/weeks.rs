//! Events at fixed times of the day and the week.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use crate::lab::{Lab, PROJECT, minutes, now};

async fn declare(lab: &Lab, more: &str) -> Value {
    lab.account().await;
    lab.apply(&format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: orders}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  branchID: br-main-42
  type: ReadWrite
  scaleToZero: {{never: true}}
{more}"
    ))
    .await;
    lab.until_ready("compute/orders").await
}

/// Number of Sundays at 03:00 UTC in this period.
fn sundays(after: Timestamp, until: Timestamp) -> usize {
    let first = after.to_zoned(TimeZone::UTC).start_of_day().unwrap();
    let nights = (0..).map(|day: i64| {
        first
            .checked_add(day.days())
            .unwrap()
            .with()
            .hour(3)
            .build()
            .unwrap()
    });
    let passed = nights.take_while(|night| night.timestamp() <= until);
    passed
        .filter(|night| night.weekday() == Weekday::Sunday && night.timestamp() > after)
        .count()
}

#[tokio::test]
async fn a_compute_is_restarted_once_each_week() {
    let lab = Lab::start().await;
    let weekly = "  maintenance: {restart: {schedule: 0 3 * * SUN, startingDeadline: 36h}}\n";
    let begun = now();
    declare(&lab, weekly).await;
    let restarts = || {
        lab.requests()
            .iter()
            .filter(|request| request.contains("/restart "))
            .count()
    };
    for _ in 0..29 {
        lab.passes(minutes(24 * 60)).await;
        // The compute was created after the Sunday before the first one.
        let due = sundays(begun, now()).saturating_sub(1);
        lab.wait_until("the restart", async || restarts() == due)
            .await;
        lab.is_decided("compute/orders").await;
        lab.until_ready("compute/orders").await;
        assert_eq!(restarts(), due, "{}", now());
    }
    assert!(restarts() >= 3, "{}", lab.requests().join("\n"));
    assert_eq!((lab.count("PATCH"), lab.refused()), (0, 0));
    lab.stop().await;
}

#[tokio::test]
async fn a_size_applies_in_its_hours_with_one_change_at_each_end() {
    let lab = Lab::start().await;
    let office = "  size: {fixed: 1}
  schedules:
    - {name: office, start: 0 8 * * *, end: 0 18 * * *, size: {fixed: 2}}
";
    let hour = || now().to_zoned(TimeZone::UTC).hour();
    let declared = || if (8..18).contains(&hour()) { "2" } else { "1" };
    declare(&lab, office).await;
    let (mut before, mut changes) = (lab.get("compute/orders").await["status"]["size"].clone(), 0);
    for _ in 0..30 {
        lab.passes(minutes(60)).await;
        lab.until("compute/orders", "of the size that applies", |seen| {
            seen["status"]["size"] == declared()
        })
        .await;
        lab.until_ready("compute/orders").await;
        let size = lab.is_decided("compute/orders").await["status"]["size"].clone();
        changes += usize::from(size != before);
        before = size;
        assert_eq!(lab.count("PATCH"), changes, "{}", now());
    }
    assert!((2..=3).contains(&changes), "{changes}");
    lab.stop().await;
}
