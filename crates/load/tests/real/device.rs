//! Block devices: loop devices with direct I/O.

use crate::place::{Loop, Trial, directory, root, trial};
use load::{DirectAlignment, Target, direct_alignment};
use skipped::{Need, skip};
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};
use units::{Bytes, Nanos};
use workload::EngineKind;

const SIZE: Bytes = Bytes::from_mib(16);

#[test]
fn the_device_moves_the_bytes_that_were_asked() {
    if !root("counting a loop device's bytes") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), SIZE, 512);
    let target = Target::new(&device.path, SIZE);
    for (engine, job, field) in [
        (EngineKind::IoUring, "randread,depth=8", 0),
        (EngineKind::Sync, "randwrite,clients=2", 1),
        (EngineKind::IoUring, "write,block_size=64KiB,client_kind=processes,clients=2", 1),
    ] {
        let before = device.counters();
        let measurement = trial(job, engine).run(&target).unwrap();
        let moved = (device.counters()[field] - before[field]) * 512;
        let asked = measurement.job.bytes().0;
        // Beyond what was counted: what was in flight at the end, and udev's look at the device.
        let slack = (64 * 1024 * 2) + (1 << 20);
        assert!((asked..asked + slack).contains(&moved), "{job}: {asked} asked, {moved} moved");
    }
}

#[test]
fn what_waits_for_a_free_request_is_counted() {
    if !root("filling a loop device's queue") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), SIZE, 512);
    let target = Target::new(&device.path, SIZE);
    let part = |depth: u32| {
        let job = format!("randread,depth={depth}");
        let measurement = trial(&job, EngineKind::IoUring).run(&target).unwrap();
        let punted = measurement.counters[0].values["uring.punted/s"];
        punted * measurement.span.as_secs_f64() / measurement.job.bytes().0 as f64
    };
    // A loop device has 128 requests: whoever is beyond them waits, in an io_uring worker.
    let (many, few) = (part(512), part(8));
    assert!(many > 0.01 && many < 1.5, "{many} of the operations");
    assert!(few < 0.01, "{few} of the operations");
}

#[test]
fn a_sync_is_a_flush_at_the_device() {
    if !root("counting a loop device's flushes") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), SIZE, 512);
    let target = Target::new(&device.path, SIZE);
    let before = device.counters()[2];
    let job = "randwrite,sync=direct+fdatasync:4";
    let syncs = trial(job, EngineKind::Sync).run(&target).unwrap().job.syncs.operations;
    let flushes = device.counters()[2] - before;
    assert!(syncs > 0 && flushes.abs_diff(syncs) <= 2, "{syncs} syncs, {flushes} flushes");
}

#[test]
fn blocks_below_the_devices_own_are_refused_with_the_reason() {
    if !root("a loop device with 4 KiB sectors") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), SIZE, 4096);
    let multiple = direct_alignment(&device.path).unwrap();
    assert_eq!(multiple, DirectAlignment::Multiple(Bytes::from_kib(4)));
    let target = Target::new(&device.path, SIZE);
    for engine in [EngineKind::IoUring, EngineKind::Sync] {
        let message = trial("randread,block_size=1k", engine).run(&target).unwrap_err().to_string();
        assert!(message.contains("multiples of 4 KiB"), "{message}");
        assert!(message.contains("without 'direct'"), "{message}");
        let buffered = "randread,block_size=1k,sync=buffered";
        assert!(trial(buffered, engine).run(&target).is_ok(), "the page cache takes any size");
    }
}

#[test]
fn a_device_that_disappears_ends_the_trial_with_an_error_that_says_so() {
    if !root("taking a loop device's backing away") {
        return;
    }
    for (engine, job) in [
        (EngineKind::IoUring, "randread,depth=8"),
        (EngineKind::Sync, "randwrite,clients=2"),
        (EngineKind::Sync, "randread,client_kind=processes"),
    ] {
        let directory = directory();
        let device = Loop::new(directory.path(), SIZE, 512);
        let target = Target::new(&device.path, SIZE);
        let trial = Trial { measure: Nanos::from_secs(30), ..trial(job, engine) };
        let begun = Instant::now();
        let mut there = true;
        let outcome = trial.run_with(&target, &AtomicBool::new(false), &mut |_| {
            // As when a disk is pulled: there is nothing any more where it was. Clients have it open by
            // now; before, they could open the next device that gets its name.
            if std::mem::take(&mut there) {
                device.vanish();
            }
        });
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("disappeared"), "{engine} {job}: {message}");
        assert!(begun.elapsed() < Duration::from_secs(10), "no hang");
    }
}

#[test]
fn the_device_that_is_held_is_the_one_that_is_used() {
    if !root("holding a loop device") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), SIZE, 512);
    let held = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.path).unwrap();
    let target = Target::held("/dev/this-name-changed-hands", SIZE, held);
    let fio = Command::new("fio").arg("--version").output().is_ok();
    for (engine, job) in [
        (EngineKind::IoUring, "randwrite"),
        (EngineKind::Sync, "randread,clients=2,client_kind=processes"),
        (EngineKind::Fio, "randwrite"),
    ] {
        if engine == EngineKind::Fio && !fio {
            skip(Need::Fio, "apt install fio");
            continue;
        }
        let before = device.counters();
        let measurement = trial(job, engine).run(&target).unwrap();
        let after = device.counters();
        let moved = (after[0] + after[1] - before[0] - before[1]) * 512;
        assert!(measurement.job.operations() > 0 && moved >= measurement.job.bytes().0);
    }
}
