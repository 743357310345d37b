//! A run: where, what, and what each trial gave.

use crate::{Environment, Measurement, SessionFactor, VoidReason};
use plan::{Cell, Factor, Plan};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::Nanos;

/// A run, as it is read back from its file.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// What happened to the run as a whole: a dropped cell, an early end.
    pub events: Vec<Event>,
    /// Later sessions of the same plan, in other environments. All of the above is of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Session>,
}

/// A later session of a run: the same plan, run again in another environment. Its trials have rounds of
/// their own, from 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    /// What differs on purpose; the same in all sessions of a run.
    pub factor: SessionFactor,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// Where.
    pub environment: Environment,
    /// The program of its private server, where that is not the plan's.
    pub server_program: Option<PathBuf>,
    /// Its trials, in the order in which they ran.
    pub trials: Vec<Trial>,
    /// What happened to it as a whole.
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

/// Which trial of a run. A trial that does not count is repeated under the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialId {
    /// Round, from 0.
    pub round: u32,
    /// The cell's index in the plan.
    pub cell: usize,
    /// 0, and 1 for a baseline's second trial in the round.
    pub replica: u32,
}

impl TrialId {
    /// The seed of its random streams: the same accesses for every cell of a round, others in the next.
    pub fn seed(self, plan_seed: u64) -> u64 {
        plan_seed.wrapping_add(u64::from(self.round) << 8).wrapping_add(self.replica.into())
    }
}

/// One cell, run once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which.
    pub id: TrialId,
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
        /// Why.
        reason: VoidReason,
    },
    /// It could not be measured.
    Failed {
        /// What the kernel, the server or the load generator said.
        error: String,
    },
}

/// Something that happened to the run as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The round it belongs to.
    pub round: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a run as a whole. Data alone: `report` has the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// A cell runs no more.
    Dropped {
        /// Its index in the plan.
        cell: usize,
        /// Why.
        cause: DropCause,
    },
    /// Settings of a screening run no more: these cells.
    SetAside {
        /// Their indices in the plan.
        cells: Vec<usize>,
        /// Why.
        cause: AsideCause,
    },
    /// Every verdict was settled before the last round.
    Settled {
        /// Rounds that were run.
        rounds: u32,
    },
    /// The budget did not allow another round.
    BudgetUsed {
        /// Rounds that were run.
        rounds: u32,
    },
    /// A pilot chose how long trials last; the plan has its choice.
    Piloted {
        /// Visits to cells that it made.
        visits: u32,
        /// Time that it took.
        took: Nanos,
        /// The difference in throughput (0.05: 5 %) that all rounds are expected to find four times in
        /// five.
        detectable: f64,
        /// Whether throughput had settled after the warm-up that it chose.
        settled: bool,
    },
    /// The rounds did not reach the difference that was to be detectable: the plan has more.
    Extended {
        /// Rounds until then.
        rounds: u32,
        /// The difference that they could have shown.
        detectable: f64,
    },
    /// The user interrupted.
    Interrupted,
    /// The run was taken up again.
    Resumed {
        /// Trials that it had.
        trials: u64,
    },
    /// A sentence of a run file older than version 3.
    Recorded {
        /// The cell it is about, if one.
        cell: Option<usize>,
        /// The sentence.
        text: String,
    },
}

/// Why a cell runs no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum DropCause {
    /// It is clearly worse than its baseline.
    Worse {
        /// Rounds that were run.
        rounds: u32,
    },
    /// It never worked.
    NeverValid {
        /// Rounds in which it was tried.
        rounds: u32,
        /// Why its last trial does not count.
        last: Box<Outcome>,
    },
    /// A sentence of a run file older than version 3.
    Recorded {
        /// The sentence.
        text: String,
    },
}

/// Why a screening measures a setting no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsideCause {
    /// Its trials show it to be worse than the leader over all conditions.
    Worse,
    /// The effects of its levels, estimated from the first round, do.
    PredictedWorse,
    /// It is not shown to be worse: there is no time for it beside those that are more likely to win.
    NoTime,
}

impl EventKind {
    /// The columns `kind` and `cell` of the table `event`.
    pub(crate) fn columns(&self) -> (&'static str, Option<usize>) {
        match self {
            EventKind::Dropped { cell, .. } => ("dropped", Some(*cell)),
            EventKind::SetAside { .. } => ("set_aside", None),
            EventKind::Settled { .. } => ("settled", None),
            EventKind::BudgetUsed { .. } => ("budget_used", None),
            EventKind::Piloted { .. } => ("piloted", None),
            EventKind::Extended { .. } => ("extended", None),
            EventKind::Interrupted => ("interrupted", None),
            EventKind::Resumed { .. } => ("resumed", None),
            EventKind::Recorded { cell, .. } => ("recorded", *cell),
        }
    }
}

impl Trial {
    /// What estimates and verdicts are made of, in as little memory as it takes: no settings, and of what
    /// was measured [`Measurement::for_verdicts`].
    pub fn for_verdicts(self) -> Trial {
        let outcome = match self.outcome {
            Outcome::Valid(measurement) => Outcome::Valid(Box::new(measurement.for_verdicts())),
            other => other,
        };
        Trial { applied: Vec::new(), outcome, ..self }
    }

    /// What it measured, if that counts.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Valid(measurement) => Some(measurement),
            Outcome::Void { .. } | Outcome::Failed { .. } => None,
        }
    }
}

impl Run {
    /// What holds in a cell: its level, or what the host had set before the run.
    pub fn level<'a>(&'a self, cell: &'a Cell, factor: &Factor) -> Option<&'a str> {
        let (level, name) = (cell.level(factor), factor.to_string());
        let mut before = self.environment.settings.iter().rev();
        let found = || before.find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        level.map(|level| level.0.as_str()).or_else(found)
    }

    /// Cells that have been dropped so far.
    pub fn dropped_cells(&self) -> Vec<usize> {
        let of = |event: &Event| match &event.kind {
            EventKind::Dropped { cell, .. } => vec![*cell],
            EventKind::SetAside { cells, .. } => cells.clone(),
            _ => Vec::new(),
        };
        self.events.iter().flat_map(of).collect()
    }

    /// Rounds that have at least one trial.
    pub fn rounds(&self) -> u32 {
        self.trials.iter().map(|trial| trial.id.round + 1).max().unwrap_or(0)
    }
}

impl Run {
    /// Its sessions, the first included, each as a run of its own.
    pub fn sessions(&self) -> Vec<Run> {
        let first = Run { later: Vec::new(), ..self.clone() };
        let last = self.later.len();
        let later = self.later.iter().enumerate().map(|(place, session)| {
            let mut plan = self.plan.clone();
            if session.server_program.is_some() {
                plan.workload.server_program.clone_from(&session.server_program);
            }
            Run {
                name: self.name.clone(),
                started_at: session.started_at,
                environment: session.environment.clone(),
                plan,
                state: if place + 1 == last { self.state } else { RunState::Done },
                trials: session.trials.clone(),
                events: session.events.clone(),
                later: Vec::new(),
            }
        });
        std::iter::once(first).chain(later).collect()
    }

    /// The session that was begun last, as a run of its own.
    pub fn last_session(&self) -> Run {
        self.sessions().pop().unwrap_or_else(|| self.clone())
    }

    /// What its sessions differ in on purpose; `None` where there is one alone.
    pub fn session_factor(&self) -> Option<SessionFactor> {
        self.later.first().map(|session| session.factor)
    }
}
