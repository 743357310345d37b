//! Applying what a run recommends: on which devices of this host, what would change, what speaks against
//! it, and making it so as trials do.

use super::settings::{self, Known};
use crate::WorldError;
use host::{BlockDevice, Chain, Changes, Host, Identity, KeptSetting, QueueFolder, Setting};
use plan::{Cell, Factor, Level, Refusal};
use record::{Run, WorldKind};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What applying a cell would do.
#[derive(Debug)]
pub struct Intended {
    /// On each device.
    pub devices: Vec<IntendedDevice>,
    /// What speaks against it: the user has to say that it shall be done all the same.
    pub objections: Vec<ApplyObjection>,
}

/// What applying a cell would do to one device.
#[derive(Debug)]
pub struct IntendedDevice {
    /// The device.
    pub device: BlockDevice,
    /// What would be another, each before what it moves.
    pub changes: Vec<IntendedChange>,
    /// What the cell names, and has to be in force afterwards.
    pub named: BTreeMap<Setting, String>,
    /// All settings during the trials of the cell.
    measured: BTreeMap<Setting, String>,
}

/// A setting that would be another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntendedChange {
    /// Which.
    pub setting: Setting,
    /// What it is.
    pub now: String,
    /// What it would be.
    pub then: String,
    /// Whether it only follows: the kernel gives it this value with another.
    pub follows: bool,
}

/// A setting that is another than during the trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Of which device.
    pub device: String,
    /// Which.
    pub setting: Setting,
    /// What it was in the trials.
    pub measured: String,
    /// What it is.
    pub reads: String,
}

/// What speaks against applying a run here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyObjection {
    /// It did not measure this host's storage.
    #[error("the run is {world}: it did not measure this host's storage")]
    World {
        /// The world.
        world: WorldKind,
    },
    /// It measured a loop device of its own.
    #[error(
        "the run put its file behind a loop device of its own, whose settings it varied: the disk below \
         was not compared"
    )]
    OwnLoop,
    /// It was made on another host.
    #[error("the run was made on the host {was}, and this is {is}")]
    Host {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// It was made under another kernel.
    #[error("the run was made under Linux {was}, and this is {is}")]
    Kernel {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// It was made on another device.
    #[error("the run measured {was}, and {is} is another device")]
    Device {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
}

/// Why a run cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Nothing that it recommends is a setting of a device.
    #[error(
        "the recommendation changes no setting of a device, and nothing else can be applied: {changes} \
         is chosen where the database is set up or configured"
    )]
    NoHostSetting {
        /// What it changes.
        changes: String,
    },
    /// The devices are not known.
    #[error("{}; name the device to set with --device", objections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoDevice {
        /// Why.
        objections: Vec<ApplyObjection>,
    },
    /// The device is not here.
    #[error(
        "{device}, which the run measured, is not on this host, or cannot be recognised because it has \
         neither serial number nor world-wide name; name the device to set with --device"
    )]
    Gone {
        /// Its name and number.
        device: String,
    },
    /// What was named has no queue.
    #[error("{}: no device there has a scheduler", path.display())]
    NoQueue {
        /// What was named.
        path: PathBuf,
    },
    /// The kernel would not take it.
    #[error("{device}: {reason}")]
    Refused {
        /// Which device.
        device: String,
        /// Why.
        reason: Refusal,
    },
    /// It names what is no setting.
    #[error(transparent)]
    NoSetting(#[from] host::NotASetting),
    /// The host did not answer.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A setting could not be made.
    #[error(transparent)]
    Setting(#[from] WorldError),
}

impl Intended {
    /// What applying a cell of a run would do, on the devices that it measured or on those below
    /// `device`.
    pub fn of(
        host: &Host,
        run: &Run,
        cell: usize,
        device: Option<&Path>,
    ) -> Result<Intended, ApplyError> {
        let cell_levels = &run.plan.cells[cell];
        if cell_levels.host_settings().next().is_none() {
            let changes = run.plan.cells[cell].phrase(&run.plan.compared());
            return Err(ApplyError::NoHostSetting { changes });
        }
        let mut objections = objections(host, run);
        let measured = measured_devices(run);
        let devices = match device {
            Some(path) => named_devices(host, path, &measured, &mut objections)?,
            None => found_devices(host, &measured, &objections)?,
        };
        let intended =
            |(place, device): (usize, BlockDevice)| intended_device(host, run, cell, place, device);
        let devices =
            devices.into_iter().enumerate().map(intended).collect::<Result<_, ApplyError>>()?;
        Ok(Intended { devices, objections })
    }

    /// Whether anything would be another.
    pub fn changes_anything(&self) -> bool {
        self.devices.iter().any(|device| !device.changes.is_empty())
    }

    /// Makes it so, and gives what has to be in force from now on.
    pub fn apply(
        &self,
        changes: &mut Changes,
        cell: &Cell,
    ) -> Result<Vec<KeptSetting>, ApplyError> {
        let numbers: Vec<_> = self.devices.iter().map(|it| it.device.number).collect();
        // Not under a run that measures there now.
        changes.claim(&numbers)?;
        let mut kept = Vec::new();
        for IntendedDevice { device, named, .. } in &self.devices {
            let folder = QueueFolder::of(changes.host(), device.number)?;
            let mut known = Known::of(folder.read_all());
            settings::apply(changes, device.number, &mut known, cell)?;
            for setting in named.keys() {
                kept.push(KeptSetting {
                    device: Identity::of(device),
                    setting: setting.clone(),
                    value: folder.read(setting)?,
                });
            }
        }
        Ok(kept)
    }

    /// What is another now than it was during the trials.
    pub fn deviations(&self, host: &Host) -> Vec<Deviation> {
        let mut all = Vec::new();
        for IntendedDevice { device, measured, .. } in &self.devices {
            let Ok(folder) = QueueFolder::of(host, device.number) else { continue };
            for (setting, was) in measured {
                let reads = folder.read(setting).unwrap_or_else(|error| error.to_string());
                if reads != *was {
                    all.push(Deviation {
                        device: device.name.clone(),
                        setting: setting.clone(),
                        measured: was.clone(),
                        reads,
                    });
                }
            }
        }
        all
    }
}

fn objections(host: &Host, run: &Run) -> Vec<ApplyObjection> {
    let environment = &run.environment;
    let mut all = Vec::new();
    if environment.world != WorldKind::Real {
        all.push(ApplyObjection::World { world: environment.world });
        return all;
    }
    if run.plan.own_loop {
        all.push(ApplyObjection::OwnLoop);
    }
    let now = |file: &str| host.text(file).unwrap_or_default();
    let hostname = now("/proc/sys/kernel/hostname");
    if hostname != environment.hostname {
        all.push(ApplyObjection::Host { was: environment.hostname.clone(), is: hostname });
    }
    let kernel = now("/proc/sys/kernel/osrelease");
    if kernel != environment.kernel {
        all.push(ApplyObjection::Kernel { was: environment.kernel.clone(), is: kernel });
    }
    all
}

/// The devices whose settings the run varied.
fn measured_devices(run: &Run) -> Vec<Identity> {
    let chain = run.environment.inspection.get("chain").cloned().unwrap_or_default();
    let chain = serde_json::from_value::<Chain>(chain).ok();
    let real = run.environment.world == WorldKind::Real && !run.plan.own_loop;
    let of = |chain: Chain| chain.varied_devices().map(Identity::of).collect();
    chain.filter(|_| real).map(of).unwrap_or_default()
}

fn named_devices(
    host: &Host,
    path: &Path,
    measured: &[Identity],
    objections: &mut Vec<ApplyObjection>,
) -> Result<Vec<BlockDevice>, ApplyError> {
    let chain = Chain::of(host, path)?;
    let devices: Vec<BlockDevice> = chain.varied_devices().cloned().collect();
    if devices.is_empty() {
        return Err(ApplyError::NoQueue { path: path.to_owned() });
    }
    for device in &devices {
        let now = Identity::of(device);
        let same = |was: &Identity| was.find_again(host).is_some_and(|it| it.number == now.number);
        if let Some(was) = measured.first().filter(|_| !measured.iter().any(same)) {
            objections.push(ApplyObjection::Device { was: was.title(), is: now.title() });
        }
    }
    Ok(devices)
}

fn found_devices(
    host: &Host,
    measured: &[Identity],
    objections: &[ApplyObjection],
) -> Result<Vec<BlockDevice>, ApplyError> {
    if measured.is_empty() {
        return Err(ApplyError::NoDevice { objections: objections.to_vec() });
    }
    measured
        .iter()
        .map(|was| {
            let gone = || ApplyError::Gone { device: was.title() };
            let now = was.find_again(host).ok_or_else(gone)?;
            Ok(BlockDevice::read(host, now.number)?)
        })
        .collect()
}

fn intended_device(
    host: &Host,
    run: &Run,
    cell: usize,
    place: usize,
    device: BlockDevice,
) -> Result<IntendedDevice, ApplyError> {
    let levels = &run.plan.cells[cell];
    let folder = QueueFolder::of(host, device.number)?;
    if let Some(reason) = settings::refuse_on(&folder, levels) {
        return Err(ApplyError::Refused { device: device.title(), reason });
    }
    let now = folder.read_all();
    let named = named_settings(&folder, levels)?;
    let other_scheduler = named.get(&Setting::Scheduler) != now.get(&Setting::Scheduler)
        && levels.level(&Factor::Scheduler).is_some();
    let measured = measured_settings(run, cell, place, &device);
    let mut then = now.clone();
    if other_scheduler {
        // The tunables of the one go with it.
        then.retain(|setting, _| !matches!(setting, Setting::Tunable(_)));
    }
    // What the kernel gives with what is changed; where the rest is another than in the trials, it stays so.
    let changed: Vec<&Setting> =
        named.iter().filter(|(it, value)| now.get(it) != Some(*value)).map(|(it, _)| it).collect();
    let follows = |setting: &Setting| {
        // A tunable of another scheduler than the trials' does not come along.
        (other_scheduler || now.contains_key(setting))
            && changed.iter().any(|it| setting.is_moved_by(it))
    };
    then.extend(measured.clone().into_iter().filter(|(setting, _)| follows(setting)));
    then.extend(named.clone());
    let changes = then
        .iter()
        .filter(|(setting, value)| now.get(setting) != Some(value))
        .map(|(setting, value)| IntendedChange {
            setting: setting.clone(),
            now: now.get(setting).cloned().unwrap_or_else(|| "-".to_owned()),
            then: value.clone(),
            follows: !named.contains_key(setting),
        })
        .collect();
    Ok(IntendedDevice { device, changes, named, measured })
}

/// What a cell names, as the kernel would take it: what a run file says is nowhere written as it stands there.
fn named_settings(
    folder: &QueueFolder,
    levels: &Cell,
) -> Result<BTreeMap<Setting, String>, ApplyError> {
    let scheduler = levels.level(&Factor::Scheduler).map(|level| level.0.as_str());
    let mut named = BTreeMap::new();
    for (factor, Level(value)) in levels.host_settings() {
        let Some(setting) = settings::setting(factor) else { continue };
        let setting: Setting = setting.to_string().parse()?;
        let under = match factor {
            Factor::Tunable { scheduler, .. } => Some(scheduler.as_str()),
            _ => scheduler,
        };
        let taken = folder.check(&setting, value, under).map_err(host::Error::from)?;
        named.insert(setting, taken);
    }
    Ok(named)
}

/// The settings that the kernel showed in the last trial of a cell that counts; of what a scheduler
/// moves, or the cell names. Others may rightly have changed since.
fn measured_settings(
    run: &Run,
    cell: usize,
    place: usize,
    device: &BlockDevice,
) -> BTreeMap<Setting, String> {
    let prefix = settings::prefix(place, device.number);
    let mut trials = run.trials.iter().rev();
    let last = trials.find(|it| it.id.cell == cell && it.measurement().is_some());
    let of = |(name, value): &(String, String)| {
        let setting: Setting = name.strip_prefix(&prefix)?.parse().ok()?;
        let moved = setting.is_moved_by(&Setting::Scheduler);
        (moved || setting == Setting::Scheduler).then(|| (setting, value.clone()))
    };
    last.map(|trial| trial.applied.iter().filter_map(of).collect()).unwrap_or_default()
}
