//! The cost of a pass over the worst admissible objects of each kind, as allocations of the
//! decision and the status. The counts are the same on every machine, and include all copies,
//! hashes and formatted texts. Evaluations of schedules are counted beside the decisions, in
//! `cost.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod accounts;
mod computes;
mod keys;
mod sets;
#[path = "../support/worst.rs"]
mod worst;

use dbplane::validate::Checker;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// The limit of a pass, which may take 5 ms. Allocating and freeing this much takes about 2 ms.
const MOST: Work = Work {
    blocks: 40_000,
    bytes: 16 * 1024 * 1024,
};
const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

#[derive(Clone, Copy, Debug)]
struct Work {
    blocks: u64,
    bytes: u64,
}

impl Work {
    fn of(what: impl FnOnce()) -> Self {
        let _counting = dhat::Profiler::builder().testing().build();
        what();
        let dhat::HeapStats {
            total_blocks: blocks,
            total_bytes: bytes,
            ..
        } = dhat::HeapStats::get();
        Self { blocks, bytes }
    }

    fn exceeds(self, most: Self) -> bool {
        self.blocks > most.blocks || self.bytes > most.bytes
    }
}

/// Reports a pass that exceeds the limit, or whose cost more than doubles when the number of parts
/// doubles.
fn excess<T>(
    what: &str,
    parts: usize,
    given: impl Fn(usize) -> T,
    pass: impl Fn(&T),
) -> Option<String> {
    let [half, whole] = [parts / 2, parts].map(|parts| {
        let given = given(parts);
        Work::of(|| pass(&given))
    });
    let twice = Work {
        blocks: half.blocks * 9 / 4,
        bytes: half.bytes * 9 / 4,
    };
    let is_too_much = whole.exceeds(MOST) || whole.exceeds(twice);
    is_too_much.then(|| format!("{what}, {parts}: {whole:?}; half of them: {half:?}"))
}

fn before(seconds: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(seconds)
}

/// Checks that the API server accepts the first manifest, and rejects the second one, which has
/// more, because of this field.
fn is_worst(admitted: &Value, more: &Value, path: &str) {
    let checker = Checker::new().unwrap();
    assert_eq!(checker.check(admitted, None), Ok(()));
    let problems = checker.check(more, None).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|problem| problem.path.starts_with(path)),
        "{path}: {problems:?}"
    );
}

#[test]
fn no_object_costs_more_than_its_share() {
    let rows = [
        accounts::rows(),
        computes::rows(),
        keys::rows(),
        sets::rows(),
    ];
    let wrong: Vec<String> = rows.into_iter().flatten().flatten().collect();
    assert!(wrong.is_empty(), "too much:\n{}", wrong.join("\n"));
}
