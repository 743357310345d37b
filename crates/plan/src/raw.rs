//! What people write, before it means anything: flags and TOML parse to the same [`RawPlan`].

use crate::PresetUse;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};
use units::{Bytes, Nanos};
use workload::{ClientKind, Job, Pattern, Rate, SyncMode};
use workload::{DatabaseJob, EngineKind, IoPriority, Preset};

/// A plan as written; whatever is left out gets its default when it is resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawPlan {
    /// A directory, a file or a block device, or `emulated:PROFILE`, `simulated:PROFILE`.
    pub target: Option<String>,
    /// Put the scratch file behind a loop device of its own.
    #[serde(rename = "loop")]
    pub own_loop: Option<bool>,
    /// Span that the load uses: the scratch file's size, or the first part of a block device.
    pub size: Option<Bytes>,
    /// What makes the load.
    pub engine: Option<EngineKind>,
    /// Seed of all random streams.
    pub seed: Option<u64>,
    /// Time that all may take.
    pub budget: Option<Nanos>,
    /// Time that all may take in the simulated world's own time.
    pub virtual_budget: Option<Nanos>,
    /// A difference of this many percent in throughput shall be found, in place of a budget.
    pub detect_percent: Option<f64>,
    /// Rounds.
    pub rounds: Option<u32>,
    /// Time before measuring, in each trial.
    pub warmup: Option<Nanos>,
    /// Time measured, in each trial.
    pub measure: Option<Nanos>,
    /// A difference smaller than this many percent counts as the same.
    pub margin_percent: Option<f64>,
    /// Bound of the page cache in buffered trials.
    pub page_cache: Option<Bytes>,
    /// The block device's serial, typed as the user's consent to overwrite it: never in a file.
    #[serde(skip)]
    pub confirm: Option<String>,
    /// Use a running server's database though it holds what we did not make: consent, never in a
    /// file.
    #[serde(skip)]
    pub use_existing: bool,
    /// The database workload, in place of a job.
    pub workload: Option<DatabaseJob>,
    /// Variables of the database server to compare, by name.
    pub preset: Option<Preset>,
    /// Switch between cells in one running server, where it lets its variables be changed.
    pub alternate: Option<bool>,
    /// A fraction of the cells first, and then the settings that could win; false: every cell in every round.
    pub screen: Option<bool>,
    /// What the preset stands for, once the server was asked.
    #[serde(skip)]
    pub preset_use: Option<PresetUse>,
    /// The program of the private database server, where it is not to be looked for.
    pub server_program: Option<PathBuf>,
    /// A recorded trace in place of the job.
    pub replay: Option<workload::Replay>,
    /// Keep the event logs of the first round: in the simulated world.
    pub events: Option<bool>,
    /// Simulated trials that run at once; results do not depend on it.
    #[serde(skip)]
    pub threads: Option<u32>,
    /// The measured job.
    pub job: RawJob,
    /// The job beside it.
    pub background: Option<Job>,
    /// Factor to levels. A single level of a workload factor sets it without comparing.
    pub factors: BTreeMap<String, Vec<RawLevel>>,
    /// Factor to level: another baseline than the host's own setting or the first level.
    pub baseline: BTreeMap<String, RawLevel>,
    /// Figures that others published, to be shown beside ours.
    pub published: Vec<RawPublished>,
}

/// A level as TOML may spell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RawLevel {
    /// `64`
    Number(u64),
    /// `"mq-deadline"`
    Word(String),
}

impl RawLevel {
    /// As text, whichever way it was spelled.
    pub fn text(&self) -> String {
        match self {
            RawLevel::Number(number) => number.to_string(),
            RawLevel::Word(word) => word.clone(),
        }
    }
}

/// A job as written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawJob {
    /// See [`Job::pattern`].
    pub pattern: Option<Pattern>,
    /// See [`Job::block_size`].
    pub block_size: Option<Bytes>,
    /// See [`Job::sync`].
    pub sync: Option<SyncMode>,
    /// See [`Job::clients`].
    pub clients: Option<u32>,
    /// See [`Job::client_kind`].
    pub client_kind: Option<ClientKind>,
    /// See [`Job::depth`].
    pub depth: Option<u32>,
    /// See [`Job::rate`].
    pub rate: Option<Rate>,
    /// See [`Job::io_priority`].
    pub io_priority: Option<IoPriority>,
}

impl RawPlan {
    /// Reads TOML. The error names the line, the column and what was expected.
    pub fn from_toml(text: &str) -> Result<RawPlan, toml::de::Error> {
        toml::from_str(text)
    }

    /// Lays `over` (the flags) over this (the file): what `over` says counts, what it leaves out
    /// stays.
    pub fn overlaid(self, over: RawPlan) -> RawPlan {
        let job = RawJob {
            pattern: over.job.pattern.or(self.job.pattern),
            block_size: over.job.block_size.or(self.job.block_size),
            sync: over.job.sync.or(self.job.sync),
            clients: over.job.clients.or(self.job.clients),
            client_kind: over.job.client_kind.or(self.job.client_kind),
            depth: over.job.depth.or(self.job.depth),
            rate: over.job.rate.or(self.job.rate),
            io_priority: over.job.io_priority.or(self.job.io_priority),
        };
        // A budget of either kind takes the place of the file's.
        let (budget, virtual_budget) = match (over.budget, over.virtual_budget) {
            (None, None) => (self.budget, self.virtual_budget),
            said => said,
        };
        let mut factors = self.factors;
        factors.extend(over.factors);
        let mut baseline = self.baseline;
        baseline.extend(over.baseline);
        RawPlan {
            target: over.target.or(self.target),
            own_loop: over.own_loop.or(self.own_loop),
            size: over.size.or(self.size),
            engine: over.engine.or(self.engine),
            seed: over.seed.or(self.seed),
            budget,
            virtual_budget,
            detect_percent: over.detect_percent.or(self.detect_percent),
            rounds: over.rounds.or(self.rounds),
            warmup: over.warmup.or(self.warmup),
            measure: over.measure.or(self.measure),
            margin_percent: over.margin_percent.or(self.margin_percent),
            page_cache: over.page_cache.or(self.page_cache),
            confirm: over.confirm.or(self.confirm),
            use_existing: over.use_existing || self.use_existing,
            workload: over.workload.or(self.workload),
            preset: over.preset.or(self.preset),
            alternate: over.alternate.or(self.alternate),
            screen: over.screen.or(self.screen),
            preset_use: over.preset_use.or(self.preset_use),
            server_program: over.server_program.or(self.server_program),
            job,
            replay: over.replay.or(self.replay),
            events: over.events.or(self.events),
            threads: over.threads.or(self.threads),
            background: over.background.or(self.background),
            factors,
            baseline,
            published: [self.published, over.published].concat(),
        }
    }
}

/// A published figure as a plan file has it: `[[published]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPublished {
    /// Which cells it is of: those with these levels.
    #[serde(default)]
    pub cell: BTreeMap<String, RawLevel>,
    /// What is given: `operations/s`, or a counter's name, such as `device.w/s`.
    pub figure: String,
    /// The figure; or `low` and `high`.
    pub value: Option<f64>,
    /// Where only a range was published.
    pub low: Option<f64>,
    /// The range's other end.
    pub high: Option<f64>,
    /// Who published it, where.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_names_the_line_and_the_field() {
        let text = "target = '/tmp'\n\n[job]\npattern = 'sideways'\n";
        let error = RawPlan::from_toml(text).unwrap_err().to_string();
        assert!(error.contains("line 4"), "{error}");
        assert!(error.contains("sideways") && error.contains("randread"), "{error}");
        let error = RawPlan::from_toml("targte = '/tmp'").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("targte"), "{error}");
    }

    #[test]
    fn flags_count_over_the_file() {
        let file = RawPlan::from_toml("size = '1G'\nrounds = 3\n[job]\nclients = 4").unwrap();
        let flags = RawPlan { rounds: Some(9), ..RawPlan::default() };
        let both = file.overlaid(flags);
        assert_eq!((both.rounds, both.job.clients), (Some(9), Some(4)));
        assert_eq!(both.size, Some(Bytes::from_gib(1)));
    }
}
