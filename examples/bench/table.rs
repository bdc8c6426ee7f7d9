//! Prints the results as a table for users, and writes them as JSON for programs.

use std::path::Path;
use std::process::Command;

use dbplane::leadership::lease::LEASE_DURATION;
use serde_json::json;

use super::fleet::POLL_SECONDS;
use super::limited::Limited;
use super::moments::SINGLES;
use super::stages::Run;
use super::support::Result;
use super::worst::Stage;

/// Prints the figures of a run. The third column is the lower bound.
pub fn print(run: &Run) {
    let size = run.size as f64;
    let each = |count: u64| format!("{:.2}", count as f64 / size);
    let standing = (run.size + 2 * SINGLES) as f64;
    let seconds = |time: f64| format!("{time:.2} s");
    let milliseconds = |time: f64| format!("{:.0} ms", time * 1000.0);
    let none = String::new;
    let rows = [
        (
            "created after",
            seconds(run.creating.after),
            seconds(run.creating.floor),
        ),
        (
            "operator CPU for it",
            seconds(run.creating.processor),
            none(),
        ),
        (
            "platform lists while creating",
            run.creating.requests.platform_lists.to_string(),
            none(),
        ),
        (
            "platform changes for each",
            each(run.creating.requests.platform_changes),
            "1.00".to_owned(),
        ),
        (
            "Kubernetes writes for each",
            each(run.creating.requests.writes()),
            none(),
        ),
        ("passes for each", each(run.creating.passes), none()),
        (
            "apply to POST, median",
            milliseconds(run.singles_behind.median),
            milliseconds(run.singles_alone.median),
        ),
        (
            "apply to POST, worst of 50",
            milliseconds(run.singles_behind.worst),
            milliseconds(run.singles_alone.worst),
        ),
        (
            "resident memory",
            mebibytes(run.resident_kib),
            mebibytes(run.resident_start_kib),
        ),
        (
            "resident memory after a restart",
            mebibytes(run.restart.resident_kib),
            none(),
        ),
        (
            "quiet: Kubernetes writes",
            run.quiet.requests.writes().to_string(),
            "0".to_owned(),
        ),
        (
            "quiet: platform lists",
            run.quiet.requests.platform_lists.to_string(),
            none(),
        ),
        (
            "quiet: CPU",
            format!(
                "{:.2} %",
                run.quiet.processor / run.quiet.seconds as f64 * 100.0
            ),
            none(),
        ),
        (
            "one scrape of the metrics: CPU",
            milliseconds(run.scrape),
            none(),
        ),
        (
            "drift corrected after",
            seconds(run.drift),
            format!("at most {POLL_SECONDS} s later"),
        ),
        (
            "change of a compute's state: CPU",
            format!("{:.2} ms", run.state_change * 1000.0),
            none(),
        ),
        (
            "restart: CPU",
            seconds(run.restart.processor),
            seconds(run.restart.floor),
        ),
        (
            "restart: passes for each",
            format!("{:.2}", run.restart.passes as f64 / standing),
            "1.00".to_owned(),
        ),
        (
            "restart: Kubernetes writes",
            run.restart.requests.writes().to_string(),
            "0".to_owned(),
        ),
        (
            "leader told to stop: to the next call",
            seconds(run.stopped_leader),
            none(),
        ),
        (
            "leader killed: to the next call",
            seconds(run.killed_leader),
            seconds(LEASE_DURATION.as_secs_f64()),
        ),
        (
            "confined to an empty namespace: CPU to start",
            seconds(run.confined.processor),
            none(),
        ),
        (
            "confined to an empty namespace: memory",
            mebibytes(run.confined.resident_kib),
            none(),
        ),
        (
            "a hostile tenant: CPU for each pass",
            format!("{:.2} ms", run.tenant.pass * 1000.0),
            none(),
        ),
        (
            "a hostile tenant: memory",
            mebibytes(run.tenant.resident_kib),
            none(),
        ),
        (
            "beside it: apply to POST, median",
            milliseconds(run.tenant.beside.median),
            milliseconds(run.singles_behind.median),
        ),
        (
            "beside it: apply to POST, worst of 20",
            milliseconds(run.tenant.beside.worst),
            milliseconds(run.singles_behind.worst),
        ),
    ];
    for (what, value, least) in rows {
        println!("  {what:<44} {value:>12} {least:>12}");
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
