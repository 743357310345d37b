//! Whether what a file says can be a run: every place that it names is there, and no number is beyond what sums can
//! be made of.
//!
//! A run file may be damaged, edited or made by somebody else. What passes here can be analysed without looking
//! again: what does not is refused with what is wrong.

use crate::{Environment, Event, EventKind, Histogram, JobMeasurement, Measurement, Run, Trial};
use plan::{Plan, Timing};
use units::Nanos;

/// The largest count or number of bytes of one trial: a pebibyte.
pub(crate) const MAX_COUNT: u64 = 1 << 50;
/// The longest time: 36 years.
pub(crate) const MAX_NANOS: u64 = 1 << 60;
/// The most that all trials may add up to.
const MAX_SUM: u64 = 1 << 62;
/// More rounds than anybody makes.
pub(crate) const MAX_ROUNDS: u32 = 1_000_000;
/// More cells than a plan may have.
const MAX_CELLS: usize = 5_000;
/// More factors, levels of published figures and the like.
const MAX_LIST: usize = 100_000;
/// The last second of the year 9999.
const MAX_DATE: i64 = 253_402_300_799;
/// The largest margin, as a share.
const MAX_MARGIN: f64 = 10.0;

/// What cannot be in a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Flaw {
    /// A count that is none.
    #[error("{count} is no count of a trial")]
    Count {
        /// It.
        count: i64,
    },
    /// A time that nothing takes.
    #[error("{nanoseconds} ns is no time of a trial")]
    Time {
        /// It.
        nanoseconds: i64,
    },
    /// Infinite, or not a number.
    #[error("a figure is not a finite number")]
    NotFinite,
    /// A date that no clock shows.
    #[error("{seconds} seconds since 1970 is no date of a run")]
    Date {
        /// It.
        seconds: i64,
    },
    /// Trials add up to more than a number holds.
    #[error("its trials add up to more than any storage does")]
    Sum,
    /// No cells, or too many.
    #[error("its plan has {cells} cells")]
    Cells {
        /// How many.
        cells: usize,
    },
    /// A cell is compared with one that is not there, or is no baseline.
    #[error("cell {cell} of its plan is compared with cell {baseline}, which is no baseline")]
    Baseline {
        /// The cell.
        cell: usize,
        /// With what.
        baseline: usize,
    },
    /// A trial or an event of a cell that the plan does not have.
    #[error("it has a trial or an event of cell {cell}, and its plan has {cells} cells")]
    Cell {
        /// The cell.
        cell: usize,
        /// Cells of the plan.
        cells: usize,
    },
    /// A round or a replica beyond all numbers.
    #[error("it has a trial or an event of round {round}, replica {replica}")]
    Round {
        /// The round.
        round: u32,
        /// The replica.
        replica: u32,
    },
    /// A number of the plan or of the environment is beyond what it can be.
    #[error("{what} is {value}, which it cannot be")]
    Number {
        /// Which.
        what: &'static str,
        /// It.
        value: f64,
    },
}

/// What trials add up to so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    counts: u64,
    bytes: u64,
    time: u64,
    latencies: u64,
}

fn add(sum: &mut u64, more: u64) -> Result<(), Flaw> {
    *sum = sum.checked_add(more).filter(|sum| *sum <= MAX_SUM).ok_or(Flaw::Sum)?;
    Ok(())
}

/// A whole run.
pub(crate) fn check_run(run: &Run) -> Result<(), Flaw> {
    check_head(run)?;
    let mut sums = Sums::default();
    let sessions = run.later.iter().map(|later| (&later.trials, &later.events));
    for (trials, events) in std::iter::once((&run.trials, &run.events)).chain(sessions) {
        for trial in trials {
            sums.check(&run.plan, trial)?;
        }
        check_events(&run.plan, events)?;
    }
    for later in &run.later {
        check_date(later.started_at)?;
        check_environment(&later.environment)?;
    }
    Ok(())
}

/// A run without its trials and events.
pub(crate) fn check_head(run: &Run) -> Result<(), Flaw> {
    check_date(run.started_at)?;
    check_environment(&run.environment)?;
    check_plan(&run.plan)
}

/// Events of a plan.
pub(crate) fn check_events(plan: &Plan, events: &[Event]) -> Result<(), Flaw> {
    for event in events {
        let in_plan = |cell: usize| check_cell(plan, cell);
        check_round(event.round, 0)?;
        match &event.kind {
            EventKind::Dropped { cell, .. } => in_plan(*cell)?,
            EventKind::SetAside { cells, .. } => cells.iter().try_for_each(|it| in_plan(*it))?,
            EventKind::Recorded { cell, .. } => cell.iter().try_for_each(|it| in_plan(*it))?,
            EventKind::Piloted { took, .. } => check_time(*took)?,
            EventKind::Settled { rounds }
            | EventKind::BudgetUsed { rounds }
            | EventKind::Extended { rounds, .. } => check_round(*rounds, 0)?,
            EventKind::Interrupted | EventKind::Resumed { .. } => {}
        }
    }
    Ok(())
}

fn check_cell(plan: &Plan, cell: usize) -> Result<(), Flaw> {
    if cell < plan.cells.len() { Ok(()) } else { Err(Flaw::Cell { cell, cells: plan.cells.len() }) }
}

fn check_round(round: u32, replica: u32) -> Result<(), Flaw> {
    if round <= MAX_ROUNDS && replica <= 1 { Ok(()) } else { Err(Flaw::Round { round, replica }) }
}

fn check_date(seconds: i64) -> Result<(), Flaw> {
    if (0..=MAX_DATE).contains(&seconds) { Ok(()) } else { Err(Flaw::Date { seconds }) }
}

fn check_time(time: Nanos) -> Result<(), Flaw> {
    if time.0 <= MAX_NANOS {
        Ok(())
    } else {
        Err(Flaw::Time { nanoseconds: i64::try_from(time.0).unwrap_or(i64::MAX) })
    }
}

fn check_number(what: &'static str, value: f64, most: f64) -> Result<(), Flaw> {
    if value.is_finite() && (0.0..=most).contains(&value) {
        Ok(())
    } else {
        Err(Flaw::Number { what, value })
    }
}

fn check_environment(environment: &Environment) -> Result<(), Flaw> {
    environment.booted_at.iter().try_for_each(|it| check_date(*it))?;
    check_number("the host's memory", environment.memory_bytes as f64, MAX_SUM as f64)
}

fn check_plan(plan: &Plan) -> Result<(), Flaw> {
    let cells = plan.cells.len();
    if !(1..=MAX_CELLS).contains(&cells) {
        return Err(Flaw::Cells { cells });
    }
    for (cell, baseline) in plan.cells.iter().map(|it| it.baseline).enumerate() {
        let Some(baseline) = baseline else { continue };
        let of_baseline = plan.cells.get(baseline).filter(|it| it.baseline.is_none());
        of_baseline.ok_or(Flaw::Baseline { cell, baseline })?;
    }
    let Timing { warmup, measure, rounds, budget, overhead, detect, trials, .. } = plan.timing;
    for time in [Some(warmup), measure.time(), budget, Some(overhead), Some(plan.preparation)] {
        time.iter().try_for_each(|time| check_time(*time))?;
    }
    check_round(rounds, 0)?;
    check_number("the plan's number of trials", trials.unwrap_or(0) as f64, MAX_COUNT as f64)?;
    check_number("the difference to detect", detect.unwrap_or(0.0), MAX_COUNT as f64)?;
    check_number("the plan's margin", plan.margin, MAX_MARGIN)?;
    for size in [Some(plan.size), plan.page_cache, plan.atomic_write].into_iter().flatten() {
        check_number("a size of the plan", size.0 as f64, MAX_NANOS as f64)?;
    }
    for list in [plan.factors.len(), plan.slow.len(), plan.published.len()] {
        check_number("the length of a list of the plan", list as f64, MAX_LIST as f64)?;
    }
    for published in &plan.published {
        check_number("a published figure", published.low, published.high)?;
        check_number("a published figure", published.high, f64::MAX)?;
    }
    Ok(())
}

impl Sums {
    /// Adds a trial.
    pub(crate) fn check(&mut self, plan: &Plan, trial: &Trial) -> Result<(), Flaw> {
        check_cell(plan, trial.id.cell)?;
        check_round(trial.id.round, trial.id.replica)?;
        check_date(trial.started_at)?;
        trial.measurement().map_or(Ok(()), |it| self.check_measurement(it))
    }

    fn check_measurement(&mut self, measurement: &Measurement) -> Result<(), Flaw> {
        let generator = &measurement.generator;
        for time in [measurement.span, generator.user, generator.system] {
            check_time(time)?;
            add(&mut self.time, time.0)?;
        }
        for job in std::iter::once(&measurement.job).chain(&measurement.background) {
            self.check_job(job)?;
        }
        for second in &measurement.seconds {
            for count in [second.reads, second.writes, second.transactions] {
                add(&mut self.counts, count)?;
            }
            add(&mut self.bytes, second.bytes.0)?;
        }
        let Some(transactions) = &measurement.transactions else { return Ok(()) };
        for of_type in transactions.types.values() {
            add(&mut self.counts, of_type.transactions)?;
            add(&mut self.counts, of_type.rolled_back)?;
            self.check_latencies(&of_type.service)?;
            of_type.response.iter().try_for_each(|it| self.check_latencies(it))?;
        }
        let queries = transactions.queries;
        let others = transactions.retries.values().chain(transactions.errors.values());
        let clients = transactions.clients.iter().chain(others).copied();
        for count in [queries.reads, queries.writes, queries.others].into_iter().chain(clients) {
            add(&mut self.counts, count)?;
        }
        Ok(())
    }

    fn check_job(&mut self, job: &JobMeasurement) -> Result<(), Flaw> {
        for operations in [&job.reads, &job.writes, &job.syncs] {
            add(&mut self.counts, operations.operations)?;
            add(&mut self.bytes, operations.bytes.0)?;
            self.check_latencies(&operations.service)?;
            operations.response.iter().try_for_each(|it| self.check_latencies(it))?;
        }
        for client in &job.clients {
            add(&mut self.counts, client.operations)?;
            add(&mut self.bytes, client.bytes.0)?;
        }
        job.errors.values().try_for_each(|count| add(&mut self.counts, *count))
    }

    fn check_latencies(&mut self, histogram: &Histogram) -> Result<(), Flaw> {
        histogram.buckets().try_for_each(|(_, count)| add(&mut self.latencies, count))
    }
}
