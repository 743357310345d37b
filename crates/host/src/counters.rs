//! What the kernel counts while something runs: the device's, the processors', memory's, pressure's.
//!
//! A [`Sampler`] keeps its files open and reads each in one call, cheap enough for once a second.
//! [`Rates`] turns two samples into what iostat and sar print.

mod device;
mod processor;
mod rates;

pub use device::{DeviceCounters, Requests};
pub use processor::CpuTicks;
pub use rates::{CpuShares, Rates};

use crate::{DeviceNumber, Host, Result, cgroup::own_group, error::io_error};
use serde::{Deserialize, Serialize};
use std::{fs::File, os::unix::fs::FileExt, path::PathBuf};
use units::{Bytes, Nanos};

/// Everything that is counted, at one moment. Counters only grow; gauges are what is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// When: the monotonic clock.
    pub at: Nanos,
    /// The device, or all devices that are counted together.
    pub device: Option<DeviceCounters>,
    /// Each device by its name, where there are several.
    #[serde(default)]
    pub devices: Vec<(String, DeviceCounters)>,
    /// All processors together.
    pub cpu: CpuTicks,
    /// Gauges of memory.
    pub memory: Memory,
    /// Time that tasks stood still for want of something; `None` without CONFIG_PSI or psi=1.
    pub pressure: Option<Pressure>,
    /// Read from block devices into memory, by all.
    pub paged_in: Bytes,
    /// Written from memory to block devices, by all.
    pub paged_out: Bytes,
    /// CPU time of this process and its ended children, user mode.
    pub own_user: Nanos,
    /// The same, in the kernel.
    pub own_system: Nanos,
    /// How long our control group's tasks were held back by its CPU limit; `None` without one.
    pub throttled: Option<Nanos>,
}

/// Gauges of `/proc/meminfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The page cache.
    pub cached: Bytes,
    /// Pages of it that wait to be written.
    pub dirty: Bytes,
    /// Pages of it that are being written.
    pub writeback: Bytes,
    /// What could be given to programs without swapping.
    pub available: Bytes,
}

/// `/proc/pressure`: totals in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// At least one task waited for a processor.
    pub cpu_some: Nanos,
    /// At least one task waited for I/O.
    pub io_some: Nanos,
    /// All tasks that were not idle did.
    pub io_full: Nanos,
    /// At least one task waited for memory.
    pub memory_some: Nanos,
    /// All tasks that were not idle did.
    pub memory_full: Nanos,
}

/// Whether the kernel counts a device's requests; queue/iostats of the whole disk says otherwise.
pub(crate) fn is_counted(host: &Host, number: DeviceNumber) -> bool {
    let file = host.disk_folder(number).map(|disk| disk.join("queue/iostats"));
    file.ok().and_then(crate::tree::text).is_none_or(|said| said != "0")
}

/// Reads [`Counters`] again and again.
#[derive(Debug)]
pub struct Sampler {
    /// Devices of which nothing is read, because the kernel does not count their requests.
    pub not_counted: Vec<String>,
    devices: Vec<(String, File)>,
    stat: File,
    meminfo: File,
    vmstat: Option<File>,
    pressure: Option<[File; 3]>,
    group: Option<File>,
    text: Vec<u8>,
}

impl Sampler {
    /// Opens what is to be read. `devices` are those whose requests are counted.
    pub fn new(host: &Host, devices: &[DeviceNumber]) -> Result<Sampler> {
        let open = |path: PathBuf| File::open(&path).map_err(io_error("open", path));
        let device = |number: &DeviceNumber| {
            let folder = host.device_folder(*number)?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, open(folder.join("stat"))?))
        };
        let (counted, silent): (Vec<&DeviceNumber>, Vec<&DeviceNumber>) =
            devices.iter().partition(|number| is_counted(host, **number));
        let not_counted: Vec<String> =
            silent.into_iter().map(device).map(|it| Ok(it?.0)).collect::<Result<_>>()?;
        // What a part of several did is not what all did.
        let counted = if not_counted.is_empty() { counted } else { Vec::new() };
        let devices = counted.into_iter().map(device).collect::<Result<_>>()?;
        let pressure = ["cpu", "io", "memory"]
            .map(|name| File::open(host.path("/proc/pressure").join(name)).ok());
        let pressure = match pressure {
            [Some(cpu), Some(io), Some(memory)] => Some([cpu, io, memory]),
            _ => None,
        };
        Ok(Sampler {
            not_counted,
            devices,
            stat: open(host.path("/proc/stat"))?,
            meminfo: open(host.path("/proc/meminfo"))?,
            vmstat: File::open(host.path("/proc/vmstat")).ok(),
            pressure,
            group: own_group(host, "cpu").and_then(|group| File::open(group.join("cpu.stat")).ok()),
            text: Vec::new(),
        })
    }

    /// Reads everything now. What cannot be read is zero or `None`: a device that went away is seen
    /// by the I/O that fails, and must not stop the record of the rest.
    pub fn sample(&mut self) -> Counters {
        let text = &mut self.text;
        let mut read = |file: &File| whole(file, text);
        let mut devices: Vec<(String, DeviceCounters)> = self
            .devices
            .iter()
            .filter_map(|(name, file)| Some((name.clone(), DeviceCounters::parse(&read(file)?)?)))
            .collect();
        let device = DeviceCounters::together(devices.iter().map(|(_, counters)| counters));
        if devices.len() < 2 {
            devices.clear();
        }
        let cpu = read(&self.stat).and_then(|text| CpuTicks::parse(&text)).unwrap_or_default();
        let memory = read(&self.meminfo).map(|text| memory(&text)).unwrap_or_default();
        let vmstat = self.vmstat.as_ref().and_then(&mut read).unwrap_or_default();
        let pressure = self.pressure.as_ref().and_then(|files| {
            // With psi=0 the files are there and cannot be read.
            let [cpu, io, memory] = files.each_ref().map(&mut read);
            Some(pressure(&cpu?, &io?, &memory?))
        });
        let throttled = self.group.as_ref().and_then(&mut read).and_then(|text| throttled(&text));
        let kib = |name: &str| Bytes::from_kib(value(&vmstat, name).unwrap_or(0));
        let (own_user, own_system) = processor::own_time();
        Counters {
            at: crate::monotonic_now(),
            device,
            devices,
            cpu,
            memory,
            pressure,
            paged_in: kib("pgpgin"),
            paged_out: kib("pgpgout"),
            own_user,
            own_system,
            throttled,
        }
    }
}

/// A kernel file from its beginning: one `pread` for all that are short.
fn whole(file: &File, buffer: &mut Vec<u8>) -> Option<String> {
    buffer.resize(buffer.len().max(16 << 10), 0);
    let mut length = 0;
    loop {
        let read = file.read_at(&mut buffer[length..], length as u64).ok()?;
        length += read;
        if read == 0 || length < buffer.len() {
            return std::str::from_utf8(&buffer[..length]).ok().map(str::to_owned);
        }
        buffer.resize(buffer.len() * 2, 0);
    }
}

/// The number after `name` at the beginning of a line: `Dirty:  12 kB`, `pgpgin 34`.
fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([':', ' ']))?;
    line.split_whitespace().next()?.parse().ok()
}

fn memory(text: &str) -> Memory {
    let kib = |name: &str| Bytes::from_kib(value(text, name).unwrap_or(0));
    Memory {
        cached: kib("Cached"),
        dirty: kib("Dirty"),
        writeback: kib("Writeback"),
        available: kib("MemAvailable"),
    }
}

fn pressure(cpu: &str, io: &str, memory: &str) -> Pressure {
    let total = |text: &str, share: &str| {
        let line = text.lines().find(|line| line.starts_with(share));
        let total = line.and_then(|line| line.rsplit_once("total=")).map(|(_, total)| total);
        Nanos(total.and_then(|it| it.trim().parse::<u64>().ok()).unwrap_or(0) * 1000)
    };
    Pressure {
        cpu_some: total(cpu, "some"),
        io_some: total(io, "some"),
        io_full: total(io, "full"),
        memory_some: total(memory, "some"),
        memory_full: total(memory, "full"),
    }
}

/// Version 2 counts in microseconds, version 1 in nanoseconds.
fn throttled(text: &str) -> Option<Nanos> {
    let v2 = value(text, "throttled_usec").map(|us| Nanos(us * 1000));
    v2.or_else(|| value(text, "throttled_time").map(Nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "MemFree: 1 kB\nCached:  48816 kB\nSwapCached: 7 kB\nDirty:  12 kB\n";
        assert_eq!(memory(text).cached, Bytes::from_kib(48816));
        assert_eq!(memory(text).dirty, Bytes::from_kib(12));
        assert_eq!(value("pgpgin 34\npgpgoutrun 1\npgpgout 5\n", "pgpgout"), Some(5));
    }

    #[test]
    fn pressure_in_microseconds() {
        let io = "some avg10=0.00 avg60=0.04 avg300=0.62 total=11046977\n\
                  full avg10=0.00 avg60=0.04 avg300=0.61 total=10811950\n";
        let pressure = pressure("some avg10=0 avg60=0 avg300=0 total=3\n", io, io);
        assert_eq!(pressure.cpu_some, Nanos(3000));
        assert_eq!(pressure.io_full, Nanos(10_811_950_000));
    }

    #[test]
    fn a_sample_of_this_machine_is_cheap() {
        let mut sampler = Sampler::new(&Host::here(), &[]).unwrap();
        let first = sampler.sample();
        let begun = std::time::Instant::now();
        let last = (0..100).map(|_| sampler.sample()).last().unwrap();
        // Once a second it may cost 0.5 % of one processor; measured 0.04 ms.
        assert!(begun.elapsed().as_millis() < 500, "{:?} for 100", begun.elapsed());
        assert!(last.at > first.at && last.cpu.total() >= first.cpu.total());
        assert!(last.memory.available > Bytes::ZERO);
    }
}
