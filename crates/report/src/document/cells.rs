//! Cells and the conditions under which they are compared.

use analysis::{Analysis, CellSummary, ComparedCell, Metric, Verdict, decide};
use record::{Histogram, Run};
use serde::Serialize;
use std::collections::BTreeMap;

/// The cells that are compared with one another.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Condition {
    /// Its levels; empty when there is only one condition.
    pub name: String,
    /// The baseline, by its index.
    pub baseline: usize,
    /// The cell to take, by its index; the baseline to keep it.
    pub decision: usize,
    /// The baseline against itself, by figure: `throughput`, `p99`, `fairness`.
    pub noise: BTreeMap<String, Noise>,
}

/// What the baseline against itself shows.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Noise {
    /// One trial's noise: its standard deviation, as a share.
    pub trial: f64,
    /// The smallest difference that the trials would show four times in five, as a share.
    pub detectable: Option<f64>,
}

/// A cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// Its index in the plan.
    pub index: usize,
    /// What tells it from the others of its condition.
    pub label: String,
    /// The condition, by its place in `conditions`.
    pub condition: usize,
    /// Factor to level.
    pub levels: BTreeMap<String, String>,
    /// Trials that count.
    pub valid: usize,
    /// Why other trials do not count.
    pub lost: Vec<String>,
    /// Whether it was dropped before the end.
    pub dropped: bool,
    /// Operations, or transactions, a second.
    pub throughput: Option<Figure>,
    /// MiB a second.
    pub mebibytes: f64,
    /// Median latency, ms.
    pub p50: Option<f64>,
    /// 99th percentile, ms.
    pub p99: Option<f64>,
    /// 99.9th percentile, ms.
    pub p999: Option<f64>,
    /// The longest, ms.
    pub max: Option<f64>,
    /// Jain's index of the clients' shares.
    pub fairness: Option<f64>,
    /// The mean share of each client, of all operations, ascending.
    pub shares: Vec<f64>,
    /// What it can lose that was said to be safe.
    pub losses: Vec<String>,
    /// Against the baseline: `throughput`, `p99`, `fairness`.
    pub comparisons: BTreeMap<String, Comparison>,
    /// Counters: the mean or the maximum of all measured seconds.
    pub counters: BTreeMap<String, f64>,
    /// All latencies: milliseconds, and the share that is not longer.
    pub distribution: Vec<(f64, f64)>,
}

/// A mean and its interval at 95 %.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// A cell against its baseline.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The cell's figure over the baseline's.
    pub ratio: Option<f64>,
    /// The interval's lower end, corrected for cells and looks.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The smallest difference that such trials would show four times in five, as a share.
    pub detectable: Option<f64>,
    /// `better`, `worse`, `same` or `open`.
    pub verdict: String,
}

/// Points of a distribution: enough for a smooth curve.
const POINTS: usize = 160;

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::P99 => "p99",
        Metric::Fairness => "fairness",
    }
}

pub fn conditions(run: &Run, analysis: &Analysis) -> Vec<Condition> {
    let of = |group: &analysis::Group| Condition {
        name: group.condition.clone(),
        baseline: group.baseline.cell,
        decision: decide(run, group).cell,
        noise: group
            .noise
            .iter()
            .map(|(metric, floor)| {
                let noise = Noise { trial: floor.trial, detectable: finite(floor.detectable) };
                (name(*metric).to_owned(), noise)
            })
            .collect(),
    };
    analysis.groups.iter().map(of).collect()
}

pub fn cells(run: &Run, analysis: &Analysis) -> Vec<Cell> {
    let mut all: Vec<Cell> = Vec::new();
    for (place, group) in analysis.groups.iter().enumerate() {
        all.push(cell(run, &group.baseline, place, None));
        all.extend(group.cells.iter().map(|it| cell(run, &it.summary, place, Some(it))));
    }
    all.sort_by_key(|cell| cell.index);
    all
}

fn cell(
    run: &Run,
    summary: &CellSummary,
    condition: usize,
    compared: Option<&ComparedCell>,
) -> Cell {
    let ms = |time: units::Nanos| time.as_micros_f64() / 1000.0;
    let latency = summary.latency.as_ref();
    let levels = &run.plan.cells[summary.cell].levels;
    Cell {
        index: summary.cell,
        label: summary.label.clone(),
        condition,
        levels: levels.iter().map(|(it, level)| (it.to_string(), level.0.clone())).collect(),
        valid: summary.valid,
        lost: summary.lost.iter().map(crate::sentences::lost).collect(),
        dropped: compared.is_some_and(|it| it.dropped),
        throughput: summary.throughput.as_ref().map(|it| {
            let half = finite(it.half_width(0.05));
            Figure {
                mean: it.mean,
                low: half.map(|half| it.mean - half),
                high: half.map(|half| it.mean + half),
            }
        }),
        mebibytes: summary.bytes_per_second / f64::from(1 << 20),
        p50: latency.map(|it| ms(it.p50)),
        p99: latency.map(|it| ms(it.p99)),
        p999: latency.map(|it| ms(it.p999)),
        max: latency.map(|it| ms(it.max)),
        fairness: summary.fairness,
        shares: shares(run, summary.cell),
        losses: crate::sentences::losses(&summary.losses),
        comparisons: compared
            .into_iter()
            .flat_map(|it| &it.comparisons)
            .map(|it| (name(it.metric).to_owned(), comparison(it)))
            .collect(),
        counters: summary.counters.clone(),
        distribution: distribution(run, summary.cell),
    }
}

fn comparison(it: &analysis::Comparison) -> Comparison {
    Comparison {
        ratio: finite(it.ratio),
        low: finite(it.low),
        high: finite(it.high),
        detectable: finite(it.detectable),
        verdict: match it.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "same",
            Verdict::NotSettled => "open",
        }
        .to_owned(),
    }
}

/// Each client's mean share of a trial's operations, ascending.
fn shares(run: &Run, cell: usize) -> Vec<f64> {
    let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
    let mut sums: Vec<f64> = Vec::new();
    let mut trials = 0.0;
    for mut shares in of_cell.filter_map(|trial| Some(trial.measurement()?.shares())) {
        let all: u64 = shares.iter().sum();
        if shares.len() < 2 || all == 0 {
            continue;
        }
        shares.sort_unstable();
        sums.resize(sums.len().max(shares.len()), 0.0);
        trials += 1.0;
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum += share as f64 / all as f64;
        }
    }
    sums.into_iter().map(|sum| sum / trials).collect()
}

fn distribution(run: &Run, cell: usize) -> Vec<(f64, f64)> {
    let mut all = Histogram::new();
    let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
    of_cell.filter_map(|trial| trial.measurement()).for_each(|it| all.merge(&it.latency()));
    let total = all.count() as f64;
    let mut points = Vec::new();
    let mut below = 0;
    for (latency, count) in all.buckets() {
        below += count;
        points.push((latency.as_micros_f64() / 1000.0, below as f64 / total));
    }
    // The tail is what is looked at: points are dropped from where they are dense.
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(at, _)| at % step == 0 || *at == last).map(|(_, point)| point).collect()
}
