//! What clients do: rates, sync modes, priorities, large blocks.

use super::*;
use servers::Servers;

fn queue() -> Config {
    Config::new(Kernel::V6_12, 32).with_scheduler("mq-deadline")
}

#[test]
fn a_fixed_rate_is_kept_and_its_response_time_counts_from_the_intended_start() {
    let trial = Trial::of("randread,clients=4,rate=fixed:400/s", queue(), 10);
    let simulated = trial.run(Box::new(Servers::constant(1000, 32)));
    let job = &simulated.measurement.job;
    near("rate", job.operations() as f64 / 10.0, 400.0, 0.001);
    let response = job.reads.response.as_ref().unwrap();
    near("response", response.mean().unwrap().as_millis_f64(), 1.0, 0.01);
    assert!(simulated.measurement.warnings.is_empty(), "{:?}", simulated.measurement.warnings);
}

#[test]
fn a_rate_above_what_the_device_carries_is_a_backlog() {
    let trial = Trial::of("randread,clients=4,rate=2000/s", queue(), 10);
    let simulated = trial.run(Box::new(Servers::constant(1000, 32)));
    let job = &simulated.measurement.job;
    let response = job.reads.response.as_ref().unwrap().max().unwrap();
    assert!(response > Nanos::from_secs(4), "{response}");
    assert!(job.reads.service.max().unwrap() < Nanos::from_millis(6));
    // 22 thousand arrivals in 11 s, of which the device did half.
    let backlog = simulated.measurement.warnings.iter().find_map(|warning| match warning {
        record::Warning::Backlog { operations, .. } => Some(*operations),
        _ => None,
    });
    near("backlog", backlog.unwrap() as f64, 11_000.0, 0.05);
}

#[test]
fn durable_writes_wait_for_a_flush_or_carry_fua() {
    let latency = |kernel: Kernel, sync: &str| {
        let name = if kernel.multi_queue() { "mq-deadline" } else { "deadline" };
        let queue = Config::new(kernel, 32).with_scheduler(name);
        let trial = Trial::of(&format!("randwrite,sync={sync}"), queue, 5);
        let simulated = trial.run(Box::new(Servers::constant(1000, 32)));
        let job = simulated.measurement.job.clone();
        let flushes = counter(&simulated.measurement, "device.f/s");
        (job.writes.service.mean().unwrap().as_millis_f64(), job.syncs.operations, flushes)
    };
    let (direct, syncs, flushes) = latency(Kernel::V6_12, "direct");
    near("direct", direct, 1.0, 0.01);
    assert_eq!((syncs, flushes), (0, 0.0));
    let (fsync, syncs, flushes) = latency(Kernel::V6_12, "direct+fsync");
    near("fsync", fsync, 2.0, 0.01);
    assert_eq!(syncs, 2500);
    near("flushes", flushes, 500.0, 0.01);
    // One FUA write; before 4.18 a write and a flush, which is no call of its own.
    near("osync on 6.12", latency(Kernel::V6_12, "direct+osync").0, 1.0, 0.01);
    let (osync, syncs, _) = latency(Kernel::V3_10, "direct+osync");
    near("osync on 3.10", osync, 2.0, 0.01);
    assert_eq!(syncs, 0);
}

#[test]
fn a_large_block_is_one_operation_of_several_requests() {
    let queue = Config::new(Kernel::V3_10, 32).with_scheduler("noop");
    let trial = Trial::of("randread,block_size=2M", queue, 5);
    let simulated = trial.run(Box::new(Servers::constant(1000, 32)));
    // Requests end at 512 KiB.
    near("latency", simulated.measurement.job.latency().mean().unwrap().as_millis_f64(), 4.0, 0.01);
    near("areq-sz", counter(&simulated.measurement, "device.areq-sz"), 512.0, 1e-9);
}

#[test]
fn sequential_reads_that_meet_in_a_full_queue_merge() {
    let queue = Config::new(Kernel::V3_10, 1).with_scheduler("deadline");
    let trial = Trial::of("read,depth=32", queue, 5);
    let simulated = trial.run(Box::new(Servers::constant(1000, 1)));
    let merges = counter(&simulated.measurement, "device.rrqm/s");
    assert!(merges > 1000.0, "{merges}");
    assert!(counter(&simulated.measurement, "device.areq-sz") > 32.0);
}

#[test]
fn a_ring_hands_over_in_calls_of_eight_and_first_alone_what_follows_the_first() {
    // One server, a millisecond a request whatever its size, all of a ring's reads in sequence.
    let operations = |depth: u32, millis: f64| {
        let queue = Config::new(Kernel::V6_12, 32).with_scheduler("none");
        let measure = Nanos::from_micros((millis * 1000.0) as u64);
        let (warmup, job) = (Nanos::ZERO, format!("read,depth={depth}"));
        let trial = Trial { warmup, measure, ..Trial::of(&job, queue, 1) };
        trial.run(Box::new(Servers::constant(1000, 32))).operations
    };
    // Two calls of 8, each one request. Of the 8 that complete together the first's successor goes
    // alone, and 7 in the call after it; of 7 likewise 1 and 6. In order of service:
    let sizes = [8, 8, 1, 7, 1, 7, 1, 1, 6, 1];
    for served in 1..=sizes.len() {
        let expected: u64 = sizes[..served].iter().sum();
        assert_eq!(operations(16, served as f64 + 0.5), expected, "{served} requests");
    }
    // A call of two is not plugged, and nothing meets its neighbour.
    assert_eq!(operations(2, 8.5), 8);
    // Of three: 3, and then 1 and 2, which are not plugged either.
    assert_eq!(operations(3, 4.5), 3 + 1 + 1 + 1);
}

/// The measured job's share of all operations, beside as many clients of this priority.
fn share_beside(kernel: Kernel, depth: u32, priority: &str) -> f64 {
    let queue = Config::new(kernel, depth).with_scheduler("cfq");
    let mut trial = Trial::of("randread,clients=4,client_kind=processes", queue, 20);
    let text = format!("randread,clients=4,client_kind=processes,io_priority={priority}");
    trial.workload.background = Some(text.parse().unwrap());
    trial.turnaround = simulate::DEFAULT_TURNAROUND;
    let simulated = trial.run(Box::new(Servers::constant(1000, depth)));
    let (job, other) = (simulated.measurement.job, simulated.measurement.background.unwrap());
    job.operations() as f64 / (job.operations() + other.operations()) as f64
}

#[test]
fn an_idle_class_background_job_gives_way_under_cfq() {
    for kernel in [Kernel::V2_6_18, Kernel::V2_6_32, Kernel::V3_10, Kernel::V4_19] {
        near("equal priorities", share_beside(kernel, 1, "be:4"), 0.5, 0.02);
        let idle = share_beside(kernel, 1, "idle");
        assert!(idle > 0.95, "{kernel}: {idle}");
    }
}

#[test]
fn a_caller_can_stop_it() {
    let trial = Trial::of("randread,depth=32", queue(), 100_000);
    let spec = Spec {
        workload: &trial.workload,
        queue: &trial.queue,
        stack: &simulate::Stack::default(),
        span: Sectors(1 << 20),
        warmup: trial.warmup,
        measure: trial.measure,
        turnaround: trial.turnaround,
        seed: 1,
        replay: None,
        log_requests: 0,
    };
    let device = Box::new(Servers::constant(10, 32));
    let ended = simulate::run(&spec, device, &AtomicBool::new(true), &mut |_| {});
    assert_eq!(ended, Err(simulate::SimulateError::Stopped));
}

#[test]
fn a_part_waits_where_a_ring_has_more_than_the_tags() {
    let queue = Config::new(Kernel::V6_12, 64).with_scheduler("none");
    let queue = Config { tag_waiters_share: Some(0.125), ..queue };
    let trial = Trial::of("randread,depth=256", queue, 120);
    let simulated = trial.run(Box::new(Servers::constant(1000, 64)));
    let latency = simulated.measurement.job.latency();
    // 64 at the device, a millisecond each; a freed tag is the newcomer's, seven times of eight.
    let in_time = latency.quantile(0.87).unwrap().as_millis_f64();
    near("in time", in_time, 64.0, 0.02);
    // The other 192 share what is left, an eighth of 1000 a second.
    let last = latency.quantile(0.95).unwrap().as_secs_f64();
    near("waited", last, 192.0 / 125.0 + 0.064, 0.05);
    // Counted as a real ring's: 125 operations a second of 4 KiB are the workers'.
    let punted = simulated.measurement.counters.last().unwrap().values["uring.punted/s"];
    near("punted", punted, 125.0 * 4096.0, 0.05);
}

#[test]
fn who_sleeps_for_one_of_few_tags_still_gets_the_part_that_sleepers_get() {
    // One process has all of bfq's tags: who sleeps then, sleeps for the first alone.
    for kernel in [Kernel::V6_12, Kernel::V6_18] {
        let queue = Config::new(kernel, 64).with_scheduler("bfq").with_nr_requests(64);
        let queue = Config { tag_waiters_share: Some(0.01), ..queue };
        let trial = Trial::of("randread,depth=256", queue, 120);
        let simulated = trial.run(Box::new(Servers::constant(1000, 64)));
        let punted = simulated.measurement.counters.last().unwrap().values["uring.punted/s"];
        near(kernel.name(), punted, 10.0 * 4096.0, 0.2);
    }
}

#[test]
fn sleepers_who_never_win_starve_while_newcomers_come() {
    let queue = Config::new(Kernel::V6_12, 64).with_scheduler("bfq").with_nr_requests(64);
    let queue = Config { tag_waiters_share: Some(0.0), ..queue };
    let trial = Trial::of("randread,depth=256", queue, 20);
    let simulated = trial.run(Box::new(Servers::constant(1000, 64)));
    let longest = simulated.measurement.job.latency().max().unwrap();
    assert!(longest < Nanos::from_millis(70), "{longest}");
}
