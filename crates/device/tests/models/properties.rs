//! What must hold of any device and any stream of requests, over random descriptions.

use device::array::{AheadPolicy, ArraySpec, Destage, Level, ReadCache, ReadPolicy, WriteBack};
use device::disk::{
    Access, After, Bus, CacheSpec, ChildSpec, DiskSpec, GeometrySpec, HeadOrder, IndexSpec,
    MediaWrite, Overheads, PatternSpec, Policy, ReadAhead, RemapSpec, RunSpec, SeekCurve, Sparing,
    WriteCache, ZoneSpec,
};
use device::flash::{FlashSpec, State};
use device::{Array, Completion, Device, Disk, Flash, Op, Path, Request};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use units::Nanos;

fn zones() -> impl Strategy<Value = (Vec<ZoneSpec>, u32)> {
    let slips = prop::collection::btree_set(0u64..200, 0..4);
    let defects = prop::collection::vec((0u64..200, 0u64..200), 0..3);
    let zone = (1u32..8, 4u32..40, 0u32..10, 0u32..10, 0u32..3, 1u64..4, slips, defects);
    prop::collection::vec(zone, 1..4).prop_map(|zones| {
        let mut next = 0;
        let made = zones.into_iter().map(|zone| {
            let (cylinders, sectors, track, cylinder, gap, spares, slips, defects) = zone;
            let first = next + gap;
            next = first + cylinders;
            ZoneSpec {
                first_cylinder: first,
                last_cylinder: next - 1,
                sectors_per_track: sectors,
                offset: f64::from(track),
                empty_front: u64::from(gap),
                track_skew: track,
                cylinder_skew: cylinder,
                spares,
                slips: slips.into_iter().filter(|slip| *slip < u64::from(sectors) * 2).collect(),
                defects,
            }
        });
        let made: Vec<_> = made.collect();
        (made, next)
    })
}

fn zoned() -> impl Strategy<Value = GeometrySpec> {
    let sparing = prop_oneof![
        Just(Sparing::None),
        Just(Sparing::Track),
        Just(Sparing::Cylinder),
        Just(Sparing::Zone),
        Just(Sparing::Disk),
        Just(Sparing::ZoneTracks),
        Just(Sparing::CylinderFront),
        Just(Sparing::CylinderAndDisk),
        Just(Sparing::CylinderFrontAndDisk),
        Just(Sparing::ZoneAndDisk),
        (1u32..4).prop_map(Sparing::Range),
    ];
    let order = prop_oneof![
        Just(HeadOrder::Conventional),
        Just(HeadOrder::SerpentineByZone),
        Just(HeadOrder::Serpentine)
    ];
    (zones(), 1u32..5, sparing, order).prop_map(|((zones, cylinders), heads, sparing, order)| {
        GeometrySpec {
            heads,
            cylinders,
            turn_ns: 4_000_000,
            head_order: order,
            sparing,
            zones,
            index: None,
        }
    })
}

/// A band: cylinders, sectors of each surface's tracks, angles, and how many like it follow.
type Band = (u32, Vec<u32>, f64, f64, u32);

/// A node for each band, in it a run of tracks for each surface, to and fro; then the root.
fn indexed() -> impl Strategy<Value = GeometrySpec> {
    let band = (1u32..6, prop::collection::vec(2u32..30, 3), 0.0f64..1.0, 0.0f64..1.0, 1u32..4);
    let slips = prop::collection::vec((0u64..400, 1u64..9), 0..4);
    let bands = prop::collection::vec(band, 1..4);
    (bands, 1u32..4, 0u32..3, slips, prop::option::of(0u64..60)).prop_map(
        |(bands, heads, front, slips, remap)| index(&bands, heads as usize, front, slips, remap),
    )
}

fn index(
    bands: &[Band],
    heads: usize,
    front: u32,
    slips: Vec<(u64, u64)>,
    remap: Option<u64>,
) -> GeometrySpec {
    let (mut patterns, mut nodes, mut root) = (Vec::new(), Vec::new(), Vec::new());
    let (mut place, mut cylinder) = (0, 0);
    for (number, (tracks, sectors, angle, advance, times)) in bands.iter().enumerate() {
        let run = |start, cylinder, child_places, child_cylinders, count, inward, child| RunSpec {
            start,
            cylinder,
            angle: *angle,
            child_places,
            child_cylinders,
            advance: *advance,
            places: child_places * u64::from(count),
            inward,
            child,
        };
        let (mut node, mut places) = (Vec::new(), 0);
        for (head, sectors) in sectors.iter().take(heads).enumerate() {
            let pattern = patterns.len() as u32;
            let (last, sectors_per_track) = (front + sectors - 1, front + sectors);
            patterns.push(PatternSpec { first: front, last, sectors_per_track });
            let inward = head % 2 == 0;
            let from = if inward { 0 } else { tracks - 1 };
            let child = ChildSpec::Track { pattern, head: head as u32 };
            node.push(run(places, from, u64::from(*sectors), 1, *tracks, inward, child));
            places += u64::from(sectors * tracks);
        }
        nodes.push(node);
        root.push(run(
            place,
            cylinder,
            places,
            *tracks,
            *times,
            true,
            ChildSpec::Node(number as u32),
        ));
        place += places * u64::from(*times);
        cylinder += tracks * times;
    }
    nodes.push(root);
    // The last cylinder is a spare one.
    let remaps = remap.map(|place| RemapSpec {
        place,
        count: 2,
        cylinder,
        head: 0,
        sector: 1,
        sectors_per_track: 9,
    });
    let index = IndexSpec { patterns, nodes, slips, remaps: remaps.into_iter().collect() };
    let simple = GeometrySpec::simple(cylinder + 1, heads as u32, 1, 4_000_000, (0, 0));
    GeometrySpec { zones: Vec::new(), index: Some(Box::new(index)), ..simple }
}

fn geometry() -> impl Strategy<Value = GeometrySpec> {
    prop_oneof![3 => zoned(), 1 => indexed()]
}

fn cache() -> impl Strategy<Value = CacheSpec> {
    let ahead = prop_oneof![
        Just(ReadAhead::Off),
        Just(ReadAhead::Track),
        Just(ReadAhead::Cylinder),
        Just(ReadAhead::Segment),
        Just(ReadAhead::NextTrack)
    ];
    (0u32..4, 4u64..64, 0u32..3, ahead, any::<[bool; 5]>()).prop_map(
        |(segments, size, write_segments, read_ahead, [a, b, c, d, e])| CacheSpec {
            segments,
            segment_sectors: size,
            write_segments,
            read_ahead,
            read_ahead_max: size,
            over_requested: a,
            on_idle_hit: b,
            hits_on_writes: c,
            free_blocks: d,
            read_on_arrival: e,
        },
    )
}

fn disk() -> impl Strategy<Value = DiskSpec> {
    let policy = prop_oneof![
        Just(Policy::Fifo),
        Just(Policy::Look),
        Just(Policy::CLook),
        Just(Policy::ShortestSeek),
        Just(Policy::ShortestPositioning)
    ];
    let write_cache = prop_oneof![
        Just(WriteCache::Off),
        (1u32..3).prop_map(|streams| WriteCache::Appending { streams }),
        (1u64..60, 1u32..6).prop_map(|(size, runs)| WriteCache::Full {
            size,
            runs,
            high_water: 0.5
        }),
    ];
    let access = prop_oneof![
        6 => Just(Access::Positions),
        1 => Just(Access::NoRotation),
        1 => Just(Access::HalfTurn),
        1 => (0u32..9_000_000).prop_map(Access::Constant),
    ];
    let write_seek = prop::option::of(Just(Box::new(SeekCurve::Constant(1.2))));
    let arm = (access, write_seek);
    (geometry(), arm, cache(), write_cache, policy, 1u32..6, 0u32..300_000).prop_map(
        |(geometry, (access, write_seek), cache, write_cache, policy, depth, overhead)| DiskSpec {
            geometry,
            access,
            seek: SeekCurve::ThreePoint { single: 0.3, average: 1.0, full: 2.0 },
            write_seek,
            head_switch_ns: 200_000,
            write_settle_ns: 100_000,
            read_after_write_jog: true,
            overheads: Overheads {
                read_hit: After::both(overhead),
                read_miss: After::both(overhead + 1000),
                write_hit: After::both(overhead),
                write_miss: After::both(overhead + 1000),
                ..Overheads::default()
            },
            bus: Bus {
                read_sector_ns: 1000,
                write_sector_ns: 1500,
                read_watermark: 0.0,
                disconnects: true,
                write_holds_arm: false,
            },
            cache,
            write_cache,
            policy,
            depth,
        },
    )
}

fn flash() -> impl Strategy<Value = FlashSpec> {
    let state =
        prop_oneof![Just(State::Fresh), Just(State::Sequential(0.5)), Just(State::Random(0.9))];
    (1u32..4, 1u32..3, 1u32..3, state, any::<bool>(), 1u32..20).prop_map(
        |(channels, dies, planes, state, power_safe, depth)| FlashSpec {
            capacity: 4096,
            over_provisioning: 0.2,
            channels,
            dies_per_channel: dies,
            planes,
            page_sectors: 8,
            pages_per_block: 16,
            read_ns: vec![20_000, 30_000],
            read_spread_ns: 2_000,
            program_ns: 100_000,
            erase_ns: 1_000_000,
            channel_sector_ns: 500,
            link_read_sector_ns: 200,
            link_write_sector_ns: 200,
            firmware_ns: 3_000,
            controller_ns: 500,
            buffer_ns: 1_000,
            buffer_sectors: 64,
            power_safe,
            depth,
            state,
        },
    )
}

fn array_spec() -> impl Strategy<Value = (ArraySpec, usize)> {
    let level = prop_oneof![
        Just((Level::Stripe, 3)),
        Just((Level::Mirror, 2)),
        Just((Level::StripedMirrors, 4)),
        Just((Level::Parity, 4))
    ];
    let policy = prop_oneof![
        Just(ReadPolicy::First),
        Just(ReadPolicy::RoundRobin),
        Just(ReadPolicy::ShortestQueue),
        Just(ReadPolicy::NearestHead)
    ];
    let back = (4u64..80, any::<bool>(), 1u32..5).prop_map(|(size, oldest, window)| WriteBack {
        size,
        high_water: 0.5,
        destage: if oldest { Destage::Oldest } else { Destage::Elevator },
        window,
    });
    let rows =
        (16u64..80, any::<bool>(), 1usize..4).prop_map(|(size, always, streams)| ReadCache {
            size,
            ahead: if always { AheadPolicy::Always } else { AheadPolicy::Adaptive },
            streams,
        });
    let caches = (prop::option::of(rows), prop::option::of(back));
    (level, policy, caches, 1u32..9, 1u32..4, any::<bool>()).prop_map(
        |((level, drives), read_policy, (read_cache, write_back), depth, drive_depth, failed)| {
            let spec = ArraySpec {
                level,
                stripe_unit: 4,
                depth,
                drive_depth,
                overhead_ns: 10_000,
                sector_ns: 100,
                read_policy,
                read_cache,
                write_back,
                failed: (failed && level != Level::Stripe).then_some(1),
            };
            (spec, drives)
        },
    )
}

/// A request to make: gap before it in µs, op, place and size as shares, forced to the medium.
type Step = (u64, u8, f64, u64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0u64..6000, 0u8..12, 0.0f64..1.0, 1u64..24, any::<bool>());
    prop::collection::vec(step, 1..80)
}

fn requests(steps: &[Step], capacity: u64) -> Vec<(Nanos, Request)> {
    let mut at = 0;
    let mut last = 0;
    steps
        .iter()
        .enumerate()
        .map(|(id, (gap, kind, place, size, fua))| {
            // Some come together, some long after; some go on where the last one ended.
            at += if kind % 3 == 0 { 0 } else { gap * 1000 };
            let size = (*size).min(capacity);
            let start = match kind % 4 {
                0 if last + size <= capacity => last,
                _ => ((capacity - size) as f64 * place) as u64,
            };
            last = start + size;
            let id = id as u64;
            let request = match kind {
                0..=4 => Request::read(id, start, size),
                5 => Request::flush(id),
                6 => Request { op: Op::Discard, ..Request::write(id, start, size) },
                _ => Request { fua: *fua, ..Request::write(id, start, size) },
            };
            (Nanos(at), request)
        })
        .collect()
}

/// Drives a device event by event, arrivals at their times. Never is more than `most_dirty` sectors
/// acknowledged and not on the medium.
fn prompt(
    device: &mut dyn Device,
    requests: &[(Nanos, Request)],
    most_dirty: u64,
) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut arrivals = requests.iter().peekable();
    loop {
        let event = device.next_event();
        match (arrivals.peek(), event) {
            (Some((at, request)), event) if event.is_none_or(|event| *at <= event) => {
                device.submit(*request, *at);
                arrivals.next();
            }
            (_, Some(event)) => device.advance(event, &mut done),
            (_, None) => break,
        }
        let view = device.view();
        assert!(view.dirty.0 <= most_dirty, "{view:?}: more than the cache holds");
        assert!(view.busy <= view.units, "{view:?}");
    }
    assert_eq!(device.view().outstanding, 0);
    done
}

/// The same arrivals, but nobody looks until each arrival, and then late.
fn late(device: &mut dyn Device, requests: &[(Nanos, Request)]) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut clock = Nanos::ZERO;
    for (at, request) in requests {
        device.submit(*request, *at);
        clock = *at;
    }
    while let Some(event) = device.next_event() {
        clock = clock.max(event) + Nanos(3_333_333);
        device.advance(clock, &mut done);
    }
    done
}

/// Exactly once, in order of time, not before it was asked for.
fn check(requests: &[(Nanos, Request)], done: &[Completion]) -> Result<(), TestCaseError> {
    let ids: BTreeSet<u64> = done.iter().map(|done| done.id).collect();
    prop_assert_eq!(done.len(), requests.len());
    prop_assert_eq!(ids.len(), requests.len());
    for done in done {
        let (at, _) = &requests[done.id as usize];
        prop_assert_eq!(done.submitted, *at);
        prop_assert!(done.began >= done.submitted && done.at >= done.began);
        prop_assert!(done.path != Path::OutOfRange);
    }
    Ok(())
}

fn by_id(mut done: Vec<Completion>) -> Vec<Completion> {
    done.sort_by_key(|done| done.id);
    done
}

/// What was acknowledged under FUA, or before a flush, is on the medium by then: each of its
/// sectors was written, by it or by a write that came after it was submitted.
fn check_durable(
    requests: &[(Nanos, Request)],
    done: &[Completion],
    journal: &[MediaWrite],
) -> Result<(), TestCaseError> {
    let at: BTreeMap<u64, Nanos> = done.iter().map(|done| (done.id, done.at)).collect();
    let on_medium = |id: u64, sector: u64, by: Nanos| {
        journal.iter().any(|write| {
            let covers = (write.start..write.start + write.count).contains(&sector);
            covers && write.at <= by && write.writer >= id
        })
    };
    // Discarded or not, or overwritten by a concurrent write: only what stands alone is judged.
    let alone = |request: &Request| {
        requests.iter().all(|(_, other)| {
            other.id == request.id
                || other.op != Op::Discard
                || other.end() <= request.start.0
                || request.end() <= other.start.0
        })
    };
    for (_, request) in requests.iter().filter(|(_, r)| r.op == Op::Write && alone(r)) {
        let acknowledged = at[&request.id];
        let flushed = requests
            .iter()
            .filter(|(issued, other)| other.op == Op::Flush && *issued > acknowledged)
            .map(|(_, flush)| at[&flush.id])
            .min();
        let by = if request.fua { Some(acknowledged) } else { flushed };
        let Some(by) = by else { continue };
        for sector in request.start.0..request.end() {
            prop_assert!(
                on_medium(request.id, sector, by),
                "write {} sector {} is not on the medium by {:?}",
                request.id,
                sector,
                by
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_is_a_bijection(spec in geometry()) {
        if let Ok(geometry) = device::disk::Geometry::new(&spec) {
            let mut places = BTreeSet::new();
            for lbn in 0..geometry.capacity() {
                let place = geometry.locate(lbn);
                prop_assert!(place.cylinder < spec.cylinders && place.head < spec.heads);
                prop_assert!(places.insert((place.cylinder, place.head, place.sector)));
            }
            let mut lbn = 0;
            while lbn < geometry.capacity() {
                let extent = geometry.extent(lbn, u64::MAX);
                prop_assert!(extent.blocks >= 1 && extent.sectors >= extent.blocks);
                prop_assert!(extent.sectors <= extent.sectors_per_track);
                lbn += extent.blocks;
            }
            prop_assert_eq!(lbn, geometry.capacity());
        }
    }

    #[test]
    fn a_disk_serves_everything_once_and_keeps_its_word(spec in disk(), steps in steps()) {
        if let Ok(mut disk) = Disk::new(spec.clone()) {
            disk.keep_journal();
            let requests = requests(&steps, disk.capacity().0);
            let most = match spec.write_cache {
                WriteCache::Off => 0,
                WriteCache::Appending { .. } => spec.cache.segment_sectors * 3,
                WriteCache::Full { size, .. } => size,
            };
            let done = prompt(&mut disk, &requests, most);
            check(&requests, &done)?;
            prop_assert!(done.windows(2).all(|pair| pair[0].at <= pair[1].at));
            for done in &done {
                let request = &requests[done.id as usize].1;
                let least = disk.minimum_service_ns(request.op, request.count.0);
                prop_assert!((done.at - done.submitted).0 >= least, "{:?}", done);
            }
            check_durable(&requests, &done, disk.journal())?;
            // One arm: what it writes lands one after another.
            let mut landed: Vec<Nanos> = disk.journal().iter().map(|write| write.at).collect();
            prop_assert!(landed.is_sorted());
            landed.dedup();
            prop_assert!(disk.view().dirty.0 == 0);

            let mut again = Disk::new(spec.clone()).unwrap();
            prop_assert_eq!(&done, &prompt(&mut again, &requests, most), "same again");
            let mut slow = Disk::new(spec).unwrap();
            prop_assert_eq!(by_id(done), by_id(late(&mut slow, &requests)), "called late");
        }
    }

    #[test]
    fn one_arm_serves_one_request_at_a_time(spec in disk(), steps in steps()) {
        // Without a cache or a bus, a request's time is its overhead and the arm's.
        let spec = DiskSpec {
            cache: CacheSpec::NONE,
            write_cache: WriteCache::Off,
            bus: Bus { read_sector_ns: 0, write_sector_ns: 0, ..spec.bus },
            ..spec
        };
        if let Ok(mut disk) = Disk::new(spec) {
            let requests = requests(&steps, disk.capacity().0);
            let mut served: Vec<_> = prompt(&mut disk, &requests, 0)
                .into_iter()
                .filter(|done| done.path == Path::Medium)
                .map(|done| (done.began, done.at))
                .collect();
            served.sort();
            for pair in served.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "{:?}", pair);
            }
        }
    }

    #[test]
    fn flash_serves_everything_once_and_keeps_its_word(spec in flash(), steps in steps()) {
        let mut drive = Flash::new(spec.clone(), 1).unwrap();
        drive.keep_journal();
        let requests = requests(&steps, spec.capacity);
        let most = spec.buffer_sectors;
        let done = prompt(&mut drive, &requests, most);
        check(&requests, &done)?;
        for done in &done {
            let request = &requests[done.id as usize].1;
            if request.op == Op::Read {
                let least = drive.minimum_read_ns(request.count.0);
                prop_assert!((done.at - done.submitted).0 >= least);
            }
        }
        if !spec.power_safe {
            check_durable(&requests, &done, drive.journal())?;
        }
        let mut again = Flash::new(spec.clone(), 1).unwrap();
        prop_assert_eq!(&done, &prompt(&mut again, &requests, most), "same again");
        let mut slow = Flash::new(spec, 1).unwrap();
        prop_assert_eq!(by_id(done), by_id(late(&mut slow, &requests)), "called late");
    }

    #[test]
    fn an_array_serves_everything_once(
        (spec, drives) in array_spec(), member in disk(), steps in steps()
    ) {
        let build = || -> Option<Array> {
            let drives = (0..drives)
                .map(|_| Disk::new(member.clone()).ok().map(|d| Box::new(d) as Box<dyn Device>))
                .collect::<Option<Vec<_>>>()?;
            Array::new(spec.clone(), drives).ok()
        };
        if let Some(mut array) = build() {
            let requests = requests(&steps, array.capacity().0);
            let most = spec.write_back.map_or(u64::MAX, |cache| cache.size);
            let done = prompt(&mut array, &requests, most);
            check(&requests, &done)?;
            prop_assert_eq!(array.view().dirty.0, 0, "all reaches the drives in the end");
            prop_assert_eq!(&done, &prompt(&mut build().unwrap(), &requests, most), "same again");
            let slow = late(&mut build().unwrap(), &requests);
            prop_assert_eq!(by_id(done), by_id(slow), "called late");
        }
    }
}
