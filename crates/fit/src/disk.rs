//! A disk: command, arm, turn, zones, then order of service and buffer.

use crate::basics::Basics;
use crate::estimate::{mean, quantile};
use crate::outcome::{Described, Step as Stage};
use crate::seeks::{self, Arm};
use crate::{
    Doubt, Estimate, FitError, Number, Quantity, Read, SMALL, Storage, anywhere, disk_cache,
    disk_queue, millis,
};
use device::Disk;
use device::disk::{
    After, Bus, CacheSpec, DiskSpec, GeometrySpec, HeadOrder, Overheads, Policy, SeekTable,
    Sparing, WriteCache, ZoneSpec,
};
use device::profile::Kind;
use random::Stream;

/// Equal parts of the capacity whose rates are read.
const ZONES: usize = 16;
/// Surfaces: reads do not tell how many there are, only how much a cylinder of all of them holds.
pub const HEADS: u32 = 4;
/// Sequential reading of a zone: so many pieces, whose rates vary, of so many reads of 256 KiB.
const PIECES: u64 = 4;
const PIECE: u64 = 32;
const BLOCK: u64 = (256 << 10) / 512;
/// Sequential reads outstanding, so that the medium never waits for the next command: a host that needs some tenths of
/// a millisecond between two has enough of them on their way.
const AHEAD: u32 = 4;
/// A link faster than any disk's medium, where the buffer's answers do not tell.
const LINK_SECTOR_NS: u32 = 1_700;

pub fn fit<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
    watch: &mut dyn FnMut(Stage),
) -> Result<Described, FitError<S::Error>> {
    let capacity = storage.capacity().0;
    let (mut numbers, mut doubts) = (Vec::new(), Vec::new());
    watch(Stage::Command);
    let command = command(storage, stream)?;
    match command {
        Some(estimate) => numbers.push(Number::new(Quantity::Command, estimate)),
        None => doubts.push(Doubt::NoBuffer),
    }
    watch(Stage::Seeks);
    let steps = seeks::measure(storage, stream)?;
    watch(Stage::Turn);
    let spread = seeks::turn_of_spread(&steps);
    let backward = backward(storage, stream)?;
    watch(Stage::Rates);
    let rates = rates(storage)?;
    let turn = match (backward.value / spread.value - 1.0).abs() < 0.15 {
        true => {
            // The block itself is a part of the turn that is not waited for.
            let rate = rates.iter().map(|rate| rate.value).sum::<f64>() / rates.len() as f64;
            let track = rate * 1e3 * backward.value / 512.0;
            backward.scaled(1.0 / (1.0 - SMALL as f64 / track))
        }
        false => {
            doubts.push(Doubt::TurnFromSpread);
            spread
        }
    };
    numbers.push(Number::new(Quantity::Turn, turn));
    let basics = Basics { command: command.map(|it| it.value), turn: turn.value };
    for (zone, rate) in rates.iter().enumerate() {
        let position = (zone as f64 + 0.5) / ZONES as f64;
        numbers.push(Number::new(Quantity::Rate { position }, *rate));
    }
    let (mut spec, arm) = mechanics(&basics, &rates, capacity, &steps)?;
    numbers.extend(arm.numbers);
    watch(Stage::Buffer);
    if basics.command.is_some() {
        let buffer = disk_cache::measure(storage, stream, &basics, rates[ZONES / 2].value)?;
        spec.cache = buffer.spec();
        numbers.extend(buffer.numbers());
    }
    correct_rates(&mut spec, &rates, capacity);
    watch(Stage::Depths);
    let depths = disk_queue::measure(storage, stream)?;
    watch(Stage::Models);
    let queue = disk_queue::choose(&spec, &depths);
    (spec.policy, spec.depth) = (queue.policy, queue.depth);
    numbers.push(Number::new(Quantity::Depth, queue.estimate));
    doubts.extend(queue.doubt);
    Disk::new(spec.clone()).map_err(|error| FitError::NoDevice { what: error.to_string() })?;
    Ok((Kind::Disk(spec), numbers, doubts))
}

/// What is read again at once, if a buffer has it.
fn command<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
) -> Result<Option<Estimate>, FitError<S::Error>> {
    const AGAIN: usize = 5;
    let reads: Vec<Read> =
        (0..32).flat_map(|_| [anywhere(stream, storage.capacity().0, SMALL); AGAIN]).collect();
    let times = millis(&storage.read(&reads, 1)?);
    let (first, again): (Vec<_>, Vec<_>) =
        times.iter().enumerate().partition(|(n, _)| n % AGAIN == 0);
    let values = |of: Vec<(usize, &f64)>| of.into_iter().map(|(_, time)| *time).collect::<Vec<_>>();
    let (first, mut again) = (values(first), values(again));
    if quantile(&again, 0.5) > 0.25 * quantile(&first, 0.5) {
        return Ok(None);
    }
    // A delay of the host is not the drive's.
    let most = quantile(&again, 0.9);
    again.retain(|time| *time <= most);
    let (value, error) = mean(&again);
    Ok(Some(Estimate::with_error(value, error)))
}

/// Each block just before the last one: the head has passed it, and it comes round after a turn, less the
/// block itself.
fn backward<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
) -> Result<Estimate, FitError<S::Error>> {
    const BACK: u64 = 32;
    let blocks = storage.capacity().0 / SMALL;
    let mut turns = Vec::new();
    for _ in 0..10 {
        let from = BACK + stream.below(blocks - BACK);
        let reads: Vec<Read> =
            (0..BACK).map(|back| Read::at((from - back) * SMALL, SMALL)).collect();
        let times = millis(&storage.read(&reads, 1)?);
        turns.push(quantile(&times[1..], 0.5));
    }
    let (value, error) = mean(&turns);
    Ok(Estimate::with_error(value, error))
}

/// MB/s in the middle of each part.
fn rates<S: Storage>(storage: &mut S) -> Result<Vec<Estimate>, FitError<S::Error>> {
    let capacity = storage.capacity().0;
    let length = PIECES * PIECE * BLOCK;
    (0..ZONES as u64)
        .map(|zone| {
            let middle = capacity / ZONES as u64 * zone + capacity / ZONES as u64 / 2;
            let from = middle.saturating_sub(length / 2) / BLOCK * BLOCK;
            let from = from.min(capacity.saturating_sub(length));
            // One read more, which brings the arm there.
            let reads: Vec<Read> =
                (0..=PIECES * PIECE).map(|n| Read::at(from + n * BLOCK, BLOCK)).collect();
            let reads: Vec<Read> =
                reads.into_iter().filter(|read| read.start + BLOCK <= capacity).collect();
            storage.read(&reads[..1], 1)?;
            let mut pieces = Vec::new();
            for piece in reads[1..].chunks(PIECE as usize) {
                let answers = storage.read(piece, AHEAD)?;
                let bytes = piece.len() as u64 * BLOCK * 512;
                pieces.push(bytes as f64 / answers.elapsed.as_secs_f64().max(1e-9) / 1e6);
            }
            let (value, error) = mean(&pieces);
            Ok(Estimate::with_error(value, error))
        })
        .collect()
}

/// Cylinders of each part, given what a track of it holds.
fn zones(tracks: &[f64], capacity: u64) -> Vec<ZoneSpec> {
    let part = capacity as f64 / ZONES as f64;
    let (mut first, mut covered) = (0, 0u64);
    let mut zones = Vec::new();
    for (zone, sectors) in tracks.iter().enumerate() {
        let per_track = (sectors.round() as u32).max(1);
        let cylinder = u64::from(per_track * HEADS);
        let until = (part * (zone + 1) as f64) as u64;
        let cylinders = until.saturating_sub(covered).div_ceil(cylinder).max(1);
        covered += cylinders * cylinder;
        zones.push(ZoneSpec {
            first_cylinder: first,
            last_cylinder: first + cylinders as u32 - 1,
            sectors_per_track: per_track,
            offset: 0.0,
            empty_front: 0,
            track_skew: 0,
            cylinder_skew: 0,
            spares: 0,
            slips: Vec::new(),
            defects: Vec::new(),
        });
        first += cylinders as u32;
    }
    zones
}

/// The cylinder of a sector, parts of one included.
fn cylinder_of(zones: &[ZoneSpec], sector: u64) -> (f64, f64) {
    let mut begins = 0.0;
    for zone in zones {
        let cylinder = f64::from(zone.sectors_per_track * HEADS);
        let cylinders = f64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let inside = (sector as f64 - begins) / cylinder;
        if inside < cylinders {
            return (f64::from(zone.first_cylinder) + inside, f64::from(zone.sectors_per_track));
        }
        begins += cylinders * cylinder;
    }
    zones.last().map_or((0.0, 1.0), |zone| {
        (f64::from(zone.last_cylinder), f64::from(zone.sectors_per_track))
    })
}

/// Geometry and arm.
fn mechanics<E: std::error::Error>(
    basics: &Basics,
    rates: &[Estimate],
    capacity: u64,
    steps: &[seeks::Step],
) -> Result<(DiskSpec, Arm), FitError<E>> {
    let turn_ns = (basics.turn * 1e6) as u64;
    let tracks: Vec<f64> =
        rates.iter().map(|rate| rate.value * 1e6 * basics.turn / 1e3 / 512.0).collect();
    let zones = zones(&tracks, capacity);
    let cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
    let command = basics.command.unwrap_or(0.0);
    let arm = seeks::curve(steps, cylinders, basics.turn, |step| {
        if step.millis < basics.hit() {
            return None;
        }
        let (from, _) = cylinder_of(&zones, step.from);
        let (to, per_track) = cylinder_of(&zones, step.to);
        // The wait for the sector is half a turn in the mean; then the block itself passes. All but its last sector
        // cross the link meanwhile, and the command's time has the whole of it.
        let medium = basics.turn / 2.0 + basics.turn * SMALL as f64 / per_track;
        let meanwhile = LINK_SECTOR_NS as f64 * (SMALL - 1) as f64 / 1e6;
        Some(((from - to).abs(), step.millis - (command - meanwhile).max(0.0) - medium))
    });
    let arm = arm.ok_or_else(|| FitError::NoDevice {
        what: "its reads at all distances take the same time".to_owned(),
    })?;
    let command_ns = (command * 1e6) as u32;
    let mut overheads = Overheads {
        read_hit: After::both(command_ns),
        read_miss: After::both(command_ns),
        write_hit: After::both(command_ns),
        write_miss: After::both(command_ns),
        ..Overheads::default()
    };
    // What crosses the link is in the command's time already.
    let link = u64::from(LINK_SECTOR_NS) * SMALL;
    for after in [&mut overheads.read_hit, &mut overheads.read_miss] {
        *after = After::both(u64::from(after.read_ns).saturating_sub(link) as u32);
    }
    let spec = DiskSpec {
        geometry: GeometrySpec {
            heads: HEADS,
            cylinders,
            turn_ns,
            head_order: HeadOrder::Conventional,
            sparing: Sparing::None,
            zones,
            index: None,
        },
        access: device::disk::Access::Positions,
        seek: arm.curve.clone(),
        write_seek: None,
        head_switch_ns: 0,
        write_settle_ns: 0,
        read_after_write_jog: true,
        overheads,
        bus: Bus {
            read_sector_ns: LINK_SECTOR_NS,
            write_sector_ns: LINK_SECTOR_NS,
            read_watermark: 0.0,
            disconnects: true,
            write_holds_arm: false,
        },
        cache: CacheSpec::NONE,
        write_cache: WriteCache::Off,
        policy: Policy::Fifo,
        depth: 1,
    };
    Ok((spec, arm))
}

/// Tracks that give the measured rates: a part of each cylinder's time goes into the step to the next, so that
/// the medium is faster than what is read.
fn correct_rates(spec: &mut DiskSpec, rates: &[Estimate], capacity: u64) {
    let turn = spec.geometry.turn_ns as f64;
    let table = SeekTable::new(&spec.seek, spec.geometry.cylinders);
    let single = table.map_or(0, |table| table.time_ns(1));
    // A little more than the step, so that the head is there when the first sector comes.
    let skew_ns = f64::from(single) * 1.05 + 0.02 * turn;
    let tracks: Vec<f64> = rates
        .iter()
        .map(|rate| rate.value * 1e6 / 512.0 * (turn + skew_ns / f64::from(HEADS)) / 1e9)
        .collect();
    let mut zones = zones(&tracks, capacity);
    for zone in &mut zones {
        zone.cylinder_skew = (skew_ns / turn * f64::from(zone.sectors_per_track)).ceil() as u32;
    }
    spec.geometry.cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
    spec.geometry.zones = zones;
}
