//! The pilot before the first round: short visits to the cells, from which the trials' timing follows.

use crate::{Session, TrialTimes, Watcher, WorldError, world::Unwatched};
use analysis::{Correction, PilotAnswer, PilotQuestion, Visit, pilot};
use plan::{Plan, Slot, Timing};
use record::{EventKind, JobRole, Measurement, TrialId, Warning};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};
use units::Nanos;

/// How closely a visit is looked at.
const STEP: Nanos = Nanos::from_millis(100);

/// A visit, and the longer one where throughput had not settled by its middle.
const VISITS: [Nanos; 2] = [Nanos::from_secs(2), Nanos::from_secs(10)];

/// The share of a budget that visits of one length may take.
const SHARE: u64 = 12;

/// Visits of one length take no longer than this.
const MAX_TOUR: Nanos = Nanos::from_secs(40);

/// A trial's number beyond all rounds, so that no trial has a pilot's accesses.
const FIRST_ROUND: u32 = 1 << 30;

/// What a pilot found.
pub(crate) struct Piloted {
    pub timing: Timing,
    pub event: EventKind,
}

/// Visits cells in random order and says how the rounds should be. `None` if the user interrupted, or if
/// nothing could be measured: the first round will tell why.
pub(crate) fn run(
    session: &mut dyn Session,
    plan: &Plan,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Option<Piloted>, WorldError> {
    let started = Instant::now();
    let budget = plan.timing.budget.unwrap_or(Nanos::ZERO).saturating_sub(plan.preparation);
    let compared = plan.cells.len() - plan.baselines().len();
    let share = plan.timing.share_of_look(plan.timing.rounds);
    let correction = Correction { cells: compared, share, freedom: 1.0 };
    let mut visits = Vec::new();
    let mut answer: Option<PilotAnswer> = None;
    let question = |spent: Nanos| PilotQuestion {
        step: STEP,
        slots: plan.slots(),
        budget: budget.saturating_sub(spent),
        detect: plan.timing.detect,
        correction,
    };
    // The time of all rounds is not known before: a pilot takes its share of what it says.
    let enough = |visits: &[Visit], spent: Nanos| {
        let Some(answer) = plan.timing.detect.and_then(|_| pilot(visits, question(spent))) else {
            return false;
        };
        let trial = answer.warmup + answer.measure + answer.overhead;
        spent * SHARE >= trial * (plan.slots() as u64 * u64::from(answer.rounds))
    };
    for length in VISITS {
        // Longer visits say anew how long it takes to settle.
        let mut of_length = Vec::new();
        let most = MAX_TOUR.min(budget / SHARE).max(length * 3);
        let first_round = FIRST_ROUND + visits.len() as u32;
        let began = Instant::now();
        let mut tour = Tour { plan, length, most, began, started, first_round, done: 0 };
        tour.visit(session, stop, watcher, &mut of_length, &enough)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let spent: Nanos = started.elapsed().into();
        visits.extend(of_length.iter().cloned());
        answer = pilot(&of_length, question(spent)).or(answer);
        if answer.is_none_or(|answer| answer.settled) {
            break;
        }
    }
    session.set_times(TrialTimes::of(&plan.timing));
    let Some(answer) = answer else { return Ok(None) };
    Ok(Some(Piloted {
        timing: answer.timing(plan.timing),
        event: EventKind::Piloted {
            visits: visits.len() as u32,
            took: started.elapsed().into(),
            detectable: answer.detectable,
            settled: answer.settled,
        },
    }))
}

/// Visits of one length.
struct Tour<'a> {
    plan: &'a Plan,
    length: Nanos,
    most: Nanos,
    began: Instant,
    started: Instant,
    first_round: u32,
    done: u32,
}

impl Tour<'_> {
    /// Each cell once in random order, then again, until the time is over or, after two visits to each, `enough`
    /// says so. What a cell cannot do shows in the first round, and is left out here.
    fn visit(
        &mut self,
        session: &mut dyn Session,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
        visits: &mut Vec<Visit>,
        enough: &dyn Fn(&[Visit], Nanos) -> bool,
    ) -> Result<(), WorldError> {
        session.set_times(TrialTimes { warmup: Nanos::ZERO, measure: self.length, tick: STEP });
        let cells: Vec<usize> = (0..self.plan.cells.len()).collect();
        for turn in 0.. {
            if turn > 1 && enough(visits, self.started.elapsed().into()) {
                return Ok(());
            }
            for Slot { cell, .. } in self.plan.round_order(turn, &cells, &[]) {
                // At the least what was measured, should a session's clock be another.
                let measured = self.length.as_duration() * self.done;
                let spent = self.began.elapsed().max(measured);
                if spent + self.length.as_duration() > self.most.as_duration()
                    || stop.load(Ordering::Relaxed)
                {
                    return Ok(());
                }
                watcher.piloting(spent.as_secs_f64(), self.most.as_secs_f64());
                match self.one(session, cell, stop) {
                    Ok(visit) => visits.push(visit),
                    Err(WorldError::Trial(_) | WorldError::Void(_)) => {}
                    Err(WorldError::Interrupted) => return Ok(()),
                    Err(error) => return Err(error),
                }
                self.done += 1;
            }
        }
        Ok(())
    }

    fn one(
        &self,
        session: &mut dyn Session,
        cell: usize,
        stop: &AtomicBool,
    ) -> Result<Visit, WorldError> {
        let began = self.started.elapsed().into();
        let started = Instant::now();
        let round = self.first_round + self.done;
        session.apply(&self.plan.cells[cell])?;
        let measured =
            session.measure(TrialId { round, cell, replica: 0 }, stop, &mut Unwatched)?;
        let took: Nanos = started.elapsed().into();
        Ok(Visit {
            cell,
            began,
            rates: rates(&measured),
            longest: longest(&measured),
            overhead: took.saturating_sub(measured.span),
        })
    }
}

/// Operations a second in each step; nothing where another program makes the load, which is looked at once a
/// second.
fn rates(measured: &Measurement) -> Vec<f64> {
    let steps = measured.span.0 / STEP.0;
    if (measured.seconds.len() as u64) < steps / 2 {
        return Vec::new();
    }
    let mut before = 0.0;
    let mut rate = |second: &record::Second| {
        let length = second.at - before;
        before = second.at;
        (second.reads + second.writes) as f64 / length.max(1e-9)
    };
    measured.seconds.iter().filter(|second| second.at > 0.0).map(&mut rate).collect()
}

/// The longest latency, of operations that the end cut off as well.
fn longest(measured: &Measurement) -> Nanos {
    let cut_off = measured.warnings.iter().filter_map(|warning| match warning {
        Warning::InFlightLonger { job: JobRole::Measured, age, .. } => Some(*age),
        _ => None,
    });
    cut_off.chain(measured.latency().max()).max().unwrap_or(Nanos::ZERO)
}
