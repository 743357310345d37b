//! How many bios a second go through a layer and a device model, on one core:
//! `cargo bench -p blocklayer [NAME]`. A closed loop, random 4 KiB, after a warm-up.
//!
//! The null device shows the layer's own cost: it answers each request after a fixed time.

// A benchmark that cannot build its model has nothing to say.
#![allow(clippy::unwrap_used)]

use blocklayer::{AdvanceOutput, Bio, BlockLayer, Config, Context, Kernel, Submitted};
use device::disk::{
    Access, Bus, CacheSpec, DiskSpec, GeometrySpec, Overheads, Policy, SeekCurve, WriteCache,
};
use device::{Completion, Device, Disk, Op, Path, Request, View};
use random::Stream;
use std::collections::VecDeque;
use std::time::Instant;
use units::{Nanos, Sectors};

/// Answers every request a fixed time after it comes, any number at once.
#[derive(Debug)]
struct Null {
    queue: VecDeque<(Nanos, Nanos, u64)>,
    service: Nanos,
    depth: u32,
}

impl Device for Null {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.queue.push_back((now + self.service, now, request.id));
    }
    fn next_event(&self) -> Option<Nanos> {
        self.queue.front().map(|(at, _, _)| *at)
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, submitted, id)) = self.queue.front().copied().filter(|f| f.0 <= now) {
            self.queue.pop_front();
            done.push(Completion { id, submitted, began: submitted, at, path: Path::Medium });
        }
    }
    fn queue_depth(&self) -> u32 {
        self.depth
    }
    fn capacity(&self) -> Sectors {
        Sectors(1 << 30)
    }
    fn view(&self) -> View {
        View { outstanding: self.queue.len() as u32, units: 1, ..View::default() }
    }
}

struct Load {
    /// Bios kept outstanding, by this many tasks.
    outstanding: u32,
    tasks: u32,
    write: bool,
    capacity: u64,
}

/// Bios a second of wall time, and a second of the model's.
fn run(config: &Config, device: Box<dyn Device>, load: &Load) -> (f64, f64) {
    let mut layer = BlockLayer::new(config, device).unwrap();
    let mut stream = Stream::new(1, "bench");
    let mut outcome = AdvanceOutput::default();
    let mut ready: Vec<u32> = (0..load.outstanding).map(|i| i % load.tasks).collect();
    let mut now = Nanos::ZERO;
    let (mut id, mut done, mut started) = (0u64, 0u64, (Instant::now(), Nanos::ZERO, 0u64));
    let begin = Instant::now();
    let (mut warm, mut turn) = (false, 0u64);
    loop {
        turn += 1;
        for process in ready.drain(..) {
            let bio = Bio {
                id,
                op: if load.write { Op::Write } else { Op::Read },
                start: Sectors(stream.below(load.capacity / 8) * 8),
                count: Sectors(8),
                sync: !load.write,
                fua: false,
                context: Context::of(process),
            };
            id += 1;
            // A sleeper's next bio is as good as the one that had to wait: both are random.
            if layer.submit(bio, now) == Submitted::Accepted {
                layer.unplug(process, now);
            }
        }
        let Some(next) = layer.next_event() else { break };
        now = next;
        layer.advance(now, &mut outcome);
        done += outcome.done.len() as u64;
        ready.extend(outcome.done.iter().map(|d| d.process));
        ready.extend(outcome.woken.iter());
        outcome.clear();
        if !warm && turn & 0xff == 0 && begin.elapsed().as_secs_f64() > 0.3 {
            warm = true;
            started = (Instant::now(), now, done);
        }
        if warm && turn & 0xff == 0 && started.0.elapsed().as_secs_f64() > 0.7 {
            break;
        }
    }
    let count = (done - started.2) as f64;
    (count / started.0.elapsed().as_secs_f64(), count / (now - started.1).as_secs_f64())
}

fn null(depth: u32) -> Box<dyn Device> {
    Box::new(Null { queue: VecDeque::new(), service: Nanos::from_micros(100), depth })
}

fn disk(policy: Policy, depth: u32) -> Box<dyn Device> {
    let spec = DiskSpec {
        geometry: GeometrySpec::simple(50_000, 4, 1000, 4_000_000, (100, 150)),
        access: Access::Positions,
        seek: SeekCurve::ThreePoint { single: 0.2, average: 3.5, full: 7.0 },
        write_seek: None,
        head_switch_ns: 300_000,
        write_settle_ns: 500_000,
        read_after_write_jog: true,
        overheads: Overheads::default(),
        bus: Bus {
            read_sector_ns: 1_600,
            write_sector_ns: 1_600,
            read_watermark: 0.0,
            disconnects: true,
            write_holds_arm: false,
        },
        cache: CacheSpec::NONE,
        write_cache: WriteCache::Off,
        policy,
        depth,
    };
    Box::new(Disk::new(spec).unwrap())
}

fn flash() -> Box<dyn Device> {
    device::profile::load("ssd-nvme").unwrap().build(1).unwrap()
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!("{:<44} {:>12} {:>14}", "case", "bios/s", "model bios/s");
    let case = |name: &str, config: Config, device: Box<dyn Device>, outstanding, write| {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let capacity = device.capacity().0;
        let load = Load { outstanding, tasks: outstanding, write, capacity };
        let (real, model) = run(&config, device, &load);
        println!("{name:<44} {real:>12.0} {model:>14.0}");
    };
    let config = |kernel, scheduler, depth| Config::new(kernel, depth).with_scheduler(scheduler);
    let (old, centos, new) = (Kernel::V2_6_18, Kernel::V3_10, Kernel::V6_12);
    case("target 1 M: none on flash", config(new, "none", 256), flash(), 32, false);
    case(
        "target 700 k: noop on a FIFO disk",
        config(centos, "noop", 32),
        disk(Policy::Fifo, 32),
        32,
        false,
    );
    let sptf = || disk(Policy::ShortestPositioning, 32);
    case("target 300 k: deadline, SPTF-32", config(centos, "deadline", 32), sptf(), 64, false);
    // A queue kept full by one writer, as write-back does it.
    for n in [128, 100_000] {
        let config = config(old, "deadline", 32).with_nr_requests(n);
        case(&format!("full queue of {n}, deadline, null"), config.clone(), null(32), n, true);
        case(&format!("full queue of {n}, deadline, SPTF-32"), config, sptf(), n, true);
    }
    for kernel in Kernel::ALL {
        for scheduler in kernel.schedulers() {
            let name = format!("{kernel} {scheduler}, null");
            case(&name, config(kernel, scheduler.name(), 32), null(32), 32, false);
        }
    }
}
