//! Runs that are made, not measured.

use plan::Plan;
use record::{Environment, Measurement, Outcome, Run, RunState, Trial, TrialId};

/// A run that is done, of these trials.
pub fn run(plan: Plan, trials: Vec<Trial>) -> Run {
    Run {
        name: "generated".to_owned(),
        started_at: 0,
        environment: Environment::default(),
        plan,
        state: RunState::Done,
        trials,
        events: Vec::new(),
        later: Vec::new(),
    }
}

/// A trial that counts.
pub fn trial(id: TrialId, measurement: Measurement) -> Trial {
    Trial { id, started_at: 0, applied: Vec::new(), outcome: Outcome::Valid(Box::new(measurement)) }
}
