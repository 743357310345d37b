//! The page cache, write-back and filesystems.

use crate::{Trial, counter};
use blocklayer::{Config, Kernel};
use simulate::{Simulated, Stack};
use units::{Bytes, Nanos, Sectors};

/// A job on a 15,000 rpm disk of 64 MiB of memory, on a span in MiB.
fn trial(job: &str, kernel: Kernel, span_mib: u64, seconds: u64) -> Trial {
    let scheduler = if kernel.multi_queue() { "mq-deadline" } else { "deadline" };
    Trial {
        span: Some(Sectors(span_mib * 2048)),
        stack: Stack { page_cache: Bytes::from_mib(64), ..Stack::default() },
        turnaround: Nanos::from_micros(10),
        ..Trial::of(job, Config::new(kernel, 64).with_scheduler(scheduler), seconds)
    }
}

fn on_disk(trial: &Trial) -> Simulated {
    trial.on_profile("hdd-15k")
}

fn iops(simulated: &Simulated, trial: &Trial) -> f64 {
    simulated.measurement.job.operations() as f64 / trial.measure.as_secs_f64()
}

#[test]
fn what_fits_into_memory_is_read_from_the_device_once() {
    let trial = trial("randread,sync=buffered,clients=4", Kernel::V6_12, 32, 30);
    let simulated = on_disk(&trial);
    assert!(iops(&simulated, &trial) > 50_000.0);
    let seconds = &simulated.measurement.counters;
    assert!(seconds.last().unwrap().values["device.r/s"] < 1.0);
    assert!(counter(&simulated.measurement, "cache.used_mib") < 32.1);
}

#[test]
fn memory_is_bounded_and_the_rest_is_read_again() {
    let trial = trial("randread,sync=buffered,clients=4", Kernel::V3_10, 256, 40);
    let simulated = on_disk(&trial);
    assert!(counter(&simulated.measurement, "cache.used_mib") <= 64.0);
    // Once memory is full, a quarter is found.
    let hits = simulated.measurement.counters.last().unwrap().values["cache.hit_ratio"];
    assert!((0.05..0.4).contains(&hits), "{hits}");
}

#[test]
fn reads_in_sequence_are_read_ahead() {
    let bytes = |ahead: u64| {
        let mut trial = trial("read,sync=buffered", Kernel::V6_12, 4096, 4);
        trial.stack.read_ahead = Bytes::from_kib(ahead);
        let simulated = on_disk(&trial);
        (iops(&simulated, &trial), counter(&simulated.measurement, "device.areq-sz"))
    };
    let ((without, small), (with, large)) = (bytes(0), bytes(128));
    assert!(with > without * 1.3, "{without} and {with} a second");
    assert!(small < 4.5 && large > 60.0, "{small} and {large} KiB");
}

#[test]
fn buffered_writes_return_at_once_until_too_much_is_dirty() {
    for kernel in Kernel::ALL {
        let trial = trial("randwrite,sync=buffered,clients=2", kernel, 1024, 60);
        let simulated = on_disk(&trial);
        let m = &simulated.measurement;
        let most = if kernel.is_2_6_18() { 0.4 } else { 0.2 } * 64.0;
        let dirty = counter(m, "cache.dirty_mib") + counter(m, "cache.writeback_mib");
        assert!(dirty < most * 1.1 && dirty > most * 0.3, "{kernel}: {dirty} of {most} MiB");
        // In the long run no faster than the disk takes it.
        let (written, done) = (counter(m, "device.wMB/s") * 256.0, iops(&simulated, &trial));
        assert!((0.8..1.3).contains(&(done / written)), "{kernel}: {done} and {written}");
        let p50 = m.job.latency().quantile(0.5).unwrap();
        assert!(p50 < Nanos::from_millis(60), "{kernel}: {p50}");
    }
}

#[test]
fn a_small_write_reads_its_page_first_unless_that_is_switched_off() {
    let reads = |without: &str| {
        let job = "randwrite,sync=buffered,block_size=1k";
        let mut trial = trial(job, Kernel::V2_6_18, 1024, 20);
        trial.stack.without = without.parse().unwrap();
        let simulated = on_disk(&trial);
        (counter(&simulated.measurement, "device.r/s"), iops(&simulated, &trial))
    };
    let ((with, slow), (without, fast)) = (reads("nothing"), reads("read-before-write"));
    assert!(with > slow * 0.8 && without == 0.0, "{with} reads for {slow} writes; {without}");
    assert!(fast > slow);
}

#[test]
fn a_small_queue_holds_the_old_flusher_off_and_a_large_one_does_not() {
    let held_off = |kernel, queue, without: &str| {
        let mut trial = trial("randwrite,sync=buffered,rate=2000/s", kernel, 1024, 60);
        trial.queue = trial.queue.with_nr_requests(queue);
        trial.stack.without = without.parse().unwrap();
        let m = on_disk(&trial).measurement;
        (counter(&m, "writeback.held_off/s"), counter(&m, "device.aqu-sz"))
    };
    let (off, short) = held_off(Kernel::V2_6_18, 128, "nothing");
    assert!(off > 1.0 && short < 200.0, "{off}, {short}");
    let (off, long) = held_off(Kernel::V2_6_18, 100_000, "nothing");
    assert!(off == 0.0 && long > 1000.0, "{off}, {long}");
    let (off, _) = held_off(Kernel::V2_6_18, 128, "congestion");
    assert!(off == 0.0, "{off}");
    let (off, _) = held_off(Kernel::V2_6_32, 128, "nothing");
    assert!(off == 0.0, "{off}");
}

#[test]
fn fsync_is_part_of_the_write_and_waits_for_the_device() {
    for filesystem in [None, Some("ext3"), Some("ext4"), Some("xfs")] {
        for sync in ["fsync", "fdatasync", "osync", "direct+fsync"] {
            let job = format!("randwrite,sync={sync},clients=2");
            let mut trial = trial(&job, Kernel::V3_10, 256, 10);
            trial.stack.filesystem = filesystem.map(|word| word.parse().unwrap());
            let simulated = on_disk(&trial);
            let m = &simulated.measurement;
            let what = format!("{sync} on {filesystem:?}");
            let done = iops(&simulated, &trial);
            assert!((20.0..600.0).contains(&done), "{what}: {done}");
            let flushes = counter(m, "device.f/s");
            assert!(flushes > done / 4.0, "{what}: {flushes} flushes for {done}");
            let commits = m.counters.last().unwrap().values.get("journal.commits/s");
            let journals = filesystem.is_some() && sync != "fdatasync";
            assert_eq!(commits.is_some_and(|c| *c > 1.0), journals, "{what}: {commits:?}");
        }
    }
}

#[test]
fn direct_writers_serialise_on_ext3_and_ext4_and_scale_on_xfs() {
    let rate = |filesystem: &str, clients: u32, without: &str| {
        let job = format!("randwrite,clients={clients}");
        let mut trial = trial(&job, Kernel::V2_6_18, 8192, 3);
        trial.stack.filesystem = Some(filesystem.parse().unwrap());
        trial.stack.without = without.parse().unwrap();
        let done = trial.on_profile("raid0-16x15k-4g");
        iops(&done, &trial)
    };
    for filesystem in ["ext3", "ext4"] {
        let (one, many) = (rate(filesystem, 1, "nothing"), rate(filesystem, 16, "nothing"));
        assert!(many < one * 1.2, "{filesystem}: {one} and {many}");
        let free = rate(filesystem, 16, "inode-lock");
        assert!(free > many * 2.0, "{filesystem}: {free} and {many}");
    }
    let (one, many) = (rate("xfs", 1, "nothing"), rate("xfs", 16, "nothing"));
    assert!(many > one * 2.0, "xfs: {one} and {many}");
}

#[test]
fn direct_io_on_xfs_of_small_blocks_is_not_direct() {
    let cached = |filesystem: &str| {
        let mut trial = trial("randread,block_size=1k", Kernel::V2_6_18, 32, 20);
        trial.stack.filesystem = Some(filesystem.parse().unwrap());
        let m = on_disk(&trial).measurement;
        (m.counters.last().unwrap().values.get("cache.used_mib").copied(), m)
    };
    let (used, _) = cached("xfs");
    assert_eq!(used, Some(0.0));
    let (used, m) = cached("xfs;mkfs=-b size=1024");
    assert!(used.unwrap() > 10.0);
    let first = &m.counters[0].values;
    assert!((first["device.areq-sz"] - 4.0).abs() < 0.05, "{first:?}");
}

#[test]
fn write_back_throttling_spares_readers_at_the_cost_of_the_writer() {
    let run = |wbt: u64| {
        let mut trial = trial("randread,clients=2", Kernel::V6_12, 4096, 60);
        trial.workload.background = Some("randwrite,sync=buffered,clients=4".parse().unwrap());
        trial.stack.wbt = Nanos::from_micros(wbt);
        let done = on_disk(&trial);
        (iops(&done, &trial), counter(&done.measurement, "device.w/s"))
    };
    let ((reads, writes), (reads_throttled, writes_throttled)) = (run(0), run(10_000));
    assert!(reads_throttled > reads, "{reads} and {reads_throttled}");
    assert!(writes_throttled < writes, "{writes} and {writes_throttled}");
}

#[test]
fn the_same_trial_gives_the_same_events() {
    let trials = [
        ("randwrite,sync=buffered,block_size=2k,clients=3", Kernel::V2_6_18, "ext3"),
        ("randrw:50,sync=fsync:4,clients=3", Kernel::V3_10, "ext4"),
        ("randrw:30,sync=buffered,block_size=12k,clients=2,depth=2", Kernel::V6_12, "xfs"),
    ];
    for (job, kernel, filesystem) in trials {
        let mut trial = trial(job, kernel, 512, 8);
        trial.stack.filesystem = Some(filesystem.parse().unwrap());
        let hashes = [(); 2].map(|()| on_disk(&trial).event_hash());
        assert_eq!(hashes[0], hashes[1], "{job} on {filesystem}");
    }
}
