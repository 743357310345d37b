//! The words of traps: everything that is said of them, in one place.

use super::{NotRotating, OtherLoad, Trap, TrapKind};
use crate::cgroup::{IO_COST, without_a_unit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Traps as `inspect --json` has them: their words, and the facts that they are made of.
pub(crate) mod described {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Trap};

    #[derive(Serialize)]
    struct Described<'a> {
        id: &'static str,
        title: &'static str,
        evidence: String,
        fix: String,
        facts: &'a Trap,
    }

    #[derive(Deserialize)]
    struct Facts {
        facts: Trap,
    }

    /// With their words.
    pub fn serialize<S: Serializer>(traps: &[Trap], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(traps.iter().map(|trap| Described {
            id: trap.id(),
            title: trap.title(),
            evidence: trap.evidence(),
            fix: trap.fix(),
            facts: trap,
        }))
    }

    /// From their facts alone.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Trap>, D::Error> {
        let all = Vec::<Facts>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|one| one.facts).collect())
    }
}

impl TrapKind {
    /// Its name in docs/reference/traps.md.
    pub const fn id(self) -> &'static str {
        match self {
            TrapKind::UnfinishedRun => "unfinished-run",
            TrapKind::Memory => "memory",
            TrapKind::Overlay => "overlay",
            TrapKind::Network => "network",
            TrapKind::FileServer => "file-server",
            TrapKind::ReadOnly => "read-only",
            TrapKind::DirectIsBuffered => "direct-is-buffered",
            TrapKind::NoDirect => "no-direct",
            TrapKind::CacheAnswers => "cache-answers",
            TrapKind::SparseFile => "sparse-file",
            TrapKind::BufferedLoop => "buffered-loop",
            TrapKind::LoopDiscard => "loop-discard",
            TrapKind::LoopSettingsStay => "loop-settings-stay",
            TrapKind::RotationalFlag => "rotational-flag",
            TrapKind::WriteBackThrottling => "write-back-throttling",
            TrapKind::NoBarrier => "no-barrier",
            TrapKind::WriteThroughByHand => "write-through-by-hand",
            TrapKind::NotCounted => "not-counted",
            TrapKind::SmallBlock => "small-block",
            TrapKind::ReadBeforeWrite => "read-before-write",
            TrapKind::QueueCeiling => "queue-ceiling",
            TrapKind::StackedDevices => "stacked-devices",
            TrapKind::Zoned => "zoned",
            TrapKind::SharedDevice => "shared-device",
            TrapKind::SettingOwner => "setting-owner",
            TrapKind::ReadAheadLost => "read-ahead-lost",
            TrapKind::BootElevator => "boot-elevator",
            TrapKind::FlashState => "flash-state",
            TrapKind::HotDrive => "hot-drive",
            TrapKind::SmallData => "small-data",
            TrapKind::GroupLimit => "group-limit",
            TrapKind::NoPressure => "no-pressure",
            TrapKind::BusyHost => "busy-host",
            TrapKind::Frequency => "frequency",
            TrapKind::Steal => "steal",
        }
    }

    /// What it is, in a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            TrapKind::UnfinishedRun => {
                "A run that was killed has left settings behind: they are not this host's own"
            }
            TrapKind::Memory => "The target is memory: no device sees any request",
            TrapKind::Overlay => {
                "The target is an overlay (a container's / is one): its device cannot be seen from here"
            }
            TrapKind::Network => {
                "The target is on another machine: its disks and schedulers are there"
            }
            TrapKind::FileServer => "A program serves these files: it adds its own time",
            TrapKind::ReadOnly => "The target is mounted read-only: only reads can be measured",
            TrapKind::DirectIsBuffered => "O_DIRECT may silently go through the page cache here",
            TrapKind::NoDirect => "O_DIRECT is not possible here",
            TrapKind::CacheAnswers => "What answers is a cache and not the medium",
            TrapKind::SparseFile => {
                "Parts of the file were never written: they measure the allocator"
            }
            TrapKind::BufferedLoop => {
                "The loop device goes through the page cache: everything is cached twice"
            }
            TrapKind::LoopDiscard => "Discards make holes in the file behind the loop device",
            TrapKind::LoopSettingsStay => {
                "A loop device's queue settings outlive its being detached"
            }
            TrapKind::RotationalFlag => "The device claims to rotate and does not",
            TrapKind::WriteBackThrottling => {
                "Choosing bfq also turns write-back throttling off: two changes in one"
            }
            TrapKind::NoBarrier => "Flushes are turned off: fast, and data is lost with the power",
            TrapKind::WriteThroughByHand => {
                "The kernel sends no flushes to a device with a volatile cache: data is lost with the power"
            }
            TrapKind::NotCounted => "The kernel does not count the device's requests",
            TrapKind::SmallBlock => "Blocks smaller than the device's sector cannot be direct",
            TrapKind::ReadBeforeWrite => "Buffered writes smaller than a block read it first",
            TrapKind::QueueCeiling => "Under none the queue is bounded by the hardware's tags",
            TrapKind::StackedDevices => {
                "Several devices have schedulers on the way down: not all of them are varied"
            }
            TrapKind::Zoned => "The device takes writes in order only: few schedulers keep that",
            TrapKind::SharedDevice => {
                "Others use this device: they feel every setting, and disturb"
            }
            TrapKind::SettingOwner => {
                "Something else sets these settings too and may put its own back"
            }
            TrapKind::ReadAheadLost => "read_ahead_kb is set before something that raises it again",
            TrapKind::BootElevator => "elevator= on the boot line has done nothing since 5.0",
            TrapKind::FlashState => {
                "Flash slows with use and with heat: what runs second looks worse"
            }
            TrapKind::HotDrive => {
                "A drive is at the temperature from which it warns: it may slow itself down"
            }
            TrapKind::SmallData => "Data that fits in memory measures memory in buffered trials",
            TrapKind::GroupLimit => "A control group holds us back: its limit would be measured",
            TrapKind::NoPressure => "Other load cannot be seen: no pressure information",
            TrapKind::BusyHost => "Something else is busy with I/O now",
            TrapKind::Frequency => "Processors change their frequency: latencies move with it",
            TrapKind::Steal => "Other virtual machines take this one's processor time",
        }
    }
}

impl Trap {
    /// Its kind.
    pub fn kind(&self) -> TrapKind {
        self.into()
    }

    /// Its name in docs/reference/traps.md.
    pub fn id(&self) -> &'static str {
        self.kind().id()
    }

    /// What it is, in a sentence.
    pub fn title(&self) -> &'static str {
        self.kind().title()
    }

    /// What shows that it applies.
    pub fn evidence(&self) -> String {
        match self {
            Trap::UnfinishedRun { journals, first } => {
                format!("{journals} journal(s) of ended runs, the first {}", first.display())
            }
            Trap::Memory { reason } => reason.clone(),
            Trap::Overlay { reason } => reason.clone(),
            Trap::Network { reason } => reason.clone(),
            Trap::FileServer { mount, kind } => format!("{} is mounted as {kind}", mount.display()),
            Trap::ReadOnly { mount } => format!("{} is mounted ro", mount.display()),
            Trap::DirectIsBuffered { caveats } => caveats.join("; "),
            Trap::NoDirect { target } => {
                format!("statx gives no alignment for direct I/O on {}", target.display())
            }
            Trap::CacheAnswers { probe } => probe.clone(),
            Trap::SparseFile { file } => format!(
                "{} is {} long and has {} allocated",
                file.path.display(),
                file.size,
                file.allocated
            ),
            Trap::BufferedLoop { device } => format!("{device} is attached without direct I/O"),
            Trap::LoopDiscard { mount, device } => {
                format!("{} on {device} is mounted with discard", mount.display())
            }
            Trap::LoopSettingsStay { device } => format!("settings would be varied on {device}"),
            Trap::RotationalFlag { device, wbt_lat_usec, contrary } => {
                let wbt = wbt_lat_usec.map(|wbt| format!(" (and wbt_lat_usec={wbt})"));
                let claim = format!("{device} says rotational=1{}", wbt.unwrap_or_default());
                match contrary {
                    NotRotating::Probe(evidence) => format!("{claim}; {evidence}"),
                    NotRotating::Bus(bus) => {
                        format!("{claim}, as {bus} devices do on any medium; it was not probed")
                    }
                }
            }
            Trap::WriteBackThrottling { device, wbt_lat_usec } => match wbt_lat_usec {
                0 => format!("{device} is under bfq, with throttling off"),
                wbt => format!("{device} has wbt_lat_usec={wbt}, which bfq sets to 0"),
            },
            Trap::NoBarrier { mount } => format!("{} is mounted without barriers", mount.display()),
            Trap::WriteThroughByHand { device } => format!(
                "{device} has queue/write_cache=write through, and says itself that it caches writes"
            ),
            Trap::NotCounted { device } => format!("{device} has queue/iostats=0"),
            Trap::SmallBlock { device, sector } => format!("{device} has sectors of {sector}"),
            Trap::ReadBeforeWrite { mount, block } => {
                format!("{} has blocks of {block}", mount.display())
            }
            Trap::QueueCeiling { device, tags, .. } => format!("{device} has {tags} tags"),
            Trap::StackedDevices { scheduled, .. } => {
                let all: Vec<String> = scheduled.iter().map(ToString::to_string).collect();
                format!("schedulers are on {}", all.join(", "))
            }
            Trap::Zoned { device, model } => format!("{device} is {model}"),
            Trap::SharedDevice { device, mounts } => {
                let points: Vec<String> =
                    mounts.iter().map(|it| it.display().to_string()).collect();
                match points.as_slice() {
                    [] => format!("{device} also serves the system itself"),
                    points => format!("{device} also serves {}", points.join(", ")),
                }
            }
            Trap::ReadAheadLost { device, set, after, attribute } => format!(
                "{}:{} sets read_ahead_kb of {device}, and {}:{} writes {attribute} after it",
                set.file.display(),
                set.line,
                after.file.display(),
                after.line
            ),
            Trap::SettingOwner { owner, more } => {
                let more = if *more > 0 { format!("; {more} more") } else { String::new() };
                let may = if owner.unknown.is_empty() { "sets" } else { "may set" };
                format!(
                    "{}:{} ({}, running) {may} {} of {}{more}",
                    owner.file.display(),
                    owner.line,
                    owner.by.name(),
                    owner.setting_names().join(", "),
                    owner.devices.join(", ")
                )
            }
            Trap::BootElevator { option } => format!("the kernel was booted with {option}"),
            Trap::FlashState { probe } => probe.clone(),
            Trap::HotDrive { device, temperature } => {
                let limit = temperature.warning.or(temperature.critical);
                let limit = limit
                    .map_or(String::new(), |limit| format!("; it warns from {limit:.0} °C on"));
                let alarm = if temperature.alarm { ", with its alarm on" } else { "" };
                format!(
                    "{device} is at {:.0} °C{alarm}{limit} ({})",
                    temperature.celsius,
                    temperature.read_from.display()
                )
            }
            Trap::SmallData { file, memory } => match file {
                Some(size) => format!("the file is {size} and {memory} of memory could cache it"),
                None => format!("{memory} of memory could be page cache"),
            },
            Trap::GroupLimit { cpus, memory, io } => {
                let cpus = cpus.map(|cpus| format!("CPU {cpus:.2} processors"));
                let memory = memory.map(|memory| format!("memory {memory}"));
                let io = io.iter().map(|line| limit_line(line));
                let limits: Vec<String> = cpus.into_iter().chain(memory).chain(io).collect();
                format!("limits on our control group: {}", limits.join("; "))
            }
            Trap::NoPressure => "/proc/pressure/io cannot be read".to_owned(),
            Trap::BusyHost { load } => match load {
                OtherLoad::Pressure { percent } => {
                    format!("tasks waited for I/O in {percent:.0} % of the last ten seconds")
                }
                OtherLoad::Average { load, cpus } => {
                    format!("load average {load:.1} on {cpus} processors")
                }
            },
            Trap::Frequency { governor } => format!("scaling_governor is {governor}"),
            Trap::Steal { percent } => {
                format!("{percent:.1} % of the processors' time since boot was stolen")
            }
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Trap::UnfinishedRun { .. } => "spindle undo".to_owned(),
            Trap::Memory { .. } => "give a folder on a disk, as findmnt -D lists them".to_owned(),
            Trap::Overlay { .. } => {
                "run on the host, or give a folder of a volume mounted into the container"
                    .to_owned()
            }
            Trap::Network { .. } => {
                "compare sync mode, block size, clients and depth; or run on the server".to_owned()
            }
            Trap::FileServer { .. } => {
                "give the folder that the program itself stores to, to leave it out".to_owned()
            }
            Trap::ReadOnly { .. } => {
                "give a writable folder; or a file that is there, with reads alone".to_owned()
            }
            Trap::DirectIsBuffered { .. } => {
                "compare the bytes at the device with those asked for: the record has both"
                    .to_owned()
            }
            Trap::NoDirect { .. } => {
                "compare the other sync modes, or give another filesystem".to_owned()
            }
            Trap::CacheAnswers { .. } => {
                "use more data than the cache holds, written full; on a virtual machine the \
                 host's cache may answer (cache=none there)"
                    .to_owned()
            }
            Trap::SparseFile { .. } => {
                "write the file full first; fallocate alone does not do it".to_owned()
            }
            Trap::BufferedLoop { device } => format!("losetup --direct-io=on /dev/{}", device.name),
            Trap::LoopDiscard { mount, .. } => {
                format!("mount -o remount,nodiscard {}", mount.display())
            }
            Trap::LoopSettingsStay { .. } => {
                "spindle puts them back before it detaches; by hand, set them back before \
                 losetup -d"
                    .to_owned()
            }
            Trap::RotationalFlag { .. } => {
                "do not choose a scheduler by that flag: measure; bfq and write-back \
                 throttling behave as for a disk until it is set right (queue/rotational)"
                    .to_owned()
            }
            Trap::WriteBackThrottling { .. } => {
                "pin it for all cells (--wbt 0, or one value), or make it a factor of its own \
                 (--wbt 0,2000)"
                    .to_owned()
            }
            Trap::NoBarrier { mount } => format!("mount -o remount,barrier=1 {}", mount.display()),
            Trap::WriteThroughByHand { device } => format!(
                "echo 'write back' > /sys/block/{}/queue/write_cache, and look for what set it (spindle inspect \
                 names owners)",
                device.name
            ),
            Trap::NotCounted { device } => format!(
                "echo 1 > /sys/block/{0}/queue/iostats: device columns and findings that need them are missing \
                 until then. That raises a small read_ahead_kb: read /sys/block/{0}/queue/read_ahead_kb before",
                device.name
            ),
            Trap::SmallBlock { sector, .. } => format!(
                "use blocks of {sector} or multiples for direct cells; smaller ones are refused"
            ),
            Trap::ReadBeforeWrite { .. } => {
                "for cells of smaller blocks make a filesystem with -b 1024, or read the \
                 device's r/s beside the figures"
                    .to_owned()
            }
            Trap::QueueCeiling { tags, with_scheduler, .. } => format!(
                "cells under none take {tags} requests at most, those with a scheduler \
                 {with_scheduler}; compare at sizes that all can have, or read the queue as \
                 part of the scheduler's effect"
            ),
            Trap::StackedDevices { varied, .. } => {
                let all: Vec<String> = varied.iter().map(ToString::to_string).collect();
                format!(
                    "settings are varied on {}; others stay as they are and are recorded; to \
                     vary another, give it as the target",
                    all.join(" and ")
                )
            }
            Trap::Zoned { .. } => {
                "compare on a filesystem that knows zones; write workloads on the device \
                 itself are refused"
                    .to_owned()
            }
            Trap::SharedDevice { .. } => {
                "prefer a scratch file behind a loop device of its own, or a device of its \
                 own; otherwise keep the host idle"
                    .to_owned()
            }
            Trap::SettingOwner { .. } => {
                "every setting is verified before and after each trial; to keep a new one, \
                 change it in that file"
                    .to_owned()
            }
            Trap::ReadAheadLost { attribute, .. } => format!(
                "set read_ahead_kb last: any write of {attribute}, even of its present value, raises a small one"
            ),
            Trap::BootElevator { .. } => {
                "take it off the boot line; a udev rule sets the scheduler".to_owned()
            }
            Trap::FlashState { .. } => {
                "fill the device first if steady state is meant; rounds in random order with \
                 the baseline twice show the drift"
                    .to_owned()
            }
            Trap::HotDrive { .. } => {
                "let it cool down, and see to its air; look at it again while it is under load"
                    .to_owned()
            }
            Trap::SmallData { .. } => {
                "compare direct cells; or for buffered ones take more data (--size) or bound \
                 the page cache (--page-cache 1G)"
                    .to_owned()
            }
            Trap::GroupLimit { .. } => {
                "run it outside of the container or unit, or lift the limit; the record has \
                 the time held back"
                    .to_owned()
            }
            Trap::NoPressure => {
                "boot with psi=1 (CONFIG_PSI); until then the load average and steal time must do"
                    .to_owned()
            }
            Trap::BusyHost { .. } => {
                "find it with iotop or pidstat -d, and wait or stop it".to_owned()
            }
            Trap::Frequency { .. } => {
                "cpupower frequency-set -g performance while measuring".to_owned()
            }
            Trap::Steal { .. } => {
                "more rounds; a dedicated machine type; the record has steal time of each trial"
                    .to_owned()
            }
        }
    }
}

/// A line of an I/O limit, and what it means where that is easily missed.
fn limit_line(line: &str) -> String {
    let beside = match without_a_unit(line) {
        _ if line.starts_with(IO_COST) => {
            " (iocost paces the requests of all groups, and switches write-back throttling off)"
                .to_owned()
        }
        Some(bytes) => format!(" ({bytes} bytes a second: io.max takes 10MB as 10)"),
        None => String::new(),
    };
    format!("I/O {line}{beside}")
}
