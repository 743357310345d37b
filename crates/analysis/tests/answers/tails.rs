//! Whether what is said of 99th percentiles can be trusted where cells complete unequal numbers of operations:
//! every latency is drawn, from a distribution whose percentile is known.

use crate::{generated, verdicts::pair};
use analysis::{Analysis, Metric, Verdict};
use plan::Plan;
use random::Stream;
use record::{JobMeasurement, Measurement, Run, TrialId};
use units::Nanos;

/// How latencies are distributed.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The logarithm is normal, with this standard deviation.
    Lognormal(f64),
    /// So many of all take twenty times as long.
    Bimodal(f64),
    /// The share of those that take longer falls with this power.
    Heavy(f64),
    /// Of whole milliseconds.
    Ties,
    /// Every other operation, about, is answered by a cache.
    Cached,
    /// Twenty operations in turn are slow or quick together.
    Bursts,
}

impl Shape {
    fn latencies(self, count: usize, stream: &mut Stream) -> Vec<f64> {
        let mut burst = 0.0;
        let one = |at: usize| match self {
            Shape::Lognormal(deviation) => (deviation * stream.normal()).exp(),
            Shape::Bimodal(share) => {
                let slow = if stream.unit() < share { 20.0 } else { 1.0 };
                slow * (0.2 * stream.normal()).exp()
            }
            Shape::Heavy(power) => (1.0 - stream.unit()).powf(-1.0 / power),
            Shape::Ties => (2.0 * stream.normal().exp()).ceil(),
            Shape::Cached => {
                let slow = if stream.unit() < 0.5 { 100.0 } else { 1.0 };
                slow * (0.2 * stream.normal()).exp()
            }
            Shape::Bursts => {
                if at.is_multiple_of(20) {
                    burst = 0.4 * stream.normal();
                }
                (burst + 0.4 * stream.normal()).exp()
            }
        };
        (0..count).map(one).collect()
    }
}

fn run(plan: Plan, shape: Shape, counts: [usize; 2], faster: f64) -> Run {
    let mut stream = Stream::new(plan.seed, "latencies");
    let mut trials = Vec::new();
    for round in 0..plan.timing.rounds {
        for slot in plan.round_order(round, &[0, 1], &plan.baselines()) {
            let wander = 0.02 * stream.normal();
            let factor = wander.exp() * if slot.cell == 1 { faster } else { 1.0 };
            let mut job = JobMeasurement::default();
            job.reads.operations = counts[slot.cell] as u64;
            for latency in shape.latencies(counts[slot.cell], &mut stream) {
                job.reads.service.record(Nanos::from_secs_f64(1e-3 * factor * latency));
            }
            let measurement =
                Measurement { span: Nanos::from_secs(1), job, ..Measurement::default() };
            let id = TrialId { round, cell: slot.cell, replica: slot.replica };
            trials.push(generated::trial(id, measurement));
        }
    }
    generated::run(plan, trials)
}

/// Of runs in which one cell completes up to fourteen times as many operations, the intervals of p99 hold the truth
/// about as often as they say. Where slow operations come in bursts, 220 of them are eleven bursts: their percentile
/// lies low, and an interval holds the truth in nine of ten.
fn hold(shape: Shape) {
    const RUNS: u64 = 150;
    let mut shares = Vec::new();
    for counts in [[1000, 1000], [3000, 220], [220, 3000]] {
        for rounds in [4, 10] {
            let plan = pair(rounds, false);
            let (mut held, mut wrong) = (0, 0);
            for (seed, truth) in (0..RUNS).flat_map(|seed| [(2 * seed, 1.0), (2 * seed + 1, 0.8)]) {
                let run = run(Plan { seed, ..plan.clone() }, shape, counts, truth);
                let analysis = Analysis::of(&run);
                let found = *analysis.groups[0].cells[0].comparison(Metric::P99).unwrap();
                held += u64::from((found.low..=found.high).contains(&truth));
                let different = matches!(found.verdict, Verdict::Better | Verdict::Worse);
                wrong += u64::from(truth == 1.0 && different);
            }
            let share = held as f64 / (2 * RUNS) as f64;
            println!(
                "{shape:?}, {counts:?}, {rounds} rounds: {share:.3} held, {wrong} of {RUNS} wrong"
            );
            shares.push(share);
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    println!("{shape:?}: {mean:.3} held");
    // Near the edge of a mode an interval is wide, and holds the truth more often.
    let right = match shape {
        Shape::Bursts => 0.88..=0.97,
        Shape::Bimodal(_) => 0.93..=0.985,
        _ => 0.93..=0.97,
    };
    assert!(right.contains(&mean), "{shape:?}: {mean}");
    // A share of 300 runs lies five percent below a true 93 in one of three thousand.
    assert!(shares.iter().all(|share| *share > right.start() - 0.05), "{shape:?}: {shares:?}");
}

#[test]
fn where_latencies_are_lognormal() {
    hold(Shape::Lognormal(0.5));
}

#[test]
fn where_one_in_sixty_is_slow() {
    hold(Shape::Bimodal(1.0 / 60.0));
}

#[test]
fn where_the_tail_is_heavy() {
    hold(Shape::Heavy(1.5));
}

#[test]
fn where_latencies_are_equal() {
    hold(Shape::Ties);
}

#[test]
fn where_a_cache_answers_half() {
    hold(Shape::Cached);
}

#[test]
fn where_slow_operations_come_together() {
    hold(Shape::Bursts);
}
