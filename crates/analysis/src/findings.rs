//! Findings: a cause, the counters that show it, and a check that could prove it wrong.
//!
//! Each is detected in a file of its own here and worded in `report`. A new one is a variant of
//! [`FindingKind`] and of [`Evidence`]; the compiler then asks for its detection and its words, and a
//! test for its page.

mod cache;
mod cpu_wait;
mod generator;
mod merging;
mod no_free_request;
mod read_before_write;
mod stolen_cpu;
mod unsteady;

use crate::{Analysis, CellSummary, Metric};
use record::Run;
use serde::Serialize;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use units::Bytes;

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

/// The kinds of findings, each with a page of its name in docs/reference/findings/.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, EnumIter, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FindingKind {
    /// A cache above the device answered part of the operations.
    Cache,
    /// Clients waited for a CPU.
    CpuWait,
    /// The load generator was near its limit.
    Generator,
    /// A cell merges another share of its requests than the baseline.
    Merging,
    /// Operations waited for a free request.
    NoFreeRequest,
    /// The device reads although the clients only write.
    ReadBeforeWrite,
    /// The hypervisor took CPU time.
    StolenCpu,
    /// Trials had not settled when measuring began.
    Unsteady,
}

/// What shows a finding: the values that were compared, in the worst cell. Shares are of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The smallest share of the clients' bytes that the device moved.
    DeviceMoved {
        /// Share of the bytes.
        share: f64,
    },
    /// The longest wait for a CPU, `clients.cpu_wait_us`.
    CpuWait {
        /// Microseconds an operation.
        waited_us: f64,
        /// The mean latency in that cell, microseconds.
        mean_latency_us: f64,
    },
    /// The busiest thread of the load generator.
    GeneratorBusy {
        /// Share of the time on a CPU.
        share: f64,
    },
    /// Merged requests, (rrqm/s + wrqm/s) over those and r/s + w/s.
    Merged {
        /// The share in the cell.
        cell: f64,
        /// The share in its baseline.
        baseline: f64,
    },
    /// Bytes that io_uring's workers moved, `uring.punted/s`.
    Punted {
        /// Share of the bytes.
        share: f64,
    },
    /// Device reads, r/s.
    ReadsPerWrite {
        /// Reads for each write of a client.
        ratio: f64,
    },
    /// Stolen CPU time, `cpu.%steal`.
    Stolen {
        /// Percent of the CPU time.
        percent: f64,
    },
    /// Operations in the second half of a trial over those in the first half.
    HalvesDiffer {
        /// The change, as a share of the first half.
        change: f64,
    },
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

/// A change to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Bypass the page cache: `--sync direct`.
    Direct,
    /// A quarter of the clients.
    FewerClients,
    /// Twice the clients at half the depth.
    MoreClientsLessDepth,
    /// No merging: `queue/nomerges` 2, in baseline and cell.
    NoMerging,
    /// Twice the requests: `--queues`.
    LongerQueue,
    /// Blocks of this size, a multiple of the filesystem's.
    BlockSize(Bytes),
    /// The same at another time, or on a machine of its own: nothing that the program can do.
    QuieterMachine,
    /// Four times the warm-up.
    LongerWarmup,
}

/// What must follow from a change if a finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The evidence's value is no longer beyond its threshold.
    EvidenceVanishes,
    /// The figure improves.
    Improves(Metric),
    /// The difference between cell and baseline vanishes.
    DifferenceVanishes,
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

    fn find(self, run: &Run, analysis: &Analysis) -> Option<Found> {
        match self {
            FindingKind::Cache => cache::find(run, analysis),
            FindingKind::CpuWait => cpu_wait::find(run, analysis),
            FindingKind::Generator => generator::find(run, analysis),
            FindingKind::Merging => merging::find(analysis),
            FindingKind::NoFreeRequest => no_free_request::find(run, analysis),
            FindingKind::ReadBeforeWrite => read_before_write::find(run, analysis),
            FindingKind::StolenCpu => stolen_cpu::find(analysis),
            FindingKind::Unsteady => unsteady::find(run, analysis),
        }
    }
}

/// All that a run shows.
pub fn findings(run: &Run, analysis: &Analysis) -> Vec<Finding> {
    FindingKind::all()
        .filter_map(|kind| {
            let Found { cells, evidence, check } = kind.find(run, analysis)?;
            Some(Finding { kind, cells, evidence, check })
        })
        .collect()
}

/// Every cell of every group.
fn summaries(analysis: &Analysis) -> impl Iterator<Item = &CellSummary> {
    analysis.groups.iter().flat_map(|group| {
        std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary))
    })
}
