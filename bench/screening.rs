//! Screening beside every cell in every round: matrices of 96 cells and more in the simulated world, of which
//! long runs of all cells tell the truth. `cargo bench -p runner --bench screening -- 40 1` takes 40 matrices
//! from seed 1; with `'ssd-nvme, randwrite'` only those whose name has these words.
//!
//! A matrix is drawn: a device, what its clients do, five queue sizes, two block sizes and three numbers of
//! clients, with all schedulers. Truth is the mean over the conditions of the logarithm of throughput over
//! rounds of every cell, with accesses other than the screening's. Printed: what the screening's winner lacks of
//! the best, with the standard error of that, and its trials over those of the plan of every cell, twelve rounds.

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
    let words: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let matrices = numbers.next().unwrap_or(8);
    let first = numbers.next().unwrap_or(1);
    let wanted = words.iter().find(|word| word.parse::<u64>().is_err());
    let (mut matrices_run, mut within, mut share_most) = (0, 0, 0.0f64);
    println!(
        " seed  matrix                            cells  trials  of all  unseen  lacks  error  winner"
    );
    for seed in first..first + matrices {
        let (name, raw) =
            (0..).map(|draw| matrix(seed, draw)).find(|(_, raw)| is_large(raw)).unwrap();
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
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
        let best = truth.values().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
        let (lacks, error) = lack(&truth[winner], best);
        let share = screened.trials.len() as f64 / (PLAN_ROUNDS * screened.plan.slots()) as f64;
        matrices_run += 1;
        within += u64::from(lacks <= 0.02);
        share_most = share_most.max(share);
        println!(
            "{seed:5}  {name:32} {:6} {:7} {:6.1}% {:7} {:5.1}% {:5.1}%  {winner}",
            screened.plan.cells.len(),
            screened.trials.len(),
            100.0 * share,
            screening.cells - screening.cells_seen,
            100.0 * lacks,
            100.0 * error,
        );
        missed(&screening, &truth, best, lacks > 0.02);
    }
    println!(
        "{within} of {matrices_run} winners within 2 % of the best; {:.1} % of the trials at the most",
        100.0 * share_most
    );
}

/// How the best setting stands in the screening, where it calls it worse, and where its winner is far from it.
fn missed(screening: &Screening, truth: &BTreeMap<String, Vec<f64>>, best: &[f64], is_far: bool) {
    for setting in &screening.settings {
        let (standing, to_leader) = (setting.standing, setting.to_leader);
        let is_called_worse =
            matches!(standing, ScreenStanding::Aside(it) if it != AsideCause::NoTime);
        if truth[&setting.label] == best && (is_called_worse || is_far) {
            println!("       the best, {}: {standing:?}, {to_leader:?}", setting.label);
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

/// The mean over the conditions of the logarithm of throughput, by setting, in each round.
fn truth(run: &Run) -> BTreeMap<String, Vec<f64>> {
    let mut logs: BTreeMap<(usize, u32), f64> = BTreeMap::new();
    for trial in &run.trials {
        let Some(measurement) = trial.measurement() else { continue };
        let rate = measurement.operations().max(1) as f64 / measurement.span.as_secs_f64();
        // The baseline has two trials a round: the first is enough.
        logs.entry((trial.id.cell, trial.id.round)).or_insert_with(|| rate.ln());
    }
    let settings = run.plan.settings().into_iter().map(|setting| {
        let cells: Vec<usize> = setting.cells.iter().flatten().copied().collect();
        let of_round = |round| {
            cells.iter().map(|cell| logs[&(*cell, round)]).sum::<f64>() / cells.len() as f64
        };
        (setting.label(), (0..TRUTH_ROUNDS).map(of_round).collect())
    });
    settings.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a setting lacks of another, and the standard error of that over the rounds.
fn lack(setting: &[f64], best: &[f64]) -> (f64, f64) {
    let by_round: Vec<f64> =
        setting.iter().zip(best).map(|(of_setting, of_best)| of_best - of_setting).collect();
    let middle = mean(&by_round);
    let squares: f64 = by_round.iter().map(|it| (it - middle).powi(2)).sum();
    let rounds = by_round.len() as f64;
    (1.0 - (-middle).exp(), (squares / (rounds * (rounds - 1.0))).sqrt())
}
