//! Whether O_DIRECT without fsync keeps what was written (innodb_flush_method = O_DIRECT_NO_FSYNC).

use super::{PowerLoss, PowerLossVerdict, SyncDevice};
use crate::{Chain, DirectIoSupport, Mount, mounts::is_network};
use serde::{Deserialize, Serialize};

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFsync {
    /// Whether it is safe.
    pub verdict: NoFsyncVerdict,
    /// Why, or why not.
    pub reasons: Vec<NoFsyncReason>,
}

/// Whether pages written with O_DIRECT and no fsync survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoFsyncVerdict {
    /// Pages that are overwritten in place do; what changes a file's length or place still needs fsync.
    InPlaceOnly,
    /// They may be lost.
    NotSafe,
    /// It depends on what cannot be seen here.
    CannotBeTold,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoFsyncReason {
    /// A device's cache is volatile by its own word, and only flushes empty it.
    VolatileCache {
        /// The kernel's name.
        device: String,
        /// Whether it looks protected all the same.
        looks_protected: bool,
    },
    /// No device below has a volatile cache by its own word.
    NoVolatileCache,
    /// A device does not say whether it has a volatile cache.
    CacheUnsaid {
        /// The kernel's name.
        device: String,
    },
    /// A loop device writes into the page cache of the filesystem below it.
    BufferedLoop {
        /// The kernel's name.
        device: String,
    },
    /// New blocks and a new length are in the journal only after fsync, or seconds later.
    Growth,
    /// The filesystem writes each block elsewhere, so that every write changes metadata.
    CopyOnWrite {
        /// Its type.
        filesystem: String,
    },
    /// O_DIRECT is not direct here.
    NotDirect {
        /// The filesystem's type.
        filesystem: String,
    },
    /// Another machine or program keeps the files.
    Elsewhere {
        /// The filesystem's type.
        filesystem: String,
    },
    /// The files are memory.
    Memory,
    /// Nothing is known of this filesystem's metadata.
    UnknownFilesystem {
        /// Its type.
        filesystem: String,
    },
}

impl NoFsync {
    /// From what is below a target.
    pub(super) fn of(chain: &Chain, devices: &[SyncDevice], power_loss: &PowerLoss) -> NoFsync {
        let mut reasons: Vec<NoFsyncReason> = Vec::new();
        let mount = chain.filesystem().map(|filesystem| &filesystem.mount);
        let direct = chain.direct_io.as_ref().map(|it| it.support);
        reasons.extend(mount.map(|mount| of_filesystem(mount, direct)));
        let protected = power_loss.verdict == PowerLossVerdict::LooksProtected;
        for device in devices {
            let name = || device.name.clone();
            if device.buffered_loop {
                reasons.push(NoFsyncReason::BufferedLoop { device: name() });
            }
            match device.write_cache.as_deref() {
                Some("write back") => reasons.push(NoFsyncReason::VolatileCache {
                    device: name(),
                    looks_protected: protected,
                }),
                Some("write through") => {}
                _ => reasons.push(NoFsyncReason::CacheUnsaid { device: name() }),
            }
        }
        let through = |it: &SyncDevice| it.write_cache.as_deref() == Some("write through");
        if !devices.is_empty() && devices.iter().all(through) {
            reasons.push(NoFsyncReason::NoVolatileCache);
        }
        let verdict = verdict(&reasons);
        NoFsync { verdict, reasons }
    }
}

/// The worst of what the reasons allow.
fn verdict(reasons: &[NoFsyncReason]) -> NoFsyncVerdict {
    use NoFsyncReason::*;
    let lost = reasons.iter().any(|reason| match reason {
        VolatileCache { looks_protected, .. } => !looks_protected,
        BufferedLoop { .. } | CopyOnWrite { .. } | NotDirect { .. } | Memory => true,
        NoVolatileCache
        | CacheUnsaid { .. }
        | Growth
        | Elsewhere { .. }
        | UnknownFilesystem { .. } => false,
    });
    let hidden = reasons.iter().any(|reason| {
        // A cache that only looks protected is evidence, and no promise.
        matches!(reason, CacheUnsaid { .. } | Elsewhere { .. } | UnknownFilesystem { .. })
            || matches!(reason, VolatileCache { looks_protected: true, .. })
    });
    match (lost, hidden) {
        (true, _) => NoFsyncVerdict::NotSafe,
        (false, true) => NoFsyncVerdict::CannotBeTold,
        (false, false) => NoFsyncVerdict::InPlaceOnly,
    }
}

/// What a filesystem does with metadata (facts of each one's documentation).
fn of_filesystem(mount: &Mount, direct: Option<DirectIoSupport>) -> NoFsyncReason {
    let filesystem = mount.kind.clone();
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" => NoFsyncReason::Memory,
        "btrfs" | "zfs" | "bcachefs" | "nilfs2" | "f2fs" => {
            NoFsyncReason::CopyOnWrite { filesystem }
        }
        _ if direct == Some(DirectIoSupport::No) => NoFsyncReason::NotDirect { filesystem },
        "ext3" | "ext4" if mount.option("data") == Some("journal") => {
            NoFsyncReason::NotDirect { filesystem }
        }
        "ext2" | "ext3" | "ext4" | "xfs" | "jfs" => NoFsyncReason::Growth,
        kind if is_network(kind) || kind.starts_with("fuse") => {
            NoFsyncReason::Elsewhere { filesystem }
        }
        _ => NoFsyncReason::UnknownFilesystem { filesystem },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, options: &str) -> Mount {
        Mount {
            device: "8:1".parse().unwrap(),
            root: "/".into(),
            point: "/srv".into(),
            options: vec!["rw".to_owned()],
            kind: kind.to_owned(),
            source: "/dev/sda1".to_owned(),
            filesystem_options: options.split(',').map(str::to_owned).collect(),
        }
    }

    #[test]
    fn each_reason_has_its_weight() {
        use NoFsyncReason::*;
        let volatile =
            |looks_protected| VolatileCache { device: "sda".to_owned(), looks_protected };
        let name = || "x".to_owned();
        for (reasons, expected) in [
            (vec![Growth, NoVolatileCache], NoFsyncVerdict::InPlaceOnly),
            (vec![Growth, volatile(false)], NoFsyncVerdict::NotSafe),
            (vec![Growth, volatile(true)], NoFsyncVerdict::CannotBeTold),
            (vec![Growth, CacheUnsaid { device: name() }], NoFsyncVerdict::CannotBeTold),
            (vec![CopyOnWrite { filesystem: name() }, NoVolatileCache], NoFsyncVerdict::NotSafe),
            (vec![Elsewhere { filesystem: name() }], NoFsyncVerdict::CannotBeTold),
            (vec![Memory], NoFsyncVerdict::NotSafe),
        ] {
            assert_eq!(verdict(&reasons), expected, "{reasons:?}");
        }
    }

    #[test]
    fn filesystems_differ_in_what_a_write_changes() {
        let of = |kind: &str, options: &str| of_filesystem(&mount(kind, options), None);
        assert_eq!(of("xfs", ""), NoFsyncReason::Growth);
        assert_eq!(of("ext4", "data=ordered"), NoFsyncReason::Growth);
        assert!(matches!(of("ext4", "data=journal"), NoFsyncReason::NotDirect { .. }));
        assert!(matches!(of("btrfs", ""), NoFsyncReason::CopyOnWrite { .. }));
        assert!(matches!(of("fuse.sshfs", ""), NoFsyncReason::Elsewhere { .. }));
        let refused = of_filesystem(&mount("ext4", ""), Some(DirectIoSupport::No));
        assert!(matches!(refused, NoFsyncReason::NotDirect { .. }));
    }
}
