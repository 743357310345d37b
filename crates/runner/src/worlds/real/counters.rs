//! Host and device counters beside a trial.

use host::{DeviceNumber, Host, OrderCounts, Rates, RequestOrder, Sampler};
use record::{CounterSample, Warning};
use std::collections::BTreeMap;
use units::Nanos;

/// Samples once a second.
pub struct Sampling<'a> {
    order: Option<&'a RequestOrder>,
    sampler: Option<Sampler>,
    before: Option<host::Counters>,
    samples: Vec<CounterSample>,
    throttled: Nanos,
}

impl<'a> Sampling<'a> {
    /// Begins before the load does; with the order of requests where that is looked at.
    pub fn begin(
        host: &Host,
        devices: &[DeviceNumber],
        order: Option<&'a RequestOrder>,
    ) -> Sampling<'a> {
        let mut sampler = Sampler::new(host, devices).ok();
        let before = sampler.as_mut().map(Sampler::sample);
        // Of what was before the trial.
        let _before = order.map(RequestOrder::take);
        Sampling { order, sampler, before, samples: Vec::new(), throttled: Nanos::ZERO }
    }

    /// One second's rates; `at` is its end in seconds from the end of warm-up.
    pub fn sample(&mut self, at: f64) {
        let Some(now) = self.sampler.as_mut().map(Sampler::sample) else { return };
        if let Some(before) = &self.before {
            let rates = Rates::between(before, &now);
            let mut values: BTreeMap<String, f64> = rates.named().into_iter().collect();
            values.extend(self.order.map(RequestOrder::take).map(order).unwrap_or_default());
            self.samples.push(CounterSample { at, values });
            if at > 0.0
                && let (Some(was), Some(is)) = (before.throttled, now.throttled)
            {
                self.throttled += is.saturating_sub(was);
            }
        }
        self.before = Some(now);
    }

    /// Puts other counters of the same second beside the last sample's.
    pub fn add(&mut self, values: BTreeMap<String, f64>) {
        if let Some(sample) = self.samples.last_mut() {
            sample.values.extend(values);
        }
    }

    /// All samples.
    pub fn samples(&mut self) -> Vec<CounterSample> {
        std::mem::take(&mut self.samples)
    }

    /// What the counters show that figures suffer from.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.throttled > Nanos::from_millis(10) {
            warnings.push(Warning::CpuLimitReached { throttled: self.throttled });
        }
        match &self.sampler {
            None => warnings.push(Warning::NoHostCounters),
            Some(sampler) if !sampler.not_counted.is_empty() => {
                warnings.push(Warning::NotCounted { devices: sampler.not_counted.clone() });
            }
            Some(_) => {}
        }
        warnings
    }
}

/// Nothing where no two requests were seen.
fn order(counts: OrderCounts) -> BTreeMap<String, f64> {
    let OrderCounts { pairs, sequential, distance } = counts;
    if pairs == 0 {
        return BTreeMap::new();
    }
    let per_pair = |count: u64| count as f64 / pairs as f64;
    BTreeMap::from([
        (counters::ORDER_SEEK.id.to_owned(), per_pair(distance)),
        (counters::ORDER_SEQUENTIAL.id.to_owned(), 100.0 * per_pair(sequential)),
    ])
}
