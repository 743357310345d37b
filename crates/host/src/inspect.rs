//! Makes an [`Inspection`]: looks at a target and the machine around it, and changes nothing.

use crate::{
    BlockDevice, Bus, Chain, DeviceKind, DeviceNumber, DriveHealth, Error, FileRoom, GroupLimits,
    Host, Inspection, Machine, Probe, Result, Setting, TargetKind,
    direct_io::nameless_file,
    error::io_error,
    journal::{pending, state_folder},
    mounts::mounts,
    owner::owners,
    probe::{PROBE_SIZE_MIN, probe},
    scratch::check_room,
    trap_rules::traps,
    tree::{block_node, number, number_of},
};
use random::Stream;
use std::{
    fs::{self, File},
    io::Write,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};
use units::Bytes;

impl Inspection {
    /// Looks at `target`; nothing is changed. With `probing`, reads at random for at most a second.
    pub fn of(host: &Host, target: &Path, probing: bool) -> Result<Inspection> {
        let chain = Chain::of(host, target)?;
        let mut missing = Vec::new();
        let scheduled = chain.first_varied_device().map(|device| device.number);
        let mut inspection = Inspection {
            target: target.to_owned(),
            machine: Machine::read(host),
            health: chain.devices().filter_map(|it| DriveHealth::read(host, it)).collect(),
            files: files(host, &chain),
            filesystem_read_ahead_kb: filesystem_read_ahead(host, &chain),
            owners: owners(host, &chain.devices().map(|it| it.number).collect::<Vec<_>>()),
            limits: GroupLimits::read(host),
            shared_with: shared_with(host, &chain),
            changeable: scheduled.map(|it| changeable(host, it)).unwrap_or_default(),
            pending: state_folder().and_then(|folder| pending(&folder)).map_or_else(
                |error| {
                    missing.push(format!("whether a run was left unfinished: {error}"));
                    Vec::new()
                },
                |found| found.into_iter().map(|journal| journal.path).collect(),
            ),
            probe: None,
            missing: Vec::new(),
            traps: Vec::new(),
            chain,
        };
        if probing && inspection.chain.no_device.is_none() {
            match inspection.probe_target(host) {
                Ok(probe) => inspection.probe = Some(probe),
                Err(error) => missing.push(format!("whether it is flash or disk: {error}")),
            }
        }
        if scheduled.is_some() && inspection.changeable.is_empty() {
            missing.push(
                "settings can be read and not changed as this user: run it with sudo to vary \
                 scheduler, queue, tunables, wbt and read-ahead"
                    .to_owned(),
            );
        }
        for device in inspection.chain.devices() {
            if device.serial.is_none() && matches!(device.kind, DeviceKind::Disk) {
                missing.push(format!(
                    "the serial number of {}: its driver gives none",
                    device.title()
                ));
            }
        }
        missing.extend(inspection.chain.devices().filter_map(|it| unworn(it, &inspection.health)));
        inspection.missing = missing;
        inspection.traps = traps(&inspection);
        Ok(inspection)
    }

    /// Reads from the file itself, or from the uppermost device, which needs root; else from the
    /// folder's largest file, else from one of our own.
    fn probe_target(&self, host: &Host) -> Result<Probe> {
        let time = Duration::from_millis(900);
        let bottoms: Vec<DeviceNumber> = self.chain.bottoms().map(|device| device.number).collect();
        // Of several disks no single counter tells.
        let bottom = if let [only] = bottoms[..] { Some(only) } else { None };
        if self.chain.kind == TargetKind::File
            && let Some(file) = self.files.first()
        {
            return probe(host, &file.path, file.size, bottom, time);
        }
        // The device is the best witness: all of its places, and nothing was just written. Even root
        // may not open it in some containers.
        if let Some(device) = self.chain.devices().next()
            && let Some(node) = node_of(host, device)
            && let Ok(found) = probe(host, &node, device.size, bottom, time)
        {
            return Ok(found);
        }
        if let Some((path, size)) = largest_file(&self.chain.target) {
            return probe(host, &path, size, bottom, time);
        }
        let (file, size) = scratch(&self.chain.target)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut found = probe(host, Path::new(&path), size, bottom, time)?;
        found.evidence += &format!("; read from {size} just written, which a cache may still hold");
        Ok(found)
    }
}

/// What to ask a drive whose wear the kernel does not show.
fn unworn(device: &BlockDevice, health: &[DriveHealth]) -> Option<String> {
    let is_drive = device.kind == DeviceKind::Disk
        && matches!(device.bus, Bus::Nvme | Bus::Sata | Bus::Scsi | Bus::Mmc);
    let known = health.iter().any(|it| it.device == device.name && it.wear.is_some());
    (is_drive && !known).then(|| {
        format!("how worn {} is: the kernel does not show it, `smartctl -a` asks", device.title())
    })
}

/// A file without a name, written full, for want of anything else that may be read.
fn scratch(folder: &Path) -> Result<(File, Bytes)> {
    const SIZE: Bytes = Bytes::from_mib(32);
    check_room(folder, SIZE)?;
    let mut file = nameless_file(folder).ok_or_else(|| Error::Unsupported {
        what: "a probe".to_owned(),
        why: format!(
            "the device may not be read, {} has no file of {PROBE_SIZE_MIN} or more, and no scratch \
             file can be made there",
            folder.display()
        ),
        next: "run it with sudo".to_owned(),
    })?;
    let mut stream = Stream::new(1, "probe file");
    let mut chunk = vec![0; 1 << 20];
    for _ in 0..SIZE.0 >> 20 {
        stream.fill(&mut chunk);
        file.write_all(&chunk).map_err(io_error("write a scratch file in", folder))?;
    }
    file.sync_all().map_err(io_error("write a scratch file in", folder))?;
    Ok((file, SIZE))
}

impl BlockDevice {
    /// Every whole disk, array and volume of the host that has a size.
    pub fn all(host: &Host) -> Vec<BlockDevice> {
        host.names("/sys/block")
            .into_iter()
            .filter_map(|name| number_of(&host.path("/sys/block").join(name)))
            .filter_map(|number| BlockDevice::read(host, number).ok())
            .filter(|device| device.size > Bytes::ZERO)
            .collect()
    }
}

/// The node of a device, when it really is that device's.
fn node_of(host: &Host, device: &BlockDevice) -> Option<PathBuf> {
    // Slashes in names (cciss/c0d0) are exclamation marks in sysfs.
    let node = host.path("/dev").join(device.name.replace('!', "/"));
    (block_node(&node).ok().flatten() == Some(device.number)).then_some(node)
}

fn largest_file(folder: &Path) -> Option<(PathBuf, Bytes)> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let sizes = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        (meta.is_file() && meta.len() >= PROBE_SIZE_MIN.0)
            .then(|| (entry.path(), Bytes(meta.len())))
    });
    sizes.max_by_key(|(_, size)| *size)
}

/// The target, if a file, and the files behind loop devices.
fn files(host: &Host, chain: &Chain) -> Vec<FileRoom> {
    let target = (chain.kind == TargetKind::File).then(|| chain.target.clone());
    let behind = chain.devices().filter_map(|device| device.loop_state()?.backing_file.clone());
    target
        .into_iter()
        .chain(behind.map(|file| host.path(file)))
        .filter_map(|path| {
            let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            Some(FileRoom { path, size: Bytes(meta.len()), allocated: Bytes(meta.blocks() * 512) })
        })
        .collect()
}

/// Filesystems with numbers of their own (btrfs, NFS) have a read-ahead of their own.
fn filesystem_read_ahead(host: &Host, chain: &Chain) -> Option<u32> {
    let mount = &chain.filesystem()?.mount;
    mount
        .device
        .is_anonymous()
        .then(|| number(host.path(format!("/sys/class/bdi/{}/read_ahead_kb", mount.device))))?
}

/// Mount points of filesystems on the same disk, the target's own aside.
fn shared_with(host: &Host, chain: &Chain) -> Vec<PathBuf> {
    let varied = &chain.varied;
    let Ok(all) = mounts(host) else {
        return Vec::new();
    };
    let own = chain.filesystem().map(|filesystem| &filesystem.mount.point);
    let disk_of = |number: DeviceNumber| -> Option<DeviceNumber> {
        number_of(&host.disk_folder(number).ok()?)
    };
    let mut points: Vec<PathBuf> = all
        .into_iter()
        .filter(|mount| Some(&mount.point) != own)
        .filter(|mount| {
            let sources = mount.sources(host);
            let all = if sources.is_empty() { vec![mount.device] } else { sources };
            all.into_iter().filter_map(disk_of).any(|disk| varied.contains(&disk))
        })
        .map(|mount| mount.point)
        .collect();
    points.dedup();
    points
}

fn changeable(host: &Host, device: DeviceNumber) -> Vec<Setting> {
    let Ok(folder) = crate::QueueFolder::of(host, device) else {
        return Vec::new();
    };
    let writable = |(setting, value): (Setting, String)| {
        folder.check(&setting, &value, None).is_ok().then_some(setting)
    };
    folder.read_all().into_iter().filter_map(writable).collect()
}
