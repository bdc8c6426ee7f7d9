//! Upper bounds of requests and writes, which hold on every machine. More is a defect; after an
//! improvement, lower the bound.

use super::fleet::{self, POLL_SECONDS};
use super::moments::SINGLES;
use super::stages::Run;
use super::support::{Error, Result};
use super::tenant::Tenant;

/// The status of a Compute is written with its intent, with its binding, and when it is usable. A
/// Compute that is created alone needs exactly these three. One that waits for its turn reports
/// that, and on a slow machine also what it waits for.
const STATUSES: u64 = 5;
/// The Account and its Secret get their finalizers with the first Compute, and its status reports
/// the check of the credentials. The status also lists the projects with Computes: once at first,
/// and again if more projects follow.
const OF_THE_ACCOUNT: u64 = 6;

/// A Compute that is created alone takes seven passes; each wait for a turn adds one.
const PASSES: u64 = 12;
const PASSES_OF_THE_ACCOUNT: u64 = 10;

/// Bounds for a hostile tenant: memory per object, and waiting time of others. They are many times
/// the measured values, so that no slow machine exceeds them.
const TENANTS_KIB: u64 = 200;
const BESIDE_SECONDS: f64 = 5.0;

fn of_the_tenant(run: &Run) -> Vec<String> {
    let Tenant {
        objects,
        resident_kib,
        beside,
        ..
    } = &run.tenant;
    let each = resident_kib / (*objects).max(1) as u64;
    let memory = (each > TENANTS_KIB)
        .then(|| format!("KiB for each of a hostile tenant's Computes: {each}"));
    let waits = (beside.median > BESIDE_SECONDS)
        .then(|| format!("seconds beside a hostile tenant: {}", beside.median));
    memory.into_iter().chain(waits).collect()
}

/// Fails with a list of all exceeded bounds.
pub fn check(run: &Run) -> Result<()> {
    let size = run.size as u64;
    let written = |what: &str| {
        run.creating
            .requests
            .kubernetes_writes
            .get(what)
            .copied()
            .unwrap_or_default()
    };
    // Jitter can shorten the interval by a tenth, and one poll may have been due.
    let polls = fleet::projects(run.size) as u64 * (run.quiet.seconds * 10 / 9 / POLL_SECONDS + 1);
    let statuses = written("patch computes/status");
    let alone = |what: &str| {
        run.singles
            .kubernetes_writes
            .get(what)
            .copied()
            .unwrap_or_default()
    };
    let singles = SINGLES as u64;
    let rows = [
        (
            "platform changes while creating",
            run.creating.requests.platform_changes,
            size..=size,
        ),
        (
            "finalizers and copies of the records",
            written("patch computes"),
            2 * size..=2 * size,
        ),
        (
            "events while creating",
            written("create events"),
            size..=size,
        ),
        (
            "statuses while creating",
            statuses,
            2 * size..=STATUSES * size,
        ),
        (
            "other writes while creating",
            run.creating.requests.writes() - 3 * size - statuses,
            0..=OF_THE_ACCOUNT,
        ),
        (
            "passes while creating",
            run.creating.passes,
            size..=PASSES * size,
        ),
        (
            "changes for those who come alone",
            run.singles.platform_changes,
            singles..=singles,
        ),
        (
            "finalizers and copies of those who come alone",
            alone("patch computes"),
            2 * singles..=2 * singles,
        ),
        (
            "statuses of those who come alone",
            alone("patch computes/status"),
            3 * singles..=3 * singles,
        ),
        (
            "all writes for those who come alone",
            run.singles.writes(),
            6 * singles..=6 * singles,
        ),
        (
            "writes while nothing happens",
            run.quiet.requests.writes(),
            0..=0,
        ),
        (
            "lists while nothing happens",
            run.quiet.requests.platform_lists,
            0..=polls,
        ),
        (
            "changes while nothing happens",
            run.quiet.requests.platform_changes,
            0..=0,
        ),
        (
            "changes after a restart",
            run.restart.requests.platform_changes,
            0..=0,
        ),
        (
            "writes after a restart",
            run.restart.requests.writes(),
            0..=1,
        ),
        // One pass after the account is checked, one after the project's list is read.
        (
            "passes after a restart",
            run.restart.passes,
            0..=2 * (size + 2 * singles) + PASSES_OF_THE_ACCOUNT,
        ),
    ];
    let wrong = rows
        .into_iter()
        .filter(|(_, count, expected)| !expected.contains(count));
    let wrong =
        wrong.map(|(what, count, expected)| format!("{what}: {count}, expected {expected:?}"));
    let wrong: Vec<String> = wrong.chain(of_the_tenant(run)).collect();
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(Error::new(wrong.join("\n"))),
    }
}
