//! Which process wrote: its name, command line, unit and parents, as long as the kernel knows them.

use crate::{Host, Owner, OwnerKind, ProcessName, ProcessRecord};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// A process that wrote a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// Its number.
    pub pid: u32,
    /// The kernel's name for it, 15 letters; none if it had ended and nothing recorded it.
    pub name: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// The unit of systemd's that it belongs to.
    pub unit: Option<String>,
    /// Its parent, that one's parent and so on, without the first process.
    pub parents: Vec<ProcessName>,
}

impl Writer {
    /// The program whose files may say that it does so.
    pub(super) fn owner_kind(&self) -> Option<OwnerKind> {
        let names = self.name.iter().chain(self.parents.iter().map(|it| &it.name));
        for name in names {
            let kind = match name.as_str() {
                "(udev-worker)" | "systemd-udevd" | "udevd" | "udevadm" => OwnerKind::Udev,
                "tuned" => OwnerKind::Tuned,
                "saptune" => OwnerKind::Saptune,
                "google_guest_ag" => OwnerKind::GceAgent,
                "systemd-tmpfile" => OwnerKind::Tmpfiles,
                "cron" | "crond" => OwnerKind::Cron,
                _ => continue,
            };
            return Some(kind);
        }
        match self.unit.as_deref() {
            Some("systemd-udevd.service") => Some(OwnerKind::Udev),
            Some("tuned.service") => Some(OwnerKind::Tuned),
            Some("rc-local.service") => Some(OwnerKind::BootScript),
            Some("sysfsutils.service") => Some(OwnerKind::SysfsConf),
            _ => None,
        }
    }

    /// Whether it runs in the unit whose file the owner is.
    pub(super) fn is_unit_of(&self, owner: &Owner) -> bool {
        let file = owner.run_by.as_ref().map_or(&owner.file, |place| &place.file);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        self.unit.as_deref().is_some_and(|unit| {
            let template = unit.split_once('@').map(|(first, _)| format!("{first}@.service"));
            unit == name || template.is_some_and(|template| template == name)
        })
    }
}

/// Processes that were seen, for a moment.
#[derive(Debug)]
pub(super) struct Writers {
    host: Host,
    record: Option<Arc<ProcessRecord>>,
    seen: BTreeMap<u32, (Instant, Writer)>,
}

/// A number is not given again so soon.
const REMEMBERED: Duration = Duration::from_secs(5);

/// Deep enough for a shell below sudo below a login.
const PARENTS_MAX: usize = 8;

impl Writers {
    pub(super) fn new(host: &Host, record: Option<Arc<ProcessRecord>>) -> Writers {
        Writers { host: host.clone(), record, seen: BTreeMap::new() }
    }

    /// Looks at a process while it is there: it may have ended when it is asked for.
    pub(super) fn note(&mut self, pid: u32) {
        self.seen.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        let known = self.seen.get(&pid).is_some_and(|(_, it)| it.name.is_some());
        if !known && pid != std::process::id() {
            let writer = look(&self.host, pid);
            self.seen.insert(pid, (Instant::now(), writer));
        }
    }

    /// What is known of a process.
    pub(super) fn of(&mut self, pid: u32) -> Writer {
        self.note(pid);
        let mut writer = self.seen.get(&pid).map(|(_, it)| it.clone()).unwrap_or_default();
        writer.pid = pid;
        if writer.name.is_none() || writer.parents.is_empty() {
            self.ask_the_record(&mut writer);
        }
        writer
    }

    /// What the kernel recorded of a process when it began.
    fn ask_the_record(&self, writer: &mut Writer) {
        let Some(record) = &self.record else { return };
        let Ok(begun) = record.process(writer.pid) else { return };
        writer.name = writer.name.take().or(begun.name);
        writer.command = writer.command.take().or(begun.program);
        if !writer.parents.is_empty() {
            return;
        }
        // Those above may have ended, too: a shell that a shell began.
        let mut next = begun.parent;
        while let Some(parent) = next.take()
            && writer.parents.len() < PARENTS_MAX
        {
            let above = look(&self.host, parent.pid);
            let is_there = above.name.is_some();
            let pid = parent.pid;
            writer.parents.push(parent);
            if is_there {
                writer.unit = writer.unit.take().or(above.unit);
                writer.parents.extend(above.parents);
            } else {
                next = record.process(pid).ok().and_then(|begun| begun.parent);
            }
        }
        writer.parents.retain(|parent| parent.pid > 1);
        writer.parents.truncate(PARENTS_MAX);
    }
}

/// A process as `/proc` shows it now.
fn look(host: &Host, pid: u32) -> Writer {
    let file = |name: &str| host.text(format!("/proc/{pid}/{name}"));
    let command = file("cmdline")
        .map(|line| line.trim_end_matches('\0').split('\0').collect::<Vec<_>>().join(" "));
    let unit = file("cgroup").and_then(|groups| unit_of(&groups));
    let mut parents: Vec<ProcessName> = Vec::new();
    let mut at = parent_of(host, pid);
    while let Some(parent) = at.filter(|pid| *pid > 1)
        && parents.len() < PARENTS_MAX
    {
        let Some(name) = host.text(format!("/proc/{parent}/comm")) else { break };
        parents.push(ProcessName { pid: parent, name });
        at = parent_of(host, parent);
    }
    let command = command.filter(|line| !line.is_empty());
    Writer { pid, name: file("comm"), command, unit, parents }
}

fn parent_of(host: &Host, pid: u32) -> Option<u32> {
    let line = host.text(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = line.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// The innermost unit of cgroups(7): of `0::/system.slice/systemd-udevd.service/udev` the service.
fn unit_of(groups: &str) -> Option<String> {
    let of_systemd = |line: &&str| line.starts_with("0::") || line.contains(":name=systemd:");
    groups.lines().filter(of_systemd).find_map(|line| {
        let is_unit = |part: &&str| {
            [".service", ".scope", ".socket", ".timer"].iter().any(|kind| part.ends_with(kind))
        };
        line.rsplit('/').find(is_unit).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_both_versions_of_cgroups() {
        let second = "0::/system.slice/systemd-udevd.service/udev";
        assert_eq!(unit_of(second).as_deref(), Some("systemd-udevd.service"));
        let first = "4:cpu:/x.service\n1:name=systemd:/user.slice/session-3.scope";
        assert_eq!(unit_of(first).as_deref(), Some("session-3.scope"));
        assert_eq!(unit_of("0::/"), None);
    }
}
