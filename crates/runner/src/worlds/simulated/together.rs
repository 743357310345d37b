//! Several simulated trials at once. A trial depends on its cell and seed alone, so that when and
//! beside what it runs changes nothing.

use super::{SimulatedWorld, settings_of};
use crate::{Measured, Options, WorldError};
use plan::Plan;
use record::TrialId;
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
};

/// How many trials run at once: what was asked for, or as many as there are processors.
pub(super) fn threads(options: &Options) -> Result<usize, WorldError> {
    match options.threads {
        Some(0) => Err(WorldError::usage("--threads 0: nothing would run; use 1 or more")),
        Some(threads) => Ok(threads as usize),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// Runs `trials` on the world's threads and hands them to `done` in their order.
pub(super) fn measure_all(
    world: &SimulatedWorld,
    plan: &Plan,
    trials: &[TrialId],
    stop: &AtomicBool,
    done: &mut dyn FnMut(usize, Measured) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    let (results, measured) = mpsc::channel::<(usize, Measured)>();
    std::thread::scope(|scope| {
        for _ in 0..world.threads.min(trials.len()) {
            let results = results.clone();
            scope.spawn(|| {
                let results = results;
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trial) = trials.get(at) else { return };
                    if enough.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    // Nobody listens any more once the caller has had enough.
                    let _ = results.send((at, measure(world, plan, *trial, stop)));
                }
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (at, result) in measured {
            waiting.insert(at, result);
            while let Some(result) = waiting.remove(&due) {
                if enough.load(Ordering::Relaxed) {
                    break;
                }
                if done(due, result).is_break() {
                    enough.store(true, Ordering::Relaxed);
                }
                due += 1;
            }
        }
    });
}

fn measure(world: &SimulatedWorld, plan: &Plan, trial: TrialId, stop: &AtomicBool) -> Measured {
    let cell = &plan.cells[trial.cell];
    let applied = settings_of(&world.queue(cell).map_err(WorldError::trial)?)?;
    let measurement = world.simulate(plan, trial, stop, &mut |_| ())?;
    Ok((applied, measurement))
}
