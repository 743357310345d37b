//! The models against what mathematics says of them: each test states the quantity and where its
//! value comes from. Uniform random requests, fixed seeds; tolerances are several standard errors.

use device::array::{AheadPolicy, ArraySpec, Destage, Level, ReadCache, ReadPolicy, WriteBack};
use device::disk::{
    Access, Bus, CacheSpec, DiskSpec, GeometrySpec, Overheads, Policy, ReadAhead, SeekCurve,
    WriteCache,
};
use device::{Array, Completion, Device, Disk, Op, Path, Request, View};
use random::Stream;
use units::{Nanos, Sectors};

const CYLINDERS: u32 = 20_000;
const HEADS: u32 = 4;
const PER_TRACK: u32 = 1000;

/// A disk of T = 4 ms with nothing but an arm and a platter.
fn bare(policy: Policy, depth: u32, seek: SeekCurve, overhead_ns: u32) -> DiskSpec {
    let overhead = device::disk::After::both(overhead_ns);
    DiskSpec {
        geometry: GeometrySpec::simple(CYLINDERS, HEADS, PER_TRACK, 4_000_000, (0, 0)),
        access: Access::Positions,
        seek,
        write_seek: None,
        head_switch_ns: 0,
        write_settle_ns: 0,
        read_after_write_jog: false,
        overheads: Overheads {
            read_hit: overhead,
            read_miss: overhead,
            write_hit: overhead,
            write_miss: overhead,
            ..Overheads::default()
        },
        bus: Bus {
            read_sector_ns: 0,
            write_sector_ns: 0,
            read_watermark: 0.0,
            disconnects: false,
            write_holds_arm: false,
        },
        cache: CacheSpec::NONE,
        write_cache: WriteCache::Off,
        policy,
        depth,
    }
}

/// Seek times proportional to distance, so that times tell distances.
fn linear() -> SeekCurve {
    SeekCurve::Table(vec![(1, 0.001), (1001, 1.001)])
}

fn published() -> SeekCurve {
    SeekCurve::ThreePoint { single: 0.2, average: 3.5, full: 7.0 }
}

/// Keeps `depth` one-sector reads below `span` outstanding; calls `each` with the head's cylinder
/// at each completion; returns the clock.
fn closed(
    device: &mut dyn Device,
    depth: u32,
    span: u64,
    count: u64,
    mut each: impl FnMut(u32),
) -> Nanos {
    let mut stream = Stream::new(11, "oracle");
    let mut done: Vec<Completion> = Vec::new();
    let (mut now, mut seen, mut id) = (Nanos::ZERO, 0, 0);
    while seen < count {
        while id < seen + u64::from(depth) {
            device.submit(Request::read(id, stream.below(span), 1), now);
            id += 1;
        }
        now = device.next_event().unwrap();
        device.advance(now, &mut done);
        for _ in done.drain(..) {
            seen += 1;
            each(device.view().cylinder.unwrap_or(0));
        }
    }
    now
}

fn iops(spec: DiskSpec, depth: u32, share: f64) -> f64 {
    let mut disk = Disk::new(spec).unwrap();
    let span = (disk.capacity().0 as f64 * share) as u64;
    let count = 6000;
    count as f64 / closed(&mut disk, depth, span, count, |_| ()).as_secs_f64()
}

/// Mean distance between successive completions' cylinders, as a share of the span, and the mean
/// of its root.
fn distances(policy: Policy, depth: u32, count: u64) -> (f64, f64) {
    let mut disk = Disk::new(bare(policy, depth, linear(), 0)).unwrap();
    let span = disk.capacity().0;
    let (mut last, mut sum, mut roots) = (0, 0.0, 0.0);
    closed(&mut disk, depth, span, count, |cylinder| {
        let share = f64::from(cylinder.abs_diff(last)) / f64::from(CYLINDERS);
        (sum, roots, last) = (sum + share, roots + share.sqrt(), cylinder);
    });
    (sum / count as f64, roots / count as f64)
}

fn assert_near(what: &str, ours: f64, expected: f64, tolerance: f64) {
    let off = ours / expected - 1.0;
    println!("{what}: {ours:.4}, expected {expected:.4} ({:+.1} %)", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {ours:.4}, expected {expected:.4}");
}

#[test]
fn the_15k_curve_is_the_published_one() {
    // T = 4 ms, seek 0.2 / 3.5 / 7.0 ms, 0.2 ms overhead: IOPS by depth.
    let depths = [1, 4, 8, 16, 32, 64, 128, 256];
    let rows: [(&str, Policy, f64, [f64; 8]); 4] = [
        ("FIFO", Policy::Fifo, 1.0, [176., 175., 176., 175., 176., 175., 175., 175.]),
        ("LOOK", Policy::Look, 1.0, [176., 215., 255., 291., 324., 352., 367., 386.]),
        (
            "SPTF",
            Policy::ShortestPositioning,
            1.0,
            [174., 256., 307., 379., 451., 551., 660., 763.],
        ),
        (
            "SPTF, a tenth",
            Policy::ShortestPositioning,
            0.1,
            [301., 477., 579., 711., 832., 977., 1116., 1254.],
        ),
    ];
    for (name, policy, share, expected) in rows {
        for (depth, expected) in depths.into_iter().zip(expected) {
            // The published LOOK decides before the request that replaces the finished one has
            // come: its drive sees one fewer.
            let seen = if policy == Policy::Look { (depth - 1).max(1) } else { depth };
            let ours = iops(bare(policy, seen, published(), 200_000), depth, share);
            assert_near(&format!("{name}, depth {depth}"), ours, expected, 0.025);
        }
    }
}

#[test]
fn fifo_travels_a_third_and_its_root_eight_fifteenths() {
    let (mean, root) = distances(Policy::Fifo, 1, 40_000);
    assert_near("E[d]", mean, 1.0 / 3.0, 0.02);
    assert_near("E[√d]", root, 8.0 / 15.0, 0.02);
}

#[test]
fn sorted_sweeps_travel_as_far_as_theory_says() {
    for depth in [4, 16, 64] {
        let (mean, _) = distances(Policy::CLook, depth, 40_000);
        let theory = 1.0 / (f64::from(depth) + 1.0);
        assert_near(&format!("C-LOOK, {depth}, return counted"), mean, theory, 0.05);
    }
    let (mean, _) = distances(Policy::Look, 64, 60_000);
    assert_near("LOOK, 64", mean, 0.0103, 0.05);
}

#[test]
fn a_sorted_batch_has_even_gaps() {
    let n = 15;
    let mut stream = Stream::new(5, "batch");
    let (mut gaps, mut roots, rounds) = (0.0, 0.0, 2000);
    for _ in 0..rounds {
        let mut disk = Disk::new(bare(Policy::CLook, 64, linear(), 0)).unwrap();
        let span = disk.capacity().0;
        for id in 0..n {
            disk.submit(Request::read(id, stream.below(span), 1), Nanos::ZERO);
        }
        let mut cylinders = Vec::new();
        let mut done = Vec::new();
        while let Some(now) = disk.next_event() {
            disk.advance(now, &mut done);
            for _ in done.drain(..) {
                cylinders.push(disk.view().cylinder.unwrap());
            }
        }
        for pair in cylinders.windows(2) {
            let gap = f64::from(pair[1] - pair[0]) / f64::from(CYLINDERS);
            gaps += gap;
            roots += gap.sqrt();
        }
    }
    let count = f64::from(rounds) * (n - 1) as f64;
    assert_near("gap of 15", gaps / count, 1.0 / 16.0, 0.02);
    assert_near("root of the gap", roots / count, 0.886 / 16f64.sqrt(), 0.03);
}

#[test]
fn the_shortest_seek_among_n_fresh_requests() {
    for n in [1, 4, 16] {
        let mut stream = Stream::new(6, "sstf");
        let (mut sum, rounds) = (0.0, 6000);
        for _ in 0..rounds {
            let mut disk = Disk::new(bare(Policy::ShortestSeek, 64, linear(), 0)).unwrap();
            let span = disk.capacity().0;
            let mut done = Vec::new();
            let mut first = |disk: &mut Disk, now: Nanos| {
                let mut now = now;
                while done.is_empty() {
                    now = disk.next_event().unwrap().max(now);
                    disk.advance(now, &mut done);
                }
                done.clear();
                (now, disk.view().cylinder.unwrap())
            };
            disk.submit(Request::read(0, stream.below(span), 1), Nanos::ZERO);
            let (now, head) = first(&mut disk, Nanos::ZERO);
            for id in 1..=n {
                disk.submit(Request::read(id, stream.below(span), 1), now);
            }
            let (_, next) = first(&mut disk, now);
            sum += f64::from(head.abs_diff(next)) / f64::from(CYLINDERS);
        }
        let n = n as f64;
        let theory = (n + 3.0) / (2.0 * (n + 1.0) * (n + 2.0));
        assert_near(&format!("first of {n}"), sum / f64::from(rounds), theory, 0.04);
    }
}

#[test]
fn requests_on_one_track_wait_a_turn_divided_by_one_more() {
    for q in [1u64, 3, 7, 15] {
        let mut stream = Stream::new(7, "track");
        let (mut sum, rounds) = (0.0, 4000);
        let mut disk = Disk::new(bare(Policy::ShortestPositioning, 64, linear(), 0)).unwrap();
        let mut now = Nanos::ZERO;
        let mut done: Vec<Completion> = Vec::new();
        for round in 0..rounds {
            // At any angle, with the arm on the track.
            now += Nanos(stream.below(4_000_000));
            let start = now;
            for id in 0..q {
                let sector = stream.below(u64::from(PER_TRACK));
                disk.submit(Request::read(round * 100 + id, sector, 1), now);
            }
            while let Some(next) = disk.next_event() {
                now = next.max(now);
                disk.advance(now, &mut done);
            }
            // The transfer of the sector itself is not a wait.
            let transfer = 4_000_000 / u64::from(PER_TRACK);
            sum += ((done[0].at - start).0 - transfer) as f64;
            done.clear();
        }
        let wait = sum / rounds as f64;
        assert_near(&format!("{q} on a track"), wait, 4e6 / (q as f64 + 1.0), 0.05);
    }
}

fn controller(level: Level, depth: u32) -> ArraySpec {
    ArraySpec {
        level,
        stripe_unit: 8,
        depth,
        drive_depth: 1,
        overhead_ns: 0,
        sector_ns: 0,
        read_policy: ReadPolicy::NearestHead,
        read_cache: None,
        write_back: None,
        failed: None,
    }
}

#[test]
fn a_mirror_reads_near_and_writes_far() {
    // Two arms at independent uniform places: the nearer is 5/24 of the span away, the farther
    // 11/24. The arms are put apart by a read of each drive in turn.
    let mut stream = Stream::new(8, "mirror");
    let mut done: Vec<Completion> = Vec::new();
    let mut settle = |mirror: &mut Array, request: Request, from: Nanos| {
        let mut now = from;
        mirror.submit(request, now);
        while let Some(next) = mirror.next_event() {
            now = next.max(now);
            mirror.advance(now, &mut done);
        }
        now
    };
    let (mut near, mut far, rounds) = (0.0, 0.0, 4000);
    for write in [false, true] {
        for _ in 0..rounds {
            let drive = || Disk::new(bare(Policy::Fifo, 8, linear(), 0)).unwrap();
            let drives = vec![Box::new(drive()) as Box<dyn Device>, Box::new(drive())];
            let mut mirror = Array::new(controller(Level::Mirror, 64), drives).unwrap();
            let span = mirror.capacity().0;
            mirror.set_read_policy(ReadPolicy::RoundRobin);
            let now = settle(&mut mirror, Request::read(0, stream.below(span), 1), Nanos::ZERO);
            let now = settle(&mut mirror, Request::read(1, stream.below(span), 1), now);
            mirror.set_read_policy(ReadPolicy::NearestHead);
            let at = |mirror: &Array| -> Vec<u32> {
                mirror.drives().map(|drive| drive.view().cylinder.unwrap()).collect()
            };
            let before = at(&mirror);
            let target = stream.below(span);
            let request =
                if write { Request::write(2, target, 1) } else { Request::read(2, target, 1) };
            settle(&mut mirror, request, now);
            let after = at(&mirror);
            let moved = before.iter().zip(&after).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
            let share = f64::from(moved) / f64::from(CYLINDERS);
            if write {
                far += share;
            } else {
                near += share;
            }
        }
    }
    assert_near("nearest head", near / f64::from(rounds), 5.0 / 24.0, 0.04);
    assert_near("farthest head", far / f64::from(rounds), 11.0 / 24.0, 0.03);
}

#[test]
fn a_write_waits_for_the_latest_of_platters_that_are_not_in_step() {
    // The greatest of n independent uniform waits is n/(n + 1) of a turn in the mean.
    let rounds = 4000;
    for n in [1_u32, 2, 3] {
        let mut total = 0.0;
        for round in 0..rounds {
            let mut seeds = Stream::new(round, "seeds");
            let spec = bare(Policy::Fifo, 8, SeekCurve::Constant(0.0), 0);
            let drive = |_| Disk::new(spec.clone()).unwrap().at_any_angle(seeds.bits());
            let mut drives: Vec<Box<dyn Device>> = Vec::new();
            drives.extend((0..n).map(drive).map(|drive| Box::new(drive) as Box<dyn Device>));
            let mut device = match n {
                1 => drives.remove(0),
                _ => Box::new(Array::new(controller(Level::Mirror, 64), drives).unwrap()),
            };
            let block = Stream::new(round, "block").below(device.capacity().0);
            device.submit(Request::write(1, block, 1), Nanos::ZERO);
            let mut done = Vec::new();
            while let Some(at) = device.next_event() {
                device.advance(at, &mut done);
            }
            total += done[0].at.0 as f64;
        }
        let sector = 4e6 / f64::from(PER_TRACK);
        let (wait, n) = (total / rounds as f64 - sector, f64::from(n));
        assert_near(&format!("{n} platters"), wait, 4e6 * n / (n + 1.0), 0.03);
    }
}

/// A drive whose service time is drawn, whatever is asked.
#[derive(Debug)]
struct Drawn {
    stream: Stream,
    kind: u8,
    queue: std::collections::VecDeque<(Request, u64)>,
    busy: Option<(Request, u64, u64)>,
    free: u64,
    busy_ns: u64,
    done: Vec<Completion>,
}

impl Drawn {
    fn boxed(seed: u64, kind: u8) -> Box<dyn Device> {
        Box::new(Drawn {
            stream: Stream::new(seed, "drawn"),
            kind,
            queue: Default::default(),
            busy: None,
            free: 0,
            busy_ns: 0,
            done: Vec::new(),
        })
    }

    fn run(&mut self, now: u64) {
        loop {
            match self.busy {
                Some((request, submitted, end)) if end <= now => {
                    self.busy = None;
                    self.free = end;
                    self.done.push(Completion {
                        id: request.id,
                        submitted: Nanos(submitted),
                        began: Nanos(submitted),
                        at: Nanos(end),
                        path: Path::Medium,
                    });
                }
                None if !self.queue.is_empty() => {
                    let (request, submitted) = self.queue.pop_front().unwrap();
                    let unit = match self.kind {
                        0 => self.stream.exponential(1.0),
                        1 => 0.25 + 1.5 * self.stream.unit(),
                        _ => 1.0,
                    };
                    let time = (unit * 1e6) as u64;
                    self.busy_ns += time;
                    self.busy = Some((request, submitted, self.free.max(submitted) + time));
                }
                _ => return,
            }
        }
    }
}

impl Device for Drawn {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.queue.push_back((request, now.0));
        self.run(now.0.saturating_sub(1));
    }
    fn next_event(&self) -> Option<Nanos> {
        self.done.first().map(|done| done.at).or(self.busy.map(|(.., end)| Nanos(end)))
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now.0);
        done.append(&mut self.done);
    }
    fn queue_depth(&self) -> u32 {
        1
    }
    fn capacity(&self) -> Sectors {
        Sectors(1 << 20)
    }
    fn view(&self) -> View {
        View::default()
    }
}

#[test]
fn drives_are_as_busy_as_queueing_theory_says() {
    // Busy drives with q outstanding on N: exponential N·q/(N+q−1); the others by simulation,
    // published beside it.
    let table = [
        (4u64, 4u32, [2.29, 2.53, 2.61]),
        (4, 8, [2.91, 3.15, 3.27]),
        (16, 64, [13.0, 13.9, 14.1]),
    ];
    for (drives, q, expected) in table {
        for (kind, expected) in expected.into_iter().enumerate() {
            let members = (0..drives).map(|n| Drawn::boxed(n + 1, kind as u8)).collect();
            let mut array = Array::new(controller(Level::Stripe, q), members).unwrap();
            let span = array.capacity().0;
            let count = 60_000;
            let took = closed(&mut array, q, span, count, |_| ());
            // Busy = throughput × mean service time (1 ms).
            let busy = count as f64 / (took.as_secs_f64() * 1e3);
            assert_near(&format!("N {drives}, q {q}, kind {kind}"), busy, expected, 0.02);
        }
    }
}

#[test]
fn a_small_write_under_parity_is_four_operations() {
    let member =
        |_| Box::new(Disk::new(bare(Policy::Fifo, 8, published(), 0)).unwrap()) as Box<dyn Device>;
    let build = |failed| {
        let spec = ArraySpec { failed, ..controller(Level::Parity, 64) };
        Array::new(spec, (0..4).map(member).collect()).unwrap()
    };
    let operations = |failed, request: Request| {
        let mut array = build(failed);
        array.submit(request, Nanos::ZERO);
        let mut done = Vec::new();
        while let Some(now) = array.next_event() {
            array.advance(now, &mut done);
        }
        assert_eq!(done.len(), 1);
        array.drive_operations()
    };
    // Row 0: parity on drive 3, data on 0, 1, 2.
    assert_eq!(operations(None, Request::write(1, 0, 1)), 4, "a small write");
    assert_eq!(operations(None, Request::read(1, 0, 1)), 1, "a read");
    assert_eq!(operations(None, Request::write(1, 0, 24)), 4, "a whole row: data and parity");
    assert_eq!(operations(Some(0), Request::read(1, 0, 1)), 3, "a read from all the others");
    assert_eq!(operations(Some(0), Request::write(1, 0, 1)), 3, "two reads, and the parity");
    assert_eq!(operations(Some(3), Request::write(1, 0, 1)), 1, "no parity to keep");
}

/// What drives do for reads of one sector each, one after another. A row is 32 sectors on four drives.
#[test]
fn a_read_cache_reads_a_row_once_for_each_stream_that_it_can_tell() {
    let operations = |cache: Option<(AheadPolicy, usize)>, sectors: &[u64]| {
        let drive = || Disk::new(bare(Policy::Fifo, 8, linear(), 0)).unwrap();
        let members = (0..4).map(|_| Box::new(drive()) as Box<dyn Device>).collect();
        let read_cache = cache.map(|(ahead, streams)| ReadCache { size: 256, ahead, streams });
        let spec = ArraySpec { read_cache, ..controller(Level::Stripe, 32) };
        let mut array = Array::new(spec, members).unwrap();
        let mut done: Vec<Completion> = Vec::new();
        let mut now = Nanos::ZERO;
        for (id, sector) in sectors.iter().enumerate() {
            array.submit(Request::read(id as u64, *sector, 1), now);
            while let Some(next) = array.next_event() {
                now = next.max(now);
                array.advance(now, &mut done);
            }
        }
        assert_eq!(done.len(), sectors.len());
        array.drive_operations()
    };
    let stream: Vec<u64> = (0..64).collect();
    let scattered: Vec<u64> = (0..64).map(|at| at * 7919 % 1000 * 8).collect();
    let two: Vec<u64> = (0..64).flat_map(|at| [at, 3200 + at]).collect();
    let adaptive = |streams| Some((AheadPolicy::Adaptive, streams));
    assert_eq!(operations(None, &stream), 64);
    // The first read alone, then two rows.
    assert_eq!(operations(adaptive(1), &stream), 1 + 2 * 4);
    assert_eq!(operations(Some((AheadPolicy::Always, 1)), &stream), 2 * 4);
    assert_eq!(operations(adaptive(8), &scattered), 64, "nothing is read ahead of scattered reads");
    assert_eq!(operations(adaptive(1), &two), 128, "streams that one end cannot tell");
    assert_eq!(operations(adaptive(2), &two), 2 * (1 + 2 * 4));
}

#[test]
fn a_battery_cache_absorbs_its_size_and_then_runs_at_destage_speed() {
    let size = 4096u64;
    let drive = || Disk::new(bare(Policy::ShortestPositioning, 16, published(), 0)).unwrap();
    let members = || (0..4).map(|_| Box::new(drive()) as Box<dyn Device>).collect::<Vec<_>>();
    let spec = ArraySpec {
        drive_depth: 16,
        overhead_ns: 50_000,
        read_cache: None,
        write_back: Some(WriteBack {
            size,
            high_water: 0.8,
            destage: Destage::Elevator,
            window: 32,
        }),
        ..controller(Level::Stripe, 32)
    };
    let mut array = Array::new(spec, members()).unwrap();
    let blocks = array.capacity().0 / 8;
    let mut stream = Stream::new(9, "burst");
    let mut done: Vec<Completion> = Vec::new();
    let (mut now, mut id, mut times) = (Nanos::ZERO, 0, Vec::new());
    let count = size as usize / 8 * 6;
    while times.len() < count {
        while id < times.len() as u64 + 16 {
            array.submit(Request::write(id, stream.below(blocks) * 8, 8), now);
            id += 1;
        }
        now = array.next_event().unwrap();
        array.advance(now, &mut done);
        times.extend(done.drain(..).map(|done| done.at));
        assert!(array.view().dirty.0 <= size, "more than it holds");
    }
    let burst = size as usize / 8;
    let absorbed = times[burst - 1].as_millis_f64();
    assert!(absorbed < 5.0, "the first {burst} writes took {absorbed} ms");
    let rate = |from: usize, to: usize| {
        (to - from) as f64 / (times[to - 1] - times[from - 1]).as_secs_f64()
    };
    let later = rate(burst * 3, burst * 6);
    let first = burst as f64 / times[burst - 1].as_secs_f64();
    println!("burst {first:.0} writes/s, then {later:.0} writes/s");
    // Four drives in elevator order, eight runs each: some hundreds of writes a second each.
    assert!(first > 50.0 * later, "burst {first:.0}, then {later:.0}");
    assert!((600.0..3000.0).contains(&later), "{later:.0} writes/s from four drives");
}

/// Completion times of `requests`, each submitted at its time, by id.
fn times(spec: DiskSpec, requests: &[(Nanos, Request)]) -> Vec<u64> {
    let mut disk = Disk::new(spec).unwrap();
    let mut done: Vec<Completion> = Vec::new();
    for (at, request) in requests {
        disk.advance(*at, &mut done);
        disk.submit(*request, *at);
    }
    while let Some(next) = disk.next_event() {
        disk.advance(next, &mut done);
    }
    done.sort_by_key(|one| one.id);
    done.iter().map(|one| one.at.0).collect()
}

/// The bus is taken when so many whole sectors have been read as the watermark says, rounded down:
/// 3 of 4, and 3 of 5. From then on the bus decides.
#[test]
fn a_read_takes_the_bus_when_its_share_has_been_read() {
    let bus = 20_000; // slower than the medium's 4 us a sector
    let mut spec = bare(Policy::Fifo, 1, linear(), 0);
    spec.bus.read_sector_ns = bus;
    spec.bus.read_watermark = 0.75;
    let sector = 4_000_000 / u64::from(PER_TRACK);
    for (count, read) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (8, 6), (9, 6)] {
        let at = times(spec.clone(), &[(Nanos::ZERO, Request::read(0, 0, count))])[0];
        assert_eq!(at, read * sector + count * u64::from(bus), "{count} sectors");
    }
}

/// A nonsequential write waits its least time; one that the arm goes straight on with does not,
/// and one that comes at the same block when the arm has stopped does.
#[test]
fn only_a_write_that_the_arm_goes_straight_on_with_does_not_wait() {
    let turn = 4_000_000;
    let mut spec = bare(Policy::Fifo, 2, linear(), 0);
    spec.overheads.write_start_ns = 1_000_000;
    let sector = turn / u64::from(PER_TRACK);
    let writes = |second: u64| {
        times(
            spec.clone(),
            &[
                (Nanos::ZERO, Request::write(0, 500, 10)),
                (Nanos(second), Request::write(1, 510, 10)),
            ],
        )
    };
    // Sector 500 passes at 2 ms; the second write is there when the first one ends.
    let ended = 510 * sector;
    assert_eq!(writes(0), [ended, ended + 10 * sector]);
    // A turn less half a millisecond later its sectors come in half a millisecond: it waits for one,
    // so they pass once more.
    let later = ended + turn - 500_000;
    assert_eq!(writes(later), [ended, ended + 2 * turn + 10 * sector]);
    // With more than its wait to spare it makes them.
    let earlier = ended + turn - 1_500_000;
    assert_eq!(writes(earlier), [ended, ended + turn + 10 * sector]);
}

/// Reading on by tracks: a segment that holds a whole one is filled to its end by any read, a smaller
/// one only by a read that goes on where the last one ended.
#[test]
fn a_segment_smaller_than_a_track_is_filled_by_sequential_reads_alone() {
    let turns = |n: u64| Nanos(n * 4_000_000);
    let from_cache = |segment_sectors: u64| {
        let mut spec = bare(Policy::Fifo, 1, linear(), 0);
        spec.cache = CacheSpec {
            segments: 2,
            segment_sectors,
            read_ahead: ReadAhead::NextTrack,
            read_ahead_max: segment_sectors,
            ..CacheSpec::NONE
        };
        let reads = [0, 1, 2].map(|n| (turns(2 * n), Request::read(n, 100 + 4 * n, 4)));
        let done = times(spec, &reads);
        [0, 1, 2].map(|n| done[n] == reads[n].0.0)
    };
    assert_eq!(from_cache(u64::from(PER_TRACK)), [false, true, true]);
    assert_eq!(from_cache(64), [false, false, true]);
}

#[test]
fn a_request_beyond_the_end_is_refused() {
    let mut disk = Disk::new(bare(Policy::Fifo, 1, published(), 0)).unwrap();
    let end = disk.capacity().0;
    disk.submit(Request::read(7, end - 1, 2), Nanos(5));
    let mut done = Vec::new();
    disk.advance(disk.next_event().unwrap(), &mut done);
    assert_eq!((done[0].id, done[0].path, done[0].at), (7, Path::OutOfRange, Nanos(5)));
    assert_eq!(Request::flush(1).op, Op::Flush);
}
