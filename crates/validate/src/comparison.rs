//! The cells of a set in both worlds.

use crate::{
    Figure, MeasuredTransport, Step, TransportFigures, ValidateError, Validation, agreement,
    cells::{CellSet, Load},
    session::Session,
    subject::Subject,
    transport::{transport_word, written},
    trials::{self, TrialFigures},
};
use analysis::{Analysis, CellSummary};
use blocklayer::Kernel;
use counters::{EMULATE_LATE_KEPT_P99, EMULATE_LATE_P99, EMULATE_TAKEN};
use plan::{Cell, Factor, Level, RawLevel, RawPlan, Role};
use record::Run;
use serde::Serialize;
use units::Nanos;

/// The simulated kernel: the newest level.
const KERNEL: Kernel = Kernel::V6_18;

/// Trials of the short version.
const MEASURE_SHORT: Nanos = Nanos::from_millis(700);

/// With more operations outstanding than this, clients wait for tags.
const MAX_UNHINDERED: u32 = 32;

/// Where those that waited got less than this part of what they should get, the simulation is run again.
const ENOUGH: f64 = 0.8;

/// A round's seed is so much more than that of the round before: `record::TrialId::seed`.
const SEEDS_A_ROUND: u64 = 256;

/// A cell in both worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellResult {
    /// The profile.
    pub profile: String,
    /// The set of cells and the cell: `outstanding: bfq, randread, depth 32`.
    pub cell: String,
    /// On the emulated device.
    pub emulated: EmulatedFigures,
    /// In the simulated world.
    pub simulated: SimulatedFigures,
}

/// A cell on an emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmulatedFigures {
    /// Operations a second.
    pub throughput: f64,
    /// Its standard error; none of a single trial.
    pub throughput_error: Option<f64>,
    /// Median latency.
    pub p50: Nanos,
    /// 99th percentile of the latency.
    pub p99: Nanos,
    /// Its standard error, in nanoseconds; none of a single trial.
    pub p99_error_ns: Option<f64>,
    /// 99th percentile of the lateness of completions, in microseconds.
    pub late_p99_us: f64,
    /// The same of those that were due while the pacing thread had its CPU.
    pub late_kept_p99_us: f64,
    /// For what part of the time that it spun the pacing thread's CPU was taken from it, percent.
    pub taken_percent: f64,
}

/// A cell in the simulated world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SimulatedFigures {
    /// Operations a second.
    pub throughput: f64,
    /// Median latency.
    pub p50: Nanos,
    /// 99th percentile of the latency.
    pub p99: Nanos,
}

impl CellResult {
    /// Simulated to emulated, in the order of [`Figure::all`].
    pub fn ratios(&self) -> [f64; 3] {
        let (ours, real) = (&self.simulated, &self.emulated);
        let times = |ours: Nanos, real: Nanos| ours.0 as f64 / real.0 as f64;
        [ours.throughput / real.throughput, times(ours.p50, real.p50), times(ours.p99, real.p99)]
    }

    /// The figures that differ by more than [`crate::TOLERANCE`].
    pub fn beyond(&self) -> Vec<Figure> {
        let ratios = self.ratios().into_iter().zip(Figure::all());
        ratios
            .filter(|(ratio, _)| agreement::error(*ratio) > crate::TOLERANCE)
            .map(|(_, figure)| figure)
            .collect()
    }
}

/// Runs the cells of a set in both worlds.
pub(crate) fn compare(
    session: &mut Session,
    subject: &Subject,
    load: &Load,
    validation: &mut Validation,
) -> Result<(), ValidateError> {
    let set = load.set.title();
    let name = format!("{}-{}", subject.name, load.set.name());
    let target =
        format!("emulated:{},data=memory,transport={}", subject.source, transport_word(session));
    let raw = RawPlan { factors: load.factors(), ..base(session, subject, load, target) };
    let step = Step::Emulated { profile: subject.name.clone(), set: set.to_owned() };
    let run = session.run(&step, &name, &raw, false)?;
    validation.kernel.clone_from(&run.environment.kernel);
    validation.cpu = format!("{} x {}", run.environment.cpus, run.environment.cpu);
    let analysis = Analysis::of(&run);
    let mut summaries: Vec<(String, &CellSummary)> = analysis
        .groups
        .iter()
        .flat_map(|group| {
            [&group.baseline].into_iter().chain(group.cells.iter().map(|cell| &cell.summary))
        })
        .map(|summary| (label(&run.plan.cells[summary.cell]), summary))
        .collect();
    summaries.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (label, summary) in summaries {
        let cell = format!("{set}: {label}");
        let Some(emulated) = emulated(&run, summary) else {
            validation.without_trials.push(format!("{}, {cell}", subject.name));
            continue;
        };
        let levels = &run.plan.cells[summary.cell];
        let transport = transport_of(&validation.transports, subject, load, levels);
        let Some(transport) = transport else { continue };
        let trials = trials::of_cell(&run, summary.cell);
        let step = Step::Simulated { profile: subject.name.clone(), cell: cell.clone() };
        let mut simulation = Simulation { session, subject, load, levels, transport, step };
        let simulated = simulation.like(&trials)?;
        let profile = subject.name.clone();
        validation.cells.push(CellResult { profile, cell, emulated, simulated });
    }
    Ok(())
}

/// What plans of both worlds have in common.
fn base(session: &Session, subject: &Subject, load: &Load, target: String) -> RawPlan {
    let suits = if load.set == CellSet::Short { MEASURE_SHORT } else { subject.measure };
    RawPlan {
        target: Some(target),
        size: subject.size,
        seed: Some(1),
        rounds: Some(session.settings.rounds),
        warmup: Some(subject.warmup),
        measure: Some(session.settings.measure.unwrap_or(suits)),
        ..RawPlan::default()
    }
}

/// A cell's figures; none without a valid trial.
fn emulated(run: &Run, summary: &CellSummary) -> Option<EmulatedFigures> {
    let (throughput, latency) = (summary.throughput?, summary.latency?);
    let counter = |id: &str| summary.counters.get(id).copied().unwrap_or(0.0);
    Some(EmulatedFigures {
        throughput: throughput.mean,
        throughput_error: Some(throughput.std_err).filter(|error| error.is_finite()),
        p50: latency.p50,
        p99: latency.p99,
        p99_error_ns: trials::p99_error(&trials::of_cell(run, summary.cell)),
        late_p99_us: counter(EMULATE_LATE_P99.id),
        late_kept_p99_us: counter(EMULATE_LATE_KEPT_P99.id),
        taken_percent: counter(EMULATE_TAKEN.id),
    })
}

/// The transport of a cell's pattern.
fn transport_of(
    all: &[MeasuredTransport],
    subject: &Subject,
    load: &Load,
    cell: &Cell,
) -> Option<TransportFigures> {
    let pattern = match cell.level(&Factor::Pattern) {
        Some(Level(word)) => word.as_str(),
        None => load.patterns.first()?,
    };
    let set = load.set.to_string();
    let found = all.iter().find(|transport| {
        (&transport.profile, &transport.set) == (&subject.name, &set)
            && transport.pattern == pattern
    });
    found.map(|transport| transport.figures)
}

/// A cell in the simulated world, as its trials in the emulated one were: with the accesses of each, and
/// with the part of the tags that clients got who waited for one in each.
struct Simulation<'a, 's> {
    session: &'a mut Session<'s>,
    subject: &'a Subject,
    load: &'a Load,
    levels: &'a Cell,
    transport: TransportFigures,
    step: Step,
}

/// Which trials of a simulated run are wanted: rounds from the first on, and replicas.
struct Wanted<'r> {
    part: f64,
    first: u32,
    rounds: u32,
    replicas: &'r [u32],
}

impl Simulation<'_, '_> {
    /// Latencies of all trials together, as of the emulated ones.
    fn like(&mut self, emulated: &[TrialFigures]) -> Result<SimulatedFigures, ValidateError> {
        let each = self.subject.simulated_per_emulated();
        let mut found = Vec::new();
        if emulated.iter().any(|trial| trial.punted > 0.0) {
            for trial in emulated {
                found.extend(self.like_one(trial, each)?);
            }
        } else {
            let mut replicas: Vec<u32> = emulated.iter().map(|trial| trial.replica).collect();
            replicas.sort_unstable();
            replicas.dedup();
            let rounds = each * self.session.settings.rounds;
            found = self.run(&Wanted { part: 0.0, first: 0, rounds, replicas: &replicas })?;
        }
        let latencies = trials::together(&found);
        match (latencies.quantile(0.5), latencies.quantile(0.99)) {
            (Some(p50), Some(p99)) => {
                let sum: f64 = found.iter().map(|trial| trial.throughput).sum();
                Ok(SimulatedFigures { throughput: sum / found.len() as f64, p50, p99 })
            }
            _ => Err(ValidateError::NoTrial {
                step: self.step.clone(),
                why: "no operation completed".to_owned(),
            }),
        }
    }

    /// Trials like one emulated trial. Its part is of all bytes: where nobody waits for most of the time,
    /// those who wait get more while they do, which a first run tells.
    fn like_one(
        &mut self,
        trial: &TrialFigures,
        each: u32,
    ) -> Result<Vec<TrialFigures>, ValidateError> {
        let part = trial.punted;
        let replicas = [trial.replica];
        let wanted = Wanted { part, first: each * trial.round, rounds: each, replicas: &replicas };
        let found = self.run(&wanted)?;
        let got = found.iter().map(|it| it.punted).sum::<f64>() / found.len().max(1) as f64;
        match got > 0.0 && got < ENOUGH * part {
            true => self.run(&Wanted { part: (part * part / got).min(1.0), ..wanted }),
            false => Ok(found),
        }
    }

    fn run(&mut self, wanted: &Wanted) -> Result<Vec<TrialFigures>, ValidateError> {
        const NAME: &str = "simulated";
        let raw = self.plan(wanted);
        // It costs little, and differs in a transport that is measured anew.
        self.session.remove(NAME)?;
        let run = self.session.run_once(&self.step, NAME, &raw)?;
        self.session.remove(NAME)?;
        let trials = (0..run.plan.cells.len()).flat_map(|cell| trials::of_cell(&run, cell));
        Ok(trials.filter(|trial| wanted.replicas.contains(&trial.replica)).collect())
    }

    /// A plan whose only cell, the baseline, is this one.
    fn plan(&self, wanted: &Wanted) -> RawPlan {
        let mut raw = base(self.session, self.subject, self.load, self.target(wanted.part));
        raw.seed = Some(1 + SEEDS_A_ROUND * u64::from(wanted.first));
        raw.rounds = Some(wanted.rounds);
        raw.factors = self.load.factors();
        for (factor, Level(word)) in &self.levels.levels {
            let level = RawLevel::Word(word.clone());
            raw.factors.insert(factor.to_string(), vec![level.clone()]);
            if factor.role() == Role::HostSetting {
                raw.baseline.insert(factor.to_string(), level);
            }
        }
        raw
    }

    fn target(&self, part: f64) -> String {
        let level = |factor: &Factor| {
            self.levels.level(factor).and_then(|level| level.0.parse::<u32>().ok())
        };
        let depth = level(&Factor::Depth).or(self.load.depths.first().copied()).unwrap_or(1);
        let clients = level(&Factor::Clients).unwrap_or(self.load.clients);
        let options = self.transport.options(clients * depth > MAX_UNHINDERED);
        // A deeper model gets no more at once than the transport passes.
        let tags = self.session.settings.transport.tags(u32::MAX);
        let mut target =
            format!("simulated:{}@{KERNEL},{options},depth={tags}", self.subject.source);
        // Who waits for one operation sleeps, and is woken, once for each. A ring before flash does not
        // sleep: what delays it goes by time, not by operations.
        if !self.subject.rotates && depth > 1 {
            target += &format!(",transport_every={}", written(self.transport.every));
        }
        target + &format!(",{TAG_WAITERS}={part:.5}")
    }
}

/// The option of a simulated target that says which part of the tags goes to clients that wait for one.
const TAG_WAITERS: &str = "tag_waiters";

/// The levels of a cell, in words.
fn label(cell: &Cell) -> String {
    let order = [
        (Factor::Scheduler, "", ""),
        (Factor::NrRequests, "queue ", ""),
        (Factor::Pattern, "", ""),
        (Factor::BlockSize, "", ""),
        (Factor::Clients, "", " cl."),
        (Factor::Depth, "depth ", ""),
    ];
    let words = order.iter().filter_map(|(factor, before, after)| {
        cell.level(factor).map(|Level(word)| format!("{before}{word}{after}"))
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_simulated_to_emulated() {
        let result = CellResult {
            profile: "hdd-15k".to_owned(),
            cell: "short: none, randread".to_owned(),
            emulated: EmulatedFigures {
                throughput: 400.0,
                throughput_error: None,
                p50: Nanos(1000),
                p99: Nanos(4000),
                p99_error_ns: None,
                late_p99_us: 0.0,
                late_kept_p99_us: 0.0,
                taken_percent: 0.0,
            },
            simulated: SimulatedFigures { throughput: 436.0, p50: Nanos(1250), p99: Nanos(3000) },
        };
        assert_eq!(result.ratios(), [1.09, 1.25, 0.75]);
        assert_eq!(result.beyond(), [Figure::Median, Figure::P99]);
    }

    #[test]
    fn a_label_has_what_varies() {
        let level = |word: &str| Level(word.to_owned());
        let levels = [
            (Factor::Depth, level("256")),
            (Factor::NrRequests, level("64")),
            (Factor::Scheduler, level("bfq")),
        ];
        let cell = Cell { levels: levels.into(), baseline: None };
        assert_eq!(label(&cell), "bfq, queue 64, depth 256");
    }
}
