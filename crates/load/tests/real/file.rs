//! Our engines on files.

use crate::place::{Trial, directory, laid_out, trial};
use load::{LayOut, LoadError, Target, forget_cached, lay_out};
use record::Warning;
use std::{
    collections::HashSet,
    fs::{self, File},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use units::{Bytes, Nanos};
use workload::{EngineKind, Phase};

const OURS: [EngineKind; 2] = [EngineKind::IoUring, EngineKind::Sync];

#[test]
fn all_that_is_counted_agrees() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(8));
    for engine in OURS {
        for job in [
            "randread",
            "randwrite,sync=buffered",
            "randrw:70,clients=3",
            "read*4,block_size=64KiB,clients=2",
            "write,sync=direct+odsync",
            "randread,clients=2,client_kind=processes",
        ] {
            let measurement = trial(job, engine).run(&target).unwrap();
            let job_measured = &measurement.job;
            let operations = job_measured.operations();
            assert!(operations > 0, "{engine} {job}");
            assert!(job_measured.errors.is_empty(), "{engine} {job}: {:?}", job_measured.errors);
            let parsed: workload::Job = job.parse().unwrap();
            assert_eq!(job_measured.bytes(), parsed.block_size * operations);
            assert_eq!(job_measured.latency().count(), operations);
            assert_eq!(job_measured.clients.len(), parsed.clients as usize);
            let shares: u64 = job_measured.clients.iter().map(|share| share.operations).sum();
            assert_eq!(shares, operations);
            let seconds: u64 = measurement.seconds.iter().map(|s| s.reads + s.writes).sum();
            assert_eq!(seconds, operations, "{engine} {job}");
            assert_eq!(parsed.pattern.reads(), job_measured.reads.operations > 0);
            assert_eq!(parsed.pattern.writes(), job_measured.writes.operations > 0);
            assert_eq!(measurement.generator.threads, parsed.clients);
            let generator = measurement.generator;
            assert!(generator.user + generator.system > Nanos::ZERO);
        }
    }
}

#[test]
fn writes_stay_inside_the_span_and_differ_from_one_another() {
    let directory = directory();
    let path = directory.path().join("file");
    let mark = vec![0xAA; 3 << 20];
    for (engine, job) in [
        (EngineKind::IoUring, "randwrite,block_size=12KiB,depth=8,sync=buffered"),
        (EngineKind::IoUring, "write*3,block_size=12KiB,clients=3,depth=2"),
        (EngineKind::Sync, "write,block_size=12KiB,clients=2"),
        (EngineKind::Sync, "randwrite,block_size=12KiB,client_kind=processes"),
    ] {
        fs::write(&path, &mark).unwrap();
        // A span of 1 MiB: 85 blocks of 12 KiB, and 4 KiB that no whole block fits.
        let span = 1 << 20;
        let whole = 85 * 12 * 1024;
        trial(job, engine).run(&Target::new(&path, Bytes(span))).unwrap();
        let after = fs::read(&path).unwrap();
        assert_eq!(after.len(), mark.len(), "{job}: neither truncated nor extended");
        assert!(after[whole..] == mark[whole..], "{job}: untouched beyond the last whole block");
        let (kept, written): (Vec<&[u8]>, Vec<&[u8]>) = after[..whole]
            .chunks(12 * 1024)
            .partition(|block| block.iter().all(|byte| *byte == 0xAA));
        assert!(written.len() > 20, "{job}: {} blocks written, {} not", written.len(), kept.len());
        let sectors: HashSet<&[u8]> = written.iter().flat_map(|block| block.chunks(512)).collect();
        assert!(!sectors.contains(&mark[..512]), "{job}: blocks are written whole");
        assert_eq!(sectors.len(), written.len() * 24, "{job}: no two sectors alike");
    }
}

#[test]
fn as_many_syncs_as_the_mode_asks() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    for (engine, job, every, in_flight) in [
        (EngineKind::Sync, "randwrite,sync=fsync", 1, 0),
        (EngineKind::IoUring, "randwrite,sync=direct+fdatasync,depth=4", 1, 0),
        (EngineKind::Sync, "randwrite,sync=fdatasync:4", 4, 1),
        // The end may cut off a sync in each of the four operations, and each client has a rest of writes without one.
        (EngineKind::IoUring, "randrw:50,sync=direct+fsync:8,clients=2,depth=2", 8, 5),
    ] {
        let measured = trial(job, engine).run(&target).unwrap().job;
        let (writes, syncs) = (measured.writes.operations, measured.syncs.operations);
        assert!(syncs > 0, "{job}");
        assert!((writes / every).abs_diff(syncs) <= in_flight, "{job}: {writes} and {syncs}");
        assert_eq!(measured.syncs.service.count(), syncs);
        if every == 1 {
            let shortest = |h: &record::Histogram| h.buckets().next().unwrap().0;
            assert!(shortest(&measured.writes.service) >= shortest(&measured.syncs.service));
        }
    }
}

#[test]
fn a_rate_is_offered_and_answered_from_the_intended_start() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    for engine in OURS {
        for rate in ["fixed:400/s", "poisson:400/s"] {
            let job = format!("randread,sync=buffered,clients=2,rate={rate}");
            let trial = Trial { measure: Nanos::from_secs(1), ..trial(&job, engine) };
            let reads = trial.run(&target).unwrap().job.reads;
            // Poisson: a standard deviation of 20.
            assert!((300..=500).contains(&reads.operations), "{rate}: {}", reads.operations);
            let response = reads.response.unwrap();
            assert_eq!(response.count(), reads.service.count());
            assert!(response.mean() >= reads.service.mean());
        }
    }
}

#[test]
fn an_impossible_rate_says_so() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let job = "randread,depth=4,rate=fixed:50000000/s";
    let trial = Trial { measure: Nanos::from_millis(600), ..trial(job, EngineKind::IoUring) };
    let measurement = trial.run(&target).unwrap();
    let backlog =
        measurement.warnings.iter().find(|warning| matches!(warning, Warning::Backlog { .. }));
    assert!(backlog.is_some(), "{:?}", measurement.warnings);
}

#[test]
fn warm_up_has_negative_times_and_is_left_out() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let trial = Trial {
        warmup: Nanos::from_millis(1200),
        measure: Nanos::from_millis(1100),
        ..trial("randread", EngineKind::Sync)
    };
    let mut lives = Vec::new();
    let measurement =
        trial.run_with(&target, &AtomicBool::new(false), &mut |live| lives.push(*live)).unwrap();
    let phases: Vec<Phase> = lives.iter().map(|live| live.phase).collect();
    use Phase::{Measuring, WarmUp};
    assert_eq!(phases, [WarmUp, WarmUp, Measuring, Measuring]);
    assert_eq!(measurement.span, Nanos::from_millis(1100));
    let at: Vec<f64> = measurement.seconds.iter().map(|second| second.at).collect();
    for (at, expected) in at.iter().zip([-1.0, 0.0, 1.0, 1.1]) {
        assert!((at - expected).abs() < 0.09, "{at} is not about {expected}");
    }
    let counted: u64 =
        measurement.seconds.iter().filter(|s| s.at > 0.0).map(|s| s.reads + s.writes).sum();
    assert_eq!(counted, measurement.job.operations());
    assert!(measurement.seconds[1].reads > 0, "warm-up is in the series");
    // The last part is a tenth of a second, in which a busy machine may complete nothing.
    let whole = &lives[..3];
    assert!(whole.iter().all(|live| live.p99 > Nanos::ZERO && live.operations_per_second > 0.0));
}

#[test]
fn stopping_ends_early_and_says_so() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let stop = AtomicBool::new(false);
    let trial = Trial { measure: Nanos::from_secs(60), ..trial("randread", EngineKind::IoUring) };
    let measurement = trial.run_with(&target, &stop, &mut |_| stop.store(true, Relaxed)).unwrap();
    assert!(measurement.span < Nanos::from_secs(5), "{}", measurement.span);
    assert!(measurement.job.operations() > 0);
    assert!(
        measurement.warnings.iter().any(|warning| matches!(warning, Warning::StoppedEarly { .. }))
    );

    let trial = Trial { warmup: Nanos::from_secs(60), ..trial };
    let outcome = trial.run_with(&target, &AtomicBool::new(true), &mut |_| {});
    assert!(matches!(outcome, Err(LoadError::Stopped)), "{outcome:?}");
}

#[test]
fn what_cannot_run_is_refused_before_it_begins() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(1));
    let missing = Target::new(directory.path().join("missing"), Bytes::from_mib(1));
    let too_small = Target::new(&target.path, Bytes::from_mib(2));
    let folder = Target::new(directory.path(), Bytes::from_mib(1));
    for (job, engine, target, part) in [
        ("randread", EngineKind::Sync, &missing, "No such file"),
        ("randread", EngineKind::IoUring, &too_small, "lay the file out first"),
        ("randread", EngineKind::Sync, &folder, "neither a regular file nor a block device"),
        ("randread,depth=2", EngineKind::Sync, &target, "2 clients"),
        ("randread,block_size=2M", EngineKind::Sync, &target, "no room for one block"),
        (
            "randread,block_size=1M,depth=4096,clients=4096",
            EngineKind::IoUring,
            &target,
            "fewer clients",
        ),
    ] {
        let message = trial(job, engine).run(target).unwrap_err().to_string();
        assert!(message.contains(part), "{job}: {message}");
    }
    assert!(!missing.path.exists(), "run creates nothing");
}

#[test]
fn null_needs_no_target_and_says_that_it_limits() {
    let nowhere = Target::new("/nowhere", Bytes::from_mib(1));
    let measurement = trial("randread,depth=16", EngineKind::Null).run(&nowhere).unwrap();
    let rate = measurement.job.operations() as f64 / measurement.span.as_secs_f64();
    assert!(rate > 100_000.0, "{rate} operations a second of nothing");
}

#[test]
fn the_file_that_is_held_is_the_one_that_is_used() {
    let directory = directory();
    let [path, away, victim] = ["file", "away", "victim"].map(|it| directory.path().join(it));
    let size = Bytes::from_mib(2);
    fs::write(&victim, vec![7; size.0 as usize]).unwrap();
    let made = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let target = Target::held(&path, size, made);
    // Before the first byte: laying out goes to what is held, too.
    fs::rename(&path, &away).unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    let never = AtomicBool::new(false);
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    lay_out(&plan, &mut |_| {}, &never).unwrap();
    let fio = std::process::Command::new("fio").arg("--version").output().is_ok();
    for (engine, job) in [
        (EngineKind::IoUring, "randwrite"),
        (EngineKind::Sync, "randwrite,sync=fsync"),
        (EngineKind::Sync, "randwrite,clients=2,client_kind=processes"),
        (EngineKind::Fio, "randwrite"),
    ] {
        if engine == EngineKind::Fio && !fio {
            skipped::skip(skipped::Need::Fio, "apt install fio");
            continue;
        }
        let before = fs::read(&away).unwrap();
        let measurement = trial(job, engine).run(&target).unwrap();
        assert!(measurement.job.operations() > 0, "{engine}");
        forget_cached(&target).unwrap();
        assert_ne!(fs::read(&away).unwrap(), before, "{engine} {job}");
    }
    let again = lay_out(&plan, &mut |_| {}, &never).unwrap_err().to_string();
    assert!(again.contains("exists"), "what is laid out is not written over: {again}");
    assert!(fs::read(&victim).unwrap().iter().all(|byte| *byte == 7));
}
