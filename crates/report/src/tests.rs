//! What a reader sees, as snapshots.

use super::*;
use analysis::{Analysis, decide};
use plan::{Factor, Intention, Level, Offer, RawLevel, RawPlan};
use record::{
    Aspect, Caveat, ClientShare, CounterSample, Environment, Fact, JobMeasurement, Measurement,
    MovedSetting, Outcome, Run, RunState, Session, SessionFactor, Trial, TrialId, VoidReason,
    Warning, WorldKind,
};
use units::{Bytes, Nanos};

/// Four schedulers: one like the baseline, one better, one worse in the tail; with one void trial.
pub(crate) fn run(clients: &[u64]) -> Run {
    let level = |text: &str| Level(text.to_owned());
    let schedulers = ["mq-deadline", "none", "kyber", "bfq"].map(level).to_vec();
    let offer = Offer {
        current: [(Factor::Scheduler, level("mq-deadline"))].into(),
        all: [(Factor::Scheduler, schedulers)].into(),
        default_size: Bytes::from_gib(1),
        ..Offer::default()
    };
    let mut raw = RawPlan { target: Some("/var/lib/mysql".to_owned()), ..RawPlan::default() };
    raw.factors.insert("scheduler".to_owned(), vec![RawLevel::Word("all".to_owned())]);
    if clients.len() > 1 {
        let levels = clients.iter().map(|count| RawLevel::Number(*count)).collect();
        raw.factors.insert("clients".to_owned(), levels);
    }
    let plan = raw.resolve(&offer, &|_, _| None).unwrap();
    let mut trials = Vec::new();
    for round in 0..8 {
        for (cell, levels) in plan.cells.iter().enumerate() {
            let replicas = if levels.baseline.is_none() { 2 } else { 1 };
            for replica in 0..replicas {
                let wobble = 1.0 + 0.004 * f64::from((round * 5 + replica * 3 + cell as u32) % 7);
                let (iops, tail) = match levels.level(&Factor::Scheduler).unwrap().0.as_str() {
                    "none" => (12_000.0, 2.0),
                    "bfq" => (9_000.0, 6.0),
                    _ => (10_000.0, 2.1),
                };
                trials.push(trial(round, cell, replica, iops * wobble, tail * wobble));
            }
        }
    }
    trials[3].outcome = Outcome::Void {
        reason: VoidReason::SettingsMoved {
            moved: vec![MovedSetting {
                name: "scheduler".to_owned(),
                before: "none".to_owned(),
                after: Some("bfq".to_owned()),
                by: None,
            }],
        },
    };
    Run {
        name: "example".to_owned(),
        started_at: 1_709_210_096,
        environment: Environment {
            world: WorldKind::Real,
            kernel: "6.18.0".to_owned(),
            device: "/var/lib/mysql on ext4 on sda (sata, 480 GB)".to_owned(),
            caveats: vec![Caveat::Trap {
                id: "no-barrier".to_owned(),
                title: "Barriers are off".to_owned(),
                evidence: "mounted with nobarrier".to_owned(),
            }],
            ..Environment::default()
        },
        plan,
        state: RunState::Done,
        trials,
        events: Vec::new(),
        later: Vec::new(),
    }
}

fn trial(round: u32, cell: usize, replica: u32, iops: f64, p99_ms: f64) -> Trial {
    let mut job = JobMeasurement::default();
    job.reads.operations = (iops * 5.0) as u64;
    job.reads.bytes = Bytes(job.reads.operations * 16384);
    job.reads.service.record_n(Nanos::from_millis_f64(0.8), job.reads.operations * 98 / 100);
    job.reads.service.record_n(Nanos::from_millis_f64(p99_ms), job.reads.operations * 2 / 100);
    let share = ClientShare { operations: job.reads.operations / 8, bytes: Bytes(0) };
    job.clients = vec![share; 8];
    let counters = [("device.r/s", iops), ("device.%util", 98.5), ("device.await", 0.81)];
    let values = counters.map(|(name, value)| (name.to_owned(), value)).into();
    let measurement = Measurement {
        span: Nanos::from_secs(5),
        job,
        counters: vec![CounterSample { at: 1.0, values }],
        warnings: if round == 2 { vec![Warning::NoHostCounters] } else { Vec::new() },
        ..Measurement::default()
    };
    Trial {
        id: TrialId { round, cell, replica },
        started_at: 0,
        applied: Vec::new(),
        outcome: Outcome::Valid(Box::new(measurement)),
    }
}

fn decided(run: &Run, analysis: &Analysis) -> String {
    let group = &analysis.groups[0];
    sentences::decision(group, &decide(run, group))
}

#[test]
fn a_terminal_report() {
    let run = run(&[8]);
    let text = terminal(&run, &Analysis::of(&run), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_terminal_report_with_conditions() {
    let run = run(&[1, 8]);
    let text = terminal(&run, &Analysis::of(&run), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_markdown_report() {
    let run = run(&[8]);
    insta::assert_snapshot!(markdown(&run, &Analysis::of(&run)));
}

#[test]
fn a_csv_report_has_as_many_cells_in_each_row_as_in_its_header() {
    let run = run(&[1, 8]);
    let text = csv(&run, &Analysis::of(&run));
    let columns = |line: &str| line.split(',').count();
    let header = text.lines().next().unwrap();
    assert!(header.contains("throughput_verdict") && header.contains("device.await"));
    assert_eq!(text.lines().count(), 9);
    assert!(text.lines().all(|line| columns(line) == columns(header)), "{text}");
}

#[test]
fn a_json_report_says_what_to_do() {
    let run = run(&[8]);
    let value = json(&run, &Analysis::of(&run));
    assert_eq!(value["advice"][0]["keep"], false);
    assert_eq!(value["analysis"]["groups"][0]["cells"][0]["summary"]["label"], "none");
    assert_eq!(value["analysis"]["groups"][0]["cells"][2]["comparisons"][0]["verdict"], "worse");
}

#[test]
fn a_plan_in_words() {
    let run = run(&[1, 8]);
    let intentions = [Intention::ChangeSettings {
        factors: vec![Factor::Scheduler],
        devices: vec!["sda".to_owned()],
    }];
    let text = plan_text(&run.plan, WorldKind::Real, (&intentions, &[]), 80);
    insta::assert_snapshot!(text);
}

#[test]
fn a_cell_without_data_is_no_sign_of_no_difference() {
    let mut run = run(&[8]);
    run.trials.retain(|trial| matches!(trial.id.cell, 0 | 2));
    let analysis = Analysis::of(&run);
    let text = decided(&run, &analysis);
    assert!(text.contains("nothing is shown to be better"), "{text}");
}

#[test]
fn keeping_what_one_has_is_an_answer() {
    let mut run = run(&[8]);
    run.plan.cells.truncate(3);
    run.plan.cells.remove(1);
    run.trials.retain(|trial| matches!(trial.id.cell, 0 | 2));
    for trial in &mut run.trials {
        trial.id.cell = trial.id.cell.min(1);
    }
    let analysis = Analysis::of(&run);
    assert_eq!(
        decided(&run, &analysis),
        "Keep scheduler mq-deadline: throughput and p99 latency are the same."
    );
}

#[test]
fn conditions_with_the_same_answer_are_told_once_in_every_form() {
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut run = run(&[1, 4, 16, 64]);
    let forms = |run: &Run| {
        let analysis = Analysis::of(run);
        let answer = document(run, &analysis).answer;
        assert!(answer.iter().all(|it| markdown(run, &analysis).contains(it)), "{answer:?}");
        (answer, flat(terminal(run, &analysis, 80)))
    };
    let (answer, text) = forms(&run);
    let words = "under all 4 conditions: scheduler none is better than scheduler mq-deadline: \
                 throughput +20.0 % to +20.2 % (+";
    assert!(answer.len() == 1 && answer[0].starts_with(&format!("U{}", &words[1..])), "{answer:?}");
    assert!(text.contains(&format!("Verdict {words}")), "{text}");

    // With 64 clients the same scheduler gains nothing.
    for trial in &mut run.trials {
        let cell = &run.plan.cells[trial.id.cell];
        let is = |factor: &Factor, level: &str| cell.level(factor).is_some_and(|it| it.0 == level);
        if is(&Factor::Clients, "64") && is(&Factor::Scheduler, "none") {
            *trial = self::trial(trial.id.round, trial.id.cell, 0, 9_000.0, 6.0);
        }
    }
    let (answer, text) = forms(&run);
    assert_eq!(answer.len(), 2, "{answer:?}");
    assert!(answer[0].starts_with("With 1 to 16 clients: scheduler none is better"), "{answer:?}");
    assert!(text.contains("Verdict with 64 clients: Keep scheduler mq-deadline"), "{text}");
}

#[test]
fn the_background_job_is_in_every_form() {
    let mut run = run(&[]);
    for trial in &mut run.trials {
        if let Outcome::Valid(measurement) = &mut trial.outcome {
            let mut job = JobMeasurement::default();
            job.reads.operations = 700;
            job.reads.bytes = Bytes::from_mib(700);
            measurement.background = Some(job);
        }
    }
    let analysis = Analysis::of(&run);
    let seconds = run.trials[0].measurement().unwrap().span.as_secs_f64();
    let rate = words::count(700.0 / seconds);
    let shown = format!("mq-deadline: {rate} MiB/s; none: {rate} MiB/s");
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(terminal(&run, &analysis, 80)).contains(&shown));
    assert!(markdown(&run, &analysis).contains(&shown));
    let summary = &json(&run, &analysis)["analysis"]["groups"][0]["baseline"];
    assert_eq!(summary["background"]["operations_per_second"], 700.0 / seconds);
    assert!(csv(&run, &analysis).contains("background_iops,background_bytes_per_second"));
}

#[test]
fn a_missing_p99_has_its_reason() {
    let mut run = run(&[]);
    for trial in run.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        if let Outcome::Valid(measurement) = &mut trial.outcome {
            measurement.job.reads.operations = 10;
            measurement.job.writes.operations = 0;
        }
    }
    let text = terminal(&run, &Analysis::of(&run), 80);
    assert!(text.contains("fewer than 600"), "{text}");
}

/// A run on a database in which commits that do not wait are half as fast again.
fn of_commits() -> Run {
    let words = ["1", "2"].map(|it| RawLevel::Word(it.to_owned())).to_vec();
    let raw = RawPlan {
        target: Some("/var/lib/mysql".to_owned()),
        workload: Some("oltp_write_only".parse().unwrap()),
        factors: [("server.innodb_flush_log_at_trx_commit".to_owned(), words)].into(),
        ..RawPlan::default()
    };
    let offer = Offer { default_size: Bytes::from_gib(1), ..Offer::default() };
    let plan = raw.resolve(&offer, &|_, _| None).unwrap();
    let mut trials = Vec::new();
    for round in 0..12 {
        for (cell, replica, iops) in [(0, 0, 1000.0), (0, 1, 1000.0), (1, 0, 1500.0)] {
            let wobble = 1.0 + 0.004 * f64::from((round * 5 + replica * 3) % 7);
            trials.push(trial(round, cell, replica, iops * wobble, 2.0));
        }
    }
    Run { plan, trials, ..run(&[8]) }
}

#[test]
fn what_can_lose_commits_is_told_and_not_recommended() {
    let run = of_commits();
    let text = terminal(&run, &Analysis::of(&run), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "innodb_flush_log_at_trx_commit 2 can lose about a second of commits",
        "Verdict: Keep server.innodb_flush_log_at_trx_commit 1: what is better can lose what",
        "It is no recommendation",
    ] {
        assert!(flat.contains(words), "no '{words}' in {text}");
    }
    let advice = &json(&run, &Analysis::of(&run))["advice"][0];
    assert_eq!((&advice["keep"], &advice["less_durable"]["cell"]), (&true.into(), &1.into()));
    let plan = plan_text(&run.plan, WorldKind::Real, (&[], &[]), 80);
    assert!(plan.contains("innodb_flush_log_at_trx_commit 2 can lose"), "{plan}");
}

#[test]
fn a_preset_is_shown_with_its_flags_and_what_it_leaves_out() {
    let words = |text: &str| RawLevel::Word(text.to_owned());
    let facts = plan::PresetFacts {
        preset: workload::Preset::Aio,
        server: "PostgreSQL 18.6".to_owned(),
        fixed: [].into(),
        sets: vec![
            "default: io_method=worker+io_workers=3".parse().unwrap(),
            "sync: io_method=sync+io_workers=3".parse().unwrap(),
        ],
        left_out: vec![plan::LeftOut {
            set: "io_uring: io_method=io_uring".parse().unwrap(),
            reason: plan::Refusal::Preset {
                limit: workload::PresetLimit::IoUringDisabled { value: 2 },
            },
        }],
    };
    let raw = RawPlan {
        target: Some("/srv".to_owned()),
        workload: Some("oltp_read_only,server=postgresql".parse().unwrap()),
        factors: [("variables".to_owned(), vec![words("mine: io_workers=9+io_method=worker")])]
            .into(),
        ..RawPlan::default()
    };
    let offer = Offer { default_size: Bytes::from_gib(1), runs_servers: true, ..Offer::default() };
    let plan = raw.with_preset(&facts).resolve(&offer, &|_, _| None).unwrap();
    assert!(plan.alternate, "where the server lets it");
    insta::assert_snapshot!(plan_text(&plan, WorldKind::Real, (&[Intention::Alternate], &[]), 80));
}

/// The same run under a newer kernel, a tenth faster, and each of both once more.
fn sessions(kernels: &[&str]) -> Run {
    let mut run = run(&[4]);
    let fact = |value: &str| Fact {
        aspect: Aspect::Mitigation,
        name: "retbleed".to_owned(),
        value: value.to_owned(),
    };
    run.environment.facts = vec![fact("Not affected")];
    for (place, kernel) in kernels.iter().enumerate() {
        let mut trials = run.trials.clone();
        for trial in &mut trials {
            if let Outcome::Valid(measurement) = &mut trial.outcome {
                let factor = if *kernel == "7.2.13" { 1.1 } else { 1.0 } + 0.001 * place as f64;
                let reads = &mut measurement.job.reads;
                reads.operations = (reads.operations as f64 * factor) as u64;
            }
        }
        let newer = *kernel == "7.2.13";
        run.later.push(Session {
            factor: SessionFactor::Kernel,
            started_at: run.started_at + 3600 * (place as i64 + 1),
            environment: Environment {
                kernel: (*kernel).to_owned(),
                facts: vec![fact(if newer { "Vulnerable" } else { "Not affected" })],
                ..run.environment.clone()
            },
            server_program: None,
            trials,
            events: Vec::new(),
        });
    }
    run
}

/// What a report says of sessions together.
fn together(run: &Run) -> String {
    let text = terminal(run, &Analysis::of(run), 80);
    text.split_once("SESSIONS TOGETHER").unwrap().1.to_owned()
}

#[test]
fn sessions_of_two_kernels_once_each_are_open() {
    insta::assert_snapshot!(together(&sessions(&["7.2.13"])));
}

#[test]
fn sessions_of_two_kernels_twice_each_have_a_floor() {
    let run = sessions(&["7.2.13", "6.18.0", "7.2.13"]);
    insta::assert_snapshot!(together(&run));
    let text = markdown(&run, &Analysis::of(&run));
    assert!(text.contains("# example, session 4") && text.contains("## Also changed"), "{text}");
    let rows = csv(&run, &Analysis::of(&run));
    assert!(rows.starts_with("session,kernel,cell,"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + 4 * run.plan.cells.len());
    let value = json(&run, &Analysis::of(&run));
    assert_eq!(value["sessions"].as_array().unwrap().len(), 4);
    assert_eq!(value["together"]["levels"][1]["name"], "7.2.13");
}

#[test]
fn a_recommendation_to_take_and_one_to_keep() {
    let run = run(&[8]);
    let analysis = Analysis::of(&run);
    let text = |wish: &analysis::Wish| {
        recommendation(&run, &analysis, &analysis::recommend(&run, &analysis, wish), 80)
    };
    let taken = text(&analysis::Wish::default());
    assert!(taken.lines().all(|line| line.chars().count() <= 80), "{taken}");
    insta::assert_snapshot!(taken);
    let objective = Some(analysis::Metric::Fairness);
    let kept = text(&analysis::Wish { objective, ..analysis::Wish::default() });
    insta::assert_snapshot!(kept);
}

#[test]
fn a_recommendation_under_conditions_and_a_limit() {
    let run = run(&[1, 8]);
    let analysis = Analysis::of(&run);
    let wish = analysis::Wish { limits: vec!["p99<1ms".parse().unwrap()], ..Default::default() };
    let found = analysis::recommend(&run, &analysis, &wish);
    insta::assert_snapshot!(recommendation(&run, &analysis, &found, 80));
}

#[test]
fn variables_are_written_as_the_server_reads_them() {
    let levels = |all: &[&str]| all.iter().map(|it| RawLevel::Word((*it).to_owned())).collect();
    let of = |workload: &str, factor: &str, all: &[&str]| {
        let raw = RawPlan {
            target: Some("/nowhere".to_owned()),
            workload: Some(workload.parse().unwrap()),
            factors: [(factor.to_owned(), levels(all))].into(),
            ..RawPlan::default()
        };
        let offer = Offer { default_size: Bytes::from_gib(1), ..Offer::default() };
        let plan = raw.resolve(&offer, &|_, _| None).unwrap();
        fragment(&Run { plan, trials: Vec::new(), ..self::run(&[8]) }, 1)
    };
    let mysql = of("tpcc,server=mysql", "server.innodb_io_capacity", &["200", "2000"]).unwrap();
    assert!(mysql.contains("[mysqld]\ninnodb_io_capacity = 2000\n"), "{mysql}");
    let sets = ["small: innodb_io_capacity=100", "odd: innodb_io_capacity=1+log_bin=a #b"];
    let mariadb = of("tpcc,server=mariadb", "variables", &sets).unwrap();
    assert!(
        mariadb.contains("[mariadb]\n") && mariadb.contains("log_bin = \"a #b\"\n"),
        "{mariadb}"
    );
    let postgresql = of("tpcc,server=postgresql", "server.wal_sync_method", &["fsync", "it's"]);
    assert!(postgresql.unwrap().contains("wal_sync_method = 'it''s'\n"));
    assert_eq!(of("tpcc", "filesystem", &["ext4", "xfs"]), None);
}
