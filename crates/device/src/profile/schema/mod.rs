//! A profile's TOML, field by field, and how it becomes a description (and back, for imports).

mod disk;
mod error;
mod index;

pub use error::SchemaError;

use error::nanoseconds;

use self::index::IndexTable;
use super::quantity::{Rate, Size, Time};
use crate::array::{AheadPolicy, ArraySpec, Destage, Level, ReadCache, ReadPolicy, WriteBack};
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
    /// What an access waits for: the sector, unless it says otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    access: AccessName,
    queue: QueueTable,
    seek: SeekTable,
    /// Seeks to write, where they were measured apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_seek: Option<SeekTable>,
    overhead: OverheadTable,
    bus: BusTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_cache: Option<WriteCacheTable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    zones: Vec<ZoneTable>,
    /// In place of zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexTable>,
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
    CylinderFront,
    Range,
    Zone,
    Disk,
    CylinderAndDisk,
    CylinderFrontAndDisk,
    ZoneAndDisk,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum AccessName {
    #[default]
    Positions,
    NoRotation,
    HalfTurn,
    Constant(Time),
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
    read_cache: Option<ReadCacheTable>,
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
struct ReadCacheTable {
    size: Size,
    read_ahead: AheadPolicyName,
    streams: usize,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum AheadPolicyName {
    Always,
    Adaptive,
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

impl ArrayTable {
    /// The controller's description.
    pub fn spec(&self) -> Result<ArraySpec, SchemaError> {
        if self.drives > 1024 {
            return Err(SchemaError::Drives { drives: self.drives });
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
            overhead_ns: nanoseconds("overhead", self.overhead)?,
            sector_ns: self.link.sector_ns(),
            read_policy: match self.read_policy {
                ReadPolicyName::First => ReadPolicy::First,
                ReadPolicyName::RoundRobin => ReadPolicy::RoundRobin,
                ReadPolicyName::ShortestQueue => ReadPolicy::ShortestQueue,
                ReadPolicyName::NearestHead => ReadPolicy::NearestHead,
            },
            read_cache: self.read_cache.as_ref().map(|cache| ReadCache {
                size: cache.size.0,
                ahead: match cache.read_ahead {
                    AheadPolicyName::Always => AheadPolicy::Always,
                    AheadPolicyName::Adaptive => AheadPolicy::Adaptive,
                },
                streams: cache.streams,
            }),
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
    /// The table of a description, such as a fitted one.
    pub fn from_spec(spec: &FlashSpec) -> Self {
        let time = |ns: u32| Time::ns(ns.into());
        let (state, full) = match spec.state {
            State::Fresh => (StateName::Fresh, 0.0),
            State::Sequential(full) => (StateName::Sequential, full),
            State::Random(full) => (StateName::Random, full),
        };
        FlashTable {
            capacity: Size(spec.capacity),
            over_provisioning: spec.over_provisioning,
            channels: spec.channels,
            dies_per_channel: spec.dies_per_channel,
            planes: spec.planes,
            page: Size(spec.page_sectors),
            pages_per_block: spec.pages_per_block,
            read: spec.read_ns.iter().copied().map(time).collect(),
            read_spread: time(spec.read_spread_ns),
            program: time(spec.program_ns),
            erase: time(spec.erase_ns),
            channel: Rate::of_sector_ns(spec.channel_sector_ns),
            link_read: Rate::of_sector_ns(spec.link_read_sector_ns),
            link_write: Rate::of_sector_ns(spec.link_write_sector_ns),
            firmware: time(spec.firmware_ns),
            controller: time(spec.controller_ns),
            buffer_write: time(spec.buffer_ns),
            buffer: Size(spec.buffer_sectors),
            power_safe: spec.power_safe,
            depth: spec.depth,
            state,
            full,
        }
    }

    /// The drive's description.
    pub fn spec(&self) -> Result<FlashSpec, SchemaError> {
        let named = nanoseconds;
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
