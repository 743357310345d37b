//! The loop on a world that measures nothing: what runs, in which order, and what is kept.

use super::*;
use crate::Live;
use plan::{Cell, Factor, Level, Offer, RawPlan};
use record::{Environment, JobMeasurement, Measurement};
use units::{Bytes, Nanos};

/// Throughput by scheduler; anything may be made to go wrong.
#[derive(Default)]
struct FakeWorld {
    scheduler: String,
    trials: u32,
    /// Interrupts after so many trials.
    interrupt_after: Option<u32>,
    /// The scheduler whose trials fail.
    failing: Option<&'static str>,
    /// The trial (from 1) during which somebody else changes the scheduler.
    meddled: Option<u32>,
    restored: u32,
    /// Something stays changed in the end.
    stuck: bool,
    /// The scheduler whose figures wander so far that nothing about it is ever settled.
    wandering: Option<&'static str>,
}

const SCHEDULERS: [(&str, f64); 3] = [("none", 1000.0), ("bfq", 400.0), ("kyber", 1001.0)];

impl World for FakeWorld {
    fn offer(&mut self) -> Result<Offer, WorldError> {
        let level = |text: &str| Level(text.to_owned());
        Ok(Offer {
            current: [(Factor::Scheduler, level("none"))].into(),
            all: [(Factor::Scheduler, SCHEDULERS.map(|(name, _)| level(name)).to_vec())].into(),
            size_usual: Bytes::from_gib(1),
            ..Offer::default()
        })
    }
    fn refuse(&self, _: &Plan, _: &Cell) -> Option<String> {
        None
    }
    fn intentions(&self, _: &Plan) -> Vec<String> {
        Vec::new()
    }
    fn describe(&mut self, _: &Plan) -> Result<Environment, WorldError> {
        Ok(Environment::default())
    }
    fn prepare(&mut self, _: &Plan, _: &AtomicBool, _: &mut dyn Watcher) -> Result<(), WorldError> {
        Ok(())
    }
    fn apply(&mut self, _: &Plan, cell: &Cell) -> Result<(), WorldError> {
        self.scheduler = cell.level(&Factor::Scheduler).unwrap().0.clone();
        Ok(())
    }
    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        Ok(vec![("scheduler".to_owned(), self.scheduler.clone())])
    }
    fn measure(
        &mut self,
        _: &Plan,
        _: &Cell,
        seed: u64,
        stop: &AtomicBool,
        _: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        self.trials += 1;
        if self.interrupt_after.is_some_and(|after| self.trials > after) {
            stop.store(true, Ordering::Relaxed);
            return Err(WorldError::Interrupted);
        }
        if self.failing == Some(self.scheduler.as_str()) {
            return Err(WorldError::Trial("it always fails".to_owned()));
        }
        let mean = SCHEDULERS.iter().find(|(name, _)| *name == self.scheduler).unwrap().1;
        let noise = 1.0 + 0.002 * ((seed % 7) as f64 - 3.0);
        // Twice as good in one round, half as good in the next.
        let wanders = self.wandering == Some(self.scheduler.as_str());
        let swing = if (seed >> 8).is_multiple_of(2) { 2.0 } else { 0.5 };
        let noise = if wanders { noise * swing } else { noise };
        if self.meddled == Some(self.trials) {
            self.scheduler = "mq-deadline".to_owned();
        }
        let mut job = JobMeasurement::default();
        job.reads.operations = (mean * noise) as u64;
        job.reads.service.record_n(Nanos::from_secs_f64(1.0 / mean), job.reads.operations);
        Ok(Measurement { span: Nanos::from_secs(1), job, ..Measurement::default() })
    }
    fn restore(&mut self) -> Result<(), WorldError> {
        self.restored += 1;
        match self.stuck {
            true => Err(WorldError::Fatal("scheduler of vda is still bfq".to_owned())),
            false => Ok(()),
        }
    }
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Watcher for Notes {
    fn laying_out(&mut self, _: Bytes, _: Bytes) {}
    fn trial_begins(&mut self, _: &Plan, _: u32, _: usize, _: usize, _: usize) {}
    fn live(&mut self, _: &Live) {}
    fn trial_ended(&mut self, _: &Trial) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

struct Bench {
    _folder: tempfile::TempDir,
    store: Store,
    run: Run,
    stop: AtomicBool,
}

fn bench(world: &mut FakeWorld, rounds: Option<u32>, budget: Option<Nanos>) -> Bench {
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

fn go(world: &mut FakeWorld, bench: &mut Bench) -> Result<Ending, RunError> {
    let mut notes = Notes::default();
    let ending = go_on(world, &mut bench.run, &mut bench.store, &bench.stop, &mut notes);
    assert_eq!(bench.store.read().unwrap(), bench.run, "the file holds what memory holds");
    ending
}

#[test]
fn every_cell_once_a_round_and_the_baseline_twice() {
    let mut world = FakeWorld::default();
    let mut bench = bench(&mut world, Some(4), None);
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.trials.len(), 4 * 4);
    assert_eq!((bench.run.state, world.restored), (RunState::Done, 1));
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let mut world = FakeWorld { interrupt_after: Some(6), ..FakeWorld::default() };
    let mut bench = bench(&mut world, Some(4), None);
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Interrupted);
    assert_eq!((bench.run.trials.len(), bench.run.state), (6, RunState::Interrupted));
    let (mut world, stop) = (FakeWorld::default(), AtomicBool::new(false));
    bench.stop = stop;
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!((bench.run.trials.len(), world.trials), (16, 10));
    let mut slots: Vec<_> = bench.run.trials.iter().map(|t| (t.round, t.cell, t.replica)).collect();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), 16, "no slot twice");
}

#[test]
fn with_a_budget_it_stops_once_settled_and_drops_what_lost() {
    let mut world = FakeWorld::default();
    let budget = Nanos::from_secs(200);
    let mut bench = bench(&mut world, None, Some(budget));
    assert!(bench.run.plan.timing.rounds > 20);
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Settled);
    assert_eq!(bench.run.rounds(), plan::ROUNDS_LEAST);
}

#[test]
fn with_a_budget_a_cell_that_lost_runs_no_more_while_another_is_open() {
    let mut world = FakeWorld { wandering: Some("kyber"), ..FakeWorld::default() };
    let mut bench = bench(&mut world, None, Some(Nanos::from_secs(60)));
    let rounds = bench.run.plan.timing.rounds;
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.dropped_cells(), [1], "bfq");
    let of = |cell| bench.run.trials.iter().filter(|trial| trial.cell == cell).count() as u32;
    assert_eq!((of(1), of(2)), (plan::ROUNDS_LEAST, rounds));
}

#[test]
fn a_cell_that_never_works_is_dropped_and_the_rest_goes_on() {
    let mut world = FakeWorld { failing: Some("bfq"), ..FakeWorld::default() };
    let mut bench = bench(&mut world, Some(5), None);
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.dropped_cells(), [1]);
    assert_eq!(bench.run.trials.len(), 5 * 3 + 3);
}

#[test]
fn a_baseline_that_never_works_ends_the_run_and_restores() {
    let mut world = FakeWorld { failing: Some("none"), ..FakeWorld::default() };
    let mut bench = bench(&mut world, Some(5), None);
    let error = go(&mut world, &mut bench).unwrap_err();
    assert!(error.to_string().contains("baseline"));
    assert_eq!((world.restored, bench.run.state), (1, RunState::Interrupted));
}

#[test]
fn what_stays_changed_is_told_however_the_run_ended() {
    for failing in [None, Some("none")] {
        let mut world = FakeWorld { failing, stuck: true, ..FakeWorld::default() };
        let mut bench = bench(&mut world, Some(5), None);
        let error = go(&mut world, &mut bench).unwrap_err().to_string();
        assert!(error.contains("vda is still bfq"), "{error}");
        assert_eq!(error.contains("baseline"), failing.is_some(), "{error}");
    }
}

#[test]
fn a_setting_that_moved_voids_the_trial_which_is_repeated() {
    let mut world = FakeWorld { meddled: Some(3), ..FakeWorld::default() };
    let mut bench = bench(&mut world, Some(3), None);
    assert_eq!(go(&mut world, &mut bench).unwrap(), Ending::Complete);
    assert_eq!(bench.run.trials.len(), 3 * 4 + 1);
    match &bench.run.trials[2].outcome {
        Outcome::Void { reason } => assert!(reason.contains("to mq-deadline"), "{reason}"),
        other => panic!("{other:?}"),
    }
}
