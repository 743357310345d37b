//! Schedulers that the running kernel has in modules.

use crate::Host;
use scheduler::SchedulerKind;
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// Schedulers whose modules are there and not loaded. A device does not list them; a write of their name loads them, and they
/// stay loaded. None where the kernel takes no more modules.
pub fn loadable_schedulers(host: &Host) -> Vec<SchedulerKind> {
    let closed = host.text("/proc/sys/kernel/modules_disabled").is_some_and(|it| it == "1");
    if closed {
        return Vec::new();
    }
    let files = modules(host);
    let is_there = |kind: &SchedulerKind| {
        kind.spec().module.is_some_and(|module| {
            // The kernel writes both for one.
            let loaded = host.path(format!("/sys/module/{}", module.replace('-', "_"))).exists();
            !loaded && files.iter().any(|it| it == module)
        })
    };
    SchedulerKind::VARIANTS.iter().copied().filter(is_there).collect()
}

/// The names of the running kernel's modules; none where their list is not there.
pub(crate) fn modules(host: &Host) -> Vec<String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let list = host.text(PathBuf::from("/lib/modules").join(release).join("modules.dep"));
    // `kernel/block/bfq.ko.xz: ` and what it needs.
    let of_line = |line: &str| {
        let file = Path::new(line.split(':').next()?).file_name()?.to_str()?;
        Some(file.split('.').next()?.to_owned())
    };
    list.iter().flat_map(|list| list.lines()).filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_are_there_and_not_loaded_are_found() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::at(root.path());
        assert_eq!(loadable_schedulers(&host), []);
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let folder = root.path().join("lib/modules").join(release);
        std::fs::create_dir_all(&folder).unwrap();
        let lines = "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko:\nkernel/fs/xfs/xfs.ko: kernel/lib/crc.ko\n";
        std::fs::write(folder.join("modules.dep"), lines).unwrap();
        std::fs::create_dir_all(root.path().join("sys/module/kyber_iosched")).unwrap();
        assert_eq!(loadable_schedulers(&host), [SchedulerKind::Bfq]);
        std::fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(root.path().join("proc/sys/kernel/modules_disabled"), "1\n").unwrap();
        assert_eq!(loadable_schedulers(&host), []);
    }
}
