//! How many requests and writes there may be, whatever the machine: more of them are a defect, fewer a reason to write it down here.

use super::fleet::{self, POLL_SECONDS};
use super::moments::SINGLES;
use super::stages::Run;
use super::support::{Error, Result};
use super::tenant::Tenant;

/// The status of each Compute is written with its intent, with its binding, and when it can be used: exactly that often where it comes
/// alone. Where it waits for its turn it says so, and on a slow machine also for whom.
const STATUSES: u64 = 5;
/// The account and its Secret are held from the first Compute on, and the account says when its credentials were checked. It says which
/// projects of its Computes it has seen, once it is held, and again where more of them have come until then.
const OF_THE_ACCOUNT: u64 = 6;

/// Seven where it comes alone; each wait for a turn takes one more.
const PASSES: u64 = 12;
const PASSES_OF_THE_ACCOUNT: u64 = 10;

/// What a hostile tenant may take in memory for each of its objects, and how long others may wait beside it: many times what is measured, so
/// that no slow machine exceeds it.
const TENANTS_KIB: u64 = 200;
const BESIDE_SECONDS: f64 = 5.0;

fn of_the_tenant(run: &Run) -> Vec<String> {
    let Tenant { objects, resident_kib, beside, .. } = &run.tenant;
    let each = resident_kib / (*objects).max(1) as u64;
    let memory = (each > TENANTS_KIB).then(|| format!("KiB for each of a hostile tenant's Computes: {each}"));
    let waits = (beside.median > BESIDE_SECONDS).then(|| format!("seconds beside a hostile tenant: {}", beside.median));
    memory.into_iter().chain(waits).collect()
}

/// Fails where one is exceeded, with all of them.
pub fn check(run: &Run) -> Result<()> {
    let size = run.size as u64;
    let written = |what: &str| run.creating.requests.kubernetes_writes.get(what).copied().unwrap_or_default();
    // The interval is a tenth shorter at times, and one poll may have been due.
    let polls = fleet::projects(run.size) as u64 * (run.quiet.seconds * 10 / 9 / POLL_SECONDS + 1);
    let statuses = written("patch computes/status");
    let alone = |what: &str| run.singles.kubernetes_writes.get(what).copied().unwrap_or_default();
    let singles = SINGLES as u64;
    let rows = [
        ("platform changes while creating", run.creating.requests.platform_changes, size..=size),
        ("finalizers and copies of the records", written("patch computes"), 2 * size..=2 * size),
        ("events while creating", written("create events"), size..=size),
        ("statuses while creating", statuses, 2 * size..=STATUSES * size),
        ("other writes while creating", run.creating.requests.writes() - 3 * size - statuses, 0..=OF_THE_ACCOUNT),
        ("passes while creating", run.creating.passes, size..=PASSES * size),
        ("changes for those who come alone", run.singles.platform_changes, singles..=singles),
        ("finalizers and copies of those who come alone", alone("patch computes"), 2 * singles..=2 * singles),
        ("statuses of those who come alone", alone("patch computes/status"), 3 * singles..=3 * singles),
        ("all writes for those who come alone", run.singles.writes(), 6 * singles..=6 * singles),
        ("writes while nothing happens", run.quiet.requests.writes(), 0..=0),
        ("lists while nothing happens", run.quiet.requests.platform_lists, 0..=polls),
        ("changes while nothing happens", run.quiet.requests.platform_changes, 0..=0),
        ("changes after a restart", run.restart.requests.platform_changes, 0..=0),
        ("writes after a restart", run.restart.requests.writes(), 0..=1),
        // One once the account is looked at, one once the project's list is there.
        ("passes after a restart", run.restart.passes, 0..=2 * (size + 2 * singles) + PASSES_OF_THE_ACCOUNT),
    ];
    let wrong = rows.into_iter().filter(|(_, count, expected)| !expected.contains(count));
    let wrong = wrong.map(|(what, count, expected)| format!("{what}: {count}, expected {expected:?}"));
    let wrong: Vec<String> = wrong.chain(of_the_tenant(run)).collect();
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(Error::new(wrong.join("\n"))),
    }
}
