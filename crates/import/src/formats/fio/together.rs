//! Jobs of fio that ran at the same time: without group_reporting, and from several clients, each prints figures of its
//! own. They are one run, not repeats of one.

use crate::Output;
use record::{Doubt, ImportedFigure, Quantity};
use std::collections::{BTreeMap, BTreeSet};

/// A job as fio printed it.
pub(super) struct Job {
    pub output: Output,
    /// Which of the file's reports it is of, and which of fio's groups: one group runs after another.
    pub group: (u64, u64),
    /// Latencies and how often each was seen, by subject, where the output has them.
    pub bins: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Its first line.
    pub first: u64,
    /// Its last line.
    pub last: u64,
}

impl Job {
    /// Of a fragment that begins behind the job's first line.
    pub fn of_fragment(line: u64) -> Job {
        let (output, bins) = (Output::default(), BTreeMap::new());
        Job { output, group: (0, 0), bins, first: line, last: line }
    }
}

/// Jobs of one group that were asked for the same become one, in the place of the first.
pub(super) fn together(jobs: Vec<Job>) -> Vec<Job> {
    let mut runs: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        match runs.iter_mut().find(|run| are_one(&run[0], &job)) {
            Some(run) => run.push(job),
            None => runs.push(vec![job]),
        }
    }
    runs.into_iter().map(sum).collect()
}

fn are_one(one: &Job, other: &Job) -> bool {
    let asked = |job: &Job| {
        let mut asked = job.output.conditions.clone();
        (asked.name, asked.clients) = (None, None);
        asked
    };
    one.group == other.group && asked(one) == asked(other)
}

fn sum(mut jobs: Vec<Job>) -> Job {
    if jobs.len() == 1 {
        return jobs.remove(0);
    }
    let count = jobs.len() as u64;
    let clients = jobs.iter().map(|job| job.output.conditions.clients.unwrap_or(1)).sum();
    let mut output = Output { conditions: jobs[0].output.conditions.clone(), ..Output::default() };
    output.conditions.clients = Some(clients);
    output.failure = jobs.iter().find_map(|job| job.output.failure.clone());
    output.seconds = jobs.iter().filter_map(|job| job.output.seconds).reduce(f64::max);
    for job in &jobs {
        for doubt in &job.output.doubts {
            if !output.doubts.contains(doubt) {
                output.doubts.push(doubt.clone());
            }
        }
    }
    let mut seen = BTreeSet::new();
    for figure in jobs.iter().flat_map(|job| &job.output.figures) {
        let key = (figure.subject.clone(), figure.quantity.clone());
        if seen.insert(key) {
            output.figures.extend(of_all(&jobs, figure));
        }
    }
    let bins = percentiles(&jobs, &mut output);
    let has_percentiles =
        output.figures.iter().any(|it| matches!(it.quantity, Quantity::Percentile(_)));
    output
        .doubts
        .push(Doubt::JobsTogether { jobs: count, of_one: has_percentiles && bins.is_empty() });
    let first = jobs.iter().map(|job| job.first).min().unwrap_or_default();
    let last = jobs.iter().map(|job| job.last).max().unwrap_or_default();
    Job { output, group: jobs[0].group, bins, first, last }
}

/// A figure of all jobs; `first` is the first job's that has it. None where it is of a job alone.
fn of_all(jobs: &[Job], first: &ImportedFigure) -> Option<ImportedFigure> {
    let subject = first.subject.as_str();
    let values = || {
        jobs.iter().filter_map(|job| {
            let value = job.output.value(subject, first.quantity.clone())?;
            // slat and lat are of the operations of their direction.
            let of = subject.split(' ').next().unwrap_or_default();
            let count = [Quantity::Count, Quantity::Rate]
                .into_iter()
                .find_map(|it| job.output.value(subject, it.clone()).or(job.output.value(of, it)));
            Some((value, count.unwrap_or(1.0)))
        })
    };
    let each = || values().map(|(value, _)| value);
    let mean = |of: &dyn Fn(f64) -> f64| {
        let weight: f64 = values().map(|(_, count)| count).sum();
        values().map(|(value, count)| of(value) * count).sum::<f64>()
            / weight.max(f64::MIN_POSITIVE)
    };
    let value = match first.quantity {
        Quantity::Count | Quantity::Rate | Quantity::Bytes | Quantity::Bandwidth => each().sum(),
        Quantity::Seconds | Quantity::LatencyMax => each().fold(f64::MIN, f64::max),
        Quantity::LatencyMin => each().fold(f64::MAX, f64::min),
        Quantity::LatencyMean => mean(&|value| value),
        // What devices did stands with each job; a percentile is replaced below where all are known.
        Quantity::Column(_) | Quantity::Percentile(_) => first.value,
        // Of all it depends on the means, too.
        _ => return None,
    };
    Some(ImportedFigure { value, ..first.clone() })
}

/// Percentiles of all operations of all jobs, where every job says how often it saw each latency; gives these.
fn percentiles(jobs: &[Job], output: &mut Output) -> BTreeMap<String, BTreeMap<u64, u64>> {
    if jobs.iter().any(|job| job.bins.is_empty()) {
        return BTreeMap::new();
    }
    let mut all: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for (subject, bins) in jobs.iter().flat_map(|job| &job.bins) {
        let sums = all.entry(subject.clone()).or_default();
        for (latency, count) in bins {
            *sums.entry(*latency).or_default() += count;
        }
    }
    for figure in &mut output.figures {
        let (Quantity::Percentile(milli), Some(bins)) =
            (&figure.quantity, all.get(&figure.subject))
        else {
            continue;
        };
        let wanted = f64::from(*milli) / 100_000.0 * bins.values().sum::<u64>() as f64;
        let mut below = 0;
        let found = bins.iter().find(|(_, count)| {
            below += **count;
            below as f64 >= wanted
        });
        if let Some((latency, _)) = found.or(bins.last_key_value()) {
            figure.value = *latency as f64;
        }
    }
    all
}
