//! Metric families whose label names are fixed at registration.

use std::{fmt::Debug, sync::Arc};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{MetricType, TypedMetric, counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

type Labels<const N: usize> = [(&'static str, Arc<str>); N];

/// One metric per combination of label values.
#[derive(Clone)]
pub struct Vector<const N: usize, M> {
    names: [&'static str; N],
    family: Family<Labels<N>, M, fn() -> M>,
}

impl<const N: usize, M> Vector<N, M>
where
    M: Clone + EncodeMetric + TypedMetric + Debug + Send + Sync + 'static,
{
    pub(super) fn new(
        registry: &mut Registry,
        name: &str,
        help: &str,
        names: [&'static str; N],
        make: fn() -> M,
    ) -> Self {
        let family = Family::new_with_constructor(make);
        registry.register(name, help, family.clone());
        Self { names, family }
    }

    /// The metric of these values, in the order of the label names; made and shown at zero where it is not there.
    /// Allocates: where it is called often, keep what it returns.
    pub fn with(&self, values: [&str; N]) -> M {
        self.family.get_or_create_owned(&self.labels(values))
    }

    /// Takes the metric of these values out of the exposition.
    pub fn remove(&self, values: [&str; N]) {
        self.family.remove(&self.labels(values));
    }

    /// Takes all out.
    pub fn clear(&self) {
        self.family.clear();
    }

    fn labels(&self, values: [&str; N]) -> Labels<N> {
        std::array::from_fn(|index| (self.names[index], values[index].into()))
    }
}

pub type CounterVector<const N: usize> = Vector<N, Counter>;
pub type GaugeVector<const N: usize> = Vector<N, Gauge>;
pub type HistogramVector<const N: usize> = Vector<N, Histogram>;

/// A counter whose name does not end in `_total`. The format has no counter like that, so its type shows as untyped.
#[derive(Clone, Debug, Default)]
pub struct BareCounter(Counter);

impl BareCounter {
    pub fn inc(&self) {
        self.0.inc();
    }

    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.encode_gauge(&i64::try_from(self.0.get()).unwrap_or(i64::MAX))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for BareCounter {
    const TYPE: MetricType = MetricType::Unknown;
}
