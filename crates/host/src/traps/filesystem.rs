//! Traps of the filesystem that the target lies in.

use super::Found;
use crate::{DirectIoSupport, Inspection, TargetKind};
use units::Bytes;

fn without_device(inspection: &Inspection, kinds: &[&str]) -> Option<String> {
    let no_device = inspection.chain.no_device.as_ref()?;
    kinds.contains(&no_device.filesystem.as_str()).then(|| no_device.reason.clone())
}

pub(super) fn memory(inspection: &Inspection) -> Option<Found> {
    let evidence = without_device(inspection, &["tmpfs", "ramfs", "hugetlbfs"])?;
    Found::new(evidence, "give a folder on a disk, as findmnt -D lists them")
}

pub(super) fn overlay(inspection: &Inspection) -> Option<Found> {
    let evidence = without_device(inspection, &["overlay"])?;
    Found::new(evidence, "run on the host, or give a folder of a volume mounted into the container")
}

pub(super) fn network(inspection: &Inspection) -> Option<Found> {
    let kinds = ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "lustre"];
    let evidence = without_device(inspection, &kinds)?;
    Found::new(
        evidence,
        "sync mode, block size, clients and depth can be compared; or run on the server",
    )
}

pub(super) fn file_server(inspection: &Inspection) -> Option<Found> {
    let mount = &inspection.chain.filesystem()?.mount;
    mount.kind.starts_with("fuse").then_some(())?;
    Found::new(
        format!("{} is mounted as {}", mount.point.display(), mount.kind),
        "give the folder that the program itself stores to, to leave it out",
    )
}

pub(super) fn read_only(inspection: &Inspection) -> Option<Found> {
    let mount = &inspection.chain.filesystem()?.mount;
    mount.is_read_only().then_some(())?;
    Found::new(
        format!("{} is mounted ro", mount.point.display()),
        "give a writable folder; or a file that is there, with reads alone",
    )
}

pub(super) fn buffered(inspection: &Inspection) -> Option<Found> {
    let direct = inspection.chain.direct_io.as_ref()?;
    // What is memory or elsewhere has its own trap.
    if inspection.chain.no_device.is_some() || direct.caveats.is_empty() {
        return None;
    }
    Found::new(
        direct.caveats.join("; "),
        "compare the bytes at the device with those asked for: the record has both",
    )
}

pub(super) fn no_direct(inspection: &Inspection) -> Option<Found> {
    let direct = inspection.chain.direct_io.as_ref()?;
    (direct.support == DirectIoSupport::No).then_some(())?;
    Found::new(
        format!("statx gives no alignment for direct I/O on {}", inspection.chain.target.display()),
        "compare the other sync modes, or give another filesystem",
    )
}

pub(super) fn barriers(inspection: &Inspection) -> Option<Found> {
    let off = inspection.chain.filesystems().find_map(|filesystem| {
        let mount = &filesystem.mount;
        let off = mount.option("nobarrier").is_some() || mount.option("barrier") == Some("0");
        off.then_some(mount)
    })?;
    Found::new(
        format!("{} is mounted without barriers", off.point.display()),
        format!("mount -o remount,barrier=1 {}", off.point.display()),
    )
}

pub(super) fn read_before_write(inspection: &Inspection) -> Option<Found> {
    let filesystem = inspection.chain.filesystem()?;
    if inspection.chain.no_device.is_some() || inspection.chain.kind == TargetKind::BlockDevice {
        return None;
    }
    (filesystem.block_size >= Bytes(4096)).then_some(())?;
    Found::new(
        format!("{} has blocks of {}", filesystem.mount.point.display(), filesystem.block_size),
        "for cells of smaller blocks make a filesystem with -b 1024, or read the device's r/s beside \
         the figures",
    )
}
