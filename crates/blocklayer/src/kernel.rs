//! The kernel levels that the models distinguish.

use scheduler::{Generation, KernelVersion, SchedulerKind};
use std::{fmt, str::FromStr};

/// A kernel whose block layer is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// 2.6.18, and as RHEL 5.2 had it (2.6.18-92.el5).
    V2_6_18,
    /// 2.6.18-194.el5, RHEL 5.5 as shipped: each process has an async queue of its own in cfq.
    V2_6_18Rhel5_5,
    /// 2.6.18-194.8.1.el5, its erratum of 2010: direct writes are sync in cfq.
    V2_6_18Rhel5_5Erratum,
    /// 2.6.32.
    V2_6_32,
    /// 3.10, CentOS 7: the single-queue path.
    V3_10,
    /// 4.19: the single-queue path.
    V4_19,
    /// 6.12: blk-mq.
    V6_12,
    /// 6.18: blk-mq, whose schedulers limit tags by the whole map (6.17 on).
    V6_18,
}

impl Kernel {
    /// All levels, oldest first.
    pub const ALL: [Kernel; 8] = [
        Kernel::V2_6_18,
        Kernel::V2_6_18Rhel5_5,
        Kernel::V2_6_18Rhel5_5Erratum,
        Kernel::V2_6_32,
        Kernel::V3_10,
        Kernel::V4_19,
        Kernel::V6_12,
        Kernel::V6_18,
    ];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::V2_6_18 => "2.6.18",
            Kernel::V2_6_18Rhel5_5 => "2.6.18-194.el5",
            Kernel::V2_6_18Rhel5_5Erratum => "2.6.18-194.8.1.el5",
            Kernel::V2_6_32 => "2.6.32",
            Kernel::V3_10 => "3.10",
            Kernel::V4_19 => "4.19",
            Kernel::V6_12 => "6.12",
            Kernel::V6_18 => "6.18",
        }
    }

    /// Its version.
    pub fn version(self) -> KernelVersion {
        match self {
            Kernel::V2_6_18 | Kernel::V2_6_18Rhel5_5 | Kernel::V2_6_18Rhel5_5Erratum => {
                KernelVersion::new(2, 6, 18)
            }
            Kernel::V2_6_32 => KernelVersion::new(2, 6, 32),
            Kernel::V3_10 => KernelVersion::new(3, 10, 0),
            Kernel::V4_19 => KernelVersion::new(4, 19, 0),
            Kernel::V6_12 => KernelVersion::new(6, 12, 0),
            Kernel::V6_18 => KernelVersion::new(6, 18, 0),
        }
    }

    /// The block layer through which it drives devices here.
    pub fn generation(self) -> Generation {
        match self.multi_queue() {
            false => Generation::SingleQueue,
            true => Generation::MultiQueue,
        }
    }

    /// The schedulers it has.
    pub fn schedulers(self) -> Vec<SchedulerKind> {
        let all = SchedulerKind::ALL.iter().copied();
        all.filter(|kind| kind.is_in(self.generation(), self.version())).collect()
    }

    /// Whether it drives devices through blk-mq.
    pub fn multi_queue(self) -> bool {
        self >= Kernel::V6_12
    }

    /// The scheduler it gives a device.
    pub fn default_scheduler(self, hardware_queues: u32) -> SchedulerKind {
        match (self.generation(), hardware_queues) {
            (Generation::SingleQueue, _) => SchedulerKind::Cfq,
            (Generation::MultiQueue, 0..=1) => SchedulerKind::MqDeadline,
            (Generation::MultiQueue, _) => SchedulerKind::None,
        }
    }

    /// Whether it is 2.6.18, of whatever build.
    pub fn is_2_6_18(self) -> bool {
        self < Kernel::V2_6_32
    }

    /// The largest merged request, in KiB.
    pub fn max_sectors_kb(self) -> u32 {
        match self.multi_queue() {
            false => 512,
            true => 1280,
        }
    }

    /// The most segments of a request. From 6.12 on pages that lie together are one segment, and
    /// the size is what limits.
    pub(crate) fn segments(self) -> u32 {
        match self.multi_queue() {
            false => 128,
            true => u32::MAX / 2,
        }
    }

    /// Whether tasks keep plug lists of their own; before, the whole queue was plugged.
    pub(crate) fn task_plugs(self) -> bool {
        self >= Kernel::V3_10
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A kernel level that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown kernel '{0}': the levels are {names}",
    names = Kernel::ALL.map(Kernel::name).join(", ")
)]
pub struct UnknownKernel(String);

impl FromStr for Kernel {
    type Err = UnknownKernel;
    fn from_str(text: &str) -> Result<Self, UnknownKernel> {
        // RHEL 5.2's build has the cfq of mainline.
        let text = if text == "2.6.18-92.el5" { Kernel::V2_6_18.name() } else { text };
        let known = Kernel::ALL.into_iter().find(|kernel| kernel.name() == text);
        known.ok_or_else(|| UnknownKernel(text.to_owned()))
    }
}
