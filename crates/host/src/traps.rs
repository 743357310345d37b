//! What makes a measurement of this target say something else than it seems to.
//!
//! Each trap is one function from an [`Inspection`] to its evidence and its mend, and one paragraph
//! in docs/reference/traps.md.

mod around;
mod device;
mod filesystem;

use crate::Inspection;
use serde::{Deserialize, Serialize};

/// A trap that applies here and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trap {
    /// Its name in docs/reference/traps.md.
    pub id: String,
    /// What it is, in a sentence.
    pub title: String,
    /// What shows that it applies.
    pub evidence: String,
    /// What to do about it.
    pub mend: String,
}

/// What shows that a trap applies, and its mend.
struct Found {
    evidence: String,
    mend: String,
}

impl Found {
    fn new(evidence: impl Into<String>, mend: impl Into<String>) -> Option<Found> {
        Some(Found { evidence: evidence.into(), mend: mend.into() })
    }
}

type Rule = fn(&Inspection) -> Option<Found>;

/// Every trap: its id, its title, and how it is seen. Those that spoil most come first.
const RULES: [(&str, &str, Rule); 31] = [
    (
        "unfinished-run",
        "A run that was killed has left settings behind: they are not this host's own",
        around::unfinished_run,
    ),
    ("memory", "The target is memory: no device sees any request", filesystem::memory),
    (
        "overlay",
        "The target is an overlay (a container's / is one): its device cannot be seen from here",
        filesystem::overlay,
    ),
    (
        "network",
        "The target is on another machine: its disks and schedulers are there",
        filesystem::network,
    ),
    ("file-server", "A program serves these files: it adds its own time", filesystem::file_server),
    (
        "read-only",
        "The target is mounted read-only: only reads can be measured",
        filesystem::read_only,
    ),
    (
        "direct-is-buffered",
        "O_DIRECT may silently go through the page cache here",
        filesystem::buffered,
    ),
    ("no-direct", "O_DIRECT is not possible here", filesystem::no_direct),
    ("cache-answers", "What answers is a cache and not the medium", device::cache_answers),
    (
        "sparse-file",
        "Parts of the file were never written: they measure the allocator",
        device::sparse,
    ),
    (
        "buffered-loop",
        "The loop device goes through the page cache: everything is cached twice",
        device::buffered_loop,
    ),
    (
        "loop-discard",
        "Discards make holes in the file behind the loop device",
        device::loop_discard,
    ),
    (
        "loop-settings-stay",
        "A loop device's queue settings outlive its being detached",
        device::loop_settings,
    ),
    ("rotational-flag", "The device claims to rotate and does not", device::rotational),
    (
        "write-back-throttling",
        "Choosing bfq also turns write-back throttling off: two changes in one",
        device::throttling,
    ),
    (
        "no-barrier",
        "Flushes are turned off: fast, and data is lost with the power",
        filesystem::barriers,
    ),
    (
        "small-block",
        "Blocks smaller than the device's sector cannot be direct",
        device::small_block,
    ),
    (
        "read-before-write",
        "Buffered writes smaller than a block read it first",
        filesystem::read_before_write,
    ),
    ("queue-ceiling", "Under none the queue is bounded by the hardware's tags", device::ceiling),
    (
        "stacked-devices",
        "Several devices have schedulers on the way down: a setting acts on one of them",
        device::stacked,
    ),
    ("zoned", "The device takes writes in order only: few schedulers keep that", device::zoned),
    (
        "shared-device",
        "Others use this device: they feel every setting, and disturb",
        device::shared,
    ),
    (
        "setting-owner",
        "Something else sets these settings too and may put its own back",
        around::owned,
    ),
    (
        "boot-elevator",
        "elevator= on the boot line has done nothing since 5.0",
        around::boot_elevator,
    ),
    (
        "flash-state",
        "Flash slows with use and with heat: what runs second looks worse",
        device::flash_state,
    ),
    (
        "small-data",
        "Data that fits in memory measures memory in buffered trials",
        around::small_data,
    ),
    ("group-limit", "A control group holds us back: its limit would be measured", around::limits),
    ("no-pressure", "Other load cannot be seen: no pressure information", around::no_pressure),
    ("busy-host", "Something else is busy with I/O now", around::busy),
    ("frequency", "Processors change their frequency: latencies move with it", around::frequency),
    ("steal", "Other virtual machines take this one's processor time", around::steal),
];

/// The traps that apply.
pub fn traps(inspection: &Inspection) -> Vec<Trap> {
    let applies = |(id, title, rule): &(&str, &str, Rule)| {
        let Found { evidence, mend } = rule(inspection)?;
        Some(Trap { id: (*id).to_owned(), title: (*title).to_owned(), evidence, mend })
    };
    RULES.iter().filter_map(applies).collect()
}

/// Every trap there is: its id and its title.
pub fn all_traps() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|(id, title, _)| (*id, *title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trap_has_its_paragraph_and_each_paragraph_its_trap() {
        let page = include_str!("../../../docs/reference/traps.md");
        let paragraphs: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let ids: Vec<&str> = all_traps().map(|(id, _)| id).collect();
        assert_eq!(paragraphs, ids, "docs/reference/traps.md has them in the order of RULES");
        for section in page.split("## ").skip(1) {
            assert!(section.contains("**Seen:**") && section.contains("**Fix:**"), "{section}");
        }
    }
}
