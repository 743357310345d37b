//! Whether verdicts can be trusted: generated runs whose truth is known, with the noise that real
//! machines have, looked at as often as a run with a budget looks.

use crate::generated;
use analysis::{
    Analysis, Correction, Evidence, FindingKind, FleetAnalysis, HostRun, Metric, Verdict, compare,
    findings,
};
use plan::{Factor, Level, Offer, Plan, RawPlan};
use random::Stream;
use record::{Event, EventKind, JobMeasurement, Measurement, Outcome, Run, TrialId};
use units::{Bytes, Nanos};

/// How a machine's figures wander.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Standard deviation of a trial's logarithm.
    white: f64,
    /// Correlation of neighbouring trials (first order), and its share of the noise.
    memory: f64,
    /// Drift of the logarithm over a round.
    drift: f64,
    /// Probability of a trial that something else disturbed, and by how much it loses.
    disturbed: (f64, f64),
}

const MACHINES: [Noise; 4] = [
    Noise { white: 0.01, memory: 0.0, drift: 0.0, disturbed: (0.0, 0.0) },
    Noise { white: 0.02, memory: 0.8, drift: 0.0, disturbed: (0.0, 0.0) },
    Noise { white: 0.03, memory: 0.5, drift: -0.03, disturbed: (0.0, 0.0) },
    Noise { white: 0.03, memory: 0.3, drift: 0.01, disturbed: (0.1, 0.4) },
];

fn plan(cells: usize, rounds: u32) -> Plan {
    let levels: Vec<Level> = (0..=cells).map(|i| Level(format!("s{i}"))).collect();
    let offer = Offer {
        current: [(Factor::Scheduler, levels[0].clone())].into(),
        all: [(Factor::Scheduler, levels)].into(),
        default_size: Bytes::from_gib(1),
        ..Offer::default()
    };
    let raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        measure: Some(Nanos::from_secs(1)),
        warmup: Some(Nanos::ZERO),
        // Room for exactly this many rounds, so that the run is looked at as with a budget.
        budget: Some(Nanos::from_millis(1301 * u64::from(rounds) * (cells as u64 + 2))),
        ..RawPlan::default()
    };
    raw.resolve(&offer, &|_, _| None).unwrap()
}

/// A trial whose throughput and latency are off by `log` from the usual.
fn measurement(log: f64, stream: &mut Stream) -> Measurement {
    let mut job = JobMeasurement::default();
    job.reads.operations = (100_000.0 * log.exp()) as u64;
    let latency = Nanos::from_secs_f64(1e-3 * (-log + 0.05 * stream.normal()).exp());
    job.reads.service.record_n(latency, job.reads.operations);
    Measurement { span: Nanos::from_secs(1), job, ..Measurement::default() }
}

/// A run in which cell `i + 1` is truly better than the baseline by `effects[i]` (in logarithms).
fn run(noise: Noise, effects: &[f64], rounds: u32, seed: u64) -> Run {
    run_of(Plan { seed, ..plan(effects.len(), rounds) }, noise, effects)
}

/// The same of this plan and its seed.
fn run_of(plan: Plan, noise: Noise, effects: &[f64]) -> Run {
    let mut stream = Stream::new(plan.seed, "machine");
    let mut wander = 0.0;
    let mut trials = Vec::new();
    let cells: Vec<usize> = (0..plan.cells.len()).collect();
    let slots = plan.slots() as f64;
    for round in 0..plan.timing.rounds {
        for slot in plan.round_order(round, &cells, &plan.baselines()) {
            let fresh = (1.0 - noise.memory * noise.memory).sqrt();
            wander = noise.memory * wander + fresh * noise.white * stream.normal();
            let mut log = wander + noise.drift * trials.len() as f64 / slots;
            if stream.unit() < noise.disturbed.0 {
                log -= noise.disturbed.1 * stream.unit();
            }
            if slot.cell > 0 {
                log += effects[slot.cell - 1];
            }
            let id = TrialId { round, cell: slot.cell, replica: slot.replica };
            trials.push(generated::trial(id, measurement(log, &mut stream)));
        }
    }
    generated::run(plan, trials)
}

/// The verdicts on throughput and latency, as soon as one says "different" at any look.
fn verdicts(run: &Run) -> Vec<[Verdict; 2]> {
    let mut called: Vec<[Verdict; 2]> = Vec::new();
    for look in run.plan.timing.looks() {
        let trials = run.trials.iter().filter(|trial| trial.id.round < look).cloned().collect();
        let analysis = Analysis::of(&Run { trials, ..run.clone() });
        let now = analysis.groups[0].cells.iter().map(|cell| {
            [Metric::Throughput, Metric::P99].map(|metric| cell.comparison(metric).unwrap().verdict)
        });
        called = match called.is_empty() {
            true => now.collect(),
            false => called
                .iter()
                .zip(now)
                .map(|(before, now)| {
                    [0, 1].map(|i| if different(before[i]) { before[i] } else { now[i] })
                })
                .collect(),
        };
    }
    called
}

fn different(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

#[test]
fn of_a_thousand_comparisons_with_nothing_in_them_few_are_called_different() {
    for (machine, noise) in MACHINES.into_iter().enumerate() {
        // 250 comparisons a machine, 1,000 in all: families of one cell and of four.
        let mut called = [0, 0];
        let mut count = 0;
        for seed in 0..50 {
            for cells in [1, 4] {
                let rounds = 5 + (seed % 3) as u32 * 5;
                let run = run(noise, &vec![0.0; cells], rounds, seed * 7 + cells as u64);
                for verdicts in verdicts(&run) {
                    count += 1;
                    for metric in [0, 1] {
                        called[metric] += usize::from(different(verdicts[metric]));
                    }
                }
            }
        }
        for called in called {
            let share = called as f64 / f64::from(count);
            println!("machine {machine}: {called} of {count} called different");
            assert!(share <= 0.05, "machine {machine}: {share}");
        }
    }
}

/// One cell beside its baseline, in so many rounds that nobody looks at before their end; they differ in a setting that
/// is switched from trial to trial, or in one for which a round has two halves.
pub(crate) fn pair(rounds: u32, slow: bool) -> Plan {
    let (factor, names) = match slow {
        true => ("filesystem", ["ext4", "xfs"]),
        false => ("scheduler", ["none", "bfq"]),
    };
    let offer = Offer {
        current: [(Factor::Scheduler, Level("none".to_owned()))].into(),
        default_size: Bytes::from_gib(1),
        slow: [Factor::Filesystem].into(),
        ..Offer::default()
    };
    let words = names.map(|name| plan::RawLevel::Word(name.to_owned())).to_vec();
    let raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        rounds: Some(rounds),
        factors: [(factor.to_owned(), words)].into(),
        ..RawPlan::default()
    };
    let plan = raw.resolve(&offer, &|_, _| None).unwrap();
    assert_eq!((plan.cells.len(), plan.slow.len()), (2, usize::from(slow)));
    plan
}

/// The stated 95 % are 93 to 97 % of intervals that hold the truth.
fn intervals_hold_the_truth_on(machine: usize) {
    const RUNS: u64 = 1000;
    for (slow, rounds) in [(false, 8), (false, 40), (true, 8), (true, 40)] {
        let plan = pair(rounds, slow);
        let mut held = [0, 0];
        for seed in 0..RUNS {
            let truth = 0.05;
            let run = run_of(Plan { seed, ..plan.clone() }, MACHINES[machine], &[truth]);
            let cell = &Analysis::of(&run).groups[0].cells[0];
            for (held, metric) in held.iter_mut().zip([Metric::Throughput, Metric::P99]) {
                let compared = cell.comparison(metric).unwrap();
                let right = match metric {
                    Metric::P99 => (-truth).exp(),
                    _ => truth.exp(),
                };
                *held += u64::from((compared.low..=compared.high).contains(&right));
            }
        }
        let shares = held.map(|held| held as f64 / RUNS as f64);
        println!("machine {machine}, slow {slow}, {rounds} rounds: {shares:?}");
        assert!(shares.iter().all(|share| (0.93..=0.97).contains(share)), "{shares:?}");
    }
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say_on_a_quiet_machine() {
    intervals_hold_the_truth_on(0);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say_where_trials_depend_on_those_before() {
    intervals_hold_the_truth_on(1);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say_where_figures_drift() {
    intervals_hold_the_truth_on(2);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say_where_trials_are_disturbed() {
    intervals_hold_the_truth_on(3);
}

/// Rounds whose ratios are alike from one to the next: a setting that is better for some minutes, and then not.
/// From ten rounds on that is seen, and intervals are wider.
#[test]
fn intervals_allow_for_rounds_that_are_like_those_before() {
    const RUNS: usize = 2000;
    for (rounds, alike, least) in [
        (5, 0.0, 0.93),
        (8, 0.0, 0.93),
        (12, 0.3, 0.9),
        (12, 0.6, 0.84),
        (16, 0.3, 0.91),
        (16, 0.6, 0.88),
        (40, 0.0, 0.93),
        (40, 0.6, 0.91),
    ] {
        let mut stream = Stream::new(rounds, "alike");
        let mut held = 0;
        for _ in 0..RUNS {
            let mut noise = stream.normal();
            let mut logs = Vec::new();
            for _ in 0..rounds {
                logs.push(0.05 + 0.03 * noise);
                let fresh = (1.0f64 - alike * alike).sqrt();
                noise = alike * noise + fresh * stream.normal();
            }
            let found = compare(Metric::Throughput, &logs, Correction::ALONE, 0.03).unwrap();
            held += usize::from((found.low.ln()..=found.high.ln()).contains(&0.05));
        }
        let share = held as f64 / RUNS as f64;
        println!("{rounds} rounds, correlation {alike}: {share:.3}");
        assert!((least..=0.975).contains(&share), "{rounds} rounds, {alike}: {share}");
    }
}

/// Few rounds do not show that they are alike. What is said for that case holds.
#[test]
fn verdicts_of_few_rounds_that_are_alike_hold_where_they_are_said_to() {
    const RUNS: usize = 4000;
    for rounds in [3, 5, 8, 12, 15] {
        let mut stream = Stream::new(rounds, "few");
        let (mut called, mut if_alike) = (0, 0);
        for _ in 0..RUNS {
            let mut noise = stream.normal();
            let mut logs = Vec::new();
            for _ in 0..rounds {
                logs.push(0.3 * noise);
                noise = 0.5 * noise + 0.75f64.sqrt() * stream.normal();
            }
            let found = compare(Metric::Throughput, &logs, Correction::ALONE, 0.0).unwrap();
            called += usize::from(different(found.verdict));
            if_alike += usize::from(different(found.verdict_if_alike));
        }
        let [called, if_alike] = [called, if_alike].map(|it| it as f64 / RUNS as f64);
        println!("{rounds} rounds: {called:.3} called different, {if_alike:.3} where alike");
        assert!(if_alike <= 0.065, "{rounds} rounds: {if_alike}");
        assert!(called >= 0.07, "{rounds} rounds: {called}");
    }
}

/// Rounds are added until the noise allows a difference to be found: a run that ends because its noise seems small must
/// not be believed that it is.
#[test]
fn intervals_hold_the_truth_where_noise_ends_the_run() {
    const RUNS: u64 = 2000;
    for first in [5, 10] {
        for sigma in [0.007, 0.01, 0.015, 0.02, 0.03] {
            let mut held = 0;
            for seed in 0..RUNS {
                let mut stream = Stream::new(seed, &format!("{first} {sigma}"));
                let mut logs: Vec<f64> = (0..first).map(|_| sigma * stream.normal()).collect();
                let found = loop {
                    let freedom = f64::from(first - 1) / (logs.len() - 1) as f64;
                    let correction = Correction { freedom, ..Correction::ALONE };
                    let found = compare(Metric::Throughput, &logs, correction, 0.03).unwrap();
                    let (rounds, wanted) = (logs.len(), 0.02);
                    if found.detectable <= wanted {
                        break found;
                    }
                    let needed = rounds as f64 * (found.detectable / wanted).powi(2);
                    let needed = (needed.ceil() as usize).min(2 * rounds - 1).max(rounds + 1);
                    logs.extend((rounds..needed).map(|_| sigma * stream.normal()));
                };
                held += u64::from((found.low..=found.high).contains(&1.0));
            }
            let share = held as f64 / RUNS as f64;
            println!("from {first} rounds, noise {sigma}: {share:.3}");
            assert!((0.93..=0.975).contains(&share), "from {first} rounds, noise {sigma}: {share}");
        }
    }
}

/// Trials of 60 operations have no 99th percentile, and 30 rounds of them have.
#[test]
fn short_trials_have_a_percentile_together() {
    let mut called = 0;
    let mut count = 0;
    for (machine, noise) in MACHINES.into_iter().enumerate() {
        for seed in 0..25 {
            let mut run = run(noise, &[0.0, 0.5], 30, seed * 11 + 5);
            let mut stream = Stream::new(seed, "operations");
            for trial in &mut run.trials {
                let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
                let log = (measurement.operations() as f64 / 100_000.0).ln();
                measurement.job.reads = Default::default();
                measurement.job.reads.operations = 60;
                for _ in 0..60 {
                    let latency = 1e-3 * (-log + 0.3 * stream.normal()).exp();
                    measurement.job.reads.service.record(Nanos::from_secs_f64(latency));
                }
            }
            let cells = &Analysis::of(&run).groups[0].cells;
            let p99 = |cell: usize| *cells[cell].comparison(Metric::P99).unwrap();
            assert_eq!(p99(0).rounds, 15, "of two each");
            assert_eq!(p99(1).verdict, Verdict::Better, "machine {machine} seed {seed}");
            called += usize::from(different(p99(0).verdict));
            count += 1;
        }
    }
    println!("{called} of {count} called different");
    assert!(called * 20 <= count, "{called} of {count}");
}

#[test]
fn of_true_differences_of_twice_the_stated_size_nearly_all_are_found() {
    let mut found = 0;
    let mut count = 0;
    for (machine, noise) in MACHINES.into_iter().enumerate() {
        for seed in 0..75 {
            let rounds = 5 + (seed % 3) as u32 * 5;
            // What one run states, another must keep.
            let before = Analysis::of(&run(noise, &[0.0, 0.0], rounds, seed));
            let (_, floor) = before.groups[0].noise[0];
            let stated = floor.detectable.max(before_margin());
            let effect = (2.0 * stated).ln_1p();
            let after = run(noise, &[effect, -effect], rounds, seed + 1_000_000);
            let verdicts = verdicts(&after);
            for (cell, right) in [(0, Verdict::Better), (1, Verdict::Worse)] {
                count += 1;
                found += usize::from(verdicts[cell][0] == right);
                let wrong = different(verdicts[cell][0]) && verdicts[cell][0] != right;
                assert!(!wrong, "machine {machine} seed {seed}: the wrong way round");
            }
        }
    }
    println!("{found} of {count} found");
    assert!(f64::from(found as u32) / f64::from(count) >= 0.95);
}

/// The margin below which a difference is none, which a stated difference never goes below.
fn before_margin() -> f64 {
    plan(1, 5).margin
}

#[test]
fn no_difference_is_a_verdict_when_the_machine_is_quiet() {
    let run = run(MACHINES[0], &[0.0, 0.002], 15, 3);
    assert!(verdicts(&run).iter().all(|cell| cell[0] == Verdict::NoDifference));
}

#[test]
fn hosts_whose_pilots_chose_other_lengths_are_of_one_group() {
    let groups = |piloted: bool| {
        let host = |name: &str, seed: u64, millis: u64| {
            let mut run = run(MACHINES[0], &[0.2], 8, seed);
            run.environment.hostname = name.to_owned();
            run.plan.timing.measure = plan::TrialLength::Time(Nanos::from_millis(millis));
            let took = Nanos::from_secs(15);
            let kind = EventKind::Piloted { visits: 7, took, detectable: 0.04, settled: true };
            run.events.extend(piloted.then_some(Event { round: 0, kind }));
            HostRun::of(&run).unwrap()
        };
        FleetAnalysis::of(&[host("a", 1, 900), host("b", 2, 1100)]).unwrap().groups.len()
    };
    assert_eq!((groups(true), groups(false)), (1, 2));
}

/// A scheduler that starves its clients in some rounds, or in all, is not judged by its good rounds.
#[test]
fn trials_without_an_operation_count() {
    let noise = MACHINES[0];
    let starve = |run: &mut Run, cells: &[usize], rounds: std::ops::Range<u32>| {
        for trial in &mut run.trials {
            if cells.contains(&trial.id.cell) && rounds.contains(&trial.id.round) {
                let nothing = Measurement { span: Nanos::from_secs(1), ..Measurement::default() };
                trial.outcome = Outcome::Valid(Box::new(nothing));
            }
        }
    };
    let verdict = |run: &Run| {
        let analysis = Analysis::of(run);
        analysis.groups[0].cells[0].comparison(Metric::Throughput).map(|found| found.verdict)
    };
    let better = run(noise, &[0.2], 10, 3);
    assert_eq!(verdict(&better), Some(Verdict::Better));
    let mut sometimes = better.clone();
    starve(&mut sometimes, &[1], 0..3);
    assert_eq!(verdict(&sometimes), Some(Verdict::NotSettled));
    let summary = &Analysis::of(&sometimes).groups[0].cells[0].summary;
    let mean = summary.throughput.unwrap().mean;
    assert!((80_000.0..90_000.0).contains(&mean), "seven rounds of ten: {mean}");
    let mut always = better.clone();
    starve(&mut always, &[1], 0..10);
    assert_eq!(verdict(&always), Some(Verdict::Worse));
    let mut nowhere = better;
    starve(&mut nowhere, &[0, 1], 0..10);
    assert_eq!(verdict(&nowhere), None, "nothing against nothing is no 'no difference'");
}

/// All trials of a cell get these counters.
fn count(run: &mut Run, cell: usize, counters: &[(&str, f64)]) {
    for trial in run.trials.iter_mut().filter(|trial| trial.id.cell == cell) {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        let values = counters.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        measurement.counters = vec![record::CounterSample { at: 1.0, values }];
    }
}

#[test]
fn a_sample_of_a_long_time_counts_for_that_time() {
    let mut run = run(MACHINES[0], &[0.0], 5, 3);
    let sample = |at, reads| {
        let values = [("device.r/s".to_owned(), reads)].into();
        record::CounterSample { at, values }
    };
    for trial in &mut run.trials {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        // Warm-up, a busy second, 98 s in which nothing happened, and a busy second.
        measurement.counters =
            vec![sample(0.0, 7.0), sample(1.0, 100.0), sample(99.0, 0.0), sample(100.0, 100.0)];
    }
    let mean = Analysis::of(&run).groups[0].baseline.counters["device.r/s"];
    assert!((mean - 2.0).abs() < 1e-9, "{mean}");
}

#[test]
fn who_waited_for_a_processor_or_a_request_is_named() {
    // A mean latency of a millisecond, 100,000 reads of 4 KiB a second.
    let mut run = run(MACHINES[0], &[0.0], 5, 3);
    for trial in &mut run.trials {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        measurement.job.reads.bytes = Bytes::from_kib(4) * measurement.job.reads.operations;
    }
    let found = |run: &Run, kind: FindingKind| {
        findings(run, &Analysis::of(run))
            .into_iter()
            .find(|found| found.kind == kind)
            .map(|found| (found.cells, found.evidence))
    };
    count(&mut run, 0, &[("clients.cpu_wait_us", 90.0), ("uring.punted/s", 3e6)]);
    count(&mut run, 1, &[("clients.cpu_wait_us", 200.0), ("uring.punted/s", 1e8)]);
    let (cells, evidence) = found(&run, FindingKind::CpuWait).unwrap();
    assert_eq!(cells, [1]);
    let Evidence::CpuWait { waited_us, .. } = evidence else { panic!("{evidence:?}") };
    assert_eq!(waited_us, 200.0);
    let (cells, evidence) = found(&run, FindingKind::NoFreeRequest).unwrap();
    assert_eq!(cells, [1]);
    let Evidence::Punted { share } = evidence else { panic!("{evidence:?}") };
    assert!((0.235..0.255).contains(&share), "{share}");
    count(&mut run, 1, &[]);
    assert_eq!(found(&run, FindingKind::CpuWait), None, "nothing counted, nothing said");
    assert_eq!(found(&run, FindingKind::NoFreeRequest), None);
}

#[test]
fn a_cache_is_named_only_where_the_counters_can_tell() {
    let mut run = run(MACHINES[0], &[0.0], 5, 3);
    for trial in &mut run.trials {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        measurement.job.reads.bytes = Bytes::from_mib(100);
        let values = [("device.rMB/s", 60.0), ("device.wMB/s", 0.0)];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        measurement.counters = vec![record::CounterSample { at: 1.0, values }];
    }
    let named = |run: &Run| {
        findings(run, &Analysis::of(run)).iter().any(|found| found.kind == FindingKind::Cache)
    };
    assert!(!named(&run), "trials of a second hold one sample, edges and all");
    for trial in &mut run.trials {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        measurement.span = Nanos::from_secs(3);
        measurement.job.reads.bytes = Bytes::from_mib(300);
    }
    assert!(named(&run));
    run.plan.engine = workload::EngineKind::Fio;
    assert!(!named(&run), "fio's own start and end");
}
