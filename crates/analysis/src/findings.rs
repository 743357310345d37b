//! Findings: a cause, the counters that show it, and a check that could prove it wrong.
//!
//! Each is detected in a file of its own here and worded in `report`. A new one is a variant of
//! [`FindingKind`] and of [`Evidence`]; the compiler then asks for its detection and its words, and a
//! test for its page.

mod buffered_direct;
mod cache;
mod cold_drives;
mod cpu_wait;
mod drift;
mod flush_bound;
mod generator;
mod held_idle;
mod kept_together;
mod larger_requests;
mod latency_trade;
mod merging;
mod no_free_request;
pub(crate) mod order_effect;
mod read_before_write;
mod rotational_flag;
mod scheduler_cpu;
mod serialised;
mod sorting;
mod starved_client;
mod stolen_cpu;
mod throttled_host;
mod unexplained;
pub(crate) mod unsteady;
mod writeback_throttled;

use crate::{Analysis, CellSummary, ComparedCell, Evidence, Layer, Metric, Verdict};
use counters::Counter;
use plan::{Factor, Mechanism};
use record::{Run, WorldKind};
use serde::Serialize;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use units::{Bytes, Nanos};
use workload::Job;

/// A cause that a run shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub kind: FindingKind,
    /// The cells that show it, by their index in the plan.
    pub cells: Vec<usize>,
    /// What shows it, with values.
    pub evidence: Evidence,
    /// What could prove it wrong.
    pub check: Check,
}

impl Finding {
    /// Whether it can be why a cell differs from its baseline: a cause that one of them has. What both have explains no
    /// difference, unless they differ in what it speaks of.
    pub fn explains(&self, run: &Run, cell: usize, baseline: usize) -> bool {
        let (here, there) = (self.cells.contains(&cell), self.cells.contains(&baseline));
        let queue = |cell: usize| run.plan.cells.get(cell)?.level(&Factor::NrRequests);
        let of_queue = self.kind == FindingKind::NoFreeRequest && queue(cell) != queue(baseline);
        self.kind.is_cause() && (here != there || (here && of_queue))
    }
}

/// The kinds of findings, each with a page of its name in docs/reference/findings/.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, EnumIter, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FindingKind {
    /// O_DIRECT, and yet the page cache grows.
    BufferedDirect,
    /// A cache above the device answered part of the operations.
    Cache,
    /// Some of an array's drives have nothing to do.
    ColdDrives,
    /// Clients waited for a CPU.
    CpuWait,
    /// The storage becomes slower or faster while the run goes on.
    Drift,
    /// Writers wait for the device's flush.
    FlushBound,
    /// The load generator was near its limit.
    Generator,
    /// The device is idle while requests wait.
    HeldIdle,
    /// The requests of a stream go to the device together.
    KeptTogether,
    /// Requests at the device are larger than the clients' blocks.
    LargerRequests,
    /// Throughput is bought with latency.
    LatencyTrade,
    /// A cell merges another share of its requests than the baseline.
    Merging,
    /// Operations waited for a free request.
    NoFreeRequest,
    /// A trial depends on which cell ran before it.
    OrderEffect,
    /// The device reads although the clients only write.
    ReadBeforeWrite,
    /// Linux takes the device for another kind than it is.
    RotationalFlag,
    /// The scheduler costs CPU time that is short.
    SchedulerCpu,
    /// More clients bring no more.
    Serialised,
    /// Heads travel another distance than under the baseline.
    Sorting,
    /// One of several like clients gets next to nothing.
    StarvedClient,
    /// The hypervisor took CPU time.
    StolenCpu,
    /// All cells fell to one and the same rate.
    ThrottledHost,
    /// Trials had not settled when measuring began.
    Unsteady,
    /// Buffered writes are held back, at the limit of dirty pages or by write-back throttling.
    WritebackThrottled,
    /// Cells differ, and nothing that was counted says why. Last: it looks at the others.
    Unexplained,
}

/// A few trials that could prove a finding wrong: what to change in its cells, and what must follow if
/// the finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What to change.
    pub change: Change,
    /// What must follow.
    pub expect: Expectation,
}

/// A change to a cell, or to all trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Bypass the page cache: `--sync direct`.
    Direct,
    /// No flush and no O_SYNC: writes are done when the device has them.
    NoFlush,
    /// Read where the cell writes.
    Reads,
    /// A quarter of the clients.
    FewerClients,
    /// A single client.
    OneClient,
    /// Twice the clients at half the depth.
    MoreClientsLessDepth,
    /// The rate that both cells can keep, offered to both.
    SameRate,
    /// No merging: `queue/nomerges` 2, in baseline and cell.
    NoMerging,
    /// Twice the requests: `--queues`.
    LongerQueue,
    /// The scheduler that only passes requests on.
    NoScheduler,
    /// No write-back throttling: `wbt_lat_usec` 0.
    NoThrottling,
    /// Blocks of this size, a multiple of the filesystem's.
    BlockSize(Bytes),
    /// The same without a mechanism: the simulated world can.
    Without(Mechanism),
    /// Other random offsets and another order of trials.
    AnotherSeed,
    /// The same at another time, or on a machine of its own: nothing that the program can do.
    QuieterMachine,
    /// `queue/rotational` as it should be: whether that is right, the user must say.
    RightFlag,
    /// Four times the warm-up.
    LongerWarmup,
    /// Four times the measured time.
    LongerTrials,
}

/// What must follow from a change if a finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The evidence's value is no longer beyond its threshold.
    EvidenceVanishes,
    /// The evidence's value is beyond its threshold still.
    EvidenceStays,
    /// The figure improves.
    Improves(Metric),
    /// The figure worsens.
    Worsens(Metric),
    /// Throughput rises or the 99th percentile falls.
    ImprovesEither,
    /// The figure stays what it is.
    Stays(Metric),
    /// Throughput stays what it is from a trial's first half to its second.
    StaysInTrials,
    /// The figure differs, in either direction.
    Differs(Metric),
    /// At least half of what the figure of the cell was worse than that of its baseline vanishes, on a logarithmic scale.
    LossVanishes(Metric),
    /// At least half of the difference between cell and baseline vanishes, on a logarithmic scale.
    DifferenceVanishes,
}

impl Expectation {
    /// The figures that it speaks of.
    pub fn metrics(self) -> Vec<Metric> {
        match self {
            Expectation::Improves(metric)
            | Expectation::Worsens(metric)
            | Expectation::Stays(metric)
            | Expectation::Differs(metric)
            | Expectation::LossVanishes(metric) => vec![metric],
            Expectation::ImprovesEither => vec![Metric::Throughput, Metric::P99],
            Expectation::StaysInTrials | Expectation::DifferenceVanishes => {
                vec![Metric::Throughput]
            }
            Expectation::EvidenceVanishes | Expectation::EvidenceStays => Vec::new(),
        }
    }
}

/// What one detection found.
struct Found {
    cells: Vec<usize>,
    evidence: Evidence,
    check: Check,
}

impl FindingKind {
    /// All, in the order of reports.
    pub fn all() -> impl Iterator<Item = FindingKind> {
        FindingKind::iter()
    }

    /// The name of its page.
    pub fn id(self) -> &'static str {
        self.into()
    }

    /// Whether it can be why a cell differs from its baseline. The others tell of trials that mislead, or
    /// of what a difference comes with.
    pub fn is_cause(self) -> bool {
        use FindingKind as F;
        match self {
            F::BufferedDirect
            | F::Cache
            | F::ColdDrives
            | F::CpuWait
            | F::FlushBound
            | F::Generator
            | F::HeldIdle
            | F::KeptTogether
            | F::LargerRequests
            | F::Merging
            | F::NoFreeRequest
            | F::ReadBeforeWrite
            | F::SchedulerCpu
            | F::Serialised
            | F::Sorting
            | F::StolenCpu
            | F::WritebackThrottled => true,
            F::Drift
            | F::LatencyTrade
            | F::OrderEffect
            | F::RotationalFlag
            | F::StarvedClient
            | F::ThrottledHost
            | F::Unsteady
            | F::Unexplained => false,
        }
    }

    /// `others` are the findings before it.
    fn find(self, run: &Run, analysis: &Analysis, others: &[Finding]) -> Vec<Found> {
        let one = match self {
            FindingKind::BufferedDirect => buffered_direct::find(run, analysis),
            FindingKind::Cache => cache::find(run, analysis),
            FindingKind::ColdDrives => cold_drives::find(analysis),
            FindingKind::CpuWait => cpu_wait::find(run, analysis),
            FindingKind::Drift => drift::find(run, analysis),
            FindingKind::FlushBound => flush_bound::find(analysis),
            FindingKind::Generator => generator::find(run, analysis),
            FindingKind::HeldIdle => held_idle::find(run, analysis),
            FindingKind::KeptTogether => kept_together::find(analysis),
            FindingKind::LargerRequests => larger_requests::find(run, analysis),
            FindingKind::LatencyTrade => latency_trade::find(analysis),
            FindingKind::Merging => merging::find(analysis),
            FindingKind::NoFreeRequest => no_free_request::find(run, analysis),
            FindingKind::OrderEffect => order_effect::find(run),
            FindingKind::ReadBeforeWrite => read_before_write::find(run, analysis),
            FindingKind::RotationalFlag => rotational_flag::find(run, analysis),
            FindingKind::SchedulerCpu => scheduler_cpu::find(analysis),
            FindingKind::Serialised => return serialised::find(run, analysis),
            FindingKind::Sorting => sorting::find(run, analysis),
            FindingKind::StarvedClient => starved_client::find(run, analysis),
            FindingKind::StolenCpu => stolen_cpu::find(analysis),
            FindingKind::ThrottledHost => throttled_host::find(run, analysis),
            FindingKind::Unsteady => unsteady::find(run, analysis),
            FindingKind::WritebackThrottled => writeback_throttled::find(run, analysis),
            FindingKind::Unexplained => unexplained::find(run, analysis, others),
        };
        one.into_iter().collect()
    }
}

/// All that a run shows.
pub fn findings(run: &Run, analysis: &Analysis) -> Vec<Finding> {
    let mut all = Vec::new();
    // They rest on counters and distributions that other programs do not print.
    if run.environment.world == WorldKind::Imported {
        return all;
    }
    for kind in FindingKind::all() {
        let found = kind.find(run, analysis, &all);
        let named = |Found { cells, evidence, check }| Finding { kind, cells, evidence, check };
        all.extend(found.into_iter().map(named));
    }
    all
}

/// Every cell of every group.
fn summaries(analysis: &Analysis) -> impl Iterator<Item = &CellSummary> {
    analysis.groups.iter().flat_map(|group| {
        std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary))
    })
}

/// By how much a cell is better than its baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain {
    pub baseline: usize,
    pub cell: usize,
    pub metric: Metric,
    /// The logarithm of the one figure over the other.
    pub log: f64,
}

/// The share of a gain that must be left without what may have made it.
const LEFT: f64 = 0.5;

/// Cells in which a cause shows, with its figure, by what it does to their throughput.
struct Felt<T> {
    /// They lose by it, or it is not settled.
    costing: Vec<(usize, T)>,
    /// They gain.
    paying: Vec<(usize, T)>,
}

impl<T: Copy> Felt<T> {
    /// `shows` gives the figure of a cell in which the cause shows. Such a cell is held against one without it: as fast as
    /// that, it neither loses nor gains. Where every cell shows the cause, it cannot be ruled out.
    fn of(analysis: &Analysis, shows: impl Fn(&CellSummary) -> Option<T>) -> Self {
        let mut felt = Felt { costing: Vec::new(), paying: Vec::new() };
        for group in &analysis.groups {
            let verdict =
                |cell: &ComparedCell| cell.comparison(Metric::Throughput).map(|it| it.verdict);
            let baseline = shows(&group.baseline);
            if let Some(figure) = baseline {
                let without = group.cells.iter().filter(|cell| shows(&cell.summary).is_none());
                let verdicts: Vec<_> = without.filter_map(verdict).collect();
                let at = (group.baseline.cell, figure);
                if verdicts.contains(&Verdict::Better) {
                    felt.costing.push(at);
                } else if verdicts.contains(&Verdict::Worse) {
                    felt.paying.push(at);
                } else if !verdicts.contains(&Verdict::NoDifference) {
                    felt.costing.push(at);
                }
            }
            for cell in &group.cells {
                let Some(figure) = shows(&cell.summary) else { continue };
                let at = (cell.summary.cell, figure);
                match verdict(cell).filter(|_| baseline.is_none()) {
                    Some(Verdict::Better) => felt.paying.push(at),
                    Some(Verdict::NoDifference) => {}
                    Some(Verdict::Worse | Verdict::NotSettled) | None => felt.costing.push(at),
                }
            }
        }
        felt
    }
}

/// What a cell's clients do, where they are jobs on blocks with nothing beside them: what others ask of
/// the device is then not theirs.
fn lone_job(run: &Run, summary: &CellSummary) -> Option<Job> {
    let (workload, _) = run.plan.workload_of(&run.plan.cells[summary.cell]).ok()?;
    let alone = workload.database.is_none() && workload.background.is_none();
    alone.then_some(workload.job)
}

/// How long a cell's trials measured, mean. What the plan says is the most that they may: a replay ends with its
/// trace.
fn measured(run: &Run, summary: &CellSummary) -> Nanos {
    let of_cell = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
    let spans: Vec<u64> = of_cell.filter_map(|trial| Some(trial.measurement()?.span.0)).collect();
    Nanos(spans.iter().sum::<u64>() / (spans.len() as u64).max(1))
}

/// A cell's figure of a counter.
fn counter(summary: &CellSummary, counter: &Counter) -> Option<f64> {
    summary.counters.get(counter.id).copied()
}
