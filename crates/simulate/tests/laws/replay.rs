//! Traces: everything once, when its mode says.

use crate::servers::{Servers, Service};
use blocklayer::{Config, Kernel};
use device::{Completion, Device, Op, Request, View};
use proptest::prelude::*;
use simulate::{ReplaySpec, Simulated, Spec};
use std::sync::{Arc, Mutex, atomic::AtomicBool};
use trace::{Trace, parse};
use units::{Nanos, Sectors};
use workload::{ReplayMode, Workload};

const MODES: [ReplayMode; 3] = [ReplayMode::Open, ReplayMode::Closed, ReplayMode::Asap];

/// On drives that take 1 ms a request, and a random one of them serves each.
fn replayed(trace: &Trace, mode: ReplayMode, outstanding: u32, drives: usize) -> Simulated {
    let device = Box::new(Servers::new(drives, 256, Service::Constant(Nanos::from_millis(1))));
    replayed_on(device, (Kernel::V6_12, "none"), trace, mode, outstanding)
}

fn replayed_on<D: Device>(
    device: Box<D>,
    (kernel, scheduler): (Kernel, &str),
    trace: &Trace,
    mode: ReplayMode,
    outstanding: u32,
) -> Simulated {
    let workload = Workload::default();
    let mut queue = Config::new(kernel, 256);
    queue.scheduler = Some(scheduler.to_owned());
    let stack = simulate::Stack::default();
    let spec = Spec {
        workload: &workload,
        queue: &queue,
        stack: &stack,
        span: Sectors(1 << 20),
        warmup: Nanos::ZERO,
        measure: Nanos::from_secs(1_000_000),
        turnaround: Nanos::ZERO,
        seed: 1,
        replay: Some(ReplaySpec { trace, mode, outstanding, wrap: false }),
        log_requests: 100_000,
    };
    simulate::run(&spec, device, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Requests of 4 KiB, in fio's words: (µs, sector); far apart, so that none merge.
fn of(requests: &[(u64, u64)]) -> Trace {
    let mut text = "fio version 3 iolog\n".to_owned();
    for (at, sector) in requests {
        text.push_str(&format!("{at} /a read {} 4096\n", sector * 512));
    }
    parse("t", &text, None, false).unwrap()
}

#[test]
fn an_open_replay_keeps_the_recorded_times_and_counts_from_them() {
    // Ten at once before one server of 1 ms, and one a second later.
    let mut requests: Vec<_> = (0..10).map(|n| (0, n * 64)).collect();
    requests.push((1_000_000, 0));
    let done = replayed(&of(&requests), ReplayMode::Open, 1, 1).measurement;
    assert_eq!(done.span, Nanos::from_millis(1001));
    let latency = done.job.latency();
    assert_eq!(latency.count(), 11);
    let worst = latency.max().unwrap();
    assert!((9_900_000..10_200_000).contains(&worst.0), "{worst}");
}

#[test]
fn a_closed_replay_waits_for_its_own_and_then_thinks() {
    // Recorded 5 ms apart; the service is not recorded, so all of it counts as thinking.
    let done = replayed(&of(&[(0, 0), (5000, 640), (10_000, 64)]), ReplayMode::Closed, 1, 1);
    assert_eq!(done.measurement.span, Nanos::from_millis(1 + 5 + 1 + 5 + 1));
    // With the response time (MSR: 100 ns) recorded, 3 ms of each gap were thinking.
    let msr = "0,h,0,Read,0,4096,20000\n50000,h,0,Read,327680,4096,20000\n";
    let done = replayed(&parse("t", msr, None, false).unwrap(), ReplayMode::Closed, 1, 1);
    assert_eq!(done.measurement.span, Nanos::from_millis(1 + 3 + 1));
}

#[test]
fn as_fast_as_possible_keeps_so_many_outstanding() {
    let requests: Vec<_> = (0..1000).map(|n| (n * 1_000_000, n * 64 % 65_536)).collect();
    for outstanding in [1, 4, 100] {
        let done = replayed(&of(&requests), ReplayMode::Asap, outstanding, 1).measurement;
        // One drive is busy all the time, and each waits for all before it.
        assert_eq!(done.span, Nanos::from_secs(1));
        let most = done.job.latency().max().unwrap();
        crate::near("longest, ms", most.as_millis_f64(), f64::from(outstanding), 0.01);
    }
}

#[test]
fn flushes_are_issued_and_count_apart() {
    let text = "fio version 2 iolog\n/a write 0 8192\n/a sync 0 0\n/a read 65536 512\n";
    let done = replayed(&parse("t", text, None, false).unwrap(), ReplayMode::Asap, 1, 1);
    let job = done.measurement.job;
    let counts = (job.reads.operations, job.writes.operations, job.syncs.operations);
    assert_eq!(counts, (1, 1, 1));
    assert_eq!((job.reads.bytes.0, job.writes.bytes.0), (512, 8192));
}

/// What reached a device: the time in ms, what, and whether with FUA.
type Log = Arc<Mutex<Vec<(u64, Op, bool)>>>;

/// One drive of 1 ms a request that writes down what reaches it.
#[derive(Debug)]
struct Watched(Servers, Log);

impl Device for Watched {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.1.lock().unwrap().push((now.0 / 1_000_000, request.op, request.fua));
        self.0.submit(request, now);
    }
    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.0.advance(now, done);
    }
    fn queue_depth(&self) -> u32 {
        self.0.queue_depth()
    }
    fn capacity(&self) -> Sectors {
        self.0.capacity()
    }
    fn view(&self) -> View {
        self.0.view()
    }
}

/// What reaches the device of a write with these letters, and the replay.
fn write_with(
    letters: &str,
    queue: (Kernel, &str),
    mode: ReplayMode,
) -> (Vec<(u64, Op, bool)>, Simulated) {
    let text = format!("8,0 0 1 0.0 1 Q {letters} 64 + 8 [a]\n");
    let log = Log::default();
    let device = Box::new(Watched(Servers::constant(1000, 256), log.clone()));
    let trace = parse("t", &text, None, false).unwrap();
    let done = replayed_on(device, queue, &trace, mode, 1);
    let log = log.lock().unwrap().clone();
    (log, done)
}

#[test]
fn flush_and_fua_of_a_write_reach_the_device_in_their_order() {
    let (flush, write, durable) = ((0, Op::Flush, false), Op::Write, true);
    for mode in MODES {
        for (kernel, schedulers) in Kernel::ALL.map(|kernel| (kernel, kernel.schedulers())) {
            for scheduler in schedulers {
                let reached = |letters| write_with(letters, (kernel, scheduler.name()), mode);
                // Before 3.10 FUA is a barrier, which flushes first.
                let barrier = kernel < Kernel::V3_10;
                let alone = if barrier {
                    vec![flush, (1, write, durable)]
                } else {
                    vec![(0, write, durable)]
                };
                let name = format!("{kernel} {scheduler} {mode}");
                assert_eq!(reached("WS").0, [(0, write, false)], "{name}");
                assert_eq!(reached("WFS").0, alone, "{name}");
                assert_eq!(reached("FWS").0, [flush, (1, write, false)], "{name}");
                let (log, done) = reached("FWFS");
                assert_eq!(log, [flush, (1, write, durable)], "{name}");
                let job = &done.measurement.job;
                assert_eq!((job.writes.operations, job.syncs.operations), (1, 0), "{name}");
                assert_eq!(done.measurement.span, Nanos::from_millis(2), "{name}");
                assert_ne!(done.event_hash(), reached("WS").1.event_hash(), "{name}");
            }
        }
    }
}

#[test]
fn a_flush_before_a_write_of_a_striped_volume_reaches_every_member() {
    let trace = parse("t", "8,0 0 1 0.0 1 Q FWFS 64 + 8 [a]\n", None, false).unwrap();
    let log = Log::default();
    let member = || Box::new(Watched(Servers::constant(1000, 256), log.clone()));
    let workload = Workload::default();
    let (queue, stack) = (Config::new(Kernel::V6_12, 256), simulate::Stack::default());
    let spec = Spec {
        workload: &workload,
        queue: &queue,
        stack: &stack,
        span: Sectors(1 << 20),
        warmup: Nanos::ZERO,
        measure: Nanos::from_secs(10),
        turnaround: Nanos::ZERO,
        seed: 1,
        replay: Some(ReplaySpec {
            trace: &trace,
            mode: ReplayMode::Open,
            outstanding: 1,
            wrap: false,
        }),
        log_requests: 0,
    };
    let striping = Some(simulate::Striping { unit: Sectors(128) });
    let devices = vec![member(), member(), member()];
    let stop = AtomicBool::new(false);
    simulate::run_striped(&spec, devices, striping, &stop, &mut |_| {}).unwrap();
    let flush = (0, Op::Flush, false);
    assert_eq!(*log.lock().unwrap(), [flush, flush, flush, (1, Op::Write, true)]);
}

#[test]
fn samples_follow_requests_and_not_recorded_time() {
    // Two requests a day apart: their seconds, and one sample between.
    let day = 24 * 3600;
    let trace = of(&[(0, 0), (day * 1_000_000 + 500_000, 64)]);
    let done = replayed(&trace, ReplayMode::Open, 1, 1).measurement;
    assert_eq!(done.span, Nanos::from_millis(day * 1000 + 501));
    assert_eq!((done.seconds.len(), done.counters.len()), (3, 3));
    let sums = |at: usize| (done.seconds[at].reads, done.counters[at].values["device.r/s"] > 0.0);
    assert_eq!([sums(0), sums(1), sums(2)], [(1, true), (0, false), (1, true)]);
    assert!(done.seconds.windows(2).all(|pair| pair[0].at < pair[1].at));

    // A week with a request each ten seconds has about as many samples as an hour of seconds.
    let week: Vec<_> = (0..60_480).map(|n| (n * 10_000_000, n * 64 % 65_536)).collect();
    let done = replayed(&of(&week), ReplayMode::Open, 1, 1).measurement;
    assert_eq!(done.job.operations(), 60_480);
    assert!((3000..4200).contains(&done.counters.len()), "{}", done.counters.len());
    assert_eq!(done.seconds.iter().map(|second| second.reads).sum::<u64>(), 60_480);

    // A short one has all its seconds in which something happens.
    let busy: Vec<_> = (0..600).map(|n| (n * 100_000, n * 64)).collect();
    let done = replayed(&of(&busy), ReplayMode::Open, 1, 1).measurement;
    assert_eq!(done.seconds.len(), 60);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_request_of_a_trace_is_done_once(
        requests in prop::collection::vec((0u64..20, 0u64..2000, 0u32..5, any::<bool>()), 1..200),
        outstanding in 1u32..40,
        drives in 1usize..9,
    ) {
        let mut at = 0;
        let mut text = String::new();
        for (gap, place, process, read) in &requests {
            at += gap * 100;
            let (ms, op) = (at / 1_000_000, if *read { "R" } else { "W" });
            text.push_str(&format!(
                "8,0 0 1 {ms}.{:09} {process} Q {op} {} + 8 [a]\n", at % 1_000_000, place * 64,
            ));
        }
        let trace = parse("t", &text, None, false).unwrap();
        for mode in MODES {
            let one = replayed(&trace, mode, outstanding, drives);
            let job = &one.measurement.job;
            prop_assert_eq!(job.operations(), requests.len() as u64);
            let reads = requests.iter().filter(|request| request.3).count() as u64;
            prop_assert_eq!(job.reads.operations, reads);
            prop_assert_eq!(&one.measurement.warnings, &Vec::<record::Warning>::new());
            let two = replayed(&trace, mode, outstanding, drives);
            prop_assert_eq!(one.event_hash(), two.event_hash());
        }
    }
}
