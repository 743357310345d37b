//! Block events of one disk, through the kernel's tracepoints in a tracefs instance of its own: what others
//! trace meanwhile is not touched, and nothing has to be installed.
//!
//! Documented: Documentation/trace/ftrace.rst ("instances"), Documentation/trace/events.rst (filters).

use crate::{
    BlockDevice, Changes, DeviceKind, DeviceNumber, Error, Host, Made, Result, error::io_error,
    mounts::mounts,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    mount::{MountFlags, mount},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use units::Bytes;

/// Where tracefs is mounted.
const TRACEFS: &str = "/sys/kernel/tracing";

/// What the names of our instances begin with.
pub(crate) const INSTANCE_PREFIX: &str = "spindle-";

/// The events of a request's life: a task hands it over, it goes to the driver, it ends. Devices that have
/// requests report the end of those, others that of bios.
const EVENTS: [&str; 4] =
    ["block_bio_queue", "block_rq_issue", "block_rq_complete", "block_bio_complete"];

/// A trace that goes on.
#[derive(Debug)]
pub struct BlockTrace {
    folder: PathBuf,
    entry: u64,
    pipe: File,
    /// The disk whose events are recorded.
    pub disk: DeviceNumber,
}

impl Changes {
    /// Begins to trace a device: events of the disk and all of its partitions, because the kernel names
    /// either. `buffer` is for each CPU; what does not fit is counted as lost.
    pub fn trace_block(&mut self, device: &BlockDevice, buffer: Bytes) -> Result<BlockTrace> {
        let host = self.host().clone();
        self.mount_tracefs(&host)?;
        let name = format!("{INSTANCE_PREFIX}{}-{}", std::process::id(), self.next_entry());
        let folder = host.path(TRACEFS).join("instances").join(name);
        let entry = self.announce(Made::TraceInstance { path: folder.clone() })?;
        match self.begin_trace(&host, device, buffer, &folder) {
            Ok((pipe, disk)) => Ok(BlockTrace { folder, entry, pipe, disk }),
            Err(error) => {
                self.unmake(entry)?;
                Err(error)
            }
        }
    }

    fn begin_trace(
        &mut self,
        host: &Host,
        device: &BlockDevice,
        buffer: Bytes,
        folder: &Path,
    ) -> Result<(File, DeviceNumber)> {
        fs::create_dir(folder).map_err(io_error("make the tracing instance", folder))?;
        let disk = match device.kind {
            DeviceKind::Partition { disk, .. } => BlockDevice::read(host, disk)?,
            _ => device.clone(),
        };
        let filter = filter(&disk);
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            fs::write(&path, text).map_err(io_error("write", &path))
        };
        write("trace_clock", "mono")?;
        write("buffer_size_kb", &(buffer.0 / 1024).max(64).to_string())?;
        for event in EVENTS {
            let events = format!("events/block/{event}");
            if !folder.join(&events).exists() {
                return Err(Error::Unsupported {
                    what: "recording block events".to_owned(),
                    why: format!("this kernel has no tracepoint {event}"),
                    next: "it needs CONFIG_BLK_DEV_IO_TRACE, or CONFIG_TRACEPOINTS with events"
                        .to_owned(),
                });
            }
            write(&format!("{events}/filter"), &filter)?;
        }
        let path = folder.join("trace_pipe");
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(io_error("open", &path))?;
        for event in EVENTS {
            write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok((pipe, disk.number))
    }

    fn mount_tracefs(&mut self, host: &Host) -> Result<()> {
        let point = host.path(TRACEFS);
        if point.join("instances").exists() {
            return Ok(());
        }
        if !point.exists() {
            return Err(Error::Unsupported {
                what: "recording block events".to_owned(),
                why: format!("there is no {}: this kernel has no tracing", point.display()),
                next: "record with blktrace on a kernel that has it".to_owned(),
            });
        }
        let source = PathBuf::from("tracefs");
        let entry = self.announce(Made::Mount { point: point.clone(), source })?;
        if let Err(error) = mount("tracefs", &point, "tracefs", MountFlags::empty(), None) {
            self.gone(entry)?;
            return Err(io_error("mount tracefs on", &point)(error.into()));
        }
        debug_assert!(mounts(host).is_ok_and(|all| all.iter().any(|it| it.point == point)));
        Ok(())
    }
}

/// The kernel's own number of a device, 20 bits of which are the minor.
fn kernel_number(number: DeviceNumber) -> Option<u64> {
    match number {
        DeviceNumber::Node { major, minor } => Some(u64::from(major) << 20 | u64::from(minor)),
        DeviceNumber::NvmePath { .. } => None,
    }
}

/// Events of the disk and of its partitions.
fn filter(disk: &BlockDevice) -> String {
    let numbers = std::iter::once(disk.number).chain(disk.partitions.iter().copied());
    let parts: Vec<String> =
        numbers.filter_map(kernel_number).map(|number| format!("dev == {number}")).collect();
    parts.join(" || ")
}

impl BlockTrace {
    /// Waits for events, up to a time, and reads what is there: lines of text, the last one perhaps cut.
    pub fn read(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize> {
        let fail = |source| io_error("read", &self.folder.join("trace_pipe"))(source);
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
        let path = self.folder.join("tracing_on");
        fs::write(&path, "0").map_err(io_error("write", &path))
    }

    /// Events that did not fit the buffers.
    pub fn lost(&self) -> Result<u64> {
        let folder = self.folder.join("per_cpu");
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
