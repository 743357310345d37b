//! Control groups: bounding the page cache of buffered trials, and seeing the limits put on us.
//!
//! A memory control group charges a page of the page cache to the group that first touched it. A limit on it
//! therefore bounds the cache of the processes in the group *together with* their own memory
//! (buffers, heaps): choose it as the cache wanted plus what the load itself needs. Pages that others
//! had cached already stay free of charge, so a file's pages are dropped before it is measured.

use crate::{Changes, DeviceNumber, Error, Host, Made, Result, error::io_error, mounts::mounts};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};
use units::Bytes;

/// A control group that bounds memory, page cache included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCacheBound {
    /// The group's folder.
    pub path: PathBuf,
    /// Which version of the interface the host has.
    pub version: CgroupVersion,
    /// The limit, as the kernel rounded it.
    pub limit: Bytes,
    above: PathBuf,
    entry: u64,
}

/// The two interfaces of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// The least that a group of ours is given: less, and the load cannot live.
pub const PAGE_CACHE_BOUND_MIN: Bytes = Bytes::from_mib(16);

impl Changes {
    /// Makes a group whose members may hold `limit` of memory, page cache included.
    ///
    /// It bounds the members' page cache and their own memory together; what reaches the limit is
    /// written back and dropped, and under version 1 the members wait for that in their own time.
    pub fn bound_page_cache(&mut self, limit: Bytes) -> Result<PageCacheBound> {
        if limit < PAGE_CACHE_BOUND_MIN {
            return Err(Error::Unsupported {
                what: format!("a page cache of {limit}"),
                why: "the load's own memory counts too and would not fit".to_owned(),
                next: format!("give it {PAGE_CACHE_BOUND_MIN} or more"),
            });
        }
        let (version, above) = memory_hierarchy(self.host())?;
        let path = above.join(format!("spindle-{}-{}", std::process::id(), self.next_entry()));
        let entry = self.announce(Made::ControlGroup { path: path.clone() })?;
        if let Err(error) = fs::create_dir(&path) {
            self.gone(entry)?;
            return Err(io_error("create", path)(error));
        }
        let file = match version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            // high throttles and reclaims; max would kill.
            CgroupVersion::V2 => "memory.high",
        };
        let file = path.join(file);
        let write = fs::write(&file, limit.0.to_string()).map_err(io_error("set", &file));
        let taken = write.and_then(|()| fs::read_to_string(&file).map_err(io_error("read", &file)));
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.unmake(entry)?;
                return Err(error);
            }
        };
        let limit = Bytes(taken.trim().parse().unwrap_or(limit.0));
        Ok(PageCacheBound { path, version, limit, above, entry })
    }

    /// Moves the members back to where they came from and removes the group.
    pub fn unbound_page_cache(&mut self, bound: PageCacheBound) -> Result<()> {
        self.unmake(bound.entry)
    }
}

impl PageCacheBound {
    /// Moves a process into the group; its children follow it when they begin.
    pub fn join(&self, pid: u32) -> Result<()> {
        let path = self.path.join("cgroup.procs");
        fs::write(&path, pid.to_string()).map_err(io_error("move a process into", path))
    }

    /// Moves this process into the group: from now on what it reads and writes is charged there.
    pub fn join_ourselves(&self) -> Result<()> {
        self.join(std::process::id())
    }

    /// Moves this process back out.
    pub fn leave(&self) -> Result<()> {
        let path = self.above.join("cgroup.procs");
        fs::write(&path, std::process::id().to_string())
            .map_err(io_error("move a process into", path))
    }

    /// What the members hold now: page cache, and all together.
    pub fn usage(&self) -> (Bytes, Bytes) {
        let (cache, current) = match self.version {
            CgroupVersion::V1 => ("cache", "memory.usage_in_bytes"),
            CgroupVersion::V2 => ("file", "memory.current"),
        };
        let stat = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse().ok());
        let all = crate::tree::number(self.path.join(current));
        (Bytes(cache.unwrap_or(0)), Bytes(all.unwrap_or(0)))
    }
}

/// Where a memory group of ours can be made.
fn memory_hierarchy(host: &Host) -> Result<(CgroupVersion, PathBuf)> {
    let all = mounts(host)?;
    let v1 = all.iter().find(|mount| mount.kind == "cgroup" && mount.option("memory").is_some());
    if let Some(mount) = v1 {
        let folder = own_folder(host, &mount.point, &mount.root, "memory");
        return Ok((CgroupVersion::V1, folder));
    }
    let unsupported = |why: &str, next: &str| Error::Unsupported {
        what: "bounding the page cache".to_owned(),
        why: why.to_owned(),
        next: next.to_owned(),
    };
    let Some(mount) = all.iter().find(|mount| mount.kind == "cgroup2") else {
        let why = "no control groups are mounted";
        return Err(unsupported(why, "mount them, or leave --page-cache out"));
    };
    // In version 2 a group with processes has no limited children: only the root may have both.
    let controllers = host.text(mount.point.join("cgroup.controllers")).unwrap_or_default();
    if !controllers.split(' ').any(|it| it == "memory") {
        let why = "version 2 of control groups here has no memory controller";
        return Err(unsupported(
            why,
            "boot without cgroup_disable=memory, or leave --page-cache out",
        ));
    }
    let enabled = host.text(mount.point.join("cgroup.subtree_control")).unwrap_or_default();
    if !enabled.split(' ').any(|it| it == "memory") {
        let why = "the memory controller is not passed on to groups below the root";
        let next = "echo +memory > /sys/fs/cgroup/cgroup.subtree_control, or run under systemd";
        return Err(unsupported(why, next));
    }
    Ok((CgroupVersion::V2, host.path(&mount.point)))
}

/// The folder of the group that this process is in, in a hierarchy mounted at `point`.
fn own_folder(host: &Host, point: &Path, root: &Path, controller: &str) -> PathBuf {
    let text = host.text("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let ours = controllers.split(',').any(|it| it == controller);
        ours.then(|| parts.next()).flatten()
    });
    let own = Path::new(own.unwrap_or("/"));
    // In a container the mount shows a part of the hierarchy, and our path is below that.
    let below = own.strip_prefix(root).or_else(|_| own.strip_prefix("/")).unwrap_or(own);
    let folder = host.path(point).join(below);
    if folder.is_dir() { folder } else { host.path(point) }
}

/// The folder of our own group for `controller`, of whichever version has it.
pub(crate) fn own_group(host: &Host, controller: &str) -> Option<PathBuf> {
    let all = mounts(host).ok()?;
    let v1 = all.iter().find(|mount| mount.kind == "cgroup" && mount.option(controller).is_some());
    if let Some(mount) = v1 {
        return Some(own_folder(host, &mount.point, &mount.root, controller));
    }
    let v2 = all.iter().find(|mount| mount.kind == "cgroup2")?;
    Some(own_folder(host, &v2.point, &v2.root, ""))
}

/// Where iocost is switched on for a device.
pub(crate) const IO_COST: &str = "io.cost.qos";

/// Limits that others put on us and that an experiment would measure in place of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Memory, page cache included.
    pub memory: Option<Bytes>,
    /// Processor time: µs in each period, and the period.
    pub cpu_us: Option<(u64, u64)>,
    /// I/O, as the kernel writes it, behind the file: `io.max: 254:0 riops=100 wbps=max`.
    pub io: Vec<String>,
}

/// Whether a line of a limit is about one of these devices. One that names no device is about all.
pub(crate) fn is_about(line: &str, devices: &[DeviceNumber]) -> bool {
    let values = line.split_once(": ").map_or(line, |(_, values)| values);
    let named = values.split_whitespace().next().and_then(|word| word.parse().ok());
    named.is_none_or(|number| devices.contains(&number))
}

/// What a limit of bytes a second so low means: a unit that the kernel did not read. It takes `rbps=10MB` without an error
/// as ten bytes a second (seen on Linux 7.2).
pub(crate) fn without_a_unit(line: &str) -> Option<u64> {
    let least = |word: &str| {
        let (name, value) = word.split_once('=')?;
        let value: u64 = value.parse().ok()?;
        (matches!(name, "rbps" | "wbps") && value < 4096).then_some(value)
    };
    line.split_whitespace().find_map(least)
}

impl GroupLimits {
    /// Those of our own group and the groups above it.
    pub fn read(host: &Host) -> GroupLimits {
        let mut limits = GroupLimits::default();
        for folder in ancestors(host, "memory") {
            let files = ["memory.max", "memory.high", "memory.limit_in_bytes"];
            let values =
                files.iter().filter_map(|file| crate::tree::number::<u64>(folder.join(file)));
            // Version 1 writes "no limit" as the largest whole number of pages.
            let least = values.filter(|value| *value < 1 << 60).min().map(Bytes);
            limits.memory = limits.memory.into_iter().chain(least).min();
        }
        for folder in ancestors(host, "cpu") {
            let v2 = crate::tree::text(folder.join("cpu.max")).and_then(|text| {
                let (quota, period) = text.split_once(' ')?;
                Some((quota.parse().ok()?, period.parse().ok()?))
            });
            let v1 = || {
                let quota = crate::tree::number(folder.join("cpu.cfs_quota_us"))?;
                Some((quota, crate::tree::number(folder.join("cpu.cfs_period_us"))?))
            };
            limits.cpu_us = limits.cpu_us.or_else(|| v2.or_else(v1));
        }
        for folder in ancestors(host, "io").into_iter().chain(ancestors(host, "blkio")) {
            let files = [
                "io.max",
                "io.latency",
                "blkio.throttle.read_bps_device",
                "blkio.throttle.write_bps_device",
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ];
            for file in files {
                let text = crate::tree::text(folder.join(file)).unwrap_or_default();
                let lines = text.lines().filter(|line| !line.is_empty());
                limits.io.extend(lines.map(|line| format!("{file}: {line}")));
            }
            // The root's alone: iocost paces all groups' requests on a device.
            let text = crate::tree::text(folder.join(IO_COST)).unwrap_or_default();
            let enabled = text.lines().filter(|line| line.contains("enable=1"));
            limits.io.extend(enabled.map(|line| format!("{IO_COST}: {line}")));
        }
        limits.io.sort();
        limits.io.dedup();
        limits
    }
}

/// Our group's folder and those above it, up to the mount.
fn ancestors(host: &Host, controller: &str) -> Vec<PathBuf> {
    let Some(own) = own_group(host, controller) else {
        return Vec::new();
    };
    let top = host.path("/sys/fs/cgroup");
    own.ancestors().take_while(|folder| folder.starts_with(&top)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_groups_above_and_of_the_devices_that_they_name() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("proc/self/cgroup", "0::/system.slice/db.service\n");
        let group = "sys/fs/cgroup/system.slice/db.service";
        write(&format!("{group}/io.max"), "254:16 rbps=10 wbps=max riops=max wiops=max\n");
        write("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto\n8:16 enable=0 ctrl=auto\n");
        let limits = GroupLimits::read(&Host::at(root.path()));
        let lines = [
            "io.cost.qos: 8:0 enable=1 ctrl=auto",
            "io.max: 254:16 rbps=10 wbps=max riops=max wiops=max",
        ];
        assert_eq!(limits.io, lines);
        let [sda, vdb] = ["8:0", "254:16"].map(|number| number.parse().unwrap());
        assert!(is_about(lines[0], &[sda]) && !is_about(lines[0], &[vdb]));
        assert!(is_about(lines[1], &[sda, vdb]) && !is_about(lines[1], &[sda]));
        assert!(is_about("io.weight: default 100", &[sda]));
        assert_eq!(without_a_unit(lines[1]), Some(10));
        assert_eq!(without_a_unit("io.max: 254:16 rbps=10485760 wbps=max"), None);
        assert_eq!(without_a_unit("io.max: 254:16 riops=10"), None);
    }
}
