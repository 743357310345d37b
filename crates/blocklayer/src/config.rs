//! What can be set on a queue, checked before anything runs.

use crate::kernel::Kernel;
use crate::tunable;
use scheduler::{Generation, SchedulerKind, Unit, nearest};
use std::collections::BTreeMap;

/// The settings of one device's queue, as a user writes them. [`Config::resolve`] checks them.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which kernel's block layer.
    pub kernel: Kernel,
    /// The scheduler by its kernel name; None: what this kernel would choose.
    pub scheduler: Option<String>,
    /// The request pool (single-queue) or the scheduler's tags; None: the kernel's default.
    pub nr_requests: Option<u32>,
    /// The scheduler's tunables by their kernel names, in the kernel's units.
    pub tunables: BTreeMap<String, u64>,
    /// How many commands the driver sends to the device at once: its queue depth or tags.
    pub depth: u32,
    /// The driver takes one request beyond its depth out of the scheduler before it finds the
    /// device full, as SCSI does on the single-queue path.
    pub one_beyond: bool,
    /// `queue/fua`: the device takes writes with FUA. Without, a flush follows such a write, from 3.10 on;
    /// before, it is a barrier in any case.
    pub fua: bool,
    /// `queue/rotational`: whether the kernel takes it for a disk.
    pub rotational: bool,
    /// Hardware queues; several make the plug list longer and `none` the default (6.12).
    pub hardware_queues: u32,
    /// The share of freed tags, 0 to 1, that go to waiting tasks while there are any: it stands for a race
    /// between processors. `None`: what was observed under the scheduler.
    pub tag_waiters_share: Option<f64>,
    /// Seed of that race.
    pub seed: u64,
    /// `queue/nomerges`: 0 all merging, 1 only with the last request, 2 none.
    pub nomerges: u8,
    /// `queue/max_sectors_kb`; None: the kernel's default.
    pub max_sectors_kb: Option<u32>,
    /// Schedulers sort by sector. No kernel can do without; switched off, the oldest request takes the
    /// place of the nearest or next in sector order, which shows the effect of sorting.
    pub sorting: bool,
    /// Schedulers idle the device for a process that has nothing queued. Switched off, none of them idles,
    /// and cfq of 2.6.18 switches to the next process while I/O of the last one is outstanding.
    pub waiting: bool,
    /// cfq of 2.6.18: the driver has had more than four requests at once since the scheduler was chosen, as after
    /// mkfs or write-back. From then on it takes the device for one that queues commands, and does not wait for
    /// processes that seek; readers with one request each cannot bring that about.
    pub tags_seen: bool,
}

impl Config {
    /// The kernel's defaults before a rotational device with `depth` tags.
    pub fn new(kernel: Kernel, depth: u32) -> Self {
        Config {
            kernel,
            scheduler: None,
            nr_requests: None,
            tunables: BTreeMap::new(),
            depth,
            one_beyond: !kernel.multi_queue(),
            fua: true,
            rotational: true,
            hardware_queues: 1,
            tag_waiters_share: None,
            seed: 0,
            nomerges: 0,
            max_sectors_kb: None,
            sorting: true,
            waiting: true,
            tags_seen: false,
        }
    }

    /// The same with another scheduler.
    pub fn with_scheduler(mut self, name: impl ToString) -> Self {
        self.scheduler = Some(name.to_string());
        self
    }

    /// The same with another pool.
    pub fn with_nr_requests(mut self, nr_requests: u32) -> Self {
        self.nr_requests = Some(nr_requests);
        self
    }

    /// The same with a tunable set.
    pub fn with(mut self, tunable: &str, value: u64) -> Self {
        self.tunables.insert(tunable.to_owned(), value);
        self
    }

    /// Checks everything and fills in the kernel's defaults.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        let scheduler = self.resolve_scheduler()?;
        if self.depth == 0 {
            return Err(ConfigError::NoDepth);
        }
        if self.nomerges > 2 {
            return Err(ConfigError::NoMerges { value: self.nomerges });
        }
        let max_sectors_kb = self.max_sectors_kb.unwrap_or(self.kernel.max_sectors_kb());
        if !(4..=32_767).contains(&max_sectors_kb) {
            return Err(ConfigError::MaxSectors {
                value: max_sectors_kb,
                default: self.kernel.max_sectors_kb(),
            });
        }
        Ok(Resolved {
            kernel: self.kernel,
            scheduler,
            nr_requests: self.resolve_nr_requests(scheduler)?,
            tunables: self.resolve_tunables(scheduler)?,
            depth: self.depth,
            one_beyond: self.one_beyond && !self.kernel.multi_queue(),
            fua: self.fua,
            rotational: self.rotational,
            hardware_queues: self.hardware_queues.max(1),
            tag_waiters_share: match self
                .tag_waiters_share
                .unwrap_or_else(|| default_tag_waiters_share(scheduler))
            {
                part if (0.0..=1.0).contains(&part) => part,
                value => return Err(ConfigError::TagWaitersShare { value: value.to_string() }),
            },
            seed: self.seed,
            nomerges: self.nomerges,
            max_sectors: u64::from(max_sectors_kb) * 2,
            sorting: self.sorting,
            waiting: self.waiting,
            tags_seen: self.tags_seen,
        })
    }

    fn resolve_scheduler(&self) -> Result<SchedulerKind, ConfigError> {
        let Some(name) = &self.scheduler else {
            return Ok(self.kernel.default_scheduler(self.hardware_queues));
        };
        let here = self.kernel.schedulers();
        let has = names(here.iter().map(|kind| kind.name()));
        let scheduler: SchedulerKind = name.parse().map_err(|error| {
            ConfigError::UnknownScheduler { error, has: has.clone(), kernel: self.kernel.name() }
        })?;
        if here.contains(&scheduler) {
            return Ok(scheduler);
        }
        let levels = Kernel::ALL.iter().filter(|kernel| kernel.schedulers().contains(&scheduler));
        Err(ConfigError::SchedulerNotHere {
            scheduler,
            kernel: self.kernel.name(),
            levels: names(levels.map(|kernel| kernel.name())),
            has,
        })
    }

    fn resolve_nr_requests(&self, scheduler: SchedulerKind) -> Result<u32, ConfigError> {
        let (default, max) = nr_requests_range(self.kernel, scheduler, self.depth);
        let value = self.nr_requests.unwrap_or(default);
        let min = 4.min(max);
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        let why = match (self.kernel.generation(), scheduler, value < min) {
            (_, _, true) => "the kernel would silently make it 4",
            (Generation::MultiQueue, SchedulerKind::None, _) => {
                "without a scheduler it cannot exceed the device's tags"
            }
            (Generation::MultiQueue, ..) => {
                "blk-mq refuses more (EINVAL); 100000 needs a single-queue kernel"
            }
            (Generation::SingleQueue, ..) => "the models are not made for more",
        };
        let kernel = self.kernel.name();
        Err(ConfigError::NrRequests { value, min, max, default, kernel, scheduler, why })
    }

    fn resolve_tunables(&self, scheduler: SchedulerKind) -> Result<Tunables, ConfigError> {
        let table = tunable::tunables(self.kernel, scheduler);
        let mut values: Vec<_> = table.clone().map(|t| (t.name, t.default)).collect();
        for (name, value) in &self.tunables {
            let Some((at, t)) = table.clone().enumerate().find(|(_, t)| t.name == name) else {
                let known = table.clone().map(|t| t.name);
                return Err(ConfigError::UnknownTunable {
                    name: name.clone(),
                    scheduler,
                    kernel: self.kernel.name(),
                    nearest: nearest(name, known.clone()),
                    has: match values.is_empty() {
                        true => "no tunables".to_owned(),
                        false => names(known),
                    },
                });
            };
            if !(t.min..=t.max).contains(value) {
                return Err(ConfigError::TunableRange {
                    name: t.name,
                    value: *value,
                    unit: t.unit,
                    scheduler,
                    min: t.min,
                    max: t.max,
                    default: t.default,
                });
            }
            values[at].1 = *value;
        }
        Ok(Tunables(values))
    }
}

/// The share of freed tags that waiting tasks got on 6.18 before a slow disk. Observed: 0.085 under none,
/// 0.09 under kyber, 0.17 under mq-deadline, 0.024 under bfq; here in round figures.
fn default_tag_waiters_share(scheduler: SchedulerKind) -> f64 {
    match scheduler {
        SchedulerKind::Bfq => 0.02,
        SchedulerKind::MqDeadline => 0.17,
        SchedulerKind::None | SchedulerKind::Kyber => 0.09,
        // Unused: the request pool has a rule of its own.
        SchedulerKind::Noop
        | SchedulerKind::Deadline
        | SchedulerKind::Anticipatory
        | SchedulerKind::Cfq => 0.09,
    }
}

/// The default and the largest nr_requests of a device with `depth` tags.
pub fn nr_requests_range(kernel: Kernel, scheduler: SchedulerKind, depth: u32) -> (u32, u32) {
    match (kernel.generation(), scheduler) {
        (Generation::SingleQueue, _) => (128, 1_000_000),
        (Generation::MultiQueue, SchedulerKind::None) => (depth, depth),
        (Generation::MultiQueue, _) => ((2 * depth.min(128)).max(4), 2048),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Every tunable of the chosen scheduler with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunables(Vec<(&'static str, u64)>);

impl Tunables {
    /// A tunable's value in the kernel's unit; 0 if this kernel's scheduler has none of that name.
    pub fn get(&self, name: &str) -> u64 {
        self.0.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// A checked [`Config`] with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Which kernel's block layer.
    pub kernel: Kernel,
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// The pool, or the tags.
    pub nr_requests: u32,
    /// The scheduler's tunables.
    pub tunables: Tunables,
    /// The driver's depth.
    pub depth: u32,
    /// Whether the driver takes one request beyond its depth.
    pub one_beyond: bool,
    /// See [`Config::fua`].
    pub fua: bool,
    /// Whether the kernel takes it for a disk.
    pub rotational: bool,
    /// Hardware queues.
    pub hardware_queues: u32,
    /// The share of freed tags that go to waiting tasks.
    pub tag_waiters_share: f64,
    /// Seed of that race.
    pub seed: u64,
    /// 0 all merging, 1 only with the last request, 2 none.
    pub nomerges: u8,
    /// The largest request, in sectors.
    pub max_sectors: u64,
    /// Schedulers sort by sector.
    pub sorting: bool,
    /// Schedulers wait for processes.
    pub waiting: bool,
    /// cfq of 2.6.18 has seen more than four requests at once in the driver.
    pub tags_seen: bool,
}

/// What is wrong with a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No kernel has such a scheduler.
    #[error("{error}; kernel {kernel} has {has}")]
    UnknownScheduler {
        /// Its name, and a similar one.
        #[source]
        error: scheduler::UnknownScheduler,
        /// What there is.
        has: String,
        /// The kernel level.
        kernel: &'static str,
    },
    /// Another kernel has the scheduler, this one does not.
    #[error(
        "kernel {kernel} has no scheduler '{scheduler}': it is in {levels}; choose one of these \
         kernels or one of {has}"
    )]
    SchedulerNotHere {
        /// The requested value.
        scheduler: SchedulerKind,
        /// The kernel level.
        kernel: &'static str,
        /// The levels that have it.
        levels: String,
        /// What this level has.
        has: String,
    },
    /// nr_requests out of range.
    #[error(
        "nr_requests {value} is out of range for {scheduler} on kernel {kernel}: {min} to {max}, \
         default {default} ({why})"
    )]
    NrRequests {
        /// The requested value.
        value: u32,
        /// The smallest value.
        min: u32,
        /// The largest value.
        max: u32,
        /// The default.
        default: u32,
        /// The kernel level.
        kernel: &'static str,
        /// The scheduler.
        scheduler: SchedulerKind,
        /// Why the limit is there.
        why: &'static str,
    },
    /// The scheduler has no such tunable.
    #[error(
        "{scheduler} on kernel {kernel} has no tunable '{name}'{}; it has {has}",
        match .nearest { Some(nearest) => format!(", did you mean '{nearest}'?"), None => String::new() }
    )]
    UnknownTunable {
        /// The requested value.
        name: String,
        /// The scheduler.
        scheduler: SchedulerKind,
        /// The kernel level.
        kernel: &'static str,
        /// A tunable with a similar name.
        nearest: Option<&'static str>,
        /// What there is.
        has: String,
    },
    /// A tunable out of range.
    #[error(
        "{scheduler}'s {name} = {value} is out of range: {min} to {max}{}, default {default}",
        match .unit { Unit::Count | Unit::Flag => String::new(), unit => format!(" {unit}") }
    )]
    TunableRange {
        /// The tunable.
        name: &'static str,
        /// The requested value.
        value: u64,
        /// Its unit.
        unit: Unit,
        /// The scheduler.
        scheduler: SchedulerKind,
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
        /// The default.
        default: u64,
    },
    /// The device takes no commands.
    #[error("the device's queue depth is 0: no request could be sent; use 1 or more")]
    NoDepth,
    /// A share out of range.
    #[error("the share of freed tags that waiting tasks get is {value}: use 0 to 1")]
    TagWaitersShare {
        /// The requested value.
        value: String,
    },
    /// nomerges has three values.
    #[error("nomerges {value} is out of range: 0 (merge), 1 (only with the last) or 2 (never)")]
    NoMerges {
        /// The requested value.
        value: u8,
    },
    /// max_sectors_kb out of range.
    #[error("max_sectors_kb {value} is out of range: 4 to 32767 KiB, default {default}")]
    MaxSectors {
        /// The requested value.
        value: u32,
        /// The kernel's default.
        default: u32,
    },
}
