//! The formats that are known.

use std::{fmt, str::FromStr};
use strum::VariantArray;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Format {
    /// What blkparse prints (blkparse(1), default output).
    Blkparse,
    /// blktrace's binary events (linux/blktrace_api.h), of one processor or of several one behind the other.
    Blktrace,
    /// Block events as `perf script` and the kernel's trace file print them.
    Perf,
    /// biosnoop of bcc: a line for each completion.
    Biosnoop,
    /// fio's iolog, version 2 or 3 (fio(1), "TRACE FILE FORMAT").
    Fio,
    /// CSV of the MSR Cambridge traces (SNIA IOTTA): timestamp in 100 ns, host, disk, type, offset
    /// and size in bytes, response time in 100 ns.
    Msr,
    /// CSV of SYSTOR '17 (SNIA IOTTA): timestamp and response in seconds, type, LUN, offset and size in
    /// bytes.
    Systor17,
    /// CSV of Alibaba's block traces: device, operation, offset and length in bytes, timestamp in µs.
    Alibaba,
    /// CSV of Tencent's block traces: timestamp in seconds, offset and size in sectors, type, volume.
    Tencent,
    /// SPC's trace format (UMass): ASU, block, bytes, operation, seconds.
    Spc,
    /// DiskSim's ASCII: arrival in ms, device, block, blocks, flags of which bit 0 is read
    /// (CMU-PDL-08-101).
    DiskSim,
    /// MQSim's ASCII: arrival in ns, device, sector, sectors, 1 for a read. Told from DiskSim's by name alone.
    Mqsim,
}

impl Format {
    /// All of them.
    pub const ALL: &'static [Format] = Format::VARIANTS;
}

impl Format {
    /// Whether its lines say the unit of its times.
    pub fn has_unit(self) -> bool {
        matches!(self, Format::Blkparse | Format::Blktrace | Format::Perf | Format::Biosnoop)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::Perf => "perf",
            Format::Biosnoop => "biosnoop",
            Format::Fio => "fio",
            Format::Msr => "msr",
            Format::Systor17 => "systor17",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Spc => "spc",
            Format::DiskSim => "disksim",
            Format::Mqsim => "mqsim",
        })
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = Format::ALL.iter().copied().find(|format| format.to_string() == text);
        named.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// There is no trace format of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trace format '{0}' is not known: there are {all}", all = names())]
pub struct UnknownFormat(pub String);

fn names() -> String {
    let names: Vec<String> = Format::ALL.iter().map(Format::to_string).collect();
    names.join(", ")
}
