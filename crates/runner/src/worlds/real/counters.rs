//! Host and device counters beside a trial.

use host::{DeviceNumber, Host, Rates, Sampler};
use record::{CounterSample, Warning};
use std::collections::BTreeMap;
use units::Nanos;

/// Samples once a second.
pub struct Sampling {
    sampler: Option<Sampler>,
    before: Option<host::Counters>,
    samples: Vec<CounterSample>,
    throttled: Nanos,
}

impl Sampling {
    /// Begins before the load does.
    pub fn begin(host: &Host, devices: &[DeviceNumber]) -> Sampling {
        let mut sampler = Sampler::new(host, devices).ok();
        let before = sampler.as_mut().map(Sampler::sample);
        Sampling { sampler, before, samples: Vec::new(), throttled: Nanos::ZERO }
    }

    /// One second's rates; `at` is its end in seconds from the end of warm-up.
    pub fn sample(&mut self, at: f64) {
        let Some(now) = self.sampler.as_mut().map(Sampler::sample) else { return };
        if let Some(before) = &self.before {
            let rates = Rates::between(before, &now);
            self.samples.push(CounterSample { at, values: rates.named().into_iter().collect() });
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
        if self.sampler.is_none() {
            warnings.push(Warning::NoHostCounters);
        }
        warnings
    }
}
