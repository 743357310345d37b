//! A kernel module's parameter that is another for a moment.

use crate::{Changes, Host, Made, Result, error::io_error, parameter_value::read};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File},
    path::Path,
};

/// Whether FUSE lets a new connection's requests go over io_uring (Linux 6.14).
const FUSE_URING: &str = "/sys/module/fuse/parameters/enable_uring";

/// io_uring is for nobody (2), for some (1), for all (0).
const URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// Why this host has no FUSE over io_uring, in words with the next step; `None` where it has.
pub fn fuse_uring_missing(host: &Host) -> Option<String> {
    if !host.path(FUSE_URING).exists() {
        let why = "this kernel's FUSE has no io_uring (Linux 6.14 has it, built with \
                   CONFIG_FUSE_IO_URING), or its module is not loaded (modprobe fuse)";
        return Some(why.to_owned());
    }
    let disabled = host.text(URING_DISABLED).is_some_and(|text| text.trim() == "2");
    disabled.then(|| "io_uring is switched off (sysctl kernel.io_uring_disabled)".to_owned())
}

impl Changes {
    /// Does something while FUSE lets new connections use io_uring, as the kernel does not by itself;
    /// a connection that has begun so goes on so. Processes that do this wait for one another.
    pub fn with_fuse_uring<T>(&mut self, then: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        let path = self.host().path(FUSE_URING);
        self.with_parameter(&path, "Y", then)
    }

    fn with_parameter<T>(
        &mut self,
        path: &Path,
        value: &str,
        then: impl FnOnce(&mut Changes) -> T,
    ) -> Result<T> {
        let file = File::open(path).map_err(io_error("open", path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| io_error("lock", path)(error.into()))?;
        let before = read(path).map_err(io_error("read", path))?;
        if before == value {
            return Ok(then(self));
        }
        let set = value.to_owned();
        let entry = self.announce(Made::Parameter { path: path.to_owned(), before, set })?;
        if let Err(error) = fs::write(path, value) {
            self.gone(entry)?;
            return Err(io_error("write", path)(error));
        }
        let done = then(self);
        self.unmake(entry)?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state folder, and a file that stands for a parameter.
    fn place(value: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("enable_uring");
        fs::write(&path, value).unwrap();
        (folder, path)
    }

    #[test]
    fn a_parameter_is_another_for_as_long_as_something_is_done() {
        for (before, within) in [("N\n", "Y"), ("Y\n", "Y\n")] {
            let (folder, path) = place(before);
            let state = folder.path().join("state");
            let mut changes = Changes::begin_in(&Host::here(), &state, "a test").unwrap();
            let seen = changes.with_parameter(&path, "Y", |_| fs::read_to_string(&path).unwrap());
            assert_eq!(seen.unwrap(), within);
            assert_eq!(read(&path).unwrap(), before.trim());
            assert!(changes.finish().unwrap().is_complete());
        }
    }

    #[test]
    fn a_run_that_is_cut_off_has_it_put_back_and_values_of_others_stay() {
        for (meanwhile, after) in [("Y", "N"), ("N", "N"), ("1", "1")] {
            let (folder, path) = place("N");
            let state = folder.path().join("state");
            let mut changes = Changes::begin_in(&Host::here(), &state, "a test").unwrap();
            let (before, set) = ("N".to_owned(), "Y".to_owned());
            changes.announce(Made::Parameter { path: path.clone(), before, set }).unwrap();
            fs::write(&path, meanwhile).unwrap();
            let report = changes.finish().unwrap();
            assert_eq!(read(&path).unwrap(), after);
            assert_eq!(report.is_complete(), meanwhile != "1");
        }
    }
}
