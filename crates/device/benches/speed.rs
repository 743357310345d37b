//! How many requests a second the models simulate, on one core: `cargo bench -p device`.
//! Closed loop at a fixed depth, uniform random 4 KiB reads, a warm-up before the clock starts.

#![allow(clippy::unwrap_used)] // a panic is how a test tells

use device::array::{ArraySpec, Level, ReadPolicy};
use device::disk::{
    Access, Bus, CacheSpec, DiskSpec, GeometrySpec, Overheads, Policy, SeekCurve, WriteCache,
};
use device::flash::{FlashSpec, State};
use device::{Array, Completion, Device, Disk, Flash, Request};
use random::Stream;
use std::time::Instant;
use units::Nanos;

fn disk(policy: Policy, depth: u32) -> Disk {
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
    Disk::new(spec).unwrap()
}

fn flash() -> Flash {
    let spec = FlashSpec {
        capacity: 500_000_000_000 / 512,
        over_provisioning: 0.07,
        channels: 8,
        dies_per_channel: 4,
        planes: 2,
        page_sectors: 32,
        pages_per_block: 768,
        read_ns: vec![88_000, 116_000, 165_000],
        read_spread_ns: 6_000,
        program_ns: 700_000,
        erase_ns: 5_000_000,
        channel_sector_ns: 640,
        link_read_sector_ns: 150,
        link_write_sector_ns: 150,
        firmware_ns: 10_000,
        controller_ns: 1_000,
        buffer_ns: 4_000,
        buffer_sectors: 65_536,
        power_safe: false,
        depth: 256,
        state: State::Random(0.9),
    };
    Flash::new(spec, 1).unwrap()
}

fn array(drives: usize) -> Array {
    let spec = ArraySpec {
        level: Level::StripedMirrors,
        stripe_unit: 128,
        depth: 256,
        drive_depth: 32,
        overhead_ns: 50_000,
        sector_ns: 500,
        read_policy: ReadPolicy::ShortestQueue,
        read_cache: None,
        write_back: None,
        failed: None,
    };
    let member = |_| Box::new(disk(Policy::ShortestPositioning, 32)) as Box<dyn Device>;
    Array::new(spec, (0..drives).map(member).collect()).unwrap()
}

/// Requests a second, and the model's own throughput.
fn speed(device: &mut dyn Device, depth: u64, requests: u64) -> (f64, f64) {
    let mut stream = Stream::new(1, "bench");
    let blocks = device.capacity().0 / 8;
    let mut done: Vec<Completion> = Vec::with_capacity(1024);
    let mut now = Nanos::ZERO;
    let mut id = 0;
    let mut submit = |device: &mut dyn Device, now: Nanos| {
        id += 1;
        device.submit(Request::read(id, stream.below(blocks) * 8, 8), now);
    };
    for _ in 0..depth {
        submit(device, now);
    }
    let mut run = |device: &mut dyn Device, count: u64| {
        let mut complete = 0;
        while complete < count {
            now = device.next_event().unwrap();
            device.advance(now, &mut done);
            for _ in done.drain(..) {
                complete += 1;
                submit(device, now);
            }
        }
        now
    };
    let began = run(device, requests / 10);
    let clock = Instant::now();
    let ended = run(device, requests);
    let took = clock.elapsed().as_secs_f64();
    (requests as f64 / took, requests as f64 / (ended - began).as_secs_f64())
}

fn show(name: &str, device: &mut dyn Device, depth: u64, requests: u64, wanted: f64) {
    let (rate, model) = speed(device, depth, requests);
    let verdict = if rate >= wanted { "meets" } else { "MISSES" };
    println!(
        "{name:<34} {rate:>12.0} requests/s of wall time, {verdict} {wanted:.0} \
         (the model itself: {model:.0} IOPS)"
    );
}

fn main() {
    show("disk, FIFO, depth 32", &mut disk(Policy::Fifo, 32), 32, 3_000_000, 2e6);
    let mut sptf = disk(Policy::ShortestPositioning, 32);
    show("disk, SPTF, depth 32", &mut sptf, 32, 1_000_000, 4e5);
    let mut sptf = disk(Policy::ShortestPositioning, 256);
    show("disk, SPTF, depth 256", &mut sptf, 256, 300_000, 6e4);
    show("flash, reads, depth 32", &mut flash(), 32, 3_000_000, 2e6);
    // No bar is set for an array: it costs its drives' work and its own.
    show("RAID 10 of 8, depth 128", &mut array(8), 128, 300_000, 0.0);
}
