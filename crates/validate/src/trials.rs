//! The trials of a cell, as they are compared.

use counters::URING_PUNTED;
use record::{Histogram, Measurement, Run};

/// A valid trial.
#[derive(Clone, Debug)]
pub struct TrialFigures {
    /// Its round.
    pub round: u32,
    /// Which of the cell's trials in it: a baseline has two.
    pub replica: u32,
    /// Latencies of all operations.
    pub latencies: Histogram,
    /// Operations a second.
    pub throughput: f64,
    /// The part of its bytes that io_uring's workers moved, because the kernel could not take an
    /// operation at once: that part of the tags went to clients that had waited for one.
    pub punted: f64,
}

/// The valid trials of a cell, by round and replica.
pub fn of_cell(run: &Run, cell: usize) -> Vec<TrialFigures> {
    let mut all: Vec<TrialFigures> = run
        .trials
        .iter()
        .filter(|trial| trial.id.cell == cell)
        .filter_map(|trial| {
            let measurement = trial.measurement()?;
            let seconds = measurement.span.as_secs_f64().max(1e-9);
            Some(TrialFigures {
                round: trial.id.round,
                replica: trial.id.replica,
                latencies: measurement.latency(),
                throughput: measurement.operations() as f64 / seconds,
                punted: punted_part(measurement, seconds),
            })
        })
        .collect();
    all.sort_by_key(|trial| (trial.round, trial.replica));
    all
}

/// Of all bytes; the counter's last sample is over all that was measured.
fn punted_part(measurement: &Measurement, seconds: f64) -> f64 {
    let bytes = measurement.job.bytes().0 as f64;
    let samples = measurement.counters.iter().rev();
    let rate = samples.filter_map(|sample| sample.values.get(URING_PUNTED.id)).next();
    match bytes > 0.0 {
        true => (rate.copied().unwrap_or(0.0) * seconds / bytes).min(1.0),
        false => 0.0,
    }
}

/// Latencies of trials together.
pub fn together<'a>(trials: impl IntoIterator<Item = &'a TrialFigures>) -> Histogram {
    let mut all = Histogram::new();
    for trial in trials {
        all.merge(&trial.latencies);
    }
    all
}

/// The standard error of the 99th percentile of all trials together, in nanoseconds: a jackknife, each
/// trial left out once. None of a single trial.
pub fn p99_error(trials: &[TrialFigures]) -> Option<f64> {
    let without: Vec<f64> = (0..trials.len())
        .filter_map(|left_out| {
            let others = trials.iter().enumerate().filter(|(nth, _)| *nth != left_out);
            together(others.map(|(_, trial)| trial)).quantile(0.99).map(|p99| p99.0 as f64)
        })
        .collect();
    let n = without.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = without.iter().sum::<f64>() / n;
    let variance = without.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    Some(((n - 1.0) * variance).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{CounterSample, JobMeasurement, OperationMeasurement};
    use units::{Bytes, Nanos};

    fn trial(latency: u64) -> TrialFigures {
        let latencies = Histogram::from_buckets([(Nanos(latency), 10)]);
        TrialFigures { round: 0, replica: 0, latencies, throughput: 0.0, punted: 0.0 }
    }

    #[test]
    fn the_error_of_p99_is_a_jackknife() {
        // Without the third, p99 is 20; without either of the others, 100. Mean 220/3, variance
        // (2 * (80/3)^2 + (160/3)^2) / 3 = 12800/9; times 2, its root.
        let error = p99_error(&[trial(10), trial(20), trial(100)]).unwrap();
        assert!((error - (2.0f64 * 12_800.0 / 9.0).sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(p99_error(&[trial(10)]), None);
    }

    #[test]
    fn the_part_of_workers_is_of_all_bytes() {
        let sample = |rate: f64| CounterSample {
            at: 1.0,
            values: [(URING_PUNTED.id.to_owned(), rate)].into(),
        };
        let reads = OperationMeasurement { bytes: Bytes(8000), ..OperationMeasurement::default() };
        let measurement = Measurement {
            job: JobMeasurement { reads, ..JobMeasurement::default() },
            counters: vec![sample(9e9), sample(1000.0), CounterSample::default()],
            ..Measurement::default()
        };
        assert_eq!(punted_part(&measurement, 2.0), 0.25);
        assert_eq!(punted_part(&Measurement::default(), 2.0), 0.0);
    }
}
