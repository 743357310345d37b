//! The change journal's file: what is written before anything on the host is changed.
//!
//! One file for each running process, held under `flock` while it lives. One line for each entry:
//! the CRC-32 of the rest in eight hexadecimal digits, a space, and the entry as JSON. An entry is on
//! the disk (fdatasync) before what it announces is done, so a line that is torn off at the end
//! announces something that was not done.

mod reading;

pub use reading::{Damage, Problem, Reading};

use crate::{
    Application, DeviceNumber, Error, Host, HostIdentity, Identity, Result, Setting,
    error::io_error, file_id::FileId, made::Made, process_identity::process_lives,
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
/// [`Made::RuleSetAside`], since 5 the host.
pub const VERSION: u32 = 5;

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
        /// Of the host. Journals before version 5 do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostIdentity>,
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
    /// Where the whole lines end, if something stands behind them that could not be cut off.
    torn: Option<u64>,
}

impl Journal {
    /// Begins a journal in `folder`, locked, with its first line on the disk.
    pub(crate) fn begin(host: &Host, folder: &Path, command: &str) -> Result<Journal> {
        fs::create_dir_all(folder).map_err(io_error("create", folder))?;
        let pid = std::process::id();
        let (now, own) = (unix_ns(), HostIdentity::read(host));
        // Locked under another name first: nobody may see it as a journal and not locked.
        let draft = folder.join(format!("{now}-{}-{pid}.draft", own.word()));
        let path = folder.join(format!("{now}-{pid}.journal"));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&draft)
            .map_err(io_error("create", &draft))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| io_error("lock", &draft)(e.into()))?;
        let mut journal = Journal { path: draft.clone(), file, entries: Vec::new(), torn: None };
        let boot_id = boot_id(host);
        let command = command.to_owned();
        let at = crate::monotonic_now();
        let host = Some(own);
        journal.append(Event::Started { version: VERSION, boot_id, pid, command, at, host })?;
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
        self.cut_torn()?;
        let whole = self.file.metadata().map_err(io_error("look at", &self.path))?.len();
        self.file.write_all(line.as_bytes()).map_err(|error| {
            // A disk that is full may have taken a part of the line, which the next one must not join.
            self.torn = Some(whole);
            // Tried again before the next line.
            let _ = self.cut_torn();
            io_error("write", &self.path)(error)
        })?;
        self.file.sync_data().map_err(io_error("sync", &self.path))?;
        self.entries.push(entry);
        Ok(n)
    }

    /// Cuts off a line that was written in part: it announces something that was not done.
    fn cut_torn(&mut self) -> Result<()> {
        let Some(whole) = self.torn else { return Ok(()) };
        self.file.set_len(whole).map_err(io_error("cut", &self.path))?;
        self.torn = None;
        Ok(())
    }

    /// Opens a journal that was taken, for more; who took it holds its lock. One that is damaged gets
    /// no more entries; of one whose last line was torn off, that is cut away.
    pub(crate) fn reopen(taken: &PendingJournal) -> Result<Journal> {
        let path = taken.path.clone();
        let file = OpenOptions::new().append(true).open(&path).map_err(io_error("open", &path))?;
        let entries = taken.reading.entries.clone();
        let mut journal = Journal { path, file, entries, torn: None };
        match &taken.reading.damage[..] {
            [] => {}
            [Damage { problem: Problem::Torn, .. }] => {
                let path = &journal.path;
                let bytes = fs::read(path).map_err(io_error("read", path))?;
                let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                journal.torn = Some(whole as u64);
                journal.cut_torn()?;
            }
            [damage, ..] => {
                let text = damage.to_string();
                return Err(Error::Format {
                    path: journal.path,
                    text,
                    expected: "a whole journal",
                });
            }
        }
        Ok(journal)
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

/// The journals in `folder` whose processes have ended, in the order in which they must be undone. Those of
/// other hosts are not among them: whether their processes have ended cannot be seen from here.
pub fn pending(folder: &Path) -> Result<Vec<PendingJournal>> {
    let mut found = Vec::new();
    let here = HostIdentity::read(&Host::here());
    for name in crate::tree::names(folder) {
        let path = folder.join(&name);
        remove_dead_draft(&path, &here);
        if path.extension().is_some_and(|it| it == "journal")
            && !is_of_other_host(&path, &here)
            && let Some(journal) = take_over(&Host::here(), &path)?
        {
            found.push(journal);
        }
    }
    latest_first(&mut found);
    Ok(found)
}

fn is_of_other_host(path: &Path, here: &HostIdentity) -> bool {
    let reading = File::open(path).and_then(|mut file| read_from_start(&mut file));
    reading.is_ok_and(|reading| reading.other_host(here).is_some())
}

/// Removes what a process left that was killed before its journal had a name: nothing was changed yet. One that
/// lives may have its draft open and not locked yet; of one of another host that is not known.
fn remove_dead_draft(path: &Path, here: &HostIdentity) {
    let of_host = |stem: &str| {
        // Drafts before version 5 have no word for the host.
        let own = stem.matches('-').count() < 2 || stem.contains(&format!("-{}-", here.word()));
        own.then(|| stem.rsplit_once('-')?.1.parse().ok()).flatten()
    };
    let pid = path
        .extension()
        .filter(|ending| *ending == "draft")
        .and_then(|_| of_host(path.file_stem()?.to_str()?));
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
    let here = HostIdentity::read(host);
    let living = |name: String| {
        let path = folder.join(name);
        let other = path.extension().is_some_and(|it| it == "journal") && path != own;
        let mut file = other.then(|| File::open(&path).ok()).flatten()?;
        // Whoever gets the lock meets a journal whose process has ended.
        let ended = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let reading = read_from_start(&mut file).ok()?;
        // Another host's devices are others, whatever their numbers.
        if reading.other_host(&here).is_some() {
            return None;
        }
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

#[cfg(test)]
mod tests;
