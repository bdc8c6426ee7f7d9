//! Upper bounds of requests and writes, which hold on every machine. More is a defect; after an
//! improvement, lower the bound.

use std::ops::RangeInclusive;

use super::fleet::{self, POLL_SECONDS};
use super::moments::SINGLES;
use super::spent::Requests;
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

/// A count of a run, and the range that it must be in.
struct Count {
    what: &'static str,
    count: u64,
    expected: RangeInclusive<u64>,
}

impl Count {
    fn new(what: &'static str, count: u64, expected: RangeInclusive<u64>) -> Self {
        Self {
            what,
            count,
            expected,
        }
    }

    fn exactly(what: &'static str, count: u64, expected: u64) -> Self {
        Self::new(what, count, expected..=expected)
    }

    fn excess(self) -> Option<String> {
        let Self {
            what,
            count,
            expected,
        } = self;
        (!expected.contains(&count)).then(|| format!("{what}: {count}, expected {expected:?}"))
    }
}

/// Fails with a list of all exceeded bounds.
pub fn check(run: &Run) -> Result<()> {
    let counts = [
        while_creating(run),
        of_singles(run),
        while_quiet(run),
        after_a_restart(run),
    ];
    let counts = counts.into_iter().flatten();
    let mut wrong: Vec<String> = counts.filter_map(Count::excess).collect();
    wrong.extend(of_the_tenant(run));
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Error::new(wrong.join("\n")))
    }
}

fn while_creating(run: &Run) -> Vec<Count> {
    let (size, requests) = (run.size as u64, &run.creating.requests);
    let statuses = written(requests, "patch computes/status");
    let other = requests.writes() - 3 * size - statuses;
    vec![
        Count::exactly(
            "platform changes while creating",
            requests.platform_changes,
            size,
        ),
        Count::exactly(
            "finalizers and copies of the records",
            written(requests, "patch computes"),
            2 * size,
        ),
        Count::exactly(
            "events while creating",
            written(requests, "create events"),
            size,
        ),
        Count::new(
            "statuses while creating",
            statuses,
            2 * size..=STATUSES * size,
        ),
        Count::new("other writes while creating", other, 0..=OF_THE_ACCOUNT),
        Count::new(
            "passes while creating",
            run.creating.passes,
            size..=PASSES * size,
        ),
    ]
}

fn of_singles(run: &Run) -> Vec<Count> {
    let (singles, requests) = (SINGLES as u64, &run.singles);
    vec![
        Count::exactly(
            "changes for those who come alone",
            requests.platform_changes,
            singles,
        ),
        Count::exactly(
            "finalizers and copies of those who come alone",
            written(requests, "patch computes"),
            2 * singles,
        ),
        Count::exactly(
            "statuses of those who come alone",
            written(requests, "patch computes/status"),
            3 * singles,
        ),
        Count::exactly(
            "all writes for those who come alone",
            requests.writes(),
            6 * singles,
        ),
    ]
}

fn while_quiet(run: &Run) -> Vec<Count> {
    let requests = &run.quiet.requests;
    // Jitter can shorten the interval by a tenth, and one poll may have been due.
    let polls = fleet::projects(run.size) as u64 * (run.quiet.seconds * 10 / 9 / POLL_SECONDS + 1);
    vec![
        Count::exactly("writes while nothing happens", requests.writes(), 0),
        Count::new(
            "lists while nothing happens",
            requests.platform_lists,
            0..=polls,
        ),
        Count::exactly(
            "changes while nothing happens",
            requests.platform_changes,
            0,
        ),
    ]
}

fn after_a_restart(run: &Run) -> Vec<Count> {
    let (size, singles) = (run.size as u64, SINGLES as u64);
    let requests = &run.restart.requests;
    // One pass after the account is checked, one after the project's list is read.
    let passes = 2 * (size + 2 * singles) + PASSES_OF_THE_ACCOUNT;
    vec![
        Count::exactly("changes after a restart", requests.platform_changes, 0),
        Count::new("writes after a restart", requests.writes(), 0..=1),
        Count::new("passes after a restart", run.restart.passes, 0..=passes),
    ]
}

fn of_the_tenant(run: &Run) -> Vec<String> {
    let Tenant {
        objects,
        resident_kib,
        beside,
        ..
    } = &run.tenant;
    let mut wrong = Vec::new();
    let each = resident_kib / (*objects).max(1) as u64;
    if each > TENANTS_KIB {
        wrong.push(format!(
            "KiB for each of a hostile tenant's Computes: {each}"
        ));
    }
    if beside.median > BESIDE_SECONDS {
        wrong.push(format!(
            "seconds beside a hostile tenant: {}",
            beside.median
        ));
    }
    wrong
}

/// Number of writes of one sort.
fn written(requests: &Requests, what: &str) -> u64 {
    let writes = requests.kubernetes_writes.get(what);
    writes.copied().unwrap_or_default()
}
