//! A disk's table as a description, and a description as a table.

use super::error::{SchemaError, nanoseconds};
use super::index::IndexTable;
use super::{
    AccessName, BusTable, CacheTable, DiskTable, ExtraTable, HeadOrderName, OverheadTable,
    PolicyName, QueueTable, ReadAheadName, SeekTable, SparingName, WriteCacheTable, ZoneTable,
};
use crate::disk::{
    Access, After, Bus, CacheSpec, DiskSpec, ExtraDisconnect, GeometrySpec, HeadOrder, Overheads,
    Policy, ReadAhead, SeekCurve, Sparing, WriteCache, ZoneSpec,
};
use crate::profile::quantity::{Size, Time};

impl DiskTable {
    /// The description. Errors say which field and why.
    pub fn spec(&self) -> Result<DiskSpec, SchemaError> {
        let geometry = self.geometry()?;
        let settle = i32::try_from(self.write_settle.0)
            .map_err(|_| SchemaError::Time { field: "write_settle", time: self.write_settle })?;
        Ok(DiskSpec {
            geometry,
            access: match self.access {
                AccessName::Positions => Access::Positions,
                AccessName::NoRotation => Access::NoRotation,
                AccessName::HalfTurn => Access::HalfTurn,
                AccessName::Constant(time) => Access::Constant(nanoseconds("access", time)?),
            },
            seek: self.seek.curve()?,
            write_seek: self.write_seek.as_ref().map(SeekTable::curve).transpose()?.map(Box::new),
            head_switch_ns: nanoseconds("head_switch", self.head_switch)?,
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

    fn geometry(&self) -> Result<GeometrySpec, SchemaError> {
        let turn_ns = match (self.rotation, self.turn) {
            (Some(rpm), None) => rpm.turn().0,
            (None, Some(turn)) => u64::from(nanoseconds("turn", turn)?),
            _ => return Err(SchemaError::fields("one of rotation and turn")),
        };
        let sparing = match (self.sparing, self.sparing_range) {
            (SparingName::None, None) => Sparing::None,
            (SparingName::ZoneTracks, None) => Sparing::ZoneTracks,
            (SparingName::Track, None) => Sparing::Track,
            (SparingName::Cylinder, None) => Sparing::Cylinder,
            (SparingName::CylinderFront, None) => Sparing::CylinderFront,
            (SparingName::CylinderAndDisk, None) => Sparing::CylinderAndDisk,
            (SparingName::CylinderFrontAndDisk, None) => Sparing::CylinderFrontAndDisk,
            (SparingName::ZoneAndDisk, None) => Sparing::ZoneAndDisk,
            (SparingName::Zone, None) => Sparing::Zone,
            (SparingName::Disk, None) => Sparing::Disk,
            (SparingName::Range, Some(range)) => Sparing::Range(range),
            _ => {
                let expected = "sparing_range with sparing = \"range\", and only with it";
                return Err(SchemaError::fields(expected));
            }
        };
        let sectors = |skew: Time, per_track: u32| -> Result<u32, SchemaError> {
            let skew = u64::from(nanoseconds("skew", skew)?) * u64::from(per_track);
            Ok(skew.div_ceil(turn_ns) as u32)
        };
        let index = self.index.as_ref().map(IndexTable::spec).transpose()?;
        let mut zones = match index {
            Some(_) if self.zone_range.is_some() => {
                return Err(SchemaError::fields("one of zone_range and index"));
            }
            Some(_) => self.zones.clone(),
            None => self.zone_tables()?,
        };
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
            index: index.map(Box::new),
        })
    }

    fn zone_tables(&self) -> Result<Vec<ZoneTable>, SchemaError> {
        let Some(range) = &self.zone_range else {
            return match self.zones.is_empty() {
                true => Err(SchemaError::fields("zone_range, zones or index")),
                false => Ok(self.zones.clone()),
            };
        };
        if !self.zones.is_empty() {
            return Err(SchemaError::fields("one of zone_range and zones"));
        }
        if range.count == 0 || range.count > self.cylinders || range.inner > range.outer {
            return Err(SchemaError::ZoneRange {
                zones: range.count,
                outer: range.outer,
                inner: range.inner,
                cylinders: self.cylinders,
            });
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
            Sparing::CylinderFront => (SparingName::CylinderFront, None),
            Sparing::CylinderAndDisk => (SparingName::CylinderAndDisk, None),
            Sparing::CylinderFrontAndDisk => (SparingName::CylinderFrontAndDisk, None),
            Sparing::ZoneAndDisk => (SparingName::ZoneAndDisk, None),
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
            access: match spec.access {
                Access::Positions => AccessName::Positions,
                Access::NoRotation => AccessName::NoRotation,
                Access::HalfTurn => AccessName::HalfTurn,
                Access::Constant(ns) => AccessName::Constant(Time::ns(ns.into())),
            },
            seek: SeekTable::from_curve(&spec.seek),
            write_seek: spec.write_seek.as_deref().map(SeekTable::from_curve),
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
            index: geometry.index.as_deref().map(IndexTable::from_spec),
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
    fn curve(&self) -> Result<SeekCurve, SchemaError> {
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
            _ => Err(SchemaError::fields(
                "seek with table; or single, average, full; or threshold, root_base_ms, \
                 root_factor_ms, linear_base_ms, linear_factor_ms; or base, factor; or constant",
            )),
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
    fn spec(&self) -> Result<Overheads, SchemaError> {
        let named = nanoseconds;
        let after =
            |name: &'static str, pair: Option<(Time, Time)>| -> Result<After, SchemaError> {
                let (read, write) = pair
                    .or(self.command.map(|time| (time, time)))
                    .ok_or(SchemaError::Overhead { case: name })?;
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
    fn spec(&self) -> Result<Bus, SchemaError> {
        let (read_sector_ns, write_sector_ns) =
            match (self.rate, self.read_sector, self.write_sector) {
                (Some(rate), None, None) => (rate.sector_ns(), rate.sector_ns()),
                (None, Some(read), Some(write)) => {
                    (nanoseconds("read_sector", read)?, nanoseconds("write_sector", write)?)
                }
                _ => {
                    let expected = "bus with rate, or with read_sector and write_sector";
                    return Err(SchemaError::fields(expected));
                }
            };
        if !(0.0..=1.0).contains(&self.read_watermark) {
            return Err(SchemaError::ReadWatermark { value: self.read_watermark });
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
    fn spec(&self) -> Result<WriteCache, SchemaError> {
        match (self.streams, self.size, self.runs, self.high_water) {
            (Some(streams), None, None, None) => Ok(WriteCache::Appending { streams }),
            (None, Some(size), Some(runs), Some(high_water)) => {
                Ok(WriteCache::Full { size: size.0, runs, high_water })
            }
            _ => Err(SchemaError::fields("write_cache with streams, or size, runs and high_water")),
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
