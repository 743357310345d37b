//! Which processes have a file or a device open. A filesystem is asked only where the answer can matter:
//! one whose server hangs would hold us until it comes back.

use crate::{
    Host,
    mounts::{Mount, numbered_mounts},
    tree::names,
};
use std::{collections::BTreeMap, fs, path::Path};

/// The other processes that have a file open that `is_it` knows, as far as we may see. Files on mounts
/// that are not `asked` are left out.
pub(crate) fn opened_by(
    host: &Host,
    asked: impl Fn(&Mount) -> bool,
    is_it: impl Fn(&fs::Metadata) -> bool,
) -> Vec<(u32, String)> {
    let ours = std::process::id();
    let mut namespaces = BTreeMap::new();
    let mut has_it = |pid: &u32| {
        let process = host.path(format!("/proc/{pid}"));
        let open = names(process.join("fd"));
        if open.is_empty() {
            return false;
        }
        let namespace = fs::read_link(process.join("ns/mnt")).ok();
        let left_out = namespaces.entry(namespace).or_insert_with(|| {
            let mounts = numbered_mounts(host, *pid).into_iter();
            mounts.filter(|(_, mount)| !asked(mount)).map(|(id, _)| id).collect::<Vec<_>>()
        });
        open.iter().any(|fd| {
            mount_id(&process, fd).is_none_or(|id| !left_out.contains(&id))
                && fs::metadata(process.join("fd").join(fd)).is_ok_and(|it| is_it(&it))
        })
    };
    host.names("/proc")
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|pid| *pid != ours && has_it(pid))
        .map(|pid| (pid, host.text(format!("/proc/{pid}/comm")).unwrap_or_default()))
        .collect()
}

/// The mount through which a process has opened a file: `mnt_id` of proc_pid_fdinfo(5).
fn mount_id(process: &Path, fd: &str) -> Option<u64> {
    let text = fs::read_to_string(process.join("fdinfo").join(fd)).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}
