//! What a block device holds, by the marks that filesystems, volume managers and partition tables
//! leave at known places. Only read; a device without a known mark may still hold data.
//!
//! Places and marks are those of each format's documentation, as collected in libmagic's and
//! libblkid's manual pages and the formats' own; every one that has a tool here is tested against it.

use serde::{Deserialize, Serialize};
use std::{fmt, fs::File, io, os::unix::fs::FileExt};
use units::Bytes;

/// One mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Of what: `ext4`, `LVM2 physical volume`, `GPT`.
    pub name: String,
    /// What sort of thing.
    pub kind: SignatureKind,
    /// Where the mark is.
    pub offset: Bytes,
}

/// What a mark is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureKind {
    /// A filesystem.
    Filesystem,
    /// Swap space.
    Swap,
    /// A member of an array.
    Raid,
    /// A member of a volume group or pool.
    Volume,
    /// Encrypted data.
    Encryption,
    /// A partition table.
    PartitionTable,
    /// A cache in front of another device.
    Cache,
    /// A database's or a cluster's own.
    Database,
}

impl fmt::Display for SignatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SignatureKind::Filesystem => "filesystem",
            SignatureKind::Swap => "swap space",
            SignatureKind::Raid => "RAID member",
            SignatureKind::Volume => "volume manager's member",
            SignatureKind::Encryption => "encrypted data",
            SignatureKind::PartitionTable => "partition table",
            SignatureKind::Cache => "cache member",
            SignatureKind::Database => "storage of a database or cluster",
        })
    }
}

/// A fixed mark at a fixed place from the beginning.
struct Mark(&'static str, SignatureKind, u64, &'static [u8]);

const KIB: u64 = 1024;

use SignatureKind::{Cache, Database, Encryption, Filesystem, PartitionTable, Raid, Swap, Volume};

const MARKS: [Mark; 60] = [
    Mark("xfs", Filesystem, 0, b"XFSB"),
    Mark("btrfs", Filesystem, 64 * KIB + 64, b"_BHRfS_M"),
    Mark("ntfs", Filesystem, 3, b"NTFS    "),
    Mark("exfat", Filesystem, 3, b"EXFAT   "),
    Mark("fat12", Filesystem, 54, b"FAT12   "),
    Mark("fat16", Filesystem, 54, b"FAT16   "),
    Mark("fat", Filesystem, 54, b"FAT     "),
    Mark("fat32", Filesystem, 82, b"FAT32   "),
    Mark("iso9660", Filesystem, 32 * KIB + 1, b"CD001"),
    Mark("udf", Filesystem, 32 * KIB + 1, b"BEA01"),
    Mark("f2fs", Filesystem, KIB, &[0x10, 0x20, 0xf5, 0xf2]),
    Mark("erofs", Filesystem, KIB, &[0xe2, 0xe1, 0xf5, 0xe0]),
    Mark("hfs+", Filesystem, KIB, b"H+\x00\x04"),
    Mark("hfsx", Filesystem, KIB, b"HX\x00\x05"),
    Mark("nilfs2", Filesystem, KIB + 6, &[0x34, 0x34]),
    Mark("jfs", Filesystem, 32 * KIB, b"JFS1"),
    Mark("reiserfs", Filesystem, 64 * KIB + 52, b"ReIsEr"),
    Mark("reiserfs", Filesystem, 8 * KIB + 52, b"ReIsEr"),
    Mark("squashfs", Filesystem, 0, b"hsqs"),
    Mark("cramfs", Filesystem, 0, &[0x45, 0x3d, 0xcd, 0x28]),
    Mark("apfs", Filesystem, 32, b"NXSB"),
    Mark("gfs2", Filesystem, 64 * KIB, &[0x01, 0x16, 0x19, 0x70]),
    Mark("ocfs2", Filesystem, KIB, b"OCFSV2"),
    Mark("ocfs2", Filesystem, 2 * KIB, b"OCFSV2"),
    Mark("ocfs2", Filesystem, 4 * KIB, b"OCFSV2"),
    Mark("ocfs2", Filesystem, 8 * KIB, b"OCFSV2"),
    Mark("vmfs", Filesystem, 2048 * KIB, &[0x5e, 0xf1, 0xab, 0x2f]),
    // Swap ends its first page with the mark; pages are 4, 8, 16 or 64 KiB.
    Mark("swap", Swap, 4 * KIB - 10, b"SWAPSPACE2"),
    Mark("swap", Swap, 8 * KIB - 10, b"SWAPSPACE2"),
    Mark("swap", Swap, 16 * KIB - 10, b"SWAPSPACE2"),
    Mark("swap", Swap, 64 * KIB - 10, b"SWAPSPACE2"),
    Mark("swap (old)", Swap, 4 * KIB - 10, b"SWAP-SPACE"),
    Mark("suspended system in swap", Swap, 4 * KIB - 10, b"S1SUSPEND"),
    Mark("suspended system in swap", Swap, 4 * KIB - 10, b"LINHIB0001"),
    // LVM2 looks at the first four sectors.
    Mark("LVM2 physical volume", Volume, 0, b"LABELONE"),
    Mark("LVM2 physical volume", Volume, 512, b"LABELONE"),
    Mark("LVM2 physical volume", Volume, 1024, b"LABELONE"),
    Mark("LVM2 physical volume", Volume, 1536, b"LABELONE"),
    Mark("LVM1 physical volume", Volume, 0, b"HM\x01\x00"),
    Mark("LVM1 physical volume", Volume, 0, b"HM\x02\x00"),
    Mark("VDO", Volume, 0, b"dmvdo001"),
    Mark("Stratis pool", Volume, 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    Mark("dm snapshot store", Volume, 0, b"SnAp"),
    Mark("bcachefs", Filesystem, 4 * KIB + 24, BCACHEFS),
    Mark("bcache", Cache, 4 * KIB + 24, BCACHE),
    Mark("LUKS", Encryption, 0, b"LUKS\xba\xbe"),
    // The second header of LUKS2, left when only the first was wiped: it depends on the first's size.
    Mark("LUKS2 (second header)", Encryption, 16 * KIB, b"SKUL\xba\xbe"),
    Mark("LUKS2 (second header)", Encryption, 32 * KIB, b"SKUL\xba\xbe"),
    Mark("LUKS2 (second header)", Encryption, 64 * KIB, b"SKUL\xba\xbe"),
    Mark("LUKS2 (second header)", Encryption, 128 * KIB, b"SKUL\xba\xbe"),
    Mark("BitLocker", Encryption, 3, b"-FVE-FS-"),
    Mark("dm-integrity", Encryption, 0, b"integrt\x00"),
    Mark("dm-verity", Encryption, 0, b"verity\x00\x00"),
    Mark("md RAID 1.1", Raid, 0, MD),
    Mark("md RAID 1.2", Raid, 4 * KIB, MD),
    Mark("GPT", PartitionTable, 512, b"EFI PART"),
    Mark("GPT", PartitionTable, 4 * KIB, b"EFI PART"),
    Mark("Oracle ASM disk", Database, 32, b"ORCLDISK"),
    Mark("Ceph BlueStore", Database, 0, b"bluestore block device"),
    Mark("Apple partition map", PartitionTable, 512, b"PM\x00\x00"),
];

const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
/// 0xa92b4efc in little-endian order, that of superblocks 1.x.
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];

/// Finds every known mark on a device or file of `size`.
pub fn signatures(device: &File, size: Bytes) -> io::Result<Vec<Signature>> {
    let mut found = Vec::new();
    for Mark(name, kind, offset, mark) in MARKS {
        let mut there = vec![0; mark.len()];
        if read(device, offset, &mut there)? && there == mark {
            found.push(Signature { name: name.to_owned(), kind, offset: Bytes(offset) });
        }
    }
    found.extend(ext(device)?);
    found.extend(boot_record(device)?);
    found.extend(at_the_end(device, size)?);
    found.extend(zfs(device, size)?);
    // FAT and NTFS begin with a boot record: what looks like a table there is not one.
    if found.iter().any(|it| it.name.contains("fat") || it.name == "ntfs" || it.name == "BitLocker")
    {
        found.retain(|it| it.name != "MBR");
    }
    Ok(found)
}

/// Whether the first MiB is all zeroes, as on a device that was never used or was discarded.
pub fn begins_empty(device: &File, size: Bytes) -> io::Result<bool> {
    let mut start = vec![0; size.0.min(1024 * KIB) as usize];
    Ok(read(device, 0, &mut start)? && start.iter().all(|byte| *byte == 0))
}

/// Reads a whole buffer; `false` beyond the end.
fn read(device: &File, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
    match device.read_exact_at(buffer, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn u32_le(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]))
}

/// ext2, ext3 and ext4 share a superblock at 1 KiB; their features tell them apart
/// (Documentation/filesystems/ext4: s_magic at 0x38, s_feature_compat at 0x5c, _incompat at 0x60).
fn ext(device: &File) -> io::Result<Option<Signature>> {
    let mut block = [0; 128];
    if !read(device, KIB, &mut block)? || block[0x38..0x3a] != [0x53, 0xef] {
        return Ok(None);
    }
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    // Extents, 64-bit, multi-mount protection, flexible groups: what ext3 does not have.
    const EXT4: u32 = 0x40 | 0x80 | 0x100 | 0x200;
    let (compatible, incompatible) = (u32_le(&block, 0x5c), u32_le(&block, 0x60));
    let name = match () {
        () if incompatible & JOURNAL_DEVICE != 0 => "external journal of ext4",
        () if incompatible & EXT4 != 0 => "ext4",
        () if compatible & HAS_JOURNAL != 0 => "ext3",
        () => "ext2",
    };
    Ok(Some(Signature { name: name.to_owned(), kind: Filesystem, offset: Bytes(KIB + 0x38) }))
}

/// A master boot record: 55 AA at its end and four plausible entries, one of them used.
fn boot_record(device: &File) -> io::Result<Option<Signature>> {
    let mut sector = [0; 512];
    if !read(device, 0, &mut sector)? || sector[510..] != [0x55, 0xaa] {
        return Ok(None);
    }
    let entries: Vec<&[u8]> = sector[446..510].chunks(16).collect();
    let plausible = entries.iter().all(|entry| entry[0] & 0x7f == 0);
    let used = entries.iter().any(|entry| entry[4] != 0 && u32_le(entry, 12) != 0);
    let name = if plausible && used { "MBR" } else { "boot sector" };
    Ok(Some(Signature { name: name.to_owned(), kind: PartitionTable, offset: Bytes(510) }))
}

/// Marks whose place is counted from the end.
fn at_the_end(device: &File, size: Bytes) -> io::Result<Vec<Signature>> {
    let end = size.0;
    let sectors = end / 512;
    // md(4): 0.90 in the last whole 64 KiB block, in the byte order of the machine that made it;
    // 1.0 at least 8 KiB before the end, on a multiple of 4 KiB.
    let md_0 = (end & !(64 * KIB - 1)).checked_sub(64 * KIB);
    let md_1 = sectors.checked_sub(16).map(|sector| (sector & !7) * 512);
    let places: [(&str, SignatureKind, Option<u64>, &[u8]); 10] = [
        ("md RAID 0.90", Raid, md_0, MD),
        ("md RAID 0.90", Raid, md_0, &[0xa9, 0x2b, 0x4e, 0xfc]),
        ("md RAID 1.0", Raid, md_1, MD),
        ("GPT (backup)", PartitionTable, end.checked_sub(512), b"EFI PART"),
        ("GPT (backup)", PartitionTable, end.checked_sub(4 * KIB), b"EFI PART"),
        ("Intel RAID", Raid, end.checked_sub(1024), b"Intel Raid ISM Cfg Sig."),
        ("Intel RAID", Raid, end.checked_sub(1024), b"Intel Raid ISM Cfg. Sig."),
        ("DDF RAID", Raid, end.checked_sub(512), &[0xde, 0x11, 0xde, 0x11]),
        ("DDF RAID", Raid, end.checked_sub(512), &[0x11, 0xde, 0x11, 0xde]),
        // DRBD keeps 4 KiB of metadata last; its magic is big-endian at 0x3c, versions 8.4 and 9.
        ("DRBD", Volume, end.checked_sub(4 * KIB).map(|at| at + 0x3c), &[0x83, 0x74, 0x02, 0x6b]),
    ];
    let mut found = Vec::new();
    for (name, kind, offset, mark) in places {
        let Some(offset) = offset else { continue };
        let mut there = vec![0; mark.len()];
        if read(device, offset, &mut there)? && there == mark {
            found.push(Signature { name: name.to_owned(), kind, offset: Bytes(offset) });
        }
    }
    Ok(found)
}

/// A member of a ZFS pool has four labels of 256 KiB, two at each end; the second half of each is a
/// ring of uberblocks that begin with 0x00bab10c in the byte order of the machine that wrote them.
fn zfs(device: &File, size: Bytes) -> io::Result<Option<Signature>> {
    const LABEL: u64 = 256 * KIB;
    let end = size.0 & !(LABEL - 1);
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let mut ring = vec![0; LABEL as usize / 2];
    for label in labels.into_iter().flatten() {
        let offset = label + LABEL / 2;
        if !read(device, offset, &mut ring)? {
            continue;
        }
        let magic = 0x00ba_b10c_u64;
        let is_magic =
            |block: &[u8]| block[..8] == magic.to_le_bytes() || block[..8] == magic.to_be_bytes();
        if let Some(at) = ring.chunks(KIB as usize).position(is_magic) {
            let offset = Bytes(offset + at as u64 * KIB);
            return Ok(Some(Signature { name: "ZFS pool".to_owned(), kind: Volume, offset }));
        }
    }
    Ok(None)
}
