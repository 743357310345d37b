//! Making a filesystem for a trial on a device of ours, mounting it, taking it away again.
//!
//! Made without discarding, so that a laid-out file behind a loop device stays laid out, and without
//! work left for later (ext4's lazy initialisation), which would run into the first trials.

use crate::{
    BlockDevice, Changes, ClearedDevice, DeviceNumber, Error, Host, Identity, LoopDevice, Made,
    Mount, Result, ScratchFolder, error::io_error, exclusive::open_exclusively, mounts::mounts,
    own_group_command, signature::signatures,
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    os::unix::fs::FileExt,
    path::PathBuf,
    process::{Command, Stdio},
    str::FromStr,
};
use units::Bytes;

/// The filesystems that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemKind {
    /// ext4 without journal and extents.
    Ext2,
    /// ext4 with a journal and without extents.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FilesystemKind {
    /// All of them.
    pub const ALL: [FilesystemKind; 5] = [
        FilesystemKind::Ext2,
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
        FilesystemKind::Xfs,
        FilesystemKind::Btrfs,
    ];

    /// The program that makes it, and the Debian package that has it.
    pub fn program(self) -> (&'static str, &'static str) {
        match self {
            FilesystemKind::Ext2 => ("mkfs.ext2", "e2fsprogs"),
            FilesystemKind::Ext3 => ("mkfs.ext3", "e2fsprogs"),
            FilesystemKind::Ext4 => ("mkfs.ext4", "e2fsprogs"),
            FilesystemKind::Xfs => ("mkfs.xfs", "xfsprogs"),
            FilesystemKind::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
        }
    }

    /// The least device that its program takes (mkfs.xfs(8): 300 MB; mkfs.btrfs(8): 109 MiB).
    pub fn size_min(self) -> Bytes {
        match self {
            FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => {
                Bytes::from_mib(8)
            }
            FilesystemKind::Xfs => Bytes::from_mib(300),
            FilesystemKind::Btrfs => Bytes::from_mib(128),
        }
    }

    /// Why it cannot be made here on a device of `size`, before anything is tried.
    pub fn check(self, size: Bytes) -> Result<()> {
        let (program, package) = self.program();
        find_program(program, package)?;
        if size < self.size_min() {
            return Err(Error::Unsupported {
                what: format!("{self} on {size}"),
                why: format!("{program} needs {} or more", self.size_min()),
                next: "give it more room (--size)".to_owned(),
            });
        }
        Ok(())
    }

    /// The options that it is made with, `extra` being the user's.
    fn arguments(self, extra: &str) -> Vec<String> {
        let mut extra: Vec<String> = extra.split_whitespace().map(str::to_owned).collect();
        let mut arguments: Vec<String> = match self {
            FilesystemKind::Xfs => ["-q", "-f", "-K"].map(str::to_owned).into(),
            FilesystemKind::Btrfs => ["-q", "-f", "-K"].map(str::to_owned).into(),
            _ => {
                // Of several -E, mke2fs takes the last alone: the user's are put behind ours.
                let mut extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard".to_owned();
                if let Some(at) = extra.iter().position(|it| it == "-E")
                    && at + 1 < extra.len()
                {
                    extended = format!("{extended},{}", extra.remove(at + 1));
                    extra.remove(at);
                }
                vec!["-q".to_owned(), "-F".to_owned(), "-E".to_owned(), extended]
            }
        };
        arguments.extend(extra);
        arguments
    }

    /// The options that it is mounted with, `extra` being the user's.
    fn mount_options(self, extra: &str) -> String {
        let mut options: Vec<&str> =
            extra.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        // Since 6.2 btrfs discards freed space by default, which makes holes in a backing file.
        let discards = options.iter().any(|it| it.starts_with("discard") || *it == "nodiscard");
        if self == FilesystemKind::Btrfs && !discards {
            options.push("nodiscard");
        }
        options.join(",")
    }
}

impl fmt::Display for FilesystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FilesystemKind::Ext2 => "ext2",
            FilesystemKind::Ext3 => "ext3",
            FilesystemKind::Ext4 => "ext4",
            FilesystemKind::Xfs => "xfs",
            FilesystemKind::Btrfs => "btrfs",
        })
    }
}

/// No filesystem of this name can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' cannot be made here: ext2, ext3, ext4, xfs and btrfs can")]
pub struct UnknownFilesystem(String);

impl FromStr for FilesystemKind {
    type Err = UnknownFilesystem;
    fn from_str(text: &str) -> std::result::Result<Self, UnknownFilesystem> {
        let found = FilesystemKind::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| UnknownFilesystem(text.to_owned()))
    }
}

/// A device that may be overwritten: a loop device of ours, or one that all guards cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchDevice {
    /// Its node.
    pub node: PathBuf,
    /// Which device it was when it was cleared.
    pub identity: Identity,
}

impl ScratchDevice {
    /// A loop device on a file of ours.
    pub fn of_loop(host: &Host, device: &LoopDevice) -> Result<ScratchDevice> {
        let identity = Identity::read(host, device.number)?;
        Ok(ScratchDevice { node: device.node.clone(), identity })
    }

    /// A cleared device, which is let go of so that mkfs and mount can hold it.
    pub fn of_cleared(device: ClearedDevice) -> ScratchDevice {
        let (device, node) = device.release();
        ScratchDevice { node, identity: Identity::of(&device) }
    }

    /// Whether it is still the device that was cleared, and nobody has begun to use it.
    fn check(&self, host: &Host) -> Result<()> {
        let now = BlockDevice::read(host, self.identity.number)?;
        let other =
            |difference: String| Error::OtherDevice { device: self.identity.title(), difference };
        if let Some(difference) = self.identity.difference(&Identity::of(&now)) {
            return Err(other(difference));
        }
        if !now.holders.is_empty() || now.partitions.iter().any(|it| *it != now.number) {
            return Err(other("something stands on it now".to_owned()));
        }
        Ok(())
    }
}

/// A mounted filesystem of ours.
#[derive(Clone, Debug)]
pub struct MountedFilesystem {
    /// Where.
    pub point: PathBuf,
    /// As the kernel mounted it, with all options that are in force.
    pub mount: Mount,
    /// Options of the mount that can lose or reorder completed writes at a power failure.
    pub unsafe_options: Vec<String>,
    folder: ScratchFolder,
    entry: u64,
}

impl Changes {
    /// Makes a filesystem; what was on the device is gone. `options` go to its program.
    pub fn make_filesystem(
        &mut self,
        device: &ScratchDevice,
        kind: FilesystemKind,
        options: &str,
    ) -> Result<()> {
        device.check(self.host())?;
        let size = device.identity.size;
        kind.check(size)?;
        let (name, package) = kind.program();
        let mut command = own_group_command(find_program(name, package)?);
        command.args(kind.arguments(options)).arg(&device.node);
        self.run(command, "see its manual page for its options")
    }

    /// Mounts a device of ours on a scratch folder beside the journal. `options` go after `-o`.
    pub fn mount(
        &mut self,
        device: &ScratchDevice,
        kind: FilesystemKind,
        options: &str,
    ) -> Result<MountedFilesystem> {
        device.check(self.host())?;
        let folder = self.mount_point()?;
        let point = folder.path.clone();
        let entry =
            self.announce(Made::Mount { point: point.clone(), source: device.node.clone() })?;
        let mut command = own_group_command(find_program("mount", "mount")?);
        command.args(["-t", &kind.to_string()]);
        let all = kind.mount_options(options);
        if !all.is_empty() {
            command.args(["-o", &all]);
        }
        command.arg(&device.node).arg(&point);
        let next =
            "check the mount options, and that the kernel has the filesystem (/proc/filesystems)";
        if let Err(error) = self.run(command, next) {
            self.unmake(entry)?;
            self.remove_folder(folder)?;
            return Err(error);
        }
        let mount = mounts(self.host())?.into_iter().rfind(|mount| mount.point == point);
        let Some(mount) = mount else {
            return Err(Error::Missing {
                what: "mount that mount(8) reported as made",
                path: point,
            });
        };
        let unsafe_options = unsafe_options(&all);
        Ok(MountedFilesystem { point, mount, unsafe_options, folder, entry })
    }

    /// Unmounts, which writes everything back, and removes the mount point.
    pub fn unmount(&mut self, mounted: MountedFilesystem) -> Result<()> {
        self.unmake(mounted.entry)?;
        self.remove_folder(mounted.folder)
    }

    /// Overwrites the marks of what we made on a device, so that it is as unclaimed as it was.
    pub fn wipe(&mut self, device: &ScratchDevice) -> Result<()> {
        device.check(self.host())?;
        let node = &device.node;
        let file = open_exclusively(node, true).map_err(io_error("open exclusively", node))?;
        let size = device.identity.size;
        for mark in signatures(&file, size).map_err(io_error("read", node))? {
            let start = mark.offset.0 & !4095;
            let length = (size.0 - start).min(4096) as usize;
            file.write_all_at(&vec![0; length], start).map_err(io_error("write", node))?;
        }
        file.sync_all().map_err(io_error("sync", node))
    }

    /// Runs a program to its end. It begins once the journal has it: where this process is killed, an undo waits
    /// until the program has ended before it looks at what that was making.
    fn run(&mut self, command: Command, next: &str) -> Result<()> {
        let words: Vec<_> =
            std::iter::once(command.get_program()).chain(command.get_args()).collect();
        let program = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let name = PathBuf::from(command.get_program());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The shell reads the end of its input, and runs nothing, where we have died by then.
        let mut gated = own_group_command("sh");
        gated.args(["-c", "read -r begin && exec \"$0\" \"$@\" < /dev/null 2>&1"]).args(words);
        gated.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |problem: String| Error::Program {
            program: program.clone(),
            problem,
            next: next.to_owned(),
        };
        let mut process = self.start_process(gated, &name, None, libc::SIGKILL)?;
        let said = process.say_and_hear("begin\n");
        let status = self.await_process(process)?;
        let said = said.map_err(|error| failed(format!("could not be started: {error}")))?;
        if status.success() {
            return Ok(());
        }
        let last: Vec<&str> =
            said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let said = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
        Err(failed(format!("failed ({status}): {said}")))
    }
}

/// Mount options whose speed is bought with data.
fn unsafe_options(options: &str) -> Vec<String> {
    let risky = |option: &str| {
        matches!(option, "nobarrier" | "barrier=0" | "norecovery" | "noload" | "data=writeback")
            || option == "async_commit"
    };
    options.split(',').filter(|option| risky(option)).map(str::to_owned).collect()
}

/// A program, in PATH or where administrators' programs are when PATH lacks that.
pub(crate) fn find_program(name: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    found.ok_or_else(|| Error::Program {
        program: name.to_owned(),
        problem: "is not installed".to_owned(),
        next: format!("on Debian and Ubuntu: sudo apt install {package}"),
    })
}

/// The number of a scratch device, for settings.
impl From<&ScratchDevice> for DeviceNumber {
    fn from(device: &ScratchDevice) -> DeviceNumber {
        device.identity.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_options_are_joined() {
        let arguments = FilesystemKind::Ext4.arguments("-b 1024 -E stride=4 -m 0").join(" ");
        assert_eq!(
            arguments,
            "-q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard,stride=4 -b 1024 -m 0"
        );
        assert_eq!(
            FilesystemKind::Xfs.arguments("-b size=1024").join(" "),
            "-q -f -K -b size=1024"
        );
    }

    #[test]
    fn nothing_is_discarded_unless_asked() {
        assert_eq!(FilesystemKind::Btrfs.mount_options("noatime"), "noatime,nodiscard");
        assert_eq!(FilesystemKind::Btrfs.mount_options("discard=async"), "discard=async");
        assert_eq!(FilesystemKind::Ext4.mount_options(""), "");
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let text = find_program("mkfs.nosuch", "nosuch-progs").unwrap_err().to_string();
        assert!(text.contains("apt install nosuch-progs"), "{text}");
    }
}
