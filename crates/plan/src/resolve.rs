//! From what was written to what is run: checks, defaults, cells, refusals.

use crate::{
    BudgetClock, Cell, Factor, Level, Loss, Offer, PresetUse, Published, RawPlan, Refusal, Role,
    TRIAL_OVERHEAD, Timing, TimingWish, TrialLength, losses, timing::MIN_ROUNDS,
};
use serde::Serialize;
use workload::{DatabaseJob, EngineKind, Job, PrivateServer, ReplayMode, WordError, Workload};

mod database;
mod levels;
mod preset;

use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Nanos};

/// A comparison, complete: all that is needed to run it, and to tell later what was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// As the user wrote it, but absolute: the run may be resumed from another folder.
    pub target: String,
    /// Whether the scratch file is put behind a loop device of its own.
    pub own_loop: bool,
    /// Span that the load uses.
    pub size: Bytes,
    /// What makes the load, where no factor says otherwise.
    pub engine: EngineKind,
    /// What the clients do, where no factor says otherwise.
    pub workload: Workload,
    /// What varies, in the order of the table's columns.
    pub factors: Vec<Factor>,
    /// What is compared; each condition's baseline comes before the cells compared with it.
    pub cells: Vec<Cell>,
    /// How long and how often.
    pub timing: Timing,
    /// Time for preparation (laying out), at the most likely.
    pub preparation: Nanos,
    /// A ratio within `1 ± margin` counts as the same.
    pub margin: f64,
    /// Bound of the page cache.
    pub page_cache: Option<Bytes>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Factors that take long to change: a round runs all cells with one level before those with the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<Factor>,
    /// Whether the first round's event logs are kept.
    pub events: bool,
    /// Cells that cannot be, and why.
    pub refused: Vec<RefusedCell>,
    /// Factors that were asked for and dropped, and why: in runs of earlier versions. A factor that cannot be set
    /// now ends the plan.
    pub dropped: Vec<DroppedFactor>,
    /// Figures that others published.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Whether cells are switched inside one running server, where it lets its variables be changed.
    pub alternate: bool,
    /// The largest write that the device does atomically where databases' data are, when it is asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic_write: Option<Bytes>,
    /// The preset that some of the factors are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetUse>,
}

/// A cell that cannot be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedCell {
    /// Which.
    pub cell: Cell,
    /// Why.
    pub reason: Refusal,
}

/// A factor that this target does not have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DroppedFactor {
    /// Which.
    pub factor: Factor,
    /// Why.
    pub reason: Refusal,
}

/// A difference below this is of no use to anybody who would have to change a setting for it.
const DEFAULT_MARGIN_PERCENT: f64 = 3.0;

/// The most cells a plan may have.
const MAX_CELLS: usize = 2000;

impl Plan {
    /// Places of the baselines among the cells.
    pub fn baselines(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&place| self.cells[place].baseline.is_none()).collect()
    }

    /// Trials a round: every cell once, the baselines twice. A screening's rounds have fewer.
    pub fn slots(&self) -> usize {
        self.cells.len() + self.baselines().len()
    }

    /// Whether a fraction of the cells is looked at first, and then the settings that could win.
    pub fn screens(&self) -> bool {
        self.timing.trials.is_some()
    }

    /// The time of the alternative: of every cell in every round where this plan screens, of a screening where it
    /// does not; the latter only of as many cells as are worth it.
    pub fn alternative(&self) -> Option<Nanos> {
        self.timing.alternative(self.slots(), self.matrix(), self.preparation)
    }

    /// The time that all takes, at the most; `None` where traces say it.
    pub fn total(&self) -> Option<Nanos> {
        self.timing.total(self.slots(), self.preparation)
    }

    /// What the clients of a cell do.
    pub fn workload_of(&self, cell: &Cell) -> Result<(Workload, EngineKind), WordError> {
        cell.workload(&self.workload, self.engine)
    }

    /// What databases' clients do, of each workload that any cell has, once.
    pub fn databases(&self) -> Vec<DatabaseJob> {
        let mut all: Vec<DatabaseJob> = Vec::new();
        for cell in &self.cells {
            let database = self.workload_of(cell).ok().and_then(|(workload, _)| workload.database);
            all.extend(database.filter(|database| !all.contains(database)));
        }
        all
    }

    /// The size of the file of the job beside a database, where any cell has such a job: the largest.
    pub fn beside_size(&self) -> Option<Bytes> {
        let workloads = self.cells.iter().filter_map(|cell| self.workload_of(cell).ok());
        workloads.filter_map(|(workload, _)| workload.beside_size()).max()
    }

    /// What the database server of a cell can lose of what it said is safe; of which version, where that is known.
    pub fn losses(&self, cell: &Cell, version: Option<&str>) -> BTreeSet<Loss> {
        let Ok((workload, _)) = self.workload_of(cell) else { return BTreeSet::new() };
        let Some(database) = &workload.database else { return BTreeSet::new() };
        let of = |product: &PrivateServer| {
            losses(*product, version, &workload.variables, self.atomic_write)
        };
        database.server.products().iter().flat_map(of).collect()
    }

    /// Whether databases are measured, not blocks.
    pub fn is_of_databases(&self) -> bool {
        self.workload.database.is_some() || self.factors.contains(&Factor::Workload)
    }

    /// Whether any setting of the host is compared.
    pub fn sets_host(&self) -> bool {
        self.factors.iter().any(|factor| factor.role() == Role::HostSetting)
    }

    /// Factors that are conditions: what tables are grouped by.
    pub fn conditions(&self) -> Vec<Factor> {
        self.factors_of_role(|role| role == Role::Condition)
    }

    /// Factors that are compared within a condition.
    pub fn compared(&self) -> Vec<Factor> {
        self.factors_of_role(|role| role != Role::Condition)
    }

    fn factors_of_role(&self, wanted: impl Fn(Role) -> bool) -> Vec<Factor> {
        self.factors.iter().filter(|factor| wanted(factor.role())).cloned().collect()
    }
}

impl RawPlan {
    /// Checks, fills in defaults, spans the cells, and asks `refuse` of each whether it can be.
    /// A level that no cell could have is an error, with the reason of the refusal.
    pub fn resolve(
        &self,
        offer: &Offer,
        refuse: &dyn Fn(&Plan, &Cell) -> Option<Refusal>,
    ) -> Result<Plan, WordError> {
        let target = self.target.clone().ok_or_else(|| {
            WordError::new(
                "no target: name a directory, a file or a block device, such as \
                 `spindle compare /var/lib/mysql`"
                    .to_owned(),
            )
        })?;
        let mut levels = self.levels(offer)?;
        let unset = |factor: &&Factor| matches!(factor, Factor::Label | Factor::Benchmark);
        if let Some(factor) = levels.iter().map(|(factor, _)| factor).find(unset) {
            return Err(WordError::new(format!(
                "{factor} is what `spindle import` calls a cell of another program's output: it cannot be \
                 set; leave it out"
            )));
        }
        let databases = self.databases(&levels)?;
        self.check_replay(&levels)?;
        let mut workload = Workload {
            job: self.base_job(&databases),
            background: self.background.clone(),
            database: self.workload.clone(),
            replay: self.replay.clone(),
            server_program: self.server_program.clone(),
            ..Workload::default()
        };
        let mut engine = self.engine.unwrap_or_default();
        // One level of what the clients do is no comparison: it is simply what they do.
        let mut fixed = Cell::default();
        levels.retain(|(factor, all)| {
            let simple = all.len() == 1
                && factor.role() != Role::HostSetting
                && !matches!(factor, Factor::Filesystem | Factor::Without);
            if simple {
                fixed.levels.insert(factor.clone(), all[0].clone());
            }
            !simple
        });
        // With nothing to compare, it is the schedulers.
        if levels.is_empty() {
            if let Some(schedulers) = offer.all.get(&Factor::Scheduler) {
                levels.push((Factor::Scheduler, schedulers.clone()));
            }
            self.check_compares(offer)?;
        }
        (workload, engine) = fixed.workload(&workload, engine)?;
        if let Some(background) = &workload.background {
            background.check()?;
        }
        let named = levels.iter().filter(|(factor, _)| *factor == Factor::Background);
        let beside = workload.background.is_some()
            || named.flat_map(|(_, all)| all).any(|Level(text)| text != "none");
        let mut plan = Plan {
            target,
            own_loop: offer.own_loop,
            size: self.span(offer, &databases, beside)?,
            engine,
            workload,
            factors: levels.iter().map(|(factor, _)| factor.clone()).collect(),
            cells: Vec::new(),
            timing: Timing {
                warmup: Nanos::ZERO,
                measure: TrialLength::Time(Nanos::ZERO),
                rounds: 0,
                budget: None,
                budget_clock: BudgetClock::Wall,
                overhead: TRIAL_OVERHEAD,
                pilot: false,
                detect: None,
                trials: None,
            },
            preparation: Nanos::ZERO,
            margin: self.margin()?,
            page_cache: self.page_cache,
            slow: levels
                .iter()
                .filter(|(factor, levels)| levels.len() > 1 && offer.slow.contains(factor))
                .map(|(factor, _)| factor.clone())
                .collect(),
            seed: self.seed.unwrap_or(1),
            events: self.events.unwrap_or(false),
            refused: Vec::new(),
            dropped: Vec::new(),
            published: self
                .published
                .iter()
                .map(|raw| Ok(Published::of(raw)?.beside(&fixed)))
                .collect::<Result<_, WordError>>()?,
            alternate: self.alternates(&levels, &databases, offer)?,
            atomic_write: offer.atomic_write,
            preset: self.preset_use.clone(),
        };
        let baseline = self.baseline_levels(&levels, offer)?;
        plan.span_cells(&levels, &baseline, refuse)?;
        let layouts = plan.layouts(&databases);
        let layout_time = |size| layout_time(size, offer.layout_bytes_per_second);
        plan.preparation =
            layout_time(layouts.before) + database::loading_time(&databases, &offer.databases);
        let changes = layout_time(layouts.each_change) * plan.slow_changes() as u64;
        let overhead = database::trial_overhead(&databases, &offer.databases);
        let overhead = match changes {
            Nanos::ZERO => overhead,
            _ => Some(overhead.unwrap_or(TRIAL_OVERHEAD) + changes / plan.slots().max(1) as u64),
        };
        let wish = match &self.replay {
            None => TimingWish {
                warmup: self.warmup,
                measure: self.measure,
                rounds: self.rounds,
                budget: self.budget,
                virtual_budget: self.virtual_budget,
                virtual_time: offer.virtual_time,
                pilot: databases.is_empty(),
                detect: self.detect()?,
                overhead,
                screen: self.screen,
                matrix: plan.matrix(),
            },
            // A trial ends with its trace, all of which counts.
            Some(_) => TimingWish {
                warmup: Some(Nanos::ZERO),
                measure: self.measure,
                rounds: self.rounds.or(Some(MIN_ROUNDS)),
                detect: self.detect()?,
                ..TimingWish::default()
            },
        };
        plan.timing = Timing::fit(wish, plan.slots(), plan.preparation)
            .map_err(|error| WordError::new(error.to_string()))?;
        if self.replay.is_some() {
            // What a trial of a replay takes is not known before one has run: the budget ends the run
            // between rounds.
            plan.timing.budget = self.budget;
            plan.timing.measure = self.measure.map_or(TrialLength::Trace, TrialLength::Time);
        }
        Ok(plan)
    }

    /// What says what a job does has nothing to say beside a trace.
    fn check_replay(&self, levels: &[(Factor, Vec<Level>)]) -> Result<(), WordError> {
        let Some(replay) = &self.replay else { return Ok(()) };
        let asap = replay.mode == ReplayMode::Asap;
        let idle = |factor: &Factor| match factor {
            Factor::Pattern | Factor::BlockSize | Factor::Sync | Factor::Rate => true,
            Factor::Workload | Factor::Variable { .. } | Factor::Variables => true,
            Factor::IoPriority => true,
            Factor::Clients | Factor::Depth => !asap,
            _ => false,
        };
        let named = levels.iter().map(|(factor, _)| factor).find(|factor| idle(factor));
        if let Some(factor) = named {
            return Err(WordError::new(format!(
                "{factor} says what a job does, and a trace is replayed in its place: leave one of \
                 them out{}",
                if matches!(factor, Factor::Clients | Factor::Depth) {
                    " (or replay with mode asap, which keeps clients times depth outstanding)"
                } else {
                    ""
                }
            )));
        }
        if self.screen == Some(true) {
            return Err(WordError::new(
                "screening shares time out among trials, and a replay takes as long as its trace: leave out \
                 --screen"
                    .to_owned(),
            ));
        }
        match self.workload.is_some() || self.warmup.is_some_and(|warmup| warmup > Nanos::ZERO) {
            true => Err(WordError::new(
                "a trace is replayed whole, without a database and without warm-up: leave those out"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// What the clients do when nothing is said: the reads and page flushes of a busy database.
    fn base_job(&self, databases: &[DatabaseJob]) -> Job {
        let raw = &self.job;
        let default = Job::default();
        let pattern = raw
            .pattern
            .unwrap_or(workload::Pattern { order: workload::Order::Random, read_percent: 70 });
        Job {
            pattern,
            block_size: raw.block_size.unwrap_or(Bytes::from_kib(16)),
            sync: raw.sync.unwrap_or(default.sync),
            clients: raw.clients.unwrap_or(database::default_clients(databases)),
            client_kind: raw.client_kind.unwrap_or_default(),
            depth: raw.depth.unwrap_or(1),
            rate: raw.rate,
            io_priority: raw.io_priority,
        }
    }

    fn margin(&self) -> Result<f64, WordError> {
        let percent = self.margin_percent.unwrap_or(DEFAULT_MARGIN_PERCENT);
        if (0.1..=50.0).contains(&percent) {
            Ok(percent / 100.0)
        } else {
            Err(WordError::new(format!("margin {percent} % is outside 0.1 % to 50 %")))
        }
    }

    fn detect(&self) -> Result<Option<f64>, WordError> {
        match self.detect_percent {
            Some(percent) if !(0.1..=50.0).contains(&percent) => Err(WordError::new(format!(
                "a difference of {percent} % to detect is outside 0.1 % to 50 %"
            ))),
            percent => Ok(percent.map(|percent| percent / 100.0)),
        }
    }

    fn span(
        &self,
        offer: &Offer,
        databases: &[DatabaseJob],
        beside: bool,
    ) -> Result<Bytes, WordError> {
        let size = match database::room(databases, beside, self.size)? {
            Some(room) => self.size.unwrap_or(room),
            None => self.size.unwrap_or(offer.default_size),
        };
        if size < Bytes::from_mib(1) {
            return Err(WordError::new(format!(
                "a size of {size} is too small to measure anything but a cache: use at least 1 MiB"
            )));
        }
        match &offer.size_limit {
            Some((limit, why)) if size > *limit => {
                Err(WordError::new(match database::largest(databases, beside) {
                    Some((room, database)) if room > *limit => format!(
                        "{database} does not fit: {}, and {why}; make the data smaller",
                        database::room_phrase(database, beside)
                    ),
                    _ if *limit < Bytes::from_mib(1) => {
                        format!("a size of {size} does not fit: {why}; there is room for nothing")
                    }
                    _ => format!(
                        "a size of {size} does not fit: {why}; use --size {} or less",
                        limit.to_string().replace(' ', "")
                    ),
                }))
            }
            _ => Ok(Bytes(size.0 / (1 << 20) * (1 << 20))),
        }
    }
}

impl Plan {
    fn span_cells(
        &mut self,
        levels: &[(Factor, Vec<Level>)],
        baseline: &BTreeMap<Factor, Level>,
        refuse: &dyn Fn(&Plan, &Cell) -> Option<Refusal>,
    ) -> Result<(), WordError> {
        let conditions_only = levels.iter().all(|(factor, _)| factor.role() == Role::Condition);
        let (grouping, compared): (Vec<_>, Vec<_>) = levels
            .iter()
            .cloned()
            .partition(|(factor, _)| factor.role() == Role::Condition && !conditions_only);
        let mut seen = BTreeSet::new();
        for condition in cross(&grouping)? {
            let mut first = condition.clone();
            first.extend(
                compared
                    .iter()
                    .map(|(f, _)| f)
                    .filter_map(|f| Some((f.clone(), baseline.get(f)?.clone()))),
            );
            let first = Cell { levels: proper(first), baseline: None };
            if let Some(reason) = refuse(self, &first) {
                self.refused.push(RefusedCell { cell: first, reason });
                continue;
            }
            let place = self.cells.len();
            seen.insert(first.levels.clone());
            self.cells.push(first);
            for choice in cross(&compared)? {
                let mut all = condition.clone();
                all.extend(choice);
                let cell = Cell { levels: proper(all), baseline: Some(place) };
                if !seen.insert(cell.levels.clone()) {
                    continue;
                }
                match refuse(self, &cell) {
                    Some(reason) => self.refused.push(RefusedCell { cell, reason }),
                    None => self.cells.push(cell),
                }
            }
            if self.cells.len() > MAX_CELLS {
                return Err(WordError::new(format!(
                    "these levels span more than {MAX_CELLS} cells: name fewer"
                )));
            }
        }
        self.check_levels_used(levels)
    }

    /// A level that only refused cells have was asked for in vain: that is the user's to know.
    fn check_levels_used(&self, levels: &[(Factor, Vec<Level>)]) -> Result<(), WordError> {
        for (factor, all) in levels {
            for level in all {
                let has = |cell: &Cell| cell.levels.get(factor) == Some(level);
                if self.cells.iter().any(has) {
                    continue;
                }
                let reason = match self.refused.iter().find(|refused| has(&refused.cell)) {
                    Some(refused) => refused.reason.to_string(),
                    // Without its baseline no cell of a condition is tried.
                    None if self.cells.is_empty() => break,
                    None => {
                        "no cell has it (a tunable needs its scheduler among the levels)".to_owned()
                    }
                };
                return Err(WordError::new(format!("{factor}={level} is not possible: {reason}")));
            }
        }
        match (self.cells.first(), self.refused.first()) {
            (None, Some(RefusedCell { cell, reason })) => {
                let label = cell.label(&self.factors);
                Err(WordError::new(format!("the baseline, {label}, is not possible: {reason}")))
            }
            _ => Ok(()),
        }
    }
}

/// Without the tunables of schedulers that the cell does not have, and without `async_depth` where it has
/// none: the kernel does not take it then.
fn proper(mut levels: BTreeMap<Factor, Level>) -> BTreeMap<Factor, Level> {
    let scheduler = levels.get(&Factor::Scheduler).cloned();
    levels.retain(|factor, _| match factor {
        Factor::Tunable { scheduler: of, .. } => {
            scheduler.as_ref().is_none_or(|Level(name)| name == of)
        }
        Factor::AsyncDepth => scheduler.as_ref().is_none_or(|Level(name)| name != "none"),
        _ => true,
    });
    levels
}

/// Every combination, the first factor changing slowest.
fn cross(levels: &[(Factor, Vec<Level>)]) -> Result<Vec<BTreeMap<Factor, Level>>, WordError> {
    let count = levels.iter().try_fold(1usize, |product, (_, all)| product.checked_mul(all.len()));
    if count.is_none_or(|count| count > MAX_CELLS * 10) {
        return Err(WordError::new(format!(
            "these levels span more than {MAX_CELLS} cells: name fewer"
        )));
    }
    let mut cells = vec![BTreeMap::new()];
    for (factor, all) in levels {
        cells = cells
            .iter()
            .flat_map(|cell| {
                all.iter().map(|level| {
                    let mut cell = cell.clone();
                    cell.insert(factor.clone(), level.clone());
                    cell
                })
            })
            .collect();
    }
    Ok(cells)
}

/// Bytes that are laid out for a plan.
struct Layouts {
    /// Before the first trial.
    before: Bytes,
    /// Each time that a factor that is slow to change does.
    each_change: Bytes,
}

impl Plan {
    fn layouts(&self, databases: &[DatabaseJob]) -> Layouts {
        // For databases, a file is laid out for the job beside them alone.
        let files = match databases.is_empty() {
            true => self.size,
            false => self.beside_size().unwrap_or(Bytes::ZERO),
        };
        if !self.slow.is_empty() {
            return Layouts { before: Bytes::ZERO, each_change: files };
        }
        let levels = self.cells.iter().filter_map(|cell| cell.level(&Factor::Filesystem));
        let filesystems = levels.collect::<BTreeSet<_>>().len() as u64;
        let before = match (self.own_loop, filesystems) {
            (false, _) => files,
            // A loop device's file is what is measured.
            (true, 0) => self.size,
            (true, _) => Bytes((self.size.0 + files.0) * filesystems),
        };
        Layouts { before, each_change: Bytes::ZERO }
    }
}

fn layout_time(size: Bytes, bytes_per_second: u64) -> Nanos {
    if bytes_per_second == 0 {
        return Nanos::ZERO;
    }
    Nanos::from_secs_f64(size.0 as f64 / bytes_per_second as f64)
}

#[cfg(test)]
mod tests;
