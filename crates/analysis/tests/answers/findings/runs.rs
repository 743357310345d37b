//! Runs as the tests need them.

use analysis::{Analysis, FindingKind, findings};
use plan::{Factor, Level, Offer, RawPlan};
use record::{
    CounterSample, Environment, JobMeasurement, Measurement, Outcome, Run, RunState, Second, Trial,
    TrialId, WorldKind,
};
use units::{Bytes, Nanos};

/// Two schedulers in five rounds of 4 s: a thousand writes of 4 KiB a second of a millisecond each.
/// `change` makes of a trial's measurement what the test needs; the second cell is 1.
pub fn run(pattern: &str, change: impl Fn(usize, u32, &mut Measurement)) -> Run {
    run_of(raw(pattern), 5, change)
}

/// What is written of a plan with a pattern.
pub fn raw(pattern: &str) -> RawPlan {
    let mut raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        measure: Some(Nanos::from_secs(4)),
        ..RawPlan::default()
    };
    raw.job.pattern = Some(pattern.parse().unwrap());
    raw.job.block_size = Some(Bytes::from_kib(4));
    raw
}

/// The same of any plan, in so many rounds. Without a factor it is of two schedulers.
pub fn run_of(raw: RawPlan, rounds: u32, change: impl Fn(usize, u32, &mut Measurement)) -> Run {
    let level = |text: &str| Level(text.to_owned());
    let schedulers = ["none", "bfq"].map(level).to_vec();
    let all = match raw.factors.is_empty() {
        true => [(Factor::Scheduler, schedulers)].into(),
        false => [].into(),
    };
    let offer = Offer {
        current: [(Factor::Scheduler, level("none")), (Factor::WbtLatUsec, level("2000"))].into(),
        all,
        default_size: Bytes::from_gib(1),
        ..Offer::default()
    };
    let plan = raw.resolve(&offer, &|_, _| None).unwrap();
    let mut trials = Vec::new();
    for round in 0..rounds {
        let again = plan.baselines().into_iter().map(|cell| (cell, 1));
        for (cell, replica) in (0..plan.cells.len()).map(|cell| (cell, 0)).chain(again) {
            let mut job = JobMeasurement::default();
            let wobble = 1.0 + 0.001 * f64::from((round * 7 + replica * 3 + cell as u32) % 5);
            let count = (4000.0 * wobble) as u64;
            job.writes.operations = count;
            job.writes.bytes = Bytes(count * 4096);
            job.writes.service.record_n(Nanos::from_millis(1), count);
            let second = |at: f64| Second { at, writes: count / 4, ..Second::default() };
            let mut measurement = Measurement {
                span: Nanos::from_secs(4),
                job,
                seconds: [1.0, 2.0, 3.0, 4.0].map(second).to_vec(),
                ..Measurement::default()
            };
            change(cell, round, &mut measurement);
            trials.push(Trial {
                id: TrialId { round, cell, replica },
                started_at: 0,
                applied: Vec::new(),
                outcome: Outcome::Valid(Box::new(measurement)),
            });
        }
    }
    Run {
        name: "test".to_owned(),
        started_at: 0,
        environment: Environment { world: WorldKind::Real, ..Environment::default() },
        plan,
        state: RunState::Done,
        trials,
        events: Vec::new(),
        later: Vec::new(),
    }
}

/// So many times the operations.
pub fn faster(measurement: &mut Measurement, times: f64) {
    let writes = &mut measurement.job.writes;
    writes.operations = (writes.operations as f64 * times) as u64;
}

/// Counters of the second cell, and of the baseline.
pub fn count(
    cell: usize,
    measurement: &mut Measurement,
    second: &[(&str, f64)],
    baseline: &[(&str, f64)],
) {
    let counters = if cell == 1 { second } else { baseline };
    let values = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    measurement.counters = vec![CounterSample { at: 1.0, values }];
}

/// The cells of a finding; none if the run does not show it.
pub fn cells(run: &Run, kind: FindingKind) -> Vec<usize> {
    let all = findings(run, &Analysis::of(run));
    all.into_iter().find(|found| found.kind == kind).map(|found| found.cells).unwrap_or_default()
}

/// Runs that count `name` so in the second cell.
pub fn with(pattern: &str, name: &'static str, value: f64) -> Run {
    run(pattern, |cell, _, m| count(cell, m, &[(name, value)], &[(name, 0.0)]))
}
