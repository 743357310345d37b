//! Block events of one disk, through the kernel's tracepoints in an instance of their own: what others
//! trace meanwhile is not touched, and nothing has to be installed.
//!
//! Documented: Documentation/trace/ftrace.rst ("instances"), Documentation/trace/events.rst (filters).

use crate::{
    BlockDevice, Changes, DeviceKind, DeviceNumber, Error, Result, error::io_error,
    trace_instance::TraceInstance,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    time::Duration,
};
use units::Bytes;

/// The events of a request's life: a task hands it over, it goes to the driver, it ends. Devices that have
/// requests report the end of those, others that of bios.
const EVENTS: [&str; 4] =
    ["block_bio_queue", "block_rq_issue", "block_rq_complete", "block_bio_complete"];

/// A trace that goes on.
#[derive(Debug)]
pub struct BlockTrace {
    instance: TraceInstance,
    entry: u64,
    pipe: File,
    /// The disk whose events are recorded.
    pub disk: DeviceNumber,
}

impl Changes {
    /// Begins to trace a device: events of the disk and all of its partitions, because the kernel names
    /// either. `buffer` is for each CPU; what does not fit is counted as lost.
    pub fn trace_block(&mut self, device: &BlockDevice, buffer: Bytes) -> Result<BlockTrace> {
        let disk = match device.kind {
            DeviceKind::Partition { disk, .. } => BlockDevice::read(self.host(), disk)?,
            _ => device.clone(),
        };
        let (instance, entry) = self.trace_instance()?;
        match begin(&instance, &disk, buffer) {
            Ok(pipe) => Ok(BlockTrace { instance, entry, pipe, disk: disk.number }),
            Err(error) => {
                self.unmake(entry)?;
                Err(error)
            }
        }
    }
}

fn begin(instance: &TraceInstance, disk: &BlockDevice, buffer: Bytes) -> Result<File> {
    let filter = filter(disk);
    instance.set("trace_clock", "mono")?;
    instance.set("buffer_size_kb", &(buffer.0 / 1024).max(64).to_string())?;
    for event in EVENTS {
        let events = format!("events/block/{event}");
        if !instance.path().join(&events).exists() {
            return Err(Error::Unsupported {
                what: "recording block events".to_owned(),
                why: format!("this kernel has no tracepoint {event}"),
                next: "it needs CONFIG_BLK_DEV_IO_TRACE, or CONFIG_TRACEPOINTS with events"
                    .to_owned(),
            });
        }
        instance.set(&format!("{events}/filter"), &filter)?;
    }
    let pipe = instance.pipe()?;
    for event in EVENTS {
        instance.set(&format!("events/block/{event}/enable"), "1")?;
    }
    Ok(pipe)
}

/// The kernel's own number of a device, 20 bits of which are the minor.
fn kernel_number(number: DeviceNumber) -> Option<u64> {
    match number {
        DeviceNumber::Node { major, minor } => Some(u64::from(major) << 20 | u64::from(minor)),
        DeviceNumber::NvmePath { .. } => None,
    }
}

/// Events of the disk and of its partitions.
pub(crate) fn filter(disk: &BlockDevice) -> String {
    let numbers = std::iter::once(disk.number).chain(disk.partitions.iter().copied());
    let parts: Vec<String> =
        numbers.filter_map(kernel_number).map(|number| format!("dev == {number}")).collect();
    parts.join(" || ")
}

impl BlockTrace {
    /// Waits for events, up to a time, and reads what is there: lines of text, the last one perhaps cut.
    pub fn read(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize> {
        let fail = |source| io_error("read", self.instance.path().join("trace_pipe"))(source);
        let wait = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let mut polled = [PollFd::new(&self.pipe, PollFlags::IN)];
        match poll(&mut polled, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(fail(error.into())),
        }
        match self.pipe.read(buffer) {
            Ok(bytes) => Ok(bytes),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(0)
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Makes no more events; what is in the buffers can still be read.
    pub fn stop(&self) -> Result<()> {
        self.instance.set("tracing_on", "0")
    }

    /// Events that did not fit the buffers.
    pub fn lost(&self) -> Result<u64> {
        let folder = self.instance.path().join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(io_error("list", &folder))?;
        let mut lost = 0;
        for entry in entries.flatten() {
            let text = fs::read_to_string(entry.path().join("stats")).unwrap_or_default();
            lost += text
                .lines()
                .filter_map(|line| line.split_once(':'))
                .filter(|(name, _)| matches!(name.trim(), "overrun" | "dropped events"))
                .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
                .sum::<u64>();
        }
        Ok(lost)
    }

    /// Ends it, and removes the instance.
    pub fn end(self, changes: &mut Changes) -> Result<()> {
        drop(self.pipe);
        changes.unmake(self.entry)
    }
}
