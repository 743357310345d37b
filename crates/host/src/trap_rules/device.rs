//! Traps of the devices below the target.

use crate::{
    BlockDevice, Bus, DeviceKind, DeviceTitle, Inspection, LayerKind, Medium, NotRotating, Queue,
    Trap,
};
use std::path::PathBuf;
use units::Bytes;

/// The device whose settings would be varied, with its queue.
fn scheduled(inspection: &Inspection) -> Option<(&BlockDevice, &Queue)> {
    let device = inspection.chain.first_varied_device()?;
    Some((device, device.queue.as_ref()?))
}

pub(super) fn cache_answers(inspection: &Inspection) -> Option<Trap> {
    let probe = inspection.probe.as_ref()?;
    (probe.medium == Medium::Cache).then_some(())?;
    Some(Trap::CacheAnswers { probe: probe.evidence.clone() })
}

pub(super) fn sparse(inspection: &Inspection) -> Option<Trap> {
    // A few blocks less are a hole at the end or compression of metadata; a tenth is not.
    let sparse = inspection
        .files
        .iter()
        .find(|file| file.size > Bytes::ZERO && file.allocated.0 < file.size.0 / 10 * 9)?;
    Some(Trap::SparseFile { file: sparse.clone() })
}

pub(super) fn buffered_loop(inspection: &Inspection) -> Option<Trap> {
    let device = inspection.chain.devices().find(|device| {
        device.loop_state().is_some_and(|it| it.backing_file.is_some() && !it.direct_io)
    })?;
    Some(Trap::BufferedLoop { device: device.into() })
}

pub(super) fn loop_discard(inspection: &Inspection) -> Option<Trap> {
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
                    return Some(Trap::LoopDiscard {
                        mount: mount.point.clone(),
                        device: device.as_ref().into(),
                    });
                }
            }
        }
    }
    None
}

pub(super) fn loop_settings(inspection: &Inspection) -> Option<Trap> {
    let (device, _) = scheduled(inspection)?;
    device.loop_state()?;
    Some(Trap::LoopSettingsStay { device: device.into() })
}

pub(super) fn rotational(inspection: &Inspection) -> Option<Trap> {
    // What stands on others repeats what they claim.
    let (device, queue) =
        inspection.chain.devices().filter(|device| device.below.is_empty()).find_map(|device| {
            let queue = device.queue.as_ref()?;
            (queue.rotational == Some(true)).then_some((device, queue))
        })?;
    // Of several devices, nobody knows which answered the probe.
    let probe = inspection.probe.as_ref().filter(|_| inspection.chain.bottoms().count() < 2);
    let contrary = match probe {
        Some(probe) if probe.medium == Medium::Disk => return None,
        Some(probe) => NotRotating::Probe(probe.evidence.clone()),
        // Without a probe only where such claims are known to mean nothing.
        None if matches!(device.bus, Bus::Virtio | Bus::Xen | Bus::Virtual) => {
            NotRotating::Bus(device.bus)
        }
        None => return None,
    };
    Some(Trap::RotationalFlag { device: device.into(), wbt_lat_usec: queue.wbt_lat_usec, contrary })
}

pub(super) fn throttling(inspection: &Inspection) -> Option<Trap> {
    let (device, queue) = scheduled(inspection)?;
    let choice = queue.scheduler.as_ref()?;
    choice.available.iter().any(|it| it == "bfq").then_some(())?;
    let wbt_lat_usec = queue.wbt_lat_usec?;
    if wbt_lat_usec == 0 && choice.current != "bfq" {
        return None;
    }
    Some(Trap::WriteBackThrottling { device: device.into(), wbt_lat_usec })
}

pub(super) fn write_through_by_hand(inspection: &Inspection) -> Option<Trap> {
    let by_hand = |queue: &Queue| {
        queue.write_cache.as_deref() == Some("write through")
            && queue.own_cache.as_deref() == Some("write back")
    };
    let mut devices = inspection.chain.devices();
    let device = devices.find(|device| device.queue.as_ref().is_some_and(by_hand))?;
    Some(Trap::WriteThroughByHand { device: device.into() })
}

pub(super) fn not_counted(inspection: &Inspection) -> Option<Trap> {
    let silent = |queue: &Queue| queue.iostats == Some(false);
    let mut devices = inspection.chain.devices();
    let device = devices.find(|device| device.queue.as_ref().is_some_and(silent))?;
    Some(Trap::NotCounted { device: device.into() })
}

pub(super) fn small_block(inspection: &Inspection) -> Option<Trap> {
    let device = inspection.chain.devices().find(|device| {
        let block = device.queue.as_ref().and_then(|queue| queue.logical_block);
        block.is_some_and(|block| block > Bytes(512))
    })?;
    let block = device.queue.as_ref()?.logical_block?;
    Some(Trap::SmallBlock { device: device.into(), sector: block })
}

pub(super) fn ceiling(inspection: &Inspection) -> Option<Trap> {
    let (device, queue) = scheduled(inspection)?;
    let tags = queue.hardware_tags?;
    let none = queue.scheduler.as_ref()?.available.iter().any(|it| it == "none");
    (none && tags < crate::NR_REQUESTS_MAX_WITH_SCHEDULER).then_some(())?;
    Some(Trap::QueueCeiling {
        device: device.into(),
        tags,
        with_scheduler: crate::NR_REQUESTS_MAX_WITH_SCHEDULER,
    })
}

pub(super) fn stacked(inspection: &Inspection) -> Option<Trap> {
    let names: Vec<DeviceTitle> = inspection
        .chain
        .devices()
        .filter(|device| inspection.chain.scheduled.contains(&device.number))
        .map(DeviceTitle::from)
        .collect();
    let varied: Vec<DeviceTitle> =
        inspection.chain.varied_devices().map(DeviceTitle::from).collect();
    (!varied.is_empty()).then_some(())?;
    let passes_on = inspection
        .chain
        .devices()
        .any(|device| matches!(device.kind, DeviceKind::Mapper { .. } | DeviceKind::Md { .. }));
    (names.len() > 1 || passes_on).then_some(())?;
    Some(Trap::StackedDevices { scheduled: names, varied })
}

pub(super) fn zoned(inspection: &Inspection) -> Option<Trap> {
    let (device, queue) = scheduled(inspection)?;
    let zoned = queue.zoned.as_deref().filter(|zoned| *zoned != "none")?;
    Some(Trap::Zoned { device: device.into(), model: zoned.to_owned() })
}

pub(super) fn shared(inspection: &Inspection) -> Option<Trap> {
    let (device, _) = scheduled(inspection)?;
    let mounts: Vec<PathBuf> = inspection.shared_with.iter().take(4).cloned().collect();
    (!mounts.is_empty() || inspection.chain.filesystem().is_some_and(is_root)).then_some(())?;
    Some(Trap::SharedDevice { device: device.into(), mounts })
}

fn is_root(filesystem: &crate::Filesystem) -> bool {
    filesystem.mount.point.as_os_str() == "/"
}

pub(super) fn flash_state(inspection: &Inspection) -> Option<Trap> {
    let probe = inspection.probe.as_ref()?;
    (probe.medium == Medium::Flash).then_some(())?;
    Some(Trap::FlashState { probe: probe.evidence.clone() })
}

pub(super) fn hot(inspection: &Inspection) -> Option<Trap> {
    inspection.health.iter().find_map(|drive| {
        let temperature = drive.temperatures.iter().find(|it| it.is_hot())?.clone();
        Some(Trap::HotDrive { device: drive.device.clone(), temperature })
    })
}
