//! Flash, disk or cache: judged by how long random reads take, whatever `rotational` says.
//!
//! Random reads of 4 KiB, one at a time, around the page cache, for at most a second. A disk must
//! turn to the place: on average half a turn, 2 ms at 15,000 rpm, 4.2 ms at 7,200, and the times are
//! spread over a whole turn. Flash answers in tens to hundreds of microseconds. What answers faster
//! than flash can, or without the device having read, is a cache.

use crate::{DeviceNumber, Error, Host, Result, error::io_error};
use random::Stream;
use serde::{Deserialize, Serialize};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs::OpenOptions,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};
use units::{Bytes, Nanos};

/// What a second of random reads showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// What answers.
    pub medium: Medium,
    /// Why that is said.
    pub evidence: String,
    /// How many reads.
    pub reads: u64,
    /// A tenth of them took less.
    pub p10: Nanos,
    /// Half of them took less.
    pub median: Nanos,
    /// One in a hundred took longer.
    pub p99: Nanos,
    /// What part of the bytes asked for the device itself read, where that could be counted. More
    /// than 1 when others read too.
    pub device_share: Option<f64>,
}

/// What answers random reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Flash, local or behind a network.
    Flash,
    /// Turning disks.
    Disk,
    /// Memory somewhere before the medium.
    Cache,
    /// None of these clearly.
    Unclear,
}

impl std::fmt::Display for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Medium::Flash => "flash",
            Medium::Disk => "disk",
            Medium::Cache => "cache",
            Medium::Unclear => "unclear",
        })
    }
}

/// Enough reads for the percentiles.
const READS_MAX: usize = 4000;
/// Fewer say nothing.
const READS_MIN: usize = 20;
const BLOCK: u64 = 4096;
/// The least that is worth reading at random.
pub const PROBE_SIZE_MIN: Bytes = Bytes::from_mib(16);

/// Reads at random from the file or device at `path`, which must not be changed for it.
///
/// `device` is the one at the bottom, whose own counter tells whether it read at all.
pub fn probe(
    host: &Host,
    path: &Path,
    size: Bytes,
    device: Option<DeviceNumber>,
    time: Duration,
) -> Result<Probe> {
    if size < PROBE_SIZE_MIN {
        return Err(Error::Unsupported {
            what: format!("probing {}", path.display()),
            why: format!("it is {size} long, and less than {PROBE_SIZE_MIN} says nothing"),
            next: "give a larger file, or the device".to_owned(),
        });
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .map_err(io_error("open for direct reads", path))?;
    // A kernel that does not count the device's requests would show none.
    let counts = device.is_some_and(|device| crate::counters::is_counted(host, device));
    let sectors = || {
        let line =
            crate::tree::text(host.device_folder(device.filter(|_| counts)?).ok()?.join("stat"))?;
        line.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    let before = sectors();
    let mut buffer = Aligned::new();
    // Different places every time: what was read before may be cached below.
    let mut stream = Stream::new(u64::from(std::process::id()) ^ crate::monotonic_now().0, "probe");
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < time && times.len() < READS_MAX {
        let offset = stream.below(size.0 / BLOCK) * BLOCK;
        let start = Instant::now();
        let read = buffer.read(file.as_raw_fd(), offset).map_err(io_error("read", path))?;
        if read == 0 {
            break;
        }
        times.push(Nanos(start.elapsed().as_nanos() as u64));
    }
    let after = sectors();
    let share = before.zip(after).map(|(before, after)| {
        after.saturating_sub(before) as f64 * 512.0 / (times.len() as f64 * BLOCK as f64)
    });
    Ok(judge(times, share))
}

/// What the times and the device's own share say.
fn judge(mut times: Vec<Nanos>, device_share: Option<f64>) -> Probe {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or(Nanos(0))
    };
    let (p10, median, p99) = (at(0.1), at(0.5), at(0.99));
    let us = |time: Nanos| time.0 as f64 / 1e3;
    let part = |below_us: f64| {
        let count = times.iter().filter(|time| us(**time) < below_us).count();
        100.0 * count as f64 / times.len().max(1) as f64
    };
    // A disk of 15,000 rpm that need not seek answers an eighth of all reads within half a millisecond.
    let fast = part(500.0);
    let (medium, because) = match () {
        () if times.len() < READS_MIN => (Medium::Unclear, "too few reads in the time".to_owned()),
        () if device_share.is_some_and(|share| share < 0.5) => (
            Medium::Cache,
            format!(
                "the device itself read {:.0} % of it: a cache, or holes in a sparse file",
                100.0 * device_share.unwrap_or(0.0)
            ),
        ),
        () if us(median) < 10.0 => {
            (Medium::Cache, "faster than flash can answer: memory on the way".to_owned())
        }
        () if (15.0..85.0).contains(&fast) && us(p99) > 2500.0 => {
            (Medium::Cache, format!("{fast:.0} % under 0.5 ms and the rest as slow as a disk"))
        }
        () if us(median) < 1500.0 => (Medium::Flash, "no disk turns that fast".to_owned()),
        () if us(median) < 30_000.0 => (Medium::Disk, "that is a disk's turn and seek".to_owned()),
        () => (Medium::Unclear, "slower than a disk: busy, throttled, or far away".to_owned()),
    };
    let evidence = format!(
        "{} random reads of 4 KiB: median {:.0} µs, a tenth under {:.0} µs, one in a hundred over \
         {:.0} µs; {because}",
        times.len(),
        us(median),
        us(p10),
        us(p99)
    );
    Probe { medium, evidence, reads: times.len() as u64, p10, median, p99, device_share }
}

/// A page for direct reads.
struct Aligned {
    bytes: *mut u8,
}

impl Aligned {
    // 4 KiB serves every alignment that direct I/O asks for today.
    const LAYOUT: Layout = match Layout::from_size_align(BLOCK as usize, BLOCK as usize) {
        Ok(layout) => layout,
        Err(_) => panic!("4096 is a power of two"),
    };

    fn new() -> Aligned {
        // SAFETY: the layout has a size that is not zero.
        let bytes = unsafe { alloc_zeroed(Self::LAYOUT) };
        if bytes.is_null() {
            std::alloc::handle_alloc_error(Self::LAYOUT);
        }
        Aligned { bytes }
    }

    fn read(&mut self, file: libc::c_int, offset: u64) -> std::io::Result<usize> {
        // SAFETY: the buffer is ours, alive, and as long as the read.
        let read =
            unsafe { libc::pread(file, self.bytes.cast(), BLOCK as usize, offset as libc::off_t) };
        usize::try_from(read).map_err(|_| std::io::Error::last_os_error())
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and not freed since.
        unsafe { dealloc(self.bytes, Self::LAYOUT) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(mut of: impl FnMut(&mut Stream) -> f64) -> Vec<Nanos> {
        let mut stream = Stream::new(3, "times");
        (0..500).map(|_| Nanos((of(&mut stream) * 1e3) as u64)).collect()
    }

    #[test]
    fn each_medium_by_its_times() {
        // 7,200 rpm: a seek of 4 to 12 ms and up to a turn of 8.33 ms.
        let disk = times(|it| 4000.0 + 8000.0 * it.unit() + 8333.0 * it.unit());
        // 15,000 rpm, on a span too narrow to seek.
        let narrow = times(|it| 250.0 + 4000.0 * it.unit());
        let flash = times(|it| 90.0 + it.exponential(20.0));
        let memory = times(|it| 3.0 + it.exponential(1.0));
        let controller =
            times(|it| if it.unit() < 0.5 { 150.0 } else { 4000.0 + 8333.0 * it.unit() });
        for (times, medium) in [
            (disk, Medium::Disk),
            (narrow, Medium::Disk),
            (flash.clone(), Medium::Flash),
            (memory, Medium::Cache),
            (controller, Medium::Cache),
        ] {
            let probe = judge(times, Some(1.0));
            assert_eq!(probe.medium, medium, "{}", probe.evidence);
        }
        let probe = judge(flash, Some(0.02));
        assert_eq!(probe.medium, Medium::Cache, "{}", probe.evidence);
        assert!(probe.evidence.contains("2 %"), "{}", probe.evidence);
    }
}
