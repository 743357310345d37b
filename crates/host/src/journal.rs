//! The change journal's file: what is written before anything on the host is changed.
//!
//! One file for each running process, held under `flock` while it lives. One line for each entry:
//! the CRC-32 of the rest in eight hexadecimal digits, a space, and the entry as JSON. An entry is on
//! the disk (fdatasync) before what it announces is done, so a line that is torn off at the end
//! announces something that was not done.

use crate::{
    Application, DeviceNumber, Error, Host, Identity, Result, Setting, error::io_error,
    file_id::FileId, made::Made, process_identity::process_lives,
};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use units::Nanos;

/// The ending of a journal whose changes are to stay.
pub(crate) const APPLIED: &str = "applied";

/// The version of the lines below. Lines of earlier versions are read, too; a journal of a later one is
/// not undone by us. Since 2 there is [`Event::Measures`], since 3 [`Event::Applied`], since 4
/// [`Made::RuleSetAside`].
pub const VERSION: u32 = 4;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 0 without gaps: a missing line is seen.
    pub n: u64,
    /// When it was written: seconds since 1970, by the wall clock, for people only.
    pub at_unix_s: u64,
    /// What it says.
    pub event: Event,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The first line.
    Started {
        /// [`VERSION`].
        version: u32,
        /// Of the boot: after another one, queues and mounts are new.
        boot_id: String,
        /// Of the process.
        pid: u32,
        /// What the user had typed.
        command: String,
        /// When, on CLOCK_MONOTONIC, which nobody sets. Journals of version 1 do not say.
        #[serde(default)]
        at: Nanos,
    },
    /// Trials run on these devices: until this process ends, no other one may measure them.
    Measures {
        /// Whole disks and other devices at the bottom, not partitions.
        devices: Vec<DeviceNumber>,
    },
    /// All settings of a device, before the first of them is changed.
    Snapshot(Snapshot),
    /// A setting will be changed.
    Change(Change),
    /// All settings of a device are back as they were.
    Restored {
        /// The device.
        device: DeviceNumber,
    },
    /// Something will be made.
    Make(Made),
    /// What was made at entry `n` is this file.
    Is {
        /// The entry that announced it.
        n: u64,
        /// What tells it from another of the same path.
        id: FileId,
    },
    /// What was made at entry `n` is gone, or came to nothing.
    Gone {
        /// The entry that announced it.
        n: u64,
    },
    /// All of this is to stay: the last entry before the file gets another name.
    Applied(Application),
    /// What was applied for a time is to stay.
    Confirmed,
}

/// All settings of a device at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Which device.
    pub device: Identity,
    /// Every setting that it has.
    pub values: BTreeMap<Setting, String>,
}

/// A setting that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Of which device.
    pub device: Identity,
    /// Which setting.
    pub what: Setting,
    /// Its value just before.
    pub before: String,
    /// Its value to be.
    pub after: String,
    /// Its value before the first change that this process made to the device; `None` when the
    /// scheduler that the device had then has no such tunable. In every entry, so that one readable
    /// line is enough to know what to go back to.
    pub original: Option<String>,
}

/// Where journals are kept: `$SPINDLE_STATE`, else `/var/lib/spindle` for root, else
/// `$XDG_STATE_HOME/spindle`, else `~/.local/state/spindle`.
pub fn state_folder() -> Result<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("SPINDLE_STATE") {
        return Ok(folder);
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/spindle".into());
    }
    let home = || set("HOME").map(|home| home.join(".local/state"));
    set("XDG_STATE_HOME").or_else(home).map(|folder| folder.join("spindle")).ok_or_else(|| {
        Error::Unsupported {
            what: "keeping a change journal".to_owned(),
            why: "neither SPINDLE_STATE, XDG_STATE_HOME nor HOME is set".to_owned(),
            next: "set SPINDLE_STATE to a folder on a disk".to_owned(),
        }
    })
}

/// The journal of this process, open for more.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Begins a journal in `folder`, locked, with its first line on the disk.
    pub(crate) fn begin(host: &Host, folder: &Path, command: &str) -> Result<Journal> {
        fs::create_dir_all(folder).map_err(io_error("create", folder))?;
        let pid = std::process::id();
        let stem = format!("{}-{pid}", unix_ns());
        // Locked under another name first: nobody may see it as a journal and not locked.
        let draft = folder.join(format!("{stem}.draft"));
        let path = folder.join(format!("{stem}.journal"));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&draft)
            .map_err(io_error("create", &draft))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| io_error("lock", &draft)(e.into()))?;
        let mut journal = Journal { path: draft.clone(), file, entries: Vec::new() };
        let boot_id = boot_id(host);
        let command = command.to_owned();
        let at = crate::monotonic_now();
        journal.append(Event::Started { version: VERSION, boot_id, pid, command, at })?;
        fs::rename(&draft, &path).map_err(io_error("rename", &draft))?;
        sync_folder(folder)?;
        journal.path = path;
        Ok(journal)
    }

    /// Puts one more entry on the disk; when this returns, it is there.
    pub(crate) fn append(&mut self, event: Event) -> Result<u64> {
        let n = self.entries.len() as u64;
        let entry = Entry { n, at_unix_s: unix_ns() / 1_000_000_000, event };
        let line = line_of(&entry).map_err(|e| io_error("write", &self.path)(e.into()))?;
        self.file.write_all(line.as_bytes()).map_err(io_error("write", &self.path))?;
        self.file.sync_data().map_err(io_error("sync", &self.path))?;
        self.entries.push(entry);
        Ok(n)
    }

    /// Opens a journal that was taken, for more; who took it holds its lock. One that is damaged gets
    /// no more entries.
    pub(crate) fn reopen(taken: &PendingJournal) -> Result<Journal> {
        let path = taken.path.clone();
        if let Some(damage) = taken.reading.damage.first() {
            let text = damage.to_string();
            return Err(Error::Format { path, text, expected: "a whole journal" });
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(io_error("open", &path))?;
        Ok(Journal { path, file, entries: taken.reading.entries.clone() })
    }

    /// Gives the file the name of one whose changes are to stay.
    pub(crate) fn keep(&mut self) -> Result<()> {
        let kept = self.path.with_extension(APPLIED);
        fs::rename(&self.path, &kept).map_err(io_error("rename", &self.path))?;
        sync_folder(kept.parent().unwrap_or(Path::new("/")))?;
        self.path = kept;
        Ok(())
    }

    /// What was written so far.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// What could be read of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The entries whose checksum holds, in order.
    pub entries: Vec<Entry>,
    /// What is wrong with the rest.
    pub damage: Vec<Damage>,
}

/// A part of a journal that cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Which line, from 1.
    pub line: usize,
    /// How many good entries come before it.
    pub after_entries: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// How a part is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The last line has no end: a write was interrupted, or the file was cut short.
    Torn,
    /// A line's checksum is not that of its text.
    Garbled,
    /// Lines are missing before this one, or it is out of order.
    Gap,
    /// The file does not begin with a journal's first line.
    NoStart,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let problem = match self.problem {
            Problem::Torn => "is cut off: a write was interrupted, or the file was cut short",
            Problem::Garbled => "is garbled: its checksum does not hold",
            Problem::Gap => "does not follow the one before: lines are missing",
            Problem::NoStart => "is not the first line of a journal",
        };
        write!(f, "line {} {problem}", self.line)
    }
}

impl Reading {
    /// Reads a journal's bytes, whatever became of them.
    pub fn of(bytes: &[u8]) -> Reading {
        let mut reading = Reading::default();
        let mut expected = 0;
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        for (index, line) in &mut lines {
            let mut damage = |problem, after_entries| {
                reading.damage.push(Damage { line: index + 1, after_entries, problem });
            };
            let whole = line.ends_with(b"\n");
            let Some(entry) = entry_of(line).filter(|_| whole) else {
                let problem = if whole { Problem::Garbled } else { Problem::Torn };
                damage(problem, reading.entries.len());
                // A garbled line was one entry: the next number is not a gap as well.
                expected += 1;
                continue;
            };
            if entry.n != expected {
                damage(Problem::Gap, reading.entries.len());
            }
            expected = entry.n + 1;
            reading.entries.push(entry);
        }
        if !matches!(reading.entries.first(), Some(Entry { event: Event::Started { .. }, .. })) {
            reading
                .damage
                .insert(0, Damage { line: 1, after_entries: 0, problem: Problem::NoStart });
        }
        reading
    }

    /// When it was begun, if that was in this boot and it says so.
    fn begun_in(&self, boot: &str) -> Option<Nanos> {
        match &self.entries.first()?.event {
            Event::Started { boot_id, at, .. } if boot_id == boot => Some(*at),
            _ => None,
        }
    }

    /// Its first line: version, boot, process and command.
    pub fn started(&self) -> Option<(u32, &str, u32, &str)> {
        match &self.entries.first()?.event {
            Event::Started { version, boot_id, pid, command, .. } => {
                Some((*version, boot_id, *pid, command))
            }
            _ => None,
        }
    }
}

/// A journal whose process has ended, locked by us.
#[derive(Debug)]
pub struct PendingJournal {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub reading: Reading,
    // Held so that two undoes do not meet.
    pub(crate) _lock: File,
}

/// The journals in `folder` whose processes have ended, in the order in which they must be undone.
pub fn pending(folder: &Path) -> Result<Vec<PendingJournal>> {
    let mut found = Vec::new();
    for name in crate::tree::names(folder) {
        let path = folder.join(&name);
        remove_dead_draft(&path);
        if path.extension().is_some_and(|it| it == "journal")
            && let Some(journal) = take_over(&Host::here(), &path)?
        {
            found.push(journal);
        }
    }
    latest_first(&mut found);
    Ok(found)
}

/// Removes what a process left that was killed before its journal had a name: nothing was changed yet. One that
/// lives may have its draft open and not locked yet.
fn remove_dead_draft(path: &Path) {
    let pid = path
        .extension()
        .filter(|ending| *ending == "draft")
        .and_then(|_| path.file_stem()?.to_str()?.rsplit_once('-')?.1.parse().ok());
    let dead = pid.is_some_and(|pid| crate::process_began(pid).is_none());
    let unlocked = || {
        File::open(path)
            .is_ok_and(|it| flock(&it, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    if dead && unlocked() {
        // Where it cannot be removed it harms nobody: no reader takes it for a journal.
        let _ = fs::remove_file(path);
    }
}

/// Puts journals into the order in which they must be undone: the latest first, because what a later one
/// found may be what an earlier one had set. Those of earlier boots come last, by the clock of the day,
/// which their names begin with; within this boot somebody may have set that clock.
pub fn latest_first(journals: &mut [PendingJournal]) {
    let boot = boot_id(&Host::here());
    journals.sort_by_cached_key(|journal| {
        let name = journal.path.file_name().map(ToOwned::to_owned);
        Reverse((journal.reading.begun_in(&boot), name))
    });
}

/// The journals in `folder` whose processes live, but for `own`: where they are and what they say so far.
pub(crate) fn living(host: &Host, folder: &Path, own: &Path) -> Vec<Reading> {
    let living = |name: String| {
        let path = folder.join(name);
        let other = path.extension().is_some_and(|it| it == "journal") && path != own;
        let mut file = other.then(|| File::open(&path).ok()).flatten()?;
        // Whoever gets the lock meets a journal whose process has ended.
        let ended = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let reading = read_from_start(&mut file).ok()?;
        let lives = reading.started().is_some_and(|(_, _, pid, _)| process_lives(host, pid));
        (!ended && lives).then_some(reading)
    };
    crate::tree::names(folder).into_iter().filter_map(living).collect()
}

/// Opens and locks a journal; `None` while its process lives, or when it has gone meanwhile.
fn take_over(host: &Host, path: &Path) -> Result<Option<PendingJournal>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    let locked = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let begun = Instant::now();
    while !locked(&file) {
        // Forked children hold the lock with their parent, and a little longer when it is killed.
        if begun.elapsed() > CHILDREN_MAY_TAKE || writer_lives(host, &mut file) {
            return Ok(None);
        }
        sleep(Duration::from_millis(20));
    }
    if !path.exists() {
        return Ok(None);
    }
    let reading = read_from_start(&mut file).map_err(io_error("read", path))?;
    Ok(Some(PendingJournal { path: path.to_owned(), reading, _lock: file }))
}

/// How long the children of a process that was killed may take to end.
const CHILDREN_MAY_TAKE: Duration = Duration::from_secs(3);

/// Whether the process that writes a journal is alive; true when that is not known.
fn writer_lives(host: &Host, file: &mut File) -> bool {
    let reading = read_from_start(file).unwrap_or_default();
    reading.started().is_none_or(|(_, _, pid, _)| process_lives(host, pid))
}

fn read_from_start(file: &mut File) -> std::io::Result<Reading> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(Reading::of(&bytes))
}

/// Which boot this is.
pub(crate) fn boot_id(host: &Host) -> String {
    host.text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Makes a folder's entries last.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let open = File::open(folder).map_err(io_error("open", folder))?;
    open.sync_all().map_err(io_error("sync", folder))
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn line_of(entry: &Entry) -> serde_json::Result<String> {
    let json = serde_json::to_string(entry)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

fn entry_of(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, json) = line.split_once(' ')?;
    (sum.len() == 8 && u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(json.as_bytes()))
        .then(|| serde_json::from_str(json).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries() -> Vec<Entry> {
        let started = Event::Started {
            version: VERSION,
            boot_id: "b".into(),
            pid: 7,
            command: "spindle compare".into(),
            at: Nanos(7),
        };
        let gone = |n| Event::Gone { n };
        [started, gone(1), gone(2), gone(3)]
            .into_iter()
            .enumerate()
            .map(|(n, event)| Entry { n: n as u64, at_unix_s: 1, event })
            .collect()
    }

    fn bytes() -> Vec<u8> {
        entries().iter().flat_map(|entry| line_of(entry).unwrap().into_bytes()).collect()
    }

    #[test]
    fn a_dead_process_leaves_no_draft_and_a_living_one_keeps_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let draft = |pid: u32| folder.path().join(format!("1-{pid}.draft"));
        // Beyond the largest process number that Linux gives.
        let (dead, own) = (draft(4_194_305), draft(std::process::id()));
        for path in [&dead, &own] {
            fs::write(path, "").unwrap();
        }
        pending(folder.path()).unwrap();
        assert!(!dead.exists() && own.exists());
    }

    #[test]
    fn check_value_of_the_crc() {
        // The check value that every catalogue of CRCs gives for this one.
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn whole_journal_reads_back() {
        let reading = Reading::of(&bytes());
        assert_eq!(reading.entries, entries());
        assert_eq!(reading.damage, []);
    }

    #[test]
    fn journals_are_undone_from_the_latest_whatever_the_clock_of_the_day_was() {
        let boot = boot_id(&Host::here());
        let journal = |name: &str, boot: &str, at: u64| {
            let event = Event::Started {
                version: VERSION,
                boot_id: boot.to_owned(),
                pid: 7,
                command: "spindle compare".into(),
                at: Nanos::from_secs(at),
            };
            let entries = vec![Entry { n: 0, at_unix_s: 1, event }];
            let reading = Reading { entries, damage: Vec::new() };
            let _lock = File::open("/dev/null").unwrap();
            PendingJournal { path: PathBuf::from(name), reading, _lock }
        };
        // The second of this boot began after the clock of the day was set back.
        let mut all = [
            journal("500-7.journal", &boot, 10),
            journal("600-7.journal", "another boot", 90),
            journal("100-7.journal", &boot, 20),
            journal("700-7.journal", "another boot", 80),
        ];
        latest_first(&mut all);
        let names: Vec<_> = all.iter().map(|it| it.path.to_str().unwrap()).collect();
        assert_eq!(names, ["100-7.journal", "500-7.journal", "700-7.journal", "600-7.journal"]);
    }

    #[test]
    fn missing_lines_are_seen() {
        let all = bytes();
        let lines: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
        let reading = Reading::of(&[lines[0], lines[1], lines[3]].concat());
        assert_eq!(reading.entries.len(), 3);
        assert_eq!(reading.damage[0].problem, Problem::Gap);
        assert_eq!(Reading::of(lines[1]).damage[0].problem, Problem::NoStart);
        assert_eq!(Reading::of(b"").damage[0].problem, Problem::NoStart);
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_keeps_the_whole_lines(cut in 0usize..400) {
            let all = bytes();
            let cut = cut.min(all.len());
            let reading = Reading::of(&all[..cut]);
            let whole = all[..cut].iter().filter(|b| **b == b'\n').count();
            prop_assert_eq!(&reading.entries[..], &entries()[..whole]);
            let torn = cut > 0 && all[cut - 1] != b'\n';
            prop_assert_eq!(reading.damage.iter().any(|it| it.problem == Problem::Torn), torn);
        }

        #[test]
        fn a_flipped_bit_never_gives_another_entry(at in 0usize..400, bit in 0u8..8) {
            let mut all = bytes();
            let at = at % all.len();
            all[at] ^= 1 << bit;
            let reading = Reading::of(&all);
            prop_assert!(!reading.damage.is_empty() || all[at].eq_ignore_ascii_case(&bytes()[at]));
            for entry in &reading.entries {
                prop_assert!(entries().contains(entry));
            }
        }
    }
}
