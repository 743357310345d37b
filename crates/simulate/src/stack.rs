//! What is between clients and block layer: the page cache and a filesystem.

use blocklayer::Kernel;
use plan::{Filesystem, FilesystemKind, Mechanism, Refusal, Without};
use units::{Bytes, Nanos, Sectors};

/// The default page cache. Documented: the published filesystem measurements of 2012.
pub const DEFAULT_PAGE_CACHE: Bytes = Bytes::from_gib(8);

/// The default `read_ahead_kb`: Linux's. Documented: sysfs-block.
pub const DEFAULT_READ_AHEAD: Bytes = Bytes::from_kib(128);

/// What is between clients and block layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Memory that the page cache may use; percentages of dirty pages are of this.
    pub page_cache: Bytes,
    /// `read_ahead_kb`.
    pub read_ahead: Bytes,
    /// `wbt_lat_usec`, of kernels that have it; zero is off.
    pub wbt: Nanos,
    /// The filesystem; None: the raw device.
    pub filesystem: Option<Filesystem>,
    /// What is switched off.
    pub without: Without,
}

impl Default for Stack {
    /// A raw device with the default page cache.
    fn default() -> Self {
        Stack {
            page_cache: DEFAULT_PAGE_CACHE,
            read_ahead: DEFAULT_READ_AHEAD,
            wbt: Nanos::ZERO,
            filesystem: None,
            without: Without::default(),
        }
    }
}

/// The size of the modelled filesystems' journals or logs: the default of e2fsprogs and xfsprogs for large
/// filesystems.
pub const JOURNAL: Sectors = Sectors(128 * 2048);

/// What a filesystem does to I/O.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    /// A writer excludes other buffered writers of the file.
    pub locks: bool,
    /// Direct writers exclude one another, too.
    pub direct_is_exclusive: bool,
    /// O_DIRECT goes through the page cache all the same.
    pub direct_is_buffered: bool,
    /// Write-back hands over page by page, not runs of pages.
    pub page_by_page: bool,
    pub journal: Option<JournalRules>,
    /// fsync ends with a flush of the device.
    pub barrier: bool,
}

/// How it is made durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JournalRules {
    /// ext3's data=ordered: every page written belongs to the running transaction and goes to the
    /// device, in the order in which they were written to, before it commits.
    pub orders_data: bool,
    /// A commit at least this often; None: only when asked.
    pub interval: Option<Nanos>,
    /// Sectors of a commit's blocks before its record: a descriptor and the inode's block.
    pub blocks: u64,
    /// A record of its own after them; XFS has it in the same write.
    pub record: bool,
}

impl Rules {
    /// Of a raw device.
    pub fn raw(kernel: Kernel) -> Self {
        Rules {
            locks: false,
            direct_is_exclusive: false,
            direct_is_buffered: false,
            page_by_page: kernel < Kernel::V3_10,
            journal: None,
            barrier: true,
        }
    }

    /// Of a stack on a kernel.
    pub fn of(stack: &Stack, kernel: Kernel) -> Self {
        let Some(filesystem) = &stack.filesystem else { return Rules::raw(kernel) };
        let kind = filesystem.kind;
        let mount: Vec<&str> = filesystem.mount.split(',').map(str::trim).collect();
        // Documentation/filesystems/ext3.txt: off by default until 3.1. ext4's and XFS's are on.
        let default = kind != FilesystemKind::Ext3 || kernel >= Kernel::V3_10;
        let barrier = match () {
            () if mount.contains(&"barrier=0") || mount.contains(&"nobarrier") => false,
            () if mount.contains(&"barrier=1") || mount.contains(&"barrier") => true,
            () => default,
        };
        let interval = mount.iter().find_map(|option| option.strip_prefix("commit="));
        let interval = interval.and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
        let ext = kind != FilesystemKind::Xfs;
        let journal = JournalRules {
            orders_data: kind == FilesystemKind::Ext3
                && !mount.iter().any(|option| option.starts_with("data=")),
            interval: ext.then_some(Nanos::from_secs(interval)),
            blocks: if ext { 16 } else { 8 },
            record: ext,
        };
        let off = |mechanism| stack.without.has(mechanism);
        Rules {
            locks: !off(Mechanism::InodeLock),
            direct_is_exclusive: ext && !off(Mechanism::InodeLock),
            direct_is_buffered: kind == FilesystemKind::Xfs
                && kernel.is_2_6_18()
                && small_blocks(&filesystem.mkfs),
            // data=ordered of ext3 has no way to write several pages at once.
            page_by_page: kernel < Kernel::V3_10 && kind == FilesystemKind::Ext3,
            journal: (!off(Mechanism::Journal)).then_some(journal),
            barrier,
        }
    }
}

/// mkfs.xfs -b size=1024 and the like: blocks of less than a page.
fn small_blocks(mkfs: &str) -> bool {
    let mut words = mkfs.split_whitespace();
    let mut sizes = Vec::new();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("-b") {
            Some("") => words.next().unwrap_or(""),
            Some(value) => value,
            None => continue,
        };
        sizes.push(value.strip_prefix("size=").unwrap_or(value).to_owned());
    }
    sizes.iter().any(|size| ["512", "1024", "2048", "1k", "2k"].contains(&size.as_str()))
}

/// Why a filesystem cannot be simulated.
pub fn refuse_filesystem(filesystem: &Filesystem) -> Option<Refusal> {
    let kind = filesystem.kind;
    match kind {
        FilesystemKind::Ext3 | FilesystemKind::Ext4 | FilesystemKind::Xfs => None,
        FilesystemKind::Ext2 | FilesystemKind::Btrfs => Some(Refusal::FilesystemNotModelled {
            filesystem: kind.to_string(),
            modelled: "ext3, ext4 and xfs".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(filesystem: &str, kernel: Kernel) -> Rules {
        let stack = Stack { filesystem: Some(filesystem.parse().unwrap()), ..Stack::default() };
        Rules::of(&stack, kernel)
    }

    #[test]
    fn filesystems_differ_in_locks_journals_and_barriers() {
        let ext3 = rules("ext3", Kernel::V2_6_18);
        assert!(ext3.direct_is_exclusive && !ext3.barrier);
        assert!(ext3.journal.unwrap().orders_data);
        assert!(rules("ext3", Kernel::V4_19).barrier);
        assert!(!rules("ext4;mount=noatime,barrier=0", Kernel::V6_12).barrier);
        let xfs = rules("xfs", Kernel::V2_6_18);
        assert!(!xfs.direct_is_exclusive && !xfs.direct_is_buffered && xfs.barrier);
        assert!(rules("xfs;mkfs=-b size=1024", Kernel::V2_6_18).direct_is_buffered);
        assert!(!rules("xfs;mkfs=-b size=1024", Kernel::V6_12).direct_is_buffered);
    }

    #[test]
    fn what_is_switched_off_is_off() {
        let stack = Stack {
            filesystem: Some("ext3".parse().unwrap()),
            without: "inode-lock+journal".parse().unwrap(),
            ..Stack::default()
        };
        let rules = Rules::of(&stack, Kernel::V2_6_18);
        assert!(!rules.locks && !rules.direct_is_exclusive && rules.journal.is_none());
    }
}
