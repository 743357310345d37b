//! Where the kernel's tracing is, and how an instance in it is taken away.

use crate::{Error, Host, Outcome, Result, mounts::mounts};
use rustix::{
    fd::OwnedFd,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};
use std::{
    fs, io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// Where the files of tracing are.
#[derive(Debug)]
pub(crate) struct TraceFolder {
    path: PathBuf,
    /// Of a mount of our own that nobody else sees and that goes with this process.
    _mount: Option<OwnedFd>,
}

impl TraceFolder {
    pub(crate) fn instance(&self, name: &str) -> PathBuf {
        self.path.join("instances").join(name)
    }
}

/// Where tracefs is mounted; else a mount of our own, which appears nowhere.
pub(crate) fn trace_folder(host: &Host) -> Result<TraceFolder> {
    let mounted = mounts(host)?.into_iter().rfind(|mount| mount.kind == "tracefs");
    if let Some(mount) = mounted {
        return Ok(TraceFolder { path: host.path(mount.point), _mount: None });
    }
    let mount = || -> rustix::io::Result<OwnedFd> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    let mount = mount().map_err(|error| Error::Unsupported {
        what: "the kernel's tracing".to_owned(),
        why: format!("tracefs cannot be mounted: {error}"),
        next: "run it as root, on a kernel that has tracing and is not locked down".to_owned(),
    })?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    Ok(TraceFolder { path, _mount: Some(mount) })
}

/// Takes an instance away; what it has switched on goes with it.
pub(crate) fn remove_instance(host: &Host, name: &str) -> Outcome {
    let folder = match trace_folder(host) {
        Ok(folder) => folder,
        Err(error) => return Outcome::failed(error.to_string()),
    };
    let path = folder.instance(name);
    // Events that go on would only fill its buffers; where it is gone there is nothing to stop.
    let _gone_is_fine = fs::write(path.join("tracing_on"), "0");
    let begun = Instant::now();
    loop {
        match fs::remove_dir(&path) {
            Ok(()) => return Outcome::Done,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::AlreadyRight,
            // Somebody reads it.
            Err(error) if begun.elapsed() > Duration::from_secs(3) => {
                return Outcome::failed(format!(
                    "cannot remove {}: {error}",
                    Path::new("instances").join(name).display()
                ));
            }
            Err(_) => sleep(Duration::from_millis(20)),
        }
    }
}
