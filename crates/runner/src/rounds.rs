//! The loop.

use crate::{
    BaselineFailed, Measured, RunError, Session, TrialTimes, Watcher, World, WorldError,
    error::with_sources,
    pilot::{self, Piloted},
    wall_clock::WallClock,
};
use analysis::{Analysis, Screening};
use plan::{BudgetClock, Plan, Slot, Timing};
use record::{
    DropCause, Event, EventKind, MovedSetting, Outcome, Run, RunState, Store, StoreError, Trial,
    TrialId, VoidReason, WorldKind,
};
use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use units::Nanos;

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

/// A trial that does not count is repeated this often in its round.
const REPEATS: u32 = 1;

/// A cell that failed in so many rounds, and never worked, runs no more.
const MAX_FAILURES: u32 = 3;

/// Runs what is left of `run`, recording into `store`; a fresh run has everything left. Everything is
/// put back before this returns, whatever happened.
///
/// A run may go on for days: `run` keeps of its trials what verdicts are made of
/// ([`Trial::for_verdicts`]). The whole of them is in the file.
pub fn run_rounds(
    world: &dyn World,
    run: &mut Run,
    store: &mut Store,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Ending, RunError> {
    let plan = run.plan.clone();
    let started = Instant::now();
    let before = std::mem::take(&mut run.trials);
    run.trials = before.into_iter().map(Trial::for_verdicts).collect();
    let (ended, restored) = match world.prepare(&plan, stop, watcher) {
        Ok(mut session) => {
            let ended =
                piloted(session.as_mut(), &plan, run, store, stop, watcher).and_then(|timed| {
                    until_detectable(session.as_mut(), timed, run, store, stop, watcher, started)
                });
            (ended, session.finish())
        }
        Err(WorldError::Interrupted) => {
            let event = Event { round: 0, kind: EventKind::Interrupted };
            (record_event(event, &plan, run, store, watcher).map(|()| Ending::Interrupted), Ok(()))
        }
        Err(error) => (Err(error.into()), Ok(())),
    };
    let ended = match ended {
        Err(error) if error.is_given_up() && stop.load(Ordering::Relaxed) => {
            Ok(Ending::Interrupted)
        }
        other => other,
    };
    let state = match &ended {
        Ok(Ending::Complete | Ending::Settled) => RunState::Done,
        Ok(Ending::Interrupted) | Err(_) => RunState::Interrupted,
    };
    run.state = state;
    // A full disk may have ended the run: that the state could not be written must not hide whether
    // everything was put back.
    let stated = store.set_state(state);
    match (ended, restored) {
        (Ok(ending), Ok(())) => match stated {
            // A file that does not say how its run ended can be resumed, too.
            Err(StoreError::Held { .. }) if ending == Ending::Interrupted => Ok(ending),
            stated => Ok(stated.map(|()| ending)?),
        },
        (Ok(_), Err(left)) => Err(left.into()),
        (Err(ended), Ok(())) => Err(ended),
        (Err(RunError::World(ended)), Err(left)) => {
            Err(WorldError::NotRestored { ended: Box::new(ended), left: Box::new(left) }.into())
        }
        (Err(RunError::Store(ended)), Err(left)) => Err(WorldError::NotRestored {
            ended: Box::new(WorldError::fatal(ended)),
            left: Box::new(left),
        }
        .into()),
    }
}

/// The plan with the timing that a pilot chose, where it asks for one.
fn piloted(
    session: &mut dyn Session,
    plan: &Plan,
    run: &mut Run,
    store: &mut Store,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Plan, RunError> {
    // A run that is resumed has its timing.
    if !plan.timing.pilot || !run.trials.is_empty() {
        return Ok(plan.clone());
    }
    let Some(Piloted { timing, event }) = pilot::run(session, plan, stop, watcher)? else {
        return Ok(plan.clone());
    };
    session.set_times(TrialTimes::of(&timing));
    let plan = Plan { timing, ..plan.clone() };
    store.set_plan(&plan)?;
    run.plan = plan.clone();
    record_event(Event { round: 0, kind: event }, &plan, run, store, watcher)?;
    Ok(plan)
}

/// All rounds of a plan, and those that are added to it.
fn until_detectable(
    session: &mut dyn Session,
    mut plan: Plan,
    run: &mut Run,
    store: &mut Store,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
    started: Instant,
) -> Result<Ending, RunError> {
    let before = run.trials.len();
    loop {
        let ending =
            Rounds { session, plan: &plan, run, store, stop, watcher, started, before }.all()?;
        let Some((more, event)) = extended(&plan, run, ending) else { return Ok(ending) };
        store.set_plan(&more)?;
        run.plan = more.clone();
        record_event(event, &more, run, store, watcher)?;
        plan = more;
    }
}

/// The plan with more rounds, where all were run and what was to be detectable is not yet. The number of rounds follows
/// from the noise alone and not from what was found, so that no verdict has been looked at for it. At most so many that
/// the next look is the last one.
fn extended(plan: &Plan, run: &Run, ending: Ending) -> Option<(Plan, Event)> {
    let wanted = plan.timing.detect?;
    let rounds = plan.timing.rounds;
    if ending != Ending::Complete || run.rounds() < rounds {
        return None;
    }
    let detectable = Analysis::of(run).detectable().filter(|it| *it > wanted)?;
    let needed = (f64::from(rounds) * (detectable / wanted).powi(2)).ceil() as u32;
    let timing = Timing { rounds: needed.min(2 * rounds - 1).max(rounds + 1), ..plan.timing };
    let kind = EventKind::Extended { rounds, detectable };
    Some((Plan { timing, ..plan.clone() }, Event { round: rounds - 1, kind }))
}

/// Records an event and tells the watcher.
fn record_event(
    event: Event,
    plan: &Plan,
    run: &mut Run,
    store: &mut Store,
    watcher: &mut dyn Watcher,
) -> Result<(), RunError> {
    store.add_event(&event)?;
    watcher.event(plan, &event);
    run.events.push(event);
    Ok(())
}

struct Rounds<'a> {
    session: &'a mut dyn Session,
    plan: &'a Plan,
    run: &'a mut Run,
    store: &'a mut Store,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn Watcher,
    started: Instant,
    /// Trials that the run had.
    before: usize,
}

impl Rounds<'_> {
    fn all(&mut self) -> Result<Ending, RunError> {
        let plan = self.plan;
        if plan.screens() {
            return self.screen();
        }
        let first = self.run.rounds().saturating_sub(1);
        let looks = plan.timing.looks();
        for round in first..plan.timing.rounds {
            if self.over_budget(round - first) {
                self.event(round, EventKind::BudgetUsed { rounds: round })?;
                return Ok(Ending::Complete);
            }
            if !self.round(round)? {
                self.event(round, EventKind::Interrupted)?;
                return Ok(Ending::Interrupted);
            }
            self.drop_failing(round)?;
            if looks.contains(&(round + 1)) && round + 1 < plan.timing.rounds && self.look(round)? {
                return Ok(Ending::Settled);
            }
        }
        Ok(Ending::Complete)
    }

    /// A fraction of the cells first, then the settings that could win, while there are trials for another
    /// round.
    fn screen(&mut self) -> Result<Ending, RunError> {
        let plan = self.plan;
        for round in self.run.rounds().saturating_sub(1)..plan.timing.rounds {
            if !self.has_room(round) {
                self.event(round, EventKind::BudgetUsed { rounds: round })?;
                return Ok(Ending::Complete);
            }
            if !self.round(round)? {
                self.event(round, EventKind::Interrupted)?;
                return Ok(Ending::Interrupted);
            }
            self.drop_failing(round)?;
            if Screening::of(self.run).is_some_and(|screening| screening.decided) {
                self.event(round, EventKind::Settled { rounds: round + 1 })?;
                return Ok(Ending::Settled);
            }
            for (cause, cells) in Screening::set_aside(self.run) {
                self.event(round, EventKind::SetAside { cells, cause })?;
            }
        }
        Ok(Ending::Complete)
    }

    /// Whether the trials of a screening, and a budget of wall time, allow a round.
    fn has_room(&self, round: u32) -> bool {
        let made: BTreeSet<TrialId> = self.run.trials.iter().map(|trial| trial.id).collect();
        let next = self.trials_of(round).len();
        let timing = &self.plan.timing;
        let within = |budget: Nanos| {
            let trial = self.started.elapsed() / self.trials_here().max(1);
            let over = trial * (self.trials_here() + next as u32);
            over <= budget.as_duration().mul_f64(1.05) + Duration::from_secs(1)
        };
        let wall = timing.budget.filter(|_| timing.budget_clock == BudgetClock::Wall);
        (made.len() + next) as u64 <= timing.trials.unwrap_or(u64::MAX)
            && (self.trials_here() == 0 || wall.is_none_or(within))
    }

    /// Trials made since this program began to.
    fn trials_here(&self) -> u32 {
        (self.run.trials.len() - self.before) as u32
    }

    /// Whether another round like those so far would overrun the budget noticeably.
    fn over_budget(&self, rounds_done: u32) -> bool {
        let timing = &self.plan.timing;
        let Some(budget) = timing.budget else { return false };
        // So many rounds fit a budget of virtual time, whatever the host needs for them.
        if rounds_done == 0 || timing.budget_clock == BudgetClock::Virtual {
            return false;
        }
        let so_far = self.started.elapsed();
        so_far + so_far / rounds_done > budget.as_duration().mul_f64(1.05) + Duration::from_secs(1)
    }

    /// What is left of a round, in order.
    fn trials_of(&self, round: u32) -> Vec<TrialId> {
        let plan = self.plan;
        let dropped = self.run.dropped_cells();
        let left = || (0..plan.cells.len()).filter(|cell| !dropped.contains(cell)).collect();
        let (cells, twice): (Vec<usize>, Vec<usize>) = match plan.screens() {
            false => (left(), plan.baselines()),
            true => (plan.screened_cells(round, &dropped), Vec::new()),
        };
        let done: BTreeSet<TrialId> = self.run.trials.iter().map(|trial| trial.id).collect();
        plan.round_order(round, &cells, &twice)
            .into_iter()
            .map(|Slot { cell, replica }| TrialId { round, cell, replica })
            .filter(|id| !done.contains(id))
            .collect()
    }

    /// Runs what is left of a round; false if the user interrupted it.
    fn round(&mut self, round: u32) -> Result<bool, RunError> {
        let plan = self.plan;
        let left = self.trials_of(round);
        if self.session.concurrency() > 1 {
            return self.round_concurrently(&left);
        }
        for id in left {
            for repeat in 0..=REPEATS {
                self.watcher.trial_begins(plan, id);
                let Some(trial) = self.trial(id)? else { return Ok(false) };
                self.store.add_trial(&trial)?;
                self.watcher.trial_ended(&trial);
                let again = matches!(trial.outcome, Outcome::Void { .. }) && repeat < REPEATS;
                self.run.trials.push(trial.for_verdicts());
                if !again {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Runs trials of a round, several at once, and records them in their order. A trial of a world that
    /// allows this does not depend on when it runs, so none is repeated.
    fn round_concurrently(&mut self, left: &[TrialId]) -> Result<bool, RunError> {
        let Rounds { session, plan, run, store, stop, watcher, .. } = self;
        let started_at = now();
        let mut ended: Result<bool, RunError> = Ok(true);
        let mut take = |at: usize, measured: Measured| -> ControlFlow<()> {
            let id = left[at];
            let (applied, outcome) = match measured {
                Ok((applied, measurement)) => (applied, Outcome::Valid(Box::new(measurement))),
                Err(error) => match outcome_of(error) {
                    Ok(Some(outcome)) => (Vec::new(), outcome),
                    Ok(None) => {
                        ended = Ok(false);
                        return ControlFlow::Break(());
                    }
                    Err(error) => {
                        ended = Err(error.into());
                        return ControlFlow::Break(());
                    }
                },
            };
            watcher.trial_begins(plan, id);
            let trial = Trial { id, started_at, applied, outcome };
            if let Err(error) = store.add_trial(&trial) {
                ended = Err(error.into());
                return ControlFlow::Break(());
            }
            watcher.trial_ended(&trial);
            run.trials.push(trial.for_verdicts());
            ControlFlow::Continue(())
        };
        session.measure_all(left, stop, &mut take);
        if ended.is_ok() && stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        ended
    }

    /// One trial; `None` if the user interrupted it.
    fn trial(&mut self, id: TrialId) -> Result<Option<Trial>, RunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let started_at = now();
        let clock = WallClock::now();
        let mut applied = Vec::new();
        let outcome = match self.measure(id, &mut applied) {
            Ok(Outcome::Valid(mut measurement)) => {
                // The virtual clock is nobody's.
                if self.run.environment.world != WorldKind::Simulated {
                    measurement.warnings.extend(clock.was_set());
                }
                Outcome::Valid(measurement)
            }
            Ok(outcome) => outcome,
            Err(error) => match outcome_of(error)? {
                Some(outcome) => outcome,
                None => return Ok(None),
            },
        };
        Ok(Some(Trial { id, started_at, applied, outcome }))
    }

    fn measure(
        &mut self,
        id: TrialId,
        applied: &mut Vec<(String, String)>,
    ) -> Result<Outcome, WorldError> {
        self.session.apply(&self.plan.cells[id.cell])?;
        *applied = self.session.settings()?;
        let measurement = self.session.measure(id, self.stop, self.watcher)?;
        let mut moved = moved(applied, &self.session.settings()?);
        for setting in &mut moved {
            setting.by = self.session.who_moved(&setting.name);
        }
        Ok(match moved.is_empty() {
            true => Outcome::Valid(Box::new(measurement)),
            false => Outcome::Void { reason: VoidReason::SettingsMoved { moved } },
        })
    }

    /// Drops cells that never work. Without its baseline nothing can be compared, so that a baseline that
    /// never works ends the run.
    fn drop_failing(&mut self, round: u32) -> Result<(), RunError> {
        let dropped = self.run.dropped_cells();
        let mut failing = Vec::new();
        for cell in (0..self.plan.cells.len()).filter(|cell| !dropped.contains(cell)) {
            let of_cell = || self.run.trials.iter().filter(move |trial| trial.id.cell == cell);
            let rounds: BTreeSet<u32> = of_cell().map(|trial| trial.id.round).collect();
            let worked = of_cell().any(|trial| trial.measurement().is_some());
            if !worked && rounds.len() as u32 >= MAX_FAILURES {
                failing.extend(of_cell().next_back().map(|last| (cell, last.outcome.clone())));
            }
        }
        for (cell, last) in failing {
            if self.plan.cells[cell].baseline.is_none() {
                return Err(WorldError::fatal(BaselineFailed { rounds: MAX_FAILURES, last }).into());
            }
            let cause = DropCause::NeverValid { rounds: MAX_FAILURES, last: Box::new(last) };
            self.event(round, EventKind::Dropped { cell, cause })?;
        }
        Ok(())
    }

    /// Looks at the data: drops cells that have clearly lost; true when all is settled.
    fn look(&mut self, round: u32) -> Result<bool, RunError> {
        let analysis = Analysis::of(self.run);
        let rounds = round + 1;
        if analysis.settled() {
            self.event(round, EventKind::Settled { rounds })?;
            return Ok(true);
        }
        for cell in analysis.groups.iter().flat_map(|group| &group.cells) {
            if cell.lost() && !cell.dropped {
                let cause = DropCause::Worse { rounds };
                self.event(round, EventKind::Dropped { cell: cell.summary.cell, cause })?;
            }
        }
        Ok(false)
    }

    fn event(&mut self, round: u32, kind: EventKind) -> Result<(), RunError> {
        record_event(Event { round, kind }, self.plan, self.run, self.store, self.watcher)
    }
}

/// What an error of one trial is to the run: an outcome, none if the user interrupted, or the run's own
/// error.
fn outcome_of(error: WorldError) -> Result<Option<Outcome>, WorldError> {
    match error {
        WorldError::Trial(cause) => Ok(Some(Outcome::Failed { error: with_sources(&*cause) })),
        WorldError::Void(reason) => Ok(Some(Outcome::Void { reason })),
        WorldError::Interrupted => Ok(None),
        other => Err(other),
    }
}

/// Settings that moved between two readings.
fn moved(before: &[(String, String)], after: &[(String, String)]) -> Vec<MovedSetting> {
    let now = |name: &str| after.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    before
        .iter()
        .filter(|(name, was)| now(name) != Some(was))
        .map(|(name, was)| MovedSetting {
            name: name.clone(),
            before: was.clone(),
            after: now(name).cloned(),
            by: None,
        })
        .collect()
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
