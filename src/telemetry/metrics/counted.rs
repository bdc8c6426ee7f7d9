//! Exposes everything that has a namespace.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::census::Census;
use super::counters::Counters;
use super::gathered::{About, Gathered};

/// Exposes the counters, and the counts of the function that it is given.
#[derive(Default)]
pub struct Counted {
    census: OnceLock<Box<dyn Fn() -> Census + Send + Sync>>,
    /// Counters of resources, whose series go with the resources of their namespace.
    of_resources: Vec<Arc<Counters>>,
    of_accounts: Vec<Arc<Counters>>,
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").finish_non_exhaustive()
    }
}

impl Counted {
    pub(super) fn new(of_resources: Vec<Arc<Counters>>, of_accounts: Vec<Arc<Counters>>) -> Self {
        Self {
            census: OnceLock::new(),
            of_resources,
            of_accounts,
        }
    }

    /// From now on, `census` computes the counts.
    pub fn by(&self, census: impl Fn() -> Census + Send + Sync + 'static) {
        // The first function is kept for the life of the process.
        let _ = self.census.set(Box::new(census));
    }
}

impl Collector for Counted {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let census = self.census.get().map(|count| count());
        let counters = self.of_resources.iter().chain(&self.of_accounts);
        let counted: Vec<_> = counters
            .map(|counters| (counters, counters.snapshot()))
            .collect();
        let mut gathered = Gathered::default();
        if let Some(census) = &census {
            census.gather(&mut gathered);
        }
        for (counters, snapshot) in &counted {
            let about = About::counter(counters.name, counters.help);
            gathered.add(about, counters.series(snapshot));
        }
        gathered.encode(encoder)?;
        // This scrape still shows the last counts of what is gone.
        if let Some(census) = &census {
            let namespaces = census.namespaces();
            for counters in &self.of_resources {
                counters.retain(|namespace| namespaces.contains(namespace));
            }
        }
        Ok(())
    }
}
