//! Where the kernel's own files are found, and how they are read.
//!
//! Everything here that describes takes a [`Host`], so that a test can show it a made-up machine
//! with arrays and drives that the machine at hand does not have.

use crate::{
    DeviceNumber,
    error::{Error, Result, io_error},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The host as seen through `/sys`, `/proc`, `/etc` and `/run` below a root.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        Host { root: PathBuf::from("/") }
    }

    /// A machine whose files were copied, or made up, below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Host { root: root.into() }
    }

    /// Whether this is the machine that we run on, whose paths may be opened as they are written.
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The path of `/sys/...` and the like below this host's root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A path as this host itself would write it.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(inside) => Path::new("/").join(inside),
            Err(_) => path.to_owned(),
        }
    }

    /// The folder in sysfs of a block device, with all links followed:
    /// `/sys/devices/pci0000:00/…/block/vda`.
    pub fn device_folder(&self, number: DeviceNumber) -> Result<PathBuf> {
        let link = self.path(match number {
            DeviceNumber::Node { .. } => format!("/sys/dev/block/{number}"),
            DeviceNumber::NvmePath { .. } => format!("/sys/block/{number}"),
        });
        fs::canonicalize(&link).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing { what: "block device", path: link },
            _ => Error::Io { doing: "follow", path: link, source },
        })
    }

    /// The folder of the whole disk that a device is, or is a partition of.
    pub fn disk_folder(&self, number: DeviceNumber) -> Result<PathBuf> {
        let folder = self.device_folder(number)?;
        if folder.join("partition").exists()
            && let Some(disk) = folder.parent()
        {
            return Ok(disk.to_owned());
        }
        Ok(folder)
    }

    /// A file's text without surrounding white space; `None` when it is not there, not readable
    /// for us, or not text. Kernel files come and go with versions: absence is an answer.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        text(self.path(path))
    }

    /// A file's text, or why not.
    pub fn require(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.path(path);
        fs::read_to_string(&path).map_err(io_error("read", path))
    }

    /// The names in a folder, sorted; none when it is not there.
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        names(self.path(folder))
    }
}

/// As [`Host::text`], for a path that is already below the root.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A file's text when it says something.
pub(crate) fn words(path: impl AsRef<Path>) -> Option<String> {
    text(path).filter(|text| !text.is_empty())
}

/// A file that holds one number.
pub(crate) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// As [`Host::names`], for a path that is already below the root.
pub(crate) fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The block devices linked in a folder of sysfs (`slaves`, `holders`).
pub(crate) fn linked_devices(folder: impl AsRef<Path>) -> Vec<DeviceNumber> {
    let folder = folder.as_ref();
    names(folder).iter().filter_map(|name| number_of(&folder.join(name))).collect()
}

/// The number of a block-device node, links followed; `None` when it is something else.
pub fn block_node(path: impl AsRef<Path>) -> io::Result<Option<DeviceNumber>> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let meta = fs::metadata(path)?;
    Ok(meta.file_type().is_block_device().then(|| DeviceNumber::from_raw(meta.rdev())))
}

/// The number of the device whose folder in sysfs this is. A hidden one has no file `dev`, or one
/// that says 0:0.
pub(crate) fn number_of(folder: &Path) -> Option<DeviceNumber> {
    let name = folder.file_name()?.to_str()?;
    DeviceNumber::of_nvme_path(name).or_else(|| number(folder.join("dev")))
}
