//! Traps of the host around the target.

use super::Found;
use crate::{Inspection, OwnerKind, TargetKind};

pub(super) fn unfinished_run(inspection: &Inspection) -> Option<Found> {
    let first = inspection.pending.first()?;
    Found::new(
        format!(
            "{} journal(s) of ended runs, the first {}",
            inspection.pending.len(),
            first.display()
        ),
        "spindle undo",
    )
}

pub(super) fn owned(inspection: &Inspection) -> Option<Found> {
    inspection.chain.scheduled.first()?;
    // What does not run sets nothing; it is listed by the inspection all the same.
    let owners: Vec<_> = inspection.owners.iter().filter(|owner| owner.active).collect();
    let first = owners.first()?;
    let program = match first.by {
        OwnerKind::Udev => "udev",
        OwnerKind::Tuned => "tuned",
        OwnerKind::SysfsConf => "sysfsutils",
        OwnerKind::Tmpfiles => "systemd-tmpfiles",
        OwnerKind::BootLine => "the boot line",
    };
    Found::new(
        format!(
            "{}:{} ({program}, running) sets {}{}",
            first.file.display(),
            first.line,
            first.settings.join(", "),
            if owners.len() > 1 { format!("; {} more", owners.len() - 1) } else { String::new() }
        ),
        "every setting is verified before and after each trial; to keep a new one, change it in that \
         file",
    )
}

pub(super) fn boot_elevator(inspection: &Inspection) -> Option<Found> {
    let owner = inspection.owners.iter().find(|owner| owner.by == OwnerKind::BootLine)?;
    Found::new(
        format!("the kernel was booted with {}", owner.text),
        "take it off the boot line; a udev rule sets the scheduler",
    )
}

pub(super) fn small_data(inspection: &Inspection) -> Option<Found> {
    if inspection.chain.no_device.is_some() {
        return None;
    }
    let available = inspection.machine.memory_available;
    let bound = inspection.limits.memory.map_or(available, |limit| limit.min(available));
    let evidence = match (inspection.chain.kind, inspection.files.first()) {
        (TargetKind::File, Some(file)) if file.size >= bound => return None,
        (TargetKind::File, Some(file)) => {
            format!("the file is {} and {bound} of memory could cache it", file.size)
        }
        _ => format!("{bound} of memory could be page cache"),
    };
    Found::new(
        evidence,
        "compare direct cells; or for buffered ones take more data (--size) or bound the page cache \
         (--page-cache 1G)",
    )
}

pub(super) fn limits(inspection: &Inspection) -> Option<Found> {
    let limits = &inspection.limits;
    let mut found = Vec::new();
    if let Some((quota, period)) = limits.cpu_us {
        found.push(format!("CPU {:.2} processors", quota as f64 / period.max(1) as f64));
    }
    if let Some(memory) = limits.memory.filter(|limit| *limit < inspection.machine.memory) {
        found.push(format!("memory {memory}"));
    }
    found.extend(limits.io.iter().map(|line| format!("I/O {line}")));
    (!found.is_empty()).then_some(())?;
    Found::new(
        format!("limits on our control group: {}", found.join("; ")),
        "run it outside of the container or unit, or lift the limit; the record has the time held back",
    )
}

pub(super) fn no_pressure(inspection: &Inspection) -> Option<Found> {
    inspection.machine.io_pressure.is_none().then_some(())?;
    Found::new(
        "/proc/pressure/io cannot be read",
        "boot with psi=1 (CONFIG_PSI); until then the load average and steal time must do",
    )
}

pub(super) fn busy(inspection: &Inspection) -> Option<Found> {
    let machine = &inspection.machine;
    let waiting = machine.io_pressure.filter(|share| *share > 10.0);
    let loaded = machine.load > 1.5 * f64::from(machine.cpus.max(1));
    let evidence = match waiting {
        Some(share) => format!("tasks waited for I/O in {share:.0} % of the last ten seconds"),
        None if loaded => {
            format!("load average {:.1} on {} processors", machine.load, machine.cpus)
        }
        None => return None,
    };
    Found::new(evidence, "find it with iotop or pidstat -d, and wait or stop it")
}

pub(super) fn frequency(inspection: &Inspection) -> Option<Found> {
    let governor = inspection.machine.governor.as_deref()?;
    (governor != "performance").then_some(())?;
    Found::new(
        format!("scaling_governor is {governor}"),
        "cpupower frequency-set -g performance while measuring",
    )
}

pub(super) fn steal(inspection: &Inspection) -> Option<Found> {
    let share = inspection.machine.steal_percent;
    (share >= 0.5).then_some(())?;
    Found::new(
        format!("{share:.1} % of the processors' time since boot was stolen"),
        "more rounds; a dedicated machine type; the record has steal time of each trial",
    )
}
