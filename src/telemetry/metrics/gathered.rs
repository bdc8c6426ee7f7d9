//! All samples of one scrape that have a namespace, within the bound of each namespace.

use std::fmt;

use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue,
    GaugeValueEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::bound::{Bound, Series};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Whole(i64),
    Part(f64),
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Whole(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Whole(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Whole(count.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Part(number)
    }
}

impl EncodeGaugeValue for Value {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => EncodeGaugeValue::encode(number, encoder),
            Self::Part(number) => EncodeGaugeValue::encode(number, encoder),
        }
    }
}

impl EncodeCounterValue for Value {
    fn encode(&self, encoder: &mut CounterValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => EncodeCounterValue::encode(&number.unsigned_abs(), encoder),
            Self::Part(number) => EncodeCounterValue::encode(number, encoder),
        }
    }
}

/// How the values of `other` are made of those that do not fit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Merge {
    Sum,
    Least,
    Most,
}

impl Merge {
    fn of(self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Whole(a), Value::Whole(b)) => Value::Whole(match self {
                Self::Sum => a.saturating_add(b),
                Self::Least => a.min(b),
                Self::Most => a.max(b),
            }),
            (Value::Part(a), Value::Part(b)) => Value::Part(match self {
                Self::Sum => a + b,
                Self::Least => a.min(b),
                Self::Most => a.max(b),
            }),
            // The values of a metric are of one sort.
            (a, _) => a,
        }
    }
}

/// The description of a metric. Its name has no prefix and no unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub name: &'static str,
    pub seconds: bool,
    pub is_counter: bool,
    pub merge: Merge,
    pub help: &'static str,
}

impl About {
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            seconds: false,
            is_counter: false,
            merge: Merge::Sum,
            help,
        }
    }

    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self {
            is_counter: true,
            ..Self::gauge(name, help)
        }
    }

    pub const fn in_seconds(self) -> Self {
        Self {
            seconds: true,
            ..self
        }
    }

    pub const fn merged(self, merge: Merge) -> Self {
        Self { merge, ..self }
    }
}

#[derive(Debug, Default)]
pub(super) struct Gathered<'a>(Vec<(About, Vec<(Series<'a>, Value)>)>);

impl<'a> Gathered<'a> {
    pub fn add<V: Into<Value>>(
        &mut self,
        about: About,
        samples: impl IntoIterator<Item = (Series<'a>, V)>,
    ) {
        let samples = samples.into_iter();
        let samples = samples.map(|(series, value)| (series, value.into()));
        self.0.push((about, samples.collect()));
    }

    /// In the order in which the metrics were added.
    pub fn encode(self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.iter().flat_map(|(_, samples)| samples);
        let mut bound = Bound::over(all.map(|(series, _)| series));
        for (about, samples) in self.0 {
            let shown = bound.fit(samples, |a, b| about.merge.of(a, b));
            let type_ = if about.is_counter {
                MetricType::Counter
            } else {
                MetricType::Gauge
            };
            let unit = about.seconds.then_some(Unit::Seconds);
            let mut metric =
                encoder.encode_descriptor(about.name, about.help, unit.as_ref(), type_)?;
            for (Series { namespace, labels }, value) in shown {
                let mut all = vec![("namespace", namespace)];
                all.extend(labels);
                let mut sample = metric.encode_family(&all)?;
                if about.is_counter {
                    sample.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                } else {
                    sample.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }
}
