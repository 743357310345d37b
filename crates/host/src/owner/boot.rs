//! What acts once at boot: the kernel's command line, sysfsutils, systemd-tmpfiles, scripts; and cron.

use super::{OwnedSetting, Owner, OwnerKind, View, files_in, glob, shell, systemd::Units};
use scheduler::KernelVersion;
use std::path::{Path, PathBuf};

/// `elevator=` of the kernel's command line.
pub(super) fn line(view: &View<'_>) -> Vec<Owner> {
    let line = view.host.text("/proc/cmdline").unwrap_or_default();
    let release = view.host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: Option<KernelVersion> = release.parse().ok();
    // Multi-queue drivers never heeded it, and since 5.0 there are no others.
    let heeded = version.is_some_and(|version| version < KernelVersion::new(5, 0, 0))
        && !view.folder.join("mq").is_dir();
    line.split_whitespace()
        .filter_map(|word| Some((word, word.strip_prefix("elevator=")?)))
        .map(|(word, value)| {
            let settings =
                vec![OwnedSetting { name: "scheduler".to_owned(), value: Some(value.to_owned()) }];
            view.owner(OwnerKind::BootLine, (Path::new("/proc/cmdline"), 0), word, settings, heeded)
        })
        .collect()
}

/// `block/sda/queue/scheduler = none` of sysfsutils.
pub(super) fn sysfs_conf(view: &View<'_>, units: &Units) -> Vec<Owner> {
    // The files alone do nothing.
    let installed = units.has("sysfsutils") || view.host.path("/etc/init.d/sysfsutils").exists();
    let mut files: Vec<PathBuf> =
        files_in(view.host, &["/etc/sysfs.d"], ".conf").into_values().collect();
    files.insert(0, "/etc/sysfs.conf".into());
    lines(view, files, &|line| {
        let (path, value) = line.split_once('=')?;
        let path = path.trim();
        // `mode` and `owner` of a file are no settings.
        let plain = !path.contains(char::is_whitespace);
        let (device, name) = View::setting_of_path(path).filter(|_| plain)?;
        (device == view.name).then(|| set(name, value))
    })
    .into_iter()
    .map(|(file, number, text, setting)| {
        let at = (file.as_path(), number);
        view.owner(OwnerKind::SysfsConf, at, &text, vec![setting], installed)
    })
    .collect()
}

/// `w /sys/block/sda/queue/scheduler - - - - none` of tmpfiles.d(5).
pub(super) fn tmpfiles(view: &View<'_>) -> Vec<Owner> {
    const FOLDERS: [&str; 3] = ["/usr/lib/tmpfiles.d", "/run/tmpfiles.d", "/etc/tmpfiles.d"];
    let active = view.host.path("/run/systemd/system").is_dir();
    let files = files_in(view.host, &FOLDERS, ".conf").into_values().collect();
    lines(view, files, &|line| {
        let mut words = line.split_whitespace();
        let writes = words.next().is_some_and(|kind| kind.starts_with(['w', 'f', 'F']));
        let path = words.next().filter(|_| writes)?;
        let (device, name) = View::setting_of_path(path)?;
        let value = words.skip(4).collect::<Vec<_>>().join(" ");
        glob::matches(device, &view.name).then(|| set(name, &value))
    })
    .into_iter()
    .map(|(file, number, text, setting)| {
        let at = (file.as_path(), number);
        view.owner(OwnerKind::Tmpfiles, at, &text, vec![setting], active)
    })
    .collect()
}

fn set(name: String, value: &str) -> OwnedSetting {
    OwnedSetting { name, value: Some(value.trim().trim_matches('"').to_owned()) }
}

/// The lines of files in which `setting_of` finds one.
fn lines(
    view: &View<'_>,
    files: Vec<PathBuf>,
    setting_of: &dyn Fn(&str) -> Option<OwnedSetting>,
) -> Vec<(PathBuf, usize, String, OwnedSetting)> {
    let mut found = Vec::new();
    for file in files {
        let text = view.host.text(&file).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(setting) = setting_of(line).filter(|_| !line.starts_with('#')) {
                found.push((file.clone(), index + 1, line.to_owned(), setting));
            }
        }
    }
    found
}

/// rc.local, and the tables of cron.
pub(super) fn scripts(view: &View<'_>) -> Vec<Owner> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    for file in ["/etc/rc.local", "/etc/rc.d/rc.local"] {
        let meta = std::fs::metadata(view.host.path(file)).ok();
        let runs = meta.is_some_and(|meta| meta.permissions().mode() & 0o111 != 0);
        let text = view.host.text(file).unwrap_or_default();
        let of_script = (OwnerKind::BootScript, Path::new(file));
        found.extend(shell::owners_of_script(view, of_script.0, of_script.1, &text, runs));
    }
    let mut tables = vec![PathBuf::from("/etc/crontab")];
    for folder in ["/etc/cron.d", "/var/spool/cron/crontabs", "/var/spool/cron"] {
        let names = view.host.names(folder).into_iter();
        tables.extend(names.map(|name| Path::new(folder).join(name)));
    }
    for table in tables {
        let text = view.host.text(&table).unwrap_or_default();
        let runs = ["/run/crond.pid", "/run/cron.pid", "/var/run/crond.pid"]
            .iter()
            .any(|file| view.host.path(file).exists());
        found.extend(shell::owners_of_script(view, OwnerKind::Cron, &table, &text, runs));
    }
    found
}
