//! What is between clients and block layer: the page cache and a filesystem.

use crate::cache::PAGE_SECTORS;
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
    /// How the blocks of its files lie; None: each file in one piece, one behind the other.
    pub interleaved: Option<Interleaved>,
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
            interleaved: None,
            without: Without::default(),
        }
    }
}

/// Files that were written at the same time: pieces of them take turns on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaved {
    files: u64,
    /// Of each file, in sectors.
    share: u64,
    piece: u64,
}

impl Interleaved {
    /// `files` of equal size in a span, in pieces of `piece`, at least a page and at most a file; None if there is nothing
    /// to interleave.
    pub fn new(files: u64, span: Sectors, piece: Bytes) -> Option<Self> {
        let page = PAGE_SECTORS;
        let share = span.0 / files.max(1) / page * page;
        let piece = piece.sectors().0 / page * page;
        (files > 1 && piece > 0 && piece <= share).then_some(Interleaved { files, share, piece })
    }

    /// Sectors of each file that lie in whole pieces; what is left of all lies behind them.
    fn whole(&self) -> u64 {
        self.share / self.piece * self.piece
    }

    /// Where a sector lies, of the files one behind the other.
    #[inline]
    pub(crate) fn sector(&self, sector: u64) -> u64 {
        let (file, at) = (sector / self.share, sector % self.share);
        let whole = self.whole();
        if file >= self.files {
            sector
        } else if at < whole {
            (at / self.piece * self.files + file) * self.piece + at % self.piece
        } else {
            self.files * whole + file * (self.share - whole) + at - whole
        }
    }

    /// How many sectors from there lie together.
    pub(crate) fn together(&self, sector: u64) -> u64 {
        let (file, at) = (sector / self.share, sector % self.share);
        match (file >= self.files, at < self.whole()) {
            (true, _) => u64::MAX,
            (false, true) => self.piece - at % self.piece,
            (false, false) => self.share - at,
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

    #[test]
    fn interleaved_files_have_each_sector_once() {
        // Three files of 32 sectors in pieces of 24, and a rest of 4 that belongs to none.
        let files = Interleaved::new(3, Sectors(100), Bytes(24 * 512)).unwrap();
        let mut places: Vec<u64> = (0..100).map(|sector| files.sector(sector)).collect();
        assert_eq!((places[0], places[24], places[32], places[95]), (0, 72, 24, 95));
        for sector in 0..100_u64 {
            let together = files.together(sector).min(100 - sector);
            let last = (sector + together - 1) as usize;
            assert_eq!(places[last], places[sector as usize] + together - 1, "{sector}");
        }
        places.sort_unstable();
        assert!(places.into_iter().eq(0..100));
        assert_eq!(
            Interleaved::new(1, Sectors(100), Bytes(4096)),
            None,
            "nothing to take turns with"
        );
    }

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
