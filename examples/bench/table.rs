//! Prints the results as a table for users, and writes them as JSON for programs.

use std::path::Path;
use std::process::Command;

use dbplane::leadership::lease::LEASE_DURATION;
use serde_json::json;

use super::fleet::POLL_SECONDS;
use super::limited::Limited;
use super::moments::SINGLES;
use super::stages::{Creating, Quiet, Run};
use super::support::Result;
use super::worst::Stage;

/// A figure of a run. `bound` is its lower bound, or empty.
struct Row {
    what: &'static str,
    value: String,
    bound: String,
}

impl Row {
    fn new(what: &'static str, value: String) -> Self {
        Self {
            what,
            value,
            bound: String::new(),
        }
    }

    fn at_least(self, bound: impl Into<String>) -> Self {
        Self {
            bound: bound.into(),
            ..self
        }
    }
}

/// Prints the figures of a run. The third column is the lower bound.
pub fn print(run: &Run) {
    let rows = [
        creating(run),
        singles(run),
        memory(run),
        quiet(run),
        changes(run),
        restart(run),
        change_of_leader(run),
        confined(run),
        hostile_tenant(run),
    ];
    for Row { what, value, bound } in rows.into_iter().flatten() {
        println!("  {what:<44} {value:>12} {bound:>12}");
    }
    for (when, requests) in [
        ("creating", &run.creating.requests),
        ("quiet", &run.quiet.requests),
        ("restart", &run.restart.requests),
    ] {
        for (what, count) in &requests.kubernetes_writes {
            println!("    {:<42} {count:>12}", format!("{when}: {what}"));
        }
    }
}

fn creating(run: &Run) -> Vec<Row> {
    let Creating {
        after,
        floor,
        processor,
        passes,
        requests,
    } = &run.creating;
    let each = |count: u64| format!("{:.2}", count as f64 / run.size as f64);
    vec![
        Row::new("created after", seconds(*after)).at_least(seconds(*floor)),
        Row::new("operator CPU for it", seconds(*processor)),
        Row::new(
            "platform lists while creating",
            requests.platform_lists.to_string(),
        ),
        Row::new("platform changes for each", each(requests.platform_changes)).at_least("1.00"),
        Row::new("Kubernetes writes for each", each(requests.writes())),
        Row::new("passes for each", each(*passes)),
    ]
}

fn singles(run: &Run) -> Vec<Row> {
    let (behind, alone) = (&run.singles_behind, &run.singles_alone);
    vec![
        Row::new("apply to POST, median", milliseconds(behind.median))
            .at_least(milliseconds(alone.median)),
        Row::new("apply to POST, worst of 50", milliseconds(behind.worst))
            .at_least(milliseconds(alone.worst)),
    ]
}

fn memory(run: &Run) -> Vec<Row> {
    vec![
        Row::new("resident memory", mebibytes(run.resident_kib))
            .at_least(mebibytes(run.resident_start_kib)),
        Row::new(
            "resident memory after a restart",
            mebibytes(run.restart.resident_kib),
        ),
    ]
}

fn quiet(run: &Run) -> Vec<Row> {
    let Quiet {
        seconds,
        processor,
        requests,
    } = &run.quiet;
    let percent = processor / *seconds as f64 * 100.0;
    vec![
        Row::new("quiet: Kubernetes writes", requests.writes().to_string()).at_least("0"),
        Row::new("quiet: platform lists", requests.platform_lists.to_string()),
        Row::new("quiet: CPU", format!("{percent:.2} %")),
        Row::new("one scrape of the metrics: CPU", milliseconds(run.scrape)),
    ]
}

fn changes(run: &Run) -> Vec<Row> {
    vec![
        Row::new("drift corrected after", seconds(run.drift))
            .at_least(format!("at most {POLL_SECONDS} s later")),
        Row::new(
            "change of a compute's state: CPU",
            fine_milliseconds(run.state_change),
        ),
    ]
}

fn restart(run: &Run) -> Vec<Row> {
    let all = (run.size + 2 * SINGLES) as f64;
    let passes = run.restart.passes as f64 / all;
    let writes = run.restart.requests.writes();
    vec![
        Row::new("restart: CPU", seconds(run.restart.processor))
            .at_least(seconds(run.restart.floor)),
        Row::new("restart: passes for each", format!("{passes:.2}")).at_least("1.00"),
        Row::new("restart: Kubernetes writes", writes.to_string()).at_least("0"),
    ]
}

fn change_of_leader(run: &Run) -> Vec<Row> {
    vec![
        Row::new(
            "leader told to stop: to the next call",
            seconds(run.stopped_leader),
        ),
        Row::new(
            "leader killed: to the next call",
            seconds(run.killed_leader),
        )
        .at_least(seconds(LEASE_DURATION.as_secs_f64())),
    ]
}

fn confined(run: &Run) -> Vec<Row> {
    vec![
        Row::new(
            "confined to an empty namespace: CPU to start",
            seconds(run.confined.processor),
        ),
        Row::new(
            "confined to an empty namespace: memory",
            mebibytes(run.confined.resident_kib),
        ),
    ]
}

fn hostile_tenant(run: &Run) -> Vec<Row> {
    let (beside, behind) = (&run.tenant.beside, &run.singles_behind);
    vec![
        Row::new(
            "a hostile tenant: CPU for each pass",
            fine_milliseconds(run.tenant.pass),
        ),
        Row::new(
            "a hostile tenant: memory",
            mebibytes(run.tenant.resident_kib),
        ),
        Row::new(
            "beside it: apply to POST, median",
            milliseconds(beside.median),
        )
        .at_least(milliseconds(behind.median)),
        Row::new(
            "beside it: apply to POST, worst of 20",
            milliseconds(beside.worst),
        )
        .at_least(milliseconds(behind.worst)),
    ]
}

fn seconds(time: f64) -> String {
    format!("{time:.2} s")
}

fn milliseconds(time: f64) -> String {
    format!("{:.0} ms", time * 1000.0)
}

fn fine_milliseconds(time: f64) -> String {
    format!("{:.2} ms", time * 1000.0)
}

fn mebibytes(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// The growth of costs between two sizes: 1 is linear.
pub fn exponents(runs: &[Run]) {
    for pair in runs.windows(2) {
        let [small, large] = pair else { continue };
        let growth = |of: fn(&Run) -> f64| {
            (of(large) / of(small)).ln() / (large.size as f64 / small.size as f64).ln()
        };
        println!(
            "\nfrom {} to {}: created after {:.2}, CPU for it {:.2}, CPU of a restart {:.2}",
            small.size,
            large.size,
            growth(|run| run.creating.after),
            growth(|run| run.creating.processor),
            growth(|run| run.restart.processor),
        );
        let kept = large.resident_kib.saturating_sub(small.resident_kib) as f64 * 1024.0;
        println!(
            "memory for each Compute: {:.1} KiB; one as JSON: {:.1} KiB, of which {:.1} KiB are kept",
            kept / (large.size - small.size) as f64 / 1024.0,
            large.bytes.stored as f64 / 1024.0,
            large.bytes.kept as f64 / 1024.0,
        );
    }
}

/// All figures, with details of the machine and the build.
pub fn write(path: &Path, runs: &[Run], limited: &[Limited], worst: &[Stage]) -> Result<()> {
    let printed = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
            .unwrap_or_default()
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let figures = json!({
        "revision": printed("git", &["describe", "--always", "--dirty"]),
        "system": printed("uname", &["-srm"]),
        "processors": processors,
        "runs": runs,
        "limited": limited,
        "worst": worst,
    });
    std::fs::write(path, format!("{figures:#}\n"))?;
    println!("\nwritten to {}", path.display());
    Ok(())
}
