//! What a preset stands for on the server and the storage of a comparison.

use super::super::RealTarget;
use crate::WorldError;
use database::{
    Catalog, Programs,
    presets::{self, Asked},
};
use host::{AtomicAnswer, AtomicUnits, AtomicUnsaid, AtomicWrites, NotAtomic};
use plan::{Factor, LeftOut, Level, PresetFacts, RawLevel, RawPlan, Refusal};
use std::{collections::BTreeMap, os::unix::fs::MetadataExt};
use units::Bytes;
use workload::{
    AtomicLimit, DatabaseJob, Preset, PresetLimit, PrivateServer, Server, VariableSet, WordError,
};

/// Why a preset stands for nothing here.
#[derive(Debug, thiserror::Error)]
enum NoPreset {
    #[error(
        "preset {preset} is of a database server, and no database workload is named: add one, such as \
         --workload oltp_read_write,server=mariadb"
    )]
    NoWorkload { preset: Preset },
    #[error(
        "preset {preset} is of one server, and the workloads run on {first} and {other}: compare them one \
         after the other"
    )]
    SeveralServers { preset: Preset, first: Server, other: Server },
    #[error(
        "preset {preset} sets variables of a server, and {url} is not one that Spindle started: let \
         Spindle run a private server, or set them there yourself"
    )]
    ForeignServer { preset: Preset, url: Server },
    #[error("preset {preset} has nothing to compare on {server} here:{}", list(left_out))]
    Nothing { preset: Preset, server: String, left_out: Vec<LeftOut> },
}

fn list(left_out: &[LeftOut]) -> String {
    let line = |it: &LeftOut| format!("\n  {}: {}", it.set.label(), it.reason);
    left_out.iter().map(line).collect()
}

/// What a preset stands for.
pub fn facts(
    target: &RealTarget,
    raw: &RawPlan,
    preset: Preset,
) -> Result<PresetFacts, WorldError> {
    let job = workload(raw, preset)?;
    let Some(kind) = job.server.private() else {
        return Err(WorldError::usage(NoPreset::ForeignServer { preset, url: job.server }));
    };
    let found = target.servers.find(target, raw.server_program.as_deref(), &job.server);
    let found = found.map_err(WorldError::usage)?.ok_or(NoPreset::NoWorkload { preset });
    let found = found.map_err(WorldError::usage)?;
    let (programs, catalog) = &*found;
    let facts = resolved(target, raw, preset, (kind, programs, catalog), &job)?;
    let beside = raw.factors.contains_key(&Factor::Variables.to_string());
    match facts.sets.len() < 2 && !beside {
        true => Err(WorldError::usage(NoPreset::Nothing {
            preset,
            server: facts.server,
            left_out: facts.left_out,
        })),
        false => Ok(facts),
    }
}

fn resolved(
    target: &RealTarget,
    raw: &RawPlan,
    preset: Preset,
    (kind, programs, catalog): (PrivateServer, &Programs, &Catalog),
    job: &DatabaseJob,
) -> Result<PresetFacts, WorldError> {
    let asked = Asked {
        kind,
        title: programs.title(),
        catalog,
        job,
        variables: &single_variables(raw),
        atomic: &|size| atomic(target, size),
        io_uring_disabled: io_uring_disabled(target, programs),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
    };
    let resolved = presets::resolve(preset, &asked);
    let (default, fixed) = (resolved.sets.first().cloned().unwrap_or_default(), resolved.fixed);
    let left_out = |(set, limit)| LeftOut { set, reason: Refusal::Preset { limit } };
    let mut facts = PresetFacts {
        preset,
        server: programs.title().to_owned(),
        fixed,
        sets: Vec::new(),
        left_out: resolved.left_out.into_iter().map(left_out).collect(),
    };
    for set in resolved.sets {
        let changed: BTreeMap<String, String> = set
            .variables
            .iter()
            .filter(|(name, value)| default.variables.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let check = |(name, value): (&String, &String)| {
            target.servers.check_value(programs, name, value).err()
        };
        match changed.iter().find_map(check) {
            None => facts.sets.push(set),
            Some(refused) => facts.left_out.push(LeftOut {
                set: VariableSet { name: set.name, variables: changed },
                reason: Refusal::Preset {
                    limit: PresetLimit::NotTaken {
                        server: programs.title().to_owned(),
                        complaint: refused.to_string(),
                    },
                },
            }),
        }
    }
    Ok(facts)
}

/// The workload that a preset is for: of several, the first, if all run on one server.
fn workload(raw: &RawPlan, preset: Preset) -> Result<DatabaseJob, WorldError> {
    let levels = raw.factors.get(&Factor::Workload.to_string());
    let named: Vec<DatabaseJob> = match (levels, &raw.workload) {
        (Some(levels), _) => levels
            .iter()
            .map(|level| level.text().parse())
            .collect::<Result<_, WordError>>()
            .map_err(WorldError::usage)?,
        (None, Some(job)) => vec![job.clone()],
        (None, None) => Vec::new(),
    };
    let Some(first) = named.first() else {
        return Err(WorldError::usage(NoPreset::NoWorkload { preset }));
    };
    match named.iter().find(|job| job.server != first.server) {
        Some(other) => Err(WorldError::usage(NoPreset::SeveralServers {
            preset,
            first: first.server.clone(),
            other: other.server.clone(),
        })),
        None => Ok(first.clone()),
    }
}

/// Variables that a plan sets in all its cells.
fn single_variables(raw: &RawPlan) -> BTreeMap<String, String> {
    let single = |(word, levels): (&String, &Vec<RawLevel>)| {
        let Ok(Factor::Variable { name }) = word.parse() else { return None };
        let [level] = levels.as_slice() else { return None };
        let Level(value) = Factor::Variable { name: name.clone() }.level(&level.text()).ok()?;
        Some((name, value))
    };
    raw.factors.iter().filter_map(single).collect()
}

/// Whether writes of a size are atomic where the data will be.
fn atomic(target: &RealTarget, size: Bytes) -> Result<(), AtomicLimit> {
    let writes = of_data(target).ok_or(AtomicLimit::NotMade)?;
    Err(match writes.map_err(|_| AtomicLimit::Unsaid)?.answer(size) {
        AtomicAnswer::ByDevice => return Ok(()),
        AtomicAnswer::ByFilesystem => AtomicLimit::WhenAsked,
        AtomicAnswer::No(NotAtomic::Device) => AtomicLimit::Device,
        AtomicAnswer::No(NotAtomic::Filesystem) => AtomicLimit::Filesystem,
        AtomicAnswer::No(NotAtomic::Above(max)) => AtomicLimit::Above { max },
        AtomicAnswer::No(NotAtomic::Below(_) | NotAtomic::Uneven) => AtomicLimit::OtherSizes,
        AtomicAnswer::Unsaid(AtomicUnsaid::Kernel) => AtomicLimit::Kernel,
        AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem) => AtomicLimit::Unsaid,
    })
}

/// The largest write that the device does atomically where the data will be, when it is asked for.
pub fn atomic_max(target: &RealTarget) -> Option<Bytes> {
    match of_data(target)?.ok()?.target {
        AtomicUnits::Sizes(sizes) => Some(sizes.max_by_device).filter(|max| *max > Bytes::ZERO),
        AtomicUnits::None | AtomicUnits::Unsaid => None,
    }
}

/// What the kernel says of the folder of the data; `None` where their filesystem is made for the run.
fn of_data(target: &RealTarget) -> Option<host::Result<AtomicWrites>> {
    let folder = target.folder().filter(|_| !target.own_loop)?;
    Some(AtomicWrites::of(&target.host, &folder))
}

/// The sysctl that keeps the server from io_uring: 1 keeps ordinary users from it, 2 everybody.
fn io_uring_disabled(target: &RealTarget, programs: &Programs) -> Option<u32> {
    let value = target.host.text("/proc/sys/kernel/io_uring_disabled")?.parse().ok()?;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let privileged = is_root && programs.user().is_none();
    match value {
        0 => None,
        1 if privileged => None,
        value => Some(value),
    }
}
