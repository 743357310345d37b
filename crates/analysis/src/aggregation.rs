//! From the samples of a cell's trials to one figure a counter.

use counters::Aggregate;
use record::Measurement;
use std::collections::BTreeMap;

/// Each counter over the measured time, aggregated as the catalogue says. A sample stands for the time
/// since the one before it, which is more than a second where a replay had nothing to do.
pub(crate) fn aggregate_counters(measured: &[&Measurement]) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    for measurement in measured {
        let mut before: f64 = 0.0;
        for sample in measurement.counters.iter().filter(|sample| sample.at > 0.0) {
            let span = (sample.at - before).max(1e-9);
            before = sample.at;
            for (name, value) in &sample.values {
                let (sum, spans, max) = all.entry(name).or_insert((0.0, 0.0, f64::NEG_INFINITY));
                *sum += value * span;
                *spans += span;
                *max = max.max(*value);
            }
        }
    }
    all.into_iter()
        .map(|(name, (sum, spans, max))| {
            let value = match counters::aggregate(name) {
                Aggregate::Mean => sum / spans,
                Aggregate::Max => max,
            };
            (name.to_owned(), value)
        })
        .collect()
}
