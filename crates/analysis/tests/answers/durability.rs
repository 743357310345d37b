//! A decision names no setting that can lose what the baseline cannot, however fast it is.

use crate::generated;
use analysis::{Analysis, Choice, Decision, KeepReason, decide};
use plan::{Offer, RawLevel, RawPlan};
use record::{JobMeasurement, Measurement, Outcome, Run, Trial, TrialId, Warning};
use units::{Bytes, Nanos};

const ROUNDS: u32 = 12;

/// A database run of these factors, in which each cell has so many operations a second by its label.
fn run(factors: &[(&str, &[&str])], rate: &dyn Fn(&str) -> f64) -> Run {
    let levels = |all: &[&str]| all.iter().map(|it| RawLevel::Word((*it).to_owned())).collect();
    let raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        workload: Some("oltp_write_only".parse().unwrap()),
        factors: factors.iter().map(|(name, all)| ((*name).to_owned(), levels(all))).collect(),
        ..RawPlan::default()
    };
    let offer = Offer { default_size: Bytes::from_gib(1), ..Offer::default() };
    let plan = raw.resolve(&offer, &|_, _| None).unwrap();
    let mut trials = Vec::new();
    for round in 0..ROUNDS {
        for (cell, levels) in plan.cells.iter().enumerate() {
            for replica in 0..=u32::from(levels.baseline.is_none()) {
                let wobble = 1.0 + 0.002 * f64::from((round * 5 + replica * 3 + cell as u32) % 7);
                let operations = rate(&levels.label(&plan.factors)) * wobble;
                trials.push(trial(TrialId { round, cell, replica }, operations));
            }
        }
    }
    generated::run(plan, trials)
}

fn trial(id: TrialId, operations: f64) -> Trial {
    let mut job = JobMeasurement::default();
    job.writes.operations = operations as u64;
    job.writes.service.record_n(Nanos::from_secs_f64(1.0 / operations), job.writes.operations);
    let measurement = Measurement { span: Nanos::from_secs(1), job, ..Measurement::default() };
    generated::trial(id, measurement)
}

/// The decision, and the label of the cell that it names.
fn decided(run: &Run) -> (Decision, String) {
    let decision = decide(run, &Analysis::of(run).groups[0]);
    let label = run.plan.cells[decision.cell].label(&run.plan.factors);
    (decision, label)
}

const COMMIT: &str = "server.innodb_flush_log_at_trx_commit";

#[test]
fn a_faster_setting_that_can_lose_commits_is_named_and_not_taken() {
    let two = |label: &str| if label.ends_with(" 2") { 15_000.0 } else { 10_000.0 };
    let run = run(&[(COMMIT, &["1", "2"])], &two);
    let (decision, label) = decided(&run);
    assert_eq!(decision.choice, Choice::Keep(KeepReason::LessDurable));
    assert_eq!(label, "innodb_flush_log_at_trx_commit 1");
    assert_eq!(decision.less_durable.unwrap().cell, 1);
}

#[test]
fn what_is_better_without_the_risk_is_taken_and_the_rest_named_beside_it() {
    let rate = |label: &str| {
        let commits = if label.contains("commit 2") { 1.5 } else { 1.0 };
        10_000.0 * commits * if label.contains("capacity 1000") { 1.1 } else { 1.0 }
    };
    let factors = [(COMMIT, &["1", "2"][..]), ("server.innodb_io_capacity", &["200", "1000"])];
    let run = run(&factors, &rate);
    let (decision, label) = decided(&run);
    assert!(matches!(decision.choice, Choice::Take(_)), "{decision:?}");
    assert_eq!(label, "innodb_flush_log_at_trx_commit 1, innodb_io_capacity 1000");
    let named = &run.plan.cells[decision.less_durable.unwrap().cell];
    assert!(named.label(&run.plan.factors).contains("commit 2"));
}

#[test]
fn against_a_baseline_that_loses_as_much_nothing_is_held_back() {
    let one = |label: &str| if label.ends_with(" 1") { 15_000.0 } else { 10_000.0 };
    let (decision, label) = decided(&run(&[(COMMIT, &["2", "1"])], &one));
    assert!(matches!(decision.choice, Choice::Take(_)), "{decision:?}");
    assert_eq!(label, "innodb_flush_log_at_trx_commit 1");
    assert_eq!(decision.less_durable, None);
    // Both can lose a second; that one of them is faster is news.
    let zero = |label: &str| if label.ends_with(" O_DSYNC") { 15_000.0 } else { 10_000.0 };
    let factors = [(COMMIT, &["2"][..]), ("server.innodb_flush_method", &["fsync", "O_DSYNC"])];
    let (decision, _) = decided(&run(&factors, &zero));
    assert!(matches!(decision.choice, Choice::Take(_)), "{decision:?}");
}

#[test]
fn a_less_durable_setting_that_is_no_better_needs_no_word() {
    let (decision, _) = decided(&run(&[(COMMIT, &["1", "2"])], &|_| 10_000.0));
    assert_eq!(decision.choice, Choice::Keep(KeepReason::NoDifference));
    assert_eq!(decision.less_durable, None);
}

#[test]
fn a_filesystem_without_barriers_is_never_the_decision() {
    let fast = |label: &str| if label.contains("nobarrier") { 15_000.0 } else { 10_000.0 };
    let mut run = run(&[("filesystem", &["ext4", "ext4;mount=nobarrier"])], &fast);
    for trial in run.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        if let Outcome::Valid(measurement) = &mut trial.outcome {
            let option = "nobarrier".to_owned();
            measurement.warnings.push(Warning::UnsafeMountOption { option });
        }
    }
    let (decision, label) = decided(&run);
    assert_eq!(decision.choice, Choice::Keep(KeepReason::LessDurable));
    assert_eq!(label, "ext4");
}
