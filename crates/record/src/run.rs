//! A run: where, what, and what each trial gave.

use crate::{Environment, Measurement};
use plan::Plan;
use serde::{Deserialize, Serialize};

/// A run, as it is read back from its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its file's name without the ending, or what the user called it.
    pub name: String,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// Where.
    pub environment: Environment,
    /// What.
    pub plan: Plan,
    /// How it ended.
    pub state: RunState,
    /// Trials in the order in which they ran.
    pub trials: Vec<Trial>,
    /// What happened to the run as a whole, in sentences: a dropped cell, an early end.
    pub events: Vec<Event>,
}

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It goes on, or its program died: `spindle resume` can go on.
    Running,
    /// Interrupted; `spindle resume` can go on.
    Interrupted,
    /// All was done, or all was settled.
    Done,
}

/// One cell, run once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Round, from 0.
    pub round: u32,
    /// The cell's place in the plan.
    pub cell: usize,
    /// 0, and 1 for a baseline's second trial in the round.
    pub replica: u32,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// The settings that the kernel showed during it, by its own names.
    pub applied: Vec<(String, String)>,
    /// What it gave, or why nothing that counts.
    pub outcome: Outcome,
}

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It counts.
    Valid(Box<Measurement>),
    /// It was measured and does not count.
    Void {
        /// Why, in a sentence.
        reason: String,
    },
    /// It could not be measured.
    Failed {
        /// Why, in a sentence.
        reason: String,
    },
}

/// Something that happened to the run as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The round it belongs to.
    pub round: u32,
    /// The cell it concerns, if one.
    pub cell: Option<usize>,
    /// What kind.
    pub kind: EventKind,
    /// In a sentence.
    pub text: String,
}

/// What kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A cell has clearly lost (or failed again and again), and runs no more.
    Dropped,
    /// All verdicts were settled before the last round.
    Settled,
    /// The user interrupted.
    Interrupted,
    /// The run was taken up again.
    Resumed,
    /// Anything else that a reader must know.
    Note,
}

impl Trial {
    /// What it measured, if that counts.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Valid(measurement) => Some(measurement),
            Outcome::Void { .. } | Outcome::Failed { .. } => None,
        }
    }
}

impl Run {
    /// Cells that have been dropped so far.
    pub fn dropped_cells(&self) -> Vec<usize> {
        self.events
            .iter()
            .filter(|event| event.kind == EventKind::Dropped)
            .filter_map(|event| event.cell)
            .collect()
    }

    /// Rounds that have at least one trial.
    pub fn rounds(&self) -> u32 {
        self.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0)
    }
}
