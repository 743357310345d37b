//! The whole of a run: conditions, baselines, cells, verdicts.

use crate::{
    Comparison, Correction, Estimate, Metric, NoiseFloor, Screening, TransactionSummary, Verdict,
    aggregation::aggregate_counters,
    blocks::{self, Trials},
    compare,
};
use plan::{Factor, Loss};
use record::{
    Aspect, Event, EventKind, Fact, Histogram, JobRole, Measurement, Outcome, Run, Trial,
    VoidReason, Warning,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::Nanos;

/// What may be said of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// One for each condition.
    pub groups: Vec<Group>,
    /// How intervals were widened.
    pub correction: Correction,
    /// Which settings could win, where a plan screens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening: Option<Screening>,
}

/// The cells that are compared with one another: those under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The conditions' levels, or nothing when there is only one condition.
    pub condition: String,
    /// The baseline, both its trials a round together.
    pub baseline: CellSummary,
    /// The baseline against itself, by figure.
    pub noise: Vec<(Metric, NoiseFloor)>,
    /// The others.
    pub cells: Vec<ComparedCell>,
}

/// A cell and how it compares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCell {
    /// What it did.
    pub summary: CellSummary,
    /// Against the baseline, by figure.
    pub comparisons: Vec<Comparison>,
    /// Whether it was dropped before the end.
    pub dropped: bool,
}

/// What a cell's trials gave together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The levels of what is compared, for tables.
    pub label: String,
    /// The same with the factors' names, for sentences.
    pub phrase: String,
    /// Trials that count.
    pub valid: usize,
    /// Trials that do not count.
    pub lost: Vec<LostTrial>,
    /// Operations a second; transactions a second of a database.
    pub throughput: Option<Estimate>,
    /// Bytes a second, mean.
    pub bytes_per_second: f64,
    /// Latency over all trials: median, 99th and 99.9th percentile, longest.
    pub latency: Option<LatencySummary>,
    /// Jain's index of the clients' shares, mean; without several clients none.
    pub fairness: Option<f64>,
    /// Counters over the measured seconds of all trials, aggregated as the catalogue says.
    pub counters: BTreeMap<String, f64>,
    /// CPU time of the generator an operation, in nanoseconds.
    pub generator_ns_per_operation: Option<f64>,
    /// What a database's transactions were; `None` where blocks were measured.
    pub transactions: Option<TransactionSummary>,
    /// What the job beside it did; `None` where there was none.
    pub background: Option<BackgroundSummary>,
    /// What its settings can lose of what was said to be safe.
    pub losses: BTreeSet<Loss>,
}

/// Why a trial does not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LostTrial {
    /// It was measured.
    Void(VoidReason),
    /// It could not be measured: what the kernel, the server or the load generator said.
    Failed(String),
}

/// What the job beside the measured one did over all trials of a cell, mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackgroundSummary {
    /// Operations a second.
    pub operations_per_second: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
}

/// Latencies of all trials of a cell together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// 99.9th percentile.
    pub p999: Nanos,
    /// The longest.
    pub max: Nanos,
    /// Whether it is response time, from the intended start.
    pub response: bool,
}

impl Analysis {
    /// Of what a run has recorded so far.
    pub fn of(run: &Run) -> Analysis {
        let compared = run.plan.cells.iter().filter(|cell| cell.baseline.is_some()).count();
        let correction = Correction { cells: compared, share: share(run), freedom: freedom(run) };
        let groups =
            run.plan.baselines().into_iter().map(|place| group(run, place, correction)).collect();
        Analysis { groups, correction, screening: Screening::of(run) }
    }

    /// The difference in throughput (0.05: 5 %) that the rounds so far find four times in five: the root mean square over
    /// all cells that still run. None without a comparison, or with too few rounds.
    pub fn detectable(&self) -> Option<f64> {
        let cells = self.groups.iter().flat_map(|group| &group.cells);
        let of_cells = cells
            .filter(|cell| !cell.dropped)
            .filter_map(|cell| Some(cell.comparison(Metric::Throughput)?.detectable));
        let squares: Vec<f64> = of_cells.map(|it| it * it).collect();
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        mean.is_finite().then(|| mean.sqrt())
    }

    /// Whether every comparison of throughput and of the 99th percentile has a verdict; of a screening, whether
    /// its winner is decided.
    pub fn settled(&self) -> bool {
        if let Some(screening) = &self.screening {
            return screening.decided;
        }
        self.groups.iter().flat_map(|group| &group.cells).all(|cell| {
            let judged = |metric| {
                cell.comparisons
                    .iter()
                    .find(|comparison| comparison.metric == metric)
                    .is_some_and(|comparison| comparison.verdict != Verdict::NotSettled)
            };
            cell.dropped || (judged(Metric::Throughput) && judged(Metric::P99))
        })
    }
}

impl Group {
    /// Whether a rate was offered: what is completed in a second is then given, and latency alone tells how
    /// good a setting is.
    pub fn is_offered(&self) -> bool {
        let cells = self.cells.iter().map(|cell| &cell.summary);
        let mut all = std::iter::once(&self.baseline).chain(cells);
        all.any(|it| it.latency.is_some_and(|latency| latency.response))
    }

    /// The figures that decide, the first before the others.
    pub fn objectives(&self) -> &'static [Metric] {
        if self.is_offered() { &[Metric::P99] } else { &[Metric::Throughput, Metric::P99] }
    }

    /// Whether no cell differs from the baseline in any of these figures. One in which no cell at all could be
    /// compared does not count.
    pub fn no_difference(&self, figures: &[Metric]) -> bool {
        let all = |metric: &Metric| -> Vec<Option<Verdict>> {
            let verdict = |cell: &ComparedCell| Some(cell.comparison(*metric)?.verdict);
            self.cells.iter().map(verdict).collect()
        };
        let compared: Vec<Vec<Option<Verdict>>> =
            figures.iter().map(all).filter(|all| all.iter().any(Option::is_some)).collect();
        let same = |verdict: &Option<Verdict>| *verdict == Some(Verdict::NoDifference);
        !compared.is_empty() && compared.iter().flatten().all(same)
    }

    /// Whether the difference of a cell is as large as the smallest that its trials, and the baseline's against
    /// themselves, show four times in five.
    pub fn is_shown(&self, cell: &ComparedCell, metric: Metric) -> bool {
        let Some(found) = cell.comparison(metric) else { return false };
        let floor = self.noise.iter().find(|(of, _)| *of == metric).map(|(_, it)| it.detectable);
        found.ratio.ln().abs() >= found.detectable.max(floor.unwrap_or(0.0)).ln_1p()
    }
}

impl ComparedCell {
    /// The comparison in one figure, if it could be made.
    pub fn comparison(&self, metric: Metric) -> Option<&Comparison> {
        self.comparisons.iter().find(|comparison| comparison.metric == metric)
    }

    /// Whether it is worse in throughput and not better in latency: nobody would choose it.
    pub fn lost(&self) -> bool {
        let verdict = |metric| self.comparison(metric).map(|comparison| comparison.verdict);
        verdict(Metric::Throughput) == Some(Verdict::Worse)
            && matches!(verdict(Metric::P99), Some(Verdict::Worse | Verdict::NoDifference))
    }
}

/// The conditions of a baseline, in words, and the factors that its cells are told apart by.
pub(crate) fn label_of(run: &Run, place: usize) -> (String, Vec<Factor>) {
    let conditions = run.plan.conditions();
    let conditions_only = run.plan.compared().is_empty();
    let shown = if conditions_only { conditions.clone() } else { run.plan.compared() };
    let condition = match conditions.is_empty() || conditions_only {
        true => String::new(),
        false => run.plan.cells[place].label(&conditions),
    };
    (condition, shown)
}

/// What this look at the data may spend of the probability of a miss.
fn share(run: &Run) -> f64 {
    let ended = |event: &Event| matches!(event.kind, EventKind::BudgetUsed { .. });
    match run.events.iter().any(ended) {
        // How many rounds fit the budget does not depend on what they showed.
        true => run.plan.timing.share_of_look(run.plan.timing.rounds),
        false => run.plan.timing.share_of_look(run.rounds()),
    }
}

/// The share of degrees of freedom that is left where rounds were added until the noise was small enough.
fn freedom(run: &Run) -> f64 {
    let before = run.events.iter().filter_map(|event| match event.kind {
        EventKind::Extended { rounds, .. } => Some(rounds),
        _ => None,
    });
    let degrees = |rounds: u32| f64::from(rounds.saturating_sub(1).max(1));
    before.min().map_or(1.0, |first| (degrees(first) / degrees(run.rounds())).min(1.0))
}

fn group(run: &Run, place: usize, correction: Correction) -> Group {
    let (condition, shown) = label_of(run, place);
    let dropped = run.dropped_cells();
    // A cell that was dropped at an early look has what that look could spend.
    let correction_of = |cell: usize| match dropped.contains(&cell) {
        true => Correction {
            share: correction.share.min(run.plan.timing.share_of_look(0)),
            ..correction
        },
        false => correction,
    };
    let cells = (0..run.plan.cells.len())
        .filter(|&cell| run.plan.cells[cell].baseline == Some(place))
        .map(|cell| ComparedCell {
            summary: summary(run, cell, &shown),
            comparisons: Metric::ALL
                .into_iter()
                .filter_map(|metric| {
                    compare(
                        metric,
                        &log_ratios(run, metric, cell, place),
                        correction_of(cell),
                        run.plan.margin,
                    )
                })
                .collect(),
            dropped: dropped.contains(&cell),
        })
        .collect();
    let noise = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let differences = baseline_differences(run, metric, place);
            let pooled = run.rounds() as f64 / differences.len().max(1) as f64;
            Some((metric, NoiseFloor::of(&differences, pooled, correction)?))
        })
        .collect();
    Group { condition, baseline: summary(run, place, &shown), noise, cells }
}

/// One observation a round or block: the cell's logarithm less the mean of the baselines'. Where neither ever
/// completed an operation there is nothing to compare.
pub(crate) fn log_ratios(run: &Run, metric: Metric, cell: usize, baseline: usize) -> Vec<f64> {
    let worked = |trial: &Trial| {
        (trial.id.cell == cell || trial.id.cell == baseline)
            && trial.measurement().is_some_and(|m| m.operations() > 0 || m.imported.is_some())
    };
    if !run.trials.iter().any(worked) {
        return Vec::new();
    }
    blocks::log_ratios(run, metric, Trials::of(cell), Trials::of(baseline))
}

fn baseline_differences(run: &Run, metric: Metric, baseline: usize) -> Vec<f64> {
    let [first, second] = [&[0], &[1]].map(|replicas| Trials { cell: baseline, replicas });
    blocks::log_ratios(run, metric, first, second)
}

fn summary(run: &Run, cell: usize, shown: &[Factor]) -> CellSummary {
    let trials: Vec<&Trial> = run.trials.iter().filter(|trial| trial.id.cell == cell).collect();
    let measured: Vec<&Measurement> = trials.iter().filter_map(|t| t.measurement()).collect();
    let lost = trials
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Valid(_) => None,
            Outcome::Void { reason } => Some(LostTrial::Void(reason.clone())),
            Outcome::Failed { error } => Some(LostTrial::Failed(error.clone())),
        })
        .collect();
    let seconds: f64 = measured.iter().map(|m| m.span.as_secs_f64()).sum();
    let operations: u64 = measured.iter().map(|m| m.operations()).sum();
    let bytes: u64 = measured.iter().map(|m| m.job.bytes().0).sum();
    let cpu: u64 = measured.iter().map(|m| m.generator.user.0 + m.generator.system.0).sum();
    CellSummary {
        cell,
        label: run.plan.cells[cell].label(shown),
        phrase: run.plan.cells[cell].phrase(shown),
        valid: measured.len(),
        lost,
        throughput: Estimate::of(&values(&measured, Metric::Throughput)),
        bytes_per_second: match imported_bandwidth(&measured) {
            Some(bandwidth) => bandwidth,
            None if seconds > 0.0 => bytes as f64 / seconds,
            None => 0.0,
        },
        latency: latency(&measured),
        fairness: Estimate::of(&values(&measured, Metric::Fairness)).map(|e| e.mean),
        counters: aggregate_counters(&measured),
        generator_ns_per_operation: (operations > 0).then(|| cpu as f64 / operations as f64),
        transactions: crate::transactions::summary(&measured, seconds),
        background: background(&measured),
        losses: losses(run, cell, &measured),
    }
}

/// As other programs printed it, mean.
fn imported_bandwidth(measured: &[&Measurement]) -> Option<f64> {
    let all = measured.iter().filter_map(|m| m.imported.as_ref()?.bandwidth());
    let all: Vec<f64> = all.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Of the server's variables, and of the options that its filesystem is mounted with.
fn losses(run: &Run, cell: usize, measured: &[&Measurement]) -> BTreeSet<Loss> {
    let version = run.environment.fact(Aspect::Server, Fact::SERVER_VERSION);
    let mut all = run.plan.losses(&run.plan.cells[cell], version);
    all.extend(measured.iter().flat_map(|m| &m.warnings).filter_map(|warning| match warning {
        Warning::UnsafeMountOption { option } => Some(Loss::Mount { option: option.clone() }),
        _ => None,
    }));
    all
}

fn background(measured: &[&Measurement]) -> Option<BackgroundSummary> {
    let mut seconds = 0.0;
    let mut sums = (0, 0);
    for measurement in measured {
        let Some(job) = &measurement.background else { continue };
        seconds += measurement.span.as_secs_f64();
        sums = (sums.0 + job.operations(), sums.1 + job.bytes().0);
    }
    (seconds > 0.0).then(|| BackgroundSummary {
        operations_per_second: sums.0 as f64 / seconds,
        bytes_per_second: sums.1 as f64 / seconds,
    })
}

fn values(measured: &[&Measurement], metric: Metric) -> Vec<f64> {
    measured.iter().filter_map(|m| metric.of(m)).collect()
}

fn latency(measured: &[&Measurement]) -> Option<LatencySummary> {
    let mut all = Histogram::new();
    let mut response = false;
    // An operation that the trial's end cut off took this long at the least.
    let mut in_flight = Nanos::ZERO;
    for warning in measured.iter().flat_map(|measurement| &measurement.warnings) {
        if let Warning::InFlightLonger { job: JobRole::Measured, age, .. } = warning {
            in_flight = in_flight.max(*age);
        }
    }
    for measurement in measured {
        all.merge(&measurement.latency());
        response |= measurement.is_response();
    }
    Some(LatencySummary {
        p50: all.quantile(0.5)?,
        p99: all.quantile(0.99)?,
        p999: all.quantile(0.999)?,
        max: all.max()?.max(in_flight),
        response,
    })
}
