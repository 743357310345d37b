//! What load goes to: a scratch file, a loop device, or a block device.

use super::{RealWorld, fatal};
use crate::{Watcher, WorldError};
use host::{Changes, ClearedDevice, DeviceNumber, Host, LoopOptions, QueueFolder, Setting};
use load::{LayOut, LoadError, Target, lay_out};
use plan::{Level, Plan};
use std::{collections::BTreeMap, path::Path, sync::atomic::AtomicBool};
use units::Bytes;

/// Something load can go to.
pub struct Stage {
    /// The file or device.
    pub target: Target,
    /// The device whose settings are varied; none where there is none.
    pub device: Option<DeviceNumber>,
    /// The other devices below that have settings: they must stay what they are.
    pub below: Vec<DeviceNumber>,
    /// The device's settings before anything was changed.
    pub before: BTreeMap<Setting, String>,
}

/// A stage for each filesystem that is compared; a single one without a name where none is.
pub struct Stages {
    all: BTreeMap<Option<Level>, Stage>,
    current: Option<Level>,
    /// The user's block device, held exclusively as long as we write to it.
    _held: Option<ClearedDevice>,
}

impl Stages {
    /// Makes and lays out what the plan needs.
    pub fn prepare(
        world: &RealWorld,
        changes: &mut Changes,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Stages, WorldError> {
        let mut fill = |path: &Path, size: Bytes| fill(path, size, plan.seed, stop, watcher);
        let Some(folder) = world.folder() else {
            let held = cleared(world)?;
            fill(&held.node, plan.size)?;
            let target = held_target(&held, plan.size)?;
            let stage = Stage::on(&world.host, target, &world.chain.scheduled)?;
            return Ok(Stages::one(stage, Some(held)));
        };
        let scratch = changes.scratch_folder(&folder).map_err(fatal)?;
        let file = scratch.path.join("data");
        fill(&file, plan.size)?;
        if !world.own_loop {
            let target = Target::new(file, plan.size);
            let stage = Stage::on(&world.host, target, &world.chain.scheduled)?;
            return Ok(Stages::one(stage, None));
        }
        let device = changes.attach(&file, LoopOptions::default()).map_err(fatal)?;
        let mut scheduled = vec![device.number];
        scheduled.extend(&world.chain.scheduled);
        let target = Target::new(&device.node, plan.size);
        Ok(Stages::one(Stage::on(&world.host, target, &scheduled)?, None))
    }

    fn one(stage: Stage, held: Option<ClearedDevice>) -> Stages {
        Stages { all: BTreeMap::from([(None, stage)]), current: None, _held: held }
    }

    /// The stage in use.
    pub fn current(&self) -> Option<&Stage> {
        self.all.get(&self.current)
    }
}

impl Stage {
    /// On the first of `scheduled`, whose settings are noted.
    fn on(
        host: &Host,
        target: Target,
        scheduled: &[DeviceNumber],
    ) -> Result<Stage, WorldError> {
        let device = scheduled.first().copied();
        let before = match device {
            Some(number) => QueueFolder::of(host, number).map_err(fatal)?.read_all(),
            None => BTreeMap::new(),
        };
        let below = scheduled.iter().skip(1).copied().collect();
        Ok(Stage { target, device, below, before })
    }
}

/// The user's block device, once every guard clears it.
fn cleared(world: &RealWorld) -> Result<ClearedDevice, WorldError> {
    let cleared = host::clear(&world.host, &world.target, world.confirm.as_deref());
    cleared.map_err(fatal)?.map_err(|objections| {
        let all: Vec<String> = objections
            .iter()
            .map(|objection| format!("  {} ({}); {}", objection.what, objection.why, objection.mend))
            .collect();
        WorldError::Usage(format!(
            "{} would be overwritten, and is not:\n{}",
            world.target.display(),
            all.join("\n")
        ))
    })
}

/// A target that goes on meaning the device that was cleared.
fn held_target(held: &ClearedDevice, size: Bytes) -> Result<Target, WorldError> {
    let device_fd = held
        .file()
        .try_clone()
        .map_err(|error| WorldError::Fatal(format!("cannot hold {}: {error}", held.node.display())))?;
    Ok(Target { path: held.node.clone(), size, device_fd: Some(device_fd.into()) })
}

/// Writes the span full of random data, so that no trial measures holes or first allocations.
fn fill(
    path: &Path,
    size: Bytes,
    seed: u64,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<(), WorldError> {
    let plan = LayOut { path, size, seed, reuse: false };
    match lay_out(&plan, &mut |done| watcher.laying_out(done, size), stop) {
        Ok(_) => Ok(()),
        Err(LoadError::Stopped) => Err(WorldError::Interrupted),
        Err(error) => Err(WorldError::Fatal(error.to_string())),
    }
}
