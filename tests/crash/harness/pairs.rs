//! Two faults in one run, as a sample drawn with a seed.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::gate::Counted;
use super::modes::{Fault, Mode, Place};
use super::scenarios::Scenario;

/// Pairs per scenario.
const PAIRS: usize = 3;
/// Draws per scenario. More than `PAIRS`, because some are duplicates or impossible.
const DRAWS: usize = 12;

const FIRST: [Mode; 8] = [
    Mode::KillBefore,
    Mode::KillAfter,
    Mode::Lost,
    Mode::Cut,
    Mode::Instead(409),
    Mode::Instead(500),
    Mode::After(503),
    Mode::Outage,
];
const SECOND: [Mode; 6] = [
    Mode::KillBefore,
    Mode::KillAfter,
    Mode::Lost,
    Mode::Instead(503),
    Mode::Frozen,
    Mode::Term,
];

/// The first fault ends a leader. The second one hits the next request for the Lease: the leader's
/// release, or the attempt of another process to acquire it. `Frozen` is left out, because a
/// process that is frozen there has never led.
const ENDS: [Mode; 2] = [Mode::KillAfter, Mode::Term];
const OF_THE_LEASE: [Mode; 5] = [
    Mode::KillAfter,
    Mode::Lost,
    Mode::Instead(409),
    Mode::Instead(500),
    Mode::After(500),
];

/// The scenario's pairs, determined by the seed and the number of requests.
pub fn pairs(scenario: &Scenario, counted: &[Counted], seed: u64) -> Vec<[Fault; 2]> {
    if scenario.repeats() {
        return Vec::new();
    }
    let mut bytes = [0; 32];
    let text = seed.to_le_bytes().into_iter().chain(scenario.name.bytes());
    bytes
        .iter_mut()
        .zip(text)
        .for_each(|(byte, value)| *byte = value);
    let mut random = StdRng::from_seed(bytes);
    let mut drawn = Vec::new();
    for pair in (0..DRAWS).filter_map(|_| pair(scenario, counted, &mut random)) {
        if drawn.len() < PAIRS && !drawn.contains(&pair) {
            drawn.push(pair);
        }
    }
    drawn
}

fn pair(scenario: &Scenario, counted: &[Counted], random: &mut StdRng) -> Option<[Fault; 2]> {
    let (first, second) = if scenario.elected {
        (*ENDS.choose(random)?, *OF_THE_LEASE.choose(random)?)
    } else {
        (*FIRST.choose(random)?, *SECOND.choose(random)?)
    };
    let suits = |(_, request): &(usize, &Counted)| first.suits(request);
    let places: Vec<usize> = (1..counted.len())
        .zip(counted)
        .filter(suits)
        .map(|(at, _)| at)
        .collect();
    let at = *places.choose(random)?;
    let then = if scenario.elected {
        Place::Lease(1)
    } else {
        Place::Request(random.random_range(at + 1..=counted.len()))
    };
    Some([
        Fault {
            mode: first,
            at: Place::Request(at),
        },
        Fault {
            mode: second,
            at: then,
        },
    ])
}
