//! The few trials that could prove a finding wrong.

use crate::{Change, Expectation, Finding};
use plan::{Cell, Factor, Level, Mechanism, Plan, TrialLength, Without};
use record::{Run, WorldKind};
use units::{Bytes, Nanos};
use workload::{Pattern, SyncMode, Workload};

/// Rounds of a check: with fewer, a finding about the course of a run could not show.
const MIN_ROUNDS: u32 = 8;
/// More narrow an interval less than what a finding speaks of needs.
const MAX_ROUNDS: u32 = 12;
/// By how much clients and requests are changed.
const TIMES: u32 = 4;
/// Of the slower cell's rate: what both can keep.
const RATE: f64 = 0.7;

/// A finding's check as a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPlan {
    /// What is run.
    pub plan: Plan,
    /// How its cells answer.
    pub layout: Layout,
    /// The changed cell that the finding speaks of, by its place in the plan.
    pub subject: usize,
}

/// What the cells of a [`CheckPlan`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// 0: the cell as it was; 1: the cell changed.
    Changed,
    /// 0: baseline and 1: cell as they were; 2: baseline and 3: cell changed.
    Difference,
    /// 0: baseline and 1: cell, both changed.
    BothChanged,
    /// 0: the cell; 1, for what a run shows in its course: one that is compared with it, if there is one; both changed.
    OfBaseline,
}

/// Why a finding has no check that the program can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCheckable {
    /// It would need another time, another machine, or the user's knowledge.
    #[error("that is nothing that the program can do")]
    NotOurs,
    /// The change is one of jobs on blocks, and a database's clients were measured.
    #[error("a database decides this for itself")]
    Database,
    /// What a trace asks for, and for how long, is not changed.
    #[error("the trace that was replayed decides this")]
    Trace,
    /// Only the simulated world can do without the mechanism.
    #[error("only the simulated world can do without {0}")]
    SimulatedOnly(Mechanism),
    /// The cell is so already, or has no less.
    #[error("the cell is so already")]
    AlreadySo,
    /// The run does not say how it was.
    #[error("the run does not say what it was")]
    Unknown,
    /// Both rates are needed.
    #[error("no rate that both cells keep is known")]
    NoRate,
}

/// The plan that checks one of a run's findings.
pub fn check_plan(run: &Run, finding: &Finding) -> Result<CheckPlan, NotCheckable> {
    let place = |cell: &usize| run.plan.cells[*cell].baseline.is_some();
    // A cell that has a baseline tells more.
    let cell = finding.cells.iter().copied().find(place).or(finding.cells.first().copied());
    let cell = cell.ok_or(NotCheckable::Unknown)?;
    let change = finding.check.change;
    let mut plan = Plan {
        cells: Vec::new(),
        refused: Vec::new(),
        dropped: Vec::new(),
        published: Vec::new(),
        events: false,
        ..run.plan.clone()
    };
    let rounds = run.plan.timing.rounds.clamp(MIN_ROUNDS, MAX_ROUNDS);
    plan.timing = plan::Timing { rounds, budget: None, ..plan.timing };
    let of = Subject { run, cell };
    let this = &run.plan.cells[cell];
    let layout = layout(change, finding.check.expect, this);
    match change {
        Change::LongerWarmup => {
            let warmup = plan.timing.warmup.max(Nanos::from_millis(500));
            plan.timing.warmup = warmup * u64::from(TIMES);
        }
        // The tail needs the operations of longer trials.
        Change::LongerTrials | Change::SameRate => {
            let measure = plan.timing.measure.time().ok_or(NotCheckable::Trace)?;
            plan.timing.measure = TrialLength::Time(measure * u64::from(TIMES));
        }
        Change::AnotherSeed => plan.seed = plan.seed.wrapping_add(1),
        _ => {}
    }
    let mut add = |cell: Cell, baseline: Option<usize>| {
        for factor in cell.levels.keys() {
            if !plan.factors.contains(factor) {
                plan.factors.push(factor.clone());
            }
        }
        plan.cells.push(Cell { baseline, ..cell });
    };
    let of_baseline = this.baseline.map(|place| &run.plan.cells[place]);
    let subject = match layout {
        Layout::Changed => {
            add(this.clone(), None);
            add(of.changed(change, this)?, Some(0));
            1
        }
        Layout::Difference => {
            let baseline = of_baseline.ok_or(NotCheckable::Unknown)?;
            add(baseline.clone(), None);
            add(this.clone(), Some(0));
            add(of.changed(change, baseline)?, None);
            add(of.changed(change, this)?, Some(2));
            3
        }
        Layout::BothChanged => {
            let baseline = of_baseline.ok_or(NotCheckable::Unknown)?;
            add(of.changed(change, baseline)?, None);
            add(of.changed(change, this)?, Some(0));
            1
        }
        Layout::OfBaseline => {
            add(of.changed(change, this)?, None);
            // The course of a run shows with both; that of a trial needs no other cell.
            let compared = run.plan.cells.iter().find(|it| it.baseline == Some(cell));
            if let Some(other) = compared.filter(|_| change == Change::LongerWarmup) {
                add(of.changed(change, other)?, Some(0));
            }
            0
        }
    };
    Ok(CheckPlan { plan, layout, subject })
}

fn layout(change: Change, expect: Expectation, cell: &Cell) -> Layout {
    match (change, expect) {
        (_, Expectation::DifferenceVanishes) => Layout::Difference,
        (Change::SameRate | Change::AnotherSeed, _) => Layout::BothChanged,
        // What a run shows in its course, it shows with both cells.
        (Change::LongerWarmup, _) if cell.baseline.is_some() => Layout::BothChanged,
        (Change::LongerWarmup | Change::LongerTrials, _) => Layout::OfBaseline,
        _ => Layout::Changed,
    }
}

/// The cell that a finding speaks of, and its run.
struct Subject<'a> {
    run: &'a Run,
    cell: usize,
}

impl Subject<'_> {
    fn changed(&self, change: Change, cell: &Cell) -> Result<Cell, NotCheckable> {
        let (factor, level) = match change {
            Change::LongerWarmup | Change::LongerTrials | Change::AnotherSeed => {
                return Ok(cell.clone());
            }
            Change::QuieterMachine | Change::RightFlag => return Err(NotCheckable::NotOurs),
            Change::NoMerging => (Factor::Nomerges, "2".to_owned()),
            Change::Without(mechanism) => self.without(mechanism)?,
            Change::NoScheduler => (Factor::Scheduler, self.no_scheduler(cell)?.to_owned()),
            Change::NoThrottling => (Factor::WbtLatUsec, "0".to_owned()),
            Change::LongerQueue => (Factor::NrRequests, self.longer_queue(cell)?),
            Change::FewerClients => self.fewer_clients(cell)?,
            Change::OneClient => self.one_client(cell)?,
            Change::MoreClientsLessDepth => return self.less_depth(cell),
            Change::SameRate => (Factor::Rate, self.rate()?),
            Change::Direct => (Factor::Sync, SyncMode::DIRECT.to_string()),
            Change::NoFlush => (Factor::Sync, self.no_flush(cell)?),
            Change::Reads => (Factor::Pattern, self.reads(cell)?),
            Change::BlockSize(size) => (Factor::BlockSize, self.larger(cell, size)?),
        };
        if matches!(factor, Factor::Sync | Factor::Pattern | Factor::BlockSize) {
            self.job(cell)?;
        }
        with(cell, factor, &level)
    }

    /// What a job's clients do; an error where they are a database's, or a trace's.
    fn job(&self, cell: &Cell) -> Result<Workload, NotCheckable> {
        let workload = self.workload(cell)?;
        match (&workload.database, &workload.replay) {
            (Some(_), _) => Err(NotCheckable::Database),
            (None, Some(_)) => Err(NotCheckable::Trace),
            (None, None) => Ok(workload),
        }
    }

    fn workload(&self, cell: &Cell) -> Result<Workload, NotCheckable> {
        let workload = self.run.plan.workload_of(cell);
        workload.map(|(workload, _)| workload).map_err(|_| NotCheckable::Unknown)
    }

    fn without(&self, mechanism: Mechanism) -> Result<(Factor, String), NotCheckable> {
        match self.run.environment.world {
            WorldKind::Simulated => Ok((Factor::Without, Without::of([mechanism]).to_string())),
            WorldKind::Real | WorldKind::Emulated | WorldKind::Imported => {
                Err(NotCheckable::SimulatedOnly(mechanism))
            }
        }
    }

    /// Kernels before 5.0 call it noop, those with blk-mq none.
    fn no_scheduler(&self, cell: &Cell) -> Result<&'static str, NotCheckable> {
        const SINGLE_QUEUE: [&str; 4] = ["noop", "cfq", "deadline", "anticipatory"];
        match self.run.level(cell, &Factor::Scheduler).ok_or(NotCheckable::Unknown)? {
            "none" | "noop" => Err(NotCheckable::AlreadySo),
            name if SINGLE_QUEUE.contains(&name) => Ok("noop"),
            _ => Ok("none"),
        }
    }

    fn longer_queue(&self, cell: &Cell) -> Result<String, NotCheckable> {
        let now = self.run.level(cell, &Factor::NrRequests).ok_or(NotCheckable::Unknown)?;
        let now: u32 = now.parse().map_err(|_| NotCheckable::Unknown)?;
        Ok(now.saturating_mul(TIMES).to_string())
    }

    fn fewer_clients(&self, cell: &Cell) -> Result<(Factor, String), NotCheckable> {
        let workload = self.workload(cell)?;
        let depth = workload.job.depth;
        match (workload.clients() / TIMES, depth / TIMES) {
            (0, 0) => Err(NotCheckable::AlreadySo),
            (0, less) if workload.database.is_none() => Ok((Factor::Depth, less.to_string())),
            (0, _) => Err(NotCheckable::AlreadySo),
            (fewer, _) => Ok((Factor::Clients, fewer.to_string())),
        }
    }

    fn one_client(&self, cell: &Cell) -> Result<(Factor, String), NotCheckable> {
        match self.workload(cell)?.clients() {
            0 | 1 => Err(NotCheckable::AlreadySo),
            _ => Ok((Factor::Clients, "1".to_owned())),
        }
    }

    /// As much outstanding by twice as many; with one operation each, twice as much: a thread that is hardly ever off its
    /// processor hardly waits for the device.
    fn less_depth(&self, cell: &Cell) -> Result<Cell, NotCheckable> {
        let job = self.job(cell)?.job;
        let more = with(cell, Factor::Clients, &(job.clients * 2).to_string())?;
        match job.depth {
            0 | 1 => Ok(more),
            depth => with(&more, Factor::Depth, &(depth / 2).to_string()),
        }
    }

    fn rate(&self) -> Result<String, NotCheckable> {
        let mean = |place: usize| {
            let of_cell = self.run.trials.iter().filter(|trial| trial.id.cell == place);
            let rates = of_cell.filter_map(|it| crate::Metric::Throughput.of(it.measurement()?));
            let rates: Vec<f64> = rates.collect();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        };
        let baseline = self.run.plan.cells[self.cell].baseline.ok_or(NotCheckable::NoRate)?;
        let slower = mean(self.cell).zip(mean(baseline)).map(|(a, b)| a.min(b) * RATE);
        match slower {
            Some(rate) if rate >= 1.0 => Ok(format!("{rate:.0}")),
            _ => Err(NotCheckable::NoRate),
        }
    }

    /// Past the page cache: of buffered writes without a flush, a trial would measure memory, and the device would write
    /// long after it.
    fn no_flush(&self, cell: &Cell) -> Result<String, NotCheckable> {
        match self.job(cell)?.job.sync {
            SyncMode::DIRECT => Err(NotCheckable::AlreadySo),
            _ => Ok(SyncMode::DIRECT.to_string()),
        }
    }

    fn reads(&self, cell: &Cell) -> Result<String, NotCheckable> {
        let pattern = self.job(cell)?.job.pattern;
        match pattern.writes() {
            true => Ok(Pattern { read_percent: 100, ..pattern }.to_string()),
            false => Err(NotCheckable::AlreadySo),
        }
    }

    fn larger(&self, cell: &Cell, size: Bytes) -> Result<String, NotCheckable> {
        match self.job(cell)?.job.block_size < size {
            true => Ok(size.to_string()),
            false => Err(NotCheckable::AlreadySo),
        }
    }
}

/// The cell with another level.
fn with(cell: &Cell, factor: Factor, level: &str) -> Result<Cell, NotCheckable> {
    let level: Level = factor.level(level).map_err(|_| NotCheckable::Unknown)?;
    if cell.levels.get(&factor) == Some(&level) {
        return Err(NotCheckable::AlreadySo);
    }
    let mut changed = cell.clone();
    if factor == Factor::Scheduler {
        // Those of another scheduler mean nothing under this one.
        let of_scheduler = |it: &Factor| matches!(it, Factor::Tunable { .. } | Factor::AsyncDepth);
        changed.levels.retain(|it, _| !of_scheduler(it));
    }
    changed.levels.insert(factor, level);
    Ok(changed)
}
