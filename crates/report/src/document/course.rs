//! Trials one by one, and what happened within them.

use analysis::Metric;
use record::{EventLog, Histogram, Measurement, Run, Trial};
use serde::Serialize;
use std::collections::BTreeMap;

/// A trial.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialPoint {
    /// Its cell.
    pub cell: usize,
    /// Its round, from 0.
    pub round: u32,
    /// 1 for a baseline's second trial in the round.
    pub replica: u32,
    /// When it started, in seconds since the first.
    pub at: i64,
    /// Operations, or transactions, a second; none where it does not count.
    pub throughput: Option<f64>,
    /// 99th percentile, ms.
    pub p99: Option<f64>,
    /// How long its operations took; none where it does not count.
    pub latency: Option<LatencyCounts>,
    /// Why it does not count.
    pub lost: Option<String>,
}

/// Operations by latency, in steps of a quarter of an octave: step `n` is from 2^(n/4) to 2^((n+1)/4) µs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyCounts {
    /// The first step that has any.
    pub first: i32,
    /// How many are in it and in each step after it.
    pub counts: Vec<u64>,
}

impl LatencyCounts {
    /// Of a trial's whole histogram, some 40 steps and 200 bytes; none of one without operations.
    fn of(histogram: &Histogram) -> Option<LatencyCounts> {
        // What took no time that can be measured took less than a nanosecond.
        let step = |micros: f64| (micros.max(1e-3).log2() * 4.0).floor() as i32;
        let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
        for (latency, count) in histogram.buckets() {
            *counts.entry(step(latency.as_micros_f64())).or_default() += count;
        }
        let (first, last) = (*counts.first_key_value()?.0, *counts.last_key_value()?.0);
        let counts = (first..=last).map(|step| counts.get(&step).copied().unwrap_or(0)).collect();
        Some(LatencyCounts { first, counts })
    }
}

/// The course of a trial, second by second. Warm-up has times of zero or less.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Course {
    /// Its cell.
    pub cell: usize,
    /// Its round.
    pub round: u32,
    /// Seconds from the end of warm-up.
    pub at: Vec<f64>,
    /// Operations, or transactions, completed in each second.
    pub operations: Vec<f64>,
    /// Median latency, ms.
    pub p50: Vec<f64>,
    /// 99th percentile, ms.
    pub p99: Vec<f64>,
    /// The longest, ms.
    pub max: Vec<f64>,
    /// Moments of the counters' samples.
    pub counters_at: Vec<f64>,
    /// Counters at those moments; null where a sample lacks one.
    pub counters: BTreeMap<String, Vec<Option<f64>>>,
}

/// Requests of one simulated trial, in the order in which they went to the device. Times are ms from the
/// end of warm-up.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Requests {
    /// Its cell.
    pub cell: usize,
    /// When each was made.
    pub queued: Vec<f64>,
    /// When it went to the device.
    pub dispatched: Vec<f64>,
    /// When it was done.
    pub done: Vec<f64>,
    /// First sector.
    pub sector: Vec<u64>,
    /// `R`, `W`, `F` or `D`, one character each.
    pub operations: String,
    /// Whose.
    pub process: Vec<u32>,
    /// Moments at which heads are known.
    pub heads_at: Vec<f64>,
    /// The drive.
    pub heads_drive: Vec<u32>,
    /// Its cylinder.
    pub heads_cylinder: Vec<u32>,
    /// There were more requests than were kept.
    pub cut: bool,
}

pub fn trials(run: &Run) -> Vec<TrialPoint> {
    let first = run.trials.iter().map(|trial| trial.started_at).min().unwrap_or(0);
    let point = |trial: &Trial| {
        let measured = trial.measurement();
        TrialPoint {
            cell: trial.id.cell,
            round: trial.id.round,
            replica: trial.id.replica,
            at: trial.started_at - first,
            throughput: measured.and_then(|it| Metric::Throughput.of(it)).map(rounded),
            p99: measured.and_then(|it| Metric::P99.of(it)).map(|ns| rounded(ns / 1e6)),
            latency: measured.and_then(|it| LatencyCounts::of(&it.latency())),
            lost: crate::sentences::outcome(&trial.outcome),
        }
    };
    run.trials.iter().map(point).collect()
}

/// One for each cell that was measured.
pub fn courses(run: &Run) -> Vec<Course> {
    let of = |cell: usize| {
        let mut trials: Vec<(f64, &Trial, &Measurement)> = run
            .trials
            .iter()
            .filter(|trial| trial.id.cell == cell)
            .filter_map(|trial| {
                let measurement = trial.measurement()?;
                Some((Metric::Throughput.of(measurement)?, trial, measurement))
            })
            .collect();
        trials.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let (_, trial, measurement) = trials.get(trials.len() / 2)?;
        Some(course(trial, measurement))
    };
    (0..run.plan.cells.len()).filter_map(of).collect()
}

fn course(trial: &Trial, measurement: &Measurement) -> Course {
    let ms = |time: units::Nanos| rounded(time.as_micros_f64() / 1000.0);
    let seconds = &measurement.seconds;
    let mut counters: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for (place, sample) in measurement.counters.iter().enumerate() {
        for (name, value) in &sample.values {
            let values = counters.entry(name.clone()).or_default();
            values.resize(place, None);
            values.push(value.is_finite().then(|| rounded(*value)));
        }
    }
    for values in counters.values_mut() {
        values.resize(measurement.counters.len(), None);
    }
    // What never is anything else than nothing is no course.
    counters.retain(|_, values| values.iter().flatten().any(|value| *value != 0.0));
    Course {
        cell: trial.id.cell,
        round: trial.id.round,
        at: seconds.iter().map(|it| rounded(it.at)).collect(),
        operations: seconds.iter().map(|it| it.operations() as f64).collect(),
        p50: seconds.iter().map(|it| ms(it.p50)).collect(),
        p99: seconds.iter().map(|it| ms(it.p99)).collect(),
        max: seconds.iter().map(|it| ms(it.max)).collect(),
        counters_at: measurement.counters.iter().map(|it| rounded(it.at)).collect(),
        counters,
    }
}

/// Of a cell's event log.
pub fn requests(cell: usize, log: &EventLog) -> Requests {
    let ms = |ns: i64| ((ns as f64 / 1e3).round()) / 1e3;
    let mut lives = log.requests.clone();
    lives.sort_by_key(|life| life.dispatched_ns);
    Requests {
        cell,
        queued: lives.iter().map(|it| ms(it.queued_ns)).collect(),
        dispatched: lives.iter().map(|it| ms(it.dispatched_ns)).collect(),
        done: lives.iter().map(|it| ms(it.done_ns)).collect(),
        sector: lives.iter().map(|it| it.start).collect(),
        operations: lives.iter().map(|it| it.op).collect(),
        process: lives.iter().map(|it| it.process).collect(),
        heads_at: log.heads.iter().map(|it| ms(it.at_ns)).collect(),
        heads_drive: log.heads.iter().map(|it| it.drive).collect(),
        heads_cylinder: log.heads.iter().map(|it| it.cylinder).collect(),
        cut: log.cut,
    }
}

/// Four significant digits: no chart shows more, and they make a page half as large.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn latencies_are_counted_in_quarters_of_an_octave() {
        let of = |latencies: &[(u64, u64)]| {
            let buckets =
                latencies.iter().map(|(micros, count)| (Nanos::from_micros(*micros), *count));
            LatencyCounts::of(&Histogram::from_buckets(buckets)).map(|it| (it.first, it.counts))
        };
        assert_eq!(of(&[]), None);
        // 1024 µs is 2^(40/4), and 1100 µs less than 2^(41/4); 2200 µs are an octave above it.
        assert_eq!(of(&[(1030, 3), (1100, 2), (2200, 1)]), Some((40, vec![5, 0, 0, 0, 1])));
        let all = of(&[(1, 1), (10_000_000, 1)]).unwrap();
        assert_eq!(all.1.iter().sum::<u64>(), 2);
    }
}
