//! What a disk is described by. Times in ns; the profile and import readers fill it.

use super::geometry::GeometrySpec;
use super::seek::SeekCurve;

/// A disk drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSpec {
    /// Layout and rotation.
    pub geometry: GeometrySpec,
    /// What an access to the medium waits for.
    pub access: Access,
    /// Arm.
    pub seek: SeekCurve,
    /// Seeks to write, where they were measured apart.
    pub write_seek: Option<Box<SeekCurve>>,
    /// Changing heads on a cylinder, ns.
    pub head_switch_ns: u32,
    /// Positioning to write, beyond positioning to read, ns.
    pub write_settle_ns: i32,
    /// A read where the head has just written first moves as over one cylinder. The read and the
    /// write element of a head lie at different radii, so that going from one to the other on the
    /// same track moves the arm too (the micro-jog of magneto-resistive heads).
    pub read_after_write_jog: bool,
    /// Command processing.
    pub overheads: Overheads,
    /// The link to the host.
    pub bus: Bus,
    /// Buffer and read-ahead.
    pub cache: CacheSpec,
    /// Early completion of writes.
    pub write_cache: WriteCache,
    /// Queue.
    pub policy: Policy,
    /// Commands the drive takes at once.
    pub depth: u32,
}

/// What an access to the medium waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The arm's movement, and the sector's coming round.
    #[default]
    Positions,
    /// The arm's movement alone, to show what rotation does.
    NoRotation,
    /// The arm's movement and half a turn, wherever the sector is.
    HalfTurn,
    /// Nothing moves: an access takes this time in all, its transfer included, ns.
    Constant(u32),
}

/// Two times: after a read, after a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// When the command before was a read, ns.
    pub read_ns: u32,
    /// When it was a write, ns.
    pub write_ns: u32,
}

impl After {
    /// The same after both.
    pub fn both(ns: u32) -> Self {
        After { read_ns: ns, write_ns: ns }
    }
}

/// Command processing times, before positioning unless said, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// A read from the cache.
    pub read_hit: After,
    /// A read from the medium.
    pub read_miss: After,
    /// A write into the cache.
    pub write_hit: After,
    /// A write to the medium.
    pub write_miss: After,
    /// After the last data of a read.
    pub read_completion_ns: u32,
    /// After the last data of a write.
    pub write_completion_ns: u32,
    /// Before data crosses the bus.
    pub data_preparation_ns: u32,
    /// Taking the bus again for the first time in a command, by a drive that had let go of it.
    pub first_reselect_ns: u32,
    /// The same, later in the command.
    pub other_reselect_ns: u32,
    /// Letting go of the bus after a write's data.
    pub write_disconnect_ns: u32,
    /// From the end of a command's processing until its first sector can be written, at least; a
    /// write that begins where, and when, the last one ends does not wait.
    pub write_start_ns: u32,
    /// A drive that lets go of the bus once more, between a write's command and its data.
    pub extra_disconnect: Option<ExtraDisconnect>,
}

/// Times of the extra disconnection, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraDisconnect {
    /// Command processing, in place of the write's.
    pub command_ns: u32,
    /// Letting go.
    pub disconnect_ns: u32,
    /// Until the bus is taken again for the data.
    pub inter_disconnect_ns: u32,
    /// Letting go after the data.
    pub second_disconnect_ns: u32,
    /// From letting go until the seek begins.
    pub seek_delta_ns: u32,
}

/// The link between drive and host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bus {
    /// A sector to the host, ns.
    pub read_sector_ns: u32,
    /// A sector from the host, ns.
    pub write_sector_ns: u32,
    /// Share of a read's sectors, in whole ones rounded down, but at least one, that must be in the
    /// buffer before the bus is taken.
    pub read_watermark: f64,
    /// The drive lets go of the bus while it positions.
    pub disconnects: bool,
    /// The arm moves for a write only when all its data has crossed.
    pub write_holds_arm: bool,
}

/// How far the drive reads on after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// Not at all.
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// When reads are sequential, to the end of the next track. Else to the end of the track, where a
    /// segment could hold a whole one, and not at all where it could not.
    NextTrack,
}

/// The buffer's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Segments; 0 is no cache.
    pub segments: u32,
    /// Sectors a segment holds.
    pub segment_sectors: u64,
    /// At most so many segments hold written data.
    pub write_segments: u32,
    /// Read-ahead.
    pub read_ahead: ReadAhead,
    /// At most so many sectors beyond the request.
    pub read_ahead_max: u64,
    /// Read-ahead may overwrite what the last request has returned already.
    pub over_requested: bool,
    /// A hit starts reading ahead again when the drive is idle.
    pub on_idle_hit: bool,
    /// Written data can be read from the buffer.
    pub hits_on_writes: bool,
    /// Sectors that pass before the wanted ones are kept too.
    pub free_blocks: bool,
    /// See [`super::mechanics::Mechanics::read_on_arrival`].
    pub read_on_arrival: bool,
}

impl CacheSpec {
    /// No cache at all.
    pub const NONE: CacheSpec = CacheSpec {
        segments: 0,
        segment_sectors: 0,
        write_segments: 0,
        read_ahead: ReadAhead::Off,
        read_ahead_max: 0,
        over_requested: false,
        on_idle_hit: false,
        hits_on_writes: false,
        free_blocks: false,
        read_on_arrival: false,
    };
}

/// Which writes complete before they are on the medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteCache {
    /// None.
    Off,
    /// Those that find the buffer clean, or append to one of so many sequential streams in it. Any
    /// other command waits until the buffer is clean.
    Appending {
        /// Streams.
        streams: u32,
    },
    /// All that fit.
    Full {
        /// Sectors.
        size: u64,
        /// Separate runs of sectors at most: drives keep them in a list of limited length.
        runs: u32,
        /// Above this share of it, writing back goes before reads.
        high_water: f64,
    },
}

/// The order in which the drive serves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Arrival.
    Fifo,
    /// To and fro over the cylinders, turning at the last request (LOOK).
    Look,
    /// Up over the cylinders, then back to the lowest (C-LOOK).
    CLook,
    /// Shortest seek first (SSTF).
    ShortestSeek,
    /// Shortest positioning first: seek and rotation together (SPTF).
    ShortestPositioning,
}
