//! A week in the life of many computes whose settings follow the time.

use std::time::Duration;

use serde_json::json;

use super::history::compute;
use super::run::Run;
use super::watching::{history, replica};

const POLL: Duration = Duration::from_secs(3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// All replicas of one branch, where one is created after the other.
const FLEET: usize = 4;

/// One half is larger during office hours; the other half never suspends, and is restarted twice a week.
#[test]
fn schedules_and_regular_restarts_cost_their_changes_and_nothing_else() {
    let history = history(&vec![replica(); FLEET], false);
    let mut run = Run::begin(&history).unwrap();
    for number in 0..FLEET {
        let spec = match number % 2 {
            0 => json!({"schedules": [
                {"name": "office", "start": "0 9 * * MON-FRI", "end": "0 17 * * MON-FRI", "size": {"fixed": 2}},
            ]}),
            _ => json!({
                "scaleToZero": {"never": true},
                "maintenance": {"restart": {"schedule": "0 3 * * WED,SUN", "jitter": "1h"}},
            }),
        };
        run.simulation.lock().cluster.edit(&compute(number), &json!({"spec": spec}));
    }
    run.go_on(600).unwrap();
    run.simulation.lock().ledger.calls.clear();
    run.go_on_until(run.now() + WEEK, POLL).unwrap();
    let of_computes = |method| run.calls(method, "Compute");
    let half = FLEET / 2;
    // It begins on a Monday morning: five days with two changes each.
    assert_eq!(of_computes("Patch"), 10 * half);
    // On Wednesday they have started since the Sunday before; on Sunday they have not.
    assert_eq!(of_computes("Post"), half);
    // Only the polls read.
    assert_eq!(of_computes("Get"), 0);
}
