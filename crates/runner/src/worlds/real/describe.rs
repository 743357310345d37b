//! The host in words: environment, intentions, limits.

use super::{
    super::recorded,
    RealTarget, databases, settings,
    stage::{filesystem_needs, filesystems, host_kind},
};
use crate::WorldError;
use host::{DirectIoSupport, Machine, Surroundings, TrapKind};
use plan::{Cell, Factor, Filesystem, FilesystemKind, Intention, Level, Plan, Refusal, SizeLimit};
use record::{Aspect, Caveat, Environment, Fact, WorldKind};
use scheduler::{KernelVersion, SchedulerKind};
use std::{collections::BTreeSet, path::Path};
use units::Bytes;
use workload::EngineKind;

/// How large the scratch span may be, and what limits it.
pub fn size_limit(target: &RealTarget) -> Result<(Bytes, SizeLimit), WorldError> {
    let Some(folder) = target.folder() else {
        let size = target.chain.devices().next().map_or(Bytes::ZERO, |device| device.size);
        let device = target.path.display().to_string();
        return Ok((size, SizeLimit::Capacity { device, size, journal: None }));
    };
    host::check_room(&folder, Bytes::ZERO).map_err(WorldError::usage)?;
    let free = target.chain.filesystem().map_or(Bytes::ZERO, |filesystem| filesystem.available);
    let kept = Bytes(host::KEEP_FREE.0.max(free.0 / 50) + Bytes::from_mib(64).0);
    let limit = Bytes(free.0.saturating_sub(kept.0));
    let directory = folder.display().to_string();
    Ok((limit, SizeLimit::FreeSpace { directory, free, kept }))
}

/// What will be changed or made.
pub fn intentions(target: &RealTarget, plan: &Plan) -> Vec<Intention> {
    let mut all = Vec::new();
    let filesystems = filesystems(target, plan).len();
    let device = || target.path.display().to_string();
    match target.folder() {
        Some(folder) if plan.is_of_databases() && !target.own_loop => {
            all.extend(plan.beside_size().map(|size| Intention::LayOut { files: 1, size, folder }));
        }
        Some(folder) => all.push(Intention::LayOut {
            files: filesystems.max(1),
            size: match filesystems {
                0 => plan.size,
                _ => plan.size + filesystem_needs(plan.size),
            },
            folder,
        }),
        None => all.push(Intention::Overwrite {
            device: device(),
            size: (!plan.is_of_databases()).then_some(plan.size),
        }),
    }
    if target.own_loop {
        all.push(Intention::AttachLoop { devices: filesystems.max(1) });
    }
    all.extend(intentions_beside_scratch(target, plan));
    all
}

/// The same without scratch files, devices that are overwritten and loop devices.
pub fn intentions_beside_scratch(target: &RealTarget, plan: &Plan) -> Vec<Intention> {
    let mut all = Vec::new();
    for level in filesystems(target, plan) {
        all.extend(level.0.parse().ok().map(|filesystem| Intention::MakeFilesystem { filesystem }));
    }
    all.extend(plan.page_cache.map(|limit| Intention::BoundPageCache { limit }));
    all.extend(write_back(target, plan));
    if plan.is_of_databases() {
        all.extend(databases::intentions(target, plan));
    }
    all.extend(target.trace.as_ref().and_then(|trace| recorded::intention(trace, plan)));
    let factors: BTreeSet<Factor> =
        plan.cells.iter().flat_map(Cell::host_settings).map(|(factor, _)| factor.clone()).collect();
    let names_throttling = factors.contains(&Factor::WbtLatUsec);
    let schedulers: BTreeSet<&str> = plan
        .cells
        .iter()
        .filter_map(|cell| cell.level(&Factor::Scheduler))
        .map(|level| level.0.as_str())
        .collect();
    let unthrottled = schedulers.len() > 1
        && schedulers.contains(SchedulerKind::Bfq.name())
        && !names_throttling
        && write_back(target, plan).is_some();
    let loadable = host::loadable_schedulers(&target.host);
    let loaded: Vec<String> = loadable
        .iter()
        .map(|kind| kind.name().to_owned())
        .filter(|name| schedulers.contains(name.as_str()))
        .collect();
    if !loaded.is_empty() {
        all.push(Intention::LoadSchedulers { schedulers: loaded });
    }
    if !factors.is_empty() {
        let of_target =
            || target.chain.varied_devices().map(|it| it.name.clone()).collect::<Vec<_>>();
        if names_throttling && !target.own_loop {
            all.push(Intention::ThrottlingByHand { devices: of_target() });
        }
        all.extend(unthrottled.then_some(Intention::BfqUnthrottled));
        all.push(Intention::ChangeSettings {
            factors: factors.into_iter().collect(),
            devices: if target.own_loop { Vec::new() } else { of_target() },
        });
    }
    all
}

/// What write-back between trials may take, where jobs leave dirty pages.
fn write_back(target: &RealTarget, plan: &Plan) -> Option<Intention> {
    let left = |cell: &Cell| {
        let (workload, engine) = plan.workload_of(cell).ok()?;
        let jobs = workload.jobs(plan.size).skip(usize::from(target.trace.is_some()));
        let dirty = jobs.filter(|(job, _)| job.pattern.writes() && job.sync.leaves_dirty_pages());
        (engine != EngineKind::Null).then(|| dirty.map(|(_, span)| span).max()).flatten()
    };
    let span = plan.cells.iter().filter_map(left).max()?;
    let machine = Machine::read(&target.host);
    let memory = plan.page_cache.unwrap_or(machine.memory_available);
    Some(Intention::WriteBack { limit: span.min(machine.dirty.most(memory)) })
}

/// Why a cell's workload cannot be run here.
pub fn refuse_workload(target: &RealTarget, plan: &Plan, cell: &Cell) -> Option<Refusal> {
    let (workload, engine) = match plan.workload_of(cell) {
        Ok(found) => found,
        Err(error) => return Some(Refusal::Workload { message: error.to_string() }),
    };
    if let Some(trace) = &target.trace
        && let Some(refusal) = refuse_trace(target, trace, plan, cell)
    {
        return Some(refusal);
    }
    if engine == EngineKind::Null {
        return None;
    }
    if let Some(Level(text)) = cell.level(&Factor::Filesystem)
        && let Some(reason) =
            refuse_filesystem(plan, text).or_else(|| refuse_room(target, plan, text))
    {
        return Some(reason);
    }
    if workload.database.is_some()
        && let Some(refusal) = databases::refuse(target, plan, &workload)
    {
        return Some(refusal);
    }
    // A trace takes the measured job's place.
    for (job, span) in workload.jobs(plan.size).skip(usize::from(target.trace.is_some())) {
        if engine == EngineKind::Sync && job.depth > 1 {
            return Some(Refusal::DepthOfSync { depth: job.depth, clients: job.clients });
        }
        if job.sync.direct
            && let Some(reason) = refuse_direct(target, cell, job.block_size)
        {
            return Some(reason);
        }
        if job.sync.dont_cache
            && let Some(reason) = refuse_dont_cache(target, cell, engine)
        {
            return Some(reason);
        }
        if job.block_size > span {
            return Some(Refusal::BlockTooLarge { block: job.block_size, span });
        }
    }
    None
}

/// A trace may not fit, or not be what direct I/O here takes.
fn refuse_trace(
    target: &RealTarget,
    trace: &trace::Trace,
    plan: &Plan,
    cell: &Cell,
) -> Option<Refusal> {
    let (workload, engine) = plan.workload_of(cell).ok()?;
    recorded::check(Some(trace), plan, cell)
        .err()
        .or_else(|| recorded::check_engine(&workload, engine))
        .or_else(|| match engine {
            EngineKind::Null => None,
            _ => refuse_direct(target, cell, trace.multiple().bytes()),
        })
}

/// Each filesystem has a scratch file of its own, and all must fit at once.
fn refuse_room(target: &RealTarget, plan: &Plan, text: &str) -> Option<Refusal> {
    if !target.own_loop {
        return None;
    }
    let mut all = filesystems(target, plan);
    let this = Level(text.to_owned());
    if !all.contains(&this) {
        all.push(this);
    }
    let each = plan.size + filesystem_needs(plan.size);
    let needed = each * all.len() as u64;
    let (limit, why) = size_limit(target).ok()?;
    (needed > limit).then(|| Refusal::NoRoomForFilesystems {
        filesystems: all.len(),
        each,
        limit: why.to_string(),
    })
}

/// Its mkfs program may be missing, or want more room.
fn refuse_filesystem(plan: &Plan, text: &str) -> Option<Refusal> {
    let wanted: Filesystem = text.parse().ok()?;
    let room = plan.size + filesystem_needs(plan.size);
    let checked = host_kind(wanted.kind).check(room);
    checked.err().map(|error| Refusal::Filesystem {
        filesystem: text.to_owned(),
        message: error.to_string(),
    })
}

/// O_DIRECT takes multiples of what the kernel names, or of the device's logical block.
fn refuse_direct(target: &RealTarget, cell: &Cell, block_size: Bytes) -> Option<Refusal> {
    if let Some(Level(text)) = cell.level(&Factor::Filesystem) {
        let kind = text.parse::<Filesystem>().map(|filesystem| filesystem.kind);
        let small = kind == Ok(FilesystemKind::Btrfs) && !block_size.0.is_multiple_of(4096);
        return small.then(|| Refusal::NotAligned {
            block: block_size,
            needed: Bytes(4096),
            source_of_limit: "the sector of btrfs".to_owned(),
        });
    }
    let said = match target.own_loop {
        true => None,
        false => target.chain.direct_io.as_ref().map(|direct| direct.support),
    };
    let (needed, who) = match said {
        Some(DirectIoSupport::No) => {
            return Some(Refusal::NoDirectIo { target: target.path.display().to_string() });
        }
        Some(DirectIoSupport::Aligned { offset, .. }) => {
            (offset, "says the kernel, STATX_DIOALIGN")
        }
        Some(DirectIoSupport::Unknown) | None => {
            let device = target.chain.first_varied_device()?;
            (device.queue.as_ref()?.logical_block?, "the device's logical block")
        }
    };
    (!block_size.0.is_multiple_of(needed.0.max(1))).then(|| Refusal::NotAligned {
        block: block_size,
        needed,
        source_of_limit: who.to_owned(),
    })
}

/// The kernel that has RWF_DONTCACHE first.
const DONT_CACHE_SINCE: KernelVersion = KernelVersion::new(6, 14, 0);

fn running_kernel(target: &RealTarget) -> Option<KernelVersion> {
    target.host.text("/proc/sys/kernel/osrelease")?.parse().ok()
}

/// RWF_DONTCACHE takes a kernel, a filesystem and, with fio, a version that have it.
fn refuse_dont_cache(target: &RealTarget, cell: &Cell, engine: EngineKind) -> Option<Refusal> {
    if engine == EngineKind::Fio && load::fio_takes("uncached").is_ok_and(|takes| !takes) {
        let (option, since) = ("uncached".to_owned(), "3.39".to_owned());
        return Some(Refusal::NoFioOption { option, since });
    }
    let made = cell.level(&Factor::Filesystem);
    let refused = |target: String| Some(Refusal::NoDontCache { target });
    if made.is_none() && !target.own_loop {
        let asked = target.folder().unwrap_or_else(|| target.chain.target.clone());
        let takes = load::takes_dont_cache(&asked);
        // What cannot be opened is refused elsewhere, with its own reason.
        return if takes.unwrap_or(true) {
            None
        } else {
            refused(target.path.display().to_string())
        };
    }
    // What load will go to is not there yet.
    match made {
        Some(Level(text)) => {
            let kind = text.parse::<Filesystem>().ok()?.kind;
            let version = running_kernel(target)?;
            // btrfs of 6.18 was asked and does not take it; what a later one does, the first trial tells.
            let lacks = kind == FilesystemKind::Btrfs && version < KernelVersion::new(6, 19, 0);
            if lacks || version < DONT_CACHE_SINCE { refused(text.clone()) } else { None }
        }
        None => match block_devices_take_dont_cache(target) {
            Some(false) => refused("a loop device".to_owned()),
            Some(true) | None => None,
        },
    }
}

/// Asked of a device that may be read: the kernel answers alike for all block devices. Loop devices are there to
/// be opened also where no file is attached.
fn block_devices_take_dont_cache(target: &RealTarget) -> Option<bool> {
    let below = target.chain.devices().map(|device| device.name.clone());
    let loops = target.host.names("/sys/block").into_iter().filter(|name| name.starts_with("loop"));
    let takes = |name: String| load::takes_dont_cache(&Path::new("/dev").join(name)).ok();
    below.chain(loops).find_map(takes)
}

/// Traps that make the figures of a run misleading. The others concern the set-up of a comparison, and
/// `spindle inspect` shows them.
const TRAPS_OF_FIGURES: &[TrapKind] = &[
    TrapKind::UnfinishedRun,
    TrapKind::Memory,
    TrapKind::Overlay,
    TrapKind::Network,
    TrapKind::FileServer,
    TrapKind::CacheAnswers,
    TrapKind::BufferedLoop,
    TrapKind::NoBarrier,
    TrapKind::WriteThroughByHand,
    TrapKind::NotCounted,
    TrapKind::SharedDevice,
    TrapKind::GroupLimit,
    TrapKind::BusyHost,
    TrapKind::Steal,
];

/// Where the run is made.
pub fn environment(target: &RealTarget, plan: &Plan) -> Result<Environment, WorldError> {
    let inspection =
        host::Inspection::of(&target.host, &target.path, false).map_err(WorldError::fatal)?;
    let mut settings = settings::recorded(target);
    settings.extend(databases::recorded(target, plan));
    let matters = |kind: TrapKind| {
        let direct = kind == TrapKind::DirectIsBuffered && plan.workload.job.sync.direct;
        TRAPS_OF_FIGURES.contains(&kind) || (direct && !target.own_loop)
    };
    let mut caveats: Vec<Caveat> = inspection
        .traps
        .iter()
        .filter(|trap| matters(trap.kind()))
        .map(|trap| Caveat::Trap {
            id: trap.id().to_owned(),
            title: trap.title().to_owned(),
            evidence: trap.evidence(),
        })
        .collect();
    caveats.extend(target.caveats());
    caveats.extend(target.trace.iter().flat_map(|trace| recorded::caveats(trace, plan)));
    caveats.extend(placed_once(target, plan));
    let machine = &inspection.machine;
    let surroundings = Surroundings::read(&target.host, &inspection.chain);
    let (boot_id, booted_at) = (surroundings.boot_id.clone(), surroundings.booted_at);
    let mut facts = facts(surroundings);
    facts.extend(databases::facts(target, plan));
    Ok(Environment {
        world: WorldKind::Real,
        spindle_version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: machine.hostname.clone(),
        kernel: machine.kernel.clone(),
        cpu: machine.cpu.clone(),
        cpus: machine.cpus,
        memory_bytes: machine.memory.0,
        target: plan.target.clone(),
        device: device_line(target),
        settings,
        caveats,
        boot_id,
        booted_at,
        facts,
        inspection: serde_json::to_value(&inspection).map_err(WorldError::fatal)?,
    })
}

/// In a folder each filesystem has a file of its own for the whole run. On a block device they are made one after
/// another, in the same place.
fn placed_once(target: &RealTarget, plan: &Plan) -> Option<Caveat> {
    let filesystems = filesystems(target, plan).len();
    (target.own_loop && filesystems > 1).then_some(Caveat::FilesystemsPlacedOnce {
        filesystems: u32::try_from(filesystems).unwrap_or(u32::MAX),
    })
}

/// What may change with a boot or an upgrade, for the record.
fn facts(surroundings: Surroundings) -> Vec<Fact> {
    let Surroundings {
        boot_id: _,
        booted_at: _,
        kernel_build,
        boot_line,
        microcode,
        mitigations,
        firmware,
        mount_options,
        module_parameters,
        sysctls,
        kernel_package,
    } = surroundings;
    let one = |aspect, name: &str, value: String| Fact { aspect, name: name.to_owned(), value };
    let mut facts = vec![
        one(Aspect::KernelBuild, Fact::KERNEL_BUILD, kernel_build),
        one(Aspect::BootLine, "words", boot_line),
    ];
    facts.extend(kernel_package.map(|(name, version)| {
        one(Aspect::Package, Fact::KERNEL_PACKAGE, format!("{name} {version}"))
    }));
    facts.extend(microcode.map(|value| one(Aspect::Microcode, "revision", value)));
    let named = [
        (Aspect::Mitigation, mitigations),
        (Aspect::Device, firmware),
        (Aspect::MountOptions, mount_options),
        (Aspect::ModuleParameter, module_parameters),
        (Aspect::Sysctl, sysctls),
    ];
    for (aspect, all) in named {
        facts.extend(all.into_iter().map(|(name, value)| Fact { aspect, name, value }));
    }
    facts
}

/// `/var/lib/mysql, ext4 on vda (virtio, 256 GiB), behind its own loop device`.
fn device_line(target: &RealTarget) -> String {
    let mut words = vec![target.path.display().to_string()];
    for layer in &target.chain.layers {
        words.push(match &layer.what {
            host::LayerKind::Filesystem(filesystem) => filesystem.mount.kind.clone(),
            host::LayerKind::Device(device) => match &device.model {
                Some(model) => format!("{} ({model}, {})", device.name, device.size),
                None => format!("{} ({}, {})", device.name, device.bus, device.size),
            },
        });
    }
    let line = words.join(" on ");
    if target.own_loop { format!("a loop device on {line}") } else { line }
}
