//! What is mounted where: `/proc/self/mountinfo`, in the format of proc_pid_mountinfo(5).

use crate::{
    DeviceNumber, Host, Result,
    tree::{block_node, number_of},
};
use rustix::fs::{AtFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::{
    os::fd::AsFd,
    path::{Path, PathBuf},
};

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// `st_dev` of its files. Not the block device for btrfs and others with devices of their own.
    pub device: DeviceNumber,
    /// The folder of the filesystem that is shown here: `/` unless bind-mounted or a subvolume.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of this mount: rw, noatime.
    pub options: Vec<String>,
    /// The type: ext4, tmpfs, fuse.sshfs.
    pub kind: String,
    /// What was mounted: a device's path, or a name without meaning.
    pub source: String,
    /// Options of the filesystem: data=journal, nobarrier, upperdir=….
    pub filesystem_options: Vec<String>,
}

impl Mount {
    /// Whether nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        let read_only = |options: &[String]| options.iter().any(|option| option == "ro");
        read_only(&self.options) || read_only(&self.filesystem_options)
    }

    /// The value of a filesystem option such as `data` in `data=journal`; empty for a bare word.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.filesystem_options.iter().chain(&self.options).find_map(|option| {
            match option.split_once('=') {
                Some((key, value)) => (key == name).then_some(value),
                None => (option == name).then_some(""),
            }
        })
    }

    /// Whether it is the device at `node`, or a partition of it, that is mounted.
    pub fn stands_on(&self, node: &Path) -> bool {
        let Some(rest) = node.to_str().and_then(|node| self.source.strip_prefix(node)) else {
            return false;
        };
        let number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        rest.is_empty() || rest.strip_prefix('p').is_some_and(number)
    }

    /// Whether a process or another host serves its files: what asks for one of them waits until that
    /// server answers.
    pub fn is_served(&self) -> bool {
        is_network(&self.kind) || self.kind.starts_with("fuse")
    }

    /// The block devices that were mounted. bcachefs names all of its own, separated by colons.
    pub fn sources(&self, host: &Host) -> Vec<DeviceNumber> {
        let device = |source: &str| {
            // Some servers have a device (fuse2fs, ntfs-3g, lustre). Others have a name or a folder, which may
            // itself be on a filesystem that hangs.
            if self.is_served() && !source.starts_with("/dev/") {
                return None;
            }
            // A container's /dev may lack the node, while sysfs knows the name.
            let by_name = || {
                let name = source.strip_prefix("/dev/")?;
                number_of(&host.path("/sys/class/block").join(name))
            };
            block_node(host.path(source)).ok().flatten().or_else(by_name)
        };
        match device(&self.source) {
            Some(number) => vec![number],
            None => self.source.split(':').filter_map(device).collect(),
        }
    }

    fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let list = |text: &str| text.split(',').map(unescape).collect();
        Some(Mount {
            device: left.get(2)?.parse().ok()?,
            root: unescape(left.get(3)?).into(),
            point: unescape(left.get(4)?).into(),
            options: list(left.get(5)?),
            kind: right.next()?.to_owned(),
            source: unescape(right.next()?),
            filesystem_options: list(right.next()?),
        })
    }
}

/// Filesystems whose files are on another machine.
pub(crate) const NETWORK: [&str; 9] =
    ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "lustre"];

/// Whether a filesystem of this kind has its files on another machine.
pub(crate) fn is_network(kind: &str) -> bool {
    NETWORK.contains(&kind)
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let raw = text.as_bytes();
    let mut at = 0;
    while at < raw.len() {
        let octal = raw.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if raw[at] == b'\\' => {
                bytes.push(byte);
                at += 4;
            }
            _ => {
                bytes.push(raw[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Everything mounted in our mount namespace, in the order of mounting.
pub fn mounts(host: &Host) -> Result<Vec<Mount>> {
    Ok(host.require("/proc/self/mountinfo")?.lines().filter_map(Mount::parse).collect())
}

/// The kernel's number of the mount through which something is seen; `None` before Linux 5.8.
pub(crate) fn mount_id(folder: impl AsFd, name: &Path, how: AtFlags) -> Option<u64> {
    let flags = StatxFlags::MNT_ID;
    let found = statx(folder, name, how, flags).ok()?;
    (found.stx_mask & flags.bits() != 0).then_some(found.stx_mnt_id)
}

/// Everything mounted in a process's mount namespace, with the kernel's numbers of the mounts.
pub(crate) fn numbered_mounts(host: &Host, pid: u32) -> Vec<(u64, Mount)> {
    let text = host.text(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let numbered = |line: &str| Some((line.split(' ').next()?.parse().ok()?, Mount::parse(line)?));
    text.lines().filter_map(numbered).collect()
}

/// The mount that shows `path` (absolute, links followed) whose files have `device`.
///
/// The deepest mount point above the path; of several on one point the last, which hides the
/// others. The device breaks ties where a mount has since been covered.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path, device: DeviceNumber) -> Option<&'a Mount> {
    let same = mounts.iter().filter(|mount| mount.device == device);
    deepest_above(same, path).or_else(|| mount_above(mounts, path))
}

/// The same without asking the filesystem for the file's device.
pub(crate) fn mount_above<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    deepest_above(mounts.iter(), path)
}

fn deepest_above<'a>(mounts: impl Iterator<Item = &'a Mount>, path: &Path) -> Option<&'a Mount> {
    let above = mounts.filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 0:50 /@home /home rw,noatime shared:5 master:2 - btrfs /dev/sdb1 rw,space_cache=v2,subvol=/@home
41 27 8:1 / /srv/my\\040data ro - ext4 /dev/sda1 rw,data=journal
42 41 8:17 / /srv/my\\040data rw - xfs /dev/sdb1 rw";

    fn table() -> Vec<Mount> {
        TEXT.lines().filter_map(Mount::parse).collect()
    }

    #[test]
    fn optional_fields_and_escapes() {
        let table = table();
        assert_eq!(table.len(), 4);
        assert_eq!(table[1].kind, "btrfs");
        assert_eq!(table[1].option("subvol"), Some("/@home"));
        assert_eq!(table[2].point, Path::new("/srv/my data"));
        assert!(table[2].is_read_only());
        assert_eq!(table[2].option("data"), Some("journal"));
    }

    #[test]
    fn the_deepest_and_last_mount_wins() {
        let table = table();
        let of = |path: &str, device: &str| {
            mount_of(&table, Path::new(path), device.parse().unwrap()).unwrap().source.clone()
        };
        assert_eq!(of("/srv/my data/x", "8:17"), "/dev/sdb1");
        assert_eq!(of("/srv/my data/x", "8:1"), "/dev/sda1");
        assert_eq!(of("/srv/other", "254:0"), "/dev/vda");
        // A subvolume's own number is in no line of mountinfo: the path decides.
        assert_eq!(of("/home/sub", "0:99"), "/dev/sdb1");
    }

    #[test]
    fn a_server_with_a_device_keeps_it_from_being_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::at(folder.path());
        let block = folder.path().join("sys/class/block/sdb");
        std::fs::create_dir_all(&block).unwrap();
        std::fs::write(block.join("dev"), "8:16\n").unwrap();
        let sources = |kind: &str, source: &str| {
            let line = format!("36 35 0:50 / /mnt rw - {kind} {source} rw");
            Mount::parse(&line).unwrap().sources(&host)
        };
        let sdb: DeviceNumber = "8:16".parse().unwrap();
        for kind in ["ext4", "fuseblk", "fuse.fuse2fs", "fuse", "lustre"] {
            assert_eq!(sources(kind, "/dev/sdb"), [sdb], "{kind}");
        }
        assert!(sources("fuse.sshfs", "user@filer:").is_empty());
        assert!(sources("fuse.gocryptfs", "/srv/encrypted").is_empty());
    }

    #[test]
    fn a_device_and_its_partitions_are_distinguished_from_others() {
        let node = Path::new("/dev/ublkb1");
        for (source, stands) in [
            ("/dev/ublkb1", true),
            ("/dev/ublkb1p2", true),
            ("/dev/ublkb11", false),
            ("/dev/ublkb1p", false),
            ("/dev/ublkb1px", false),
            ("tmpfs", false),
        ] {
            let line = format!("36 35 259:0 / /mnt rw - ext4 {source} rw");
            let mount = Mount::parse(&line).unwrap();
            assert_eq!(mount.stands_on(node), stands, "{source}");
        }
    }
}
