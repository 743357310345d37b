//! Block events in the binary form of blktrace (linux/blktrace_api.h, "struct blk_io_trace").
//!
//! The form is the kernel's: 48 bytes in the byte order of the machine that recorded, and data behind them.

use crate::entry::TraceOp;
use units::Nanos;

/// What every event begins with; its lowest byte is the version.
pub(crate) const MAGIC: u32 = 0x6561_7400;
/// The version that is written.
const VERSION: u32 = 7;
/// Bytes of an event without its data.
pub(crate) const LENGTH: usize = 48;

/// Kinds of events, in the lower half of an event's action.
pub(crate) const QUEUE: u32 = 1;
pub(crate) const ISSUE: u32 = 7;
pub(crate) const COMPLETE: u32 = 8;
pub(crate) const REMAP: u32 = 15;
/// A message, of the kind of notes.
pub(crate) const MESSAGE: u32 = 2;

/// Categories, in the upper half.
pub(crate) const READ: u32 = 1;
pub(crate) const WRITE: u32 = 1 << 1;
pub(crate) const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const IS_QUEUE: u32 = 1 << 4;
const IS_ISSUE: u32 = 1 << 6;
const IS_COMPLETE: u32 = 1 << 7;
const OF_FILESYSTEM: u32 = 1 << 8;
pub(crate) const PASS_THROUGH: u32 = 1 << 9;
pub(crate) const NOTE: u32 = 1 << 10;
const META: u32 = 1 << 12;
pub(crate) const DISCARD: u32 = 1 << 13;
pub(crate) const FUA: u32 = 1 << 15;

/// What a note of lost events begins with.
pub(crate) const LOST: &str = "lost events: ";

/// A stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStage {
    /// A task handed it to the block layer.
    Queued,
    /// It went to the driver.
    Issued,
    /// It ended.
    Completed,
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent<'a> {
    /// Its stage.
    pub stage: BlockStage,
    /// When.
    pub at: Nanos,
    /// On which CPU.
    pub cpu: u32,
    /// Of which process.
    pub pid: u32,
    /// The device's numbers.
    pub device: (u32, u32),
    /// What it is, in blkparse's letters.
    pub letters: &'a str,
    /// Its first sector.
    pub sector: u64,
    /// Its sectors.
    pub sectors: u32,
}

/// Appends an event; `sequence` counts those of a CPU from 1.
pub fn write_event(out: &mut Vec<u8>, sequence: u32, event: &BlockEvent<'_>) {
    let (kind, category) = match event.stage {
        BlockStage::Queued => (QUEUE, IS_QUEUE),
        BlockStage::Issued => (ISSUE, IS_ISSUE),
        BlockStage::Completed => (COMPLETE, IS_COMPLETE),
    };
    let action = kind | (category | OF_FILESYSTEM | categories(event.letters)) << 16;
    let bytes = event.sectors.saturating_mul(512);
    let (major, minor) = event.device;
    head(out, sequence, event.at, event.sector, bytes, action, event.pid);
    out.extend_from_slice(&(major << 20 | minor & 0xf_ffff).to_le_bytes());
    out.extend_from_slice(&event.cpu.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// Appends a note that events were lost, as one of CPU 0.
pub fn write_lost(out: &mut Vec<u8>, sequence: u32, at: Nanos, events: u64) {
    let text = format!("{LOST}{events}");
    head(out, sequence, at, 0, 0, MESSAGE | NOTE << 16, 0);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&0u16.to_le_bytes());
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn head(
    out: &mut Vec<u8>,
    sequence: u32,
    at: Nanos,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
) {
    out.extend_from_slice(&(MAGIC | VERSION).to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&at.0.to_le_bytes());
    out.extend_from_slice(&sector.to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&action.to_le_bytes());
    out.extend_from_slice(&pid.to_le_bytes());
}

/// The categories of blkparse's letters.
fn categories(letters: &str) -> u32 {
    let mut all = 0;
    let mut rest = letters;
    if let Some(after) = rest.strip_prefix('F') {
        all |= FLUSH;
        rest = after;
    }
    all |= match rest.chars().next() {
        Some('R') => READ,
        Some('W') => WRITE,
        Some('D') => DISCARD | WRITE,
        _ => 0,
    };
    for letter in rest.chars().skip(1) {
        all |= match letter {
            'F' => FUA,
            'S' => SYNC,
            'M' => META,
            _ => 0,
        };
    }
    all
}

/// What the categories of an event say it does; `None` of what is not replayed.
pub(crate) fn operation(category: u32, bytes: u32) -> Option<TraceOp> {
    if category & (DISCARD | PASS_THROUGH) != 0 {
        return None;
    }
    match (category & FLUSH != 0, bytes) {
        (true, 0) => Some(TraceOp::Flush),
        (_, 0) => None,
        _ if category & WRITE != 0 => Some(TraceOp::Write),
        _ if category & READ != 0 => Some(TraceOp::Read),
        _ => None,
    }
}
