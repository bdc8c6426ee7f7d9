//! Bounds the series of each namespace, so that nobody can fill the metrics of others.

use std::collections::{BTreeMap, BTreeSet};

/// Accounts of a namespace that have series of their own.
pub const MOST_ACCOUNTS: usize = 100;
/// Series of a namespace, all metrics together.
pub const MOST_SERIES: usize = 1_000;
/// The label of what does not fit.
pub const OTHER: &str = "other";
/// The label that names an account.
pub const ACCOUNT: &str = "account";

/// Series of accounts that are named. With all its series an account has about 30.
const OF_ACCOUNTS: usize = MOST_SERIES - 400;
/// Then a new set of labels is counted as `other`.
const OWN: usize = MOST_SERIES - 150;
/// Then only one series per metric is added.
const OF_OTHER_ACCOUNTS: usize = MOST_SERIES - 50;

/// The kind and name of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccountLabels {
    /// That of an Account. Empty for a ClusterAccount.
    pub namespace: String,
    pub kind: String,
    pub name: String,
}

/// The labels of a sample. `namespace` is empty for what belongs to no namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series<'a> {
    pub namespace: &'a str,
    pub labels: Vec<(&'static str, &'a str)>,
}

impl<'a> Series<'a> {
    fn account(&self) -> Option<&'a str> {
        let mut labels = self.labels.iter();
        labels.find_map(|(name, value)| (*name == ACCOUNT).then_some(*value))
    }

    /// The same series, with `other` for each label that `hides` selects.
    fn with_other(&self, hides: impl Fn(&str) -> bool) -> Self {
        let labels = self.labels.iter();
        Self {
            namespace: self.namespace,
            labels: labels
                .map(|(name, value)| (*name, if hides(name) { OTHER } else { *value }))
                .collect(),
        }
    }
}

/// Decides which labels are shown. An account is named in all metrics or in none, so that queries
/// can join them.
#[derive(Debug, Default)]
pub struct Bound<'a> {
    named: BTreeSet<(&'a str, &'a str)>,
    /// Number of series by namespace. Includes those of the named accounts from the beginning.
    used: BTreeMap<&'a str, usize>,
}

impl<'a> Bound<'a> {
    /// The accounts that appear first are named.
    pub fn over<'b>(all: impl IntoIterator<Item = &'b Series<'a>>) -> Self
    where
        'a: 'b,
    {
        let (mut order, mut sizes) = (Vec::new(), BTreeMap::<_, usize>::new());
        for series in all {
            let Some(account) = series.account() else {
                continue;
            };
            let size = sizes.entry((series.namespace, account)).or_default();
            if *size == 0 {
                order.push((series.namespace, account));
            }
            *size += 1;
        }
        let mut bound = Self::default();
        let mut accounts = BTreeMap::<_, usize>::new();
        for (namespace, account) in order {
            let size = sizes[&(namespace, account)];
            let number = accounts.entry(namespace).or_default();
            let used = bound.used.entry(namespace).or_default();
            if *number < MOST_ACCOUNTS && *used + size <= OF_ACCOUNTS {
                *number += 1;
                *used += size;
                bound.named.insert((namespace, account));
            }
        }
        bound
    }

    /// The samples of one metric. Samples that do not fit are merged into series of `other`.
    pub fn fit<V: Copy>(
        &mut self,
        samples: Vec<(Series<'a>, V)>,
        merge: impl Fn(V, V) -> V,
    ) -> BTreeMap<Series<'a>, V> {
        let mut shown = BTreeMap::new();
        for (series, value) in samples {
            let place = self.place(series, &shown);
            let merged = shown
                .get(&place)
                .map_or(value, |known| merge(*known, value));
            shown.insert(place, merged);
        }
        shown
    }

    fn place<V>(&mut self, series: Series<'a>, shown: &BTreeMap<Series<'a>, V>) -> Series<'a> {
        let used = self.used.entry(series.namespace).or_default();
        let account = series.account();
        if account.is_some_and(|account| self.named.contains(&(series.namespace, account))) {
            return series;
        }
        let (candidate, most) = match account {
            Some(_) => (series.with_other(|name| name == ACCOUNT), OF_OTHER_ACCOUNTS),
            None => (series, OWN),
        };
        if shown.contains_key(&candidate) {
            return candidate;
        }
        let place = if *used < most {
            candidate
        } else {
            candidate.with_other(|_| true)
        };
        *used += usize::from(!shown.contains_key(&place));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series<'a>(namespace: &'a str, labels: &[(&'static str, &'a str)]) -> (Series<'a>, u64) {
        let labels = labels.to_vec();
        (Series { namespace, labels }, 1)
    }

    /// The samples that are shown of these metrics.
    fn fitted<'a>(metrics: Vec<Vec<(Series<'a>, u64)>>) -> Vec<BTreeMap<Series<'a>, u64>> {
        let mut bound = Bound::over(metrics.iter().flatten().map(|(series, _)| series));
        let fit = |samples| bound.fit(samples, |known, value| known + value);
        metrics.into_iter().map(fit).collect()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("name-{number}")).collect()
    }

    fn shown_in(namespace: &str, metrics: &[BTreeMap<Series<'_>, u64>]) -> usize {
        let all = metrics.iter().flat_map(BTreeMap::keys);
        all.filter(|series| series.namespace == namespace).count()
    }

    /// How many accounts a metric names, and how many it counts as other.
    fn named(metric: &BTreeMap<Series<'_>, u64>) -> (usize, u64) {
        let of_other = |series: &Series<'_>| series.account() == Some(OTHER);
        let others = metric.iter().filter(|(series, _)| of_other(series));
        let others = others.map(|(_, count)| count).sum();
        let own = metric.keys().filter(|series| !of_other(series)).count();
        (own, others)
    }

    #[test]
    fn a_hundred_accounts_of_a_namespace_are_named_and_cost_others_nothing() {
        let names = names(150);
        let mut info: Vec<_> = names
            .iter()
            .map(|name| series("hostile", &[(ACCOUNT, name)]))
            .collect();
        info.push(series("shop", &[(ACCOUNT, "prod")]));
        let shown = fitted(vec![info]);
        assert_eq!(named(&shown[0]), (MOST_ACCOUNTS + 1, 50));
        assert!(shown[0].contains_key(&series("shop", &[(ACCOUNT, "prod")]).0));
    }

    #[test]
    fn an_account_is_named_in_all_metrics_or_in_none() {
        let (names, states) = (names(100), names(15));
        let of_state = |state| {
            let of = |name| series("shop", &[(ACCOUNT, name), ("state", state)]);
            names.iter().map(|name| of(name.as_str())).collect()
        };
        let shown = fitted(states.iter().map(|state| of_state(state)).collect());
        for metric in &shown {
            assert_eq!(named(metric), (OF_ACCOUNTS / 15, 60));
        }
        assert_eq!(shown_in("shop", &shown), OF_ACCOUNTS + 15);
    }

    #[test]
    fn a_namespace_has_at_most_a_thousand_series_and_no_count_is_lost() {
        let (names, reasons, calls) = (names(90), names(2_000), names(500));
        let of_calls = names.iter().flat_map(|name| {
            let of = |call| series("shop", &[(ACCOUNT, name), ("call", call)]);
            calls.iter().map(move |call| of(call.as_str()))
        });
        let of_reasons = reasons
            .iter()
            .map(|reason| series("shop", &[("reason", reason)]));
        let info = names.iter().map(|name| series("shop", &[(ACCOUNT, name)]));
        let shown = fitted(vec![
            info.collect(),
            of_reasons.collect(),
            of_calls.collect(),
        ]);
        assert!(shown_in("shop", &shown) <= MOST_SERIES);
        let counts: Vec<u64> = shown.iter().map(|metric| metric.values().sum()).collect();
        assert_eq!(counts, [90, 2_000, 90 * 500]);
    }

    #[test]
    fn an_account_with_the_name_of_the_rest_makes_no_series_twice() {
        let names = names(MOST_ACCOUNTS);
        let mut info = vec![series("shop", &[(ACCOUNT, OTHER)])];
        info.extend(names.iter().map(|name| series("shop", &[(ACCOUNT, name)])));
        assert_eq!(named(&fitted(vec![info])[0]), (MOST_ACCOUNTS - 1, 2));
    }
}
