//! The loop on a world that measures nothing: what runs, in which order, and what is kept.

use super::*;
use plan::{Factor, Intention, Level, Offer, RawPlan, Refusal};
use record::{Environment, JobMeasurement, Measurement, WorldKind};
use std::cell::Cell;
use units::{Bytes, Nanos};

/// Throughput by scheduler; anything may be made to go wrong.
#[derive(Default)]
struct FakeWorld {
    trials: Cell<u32>,
    /// Interrupts after so many trials.
    interrupt_after: Option<u32>,
    /// The scheduler whose trials fail.
    failing: Option<&'static str>,
    /// The trial (from 1) during which somebody else changes the scheduler.
    meddled: Option<u32>,
    restored: Cell<u32>,
    /// Something stays changed in the end.
    stuck: bool,
    /// Throughput begins at half its rate after a change of settings, and takes so many seconds to get two
    /// thirds of the way to the whole.
    lingers: f64,
    /// The scheduler whose figures wander so far that nothing about it is ever settled.
    wandering: Option<&'static str>,
}

struct FakeSession<'a> {
    world: &'a FakeWorld,
    plan: &'a Plan,
    scheduler: String,
    times: TrialTimes,
    finished: bool,
}

const SCHEDULERS: [(&str, f64); 3] = [("none", 1000.0), ("bfq", 400.0), ("kyber", 1001.0)];

impl World for FakeWorld {
    fn kind(&self) -> WorldKind {
        WorldKind::Real
    }
    fn offer(&self) -> Result<Offer, WorldError> {
        let level = |text: &str| Level(text.to_owned());
        Ok(Offer {
            current: [(Factor::Scheduler, level("none"))].into(),
            all: [(Factor::Scheduler, SCHEDULERS.map(|(name, _)| level(name)).to_vec())].into(),
            default_size: Bytes::from_gib(1),
            ..Offer::default()
        })
    }
    fn refuse(&self, _: &Plan, _: &plan::Cell) -> Option<Refusal> {
        None
    }
    fn intentions(&self, _: &Plan) -> Vec<Intention> {
        Vec::new()
    }
    fn describe(&self, _: &Plan) -> Result<Environment, WorldError> {
        Ok(Environment::default())
    }
    fn prepare<'a>(
        &'a self,
        plan: &'a Plan,
        _: &AtomicBool,
        _: &mut dyn Watcher,
    ) -> Result<Box<dyn Session + 'a>, WorldError> {
        let (scheduler, times) = (String::new(), TrialTimes::of(&plan.timing));
        Ok(Box::new(FakeSession { world: self, plan, scheduler, times, finished: false }))
    }
}

impl Session for FakeSession<'_> {
    fn apply(&mut self, cell: &plan::Cell) -> Result<(), WorldError> {
        self.scheduler = cell.level(&Factor::Scheduler).unwrap().0.clone();
        Ok(())
    }
    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        Ok(vec![("scheduler".to_owned(), self.scheduler.clone())])
    }
    fn set_times(&mut self, times: TrialTimes) {
        self.times = times;
    }
    fn measure(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        _: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let world = self.world;
        world.trials.set(world.trials.get() + 1);
        if world.interrupt_after.is_some_and(|after| world.trials.get() > after) {
            stop.store(true, Ordering::Relaxed);
            return Err(WorldError::Interrupted);
        }
        if world.failing == Some(self.scheduler.as_str()) {
            return Err(WorldError::trial("it always fails"));
        }
        let seed = trial.seed(self.plan.seed);
        let mean = SCHEDULERS.iter().find(|(name, _)| *name == self.scheduler).unwrap().1;
        let noise = 1.0 + 0.002 * ((seed % 7) as f64 - 3.0);
        // Twice as good in one round, half as good in the next.
        let wanders = world.wandering == Some(self.scheduler.as_str());
        let swing = if trial.round.is_multiple_of(2) { 2.0 } else { 0.5 };
        let noise = if wanders { noise * swing } else { noise };
        if world.meddled == Some(world.trials.get()) {
            self.scheduler = "mq-deadline".to_owned();
        }
        let mut job = JobMeasurement::default();
        job.reads.operations = (mean * noise) as u64;
        job.reads.service.record_n(Nanos::from_secs_f64(1.0 / mean), job.reads.operations);
        let step = self.times.tick.as_secs_f64();
        let second = |place: u64| {
            let at = step * (place + 1) as f64;
            let share = 1.0 - 0.5 * (-at / world.lingers.max(1e-9)).exp();
            record::Second { at, reads: (mean * noise * share * step) as u64, ..Default::default() }
        };
        let seconds = (0..self.times.measure.0 / self.times.tick.0.max(1)).map(second).collect();
        Ok(Measurement { span: self.times.measure, seconds, job, ..Measurement::default() })
    }
    fn finish(mut self: Box<Self>) -> Result<(), WorldError> {
        self.finished = true;
        self.world.restored.set(self.world.restored.get() + 1);
        match self.world.stuck {
            true => Err(WorldError::fatal("scheduler of vda is still bfq")),
            false => Ok(()),
        }
    }
}

impl Drop for FakeSession<'_> {
    fn drop(&mut self) {
        assert!(self.finished, "a session that is only dropped reports nothing");
    }
}

struct Silent;

impl Watcher for Silent {}

struct Bench {
    _folder: tempfile::TempDir,
    store: Store,
    run: Run,
    stop: AtomicBool,
}

fn bench(world: &FakeWorld, rounds: Option<u32>, budget: Option<Nanos>) -> Bench {
    let raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        rounds,
        budget,
        warmup: Some(Nanos::ZERO),
        measure: Some(Nanos::from_secs(1)),
        ..RawPlan::default()
    };
    let plan = raw.resolve(&world.offer().unwrap(), &|_, _| None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.spindle");
    let store = Store::create(&path, "run", 0, &Environment::default(), &plan).unwrap();
    let run = store.read().unwrap();
    Bench { _folder: folder, store, run, stop: AtomicBool::new(false) }
}

fn go(world: &FakeWorld, bench: &mut Bench) -> Result<Ending, RunError> {
    let ending = run_rounds(world, &mut bench.run, &mut bench.store, &bench.stop, &mut Silent);
    let mut read = bench.store.read().unwrap();
    let of_file = Analysis::of(&read);
    for group in &of_file.groups {
        let of_run = Analysis::of(&bench.run);
        let same = of_run.groups.iter().find(|it| it.condition == group.condition).unwrap();
        assert_eq!((&same.cells.len(), &same.noise), (&group.cells.len(), &group.noise));
        for (kept, whole) in same.cells.iter().zip(&group.cells) {
            assert_eq!(kept.comparisons, whole.comparisons, "verdicts need no more than is kept");
        }
    }
    read.trials = read.trials.into_iter().map(Trial::for_verdicts).collect();
    assert_eq!(read, bench.run, "the file holds what memory holds");
    ending
}

#[test]
fn every_cell_once_a_round_and_the_baseline_twice() {
    let world = FakeWorld::default();
    let mut bench = bench(&world, Some(4), None);
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.trials.len(), 4 * 4);
    assert_eq!((bench.run.state, world.restored.get()), (RunState::Done, 1));
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let world = FakeWorld { interrupt_after: Some(6), ..FakeWorld::default() };
    let mut bench = bench(&world, Some(4), None);
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Interrupted);
    assert_eq!((bench.run.trials.len(), bench.run.state), (6, RunState::Interrupted));
    let (world, stop) = (FakeWorld::default(), AtomicBool::new(false));
    bench.stop = stop;
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!((bench.run.trials.len(), world.trials.get()), (16, 10));
    let mut slots: Vec<TrialId> = bench.run.trials.iter().map(|trial| trial.id).collect();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), 16, "no slot twice");
}

#[test]
fn with_a_budget_it_stops_once_settled_and_drops_what_lost() {
    let world = FakeWorld::default();
    let budget = Nanos::from_secs(200);
    let mut bench = bench(&world, None, Some(budget));
    assert!(bench.run.plan.timing.rounds > 20);
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Settled);
    assert_eq!(bench.run.rounds(), plan::MIN_ROUNDS);
}

#[test]
fn rounds_are_added_until_what_was_asked_for_is_detectable() {
    let world = FakeWorld { wandering: Some("kyber"), ..FakeWorld::default() };
    let mut bench = bench(&world, Some(6), None);
    let timing = &mut bench.run.plan.timing;
    (timing.budget, timing.detect) = (Some(Nanos::from_secs(3600)), Some(1.0));
    bench.store.set_plan(&bench.run.plan).unwrap();
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    let added = bench.run.events.iter().filter_map(|event| match event.kind {
        EventKind::Extended { rounds, detectable } => Some((rounds, detectable)),
        _ => None,
    });
    let added: Vec<(u32, f64)> = added.collect();
    assert_eq!(added.first().map(|(rounds, _)| *rounds), Some(6), "{added:?}");
    assert!(added.iter().all(|(_, detectable)| *detectable > 1.0), "{added:?}");
    assert!(Analysis::of(&bench.run).detectable().unwrap() <= 1.0);
    assert_eq!(bench.run.plan.timing.rounds, bench.run.rounds());
}

#[test]
fn a_pilot_gives_a_setting_that_lingers_a_longer_warm_up() {
    let piloted = |lingers: f64| {
        let world = FakeWorld { lingers, ..FakeWorld::default() };
        let mut bench = bench(&world, Some(8), None);
        let timing = &mut bench.run.plan.timing;
        (timing.budget, timing.pilot) = (Some(Nanos::from_secs(120)), true);
        bench.store.set_plan(&bench.run.plan).unwrap();
        assert_eq!(go(&world, &mut bench).unwrap(), Ending::Settled);
        let first = &bench.run.events[0].kind;
        assert!(matches!(first, EventKind::Piloted { settled: true, .. }), "{first:?}");
        assert!(!bench.run.plan.timing.pilot);
        bench.run.plan.timing
    };
    assert_eq!(piloted(0.0).warmup, Nanos::from_millis(100));
    let lingering = piloted(0.2).warmup;
    assert!((Nanos::from_millis(500)..Nanos::from_secs(1)).contains(&lingering), "{lingering}");
    // Beyond the middle of a short visit: longer ones tell.
    let slow = piloted(1.0).warmup;
    assert!((Nanos::from_secs(2)..Nanos::from_secs(5)).contains(&slow), "{slow}");
}

#[test]
fn with_a_budget_a_cell_that_lost_runs_no_more_while_another_is_open() {
    let world = FakeWorld { wandering: Some("kyber"), ..FakeWorld::default() };
    let mut bench = bench(&world, None, Some(Nanos::from_secs(60)));
    let rounds = bench.run.plan.timing.rounds;
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.dropped_cells(), [1], "bfq");
    let of = |cell| bench.run.trials.iter().filter(|trial| trial.id.cell == cell).count() as u32;
    assert_eq!((of(1), of(2)), (plan::MIN_ROUNDS, rounds));
}

#[test]
fn a_cell_that_never_works_is_dropped_and_the_rest_goes_on() {
    let world = FakeWorld { failing: Some("bfq"), ..FakeWorld::default() };
    let mut bench = bench(&world, Some(5), None);
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.dropped_cells(), [1]);
    assert_eq!(bench.run.trials.len(), 5 * 3 + 3);
}

#[test]
fn a_baseline_that_never_works_ends_the_run_and_restores() {
    let world = FakeWorld { failing: Some("none"), ..FakeWorld::default() };
    let mut bench = bench(&world, Some(5), None);
    let error = go(&world, &mut bench).unwrap_err();
    assert!(error.to_string().contains("baseline"));
    let last = &error.baseline_failed().unwrap().last;
    assert_eq!(*last, Outcome::Failed { error: "it always fails".to_owned() });
    assert_eq!((world.restored.get(), bench.run.state), (1, RunState::Interrupted));
}

#[test]
fn what_stays_changed_is_told_however_the_run_ended() {
    for failing in [None, Some("none")] {
        let world = FakeWorld { failing, stuck: true, ..FakeWorld::default() };
        let mut bench = bench(&world, Some(5), None);
        let error = go(&world, &mut bench).unwrap_err().to_string();
        assert!(error.contains("vda is still bfq"), "{error}");
        assert_eq!(error.contains("baseline"), failing.is_some(), "{error}");
    }
}

#[test]
fn a_setting_that_moved_voids_the_trial_which_is_repeated() {
    let world = FakeWorld { meddled: Some(3), ..FakeWorld::default() };
    let mut bench = bench(&world, Some(3), None);
    assert_eq!(go(&world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.trials.len(), 3 * 4 + 1);
    match &bench.run.trials[2].outcome {
        Outcome::Void { reason: VoidReason::SettingsMoved { moved } } => {
            assert_eq!(moved[0].after.as_deref(), Some("mq-deadline"));
        }
        other => panic!("{other:?}"),
    }
}
