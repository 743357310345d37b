//! Levels of host settings: what there is, what would be refused, making them so.

use super::RealTarget;
use crate::WorldError;
use host::{ASYNC_DEPTH, BlockDevice, Changes, DeviceNumber, Host, QueueFolder, Setting};
use plan::{Cell, Factor, Level, Offer, Refusal};
use std::collections::{BTreeMap, btree_map::Entry};

/// The kernel's setting for a factor; none for factors that are no host settings.
pub fn setting(factor: &Factor) -> Option<Setting> {
    Some(match factor {
        Factor::Scheduler => Setting::Scheduler,
        Factor::NrRequests => Setting::NrRequests,
        Factor::AsyncDepth => Setting::AsyncDepth,
        Factor::Tunable { name, .. } => Setting::Tunable(name.clone()),
        Factor::WbtLatUsec => Setting::WbtLatUsec,
        Factor::ReadAheadKb => Setting::ReadAheadKb,
        Factor::Nomerges => Setting::Nomerges,
        Factor::RqAffinity => Setting::RqAffinity,
        _ => return None,
    })
}

const SETTABLE: [Factor; 7] = [
    Factor::Scheduler,
    Factor::NrRequests,
    Factor::AsyncDepth,
    Factor::WbtLatUsec,
    Factor::ReadAheadKb,
    Factor::Nomerges,
    Factor::RqAffinity,
];

/// What a loop device is set to that nobody has used yet (read from new devices of Linux 6.18).
const FRESH_LOOP: [(Factor, &str); 3] =
    [(Factor::Scheduler, "none"), (Factor::NrRequests, "128"), (Factor::ReadAheadKb, "128")];

/// The queues whose settings a plan varies. A loop device of our own is not there yet: what can be set on it is what any
/// can have.
pub fn queues(target: &RealTarget) -> Result<Vec<VariedQueue>, Refusal> {
    let none = |message: String| Refusal::NoScheduledDevice { message };
    let varied: Vec<DeviceNumber> = match target.own_loop {
        true => any_loop(target).into_iter().collect(),
        false => target.chain.varied.clone(),
    };
    if varied.is_empty() {
        return Err(none(match (&target.chain.no_device, target.own_loop) {
            (_, true) => "this host has no loop devices (is the module loaded?)".to_owned(),
            (Some(reason), _) => reason.reason.clone(),
            (None, _) => "no device below the target has a scheduler".to_owned(),
        }));
    }
    let queue = |number: DeviceNumber| {
        let device = BlockDevice::read(&target.host, number).map_err(|e| none(e.to_string()))?;
        let folder = QueueFolder::of(&target.host, number).map_err(|e| none(e.to_string()))?;
        Ok(VariedQueue { device, folder })
    };
    varied.into_iter().map(queue).collect()
}

/// A queue whose settings a plan varies.
pub struct VariedQueue {
    device: BlockDevice,
    folder: QueueFolder,
}

fn any_loop(target: &RealTarget) -> Option<DeviceNumber> {
    let names = target.host.names("/sys/block");
    let name = names.iter().find(|name| name.starts_with("loop"))?;
    target.host.text(format!("/sys/block/{name}/dev"))?.parse().ok()
}

/// What all these queues are set to, as the environment of a run notes it.
pub fn recorded(target: &RealTarget) -> Vec<(String, String)> {
    let queues = queues(target).unwrap_or_default();
    let of = |(place, queue): (usize, &VariedQueue)| {
        let values = queue.folder.read_all();
        let prefix = prefix(place, queue.device.number);
        values.into_iter().map(move |(name, value)| (format!("{prefix}{name}"), value))
    };
    queues.iter().enumerate().flat_map(of).collect()
}

/// What stands before the settings of the device at this place: nothing before the first's.
pub fn prefix(place: usize, number: DeviceNumber) -> String {
    if place == 0 { String::new() } else { format!("{number}:") }
}

/// What can be set and what is set now: on all devices that are varied.
pub fn offer(target: &RealTarget) -> Offer {
    let mut offer = match queues(target) {
        Ok(queues) => offer_of_all(&queues),
        Err(reason) => Offer {
            missing: SETTABLE.iter().map(|factor| (factor.clone(), reason.clone())).collect(),
            ..Offer::default()
        },
    };
    if target.own_loop {
        // What another has set on the device that was looked at is not what ours begins with.
        for (factor, value) in FRESH_LOOP {
            offer.current.entry(factor).and_modify(|level| *level = Level(value.to_owned()));
        }
        offer.current.retain(|factor, _| !matches!(factor, Factor::Tunable { .. }));
    }
    offer.missing.insert(Factor::Without, Refusal::OnlySimulated);
    offer
}

/// What all have in common. What they have set differently cannot be a baseline for all.
fn offer_of_all(queues: &[VariedQueue]) -> Offer {
    let mut all: Vec<(&str, Offer)> =
        queues.iter().map(|queue| (queue.device.name.as_str(), offer_of(queue))).collect();
    let mut common = std::mem::take(&mut all[0].1);
    for (_, offer) in &all[1..] {
        common.missing.extend(offer.missing.clone());
        for (factor, levels) in &mut common.all {
            let others = offer.all.get(factor).map_or(&[][..], Vec::as_slice);
            levels.retain(|level| others.contains(level));
        }
    }
    let set = |name: &str, level: Option<&Level>| {
        (name.to_owned(), level.map_or("nothing".to_owned(), |level| level.0.clone()))
    };
    let first = all[0].0;
    for (factor, level) in std::mem::take(&mut common.current) {
        if common.missing.contains_key(&factor) {
            continue;
        }
        let others = || all[1..].iter().map(|(name, offer)| (*name, offer.current.get(&factor)));
        if others().all(|(_, its_level)| its_level == Some(&level)) {
            common.current.insert(factor, level);
        } else if let (true, Some(setting)) = (SETTABLE.contains(&factor), setting(&factor)) {
            let values = std::iter::once(set(first, Some(&level)))
                .chain(others().map(|(name, level)| set(name, level)))
                .collect();
            let setting = setting.to_string();
            common.missing.insert(factor, Refusal::DevicesDiffer { setting, values });
        }
    }
    common
}

fn offer_of(queue: &VariedQueue) -> Offer {
    let VariedQueue { device, folder } = queue;
    let mut offer = Offer::default();
    for factor in SETTABLE {
        let Some(setting) = setting(&factor) else { continue };
        let refused = |message: String| Refusal::Setting { setting: setting.to_string(), message };
        let now = folder.read(&setting);
        // What a value would be refused for is not asked here: any that is a number will do.
        let value = now.as_ref().map_or("1", String::as_str);
        let checked = match (folder.check(&setting, value, None), now) {
            (Err(error @ host::Refusal::NotPermitted { .. }), _) => Err(Refusal::NotPermitted {
                setting: setting.to_string(),
                message: error.to_string(),
            }),
            (Err(error @ host::Refusal::NoSuchSetting { .. }), _) => {
                Err(refused(error.to_string()))
            }
            (_, Ok(now)) => Ok(now),
            (_, Err(_)) => Err(refused(format!(
                "the device has no {setting}, or this kernel was built without it"
            ))),
        };
        match checked {
            Ok(now) => {
                offer.current.insert(factor, Level(now));
            }
            Err(reason) => {
                offer.missing.insert(factor, reason);
            }
        }
    }
    let scheduler = offer.current.get(&Factor::Scheduler).cloned();
    for (setting, value) in folder.read_all() {
        if let (Setting::Tunable(name), Some(Level(scheduler))) = (setting, &scheduler) {
            let factor = Factor::Tunable { scheduler: scheduler.clone(), name };
            offer.current.insert(factor, Level(value));
        }
    }
    if offer.current.contains_key(&Factor::Scheduler)
        && let Some(choice) = device.queue.as_ref().and_then(|queue| queue.scheduler.as_ref())
    {
        let loadable = host::loadable_schedulers(&Host::here());
        let others = loadable.iter().map(|kind| kind.name().to_owned());
        let fresh = others.filter(|name| !choice.available.contains(name));
        let all = choice.available.iter().cloned().chain(fresh).map(Level).collect();
        offer.all.insert(Factor::Scheduler, all);
    }
    offer
}

/// Why the kernel would not take a cell's settings.
pub fn refuse(target: &RealTarget, cell: &Cell) -> Option<Refusal> {
    // A cell that sets nothing has nothing to be refused.
    cell.host_settings().next()?;
    match queues(target) {
        Ok(queues) => queues.iter().find_map(|queue| refuse_on(&queue.folder, cell)),
        Err(reason) => Some(reason),
    }
}

pub fn refuse_on(folder: &QueueFolder, cell: &Cell) -> Option<Refusal> {
    let under = cell.level(&Factor::Scheduler).map(|level| level.0.as_str());
    let now = folder.read(&Setting::Scheduler).unwrap_or_default();
    let of_another = cell.host_settings().find_map(|(factor, _)| match factor {
        Factor::Tunable { scheduler, name } if under.unwrap_or(&now) != scheduler => {
            Some(Refusal::TunableOfAnotherScheduler {
                tunable: name.clone(),
                scheduler: scheduler.clone(),
                current: now.clone(),
            })
        }
        _ => None,
    });
    if of_another.is_some() {
        return of_another;
    }
    if let Some(refusal) = refuse_async_depth(folder, cell, under.unwrap_or(&now), &now) {
        return Some(refusal);
    }
    cell.host_settings().find_map(|(factor, Level(value))| {
        let under = match factor {
            Factor::Tunable { scheduler, .. } => Some(scheduler.as_str()),
            _ => under,
        };
        let setting = setting(factor)?;
        match folder.check(&setting, value, under) {
            // `deadline` is mq-deadline's other name.
            Ok(taken) if taken != *value && *factor != Factor::Scheduler => {
                Some(Refusal::KernelRounds { value: value.clone(), taken })
            }
            Ok(_) => None,
            Err(refusal) => Some(Refusal::Setting {
                setting: setting.to_string(),
                message: refusal.to_string(),
            }),
        }
    })
}

/// No more requests can be asynchronous than the queue holds: the kernel would make it as many. How long
/// the queue of another scheduler is shows once it is in use.
fn refuse_async_depth(
    folder: &QueueFolder,
    cell: &Cell,
    under: &str,
    now: &str,
) -> Option<Refusal> {
    let number = |level: &Level| level.0.parse::<u64>().ok();
    let depth = number(cell.level(&Factor::AsyncDepth)?)?;
    let held = match cell.level(&Factor::NrRequests) {
        Some(level) => number(level),
        None if under == now => folder.read(&Setting::NrRequests).ok()?.parse().ok(),
        None => None,
    }?;
    (depth > held)
        .then(|| Refusal::KernelRounds { value: depth.to_string(), taken: held.to_string() })
}

/// The kernel accepted a value and made another of it.
#[derive(Debug, thiserror::Error)]
#[error("the kernel set {setting} to {took} instead of {wanted}")]
struct KernelTookAnother {
    setting: Setting,
    wanted: String,
    took: String,
}

/// The settings of a device from which its cells are made.
#[derive(Debug, Default)]
pub struct Known {
    /// Before anything was changed.
    pub before: BTreeMap<Setting, String>,
    /// What each other scheduler began with when it was first entered.
    begun: BTreeMap<String, BTreeMap<Setting, String>>,
}

impl Known {
    /// With what there is now.
    pub fn of(before: BTreeMap<Setting, String>) -> Known {
        Known { before, begun: BTreeMap::new() }
    }
}

/// Makes a device's settings those of a cell. What the cell does not name is as before, or, under
/// another scheduler than before, as that scheduler begins. Write-back throttling is left to the kernel where no cell
/// names it: the first write of it, even of the value that is there, makes it count as set by hand for as long as the
/// device exists, and bfq then no longer switches it off.
pub fn apply(
    changes: &mut Changes,
    number: DeviceNumber,
    known: &mut Known,
    cell: &Cell,
) -> Result<(), WorldError> {
    let Known { before, begun } = known;
    let wanted = |factor: &Factor| cell.level(factor).map(|level| level.0.clone());
    let was = |setting: &Setting| before.get(setting).cloned();
    let scheduler = wanted(&Factor::Scheduler).or_else(|| was(&Setting::Scheduler));
    let same_scheduler = scheduler == was(&Setting::Scheduler);
    set(changes, number, &Setting::Scheduler, scheduler.clone())?;
    let base = match scheduler.filter(|_| !same_scheduler) {
        None => &*before,
        Some(name) => match begun.entry(name) {
            Entry::Occupied(known) => &*known.into_mut(),
            Entry::Vacant(new) => {
                let folder = QueueFolder::of(changes.host(), number).map_err(WorldError::trial)?;
                &*new.insert(folder.read_all())
            }
        },
    };
    set_queue(changes, number, base, cell)?;
    let other_queue = wanted(&Factor::NrRequests).is_some_and(|nr_requests| {
        was(&Setting::NrRequests).is_some_and(|before| before != nr_requests)
    });
    let async_depth = Setting::Tunable(ASYNC_DEPTH.to_owned());
    let mut tunables: BTreeMap<Setting, String> = before
        .iter()
        .filter(|(setting, _)| same_scheduler && matches!(setting, Setting::Tunable(_)))
        // The kernel makes async_depth follow nr_requests: the old one would go on limiting writes.
        .filter(|(setting, _)| !(other_queue && **setting == async_depth))
        .map(|(setting, value)| (setting.clone(), value.clone()))
        .collect();
    for (factor, Level(value)) in cell.host_settings() {
        if let Factor::Tunable { name, .. } = factor {
            tunables.insert(Setting::Tunable(name.clone()), value.clone());
        }
    }
    for (setting, value) in tunables {
        set(changes, number, &setting, Some(value))?;
    }
    let pinned = |factor: &Factor, setting: &Setting| wanted(factor).or_else(|| was(setting));
    set(changes, number, &Setting::WbtLatUsec, wanted(&Factor::WbtLatUsec))?;
    let read_ahead = pinned(&Factor::ReadAheadKb, &Setting::ReadAheadKb);
    set(changes, number, &Setting::ReadAheadKb, read_ahead)?;
    let merging = pinned(&Factor::Nomerges, &Setting::Nomerges);
    set(changes, number, &Setting::Nomerges, merging)?;
    // Nothing else moves it.
    set(changes, number, &Setting::RqAffinity, wanted(&Factor::RqAffinity))
}

/// Sets how many requests the queue holds, and how many of them may be asynchronous. Where a cell names
/// the first alone, the kernel rescales the second, and rounds: so that the result does not depend on the
/// cell before, it is rescaled from `base` each time.
fn set_queue(
    changes: &mut Changes,
    number: DeviceNumber,
    base: &BTreeMap<Setting, String>,
    cell: &Cell,
) -> Result<(), WorldError> {
    let wanted = |factor: &Factor| cell.level(factor).map(|level| level.0.clone());
    let (nr_requests, async_depth) = (Setting::NrRequests, Setting::AsyncDepth);
    let of_base = |setting: &Setting| base.get(setting).cloned();
    // Without a scheduler it holds nothing back, and cannot be set.
    let none = of_base(&Setting::Scheduler).is_none_or(|name| name == "none");
    let base_depth = of_base(&async_depth).filter(|_| !none);
    let named = wanted(&Factor::NrRequests);
    let rescaled = named.is_some() && named != of_base(&nr_requests);
    let depth = wanted(&Factor::AsyncDepth);
    if rescaled && depth.is_none() && base_depth.is_some() {
        set(changes, number, &nr_requests, of_base(&nr_requests))?;
        set(changes, number, &async_depth, base_depth.clone())?;
    }
    set(changes, number, &nr_requests, named.or_else(|| of_base(&nr_requests)))?;
    let depth = depth.or_else(|| base_depth.filter(|_| !rescaled));
    set(changes, number, &async_depth, depth)
}

/// Sets one setting, if there is a value for it; an error if the kernel makes another value of it.
fn set(
    changes: &mut Changes,
    number: DeviceNumber,
    setting: &Setting,
    value: Option<String>,
) -> Result<(), WorldError> {
    let Some(value) = value else { return Ok(()) };
    let applied = changes.set(number, setting, &value).map_err(WorldError::trial)?;
    match applied.took == value {
        true => Ok(()),
        false => Err(WorldError::trial(KernelTookAnother {
            setting: setting.clone(),
            wanted: value,
            took: applied.took,
        })),
    }
}
