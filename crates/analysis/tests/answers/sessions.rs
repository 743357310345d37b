//! Whether sessions are compared honestly: generated runs whose boots differ by a known amount.

use crate::generated;
use analysis::{Metric, SessionAnalysis, Verdict};
use plan::{Factor, Level, Offer, Plan, RawPlan};
use random::Stream;
use record::{
    Aspect, Environment, Fact, JobMeasurement, Measurement, Run, RunState, Session, SessionFactor,
    Trial, TrialId,
};
use units::{Bytes, Nanos};

fn plan() -> Plan {
    let level = |text: &str| Level(text.to_owned());
    let offer = Offer {
        current: [(Factor::Scheduler, level("none"))].into(),
        all: [(Factor::Scheduler, ["none", "bfq"].map(level).to_vec())].into(),
        default_size: Bytes::from_gib(1),
        ..Offer::default()
    };
    let raw = RawPlan {
        target: Some("/nowhere".to_owned()),
        measure: Some(Nanos::from_secs(1)),
        rounds: Some(6),
        ..RawPlan::default()
    };
    raw.resolve(&offer, &|_, _| None).unwrap()
}

/// The trials of a session whose boot adds `boot` to every logarithm, with 1 % of noise a trial.
fn trials(plan: &Plan, boot: f64, stream: &mut Stream) -> Vec<Trial> {
    let mut trials = Vec::new();
    for round in 0..plan.timing.rounds {
        for (cell, replica) in [(0, 0), (1, 0), (0, 1)] {
            let log = boot + 0.01 * stream.normal();
            let mut job = JobMeasurement::default();
            job.reads.operations = (100_000.0 * log.exp()) as u64;
            let latency = Nanos::from_secs_f64(1e-3 * (-log).exp());
            job.reads.service.record_n(latency, job.reads.operations);
            let measurement = Measurement { span: Nanos::from_secs(1), job, ..Default::default() };
            let id = TrialId { round, cell, replica };
            trials.push(generated::trial(id, measurement));
        }
    }
    trials
}

fn environment(kernel: &str, build: &str) -> Environment {
    let fact = Fact {
        aspect: Aspect::KernelBuild,
        name: Fact::KERNEL_BUILD.to_owned(),
        value: build.to_owned(),
    };
    Environment { kernel: kernel.to_owned(), facts: vec![fact], ..Environment::default() }
}

/// A run with a session for each of `boots`: its kernel, and what the boot adds.
fn run(boots: &[(&str, f64)], stream: &mut Stream) -> Run {
    let plan = plan();
    let mut sessions = boots.iter().map(|(kernel, boot)| Session {
        factor: SessionFactor::Kernel,
        started_at: 0,
        environment: environment(kernel, "#1"),
        server_program: None,
        trials: trials(&plan, *boot, stream),
        events: Vec::new(),
    });
    let first = sessions.next().unwrap();
    Run {
        name: "generated".to_owned(),
        started_at: 0,
        environment: first.environment,
        state: RunState::Done,
        trials: first.trials,
        events: Vec::new(),
        later: sessions.collect(),
        plan: plan.clone(),
    }
}

fn verdict(analysis: &SessionAnalysis) -> Verdict {
    analysis.groups[0].cells[0].comparison(1, Metric::Throughput).unwrap().verdict
}

#[test]
fn a_run_of_one_session_has_no_sessions_to_compare() {
    let mut stream = Stream::new(1, "sessions");
    assert_eq!(SessionAnalysis::of(&run(&[("6.12", 0.0)], &mut stream)), None);
}

/// Two kernels that do not differ, on a machine whose boots differ by 5 %: 18 trials of 1 % noise in each
/// session would call nearly every such pair different.
#[test]
fn boots_that_differ_are_not_taken_for_kernels_that_do() {
    let mut stream = Stream::new(2, "boots");
    let (mut called, all) = (0, 400);
    for _ in 0..all {
        let mut boot = || 0.05 * stream.normal();
        let boots = [("6.12", boot()), ("7.2", boot()), ("6.12", boot()), ("7.2", boot())];
        let analysis = SessionAnalysis::of(&run(&boots, &mut stream)).unwrap();
        assert!(!analysis.in_order);
        called += usize::from(matches!(verdict(&analysis), Verdict::Better | Verdict::Worse));
    }
    // Each of the two cells may miss with 2.5 %: of 400, 10 on average, 22 at four standard deviations.
    assert!(called <= 22, "{called} of {all} pairs that do not differ were called different");
}

#[test]
fn kernels_that_differ_by_more_than_boots_do_are_told_apart() {
    let mut stream = Stream::new(3, "kernels");
    let boots: Vec<(&str, f64)> = (0..8)
        .map(|boot| {
            let new = boot % 2 == 1;
            let effect = if new { 0.3 } else { 0.0 };
            (if new { "7.2" } else { "6.12" }, effect + 0.02 * stream.normal())
        })
        .collect();
    let analysis = SessionAnalysis::of(&run(&boots, &mut stream)).unwrap();
    assert_eq!(verdict(&analysis), Verdict::Better);
    let found = analysis.groups[0].cells[0].comparison(1, Metric::Throughput).unwrap();
    assert_eq!(found.sessions, (4, 4));
    assert!((found.low..found.high).contains(&0.3_f64.exp()), "{found:?}");
    assert!(analysis.settled() && analysis.run_once().is_empty());
    // The floor is that of boots, not that of trials: 2 %, where 12 trials of 1 % would make 0.3 %.
    let (_, floor) = analysis.groups[0].floor[0];
    assert_eq!(floor.freedom, 6);
    assert!((0.008..0.04).contains(&floor.session), "{floor:?}");
    assert!((0.002..0.004).contains(&floor.trials), "{floor:?}");
}

#[test]
fn with_one_session_of_each_nothing_is_settled() {
    let mut stream = Stream::new(4, "once");
    let analysis = SessionAnalysis::of(&run(&[("6.12", 0.0), ("7.2", 0.5)], &mut stream)).unwrap();
    assert_eq!(verdict(&analysis), Verdict::NotSettled);
    assert!(analysis.groups[0].floor.is_empty() && !analysis.settled());
    assert_eq!(analysis.run_once(), [0, 1]);
    assert!(analysis.in_order);
}

#[test]
fn the_same_kernel_again_is_no_other_level() {
    let mut stream = Stream::new(5, "again");
    let analysis =
        SessionAnalysis::of(&run(&[("6.12", 0.0), ("6.12", 0.02)], &mut stream)).unwrap();
    assert_eq!(analysis.levels.len(), 1);
    let (_, floor) = analysis.groups[0].floor[0];
    assert_eq!(floor.freedom, 1);
    // Two values that are 0.02 apart have this standard deviation.
    assert!((floor.session - 0.02 / 2.0_f64.sqrt()).abs() < 0.006, "{floor:?}");
    // Built anew under the same release, it is.
    let mut rebuilt = run(&[("6.12", 0.0), ("6.12", 0.02)], &mut stream);
    rebuilt.later[0].environment = environment("6.12", "#2");
    let analysis = SessionAnalysis::of(&rebuilt).unwrap();
    let names: Vec<&str> = analysis.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["6.12 (#1)", "6.12 (#2)"]);
}

#[test]
fn what_else_changed_is_told_and_the_kernel_itself_is_not() {
    let mut stream = Stream::new(6, "else");
    let mut run = run(&[("6.12", 0.0), ("7.2", 0.0)], &mut stream);
    let fact = |aspect, name: &str, value: &str| Fact {
        aspect,
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let mitigation = |value| fact(Aspect::Mitigation, "retbleed", value);
    run.environment.facts.push(mitigation("Not affected"));
    run.environment.settings.push(("nr_requests".to_owned(), "256".to_owned()));
    let later = &mut run.later[0].environment;
    later.facts = vec![
        fact(Aspect::KernelBuild, Fact::KERNEL_BUILD, "#9"),
        fact(Aspect::Package, Fact::KERNEL_PACKAGE, "linux-image-7.2 7.2-1"),
        mitigation("Vulnerable"),
    ];
    later.settings.push(("nr_requests".to_owned(), "64".to_owned()));
    later.settings.push(("async_depth".to_owned(), "64".to_owned()));
    let analysis = SessionAnalysis::of(&run).unwrap();
    assert!(analysis.sessions[0].also_changed.is_empty());
    let told: Vec<(Aspect, &str, Option<&str>, Option<&str>)> = analysis.sessions[1]
        .also_changed
        .iter()
        .map(|it| (it.aspect, it.name.as_str(), it.was.as_deref(), it.is.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (Aspect::Mitigation, "retbleed", Some("Not affected"), Some("Vulnerable")),
            (Aspect::Setting, "async_depth", None, Some("64")),
            (Aspect::Setting, "nr_requests", Some("256"), Some("64")),
        ]
    );
}
