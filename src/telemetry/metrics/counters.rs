//! Counters with a namespace. Their series go with the resources of the namespace, or with the
//! account.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bound::Series;

/// The counts by the values of the labels.
type Counts = BTreeMap<Vec<String>, u64>;

/// One metric.
#[derive(Debug)]
pub(super) struct Counters {
    pub name: &'static str,
    pub help: &'static str,
    /// The names of the labels, besides the namespace.
    labels: &'static [&'static str],
    counts: Mutex<BTreeMap<String, Counts>>,
}

impl Counters {
    pub fn new(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            help,
            labels,
            counts: Mutex::default(),
        })
    }

    /// Adds one. `values` has a value for each label.
    pub fn add(&self, namespace: &str, values: &[&str]) {
        let mut counts = self.counts();
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        if let Some(of_namespace) = counts.get_mut(namespace) {
            *of_namespace.entry(values).or_default() += 1;
        } else {
            counts.insert(namespace.to_owned(), [(values, 1)].into());
        }
    }

    /// Removes the series with these first values.
    pub fn remove(&self, namespace: &str, first: &[String]) {
        let mut counts = self.counts();
        if let Some(of_namespace) = counts.get_mut(namespace) {
            of_namespace.retain(|values, _| !values.starts_with(first));
        }
        counts.retain(|_, of_namespace| !of_namespace.is_empty());
    }

    /// Keeps the series of these namespaces.
    pub fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.counts().retain(|namespace, _| is_kept(namespace));
    }

    pub fn snapshot(&self) -> BTreeMap<String, Counts> {
        self.counts().clone()
    }

    pub fn series<'a>(&self, snapshot: &'a BTreeMap<String, Counts>) -> Vec<(Series<'a>, u64)> {
        let mut all = Vec::new();
        for (namespace, counts) in snapshot {
            for (values, count) in counts {
                let values = values.iter().map(String::as_str);
                let labels = self.labels.iter().copied().zip(values).collect();
                all.push((Series { namespace, labels }, *count));
            }
        }
        all
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
