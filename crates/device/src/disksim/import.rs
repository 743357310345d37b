//! From DiskSim's parameters to our description of a disk.

use super::DriveFileError;
use super::parse::{Block, Value, parse};
use crate::disk::{
    After, Bus, CacheSpec, DiskSpec, ExtraDisconnect, GeometrySpec, HeadOrder, Overheads, Policy,
    ReadAhead, SeekCurve, Sparing, WriteCache, ZoneSpec,
};

/// A drive's files: (name, text). Directories in names do not matter.
#[derive(Clone, Debug, Default)]
pub struct DriveFiles {
    /// Names and texts.
    pub files: Vec<(String, String)>,
}

impl DriveFiles {
    fn text(&self, name: &str) -> Option<&str> {
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let wanted = base(name);
        self.files.iter().find(|(n, _)| base(n) == wanted).map(|(_, text)| text.as_str())
    }

    fn with_ending(&self, ending: &str) -> Vec<&(String, String)> {
        self.files.iter().filter(|(name, _)| name.ends_with(ending)).collect()
    }
}

/// Reads a drive from its files: one `.diskspecs` (or a `.parv` that holds the drive itself), the
/// model and the seek table it names, and the bus in its `.parv`.
pub fn import(files: &DriveFiles) -> Result<DiskSpec, DriveFileError> {
    let (name, block) = find_drive(files)?;
    let drive = Reader { file: &name, block: &block };
    let (model_name, model) = find_model(files, &drive)?;
    let model = Reader { file: &model_name, block: &model };
    let bus_block = bus_times(files)?;
    drive_spec(files, &drive, &model, bus_block)
}

fn find_drive(files: &DriveFiles) -> Result<(String, Block), DriveFileError> {
    for ending in [".diskspecs", ".parv", ".model"] {
        for (name, text) in files.with_ending(ending) {
            let parsed = parse(name, text)?;
            if let Some(block) = parsed.blocks.into_iter().find(|b| b.kind == "disksim_disk") {
                return Ok((name.clone(), block));
            }
            if ending == ".diskspecs" {
                let what = "expected a block 'disksim_disk NAME {', found none";
                return Err(DriveFileError::new(name, 1, what));
            }
        }
    }
    let names: Vec<_> = files.files.iter().map(|(name, _)| name.as_str()).collect();
    let what = format!(
        "no .diskspecs file and no .parv file with a drive among: {}",
        if names.is_empty() { "(nothing)".to_owned() } else { names.join(", ") }
    );
    Err(DriveFileError::new("the folder", 1, what))
}

fn find_model(files: &DriveFiles, drive: &Reader<'_>) -> Result<(String, Block), DriveFileError> {
    match drive.block.get("Model") {
        Some((Value::Block(block), _)) => Ok((drive.file.to_owned(), block.clone())),
        Some((Value::Source(name), line)) => {
            let text = files.text(name).ok_or_else(|| {
                drive.wrong(line, format!("names the model file '{name}', which is not there"))
            })?;
            let block = parse(name, text)?
                .blocks
                .into_iter()
                .find(|block| block.kind == "dm_disk")
                .ok_or_else(|| {
                    DriveFileError::new(name, 1, "expected a block 'dm_disk NAME {', found none")
                })?;
            Ok((name.clone(), block))
        }
        Some((_, line)) => Err(drive.wrong(line, "expected 'Model = source FILE' or a block")),
        None => Err(drive.wrong(drive.block.line, "no parameter 'Model'")),
    }
}

/// Read and write block times of the bus next to the drive (the last one defined), in ms.
fn bus_times(files: &DriveFiles) -> Result<(f64, f64), DriveFileError> {
    let mut times = (0.0, 0.0);
    for (name, text) in files.with_ending(".parv") {
        for block in parse(name, text)?.blocks.iter().filter(|b| b.kind == "disksim_bus") {
            let bus = Reader { file: name, block };
            times = (
                bus.optional("Read block transfer time")?.unwrap_or(0.0),
                bus.optional("Write block transfer time")?.unwrap_or(0.0),
            );
        }
    }
    Ok(times)
}

struct Reader<'a> {
    file: &'a str,
    block: &'a Block,
}

impl Reader<'_> {
    fn wrong(&self, line: usize, what: impl Into<String>) -> DriveFileError {
        DriveFileError::new(self.file, line, what)
    }

    fn missing(&self, name: &str) -> DriveFileError {
        let what = format!("the block '{}' has no parameter '{name}'", self.block.kind);
        self.wrong(self.block.line, what)
    }

    fn optional(&self, name: &str) -> Result<Option<f64>, DriveFileError> {
        self.block.get(name).map(|(value, line)| self.as_number(name, value, line)).transpose()
    }

    fn as_number(&self, name: &str, value: &Value, line: usize) -> Result<f64, DriveFileError> {
        match value {
            Value::Word(text) => {
                text.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| {
                    self.wrong(line, format!("expected a number for '{name}', found '{text}'"))
                })
            }
            _ => Err(self.wrong(line, format!("expected a number for '{name}'"))),
        }
    }

    fn number(&self, name: &str) -> Result<f64, DriveFileError> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }

    fn whole(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, DriveFileError> {
        let value = self.number(name)?;
        let whole = value as u64;
        if value < 0.0 || value.fract() != 0.0 || !range.contains(&whole) {
            let what = format!(
                "'{name}' is {value}: expected a whole number from {} to {}",
                range.start(),
                range.end()
            );
            return Err(self.wrong(self.line(name), what));
        }
        Ok(whole)
    }

    fn line(&self, name: &str) -> usize {
        self.block.get(name).map_or(self.block.line, |(_, line)| line)
    }

    /// 0 or 1; absent is 0.
    fn switch(&self, name: &str) -> Result<bool, DriveFileError> {
        match self.block.get(name) {
            None => Ok(false),
            Some(_) => self.whole(name, 0..=1).map(|v| v == 1),
        }
    }

    /// A time in ms, as ns; absent is 0.
    fn time_ns(&self, name: &str) -> Result<u32, DriveFileError> {
        let millis = self.optional(name)?.unwrap_or(0.0);
        if !(0.0..=1000.0).contains(&millis) {
            let what = format!("'{name}' is {millis} ms: expected 0 to 1000 ms");
            return Err(self.wrong(self.line(name), what));
        }
        Ok((millis * 1e6).round() as u32)
    }

    fn numbers(&self, name: &str) -> Result<Vec<(f64, usize)>, DriveFileError> {
        match self.block.get(name) {
            None => Ok(Vec::new()),
            Some((Value::List(items), _)) => items
                .iter()
                .map(|(value, line)| Ok((self.as_number(name, value, *line)?, *line)))
                .collect(),
            Some((_, line)) => Err(self.wrong(line, format!("expected a list for '{name}'"))),
        }
    }

    fn inner(&self, name: &str, kind: &str) -> Result<Reader<'_>, DriveFileError> {
        match self.block.get(name) {
            Some((Value::Block(block), _)) if block.kind == kind => {
                Ok(Reader { file: self.file, block })
            }
            Some((Value::Block(block), line)) => {
                let what = format!("'{name}' is a '{}': only '{kind}' is known", block.kind);
                Err(self.wrong(line, what))
            }
            Some((_, line)) => Err(self.wrong(line, format!("expected a block for '{name}'"))),
            None => Err(self.missing(name)),
        }
    }

    fn unknown_code(&self, name: &str, code: u64, known: &str) -> DriveFileError {
        self.wrong(self.line(name), format!("'{name}' has the unknown code {code}: {known}"))
    }
}

fn drive_spec(
    files: &DriveFiles,
    drive: &Reader<'_>,
    model: &Reader<'_>,
    (bus_read_ms, bus_write_ms): (f64, f64),
) -> Result<DiskSpec, DriveFileError> {
    let mechanics = model.inner("Mechanical Model", "dm_mech_g1")?;
    let sector_ms = drive.number("Bulk sector transfer time")?;
    let sector_ns = |bus_ms: f64| (sector_ms.max(bus_ms) * 1e6).round() as u32;
    let cache = cache_spec(drive)?;
    let write_cache = match drive.whole("Fast write level", 0..=u64::MAX)? {
        0 => WriteCache::Off,
        1 => WriteCache::Appending { streams: 1 },
        2 => WriteCache::Appending { streams: cache.write_segments.max(1) },
        code => {
            let known = "expected 0 off, 1 appending, 2 appending to several";
            return Err(drive.unknown_code("Fast write level", code, known));
        }
    };
    let settle = mechanics.number("Add. write settling delay")?;
    if !(-1000.0..=1000.0).contains(&settle) {
        let line = mechanics.line("Add. write settling delay");
        return Err(mechanics.wrong(line, format!("a settling delay of {settle} ms")));
    }
    let policy = match drive.inner("Scheduler", "disksim_ioqueue") {
        Ok(scheduler) => policy(&scheduler)?,
        Err(_) => Policy::Fifo,
    };
    let spec = DiskSpec {
        geometry: geometry_spec(model, &mechanics)?,
        seek: seek_curve(files, &mechanics)?,
        head_switch_ns: mechanics.time_ns("Head switch time")?,
        write_settle_ns: (settle * 1e6).round() as i32,
        read_after_write_jog: true,
        overheads: overheads(drive)?,
        bus: Bus {
            read_sector_ns: sector_ns(bus_read_ms),
            write_sector_ns: sector_ns(bus_write_ms),
            read_watermark: drive
                .optional("High (read) water mark")?
                .unwrap_or(0.0)
                .clamp(0.0, 1.0),
            disconnects: !drive.switch("Never disconnect")?,
            write_holds_arm: drive.switch("Hold bus entire write xfer")?,
        },
        cache,
        write_cache,
        policy,
        depth: drive.whole("Max queue length", 0..=65_536)?.max(1) as u32,
    };
    // Whatever else is impossible shows when the drive is built.
    crate::Disk::new(spec.clone())
        .map_err(|error| model.wrong(model.block.line, error.to_string()))?;
    Ok(spec)
}

fn policy(scheduler: &Reader<'_>) -> Result<Policy, DriveFileError> {
    let name = "Scheduling policy";
    Ok(match scheduler.whole(name, 0..=u64::MAX)? {
        1 => Policy::Fifo,
        2 | 5 => Policy::Look,
        3 | 6 => Policy::CLook,
        4 | 7 => Policy::ShortestSeek,
        8 | 10 => Policy::ShortestPositioning,
        code => {
            let known = "expected 1 FCFS, 2 or 5 elevator, 3 or 6 cyclic, 4 or 7 shortest seek, \
                         8 or 10 shortest positioning";
            return Err(scheduler.unknown_code(name, code, known));
        }
    })
}

fn cache_spec(drive: &Reader<'_>) -> Result<CacheSpec, DriveFileError> {
    let name = "Buffer continuous read";
    let read_ahead = match drive.whole(name, 0..=u64::MAX)? {
        0 => ReadAhead::Off,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        4 => ReadAhead::NextTrack,
        code => {
            let known = "expected 0 off, 1 track, 2 cylinder, 3 segment, 4 next track";
            return Err(drive.unknown_code(name, code, known));
        }
    };
    let on = drive.switch("Enable caching in buffer")?;
    let segments = drive.whole("Number of buffer segments", 0..=65_536)? as u32;
    Ok(CacheSpec {
        segments: if on { segments } else { 0 },
        segment_sectors: drive.whole("Segment size (in blks)", 0..=1 << 32)?,
        write_segments: drive.whole("Maximum number of write segments", 0..=65_536)? as u32,
        read_ahead,
        read_ahead_max: drive.whole("Maximum read-ahead (blks)", 0..=1 << 32)?,
        over_requested: drive.switch("Read-ahead over requested")?,
        on_idle_hit: drive.switch("Read-ahead on idle hit")?,
        hits_on_writes: drive.switch("Allow read hits on write data")?,
        free_blocks: drive.switch("Read any free blocks")?,
        read_on_arrival: drive.switch("Immediate buffer read")?,
    })
}

fn overheads(drive: &Reader<'_>) -> Result<Overheads, DriveFileError> {
    let after = |kind: &str| -> Result<After, DriveFileError> {
        Ok(After {
            read_ns: drive.time_ns(&format!("{kind} over. after read"))?,
            write_ns: drive.time_ns(&format!("{kind} over. after write"))?,
        })
    };
    let extra_disconnect = match drive.switch("Extra write disconnect")? {
        false => None,
        true => Some(ExtraDisconnect {
            command_ns: drive.time_ns("Extradisc command overhead")?,
            disconnect_ns: drive.time_ns("Extradisc disconnect overhead")?,
            inter_disconnect_ns: drive.time_ns("Extradisc inter-disconnect delay")?,
            second_disconnect_ns: drive.time_ns("Extradisc 2nd disconnect overhead")?,
            seek_delta_ns: drive.time_ns("Extradisc seek delta")?,
        }),
    };
    Ok(Overheads {
        read_hit: after("Read hit")?,
        read_miss: after("Read miss")?,
        write_hit: after("Write hit")?,
        write_miss: after("Write miss")?,
        read_completion_ns: drive.time_ns("Read completion overhead")?,
        write_completion_ns: drive.time_ns("Write completion overhead")?,
        data_preparation_ns: drive.time_ns("Data preparation overhead")?,
        first_reselect_ns: drive.time_ns("First reselect overhead")?,
        other_reselect_ns: drive.time_ns("Other reselect overhead")?,
        write_disconnect_ns: drive.time_ns("Write disconnect overhead")?,
        write_start_ns: drive.time_ns("Minimum seek delay")?,
        extra_disconnect,
    })
}

fn geometry_spec(
    model: &Reader<'_>,
    mechanics: &Reader<'_>,
) -> Result<GeometrySpec, DriveFileError> {
    let layout = model.inner("Layout Model", "dm_layout_g1")?;
    let rpm = mechanics.number("Rotation speed (in rpms)")?;
    if !(1.0..=1e6).contains(&rpm) {
        let line = mechanics.line("Rotation speed (in rpms)");
        return Err(mechanics.wrong(line, format!("a rotation speed of {rpm} rpm")));
    }
    let name = "LBN-to-PBN mapping scheme";
    let head_order = match layout.whole(name, 0..=u64::MAX)? {
        0 => HeadOrder::Conventional,
        1 => HeadOrder::SerpentineByZone,
        2 => HeadOrder::Serpentine,
        code => {
            let known = "expected 0 conventional, 1 serpentine by zone, 2 serpentine";
            return Err(layout.unknown_code(name, code, known));
        }
    };
    let name = "Sparing scheme used";
    let sparing = match layout.whole(name, 0..=u64::MAX)? {
        0 => Sparing::None,
        1 => Sparing::ZoneTracks,
        2 => Sparing::Cylinder,
        3 => Sparing::Track,
        7 => Sparing::Disk,
        8 => Sparing::Range(layout.whole("Rangesize for sparing", 1..=1_000_000)? as u32),
        9 => Sparing::Zone,
        code => {
            let known = "expected 0 none, 1 tracks at the zone's end, 2 cylinder, 3 track, \
                         7 disk, 8 range of cylinders, 9 zone";
            return Err(layout.unknown_code(name, code, known));
        }
    };
    let zones = match layout.block.get("Zones") {
        Some((Value::List(items), _)) if !items.is_empty() => items
            .iter()
            .map(|(value, line)| match value {
                Value::Block(block) if block.kind == "dm_layout_g1_zone" => {
                    zone(&Reader { file: layout.file, block })
                }
                _ => Err(layout.wrong(*line, "expected a block 'dm_layout_g1_zone {'")),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some((_, line)) => return Err(layout.wrong(line, "expected a list of zones")),
        None => return Err(layout.missing("Zones")),
    };
    Ok(GeometrySpec {
        heads: model.whole("Number of data surfaces", 1..=1024)? as u32,
        cylinders: model.whole("Number of cylinders", 1..=10_000_000)? as u32,
        turn_ns: (60e9 / rpm).round() as u64,
        head_order,
        sparing,
        zones,
    })
}

fn zone(zone: &Reader<'_>) -> Result<ZoneSpec, DriveFileError> {
    let list = |name: &str| -> Result<Vec<u64>, DriveFileError> {
        zone.numbers(name)?
            .into_iter()
            .map(|(value, line)| match value >= 0.0 && value.fract() == 0.0 {
                true => Ok(value as u64),
                false => {
                    Err(zone.wrong(line, format!("expected a sector's number, found {value}")))
                }
            })
            .collect()
    };
    let defects = list("defects")?;
    if defects.len() % 2 != 0 {
        let what = "expected pairs (bad, replacement), found an odd number of numbers";
        return Err(zone.wrong(zone.line("defects"), what));
    }
    let skew = |name: &str| -> Result<u32, DriveFileError> {
        match zone.number(name)? {
            value if (0.0..1e9).contains(&value) => Ok(value as u32),
            value => Err(zone.wrong(zone.line(name), format!("a skew of {value} sectors"))),
        }
    };
    Ok(ZoneSpec {
        first_cylinder: zone.whole("First cylinder number", 0..=10_000_000)? as u32,
        last_cylinder: zone.whole("Last cylinder number", 0..=10_000_000)? as u32,
        sectors_per_track: zone.whole("Blocks per track", 1..=1_000_000)? as u32,
        offset: zone.number("Offset of first block")?,
        empty_front: zone.whole("Empty space at zone front", 0..=1 << 48)?,
        track_skew: skew("Skew for track switch")?,
        cylinder_skew: skew("Skew for cylinder switch")?,
        spares: zone.whole("Number of spares", 0..=1 << 48)?,
        slips: list("slips")?,
        defects: defects.chunks(2).map(|pair| (pair[0], pair[1])).collect(),
    })
}

fn seek_curve(files: &DriveFiles, mechanics: &Reader<'_>) -> Result<SeekCurve, DriveFileError> {
    let word = |name: &str| match mechanics.block.get(name) {
        Some((Value::Word(text) | Value::Source(text), line)) => Ok((text.clone(), line)),
        _ => Err(mechanics.missing(name)),
    };
    let (access, line) = word("Access time type")?;
    if access != "trackSwitchPlusRotation" {
        let what = format!(
            "the access time type '{access}' is not modelled: expected trackSwitchPlusRotation"
        );
        return Err(mechanics.wrong(line, what));
    }
    let (kind, line) = word("Seek type")?;
    let three_points = || -> Result<(f64, f64, f64), DriveFileError> {
        Ok((
            mechanics.number("Single cylinder seek time")?,
            mechanics.number("Average seek time")?,
            mechanics.number("Full strobe seek time")?,
        ))
    };
    match kind.as_str() {
        "extracted" => {
            let (name, line) = word("Full seek curve")?;
            let text = files.text(&name).ok_or_else(|| {
                mechanics.wrong(line, format!("names the seek file '{name}', which is not there"))
            })?;
            seek_table(&name, text)
        }
        "curve" => {
            let (single, average, full) = three_points()?;
            Ok(SeekCurve::ThreePoint { single, average, full })
        }
        "constant" => Ok(SeekCurve::Constant(mechanics.number("Average seek time")?)),
        "hpl" | "hplplus10" => hpl_curve(mechanics, kind == "hplplus10"),
        other => {
            let what = format!(
                "unknown seek type '{other}': expected extracted, curve, constant, hpl, hplplus10"
            );
            Err(mechanics.wrong(line, what))
        }
    }
}

/// The HPL equation: its values are (threshold,) base, root factor, base, linear factor, and the
/// time of one cylinder or −1. Files that leave the threshold out mean 300 cylinders.
fn hpl_curve(mechanics: &Reader<'_>, ten: bool) -> Result<SeekCurve, DriveFileError> {
    let name = "HPL seek equation values";
    let values: Vec<f64> = mechanics.numbers(name)?.into_iter().map(|(v, _)| v).collect();
    let (threshold, rest) = match values.len() {
        5 => (300.0, &values[..]),
        6 => (values[0], &values[1..]),
        n => {
            let what = format!("expected 5 or 6 numbers for '{name}', found {n}");
            return Err(mechanics.wrong(mechanics.line(name), what));
        }
    };
    let listed = "First ten seek times";
    let first: Vec<f64> = match ten {
        true => mechanics.numbers(listed)?.into_iter().map(|(v, _)| v).collect(),
        false if rest[4] >= 0.0 => vec![rest[4]],
        false => Vec::new(),
    };
    if ten && first.len() != 10 {
        let what = format!("expected 10 numbers for '{listed}', found {}", first.len());
        return Err(mechanics.wrong(mechanics.line(listed), what));
    }
    Ok(SeekCurve::RootLinear {
        first,
        threshold: threshold.max(0.0) as u32,
        root_base: rest[0],
        root_factor: rest[1],
        linear_base: rest[2],
        linear_factor: rest[3],
    })
}

fn seek_table(file: &str, text: &str) -> Result<SeekCurve, DriveFileError> {
    let wrong = |line: usize, what: String| DriveFileError::new(file, line, what);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header = "Seek distances measured:";
    let expected: usize = lines
        .next()
        .and_then(|(_, line)| line.trim().strip_prefix(header))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| wrong(1, format!("expected '{header} N'")))?;
    let mut points: Vec<(u32, f64)> = Vec::with_capacity(expected);
    for (number, line) in lines {
        let point = line
            .split_once(',')
            .and_then(|(d, ms)| Some((d.trim().parse().ok()?, ms.trim().parse::<f64>().ok()?)))
            .filter(|(_, ms)| (0.0..1000.0).contains(ms))
            // Whole nanoseconds: no arm is better known.
            .map(|(d, ms)| (d, (ms * 1e6).round() / 1e6))
            .ok_or_else(|| {
                wrong(number + 1, format!("expected 'cylinders, ms', found '{}'", line.trim()))
            })?;
        if points.last().is_some_and(|last| last.0 >= point.0) {
            let what = format!("distance {} does not ascend", point.0);
            return Err(wrong(number + 1, what));
        }
        points.push(point);
    }
    if points.len() != expected {
        let what =
            format!("announces {expected} distances and has {}: is it cut short?", points.len());
        return Err(wrong(text.lines().count(), what));
    }
    Ok(SeekCurve::Table(points))
}
