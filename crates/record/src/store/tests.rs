use super::*;
use crate::*;
use plan::{Cell, Factor, Level, Plan, RawPlan};
use units::{Bytes, Nanos};

fn to_resume(path: &Path) -> Result<Store, StoreError> {
    Store::open_to_resume(path, Waiting::default())
}

fn plan() -> Plan {
    let mut offer = plan::Offer { default_size: Bytes::from_gib(1), ..plan::Offer::default() };
    let level = |text: &str| Level(text.to_owned());
    offer.all.insert(Factor::Scheduler, vec![level("none"), level("bfq")]);
    offer.current.insert(Factor::Scheduler, level("none"));
    let raw = RawPlan { target: Some("/tmp".to_owned()), ..RawPlan::default() };
    raw.resolve(&offer, &|_: &Plan, _: &Cell| None).unwrap()
}

fn measurement(seed: u64) -> Measurement {
    let mut stream = random::Stream::new(seed, "measurement");
    let mut job = JobMeasurement::default();
    for _ in 0..1000 {
        let latency = Nanos(stream.below(10_000_000));
        job.reads.service.record(latency);
        job.reads.response.get_or_insert_default().record(latency * 2);
        job.reads.operations += 1;
        job.reads.bytes = job.reads.bytes + Bytes::from_kib(4);
    }
    job.clients = vec![ClientShare { operations: 600, bytes: Bytes(600 * 4096) }; 2];
    job.errors.insert("EIO".to_owned(), 3);
    Measurement {
        span: Nanos::from_secs(5),
        background: Some(job.clone()),
        job,
        transactions: None,
        seconds: vec![Second { at: -1.0, reads: 5, ..Second::default() }, Second::default()],
        counters: vec![CounterSample { at: 0.5, values: [("r/s".to_owned(), 12.5)].into() }],
        generator: GeneratorCost { user: Nanos(5), threads: 2, ..GeneratorCost::default() },
        warnings: vec![Warning::GeneratorSaturatesCpus { used: 1.95, cpus: 2 }],
        events: None,
        imported: None,
    }
}

fn trial(round: u32, cell: usize) -> Trial {
    Trial {
        id: TrialId { round, cell, replica: 0 },
        started_at: 1_700_000_000,
        applied: vec![("scheduler".to_owned(), "none".to_owned())],
        outcome: Outcome::Valid(Box::new(measurement(u64::from(round)))),
    }
}

fn environment() -> Environment {
    Environment {
        cpus: 2,
        caveats: vec![Caveat::TraceBadLines { lines: 3 }],
        ..Environment::default()
    }
}

#[test]
fn a_plan_of_a_preset_reads_back_as_written() {
    let facts = plan::PresetFacts {
        preset: workload::Preset::Capacity,
        server: "MySQL 8.4.3".to_owned(),
        fixed: [("log_bin".to_owned(), "binlog".to_owned())].into(),
        sets: vec!["default: a=1+b=2".parse().unwrap(), "more: a=2+b=2".parse().unwrap()],
        left_out: vec![plan::LeftOut {
            set: "torn: c=0".parse().unwrap(),
            reason: plan::Refusal::Preset {
                limit: workload::PresetLimit::Torn {
                    page: Bytes::from_kib(16),
                    limit: workload::AtomicLimit::Above { max: Bytes::from_kib(4) },
                },
            },
        }],
    };
    let raw = RawPlan {
        target: Some("/tmp".to_owned()),
        workload: Some("tpcc,server=mysql".parse().unwrap()),
        ..RawPlan::default()
    };
    let offer = plan::Offer {
        default_size: Bytes::from_gib(1),
        atomic_write: Some(Bytes::from_kib(4)),
        runs_servers: true,
        ..plan::Offer::default()
    };
    let plan = raw.with_preset(&facts).resolve(&offer, &|_: &Plan, _: &Cell| None).unwrap();
    assert!(plan.preset.is_some() && plan.alternate);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    Store::create(&path, "a", 1, &environment(), &plan).unwrap();
    assert_eq!(Store::open(&path).unwrap().read().unwrap().plan, plan);
}

#[test]
fn a_run_reads_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    let failed = Outcome::Failed { error: "no device".to_owned() };
    let moved = MovedSetting {
        name: "scheduler".to_owned(),
        before: "none".to_owned(),
        after: None,
        by: None,
    };
    let void = Outcome::Void { reason: VoidReason::SettingsMoved { moved: vec![moved] } };
    let trials = [
        trial(0, 0),
        Trial { outcome: failed, ..trial(0, 1) },
        Trial { outcome: void, ..trial(1, 1) },
        trial(1, 0),
    ];
    for trial in &trials {
        store.add_trial(trial).unwrap();
    }
    let cause = DropCause::Worse { rounds: 2 };
    let event = Event { round: 1, kind: EventKind::Dropped { cell: 1, cause } };
    store.add_event(&event).unwrap();
    store.set_state(RunState::Done).unwrap();
    drop(store);
    let run = Store::open(&path).unwrap().read().unwrap();
    assert_eq!(run.trials, trials);
    assert_eq!(run.events, [event]);
    assert_eq!((run.state, run.environment, run.plan), (RunState::Done, environment(), plan()));
    assert_eq!(run.started_at, 17);
}

#[test]
fn an_event_log_reads_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    let request = RequestLife {
        process: 3,
        op: 'W',
        start: 1 << 40,
        sectors: 8,
        queued_ns: -5,
        dispatched_ns: 0,
        began_ns: 7,
        done_ns: 1_000_000,
        merged: 2,
    };
    let head = HeadPosition { at_ns: 1_000_000, drive: 1, cylinder: 70_000 };
    let log =
        EventLog { hash: u64::MAX - 1, requests: vec![request], heads: vec![head], cut: true };
    let measured = Measurement { events: Some(log.clone()), ..measurement(0) };
    let with = Trial { outcome: Outcome::Valid(Box::new(measured)), ..trial(0, 1) };
    store.add_trial(&with).unwrap();
    store.add_trial(&trial(1, 1)).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.event_log((0, 1, 0)).unwrap(), Some(log));
    assert_eq!(store.event_log((1, 1, 0)).unwrap(), None);
    assert_eq!(store.event_log((0, 0, 0)).unwrap(), None);
    // The whole run carries the hash alone.
    let run = store.read().unwrap();
    let read = run.trials[0].measurement().unwrap().events.clone().unwrap();
    assert_eq!((read.hash, read.requests.len(), read.cut), (u64::MAX - 1, 0, true));
}

#[test]
fn what_is_there_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    std::fs::write(&path, "mine").unwrap();
    let result = Store::create(&path, "a", 0, &environment(), &plan());
    assert!(matches!(result, Err(StoreError::Exists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn other_files_versions_and_damage_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    assert!(matches!(Store::open(&path), Err(StoreError::Missing { .. })));
    std::fs::write(&path, "not a database, but long enough to look like something").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::NotOurs { .. })));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Empty { .. })));
    assert!(matches!(Store::open(folder.path()), Err(StoreError::NotOurs { .. })));

    std::fs::remove_file(&path).unwrap();
    let mut store = Store::create(&path, "a", 0, &environment(), &plan()).unwrap();
    for round in 0..20 {
        store.add_trial(&trial(round, 0)).unwrap();
    }
    store.connection.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    assert!(matches!(Store::open(&path), Err(StoreError::Version { found: 99, .. })));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA_VERSION).unwrap();
    drop(connection);
    assert!(Store::open(&path).is_ok());

    let whole = std::fs::read(&path).unwrap();
    for share in 1..10 {
        std::fs::write(&path, &whole[..whole.len() * share / 10]).unwrap();
        let message = match Store::open(&path).and_then(|store| store.read()) {
            Ok(_) => panic!("cut to {share}/10 it reads as whole"),
            Err(error) => error.to_string(),
        };
        assert!(message.contains("a.spindle"), "{message}");
    }
}

#[test]
fn only_one_program_writes_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.spindle");
    let store = Store::create(&path, "run", 0, &environment(), &plan()).unwrap();
    let error = to_resume(&path).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    Store::open(&path).unwrap().read().unwrap();
    drop(store);
    let resumed = to_resume(&path).unwrap();
    assert!(matches!(to_resume(&path), Err(StoreError::InUse { .. })));
    drop(resumed);
    to_resume(&path).unwrap();
}

#[test]
fn a_databases_transactions_read_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    let mut payment = TransactionMeasurement { transactions: 2, ..Default::default() };
    payment.service.record_n(Nanos(5000), 2);
    payment.response = Some(payment.service.clone());
    let transactions = Transactions {
        types: [("payment".to_owned(), payment)].into(),
        queries: Queries { reads: 3, writes: 4, others: 5 },
        clients: vec![1; 12],
        retries: [("deadlock (1213)".to_owned(), 1)].into(),
        errors: [("1205".to_owned(), 2)].into(),
        checks: vec![Check { name: "condition 1".into(), holds: true, found: "0 differ".into() }],
    };
    let measurement = Measurement {
        transactions: Some(transactions),
        job: JobMeasurement::default(),
        background: None,
        seconds: vec![Second { at: 1.0, transactions: 7, ..Second::default() }],
        ..measurement(1)
    };
    let written = Trial { outcome: Outcome::Valid(Box::new(measurement)), ..trial(0, 0) };
    store.add_trial(&written).unwrap();
    drop(store);
    let run = Store::open(&path).unwrap().read().unwrap();
    assert_eq!(run.trials, [written]);
    let read = run.trials[0].measurement().unwrap();
    assert_eq!((read.operations(), read.is_response(), read.shares().len()), (2, true, 12));
}

fn session(kernel: &str) -> Session {
    let fact =
        Fact { aspect: Aspect::Microcode, name: "revision".to_owned(), value: "0x2f".to_owned() };
    Session {
        factor: SessionFactor::Kernel,
        started_at: 99,
        environment: Environment {
            kernel: kernel.to_owned(),
            boot_id: "b".to_owned(),
            booted_at: Some(90),
            facts: vec![fact],
            ..environment()
        },
        server_program: Some("/opt/mariadbd".into()),
        trials: Vec::new(),
        events: Vec::new(),
    }
}

#[test]
fn sessions_read_back_apart_from_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    store.add_trial(&trial(0, 0)).unwrap();
    store.set_state(RunState::Done).unwrap();
    assert!(!store.drop_empty_session().unwrap(), "the first stays");
    store.begin_session(&session("7.2")).unwrap();
    store.add_trial(&trial(0, 1)).unwrap();
    store.add_event(&Event { round: 0, kind: EventKind::Interrupted }).unwrap();
    drop(store);
    // Whoever goes on, goes on with the last.
    let mut store = to_resume(&path).unwrap();
    store.add_trial(&trial(1, 0)).unwrap();
    assert!(!store.drop_empty_session().unwrap(), "what was measured stays");
    store.begin_session(&session("7.3")).unwrap();
    store.add_event(&Event { round: 0, kind: EventKind::Interrupted }).unwrap();
    assert!(store.drop_empty_session().unwrap());
    let run = store.read().unwrap();
    assert_eq!((run.trials.len(), run.events.len(), run.later.len()), (1, 0, 1));
    let expected = Session {
        trials: vec![trial(0, 1), trial(1, 0)],
        events: vec![Event { round: 0, kind: EventKind::Interrupted }],
        ..session("7.2")
    };
    assert_eq!(run.later, [expected]);
    let last = run.last_session();
    assert_eq!((last.environment.kernel.as_str(), last.rounds()), ("7.2", 2));
    assert_eq!(last.plan.workload.server_program, Some("/opt/mariadbd".into()));
    assert_eq!(run.sessions()[0].plan, plan(), "the first has the plan's own server");
    let header = store.header().unwrap();
    assert_eq!((header.trials, header.rounds, header.sessions), (3, 3, 2));
}

#[test]
fn a_file_of_version_3_is_read_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    store.add_trial(&trial(0, 0)).unwrap();
    // What versions 4 and 5 added taken away again: a file of version 3 is what is left.
    store
        .connection
        .execute_batch(
            "ALTER TABLE trial DROP COLUMN session; ALTER TABLE event DROP COLUMN session;
             DROP TABLE session; DROP TABLE imported; DROP TABLE imported_figure;
             PRAGMA user_version = 3;",
        )
        .unwrap();
    drop(store);
    let before = Store::open(&path).unwrap().read().unwrap();
    assert_eq!((before.trials.len(), before.later.len()), (1, 0));
    let mut store = to_resume(&path).unwrap();
    assert_eq!(store.read().unwrap(), before);
    store.begin_session(&session("7.2")).unwrap();
    store.add_trial(&trial(0, 1)).unwrap();
    let after = store.read().unwrap();
    assert_eq!((after.trials, after.later[0].trials.len()), (before.trials, 1));
}

#[test]
fn an_imported_trial_reads_back_as_written_and_a_file_of_version_4_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.spindle");
    let mut store = Store::create(&path, "a", 17, &environment(), &plan()).unwrap();
    let quoted = |line| Quoted { line, text: "tps = 1.5".to_owned() };
    let imported = Imported {
        tool: "pgbench 15.2".to_owned(),
        excerpt: Excerpt { file: "x.txt".to_owned(), first_line: 3, last_line: 12 },
        rate: Some(ImportedRate { value: 1.5, unit: RateUnit::TransactionsPerSecond, line: 12 }),
        figures: vec![ImportedFigure {
            subject: "transactions".to_owned(),
            quantity: Quantity::Percentile(99_900),
            value: 1e6,
            line: 4,
        }],
        doubts: vec![Doubt::Misprint {
            stated: 1.0,
            measured: 1.5,
            at: quoted(1),
            against: quoted(12),
        }],
    };
    let measurement = Measurement { imported: Some(imported), ..Measurement::default() };
    let trial = Trial { outcome: Outcome::Valid(Box::new(measurement)), ..trial(0, 0) };
    store.add_trial(&trial).unwrap();
    assert_eq!(store.read().unwrap().trials, [trial]);
    store
        .connection
        .execute_batch("DROP TABLE imported; DROP TABLE imported_figure; PRAGMA user_version = 4;")
        .unwrap();
    drop(store);
    let before = Store::open(&path).unwrap().read().unwrap();
    assert_eq!(before.trials[0].measurement().unwrap().imported, None);
    assert_eq!(to_resume(&path).unwrap().read().unwrap(), before);
}

/// Run files that older versions wrote.
const SAMPLES: [(&str, &[u8]); 2] = [
    ("version 1", include_bytes!("../../samples/version-1.run")),
    ("version 2", include_bytes!("../../samples/version-2.run")),
];

fn warning_text(run: &Run) -> String {
    match &run.trials[0].measurement().unwrap().warnings[0] {
        Warning::Recorded { text } => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_older_versions_are_read_and_resumed() {
    for (version, bytes) in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spindle");
        std::fs::write(&path, bytes).unwrap();
        let before = Store::open(&path).unwrap().read().unwrap();
        assert!(before.trials.len() >= 6, "{version}: {} trials", before.trials.len());
        assert!(warning_text(&before).contains("backlog"), "{version}");
        assert!(matches!(before.environment.caveats[0], Caveat::Recorded { .. }), "{version}");
        assert_eq!(before.dropped_cells(), [1], "{version}");
        let voids = before.trials.iter().filter(|t| matches!(t.outcome, Outcome::Void { .. }));
        assert_eq!(voids.count(), 1, "{version}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{version}: reading writes nothing");

        let mut store = to_resume(&path).unwrap();
        assert_eq!(store.read().unwrap(), before, "{version}: an upgrade changes only the form");
        store.add_trial(&trial(9, 0)).unwrap();
        let event = Event { round: 9, kind: EventKind::Resumed { trials: 7 } };
        store.add_event(&event).unwrap();
        drop(store);
        let after = Store::open(&path).unwrap().read().unwrap();
        assert_eq!(after.trials.last(), Some(&trial(9, 0)), "{version}");
        assert_eq!(after.events.last(), Some(&event), "{version}");
    }
}

/// Later ones, with the trials that each has. That of version 4 is one of version 5 without what that added.
const LATER_SAMPLES: [(i32, usize, &[u8]); 3] = [
    (3, 6, include_bytes!("../../samples/version-3.run")),
    (4, 9, include_bytes!("../../samples/version-4.run")),
    (5, 9, include_bytes!("../../samples/version-5.run")),
];

#[test]
fn kept_files_of_version_3_and_later_are_read_and_resumed() {
    // A version without a sample is one whose files nobody tries.
    assert_eq!(LATER_SAMPLES[LATER_SAMPLES.len() - 1].0, SCHEMA_VERSION);
    for (version, trials, bytes) in LATER_SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spindle");
        std::fs::write(&path, bytes).unwrap();
        let before = Store::open(&path).unwrap().read().unwrap();
        assert_eq!((before.trials.len(), before.later.len()), (trials, 0), "version {version}");
        assert!(before.trials.iter().all(|trial| trial.measurement().is_some()));
        assert!(matches!(before.environment.caveats[0], Caveat::SimulatedModel { .. }));
        assert_eq!(
            std::fs::read(&path).unwrap(),
            bytes,
            "version {version}: reading writes nothing"
        );
        let mut store = to_resume(&path).unwrap();
        assert_eq!(
            store.read().unwrap(),
            before,
            "version {version}: an upgrade changes only the form"
        );
        store.add_trial(&trial(9, 0)).unwrap();
        drop(store);
        let after = Store::open(&path).unwrap().read().unwrap();
        assert_eq!(after.trials.last(), Some(&trial(9, 0)));
    }
}

#[test]
fn a_run_that_goes_on_is_read_on_and_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.spindle");
    let plan = plan();
    let mut store = Store::create(&path, "run", 0, &Environment::default(), &plan).unwrap();
    let mut following = Following::of(&path, Waiting::default()).unwrap();
    assert_eq!(*following.run(), store.read().unwrap());
    let mut round = 0;
    // Less than a batch, a whole one, and more.
    for count in [3, 64, 150, 0] {
        for _ in 0..count {
            store.add_trial(&trial(round, 0)).unwrap();
            round += 1;
        }
        store.add_event(&Event { round, kind: EventKind::Interrupted }).unwrap();
        following.read_on().unwrap();
        assert_eq!(*following.run(), store.read().unwrap());
    }
    store.set_state(RunState::Done).unwrap();
    following.read_on().unwrap();
    assert_eq!(*following.run(), store.read().unwrap());
}

#[test]
fn a_run_with_a_later_session_is_followed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.spindle");
    let mut store = Store::create(&path, "run", 0, &Environment::default(), &plan()).unwrap();
    store.add_trial(&trial(0, 0)).unwrap();
    let mut following = Following::of(&path, Waiting::default()).unwrap();
    let session = Session {
        factor: SessionFactor::Kernel,
        started_at: 1,
        environment: Environment::default(),
        server_program: None,
        trials: Vec::new(),
        events: Vec::new(),
    };
    store.begin_session(&session).unwrap();
    store.add_trial(&trial(0, 1)).unwrap();
    following.read_on().unwrap();
    assert_eq!(following.run().later[0].trials.len(), 1);
    assert_eq!(*following.run(), store.read().unwrap());
}
