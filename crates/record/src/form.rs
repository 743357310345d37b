//! The run file's own form of a plan and of an environment: what a file of any version holds, whatever
//! the types in memory become.
//!
//! A level, a pattern, a rate, a server is written as the word that a plan file has for it. A field
//! that is added here has a default, so that older files are read; one that is removed stays here and
//! is converted.

use crate::{Caveat, Environment, Fact, WorldKind};
use plan::{
    BudgetClock, Cell, DroppedFactor, Factor, LeftOut, Level, Plan, PresetUse, Published, Refusal,
    RefusedCell, Timing, TrialLength,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};
use units::{Bytes, Nanos};
use workload::{ClientKind, EngineKind, Job, Replay, WordError, Workload};

/// A plan.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlanForm {
    target: String,
    own_loop: bool,
    size: Bytes,
    engine: String,
    workload: WorkloadForm,
    factors: Vec<String>,
    cells: Vec<CellForm>,
    timing: TimingForm,
    preparation: Nanos,
    margin: f64,
    page_cache: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slow: Vec<String>,
    seed: u64,
    #[serde(default)]
    events: bool,
    refused: Vec<RefusedForm>,
    dropped: Vec<DroppedForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    published: Vec<PublishedForm>,
    #[serde(default)]
    alternate: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    atomic_write: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preset: Option<PresetForm>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PresetForm {
    preset: String,
    server: String,
    factors: Vec<(String, Vec<String>)>,
    left_out: Vec<LeftOut>,
    overridden: Vec<String>,
    added: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WorkloadForm {
    job: JobForm,
    #[serde(default)]
    background: Option<JobForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_program: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobForm {
    pattern: String,
    block_size: Bytes,
    sync: String,
    clients: u32,
    #[serde(default = "threads")]
    client_kind: String,
    depth: u32,
    rate: Option<String>,
    io_priority: Option<String>,
}

fn threads() -> String {
    ClientKind::Threads.to_string()
}

#[derive(Debug, Serialize, Deserialize)]
struct ReplayForm {
    file: String,
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(default)]
    skip_bad: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    wrap: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct CellForm {
    levels: BTreeMap<String, String>,
    baseline: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TimingForm {
    warmup: Nanos,
    measure: Nanos,
    rounds: u32,
    budget: Option<Nanos>,
    #[serde(default)]
    budget_clock: BudgetClock,
    #[serde(default)]
    pilot: bool,
    #[serde(default)]
    detect: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trials: Option<u64>,
    /// Missing in the first files: then it was what a trial without a database takes.
    #[serde(default)]
    overhead: Option<Nanos>,
}

/// Versions 1 and 2 have a sentence where version 3 has data.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RefusalForm {
    Sentence(String),
    Data(Refusal),
}

#[derive(Debug, Serialize, Deserialize)]
struct RefusedForm {
    cell: CellForm,
    reason: RefusalForm,
}

#[derive(Debug, Serialize, Deserialize)]
struct DroppedForm {
    factor: String,
    reason: RefusalForm,
}

#[derive(Debug, Serialize, Deserialize)]
struct PublishedForm {
    cell: Vec<(String, String)>,
    figure: String,
    low: f64,
    high: f64,
    source: String,
}

/// An environment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EnvironmentForm {
    world: WorldKind,
    spindle_version: String,
    hostname: String,
    kernel: String,
    cpu: String,
    cpus: u32,
    memory_bytes: u64,
    target: String,
    device: String,
    settings: Vec<(String, String)>,
    caveats: Vec<CaveatForm>,
    #[serde(default)]
    boot_id: String,
    #[serde(default)]
    booted_at: Option<i64>,
    #[serde(default)]
    facts: Vec<Fact>,
    inspection: serde_json::Value,
}

/// Versions 1 and 2 have a sentence where version 3 has data.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum CaveatForm {
    Sentence(String),
    Data(Caveat),
}

impl From<&Plan> for PlanForm {
    fn from(plan: &Plan) -> Self {
        PlanForm {
            target: plan.target.clone(),
            own_loop: plan.own_loop,
            size: plan.size,
            engine: plan.engine.to_string(),
            workload: (&plan.workload).into(),
            factors: plan.factors.iter().map(Factor::to_string).collect(),
            cells: plan.cells.iter().map(CellForm::from).collect(),
            timing: TimingForm {
                warmup: plan.timing.warmup,
                measure: plan.timing.measure.limit(),
                rounds: plan.timing.rounds,
                budget: plan.timing.budget,
                budget_clock: plan.timing.budget_clock,
                pilot: plan.timing.pilot,
                detect: plan.timing.detect,
                trials: plan.timing.trials,
                overhead: Some(plan.timing.overhead),
            },
            preparation: plan.preparation,
            margin: plan.margin,
            page_cache: plan.page_cache,
            slow: plan.slow.iter().map(Factor::to_string).collect(),
            seed: plan.seed,
            events: plan.events,
            refused: plan
                .refused
                .iter()
                .map(|refused| RefusedForm {
                    cell: (&refused.cell).into(),
                    reason: RefusalForm::Data(refused.reason.clone()),
                })
                .collect(),
            dropped: plan
                .dropped
                .iter()
                .map(|dropped| DroppedForm {
                    factor: dropped.factor.to_string(),
                    reason: RefusalForm::Data(dropped.reason.clone()),
                })
                .collect(),
            published: plan.published.iter().map(PublishedForm::from).collect(),
            alternate: plan.alternate,
            atomic_write: plan.atomic_write,
            preset: plan.preset.as_ref().map(PresetForm::from),
        }
    }
}

impl TryFrom<PlanForm> for Plan {
    type Error = WordError;
    fn try_from(form: PlanForm) -> Result<Plan, WordError> {
        let refused = |form: RefusedForm| {
            Ok(RefusedCell { cell: form.cell.try_into()?, reason: form.reason.into() })
        };
        let dropped = |form: DroppedForm| {
            Ok(DroppedFactor { factor: form.factor.parse()?, reason: form.reason.into() })
        };
        let replays = form.workload.replay.is_some();
        Ok(Plan {
            target: form.target,
            own_loop: form.own_loop,
            size: form.size,
            engine: form.engine.parse::<EngineKind>()?,
            workload: form.workload.try_into()?,
            factors: form.factors.iter().map(|word| word.parse()).collect::<Result<_, _>>()?,
            cells: form.cells.into_iter().map(Cell::try_from).collect::<Result<_, _>>()?,
            timing: Timing {
                warmup: form.timing.warmup,
                measure: match replays {
                    true => TrialLength::of_limit(form.timing.measure),
                    false => TrialLength::Time(form.timing.measure),
                },
                rounds: form.timing.rounds,
                budget: form.timing.budget,
                budget_clock: form.timing.budget_clock,
                pilot: form.timing.pilot,
                detect: form.timing.detect,
                trials: form.timing.trials,
                overhead: form.timing.overhead.unwrap_or(plan::TRIAL_OVERHEAD),
            },
            preparation: form.preparation,
            margin: form.margin,
            page_cache: form.page_cache,
            slow: form.slow.iter().map(|word| word.parse()).collect::<Result<_, _>>()?,
            seed: form.seed,
            events: form.events,
            refused: form.refused.into_iter().map(refused).collect::<Result<_, WordError>>()?,
            dropped: form.dropped.into_iter().map(dropped).collect::<Result<_, WordError>>()?,
            published: form
                .published
                .into_iter()
                .map(Published::try_from)
                .collect::<Result<_, _>>()?,
            alternate: form.alternate,
            atomic_write: form.atomic_write,
            preset: form.preset.map(PresetUse::try_from).transpose()?,
        })
    }
}

impl From<&Workload> for WorkloadForm {
    fn from(workload: &Workload) -> Self {
        WorkloadForm {
            job: (&workload.job).into(),
            background: workload.background.as_ref().map(JobForm::from),
            database: workload.database.as_ref().map(ToString::to_string),
            replay: workload.replay.as_ref().map(|replay| ReplayForm {
                file: replay.file.clone(),
                mode: replay.mode.to_string(),
                format: replay.format.clone(),
                unit: replay.unit.clone(),
                skip_bad: replay.skip_bad,
                wrap: replay.wrap,
            }),
            server_program: workload.server_program.clone(),
            variables: workload.variables.clone(),
        }
    }
}

impl TryFrom<WorkloadForm> for Workload {
    type Error = WordError;
    fn try_from(form: WorkloadForm) -> Result<Workload, WordError> {
        let replay = |form: ReplayForm| {
            Ok::<_, WordError>(Replay {
                file: form.file,
                mode: form.mode.parse()?,
                format: form.format,
                unit: form.unit,
                skip_bad: form.skip_bad,
                wrap: form.wrap,
            })
        };
        Ok(Workload {
            job: form.job.try_into()?,
            background: form.background.map(Job::try_from).transpose()?,
            database: form.database.map(|word| word.parse()).transpose()?,
            replay: form.replay.map(replay).transpose()?,
            server_program: form.server_program,
            variables: form.variables,
        })
    }
}

impl From<&Job> for JobForm {
    fn from(job: &Job) -> Self {
        JobForm {
            pattern: job.pattern.to_string(),
            block_size: job.block_size,
            sync: job.sync.to_string(),
            clients: job.clients,
            client_kind: job.client_kind.to_string(),
            depth: job.depth,
            rate: job.rate.map(|rate| rate.to_string()),
            io_priority: job.io_priority.map(|priority| priority.to_string()),
        }
    }
}

impl TryFrom<JobForm> for Job {
    type Error = WordError;
    fn try_from(form: JobForm) -> Result<Job, WordError> {
        Ok(Job {
            pattern: form.pattern.parse()?,
            block_size: form.block_size,
            sync: form.sync.parse()?,
            clients: form.clients,
            client_kind: form.client_kind.parse()?,
            depth: form.depth,
            rate: form.rate.map(|word| word.parse()).transpose()?,
            io_priority: form.io_priority.map(|word| word.parse()).transpose()?,
        })
    }
}

impl From<&Cell> for CellForm {
    fn from(cell: &Cell) -> Self {
        let level = |(factor, level): (&Factor, &Level)| (factor.to_string(), level.0.clone());
        CellForm { levels: cell.levels.iter().map(level).collect(), baseline: cell.baseline }
    }
}

impl TryFrom<CellForm> for Cell {
    type Error = WordError;
    fn try_from(form: CellForm) -> Result<Cell, WordError> {
        let level = |(factor, level): (String, String)| Ok((factor.parse()?, Level(level)));
        Ok(Cell {
            levels: form.levels.into_iter().map(level).collect::<Result<_, WordError>>()?,
            baseline: form.baseline,
        })
    }
}

impl From<&PresetUse> for PresetForm {
    fn from(used: &PresetUse) -> Self {
        let words = |levels: &[Level]| levels.iter().map(|level| level.0.clone()).collect();
        PresetForm {
            preset: used.preset.to_string(),
            server: used.server.clone(),
            factors: used
                .factors
                .iter()
                .map(|(factor, levels)| (factor.to_string(), words(levels)))
                .collect(),
            left_out: used.left_out.clone(),
            overridden: used.overridden.clone(),
            added: used.added.iter().map(Factor::to_string).collect(),
        }
    }
}

impl TryFrom<PresetForm> for PresetUse {
    type Error = WordError;
    fn try_from(form: PresetForm) -> Result<PresetUse, WordError> {
        let factor = |(factor, levels): (String, Vec<String>)| {
            Ok((factor.parse()?, levels.into_iter().map(Level).collect()))
        };
        Ok(PresetUse {
            preset: form.preset.parse()?,
            server: form.server,
            factors: form.factors.into_iter().map(factor).collect::<Result<_, WordError>>()?,
            left_out: form.left_out,
            overridden: form.overridden,
            added: form.added.iter().map(|word| word.parse()).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&Published> for PublishedForm {
    fn from(published: &Published) -> Self {
        PublishedForm {
            cell: published
                .cell
                .iter()
                .map(|(factor, level)| (factor.to_string(), level.0.clone()))
                .collect(),
            figure: published.figure.clone(),
            low: published.low,
            high: published.high,
            source: published.source.clone(),
        }
    }
}

impl TryFrom<PublishedForm> for Published {
    type Error = WordError;
    fn try_from(form: PublishedForm) -> Result<Published, WordError> {
        let level = |(factor, level): (String, String)| Ok((factor.parse()?, Level(level)));
        Ok(Published {
            cell: form.cell.into_iter().map(level).collect::<Result<_, WordError>>()?,
            figure: form.figure,
            low: form.low,
            high: form.high,
            source: form.source,
        })
    }
}

impl From<RefusalForm> for Refusal {
    fn from(form: RefusalForm) -> Self {
        match form {
            RefusalForm::Sentence(text) => Refusal::Recorded { text },
            RefusalForm::Data(refusal) => refusal,
        }
    }
}

impl From<&Environment> for EnvironmentForm {
    fn from(environment: &Environment) -> Self {
        let Environment {
            world,
            spindle_version,
            hostname,
            kernel,
            cpu,
            cpus,
            memory_bytes,
            target,
            device,
            settings,
            caveats,
            boot_id,
            booted_at,
            facts,
            inspection,
        } = environment.clone();
        EnvironmentForm {
            world,
            spindle_version,
            hostname,
            kernel,
            cpu,
            cpus,
            memory_bytes,
            target,
            device,
            settings,
            caveats: caveats.into_iter().map(CaveatForm::Data).collect(),
            boot_id,
            booted_at,
            facts,
            inspection,
        }
    }
}

impl From<EnvironmentForm> for Environment {
    fn from(form: EnvironmentForm) -> Self {
        let caveat = |form| match form {
            CaveatForm::Sentence(text) => Caveat::Recorded { text },
            CaveatForm::Data(caveat) => caveat,
        };
        Environment {
            world: form.world,
            spindle_version: form.spindle_version,
            hostname: form.hostname,
            kernel: form.kernel,
            cpu: form.cpu,
            cpus: form.cpus,
            memory_bytes: form.memory_bytes,
            target: form.target,
            device: form.device,
            settings: form.settings,
            caveats: form.caveats.into_iter().map(caveat).collect(),
            boot_id: form.boot_id,
            booted_at: form.booted_at,
            facts: form.facts,
            inspection: form.inspection,
        }
    }
}
