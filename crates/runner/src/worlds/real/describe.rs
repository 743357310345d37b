//! The host in words: environment, intentions, limits.

use super::{
    RealWorld, databases, settings,
    stage::{filesystem_needs, filesystems, host_kind},
};
use crate::WorldError;
use host::{BlockDevice, DirectIoSupport};
use plan::{Cell, EngineKind, Factor, Filesystem, FilesystemKind, Level, Plan};
use record::Environment;
use units::Bytes;

/// How large the scratch span may be, and why.
pub fn size_limit(world: &RealWorld) -> Result<(Bytes, String), WorldError> {
    let Some(folder) = world.folder() else {
        let size = world.chain.devices().next().map_or(Bytes::ZERO, |device| device.size);
        return Ok((size, format!("{} has {size}", world.target.display())));
    };
    host::check_room(&folder, Bytes::ZERO).map_err(super::usage)?;
    let free = world.chain.filesystem().map_or(Bytes::ZERO, |filesystem| filesystem.available);
    let keep = Bytes(host::KEEP_FREE.0.max(free.0 / 50) + Bytes::from_mib(64).0);
    let limit = Bytes(free.0.saturating_sub(keep.0));
    Ok((limit, format!("{} has {free} free, of which {keep} are left to others", folder.display())))
}

/// What will be changed or made.
pub fn intentions(world: &RealWorld, plan: &Plan) -> Vec<String> {
    let mut intentions = Vec::new();
    let name =
        |device: Option<&BlockDevice>| device.map_or("the device".into(), |d| d.name.clone());
    match world.folder() {
        Some(_) if plan.is_of_databases() && !world.own_loop => {}
        Some(folder) => {
            let files = filesystems(world, plan).len();
            let (what, them) = match files {
                0 | 1 => ("a scratch file".to_owned(), "it"),
                _ => (format!("{files} scratch files"), "them"),
            };
            let size = match files {
                0 => plan.size,
                _ => plan.size + filesystem_needs(plan.size),
            };
            let folder = folder.display();
            intentions.push(format!(
                "lay out {what} of {size} in {folder}, and remove {them} in the end"
            ));
        }
        None if plan.is_of_databases() => intentions
            .push(format!("OVERWRITE all of {} with a filesystem", world.target.display())),
        None => intentions.push(format!(
            "OVERWRITE the first {} of {}",
            plan.size,
            world.target.display()
        )),
    }
    if world.own_loop {
        let each = if filesystems(world, plan).len() < 2 { "it" } else { "each" };
        intentions.push(format!("attach a loop device to {each}, and detach it in the end"));
    }
    for level in filesystems(world, plan) {
        intentions
            .push(format!("make and mount the filesystem {level}, and unmount it in the end"));
    }
    if let Some(limit) = plan.page_cache {
        intentions.push(format!(
            "run in a control group of {limit} of page cache, and remove the group in the end"
        ));
    }
    if plan.is_of_databases() {
        intentions.extend(databases::intentions(world, plan));
    }
    let mut changed: Vec<String> = plan
        .cells
        .iter()
        .flat_map(Cell::host_settings)
        .map(|(factor, _)| factor.to_string())
        .collect();
    changed.sort_unstable();
    changed.dedup();
    if !changed.is_empty() {
        let device = match world.own_loop {
            true => "that device".to_owned(),
            false => name(world.chain.scheduled_device()),
        };
        intentions
            .push(format!("change {} of {device}, and put it back in the end", changed.join(", ")));
    }
    intentions
}

/// Why a cell's workload cannot be run here.
pub fn refuse_workload(world: &RealWorld, plan: &Plan, cell: &Cell) -> Option<String> {
    let (workload, engine) = match plan.workload_of(cell) {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    if engine == EngineKind::Null {
        return None;
    }
    if let Some(Level(text)) = cell.level(&Factor::Filesystem)
        && let Some(reason) =
            refuse_filesystem(plan, text).or_else(|| refuse_room(world, plan, text))
    {
        return Some(reason);
    }
    if workload.database.is_some() {
        return databases::refuse(world, plan, &workload);
    }
    for job in [Some(&workload.job), workload.background.as_ref()].into_iter().flatten() {
        if engine == EngineKind::Sync && job.depth > 1 {
            return Some(format!(
                "the engine sync has one operation outstanding a client, and depth {} was asked: use \
                 {} clients, or the engine io_uring",
                job.depth,
                job.depth * job.clients
            ));
        }
        if job.sync.direct
            && let Some(reason) = refuse_direct(world, cell, job.block_size)
        {
            return Some(reason);
        }
        if job.block_size > plan.size {
            return Some(format!("a block of {} does not fit into {}", job.block_size, plan.size));
        }
    }
    None
}

/// Each filesystem has a scratch file of its own, and all must fit at once.
fn refuse_room(world: &RealWorld, plan: &Plan, text: &str) -> Option<String> {
    if !world.own_loop {
        return None;
    }
    let mut all = filesystems(world, plan);
    let this = Level(text.to_owned());
    if !all.contains(&this) {
        all.push(this);
    }
    let each = plan.size + filesystem_needs(plan.size);
    let needed = each * all.len() as u64;
    let (limit, why) = size_limit(world).ok()?;
    (needed > limit).then(|| {
        format!(
            "{} filesystems need {each} each, {needed} together, and {why}: use a smaller --size, or \
             compare fewer at once",
            all.len()
        )
    })
}

/// Its mkfs program may be missing, or want more room.
fn refuse_filesystem(plan: &Plan, text: &str) -> Option<String> {
    let wanted: Filesystem = text.parse().ok()?;
    let checked = host_kind(&wanted).and_then(|kind| {
        kind.check(plan.size + filesystem_needs(plan.size)).map_err(|error| error.to_string())
    });
    checked.err()
}

/// O_DIRECT takes multiples of what the kernel names, or of the device's logical block.
fn refuse_direct(world: &RealWorld, cell: &Cell, block_size: Bytes) -> Option<String> {
    if let Some(Level(text)) = cell.level(&Factor::Filesystem) {
        let kind = text.parse::<Filesystem>().map(|filesystem| filesystem.kind);
        let small = kind == Ok(FilesystemKind::Btrfs) && !block_size.0.is_multiple_of(4096);
        return small.then(|| {
            format!(
                "{block_size} is no multiple of btrfs's 4 KiB sector, which O_DIRECT needs there"
            )
        });
    }
    let said = match world.own_loop {
        true => None,
        false => world.chain.direct_io.as_ref().map(|direct| direct.support),
    };
    let (needed, who) = match said {
        Some(DirectIoSupport::No) => {
            return Some(format!(
                "{} does not support O_DIRECT; use --sync buffered, osync, fsync or fdatasync",
                world.target.display()
            ));
        }
        Some(DirectIoSupport::Aligned { offset, .. }) => (offset, "the kernel (STATX_DIOALIGN)"),
        Some(DirectIoSupport::Unknown) | None => {
            let device = world.chain.scheduled_device()?;
            (device.queue.as_ref()?.logical_block?, "the device's logical block")
        }
    };
    (!block_size.0.is_multiple_of(needed.0.max(1))).then(|| {
        format!(
            "O_DIRECT needs multiples of {needed} here, says {who}: a block of {block_size} would not \
             be direct; use a multiple of {needed}, or another sync mode"
        )
    })
}

/// Traps that make the figures of a run say something else than they seem to; the others concern
/// whoever sets up the comparison, and `spindle inspect` tells them.
const TRAPS_OF_FIGURES: [&str; 12] = [
    "unfinished-run",
    "memory",
    "overlay",
    "network",
    "file-server",
    "cache-answers",
    "buffered-loop",
    "no-barrier",
    "shared-device",
    "group-limit",
    "busy-host",
    "steal",
];

/// Where the run is made.
pub fn environment(world: &RealWorld, plan: &Plan) -> Result<Environment, WorldError> {
    let inspection =
        host::Inspection::of(&world.host, &world.target, false).map_err(super::fatal)?;
    let mut settings: Vec<(String, String)> = match settings::queue(world) {
        Ok((folder, _)) => folder
            .read_all()
            .into_iter()
            .map(|(setting, value)| (setting.to_string(), value))
            .collect(),
        Err(_) => Vec::new(),
    };
    settings.extend(databases::recorded(world, plan));
    let matters = |id: &str| {
        let direct = id == "direct-is-buffered" && plan.workload.job.sync.direct;
        TRAPS_OF_FIGURES.contains(&id) || (direct && !world.own_loop)
    };
    let caveats = inspection
        .traps
        .iter()
        .filter(|trap| matters(&trap.id))
        .map(|trap| format!("{} ({})", trap.title, trap.evidence))
        .collect();
    let machine = &inspection.machine;
    Ok(Environment {
        world: "real".to_owned(),
        spindle_version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: machine.hostname.clone(),
        kernel: machine.kernel.clone(),
        cpu: machine.cpu.clone(),
        cpus: machine.cpus,
        memory_bytes: machine.memory.0,
        target: plan.target.clone(),
        device: device_line(world),
        settings,
        caveats,
        inspection: serde_json::to_value(&inspection)
            .map_err(|error| WorldError::Fatal(format!("the inspection: {error}")))?,
    })
}

/// `/var/lib/mysql, ext4 on vda (virtio, 256 GiB), behind its own loop device`.
fn device_line(world: &RealWorld) -> String {
    let mut words = vec![world.target.display().to_string()];
    for layer in &world.chain.layers {
        words.push(match &layer.what {
            host::LayerKind::Filesystem(filesystem) => filesystem.mount.kind.clone(),
            host::LayerKind::Device(device) => match &device.model {
                Some(model) => format!("{} ({model}, {})", device.name, device.size),
                None => format!("{} ({}, {})", device.name, device.bus, device.size),
            },
        });
    }
    let line = words.join(" on ");
    if world.own_loop { format!("a loop device on {line}") } else { line }
}
