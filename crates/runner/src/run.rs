//! The loop.

use crate::{Goon, Measured, Wanted, Watcher, World, WorldError};
use analysis::Analysis;
use plan::{Plan, Slot, round_order};
use record::{Event, EventKind, Outcome, Run, RunState, Store, StoreError, Trial};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All rounds were run, or the budget is used up.
    Complete,
    /// Every verdict was settled before the last round.
    Settled,
    /// The user interrupted; what is recorded stays, and can be resumed.
    Interrupted,
}

/// What ended a run that should have gone on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The world.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The run file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A trial that does not count is repeated this often in its round.
const REPEATS: u32 = 1;

/// A cell that failed in so many rounds, and never worked, runs no more.
const FAILURES_MOST: u32 = 3;

/// Runs what is left of `run`, recording into `store`; a fresh run has everything left. The world is
/// restored before this returns, whatever happened.
pub fn go_on(
    world: &mut dyn World,
    run: &mut Run,
    store: &mut Store,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Ending, RunError> {
    let ended = Loop { world, run, store, stop, watcher, started: Instant::now() }.all();
    let restored = world.restore();
    let state = match &ended {
        Ok(Ending::Complete | Ending::Settled) => RunState::Done,
        Ok(Ending::Interrupted) | Err(_) => RunState::Interrupted,
    };
    run.state = state;
    // A full disk may have ended the run: what it says of the run must not hide how restoring went.
    let stated = store.set_state(state);
    match (ended, restored) {
        (Ok(ending), Ok(())) => {
            stated?;
            Ok(ending)
        }
        (Ok(_), Err(left)) => Err(left.into()),
        (Err(ended), Ok(())) => Err(ended),
        (Err(ended), Err(left)) => {
            Err(WorldError::Fatal(format!("{ended}; and on top of that, {left}")).into())
        }
    }
}

struct Loop<'a> {
    world: &'a mut dyn World,
    run: &'a mut Run,
    store: &'a mut Store,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn Watcher,
    started: Instant,
}

impl Loop<'_> {
    fn all(&mut self) -> Result<Ending, RunError> {
        let plan = self.run.plan.clone();
        match self.world.prepare(&plan, self.stop, self.watcher) {
            Err(WorldError::Interrupted) => return self.interrupted(0),
            other => other?,
        }
        let first = self.run.rounds().saturating_sub(1);
        let looks = plan.timing.looks();
        for round in first..plan.timing.rounds {
            if self.over_budget(&plan, round - first) {
                let text = format!("the budget was used up after {round} rounds");
                self.event(round, None, EventKind::Note, text)?;
                return Ok(Ending::Complete);
            }
            if !self.round(&plan, round)? {
                return self.interrupted(round);
            }
            self.drop_failing(round)?;
            if looks.contains(&(round + 1)) && round + 1 < plan.timing.rounds && self.look(round)? {
                return Ok(Ending::Settled);
            }
        }
        Ok(Ending::Complete)
    }

    /// Whether another round like those so far would overrun the budget noticeably.
    fn over_budget(&self, plan: &Plan, rounds_done: u32) -> bool {
        let Some(budget) = plan.timing.budget else { return false };
        if rounds_done == 0 {
            return false;
        }
        let so_far = self.started.elapsed();
        so_far + so_far / rounds_done > budget.as_duration().mul_f64(1.05) + Duration::from_secs(1)
    }

    /// Runs what is left of a round; false if the user interrupted it.
    fn round(&mut self, plan: &Plan, round: u32) -> Result<bool, RunError> {
        let dropped = self.run.dropped_cells();
        let cells: Vec<usize> =
            (0..plan.cells.len()).filter(|cell| !dropped.contains(cell)).collect();
        let done: BTreeSet<(usize, u32)> = self
            .run
            .trials
            .iter()
            .filter(|trial| trial.round == round)
            .map(|trial| (trial.cell, trial.replica))
            .collect();
        let slots = round_order(plan.seed, round, &cells, &plan.baselines());
        if self.world.at_once() > 1 {
            let left: Vec<(usize, Slot)> = slots.iter().copied().enumerate().collect();
            let left: Vec<_> =
                left.into_iter().filter(|(_, s)| !done.contains(&(s.cell, s.replica))).collect();
            return self.round_at_once(plan, round, slots.len(), &left);
        }
        for (place, slot) in slots.iter().enumerate() {
            if done.contains(&(slot.cell, slot.replica)) {
                continue;
            }
            for repeat in 0..=REPEATS {
                self.watcher.trial_begins(plan, round, place, slots.len(), slot.cell);
                let Some(trial) = self.trial(plan, round, *slot)? else { return Ok(false) };
                self.store.add_trial(&trial)?;
                self.watcher.trial_ended(&trial);
                let again = matches!(trial.outcome, Outcome::Void { .. }) && repeat < REPEATS;
                self.run.trials.push(trial);
                if !again {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Runs what is left of a round, several trials at once, and records them in their order. A trial
    /// of a world that allows this does not depend on when it runs, so none is repeated.
    fn round_at_once(
        &mut self,
        plan: &Plan,
        round: u32,
        of: usize,
        left: &[(usize, Slot)],
    ) -> Result<bool, RunError> {
        let wanted: Vec<Wanted> = left
            .iter()
            .map(|(_, slot)| Wanted { cell: slot.cell, seed: seed_of(plan, round, *slot) })
            .collect();
        let Loop { world, run, store, stop, watcher, .. } = self;
        let started_at = now();
        let mut ended: Result<bool, RunError> = Ok(true);
        let mut take = |at: usize, measured: Measured| -> Goon {
            let (place, slot) = left[at];
            let (applied, outcome) = match measured {
                Ok((applied, measurement)) => (applied, Outcome::Valid(Box::new(measurement))),
                Err(WorldError::Trial(reason)) => (Vec::new(), Outcome::Failed { reason }),
                Err(WorldError::Void(reason)) => (Vec::new(), Outcome::Void { reason }),
                Err(WorldError::Interrupted) => {
                    ended = Ok(false);
                    return Goon::Break(());
                }
                Err(other) => {
                    ended = Err(other.into());
                    return Goon::Break(());
                }
            };
            watcher.trial_begins(plan, round, place, of, slot.cell);
            let Slot { cell, replica } = slot;
            let trial = Trial { round, cell, replica, started_at, applied, outcome };
            if let Err(error) = store.add_trial(&trial) {
                ended = Err(error.into());
                return Goon::Break(());
            }
            watcher.trial_ended(&trial);
            run.trials.push(trial);
            Goon::Continue(())
        };
        world.measure_all(plan, &wanted, stop, &mut take);
        if ended.is_ok() && stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        ended
    }

    /// One trial; `None` if the user interrupted it.
    fn trial(&mut self, plan: &Plan, round: u32, slot: Slot) -> Result<Option<Trial>, RunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let started_at = now();
        let mut applied = Vec::new();
        let outcome = match self.measure(plan, round, slot, &mut applied) {
            Ok(outcome) => outcome,
            Err(WorldError::Trial(reason)) => Outcome::Failed { reason },
            Err(WorldError::Void(reason)) => Outcome::Void { reason },
            Err(WorldError::Interrupted) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let Slot { cell, replica } = slot;
        Ok(Some(Trial { round, cell, replica, started_at, applied, outcome }))
    }

    fn measure(
        &mut self,
        plan: &Plan,
        round: u32,
        slot: Slot,
        applied: &mut Vec<(String, String)>,
    ) -> Result<Outcome, WorldError> {
        let cell = &plan.cells[slot.cell];
        self.world.apply(plan, cell)?;
        *applied = self.world.settings()?;
        let seed = seed_of(plan, round, slot);
        let measurement = self.world.measure(plan, cell, seed, self.stop, self.watcher)?;
        let after = self.world.settings()?;
        Ok(match moved(applied, &after) {
            Some(reason) => Outcome::Void { reason },
            None => Outcome::Valid(Box::new(measurement)),
        })
    }

    /// Drops cells that never work.
    fn drop_failing(&mut self, round: u32) -> Result<(), RunError> {
        let plan = &self.run.plan;
        let dropped = self.run.dropped_cells();
        let mut failing = Vec::new();
        for cell in (0..plan.cells.len()).filter(|cell| !dropped.contains(cell)) {
            let of_cell = || self.run.trials.iter().filter(move |trial| trial.cell == cell);
            let rounds: BTreeSet<u32> = of_cell().map(|trial| trial.round).collect();
            let worked = of_cell().any(|trial| trial.measurement().is_some());
            if !worked && rounds.len() as u32 >= FAILURES_MOST {
                let reason = of_cell().next_back().map(|trial| match &trial.outcome {
                    Outcome::Void { reason } | Outcome::Failed { reason } => reason.clone(),
                    Outcome::Valid(_) => String::new(),
                });
                failing.push((cell, reason.unwrap_or_default()));
            }
        }
        for (cell, reason) in failing {
            if self.run.plan.cells[cell].baseline.is_none() {
                return Err(WorldError::Fatal(format!(
                    "the baseline failed in {FAILURES_MOST} rounds, so nothing can be compared with \
                     it: {reason}"
                ))
                .into());
            }
            let text = format!("it failed in {FAILURES_MOST} rounds: {reason}");
            self.event(round, Some(cell), EventKind::Dropped, text)?;
        }
        Ok(())
    }

    /// Looks at the data: drops cells that have clearly lost; true when all is settled.
    fn look(&mut self, round: u32) -> Result<bool, RunError> {
        let analysis = Analysis::of(self.run);
        if analysis.settled() {
            let text = format!("every verdict was settled after {} rounds", round + 1);
            self.event(round, None, EventKind::Settled, text)?;
            return Ok(true);
        }
        for cell in analysis.groups.iter().flat_map(|group| &group.cells) {
            if cell.lost() && !cell.dropped {
                let text = format!("clearly worse after {} rounds", round + 1);
                self.event(round, Some(cell.summary.cell), EventKind::Dropped, text)?;
            }
        }
        Ok(false)
    }

    fn interrupted(&mut self, round: u32) -> Result<Ending, RunError> {
        let text = "interrupted by the user".to_owned();
        self.event(round, None, EventKind::Interrupted, text)?;
        Ok(Ending::Interrupted)
    }

    fn event(
        &mut self,
        round: u32,
        cell: Option<usize>,
        kind: EventKind,
        text: String,
    ) -> Result<(), RunError> {
        let event = Event { round, cell, kind, text };
        self.store.add_event(&event)?;
        let about = cell.map(|cell| self.run.plan.cells[cell].label(&self.run.plan.factors));
        match about {
            Some(label) => self.watcher.note(&format!("{label}: {}", event.text)),
            None => self.watcher.note(&event.text),
        }
        self.run.events.push(event);
        Ok(())
    }
}

/// The same accesses for every cell of a round, others in the next.
fn seed_of(plan: &Plan, round: u32, slot: Slot) -> u64 {
    plan.seed.wrapping_add(u64::from(round) << 8).wrapping_add(slot.replica.into())
}

/// What moved between two readings of the settings, in a sentence.
fn moved(before: &[(String, String)], after: &[(String, String)]) -> Option<String> {
    let changes: Vec<String> = before
        .iter()
        .filter_map(|(name, was)| {
            let now =
                after.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
            (now != Some(was)).then(|| format!("{name} from {was} to {}", now.unwrap_or("nothing")))
        })
        .collect();
    (!changes.is_empty()).then(|| {
        format!(
            "a setting moved during the trial: {}; something else sets it too (a udev rule, tuned, \
             another person)",
            changes.join(", ")
        )
    })
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
