//! Traps of the filesystem that the target lies in.

use crate::{
    DirectIoSupport, Inspection, Mount, TargetKind, Trap, chain,
    mounts::{NETWORK, is_network},
};
use units::Bytes;

fn without_device(inspection: &Inspection, kinds: &[&str]) -> Option<String> {
    let no_device = inspection.chain.no_device.as_ref()?;
    kinds.contains(&no_device.filesystem.as_str()).then(|| no_device.reason.clone())
}

pub(super) fn memory(inspection: &Inspection) -> Option<Trap> {
    let reason = without_device(inspection, &["tmpfs", "ramfs", "hugetlbfs"])?;
    Some(Trap::Memory { reason })
}

pub(super) fn overlay(inspection: &Inspection) -> Option<Trap> {
    let reason = without_device(inspection, &["overlay"])?;
    Some(Trap::Overlay { reason })
}

pub(super) fn network(inspection: &Inspection) -> Option<Trap> {
    // The requests of a loop device end there too, whatever scheduler it has itself.
    let behind_loop = || {
        inspection.chain.files_elsewhere().find_map(|(device, filesystem)| {
            let Mount { kind, source, .. } = &filesystem.mount;
            is_network(kind).then(|| {
                let elsewhere = chain::without_device(kind, source);
                format!("the file behind {} is on {kind}: {elsewhere}", device.title())
            })
        })
    };
    let reason = without_device(inspection, &NETWORK).or_else(behind_loop)?;
    Some(Trap::Network { reason })
}

pub(super) fn file_server(inspection: &Inspection) -> Option<Trap> {
    let own = inspection.chain.filesystem().map(|filesystem| &filesystem.mount);
    let behind_loops = inspection.chain.files_elsewhere().map(|(_, it)| &it.mount);
    let mount = own.into_iter().chain(behind_loops).find(|it| it.kind.starts_with("fuse"))?;
    Some(Trap::FileServer { mount: mount.point.clone(), kind: mount.kind.clone() })
}

pub(super) fn read_only(inspection: &Inspection) -> Option<Trap> {
    let mount = &inspection.chain.filesystem()?.mount;
    mount.is_read_only().then_some(())?;
    Some(Trap::ReadOnly { mount: mount.point.clone() })
}

pub(super) fn buffered(inspection: &Inspection) -> Option<Trap> {
    let direct = inspection.chain.direct_io.as_ref()?;
    // What is memory or elsewhere has its own trap.
    if inspection.chain.no_device.is_some() || direct.caveats.is_empty() {
        return None;
    }
    Some(Trap::DirectIsBuffered { caveats: direct.caveats.clone() })
}

pub(super) fn no_direct(inspection: &Inspection) -> Option<Trap> {
    let direct = inspection.chain.direct_io.as_ref()?;
    (direct.support == DirectIoSupport::No).then_some(())?;
    Some(Trap::NoDirect { target: inspection.chain.target.clone() })
}

pub(super) fn barriers(inspection: &Inspection) -> Option<Trap> {
    let off = inspection.chain.filesystems().find_map(|filesystem| {
        let mount = &filesystem.mount;
        let off = mount.option("nobarrier").is_some() || mount.option("barrier") == Some("0");
        off.then_some(mount)
    })?;
    Some(Trap::NoBarrier { mount: off.point.clone() })
}

pub(super) fn read_before_write(inspection: &Inspection) -> Option<Trap> {
    let filesystem = inspection.chain.filesystem()?;
    if inspection.chain.no_device.is_some() || inspection.chain.kind == TargetKind::BlockDevice {
        return None;
    }
    (filesystem.block_size >= Bytes(4096)).then_some(())?;
    Some(Trap::ReadBeforeWrite {
        mount: filesystem.mount.point.clone(),
        block: filesystem.block_size,
    })
}
