//! Screening in the simulated world: what it finds, what it takes, what it says it left out.

#![allow(clippy::unwrap_used)]

use analysis::{Analysis, ScreenStanding, Screening, Wish, recommend};
use plan::{RawLevel, RawPlan};
use record::{AsideCause, Run, Store, TrialId};
use runner::{Ending, Options, Target, Watcher, run_rounds};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
};
use units::Nanos;

/// Interrupts after so many trials.
struct Interrupt<'a> {
    after: u32,
    seen: u32,
    stop: &'a AtomicBool,
}

impl Watcher for Interrupt<'_> {
    fn trial_ended(&mut self, _: &record::Trial) {
        self.seen += 1;
        self.stop.store(self.seen >= self.after, Ordering::Relaxed);
    }
}

/// 48 cells: 12 settings under 4 conditions.
fn matrix(screen: bool, rounds: u32) -> RawPlan {
    let words = |all: &[&str]| all.iter().map(|it| RawLevel::Word((*it).to_owned())).collect();
    let numbers = |all: &[u64]| all.iter().map(|it| RawLevel::Number(*it)).collect();
    RawPlan {
        target: Some("simulated:hdd-15k".to_owned()),
        screen: Some(screen),
        rounds: Some(rounds),
        warmup: Some(Nanos::from_millis(200)),
        measure: Some(Nanos::from_secs(1)),
        threads: Some(1),
        factors: BTreeMap::from([
            ("scheduler".to_owned(), words(&["none", "mq-deadline", "bfq"])),
            ("nr_requests".to_owned(), numbers(&[4, 16, 64, 128])),
            ("block_size".to_owned(), words(&["4k", "32k"])),
            ("clients".to_owned(), numbers(&[16, 64])),
        ]),
        ..RawPlan::default()
    }
}

/// Runs it, interrupted after so many trials and taken up again.
fn run(raw: &RawPlan, interrupted_after: u32) -> (Run, Ending) {
    let world = Target::parse(raw.target.as_deref().unwrap()).unwrap();
    let world = world.open(&Options::of(raw)).unwrap();
    let plan =
        raw.resolve(&world.offer().unwrap(), &|plan, cell| world.refuse(plan, cell)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let environment = world.describe(&plan).unwrap();
    let path = folder.path().join("run.spindle");
    let mut store = Store::create(&path, "run", 0, &environment, &plan).unwrap();
    let mut run = store.read().unwrap();
    let mut ending = Ending::Interrupted;
    let mut after = interrupted_after;
    while ending == Ending::Interrupted {
        let stop = AtomicBool::new(false);
        let mut watcher = Interrupt { after, seen: 0, stop: &stop };
        ending = run_rounds(world.as_ref(), &mut run, &mut store, &stop, &mut watcher).unwrap();
        after = u32::MAX;
    }
    (store.read().unwrap(), ending)
}

fn truth(run: &Run) -> BTreeMap<String, f64> {
    let log = |cell: usize| {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
        let logs = of_cell.map(|trial| (trial.measurement().unwrap().operations() as f64).ln());
        let logs: Vec<f64> = logs.collect();
        logs.iter().sum::<f64>() / logs.len() as f64
    };
    let mean = |cells: &[Option<usize>]| {
        cells.iter().flatten().map(|cell| log(*cell)).sum::<f64>() / cells.len() as f64
    };
    run.plan.settings().iter().map(|it| (it.label(), mean(&it.cells))).collect()
}

#[test]
fn the_winner_of_a_matrix_is_found_in_a_tenth_of_the_trials() {
    let (screened, ending) = run(&matrix(true, 12), u32::MAX);
    assert_ne!(ending, Ending::Interrupted);
    assert!(screened.trials.len() <= 12 * screened.plan.slots() / 10, "{}", screened.trials.len());
    let raw = RawPlan { seed: Some(77), ..matrix(false, 4) };
    let truth = truth(&run(&raw, u32::MAX).0);
    let analysis = Analysis::of(&screened);
    let screening = analysis.screening.as_ref().unwrap();
    let best = truth.values().copied().fold(f64::NEG_INFINITY, f64::max);
    let lacks = 1.0 - (truth[&screening.leader().label] - best).exp();
    assert!(lacks <= 0.02, "{} lacks {lacks}: {truth:?}", screening.leader().label);

    // Every setting stands somewhere, and what has no trial is counted as such.
    assert_eq!(screening.settings.len(), truth.len());
    let seen: BTreeSet<usize> = screened.trials.iter().map(|trial| trial.id.cell).collect();
    assert_eq!(screening.cells_seen, seen.len());
    assert!(screening.cells_seen < screening.cells);
    for setting in &screening.settings {
        if setting.standing == ScreenStanding::Aside(AsideCause::Worse) {
            assert!(truth[&setting.label] < best - 0.01, "{} was called worse", setting.label);
        }
    }
    // A queue of 4 is the largest effect of this matrix, and it is seen.
    let queue = screening.effects.iter().find(|it| it.factors.len() == 1).unwrap();
    assert_eq!(queue.factors[0].to_string(), "nr_requests");
    assert_eq!(queue.worst[0].as_ref().unwrap().0, "4");
    assert!(queue.seen);
    let recommendation = recommend(&screened, &analysis, &Wish::default());
    if let Some(cell) = recommendation.cell() {
        assert!(screening.leader().cells.contains(&Some(cell)));
    }
}

#[test]
fn a_screening_that_is_taken_up_again_makes_the_same_trials() {
    let (whole, ending) = run(&matrix(true, 12), u32::MAX);
    let first = whole.trials.iter().filter(|trial| trial.id.round == 0).count() as u32;
    for after in [first / 2, first, first + 3] {
        let (resumed, again) = run(&matrix(true, 12), after);
        let ids =
            |run: &Run| run.trials.iter().map(|trial| trial.id).collect::<BTreeSet<TrialId>>();
        assert_eq!(ids(&resumed), ids(&whole), "after {after}");
        assert_eq!(again, ending);
        assert_eq!(resumed.trials.len(), whole.trials.len(), "no trial twice");
        assert_eq!(
            Screening::of(&resumed).unwrap().leader().label,
            Screening::of(&whole).unwrap().leader().label
        );
    }
}
