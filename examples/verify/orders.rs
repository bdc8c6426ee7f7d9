//! Every order of events within the bounds of the model, and the rules that are broken on purpose.

use std::num::NonZero;

use super::model::{Explored, Extent, Outcome, bounds, explore, mutations};
use super::table::Table;

/// How many bounds are explored at a time: the larger ones take a gigabyte or two.
const AT_A_TIME: usize = 2;

#[derive(Debug)]
pub struct Orders {
    explored: Vec<Explored>,
    /// With a rule broken.
    tried: Vec<Explored>,
}

impl Orders {
    pub fn explore() -> Self {
        let at_a_time = std::thread::available_parallelism().map_or(1, NonZero::get).min(AT_A_TIME);
        Self { explored: explore(bounds(Extent::Large), at_a_time), tried: explore(mutations(), at_a_time) }
    }

    /// Whether every promise held, and every broken rule was noticed.
    pub fn hold(&self) -> bool {
        self.explored.iter().all(|explored| explored.outcome == Outcome::Held) && self.noticed() == self.tried.len()
    }

    fn noticed(&self) -> usize {
        self.tried.iter().filter(|explored| matches!(explored.outcome, Outcome::Broken(_))).count()
    }

    pub fn rows(&self, table: &mut Table) {
        for explored in &self.explored {
            let violations = match explored.outcome {
                Outcome::Held => "0",
                Outcome::Broken(_) => "1",
                Outcome::TooLarge => "not explored",
            };
            table.row(vec![
                explored.name.clone(),
                format!("{} deep", explored.depth),
                format!("{} states", explored.states),
                violations.to_owned(),
                explored.time.as_secs().to_string(),
            ]);
        }
        let states: usize = self.explored.iter().map(|explored| explored.states).sum();
        table.row(vec!["all orders of events".to_owned(), String::new(), format!("{states} states")]);
        let (noticed, tried) = (self.noticed(), self.tried.len());
        table.row(vec!["rules broken on purpose".to_owned(), format!("{tried} tried"), format!("{noticed} caught")]);
    }
}
