//! Screening beside every cell in every round: matrices of 96 cells and more in the simulated world, of which
//! long runs of all cells tell the truth. `cargo bench -p runner --bench screening -- 40 1` takes 40 matrices
//! from seed 1.
//!
//! A matrix is drawn: a device, what its clients do, five queue sizes, two block sizes and three numbers of
//! clients, with all schedulers. Truth is the mean over the conditions of the logarithm of throughput over
//! rounds of every cell, with accesses other than the screening's. Printed: what the screening's winner lacks of
//! the best, and its trials over those of the plan of every cell, twelve rounds.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use analysis::{Analysis, ScreenStanding, Screening};
use plan::{Plan, RawLevel, RawPlan};
use random::Stream;
use record::{AsideCause, Run, Store};
use runner::{Options, Target, Watcher, run_rounds};
use std::{collections::BTreeMap, sync::atomic::AtomicBool};
use units::Nanos;

/// Devices, and the time that a trial measures: hundreds to tens of thousands of operations.
const DEVICES: [(&str, u64); 8] = [
    ("hdd-15k", 1500),
    ("hdd-7200", 2000),
    ("raid1-2x15k", 1500),
    ("array-4x15k", 800),
    ("raid10-8x15k-bbu", 600),
    ("ssd-x25e", 120),
    ("ssd-sata-2018", 100),
    ("ssd-nvme", 100),
];
const PATTERNS: [&str; 4] = ["randread", "randrw:70", "randrw:30", "randwrite"];
const QUEUES: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
const BLOCKS: [&str; 5] = ["4k", "8k", "16k", "32k", "64k"];
/// Rounds that tell the truth.
const TRUTH_ROUNDS: u32 = 6;
/// Rounds of every cell that a plan has (`plan::Timing`).
const PLAN_ROUNDS: usize = 12;
const CLIENTS: [u64; 7] = [1, 4, 8, 16, 32, 64, 128];

struct Silent;
impl Watcher for Silent {}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let matrices = numbers.next().unwrap_or(8);
    let first = numbers.next().unwrap_or(1);
    let (mut within, mut share_most) = (0, 0.0f64);
    println!(
        " seed  matrix                            cells  trials  of all  unseen  lacks  winner"
    );
    for seed in first..first + matrices {
        let (name, raw) =
            (0..).map(|draw| matrix(seed, draw)).find(|(_, raw)| is_large(raw)).unwrap();
        let screened = run(&RawPlan { screen: Some(true), seed: Some(seed), ..raw.clone() });
        let exhaustive = RawPlan {
            screen: Some(false),
            rounds: Some(TRUTH_ROUNDS),
            seed: Some(seed + 1000),
            ..raw
        };
        let truth = truth(&run(&exhaustive));
        let screening = Analysis::of(&screened).screening.unwrap();
        let winner = &screening.leader().label;
        let best = truth.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let lacks = 1.0 - (truth[winner] - best).exp();
        let share = screened.trials.len() as f64 / (PLAN_ROUNDS * screened.plan.slots()) as f64;
        within += u64::from(lacks <= 0.02);
        share_most = share_most.max(share);
        println!(
            "{seed:5}  {name:32} {:6} {:7} {:6.1}% {:7} {:5.1}%  {winner}",
            screened.plan.cells.len(),
            screened.trials.len(),
            100.0 * share,
            screening.cells - screening.cells_seen,
            100.0 * lacks,
        );
        missed(&screening, &truth, best);
    }
    println!(
        "{within} of {matrices} winners within 2 % of the best; {:.1} % of the trials at the most",
        100.0 * share_most
    );
}

/// Settings that the screening calls worse and that are the best.
fn missed(screening: &Screening, truth: &BTreeMap<String, f64>, best: f64) {
    for setting in &screening.settings {
        let ScreenStanding::Aside(cause) = setting.standing else { continue };
        if cause != AsideCause::NoTime && truth[&setting.label] == best {
            println!("       the best, {}, was called {cause:?}", setting.label);
        }
    }
}

/// Whether a device has so many cells: without a scheduler none has more requests than tags.
fn is_large(raw: &RawPlan) -> bool {
    let world =
        Target::parse(raw.target.as_deref().unwrap()).unwrap().open(&Options::of(raw)).unwrap();
    let plan = raw.resolve(&world.offer().unwrap(), &|plan, cell| world.refuse(plan, cell));
    plan.is_ok_and(|plan| plan.cells.len() >= 96)
}

fn matrix(seed: u64, draw: u32) -> (String, RawPlan) {
    let mut stream = Stream::new(seed, &format!("matrix {draw}"));
    let (device, measure_ms) = DEVICES[stream.below(DEVICES.len() as u64) as usize];
    let pattern = PATTERNS[stream.below(PATTERNS.len() as u64) as usize];
    let mut some = |all: usize, wanted: usize| {
        let mut places: Vec<usize> = (0..all).collect();
        stream.shuffle(&mut places);
        places.truncate(wanted);
        places.sort_unstable();
        places
    };
    let number = |all: &[u64], places: Vec<usize>| -> Vec<RawLevel> {
        places.into_iter().map(|place| RawLevel::Number(all[place])).collect()
    };
    let word = |text: &str| RawLevel::Word(text.to_owned());
    let blocks = some(BLOCKS.len(), 2).into_iter().map(|place| word(BLOCKS[place])).collect();
    let raw = RawPlan {
        target: Some(format!("simulated:{device}")),
        warmup: Some(Nanos::from_millis(measure_ms / 5)),
        measure: Some(Nanos::from_millis(measure_ms)),
        threads: Some(1),
        factors: BTreeMap::from([
            ("scheduler".to_owned(), vec![word("all")]),
            ("nr_requests".to_owned(), number(&QUEUES, some(QUEUES.len(), 5))),
            ("block_size".to_owned(), blocks),
            ("clients".to_owned(), number(&CLIENTS, some(CLIENTS.len(), 3))),
            ("pattern".to_owned(), vec![word(pattern)]),
        ]),
        ..RawPlan::default()
    };
    (format!("{device}, {pattern}"), raw)
}

fn run(raw: &RawPlan) -> Run {
    let options = Options::of(raw);
    let target = Target::parse(raw.target.as_deref().unwrap()).unwrap();
    let world = target.open(&options).unwrap();
    let offer = world.offer().unwrap();
    let plan: Plan = raw.resolve(&offer, &|plan, cell| world.refuse(plan, cell)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let environment = world.describe(&plan).unwrap();
    let path = folder.path().join("run.spindle");
    let mut store = Store::create(&path, "run", 0, &environment, &plan).unwrap();
    let mut run = store.read().unwrap();
    let stop = AtomicBool::new(false);
    run_rounds(world.as_ref(), &mut run, &mut store, &stop, &mut Silent).unwrap();
    run
}

/// The mean over the conditions of the logarithm of throughput, by setting.
fn truth(run: &Run) -> BTreeMap<String, f64> {
    let log = |cell: usize| {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
        let rates = of_cell.filter_map(|trial| trial.measurement()).map(|measurement| {
            (measurement.operations().max(1) as f64 / measurement.span.as_secs_f64()).ln()
        });
        let rates: Vec<f64> = rates.collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let settings = run.plan.settings().into_iter().map(|setting| {
        let cells: Vec<usize> = setting.cells.iter().flatten().copied().collect();
        (setting.label(), cells.iter().map(|cell| log(*cell)).sum::<f64>() / cells.len() as f64)
    });
    settings.collect()
}
