//! How many simulated requests a second of one core: `cargo bench -p simulate [NAME]`.
//!
//! Random 4 KiB reads in a closed loop by one client. Each case is run twice over, the second time
//! four times as long: the cost of a request must not grow with the length of a run.

#![allow(clippy::unwrap_used)]

use blocklayer::{Config, Kernel};
use device::{
    Device, Disk, Profile,
    disk::{DiskSpec, Policy},
    profile::Kind,
};
use simulate::{DEFAULT_TURNAROUND, Spec, Stack};
use std::{sync::atomic::AtomicBool, time::Instant};
use units::Nanos;
use workload::{Job, Workload};

struct Case {
    name: &'static str,
    queue: Config,
    outstanding: u32,
    clients: u32,
    device: Box<dyn Fn() -> Box<dyn Device>>,
    /// Requests a second that the case should reach; 0: none is set.
    wanted: f64,
}

/// Operations and seconds of wall time of a trial of so many virtual seconds, once its queues are
/// full: what the first virtual second costs, in which that happens, is left out.
fn run(case: &Case, seconds: f64) -> (f64, f64) {
    let job = Job { depth: case.outstanding, clients: case.clients, ..Job::default() };
    let workload = Workload { job, ..Workload::default() };
    let device = (case.device)();
    let spec = Spec {
        workload: &workload,
        queue: &case.queue,
        stack: &Stack::default(),
        span: device.capacity(),
        warmup: Nanos::from_secs(1),
        measure: Nanos::from_secs_f64(seconds),
        turnaround: DEFAULT_TURNAROUND,
        seed: 1,
        replay: None,
        log_requests: 0,
    };
    let mut begun = Instant::now();
    let simulated = simulate::run(&spec, device, &AtomicBool::new(false), &mut |progress| {
        if progress.second.at == 0.0 {
            begun = Instant::now();
        }
    })
    .unwrap();
    (simulated.measurement.job.operations() as f64, begun.elapsed().as_secs_f64())
}

fn show(case: &Case) -> f64 {
    // A virtual time that takes about half a second, found by a short trial.
    let (_, took) = run(case, 1.0);
    let seconds = (0.5 / took.max(1e-6)).clamp(0.25, 20_000.0);
    let speed = |seconds: f64| {
        let (operations, took) = run(case, seconds);
        (operations / took, operations / seconds)
    };
    let (short, _) = speed(seconds);
    let (long, model) = speed(seconds * 4.0);
    let verdict = match case.wanted {
        0.0 => String::new(),
        wanted if long >= wanted => format!(", meets {wanted:.0}"),
        wanted => format!(", MISSES {wanted:.0}"),
    };
    println!(
        "{:<36} {short:>10.0} {long:>10.0} requests/s of wall time{verdict} (the model: {model:.0} \
         IOPS)",
        case.name
    );
    long
}

fn disk(policy: Policy, depth: u32) -> Box<dyn Fn() -> Box<dyn Device>> {
    let profile = device::profile::find("hdd-15k").unwrap();
    let Kind::Disk(spec) = profile.kind else { unreachable!("hdd-15k is a disk") };
    Box::new(move || Box::new(Disk::new(DiskSpec { policy, depth, ..spec.clone() }).unwrap()))
}

fn flash() -> Box<dyn Fn() -> Box<dyn Device>> {
    let profile: Profile = device::profile::find("ssd-nvme").unwrap();
    Box::new(move || profile.build(1).unwrap())
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!("{:<36} {:>10} {:>10}", "case", "a run", "4 times");
    let mut speeds = Vec::new();
    let mut case = |case: Case| {
        if only.as_ref().is_none_or(|only| case.name.contains(only.as_str())) {
            speeds.push((case.name, show(&case)));
        }
    };
    let queue = |kernel, depth, name: &str| Config::new(kernel, depth).with_scheduler(name);
    case(Case {
        name: "6.12 none, flash",
        queue: queue(Kernel::V6_12, 1023, "none"),
        outstanding: 32,
        clients: 1,
        device: flash(),
        wanted: 1e6,
    });
    case(Case {
        name: "2.6.18 noop, disk FIFO",
        queue: queue(Kernel::V2_6_18, 32, "noop"),
        outstanding: 32,
        clients: 1,
        device: disk(Policy::Fifo, 32),
        wanted: 7e5,
    });
    case(Case {
        name: "2.6.18 deadline, disk SPTF 32",
        queue: queue(Kernel::V2_6_18, 32, "deadline"),
        outstanding: 64,
        clients: 1,
        device: disk(Policy::ShortestPositioning, 32),
        wanted: 3e5,
    });
    for (name, nr_requests) in [("full queue of 128", 128), ("full queue of 100000", 100_000)] {
        case(Case {
            name,
            queue: queue(Kernel::V2_6_18, 32, "deadline").with_nr_requests(nr_requests),
            outstanding: nr_requests.min(4000),
            clients: nr_requests.div_ceil(4000),
            device: disk(Policy::Fifo, 32),
            wanted: 0.0,
        });
    }
    if let [.., (_, small), (_, large)] = speeds[..]
        && speeds.len() == 5
    {
        let verdict = if large >= small / 2.0 { "meets" } else { "MISSES" };
        println!(
            "a full queue of 100000 runs at {:.2} of 128's speed: {verdict} 0.5",
            large / small
        );
    }
}
