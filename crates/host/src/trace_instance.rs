//! An instance of our own in the kernel's tracing.

use crate::{
    Changes, Made, Result,
    error::io_error,
    trace_folder::{TraceFolder, trace_folder},
};
use rustix::fs::OFlags;
use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

/// An instance of tracing: events, filters and buffers of our own. It goes with the changes that it is
/// one of.
#[derive(Debug)]
pub(crate) struct TraceInstance {
    folder: TraceFolder,
    name: String,
}

impl Changes {
    /// Makes an instance, and gives the entry that announced it.
    pub(crate) fn trace_instance(&mut self) -> Result<(TraceInstance, u64)> {
        let folder = trace_folder(self.host())?;
        let name = format!("spindle-{}-{}", std::process::id(), self.next_entry());
        let entry = self.announce(Made::TraceInstance { name: name.clone() })?;
        let instance = TraceInstance { folder, name };
        let path = instance.path();
        match fs::create_dir(&path).map_err(io_error("make the tracing instance", &path)) {
            Ok(()) => Ok((instance, entry)),
            Err(error) => {
                self.unmake(entry)?;
                Err(error)
            }
        }
    }
}

impl TraceInstance {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.instance(&self.name)
    }

    /// Its events as text; reading does not wait for more.
    pub(crate) fn pipe(&self) -> Result<File> {
        let path = self.path().join("trace_pipe");
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(io_error("open", &path))
    }

    /// Writes one of its files.
    pub(crate) fn set(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path().join(file);
        fs::write(&path, text).map_err(io_error("write", &path))
    }
}
