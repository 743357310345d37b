//! Traps of the host around the target.

use crate::{
    DeviceNumber, Inspection, OtherLoad, Owner, OwnerKind, Setting, TargetKind, Trap,
    cgroup::is_about, setting::RAISE_READ_AHEAD,
};

pub(super) fn unfinished_run(inspection: &Inspection) -> Option<Trap> {
    let first = inspection.pending.first()?;
    Some(Trap::UnfinishedRun { journals: inspection.pending.len(), first: first.clone() })
}

pub(super) fn owned(inspection: &Inspection) -> Option<Trap> {
    let varied: Vec<&str> =
        inspection.chain.varied_devices().map(|device| device.name.as_str()).collect();
    // What does not run sets nothing, and what sets other devices does not disturb; both are listed by
    // the inspection all the same.
    let disturbs = |owner: &&Owner| {
        owner.active && owner.devices.iter().any(|device| varied.contains(&device.as_str()))
    };
    let mut owners: Vec<&Owner> = inspection.owners.iter().filter(disturbs).collect();
    owners.sort_by_key(|owner| !owner.unknown.is_empty());
    let first = owners.first()?;
    Some(Trap::SettingOwner { owner: (*first).clone(), more: owners.len() - 1 })
}

/// Who sets read_ahead_kb before somebody writes what raises it again.
pub(super) fn read_ahead_lost(inspection: &Inspection) -> Option<Trap> {
    let name = Setting::ReadAheadKb.to_string();
    inspection.chain.varied_devices().find_map(|device| {
        let of_device = |owner: &&Owner| owner.active && owner.devices.contains(&device.name);
        let writes: Vec<(&Owner, &str)> = inspection
            .owners
            .iter()
            .filter(of_device)
            .flat_map(|owner| owner.setting_names().into_iter().map(move |name| (owner, name)))
            .collect();
        let last = writes.iter().rposition(|(_, written)| *written == name)?;
        let raises = |(_, written): &&(&Owner, &str)| RAISE_READ_AHEAD.contains(written);
        let (after, attribute) = writes[last + 1..].iter().find(raises)?;
        Some(Trap::ReadAheadLost {
            device: device.into(),
            set: writes[last].0.place(),
            after: after.place(),
            attribute: (*attribute).to_owned(),
        })
    })
}

pub(super) fn boot_elevator(inspection: &Inspection) -> Option<Trap> {
    // Kernels before 5.0 heed it.
    let unheeded = |owner: &&Owner| owner.by == OwnerKind::BootLine && !owner.active;
    let owner = inspection.owners.iter().find(unheeded)?;
    Some(Trap::BootElevator { option: owner.text.clone() })
}

pub(super) fn small_data(inspection: &Inspection) -> Option<Trap> {
    if inspection.chain.no_device.is_some() {
        return None;
    }
    let available = inspection.machine.memory_available;
    let memory = inspection.limits.memory.map_or(available, |limit| limit.min(available));
    let file = match inspection.chain.kind {
        TargetKind::File => inspection.files.first().map(|file| file.size),
        _ => None,
    };
    if file.is_some_and(|size| size >= memory) {
        return None;
    }
    Some(Trap::SmallData { file, memory })
}

pub(super) fn limits(inspection: &Inspection) -> Option<Trap> {
    let limits = &inspection.limits;
    let cpus = limits.cpu_us.map(|(quota, period)| quota as f64 / period.max(1) as f64);
    let memory = limits.memory.filter(|limit| *limit < inspection.machine.memory);
    let devices: Vec<DeviceNumber> = inspection.chain.devices().map(|it| it.number).collect();
    let io: Vec<String> =
        limits.io.iter().filter(|line| is_about(line, &devices)).cloned().collect();
    (cpus.is_some() || memory.is_some() || !io.is_empty()).then_some(())?;
    Some(Trap::GroupLimit { cpus, memory, io })
}

pub(super) fn no_pressure(inspection: &Inspection) -> Option<Trap> {
    inspection.machine.io_pressure.is_none().then_some(())?;
    Some(Trap::NoPressure)
}

pub(super) fn busy(inspection: &Inspection) -> Option<Trap> {
    let machine = &inspection.machine;
    let waiting = machine.io_pressure.filter(|share| *share > 10.0);
    let loaded = machine.load > 1.5 * f64::from(machine.cpus.max(1));
    let load = match waiting {
        Some(percent) => OtherLoad::Pressure { percent },
        None if loaded => OtherLoad::Average { load: machine.load, cpus: machine.cpus },
        None => return None,
    };
    Some(Trap::BusyHost { load })
}

pub(super) fn frequency(inspection: &Inspection) -> Option<Trap> {
    let governor = inspection.machine.governor.as_deref()?;
    (governor != "performance").then_some(())?;
    Some(Trap::Frequency { governor: governor.to_owned() })
}

pub(super) fn steal(inspection: &Inspection) -> Option<Trap> {
    let share = inspection.machine.steal_percent;
    (share >= 0.5).then_some(())?;
    Some(Trap::Steal { percent: share })
}
