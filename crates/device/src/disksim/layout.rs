//! Where blocks lie: layouts of the first generation (`dm_layout_g1`, zones) and of the fourth
//! (`dm_layout_g4`, an index). The second's is a file of its own, whose format nothing tells.

use super::index::index_spec;
use super::parse::Value;
use super::reader::Reader;
use crate::disk::{GeometrySpec, HeadOrder, Sparing, ZoneSpec};
use crate::drive_files::DriveFileError;

pub(super) fn geometry_spec(
    model: &Reader<'_>,
    layout: &Reader<'_>,
    mechanics: &Reader<'_>,
) -> Result<GeometrySpec, DriveFileError> {
    let rpm = mechanics.number("Rotation speed (in rpms)")?;
    if !(1.0..=1e6).contains(&rpm) {
        let line = mechanics.line("Rotation speed (in rpms)");
        return Err(mechanics.wrong(line, format!("a rotation speed of {rpm} rpm")));
    }
    let disk = GeometrySpec {
        heads: model.whole("Number of data surfaces", 1..=1024)? as u32,
        cylinders: model.whole("Number of cylinders", 1..=10_000_000)? as u32,
        turn_ns: (60e9 / rpm).round() as u64,
        head_order: HeadOrder::Conventional,
        sparing: Sparing::None,
        zones: Vec::new(),
        index: None,
    };
    match layout.block.kind.as_str() {
        "dm_layout_g1" => zoned(disk, layout),
        "dm_layout_g4" => index_spec(disk, layout),
        "dm_layout_g2" => {
            let what = "a 'dm_layout_g2': its blocks lie where a 'Layout Map File' says, and the \
                        formats' manual does not describe that file; dm_layout_g1 and \
                        dm_layout_g4 are read";
            Err(layout.wrong(layout.block.line, what))
        }
        other => {
            let what = format!("the layout is a '{other}': dm_layout_g1 and dm_layout_g4 are read");
            Err(layout.wrong(layout.block.line, what))
        }
    }
}

fn zoned(disk: GeometrySpec, layout: &Reader<'_>) -> Result<GeometrySpec, DriveFileError> {
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
        4 => Sparing::CylinderAndDisk,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontAndDisk,
        7 => Sparing::Disk,
        8 => Sparing::Range(layout.whole("Rangesize for sparing", 1..=1_000_000)? as u32),
        9 => Sparing::Zone,
        10 => Sparing::ZoneAndDisk,
        code => {
            let known = "expected 0 none, 1 tracks at the zone's end, 2 cylinder, 3 track, \
                         4 cylinder and disk, 5 cylinder's front, 6 cylinder's front and disk, \
                         7 disk, 8 range of cylinders, 9 zone, 10 zone and disk";
            return Err(layout.unknown_code(name, code, known));
        }
    };
    let zones = match layout.block.get("Zones") {
        Some((Value::List(items), _)) if !items.is_empty() => items
            .iter()
            .map(|(value, line)| match value {
                Value::Block(block) if block.kind == "dm_layout_g1_zone" => {
                    zone(&Reader { file: layout.file, block }, layout)
                }
                _ => Err(layout.wrong(*line, "expected a block 'dm_layout_g1_zone {'")),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some((_, line)) => return Err(layout.wrong(line, "expected a list of zones")),
        None => return Err(layout.missing("Zones")),
    };
    // Some published drives count one cylinder fewer than their zones have.
    let ends = zones.iter().map(|zone| zone.last_cylinder + 1).max().unwrap_or(1);
    Ok(GeometrySpec { cylinders: disk.cylinders.max(ends), head_order, sparing, zones, ..disk })
}

fn zone(zone: &Reader<'_>, layout: &Reader<'_>) -> Result<ZoneSpec, DriveFileError> {
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
    let sectors_per_track = zone.whole("Blocks per track", 1..=1_000_000)? as u32;
    let revolutions = in_revolutions(zone)?.or(in_revolutions(layout)?).unwrap_or(false);
    // Whole sectors: what is given in sectors is cut off, as the formats' own program does.
    let sectors = |value: f64| match revolutions {
        true => (value * f64::from(sectors_per_track)).round(),
        false => value.trunc(),
    };
    let skew = |name: &str| -> Result<u32, DriveFileError> {
        match sectors(zone.optional(name)?.unwrap_or(0.0)) {
            value if (0.0..1e9).contains(&value) => Ok(value as u32),
            value => Err(zone.wrong(zone.line(name), format!("a skew of {value} sectors"))),
        }
    };
    Ok(ZoneSpec {
        first_cylinder: zone.whole("First cylinder number", 0..=10_000_000)? as u32,
        last_cylinder: zone.whole("Last cylinder number", 0..=10_000_000)? as u32,
        sectors_per_track,
        offset: sectors(zone.number("Offset of first block")?),
        empty_front: zone.whole("Empty space at zone front", 0..=1 << 48)?,
        track_skew: skew("Skew for track switch")?,
        cylinder_skew: skew("Skew for cylinder switch")?,
        spares: zone.whole("Number of spares", 0..=1 << 48)?,
        slips: list("slips")?,
        defects: defects.chunks(2).map(|pair| (pair[0], pair[1])).collect(),
    })
}

/// Whether skews and offsets are given in revolutions and not in sectors, where the block says so.
fn in_revolutions(block: &Reader<'_>) -> Result<Option<bool>, DriveFileError> {
    let name = "Skew units";
    match block.block.get(name) {
        None => Ok(None),
        Some((Value::Word(unit), _)) if unit == "sectors" => Ok(Some(false)),
        Some((Value::Word(unit), _)) if unit == "revolutions" => Ok(Some(true)),
        Some((_, line)) => {
            Err(block.wrong(line, format!("'{name}': expected sectors or revolutions")))
        }
    }
}
