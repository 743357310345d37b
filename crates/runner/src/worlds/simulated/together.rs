//! Several simulated trials at once. A trial depends on its cell and seed alone, so that when and
//! beside what it runs changes nothing.

use super::{SimulatedWorld, settings_of};
use crate::{Goon, Measured, Wanted, WorldError};
use plan::{Plan, RawPlan};
use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
};

/// How many trials run at once: what was asked for, or as many as there are processors.
pub(super) fn threads(raw: &RawPlan) -> Result<usize, WorldError> {
    match raw.threads {
        Some(0) => Err(WorldError::Usage("--threads 0: nothing would run; use 1 or more".into())),
        Some(threads) => Ok(threads as usize),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// Runs `trials` on the world's threads and hands them to `done` in their order.
pub(super) fn measure_all(
    world: &SimulatedWorld,
    plan: &Plan,
    trials: &[Wanted],
    stop: &AtomicBool,
    done: &mut dyn FnMut(usize, Measured) -> Goon,
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
                    let Some(wanted) = trials.get(at) else { return };
                    if enough.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    // Nobody listens any more once the caller has had enough.
                    let _ = results.send((at, measure(world, plan, *wanted, stop)));
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

fn measure(world: &SimulatedWorld, plan: &Plan, wanted: Wanted, stop: &AtomicBool) -> Measured {
    let cell = &plan.cells[wanted.cell];
    let applied = settings_of(&world.queue(cell).map_err(WorldError::Trial)?)?;
    let measurement = world.simulate(plan, cell, wanted.seed, stop, &mut |_| ())?;
    Ok((applied, measurement))
}
