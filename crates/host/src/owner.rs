//! Who else sets queue settings on this host: udev rules, tuned, sysfs.d, the boot line.

use crate::Host;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A file that sets queue settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// By which program.
    pub by: OwnerKind,
    /// Where.
    pub file: PathBuf,
    /// Which line, from 1; 0 when the file as a whole says it.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// The settings that it names: "scheduler", "read_ahead_kb".
    pub settings: Vec<String>,
    /// Whether the program that would do it runs now.
    pub active: bool,
}

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// udev, at every `add` and `change` of a device.
    Udev,
    /// tuned, by its active profile.
    Tuned,
    /// sysfsutils, once at boot.
    SysfsConf,
    /// systemd-tmpfiles, once at boot.
    Tmpfiles,
    /// The kernel's command line, which since 5.0 does nothing for schedulers.
    BootLine,
}

/// All that is found, in the order in which it would act.
pub fn owners(host: &Host) -> Vec<Owner> {
    let mut found = boot_line(host);
    found.extend(lines_in(
        host,
        &["/etc/sysfs.d", "/etc"],
        OwnerKind::SysfsConf,
        |name| name.ends_with(".conf") && name != "sysctl.conf",
        true,
        sysfs_conf,
    ));
    let tmpfiles = ["/usr/lib/tmpfiles.d", "/run/tmpfiles.d", "/etc/tmpfiles.d"];
    found.extend(lines_in(
        host,
        &tmpfiles,
        OwnerKind::Tmpfiles,
        |name| name.ends_with(".conf"),
        true,
        sysfs_conf,
    ));
    let udev = host.path("/run/udev/control").exists();
    let rules =
        ["/usr/lib/udev/rules.d", "/lib/udev/rules.d", "/run/udev/rules.d", "/etc/udev/rules.d"];
    found.extend(lines_in(
        host,
        &rules,
        OwnerKind::Udev,
        |name| name.ends_with(".rules"),
        udev,
        udev_assignments,
    ));
    found.extend(tuned(host));
    found
}

/// Lines of all files in several folders, where a file in a later folder hides those of the same
/// name before it, in the order of the files' names.
fn lines_in(
    host: &Host,
    folders: &[&str],
    by: OwnerKind,
    is_one: impl Fn(&str) -> bool,
    active: bool,
    settings_of: impl Fn(&str) -> Vec<String>,
) -> Vec<Owner> {
    let mut files = BTreeMap::new();
    for folder in folders {
        let wanted = |name: &String| is_one(name) && (*folder != "/etc" || name == "sysfs.conf");
        for name in host.names(folder).into_iter().filter(wanted) {
            files.insert(name.clone(), Path::new(folder).join(name));
        }
    }
    let mut found = Vec::new();
    for file in files.into_values() {
        let Some(text) = host.text(&file) else { continue };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let settings = settings_of(line);
            if line.starts_with('#') || settings.is_empty() {
                continue;
            }
            let (file, line_number, text) = (file.clone(), index + 1, line.to_owned());
            found.push(Owner { by, file, line: line_number, text, settings, active });
        }
    }
    found
}

/// The settings that a rule assigns: `ATTR{queue/scheduler}="none"`; with `==` it only compares.
fn udev_assignments(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in line.split("ATTR{").skip(1) {
        let Some((name, rest)) = part.split_once('}') else { continue };
        let assigns = rest.starts_with('=') && !rest.starts_with("==") || rest.starts_with(":=");
        if let Some(setting) = name.strip_prefix("queue/")
            && assigns
        {
            found.push(setting.to_owned());
        }
    }
    found
}

/// `block/sda/queue/scheduler = none`, `w /sys/block/sda/queue/scheduler - - - - none`.
fn sysfs_conf(line: &str) -> Vec<String> {
    line.split(['=', ' ', '\t'])
        .filter(|word| word.contains("block/"))
        .filter_map(|word| word.split_once("/queue/"))
        .map(|(_, setting)| setting.to_owned())
        .collect()
}

fn boot_line(host: &Host) -> Vec<Owner> {
    let line = host.text("/proc/cmdline").unwrap_or_default();
    line.split_whitespace()
        .filter(|word| word.starts_with("elevator="))
        .map(|word| Owner {
            by: OwnerKind::BootLine,
            file: "/proc/cmdline".into(),
            line: 0,
            text: word.to_owned(),
            settings: vec!["scheduler".to_owned()],
            active: false,
        })
        .collect()
}

/// What tuned's disk plug-in sets (tuned.conf(5)), and the setting that each is.
const TUNED: [(&str, &str); 3] = [
    ("elevator", "scheduler"),
    ("readahead", "read_ahead_kb"),
    ("scheduler_quantum", "iosched/quantum"),
];

/// The active profile and those that it includes.
fn tuned(host: &Host) -> Vec<Owner> {
    let Some(active) = host.text("/etc/tuned/active_profile") else {
        return Vec::new();
    };
    let runs = ["/run/tuned/tuned.pid", "/var/run/tuned/tuned.pid"]
        .iter()
        .any(|path| host.path(path).exists());
    let mut waiting: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    let mut seen = Vec::new();
    let mut found = Vec::new();
    while let Some(profile) = waiting.pop() {
        if seen.contains(&profile) {
            continue;
        }
        let folders =
            ["/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned", "/usr/lib/tuned/profiles"];
        let file = folders
            .iter()
            .map(|folder| Path::new(folder).join(&profile).join("tuned.conf"))
            .find(|file| host.path(file).exists());
        seen.push(profile);
        let Some((file, text)) = file.and_then(|file| Some((file.clone(), host.text(file)?)))
        else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let key = key.trim();
            if key == "include" {
                waiting.extend(value.split(',').map(|it| it.trim().to_owned()));
            }
            let Some((_, setting)) = TUNED.iter().find(|(name, _)| *name == key) else { continue };
            found.push(Owner {
                by: OwnerKind::Tuned,
                file: file.clone(),
                line: index + 1,
                text: line.trim().to_owned(),
                settings: vec![(*setting).to_owned()],
                active: runs,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn rules_that_assign_and_rules_that_compare() {
        let line = r#"ACTION=="add|change", KERNEL=="sd*", ATTR{queue/rotational}=="0", ATTR{queue/scheduler}="none""#;
        assert_eq!(udev_assignments(line), ["scheduler"]);
        assert!(udev_assignments(r#"ATTR{queue/rotational}=="0", RUN+="x""#).is_empty());
        assert_eq!(sysfs_conf("block/sda/queue/nr_requests = 256"), ["nr_requests"]);
    }

    #[test]
    fn a_host_with_every_owner() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let rule = "# a comment: ATTR{queue/scheduler}=\"x\"\nATTR{queue/scheduler}=\"bfq\"\n";
        write("usr/lib/udev/rules.d/60-io.rules", "ATTR{queue/nr_requests}=\"64\"\n");
        write("etc/udev/rules.d/60-io.rules", rule);
        write("run/udev/control", "");
        write("proc/cmdline", "root=/dev/vda elevator=noop quiet\n");
        write("etc/tuned/active_profile", "mine\n");
        write("etc/tuned/mine/tuned.conf", "[main]\ninclude=throughput-performance\n");
        write("usr/lib/tuned/throughput-performance/tuned.conf", "[disk]\nreadahead=>4096\n");
        let found = owners(&Host::at(root.path()));
        let short: Vec<_> =
            found.iter().map(|it| (it.by, it.line, it.settings.join(","), it.active)).collect();
        assert_eq!(
            short,
            [
                (OwnerKind::BootLine, 0, "scheduler".to_owned(), false),
                // The file in /etc hides the one of its name in /usr/lib.
                (OwnerKind::Udev, 2, "scheduler".to_owned(), true),
                (OwnerKind::Tuned, 2, "read_ahead_kb".to_owned(), false),
            ]
        );
    }
}
