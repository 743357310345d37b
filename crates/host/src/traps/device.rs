//! Traps of the devices below the target.

use super::Found;
use crate::{BlockDevice, Bus, DeviceKind, Inspection, LayerKind, Medium, Queue};
use units::Bytes;

/// The device whose settings would be varied, with its queue.
fn scheduled(inspection: &Inspection) -> Option<(&BlockDevice, &Queue)> {
    let device = inspection.chain.scheduled_device()?;
    Some((device, device.queue.as_ref()?))
}

pub(super) fn cache_answers(inspection: &Inspection) -> Option<Found> {
    let probe = inspection.probe.as_ref()?;
    (probe.medium == Medium::Cache).then_some(())?;
    Found::new(
        probe.evidence.clone(),
        "use more data than the cache holds, written full; on a virtual machine the host's cache may \
         answer (cache=none there)",
    )
}

pub(super) fn sparse(inspection: &Inspection) -> Option<Found> {
    // A few blocks less are a hole at the end or compression of metadata; a tenth is not.
    let sparse = inspection
        .files
        .iter()
        .find(|file| file.size > Bytes::ZERO && file.allocated.0 < file.size.0 / 10 * 9)?;
    Found::new(
        format!(
            "{} is {} long and has {} allocated",
            sparse.path.display(),
            sparse.size,
            sparse.allocated
        ),
        "write the file full first; fallocate alone does not do it",
    )
}

pub(super) fn buffered_loop(inspection: &Inspection) -> Option<Found> {
    let device = inspection.chain.devices().find(|device| {
        device.loop_state().is_some_and(|it| it.backing_file.is_some() && !it.direct_io)
    })?;
    Found::new(
        format!("{} is attached without direct I/O", device.title()),
        format!("losetup --direct-io=on /dev/{}", device.name),
    )
}

pub(super) fn loop_discard(inspection: &Inspection) -> Option<Found> {
    let mut above: Option<&crate::Filesystem> = None;
    for layer in &inspection.chain.layers {
        match &layer.what {
            LayerKind::Filesystem(filesystem) => above = Some(filesystem),
            LayerKind::Device(device) => {
                let mount = above.map(|filesystem| &filesystem.mount);
                if device.loop_state().is_some()
                    && let Some(mount) = mount
                    && mount.option("discard").is_some()
                {
                    return Found::new(
                        format!(
                            "{} on {} is mounted with discard",
                            mount.point.display(),
                            device.title()
                        ),
                        format!("mount -o remount,nodiscard {}", mount.point.display()),
                    );
                }
            }
        }
    }
    None
}

pub(super) fn loop_settings(inspection: &Inspection) -> Option<Found> {
    let (device, _) = scheduled(inspection)?;
    device.loop_state()?;
    Found::new(
        format!("settings would be varied on {}", device.title()),
        "spindle puts them back before it detaches; by hand, set them back before losetup -d",
    )
}

pub(super) fn rotational(inspection: &Inspection) -> Option<Found> {
    let (device, queue) = inspection.chain.devices().find_map(|device| {
        let queue = device.queue.as_ref()?;
        (queue.rotational == Some(true)).then_some((device, queue))
    })?;
    let claims = format!(
        "{} says rotational=1{}",
        device.title(),
        queue.wbt_lat_usec.map_or(String::new(), |wbt| format!(" (and wbt_lat_usec={wbt})"))
    );
    let evidence = match &inspection.probe {
        Some(probe) if probe.medium == Medium::Disk => return None,
        Some(probe) => format!("{claims}; {}", probe.evidence),
        // Without a probe only where such claims are known to mean nothing.
        None if matches!(device.bus, Bus::Virtio | Bus::Xen | Bus::Virtual) => {
            format!("{claims}, as {} devices do on any medium; it was not probed", device.bus)
        }
        None => return None,
    };
    Found::new(
        evidence,
        "do not choose a scheduler by that flag: measure; bfq and write-back throttling behave as for \
         a disk until it is set right (queue/rotational)",
    )
}

pub(super) fn throttling(inspection: &Inspection) -> Option<Found> {
    let (device, queue) = scheduled(inspection)?;
    let choice = queue.scheduler.as_ref()?;
    choice.available.iter().any(|it| it == "bfq").then_some(())?;
    let evidence = match (queue.wbt_lat_usec?, choice.current.as_str()) {
        (0, "bfq") => format!("{} is under bfq, with throttling off", device.title()),
        (0, _) => return None,
        (wbt, _) => format!("{} has wbt_lat_usec={wbt}, which bfq sets to 0", device.title()),
    };
    Found::new(
        evidence,
        "pin it for all cells (--wbt 0, or one value), or make it a factor of its own (--wbt 0,2000)",
    )
}

pub(super) fn small_block(inspection: &Inspection) -> Option<Found> {
    let device = inspection.chain.devices().find(|device| {
        let block = device.queue.as_ref().and_then(|queue| queue.logical_block);
        block.is_some_and(|block| block > Bytes(512))
    })?;
    let block = device.queue.as_ref()?.logical_block?;
    Found::new(
        format!("{} has sectors of {block}", device.title()),
        format!("use blocks of {block} or multiples for direct cells; smaller ones are refused"),
    )
}

pub(super) fn ceiling(inspection: &Inspection) -> Option<Found> {
    let (device, queue) = scheduled(inspection)?;
    let tags = queue.hardware_tags?;
    let none = queue.scheduler.as_ref()?.available.iter().any(|it| it == "none");
    (none && tags < crate::NR_REQUESTS_MAX_WITH_SCHEDULER).then_some(())?;
    Found::new(
        format!("{} has {tags} tags", device.title()),
        format!(
            "cells under none take {tags} requests at most, those with a scheduler {}; compare at \
             sizes that all can have, or read the queue as part of the scheduler's effect",
            crate::NR_REQUESTS_MAX_WITH_SCHEDULER
        ),
    )
}

pub(super) fn stacked(inspection: &Inspection) -> Option<Found> {
    let names: Vec<String> = inspection
        .chain
        .devices()
        .filter(|device| inspection.chain.scheduled.contains(&device.number))
        .map(BlockDevice::title)
        .collect();
    let (device, _) = scheduled(inspection)?;
    let passes_on = inspection
        .chain
        .devices()
        .any(|device| matches!(device.kind, DeviceKind::Mapper { .. } | DeviceKind::Md { .. }));
    (names.len() > 1 || passes_on).then_some(())?;
    Found::new(
        format!("schedulers are on {}", names.join(", ")),
        format!(
            "settings are varied on {}; those below stay as they are and are recorded; to vary \
             another, give it as the target",
            device.title()
        ),
    )
}

pub(super) fn zoned(inspection: &Inspection) -> Option<Found> {
    let (device, queue) = scheduled(inspection)?;
    let zoned = queue.zoned.as_deref().filter(|zoned| *zoned != "none")?;
    Found::new(
        format!("{} is {zoned}", device.title()),
        "compare on a filesystem that knows zones; write workloads on the device itself are refused",
    )
}

pub(super) fn shared(inspection: &Inspection) -> Option<Found> {
    let (device, _) = scheduled(inspection)?;
    let points: Vec<String> =
        inspection.shared_with.iter().take(4).map(|it| it.display().to_string()).collect();
    (!points.is_empty() || inspection.chain.filesystem().is_some_and(is_root)).then_some(())?;
    let with = if points.is_empty() { "the system itself".to_owned() } else { points.join(", ") };
    Found::new(
        format!("{} also serves {with}", device.title()),
        "prefer a scratch file behind a loop device of its own, or a device of its own; otherwise keep \
         the host idle",
    )
}

fn is_root(filesystem: &crate::Filesystem) -> bool {
    filesystem.mount.point.as_os_str() == "/"
}

pub(super) fn flash_state(inspection: &Inspection) -> Option<Found> {
    let probe = inspection.probe.as_ref()?;
    (probe.medium == Medium::Flash).then_some(())?;
    Found::new(
        probe.evidence.clone(),
        "fill the device first if steady state is meant; rounds in random order with the baseline \
         twice show the drift",
    )
}
