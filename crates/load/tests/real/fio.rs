//! The program fio as an engine.

use crate::place::{Loop, Trial, directory, laid_out, root, trial};
use load::{LoadError, Target};
use record::Warning;
use skipped::{Need, skip};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use units::{Bytes, Nanos};
use workload::EngineKind;

/// Whether fio is there; says what is skipped if not.
fn installed() -> bool {
    let there = std::process::Command::new("fio").arg("--version").output().is_ok();
    if !there {
        skip(Need::Fio, "apt install fio");
    }
    there
}

#[test]
fn what_fio_measures_becomes_a_measurement() {
    if !installed() {
        return;
    }
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(8));
    let trial = Trial {
        background: Some("read,block_size=64k"),
        warmup: Nanos::from_secs(1),
        measure: Nanos::from_secs(2),
        ..trial("randwrite,clients=2,sync=direct+fdatasync:4", EngineKind::Fio)
    };
    let mut ticks = 0;
    let measurement =
        trial.run_with(&target, &AtomicBool::new(false), &mut |_| ticks += 1).unwrap();
    let job = &measurement.job;
    assert!((1900..2500).contains(&(measurement.span.0 / 1_000_000)), "{}", measurement.span);
    assert!(ticks >= 2, "{ticks}");
    assert!(job.reads.operations == 0 && job.writes.operations > 0);
    // fio's counts differ by what was in flight when the warm-up ended.
    let agree = |job: &record::JobMeasurement, block: u64| {
        let (blocks, operations) = (job.bytes().0 / block, job.operations());
        assert!(blocks.abs_diff(operations) <= 8, "{blocks} and {operations}");
    };
    agree(job, 4096);
    assert!(job.latency().count().abs_diff(job.operations()) <= 8);
    assert!((job.writes.operations / 4).abs_diff(job.syncs.operations) <= 8);
    assert_eq!(job.clients.len(), 2);
    let background = measurement.background.as_ref().unwrap();
    agree(background, 65536);
    assert!(background.reads.operations > 0);
    let counted: u64 =
        measurement.seconds.iter().filter(|s| s.at > 0.0).map(|s| s.reads + s.writes).sum();
    assert!(counted > job.operations() / 2 && counted <= job.operations(), "{counted}");
    assert!(measurement.generator.user + measurement.generator.system > Nanos::ZERO);
    assert!(measurement.warnings.contains(&Warning::SyncsReportedApart));
}

#[test]
fn fio_ends_when_told() {
    if !installed() {
        return;
    }
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(8));
    let stop = AtomicBool::new(false);
    let trial = Trial { measure: Nanos::from_secs(60), ..trial("randread", EngineKind::Fio) };
    let begun = std::time::Instant::now();
    let measurement =
        trial.run_with(&target, &stop, &mut |live| stop.store(live.at > 1.5, Relaxed)).unwrap();
    assert!(begun.elapsed().as_secs() < 10);
    assert!(measurement.job.operations() > 0);
    assert!(
        measurement.warnings.iter().any(|warning| matches!(warning, Warning::StoppedEarly { .. }))
    );
}

#[test]
fn a_device_that_disappears_under_fio_is_an_error() {
    if !installed() || !root("taking a loop device's backing away") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), Bytes::from_mib(16), 512);
    let target = Target::new(&device.path, Bytes::from_mib(16));
    let trial = Trial { measure: Nanos::from_secs(3), ..trial("randread", EngineKind::Fio) };
    let outcome = trial.run_with(&target, &AtomicBool::new(false), &mut |_| device.vanish());
    let message = match outcome {
        Err(error) => error.to_string(),
        Ok(_) => panic!("operations that moved nothing were taken for operations"),
    };
    // Whether the kernel answers with an error or with no bytes depends on where it was.
    let told = ["stopped the measured job after an error: EIO", "moved fewer bytes than asked"];
    assert!(told.iter().any(|part| message.contains(part)), "{message}");
}

#[test]
fn a_missing_fio_names_the_package() {
    assert!(LoadError::NoFio.to_string().contains("apt install fio"));
}
