//! Cells that are switched inside one running server, in place of a server for each trial.

use database::{NotSwitched, Programs, Running};
use plan::Plan;
use record::{NotAlternated, Warning};
use std::collections::{BTreeMap, BTreeSet};
use workload::Workload;

/// What is known of switching between the cells of a plan.
pub struct Alternation {
    /// Variables in which cells differ.
    differing: BTreeSet<String>,
    state: State,
    /// A server was just asked; the next one is not.
    tried: bool,
    /// Trials that the running server has seen.
    trials: u32,
}

enum State {
    /// No server has been asked yet.
    Unasked,
    /// It can.
    Possible,
    /// It cannot, because of a variable.
    Impossible { variable: String, cause: NotAlternated },
}

impl Alternation {
    /// Of a plan that asks for it; `None` of any other.
    pub fn of(plan: &Plan) -> Option<Alternation> {
        if !plan.alternate {
            return None;
        }
        let all = workloads(plan);
        let names: BTreeSet<&String> = all.iter().flat_map(|one| one.variables.keys()).collect();
        let first = all.first().map(|one| one.variables.clone()).unwrap_or_default();
        let differs =
            |name: &String| all.iter().any(|one| one.variables.get(name) != first.get(name));
        let differing: BTreeSet<String> =
            names.into_iter().filter(|name| differs(name)).cloned().collect();
        let unnamed = differing
            .iter()
            .find(|name| all.iter().any(|one| !one.variables.contains_key(*name)))
            .cloned();
        let state = match unnamed {
            // What it is where nobody names it is known only of a server that was just started.
            Some(variable) => State::Impossible { variable, cause: NotAlternated::Unnamed },
            None => State::Unasked,
        };
        Some(Alternation { differing, state, tried: false, trials: 0 })
    }

    /// Whether a server that runs may go on to the next cell.
    pub fn is_possible(&self) -> bool {
        matches!(self.state, State::Possible)
    }

    /// Whether a server was asked and could not: what was tried on it may have changed it.
    pub fn was_tried_in_vain(&self) -> bool {
        self.tried && self.trials == 0 && !self.is_possible()
    }

    /// The cell's values of the variables in which cells differ.
    pub fn wanted(&self, workload: &Workload) -> BTreeMap<String, String> {
        let differs = |(name, _): &(&String, &String)| self.differing.contains(*name);
        let pair = |(name, value): (&String, &String)| (name.clone(), value.clone());
        workload.variables.iter().filter(differs).map(pair).collect()
    }

    /// Asks a server that was just started for the cell of `workload`, once a run: each cell's values are
    /// set and read back, then those of its own cell again.
    pub fn ask(
        &mut self,
        plan: &Plan,
        workload: &Workload,
        programs: &Programs,
        running: &Running,
    ) -> Result<(), NotSwitched> {
        self.trials = 0;
        self.tried = matches!(self.state, State::Unasked);
        if !self.tried {
            return Ok(());
        }
        let made_with = programs.made_with(&self.wanted(workload)).into_keys().next();
        if let Some(variable) = made_with {
            self.state = State::Impossible { variable, cause: NotAlternated::MadeWith };
            self.tried = false;
            return Ok(());
        }
        self.state = State::Possible;
        let own = self.wanted(workload);
        let all: BTreeSet<BTreeMap<String, String>> =
            workloads(plan).iter().map(|one| self.wanted(one)).filter(|it| *it != own).collect();
        for values in all {
            let (variable, cause) = match running.switch(&values) {
                Ok(()) => continue,
                Err(NotSwitched::Refused { variable, words }) => {
                    (variable, NotAlternated::Refused { words })
                }
                Err(NotSwitched::Another { variable, wanted, took }) => {
                    (variable, NotAlternated::TookAnother { wanted, took })
                }
                Err(lost @ NotSwitched::Sql(_)) => return Err(lost),
            };
            self.state = State::Impossible { variable, cause };
            break;
        }
        match self.state {
            State::Possible => running.switch(&own),
            // A fresh server takes its place.
            State::Unasked | State::Impossible { .. } => Ok(()),
        }
    }

    /// A trial has been measured on the running server.
    pub fn measured(&mut self) {
        self.trials += 1;
    }

    /// What a reader of the trial's figures must know.
    pub fn warning(&self) -> Option<Warning> {
        match &self.state {
            State::Unasked => None,
            State::Possible => {
                (self.trials > 0).then_some(Warning::DataGoOn { trials: self.trials })
            }
            State::Impossible { variable, cause } => {
                Some(Warning::NotAlternated { variable: variable.clone(), cause: cause.clone() })
            }
        }
    }
}

/// What the clients of each cell do.
fn workloads(plan: &Plan) -> Vec<Workload> {
    plan.cells.iter().filter_map(|cell| plan.workload_of(cell).ok()).map(|(it, _)| it).collect()
}

/// The most clients of any cell: a server that goes from one to another takes all of them.
pub fn clients_max(plan: &Plan) -> u32 {
    workloads(plan).iter().map(Workload::clients).max().unwrap_or(1)
}
