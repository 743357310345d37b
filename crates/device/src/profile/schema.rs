//! A profile's TOML, field by field, and how it becomes a description (and back, for imports).

use super::quantity::{Rate, Size, Time};
use crate::array::{ArraySpec, Destage, Level, ReadPolicy, WriteBack};
use crate::disk::{
    After, Bus, CacheSpec, DiskSpec, ExtraDisconnect, GeometrySpec, HeadOrder, Overheads, Policy,
    ReadAhead, SeekCurve, Sparing, WriteCache, ZoneSpec,
};
use crate::flash::{FlashSpec, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Rpm;

/// The whole file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where each number comes from: a field's name → its source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashTable>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// One of rotation and turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<Rpm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<Time>,
    cylinders: u32,
    heads: u32,
    /// Equally many cylinders each, sectors a track falling evenly from outer to inner.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone_range: Option<ZoneRange>,
    /// Skews as times, where zones do not give them in sectors.
    #[serde(default, skip_serializing_if = "is_default")]
    track_skew: Time,
    #[serde(default, skip_serializing_if = "is_default")]
    cylinder_skew: Time,
    #[serde(default, skip_serializing_if = "is_default")]
    head_order: HeadOrderName,
    #[serde(default, skip_serializing_if = "is_default")]
    sparing: SparingName,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparing_range: Option<u32>,
    head_switch: Time,
    #[serde(default, skip_serializing_if = "is_default")]
    write_settle: Time,
    #[serde(default = "yes")]
    read_after_write_jog: bool,
    queue: QueueTable,
    seek: SeekTable,
    overhead: OverheadTable,
    bus: BusTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_cache: Option<WriteCacheTable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    zones: Vec<ZoneTable>,
}

fn yes() -> bool {
    true
}
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ZoneRange {
    count: u32,
    outer: u32,
    inner: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ZoneTable {
    first_cylinder: u32,
    last_cylinder: u32,
    sectors_per_track: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    offset: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    empty_front: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    track_skew_sectors: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cylinder_skew_sectors: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    spares: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slips: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    defects: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum HeadOrderName {
    #[default]
    Conventional,
    SerpentineByZone,
    Serpentine,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SparingName {
    #[default]
    None,
    ZoneTracks,
    Track,
    Cylinder,
    Range,
    Zone,
    Disk,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct QueueTable {
    policy: PolicyName,
    depth: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PolicyName {
    Fifo,
    Look,
    CLook,
    Sstf,
    Sptf,
}

/// One of: table; single, average, full; the root-and-line equation; base and factor of the span's
/// fraction; constant.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SeekTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    single: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    full: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constant: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u32>,
    /// The equation's numbers are in ms (and ms a cylinder): their units are not a time's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_base_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_factor_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linear_base_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linear_factor_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    first: Vec<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    table: Vec<(u32, Time)>,
}

/// `command` stands for all eight; the pairs are after a read, after a write.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct OverheadTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_hit: Option<(Time, Time)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_miss: Option<(Time, Time)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_hit: Option<(Time, Time)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_miss: Option<(Time, Time)>,
    #[serde(skip_serializing_if = "is_default")]
    read_completion: Time,
    #[serde(skip_serializing_if = "is_default")]
    write_completion: Time,
    #[serde(skip_serializing_if = "is_default")]
    data_preparation: Time,
    #[serde(skip_serializing_if = "is_default")]
    first_reselect: Time,
    #[serde(skip_serializing_if = "is_default")]
    other_reselect: Time,
    #[serde(skip_serializing_if = "is_default")]
    write_disconnect: Time,
    #[serde(skip_serializing_if = "is_default")]
    write_start: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_disconnect: Option<ExtraTable>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ExtraTable {
    command: Time,
    disconnect: Time,
    inter_disconnect: Time,
    second_disconnect: Time,
    seek_delta: Time,
}

/// `rate` for both ways, or a sector's time each way.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct BusTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_sector: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_sector: Option<Time>,
    #[serde(skip_serializing_if = "is_default")]
    read_watermark: f64,
    #[serde(skip_serializing_if = "is_default")]
    stays_connected: bool,
    #[serde(skip_serializing_if = "is_default")]
    write_holds_arm: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CacheTable {
    segments: u32,
    segment: Size,
    read_ahead: ReadAheadName,
    /// The segment's size, if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_ahead_max: Option<Size>,
    #[serde(default, skip_serializing_if = "is_default")]
    write_segments: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    over_requested: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    on_idle_hit: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    hits_on_writes: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    free_blocks: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    read_on_arrival: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ReadAheadName {
    Off,
    Track,
    Cylinder,
    Segment,
    NextTrack,
}

/// Either `streams` (appending writes only) or size, runs and high_water.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WriteCacheTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_water: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayTable {
    level: LevelName,
    pub drives: usize,
    /// The profile that each drive has.
    pub member: String,
    /// Some drives' write caches are switched off by their controller.
    #[serde(default = "yes")]
    pub member_write_cache: bool,
    stripe_unit: Size,
    depth: u32,
    drive_depth: u32,
    overhead: Time,
    link: Rate,
    read_policy: ReadPolicyName,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<WriteBackTable>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum LevelName {
    Raid0,
    Raid1,
    Raid10,
    Raid5,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ReadPolicyName {
    First,
    RoundRobin,
    ShortestQueue,
    NearestHead,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WriteBackTable {
    size: Size,
    high_water: f64,
    destage: DestageName,
    window: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum DestageName {
    Elevator,
    Oldest,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlashTable {
    capacity: Size,
    over_provisioning: f64,
    channels: u32,
    dies_per_channel: u32,
    planes: u32,
    page: Size,
    pages_per_block: u64,
    read: Vec<Time>,
    #[serde(default, skip_serializing_if = "is_default")]
    read_spread: Time,
    program: Time,
    erase: Time,
    channel: Rate,
    link_read: Rate,
    link_write: Rate,
    firmware: Time,
    controller: Time,
    buffer_write: Time,
    buffer: Size,
    #[serde(default)]
    power_safe: bool,
    depth: u32,
    /// How the drive begins, and which share of it holds data.
    state: StateName,
    full: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StateName {
    Fresh,
    Sequential,
    Random,
}

impl DiskTable {
    /// The description. Errors say which field and why.
    pub fn spec(&self) -> Result<DiskSpec, String> {
        let geometry = self.geometry()?;
        let settle = i32::try_from(self.write_settle.0).map_err(|_| "write_settle: too long")?;
        Ok(DiskSpec {
            geometry,
            seek: self.seek.curve()?,
            head_switch_ns: self.head_switch.positive().map_err(|e| format!("head_switch: {e}"))?,
            write_settle_ns: settle,
            read_after_write_jog: self.read_after_write_jog,
            overheads: self.overhead.spec()?,
            bus: self.bus.spec()?,
            cache: self.cache.as_ref().map_or(CacheSpec::NONE, CacheTable::spec),
            write_cache: match &self.write_cache {
                None => WriteCache::Off,
                Some(table) => table.spec()?,
            },
            policy: match self.queue.policy {
                PolicyName::Fifo => Policy::Fifo,
                PolicyName::Look => Policy::Look,
                PolicyName::CLook => Policy::CLook,
                PolicyName::Sstf => Policy::ShortestSeek,
                PolicyName::Sptf => Policy::ShortestPositioning,
            },
            depth: self.queue.depth,
        })
    }

    fn geometry(&self) -> Result<GeometrySpec, String> {
        let turn_ns = match (self.rotation, self.turn) {
            (Some(rpm), None) => rpm.turn().0,
            (None, Some(turn)) => u64::from(turn.positive()?),
            _ => return Err("expected one of rotation and turn".to_owned()),
        };
        let sparing = match (self.sparing, self.sparing_range) {
            (SparingName::None, None) => Sparing::None,
            (SparingName::ZoneTracks, None) => Sparing::ZoneTracks,
            (SparingName::Track, None) => Sparing::Track,
            (SparingName::Cylinder, None) => Sparing::Cylinder,
            (SparingName::Zone, None) => Sparing::Zone,
            (SparingName::Disk, None) => Sparing::Disk,
            (SparingName::Range, Some(range)) => Sparing::Range(range),
            _ => return Err("sparing_range: expected with sparing = \"range\" alone".to_owned()),
        };
        let sectors = |skew: Time, per_track: u32| -> Result<u32, String> {
            let skew = u64::from(skew.positive()?) * u64::from(per_track);
            Ok(skew.div_ceil(turn_ns) as u32)
        };
        let mut zones = self.zone_tables()?;
        for zone in &mut zones {
            let per_track = zone.sectors_per_track;
            if zone.track_skew_sectors.is_none() {
                zone.track_skew_sectors = Some(sectors(self.track_skew, per_track)?);
            }
            if zone.cylinder_skew_sectors.is_none() {
                zone.cylinder_skew_sectors = Some(sectors(self.cylinder_skew, per_track)?);
            }
        }
        Ok(GeometrySpec {
            heads: self.heads,
            cylinders: self.cylinders,
            turn_ns,
            head_order: match self.head_order {
                HeadOrderName::Conventional => HeadOrder::Conventional,
                HeadOrderName::SerpentineByZone => HeadOrder::SerpentineByZone,
                HeadOrderName::Serpentine => HeadOrder::Serpentine,
            },
            sparing,
            zones: zones.iter().map(ZoneTable::spec).collect(),
        })
    }

    fn zone_tables(&self) -> Result<Vec<ZoneTable>, String> {
        let Some(range) = &self.zone_range else {
            return match self.zones.is_empty() {
                true => Err("expected zone_range or zones".to_owned()),
                false => Ok(self.zones.clone()),
            };
        };
        if !self.zones.is_empty() {
            return Err("expected one of zone_range and zones".to_owned());
        }
        if range.count == 0 || range.count > self.cylinders || range.inner > range.outer {
            return Err(format!(
                "zone_range: {} zones of {} to {} sectors on {} cylinders",
                range.count, range.outer, range.inner, self.cylinders
            ));
        }
        let border =
            |n: u32| (u64::from(self.cylinders) * u64::from(n) / u64::from(range.count)) as u32;
        let steps = (range.count - 1).max(1);
        Ok((0..range.count)
            .map(|n| ZoneTable {
                first_cylinder: border(n),
                last_cylinder: border(n + 1) - 1,
                sectors_per_track: range.outer - (range.outer - range.inner) * n / steps,
                offset: 0.0,
                empty_front: 0,
                track_skew_sectors: None,
                cylinder_skew_sectors: None,
                spares: 0,
                slips: Vec::new(),
                defects: Vec::new(),
            })
            .collect())
    }

    /// The table of a description, such as an imported one.
    pub fn from_spec(spec: &DiskSpec) -> Self {
        let geometry = &spec.geometry;
        let (sparing, sparing_range) = match geometry.sparing {
            Sparing::None => (SparingName::None, None),
            Sparing::ZoneTracks => (SparingName::ZoneTracks, None),
            Sparing::Track => (SparingName::Track, None),
            Sparing::Cylinder => (SparingName::Cylinder, None),
            Sparing::Range(range) => (SparingName::Range, Some(range)),
            Sparing::Zone => (SparingName::Zone, None),
            Sparing::Disk => (SparingName::Disk, None),
        };
        DiskTable {
            rotation: None,
            turn: Some(Time::ns(geometry.turn_ns)),
            cylinders: geometry.cylinders,
            heads: geometry.heads,
            zone_range: None,
            track_skew: Time(0),
            cylinder_skew: Time(0),
            head_order: match geometry.head_order {
                HeadOrder::Conventional => HeadOrderName::Conventional,
                HeadOrder::SerpentineByZone => HeadOrderName::SerpentineByZone,
                HeadOrder::Serpentine => HeadOrderName::Serpentine,
            },
            sparing,
            sparing_range,
            head_switch: Time::ns(spec.head_switch_ns.into()),
            write_settle: Time(spec.write_settle_ns.into()),
            read_after_write_jog: spec.read_after_write_jog,
            queue: QueueTable {
                policy: match spec.policy {
                    Policy::Fifo => PolicyName::Fifo,
                    Policy::Look => PolicyName::Look,
                    Policy::CLook => PolicyName::CLook,
                    Policy::ShortestSeek => PolicyName::Sstf,
                    Policy::ShortestPositioning => PolicyName::Sptf,
                },
                depth: spec.depth,
            },
            seek: SeekTable::from_curve(&spec.seek),
            overhead: OverheadTable::from_spec(&spec.overheads),
            bus: BusTable {
                rate: None,
                read_sector: Some(Time::ns(spec.bus.read_sector_ns.into())),
                write_sector: Some(Time::ns(spec.bus.write_sector_ns.into())),
                read_watermark: spec.bus.read_watermark,
                stays_connected: !spec.bus.disconnects,
                write_holds_arm: spec.bus.write_holds_arm,
            },
            cache: (spec.cache != CacheSpec::NONE).then(|| CacheTable::from_spec(&spec.cache)),
            write_cache: WriteCacheTable::from_spec(spec.write_cache),
            zones: geometry.zones.iter().map(ZoneTable::from_spec).collect(),
        }
    }
}

impl ZoneTable {
    fn spec(&self) -> ZoneSpec {
        ZoneSpec {
            first_cylinder: self.first_cylinder,
            last_cylinder: self.last_cylinder,
            sectors_per_track: self.sectors_per_track,
            offset: self.offset,
            empty_front: self.empty_front,
            track_skew: self.track_skew_sectors.unwrap_or(0),
            cylinder_skew: self.cylinder_skew_sectors.unwrap_or(0),
            spares: self.spares,
            slips: self.slips.clone(),
            defects: self.defects.clone(),
        }
    }

    fn from_spec(zone: &ZoneSpec) -> Self {
        ZoneTable {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            sectors_per_track: zone.sectors_per_track,
            offset: zone.offset,
            empty_front: zone.empty_front,
            track_skew_sectors: Some(zone.track_skew),
            cylinder_skew_sectors: Some(zone.cylinder_skew),
            spares: zone.spares,
            slips: zone.slips.clone(),
            defects: zone.defects.clone(),
        }
    }
}

fn millis(time: Time) -> f64 {
    time.0 as f64 / 1e6
}
fn from_millis(millis: f64) -> Time {
    Time((millis * 1e6).round() as i64)
}

impl SeekTable {
    fn curve(&self) -> Result<SeekCurve, String> {
        if !self.table.is_empty() {
            return Ok(SeekCurve::Table(
                self.table.iter().map(|(d, t)| (*d, millis(*t))).collect(),
            ));
        }
        if let (Some(single), Some(average), Some(full)) = (self.single, self.average, self.full) {
            let (single, average, full) = (millis(single), millis(average), millis(full));
            return Ok(SeekCurve::ThreePoint { single, average, full });
        }
        if let (Some(threshold), Some(a), Some(b), Some(c), Some(e)) = (
            self.threshold,
            self.root_base_ms,
            self.root_factor_ms,
            self.linear_base_ms,
            self.linear_factor_ms,
        ) {
            return Ok(SeekCurve::RootLinear {
                first: self.first.iter().map(|time| millis(*time)).collect(),
                threshold,
                root_base: a,
                root_factor: b,
                linear_base: c,
                linear_factor: e,
            });
        }
        match (self.base, self.factor, self.constant) {
            (Some(base), Some(factor), None) => {
                Ok(SeekCurve::Fraction { base: millis(base), factor: millis(factor) })
            }
            (None, None, Some(time)) => Ok(SeekCurve::Constant(millis(time))),
            _ => {
                Err("seek: expected table; or single, average, full; or threshold, root_base_ms, \
                      root_factor_ms, linear_base_ms, linear_factor_ms; or base, factor; or \
                      constant"
                    .to_owned())
            }
        }
    }

    fn from_curve(curve: &SeekCurve) -> Self {
        let none = SeekTable::default();
        match curve {
            SeekCurve::Table(points) => SeekTable {
                table: points.iter().map(|(d, ms)| (*d, from_millis(*ms))).collect(),
                ..none
            },
            SeekCurve::ThreePoint { single, average, full } => SeekTable {
                single: Some(from_millis(*single)),
                average: Some(from_millis(*average)),
                full: Some(from_millis(*full)),
                ..none
            },
            SeekCurve::RootLinear {
                first,
                threshold,
                root_base,
                root_factor,
                linear_base,
                linear_factor,
            } => SeekTable {
                first: first.iter().map(|ms| from_millis(*ms)).collect(),
                threshold: Some(*threshold),
                root_base_ms: Some(*root_base),
                root_factor_ms: Some(*root_factor),
                linear_base_ms: Some(*linear_base),
                linear_factor_ms: Some(*linear_factor),
                ..none
            },
            SeekCurve::Fraction { base, factor } => SeekTable {
                base: Some(from_millis(*base)),
                factor: Some(from_millis(*factor)),
                ..none
            },
            SeekCurve::Constant(time) => SeekTable { constant: Some(from_millis(*time)), ..none },
        }
    }
}

impl OverheadTable {
    fn spec(&self) -> Result<Overheads, String> {
        let named = |name: &str, time: Time| time.positive().map_err(|e| format!("{name}: {e}"));
        let after = |name: &str, pair: Option<(Time, Time)>| -> Result<After, String> {
            let (read, write) = pair
                .or(self.command.map(|time| (time, time)))
                .ok_or_else(|| format!("overhead: expected {name}, or command for all"))?;
            Ok(After { read_ns: named(name, read)?, write_ns: named(name, write)? })
        };
        let extra_disconnect = match self.extra_disconnect {
            None => None,
            Some(extra) => Some(ExtraDisconnect {
                command_ns: named("command", extra.command)?,
                disconnect_ns: named("disconnect", extra.disconnect)?,
                inter_disconnect_ns: named("inter_disconnect", extra.inter_disconnect)?,
                second_disconnect_ns: named("second_disconnect", extra.second_disconnect)?,
                seek_delta_ns: named("seek_delta", extra.seek_delta)?,
            }),
        };
        Ok(Overheads {
            read_hit: after("read_hit", self.read_hit)?,
            read_miss: after("read_miss", self.read_miss)?,
            write_hit: after("write_hit", self.write_hit)?,
            write_miss: after("write_miss", self.write_miss)?,
            read_completion_ns: named("read_completion", self.read_completion)?,
            write_completion_ns: named("write_completion", self.write_completion)?,
            data_preparation_ns: named("data_preparation", self.data_preparation)?,
            first_reselect_ns: named("first_reselect", self.first_reselect)?,
            other_reselect_ns: named("other_reselect", self.other_reselect)?,
            write_disconnect_ns: named("write_disconnect", self.write_disconnect)?,
            write_start_ns: named("write_start", self.write_start)?,
            extra_disconnect,
        })
    }

    fn from_spec(o: &Overheads) -> Self {
        let time = |ns: u32| Time::ns(ns.into());
        let pair = |after: After| Some((time(after.read_ns), time(after.write_ns)));
        OverheadTable {
            command: None,
            read_hit: pair(o.read_hit),
            read_miss: pair(o.read_miss),
            write_hit: pair(o.write_hit),
            write_miss: pair(o.write_miss),
            read_completion: time(o.read_completion_ns),
            write_completion: time(o.write_completion_ns),
            data_preparation: time(o.data_preparation_ns),
            first_reselect: time(o.first_reselect_ns),
            other_reselect: time(o.other_reselect_ns),
            write_disconnect: time(o.write_disconnect_ns),
            write_start: time(o.write_start_ns),
            extra_disconnect: o.extra_disconnect.map(|extra| ExtraTable {
                command: time(extra.command_ns),
                disconnect: time(extra.disconnect_ns),
                inter_disconnect: time(extra.inter_disconnect_ns),
                second_disconnect: time(extra.second_disconnect_ns),
                seek_delta: time(extra.seek_delta_ns),
            }),
        }
    }
}

impl BusTable {
    fn spec(&self) -> Result<Bus, String> {
        let (read_sector_ns, write_sector_ns) =
            match (self.rate, self.read_sector, self.write_sector) {
                (Some(rate), None, None) => (rate.sector_ns(), rate.sector_ns()),
                (None, Some(read), Some(write)) => (read.positive()?, write.positive()?),
                _ => return Err("bus: expected rate, or read_sector and write_sector".to_owned()),
            };
        if !(0.0..=1.0).contains(&self.read_watermark) {
            return Err(format!("bus: a read_watermark of {}", self.read_watermark));
        }
        Ok(Bus {
            read_sector_ns,
            write_sector_ns,
            read_watermark: self.read_watermark,
            disconnects: !self.stays_connected,
            write_holds_arm: self.write_holds_arm,
        })
    }
}

impl CacheTable {
    fn spec(&self) -> CacheSpec {
        CacheSpec {
            segments: self.segments,
            segment_sectors: self.segment.0,
            write_segments: self.write_segments,
            read_ahead: match self.read_ahead {
                ReadAheadName::Off => ReadAhead::Off,
                ReadAheadName::Track => ReadAhead::Track,
                ReadAheadName::Cylinder => ReadAhead::Cylinder,
                ReadAheadName::Segment => ReadAhead::Segment,
                ReadAheadName::NextTrack => ReadAhead::NextTrack,
            },
            read_ahead_max: self.read_ahead_max.unwrap_or(self.segment).0,
            over_requested: self.over_requested,
            on_idle_hit: self.on_idle_hit,
            hits_on_writes: self.hits_on_writes,
            free_blocks: self.free_blocks,
            read_on_arrival: self.read_on_arrival,
        }
    }

    fn from_spec(cache: &CacheSpec) -> Self {
        CacheTable {
            segments: cache.segments,
            segment: Size(cache.segment_sectors),
            read_ahead: match cache.read_ahead {
                ReadAhead::Off => ReadAheadName::Off,
                ReadAhead::Track => ReadAheadName::Track,
                ReadAhead::Cylinder => ReadAheadName::Cylinder,
                ReadAhead::Segment => ReadAheadName::Segment,
                ReadAhead::NextTrack => ReadAheadName::NextTrack,
            },
            read_ahead_max: Some(Size(cache.read_ahead_max)),
            write_segments: cache.write_segments,
            over_requested: cache.over_requested,
            on_idle_hit: cache.on_idle_hit,
            hits_on_writes: cache.hits_on_writes,
            free_blocks: cache.free_blocks,
            read_on_arrival: cache.read_on_arrival,
        }
    }
}

impl WriteCacheTable {
    fn spec(&self) -> Result<WriteCache, String> {
        match (self.streams, self.size, self.runs, self.high_water) {
            (Some(streams), None, None, None) => Ok(WriteCache::Appending { streams }),
            (None, Some(size), Some(runs), Some(high_water)) => {
                Ok(WriteCache::Full { size: size.0, runs, high_water })
            }
            _ => Err("write_cache: expected streams, or size, runs and high_water".to_owned()),
        }
    }

    fn from_spec(cache: WriteCache) -> Option<Self> {
        match cache {
            WriteCache::Off => None,
            WriteCache::Appending { streams } => Some(WriteCacheTable {
                streams: Some(streams),
                size: None,
                runs: None,
                high_water: None,
            }),
            WriteCache::Full { size, runs, high_water } => Some(WriteCacheTable {
                streams: None,
                size: Some(Size(size)),
                runs: Some(runs),
                high_water: Some(high_water),
            }),
        }
    }
}

impl ArrayTable {
    /// The controller's description.
    pub fn spec(&self) -> Result<ArraySpec, String> {
        if self.drives > 1024 {
            return Err(format!("drives: {}, expected at most 1024", self.drives));
        }
        Ok(ArraySpec {
            level: match self.level {
                LevelName::Raid0 => Level::Stripe,
                LevelName::Raid1 => Level::Mirror,
                LevelName::Raid10 => Level::StripedMirrors,
                LevelName::Raid5 => Level::Parity,
            },
            stripe_unit: self.stripe_unit.0,
            depth: self.depth,
            drive_depth: self.drive_depth,
            overhead_ns: self.overhead.positive().map_err(|e| format!("overhead: {e}"))?,
            sector_ns: self.link.sector_ns(),
            read_policy: match self.read_policy {
                ReadPolicyName::First => ReadPolicy::First,
                ReadPolicyName::RoundRobin => ReadPolicy::RoundRobin,
                ReadPolicyName::ShortestQueue => ReadPolicy::ShortestQueue,
                ReadPolicyName::NearestHead => ReadPolicy::NearestHead,
            },
            write_back: self.cache.as_ref().map(|cache| WriteBack {
                size: cache.size.0,
                high_water: cache.high_water,
                destage: match cache.destage {
                    DestageName::Elevator => Destage::Elevator,
                    DestageName::Oldest => Destage::Oldest,
                },
                window: cache.window,
            }),
            failed: self.failed,
        })
    }
}

impl FlashTable {
    /// The drive's description.
    pub fn spec(&self) -> Result<FlashSpec, String> {
        let named = |name: &str, time: Time| time.positive().map_err(|e| format!("{name}: {e}"));
        Ok(FlashSpec {
            capacity: self.capacity.0 / 8 * 8,
            over_provisioning: self.over_provisioning,
            channels: self.channels,
            dies_per_channel: self.dies_per_channel,
            planes: self.planes,
            page_sectors: self.page.0,
            pages_per_block: self.pages_per_block,
            read_ns: self.read.iter().map(|t| named("read", *t)).collect::<Result<_, _>>()?,
            read_spread_ns: named("read_spread", self.read_spread)?,
            program_ns: named("program", self.program)?,
            erase_ns: named("erase", self.erase)?,
            channel_sector_ns: self.channel.sector_ns(),
            link_read_sector_ns: self.link_read.sector_ns(),
            link_write_sector_ns: self.link_write.sector_ns(),
            firmware_ns: named("firmware", self.firmware)?,
            controller_ns: named("controller", self.controller)?,
            buffer_ns: named("buffer_write", self.buffer_write)?,
            buffer_sectors: self.buffer.0,
            power_safe: self.power_safe,
            depth: self.depth,
            state: match self.state {
                StateName::Fresh => State::Fresh,
                StateName::Sequential => State::Sequential(self.full),
                StateName::Random => State::Random(self.full),
            },
        })
    }
}
