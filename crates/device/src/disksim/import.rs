//! From DiskSim's parameters to our description of a disk.

use super::arm::{access, seek_curves};
use super::layout::geometry_spec;
use super::parse::{Block, Value, parse};
use super::reader::Reader;
use crate::disk::{
    After, Bus, CacheSpec, DiskSpec, ExtraDisconnect, Geometry, Overheads, Policy, ReadAhead,
    WriteCache,
};
use crate::drive_files::{DriveFileError, DriveFiles, Imported};

/// Reads a drive from its files: a `.diskspecs` (or a `.parv` or `.model` that holds the drive
/// itself), the model and the seek table it names, and the bus in the `.parv` that names it. Where
/// the files hold several drives, `wanted` is the name of one, or of its file.
pub fn import(files: &DriveFiles, wanted: Option<&str>) -> Result<Imported, DriveFileError> {
    let (name, block) = find_drive(files, wanted)?;
    let drive = Reader { file: &name, block: &block };
    let (model_name, model) = find_model(files, &drive)?;
    let model = Reader { file: &model_name, block: &model };
    let (layout_name, layout) = find_layout(files, &model)?;
    let layout = Reader { file: &layout_name, block: &layout };
    let bus_block = bus_times(files, &name)?;
    let spec = drive_spec(files, &drive, (&model, &layout), bus_block)?;
    let mechanics = model.inner("Mechanical Model", "dm_mech_g1")?;
    let mut notes = unmodelled(&drive, &mechanics)?;
    notes.extend(other_capacity(&model, &spec)?);
    Ok(Imported { name: block.name.clone(), spec, notes })
}

/// Where the file counts other blocks than its layout holds. The layout decides, as the manual says.
fn other_capacity(model: &Reader<'_>, spec: &DiskSpec) -> Result<Option<String>, DriveFileError> {
    let stated = model.optional("Block count")?.unwrap_or(0.0);
    let holds = Geometry::new(&spec.geometry).map_or(0, |geometry| geometry.capacity());
    Ok((stated > 0.0 && stated != holds as f64).then(|| {
        format!("'Block count = {stated}', and the layout holds {holds}: so does the drive")
    }))
}

/// A file's name without folder and ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn find_drive(files: &DriveFiles, wanted: Option<&str>) -> Result<(String, Block), DriveFileError> {
    let mut found: Vec<(String, Block)> = Vec::new();
    for ending in [".diskspecs", ".parv", ".model"] {
        for (name, text) in files.with_ending(ending) {
            // Of many drives only the wanted one needs to be right.
            if ending == ".diskspecs"
                && wanted.is_some_and(|w| !text.contains(w) && stem(name) != w)
            {
                continue;
            }
            let blocks = parse(name, text)?.blocks;
            let drives = blocks.into_iter().filter(|block| block.kind == "disksim_disk");
            let before = found.len();
            found.extend(drives.map(|block| (name.clone(), block)));
            if ending == ".diskspecs" && found.len() == before {
                let what = "expected a block 'disksim_disk NAME {', found none";
                return Err(DriveFileError::new(name, 1, what));
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    if let Some(wanted) = wanted {
        found.retain(|(file, block)| block.name == wanted || stem(file) == wanted);
    }
    let names = |all: &mut dyn Iterator<Item = &str>| all.collect::<Vec<_>>().join(", ");
    let what = match (&found[..], wanted) {
        ([_], _) => return Ok(found.remove(0)),
        ([], Some(wanted)) => {
            let mut all = files.with_ending(".diskspecs").into_iter().map(|(name, _)| stem(name));
            format!("no drive '{wanted}' among: {}", names(&mut all))
        }
        ([], None) if files.files.is_empty() => "no .diskspecs file and nothing else".to_owned(),
        ([], None) => format!(
            "no .diskspecs file and no .parv file with a drive among: {}",
            names(&mut files.files.iter().map(|(name, _)| name.as_str()))
        ),
        (many, _) => format!(
            "{} drives are described here, name one of them: {}",
            many.len(),
            names(&mut many.iter().map(|(file, _)| stem(file)))
        ),
    };
    Err(DriveFileError::new("the folder", 1, what))
}

fn find_model(files: &DriveFiles, drive: &Reader<'_>) -> Result<(String, Block), DriveFileError> {
    inner_or_source(files, drive, "Model", "dm_disk")
}

fn find_layout(files: &DriveFiles, model: &Reader<'_>) -> Result<(String, Block), DriveFileError> {
    inner_or_source(files, model, "Layout Model", "dm_layout_g")
}

/// The block that `outer` has as its parameter `name`, or that the file has which it names there;
/// and the name of the file that it is in.
fn inner_or_source(
    files: &DriveFiles,
    outer: &Reader<'_>,
    name: &str,
    kind: &str,
) -> Result<(String, Block), DriveFileError> {
    match outer.block.get(name) {
        Some((Value::Block(block), _)) => Ok((outer.file.to_owned(), block.clone())),
        Some((Value::Source(file), line)) => {
            let text = files.text(file).ok_or_else(|| {
                outer.wrong(line, format!("names the file '{file}', which is not there"))
            })?;
            let blocks = parse(file, text)?.blocks;
            let block = blocks.into_iter().find(|block| block.kind.starts_with(kind));
            let block = block.ok_or_else(|| {
                DriveFileError::new(file, 1, format!("expected a block '{kind}', found none"))
            })?;
            Ok((file.clone(), block))
        }
        Some((_, line)) => {
            Err(outer.wrong(line, format!("expected '{name} = source FILE' or a block")))
        }
        None => Err(outer.wrong(outer.block.line, format!("no parameter '{name}'"))),
    }
}

/// Read and write block times of the bus next to the drive (the last one defined), in ms: in the
/// `.parv` files that take the drive's file in, or in all where none says that it does.
fn bus_times(files: &DriveFiles, drive_file: &str) -> Result<(f64, f64), DriveFileError> {
    let mut parsed = Vec::new();
    for (name, text) in files.with_ending(".parv") {
        parsed.push((name, parse(name, text)?));
    }
    let takes_in = |sources: &[String]| sources.iter().any(|name| stem(name) == stem(drive_file));
    if parsed.iter().any(|(_, file)| takes_in(&file.sources)) {
        parsed.retain(|(_, file)| takes_in(&file.sources));
    }
    let mut times = (0.0, 0.0);
    for (name, file) in &parsed {
        for block in file.blocks.iter().filter(|b| b.kind == "disksim_bus") {
            let bus = Reader { file: name, block };
            times = (
                bus.optional("Read block transfer time")?.unwrap_or(0.0),
                bus.optional("Write block transfer time")?.unwrap_or(0.0),
            );
        }
    }
    Ok(times)
}

fn drive_spec(
    files: &DriveFiles,
    drive: &Reader<'_>,
    (model, layout): (&Reader<'_>, &Reader<'_>),
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
    let geometry = geometry_spec(model, layout, &mechanics)?;
    let (seek, write_seek) = seek_curves(files, &mechanics, geometry.cylinders)?;
    let spec = DiskSpec {
        access: access(&mechanics)?,
        seek,
        write_seek: write_seek.map(Box::new),
        geometry,
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
        .map_err(|error| layout.wrong(layout.block.line, error.to_string()))?;
    Ok(spec)
}

fn policy(scheduler: &Reader<'_>) -> Result<Policy, DriveFileError> {
    let name = "Scheduling policy";
    Ok(match scheduler.whole(name, 0..=u64::MAX)? {
        1 => Policy::Fifo,
        2 | 5 => Policy::Look,
        3 | 6 => Policy::CLook,
        4 | 7 => Policy::ShortestSeek,
        // The manual allows codes up to 21; a note says what those from 9 on are read as.
        8..=21 => Policy::ShortestPositioning,
        code => {
            let known = "expected 1 FCFS, 2 or 5 elevator, 3 or 6 cyclic, 4 or 7 shortest seek, \
                         8 to 21 shortest positioning";
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
    let on = drive.switch_within("Enable caching in buffer", 0..=2)?;
    let segments = drive.whole("Number of buffer segments", 0..=65_536)? as u32;
    Ok(CacheSpec {
        segments: if on { segments } else { 0 },
        segment_sectors: drive.whole("Segment size (in blks)", 0..=1 << 32)?,
        write_segments: drive.whole("Maximum number of write segments", 0..=65_536)? as u32,
        read_ahead,
        read_ahead_max: drive.whole("Maximum read-ahead (blks)", 0..=1 << 32)?,
        over_requested: drive.switch_within("Read-ahead over requested", -1..=1)?,
        on_idle_hit: drive.switch("Read-ahead on idle hit")?,
        hits_on_writes: drive.switch("Allow read hits on write data")?,
        free_blocks: drive.switch("Read any free blocks")?,
        read_on_arrival: drive.switch_within("Immediate buffer read", 0..=2)?,
    })
}

/// Times of the electronics: each multiplied by the file's scale, and those of the commands with the
/// time that every request takes besides.
fn overheads(drive: &Reader<'_>) -> Result<Overheads, DriveFileError> {
    let scale = drive.optional("Time scale for overheads")?.unwrap_or(1.0);
    if !(0.0..=1000.0).contains(&scale) {
        let line = drive.line("Time scale for overheads");
        return Err(drive.wrong(line, format!("a scale of {scale}: expected 0 to 1000")));
    }
    let time_ns = |name: &str| -> Result<u32, DriveFileError> {
        Ok((f64::from(drive.time_ns(name)?) * scale).round() as u32)
    };
    let every = time_ns("Per-request overhead time")?;
    let after = |kind: &str| -> Result<After, DriveFileError> {
        Ok(After {
            read_ns: every.saturating_add(time_ns(&format!("{kind} over. after read"))?),
            write_ns: every.saturating_add(time_ns(&format!("{kind} over. after write"))?),
        })
    };
    let extra_disconnect = match drive.switch("Extra write disconnect")? {
        false => None,
        true => Some(ExtraDisconnect {
            command_ns: every.saturating_add(time_ns("Extradisc command overhead")?),
            disconnect_ns: time_ns("Extradisc disconnect overhead")?,
            inter_disconnect_ns: time_ns("Extradisc inter-disconnect delay")?,
            second_disconnect_ns: time_ns("Extradisc 2nd disconnect overhead")?,
            seek_delta_ns: time_ns("Extradisc seek delta")?,
        }),
    };
    Ok(Overheads {
        read_hit: after("Read hit")?,
        read_miss: after("Read miss")?,
        write_hit: after("Write hit")?,
        write_miss: after("Write miss")?,
        read_completion_ns: time_ns("Read completion overhead")?,
        write_completion_ns: time_ns("Write completion overhead")?,
        data_preparation_ns: time_ns("Data preparation overhead")?,
        first_reselect_ns: time_ns("First reselect overhead")?,
        other_reselect_ns: time_ns("Other reselect overhead")?,
        write_disconnect_ns: time_ns("Write disconnect overhead")?,
        write_start_ns: drive.time_ns("Minimum seek delay")?,
        extra_disconnect,
    })
}

/// Parameters that ask for what this model does not do, with the value that would ask for nothing.
const UNMODELLED: [(&str, f64); 13] = [
    ("Allow almost read hits", 0.0),
    ("Allow sneaky full read hits", 0.0),
    ("Allow sneaky partial read hits", 0.0),
    ("Allow sneaky intermediate read hits", 0.0),
    ("Allow write prebuffering", 0.0),
    ("Preseeking level", 0.0),
    ("Minimum read-ahead (blks)", 0.0),
    ("Immediate buffer write", 0.0),
    ("Disconnect write if seek", 0.0),
    ("Combine seq writes", 1.0),
    ("Write hit stop prefetch", 1.0),
    ("Immed transfer partial hit", 1.0),
    ("Percent error in rpms", 0.0),
];

/// What the drive's files ask for and the model does not do, a sentence each.
fn unmodelled(drive: &Reader<'_>, mechanics: &Reader<'_>) -> Result<Vec<String>, DriveFileError> {
    let mut notes = Vec::new();
    for (name, nothing) in UNMODELLED {
        for block in [drive, mechanics] {
            if let Some(value) = block.optional(name)?.filter(|value| *value != nothing) {
                notes.push(format!("'{name} = {value}' is not modelled: taken as {nothing}"));
            }
        }
    }
    if let Ok(scheduler) = drive.inner("Scheduler", "disksim_ioqueue") {
        let name = "Scheduling policy";
        let code = scheduler.whole(name, 0..=u64::MAX)?;
        if code > 8 && code != 10 {
            notes.push(format!("'{name} = {code}' is not modelled: taken as 8"));
        }
    }
    Ok(notes)
}
