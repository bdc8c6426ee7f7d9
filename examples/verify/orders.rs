//! Runs the model for `make verify`: every order of events within its bounds, and the mutations.

use std::num::NonZero;

use super::model::{Bound, Explored, Extent, Outcome, bounds, explore, mutations};
use super::table::Table;

/// Bounds explored at the same time. The larger ones need one or two gigabytes of memory.
const AT_A_TIME: usize = 2;

#[derive(Debug)]
pub struct Orders {
    explored: Vec<Explored>,
    /// Mutations: the model with one rule broken on purpose.
    tried: Vec<Explored>,
}

impl Orders {
    /// Explores the bounds and tries the mutations whose names contain `named`.
    pub fn explore(named: &str) -> Self {
        let at_a_time = std::thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(AT_A_TIME);
        let of = |mut all: Vec<Bound>| {
            all.retain(|bound| bound.to_string().contains(named));
            explore(all, at_a_time)
        };
        Self {
            explored: of(bounds(Extent::Large)),
            tried: of(mutations()),
        }
    }

    /// True if no bound and no mutation matched the name.
    pub fn is_empty(&self) -> bool {
        self.explored.is_empty() && self.tried.is_empty()
    }

    fn noticed(&self) -> usize {
        self.tried
            .iter()
            .filter(|explored| matches!(explored.outcome, Outcome::Broken(_)))
            .count()
    }

    /// Adds a row for each result. Returns the number of broken promises and unnoticed mutations.
    pub fn rows(&self, table: &mut Table) -> usize {
        table.part([
            "orders of events within",
            "deep",
            "states",
            "violations",
            "seconds",
        ]);
        for explored in &self.explored {
            let violations = match explored.outcome {
                Outcome::Held => "0",
                Outcome::Broken(_) => "1",
                Outcome::TooLarge(_) => "not explored",
            };
            table.row(vec![
                explored.name.clone(),
                explored.depth.to_string(),
                explored.states.to_string(),
                violations.to_owned(),
                explored.time.as_secs().to_string(),
            ]);
        }
        let states: usize = self.explored.iter().map(|explored| explored.states).sum();
        let failed = self
            .explored
            .iter()
            .filter(|explored| explored.outcome != Outcome::Held)
            .count();
        table.row(vec![
            "all".to_owned(),
            String::new(),
            states.to_string(),
            failed.to_string(),
        ]);
        let (noticed, tried) = (self.noticed(), self.tried.len());
        table.part(["mutations", "tried", "caught", "not caught", ""]);
        let counts = [tried, noticed, tried - noticed].map(|count| count.to_string());
        table.row([vec!["rules broken on purpose".to_owned()], counts.to_vec()].concat());
        failed + tried - noticed
    }
}
