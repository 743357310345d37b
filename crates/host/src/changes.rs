//! All changes that this process makes to the host: announced in the journal, made, read back, and
//! put back in reverse order at the end.
//!
//! Interruption: a signal handler sets a flag and does nothing else; the code that sees the flag
//! calls [`Changes::finish`]. Dropping does the same, so an error or a panic on the way leaves the
//! host as it was; what cannot be put back then stays in the journal for [`crate::undo`].

use crate::{
    Application, Change, DeviceNumber, Error, Event, FileId, Host, Identity, Made, Outcome, Result,
    Setting, Snapshot, Step, UndoReport,
    error::io_error,
    journal::{Journal, Reading, state_folder, sync_folder},
    queue_folder::QueueFolder,
    undo::{Held, open_queue, removed, restore_queue, undo_entries},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Of which device.
    pub device: DeviceNumber,
    /// Which setting.
    pub setting: Setting,
    /// What was asked for.
    pub asked: String,
    /// What it was.
    pub before: String,
    /// What the kernel says it is now; compare it with what was asked.
    pub took: String,
}

/// A setting that is no longer what it was set to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Which device, by name and number.
    pub device: String,
    /// Which setting.
    pub setting: Setting,
    /// What it was set to.
    pub set_to: String,
    /// What it reads now, or why it cannot be read.
    pub reads: String,
}

/// The changes of this process, in a journal of its own.
#[derive(Debug)]
pub struct Changes {
    host: Host,
    journal: Journal,
    // The settings of each device before our first change to it, until they are restored.
    before: BTreeMap<DeviceNumber, Snapshot>,
    // The values that the journal says each setting may have from us, until its device is restored. To announce one
    // again would tell undo nothing, and a comparison sets the same few for hours.
    announced: BTreeMap<DeviceNumber, BTreeSet<(Setting, String)>>,
    expected: BTreeMap<(DeviceNumber, Setting), String>,
    // Scratch files and folders, which somebody may have moved by the time that they are taken away.
    held: Held,
    finished: bool,
}

impl Changes {
    /// Begins a journal in the state folder. `command` is what the user typed, for people.
    pub fn begin(host: &Host, command: &str) -> Result<Changes> {
        Changes::begin_in(host, &state_folder()?, command)
    }

    /// Begins a journal in `folder`.
    pub fn begin_in(host: &Host, folder: &Path, command: &str) -> Result<Changes> {
        let journal = Journal::begin(host, folder, command)?;
        Ok(Changes {
            host: host.clone(),
            journal,
            before: BTreeMap::new(),
            announced: BTreeMap::new(),
            expected: BTreeMap::new(),
            held: Held::new(),
            finished: false,
        })
    }

    /// The journal's file, which `spindle undo` needs after a crash.
    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    /// The host that is changed.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Sets one setting of a device: checked, announced, written, read back.
    ///
    /// Setting what is set already writes nothing. The value that the kernel took may differ from
    /// the one asked for (4 for 1); a scheduler that was not taken is an error.
    pub fn set(&mut self, number: DeviceNumber, setting: &Setting, value: &str) -> Result<Applied> {
        let folder = QueueFolder::of(&self.host, number)?;
        let device = Identity::read(&self.host, number)?;
        let number = device.number;
        let wanted = folder.check(setting, value, None)?;
        let before = folder.read(setting)?;
        let mut applied = Applied {
            device: number,
            setting: setting.clone(),
            asked: value.to_owned(),
            before: before.clone(),
            took: before.clone(),
        };
        if before != wanted {
            let snapshot = self.snapshot(&folder, &device)?;
            let value = (setting.clone(), wanted.clone());
            if !self.announced.get(&number).is_some_and(|known| known.contains(&value)) {
                self.journal.append(Event::Change(Change {
                    device,
                    what: setting.clone(),
                    before,
                    after: wanted.clone(),
                    original: snapshot.values.get(setting).cloned(),
                }))?;
                self.announced.entry(number).or_default().insert(value);
            }
            applied.took = folder.write(setting, &wanted)?;
        }
        if *setting == Setting::Scheduler && applied.took != wanted {
            return Err(Error::NotKept {
                device: snapshot_title(&self.host, number),
                setting: setting.to_string(),
                wrote: wanted,
                reads: applied.took,
            });
        }
        if applied.took != applied.before {
            self.forget_moved(number, setting);
        }
        self.expected.insert((number, setting.clone()), applied.took.clone());
        Ok(applied)
    }

    /// The device's settings before our first change, noted now if this is the first.
    fn snapshot(&mut self, folder: &QueueFolder, device: &Identity) -> Result<Snapshot> {
        if let Some(snapshot) = self.before.get(&device.number) {
            return match snapshot.device.difference(device) {
                None => Ok(snapshot.clone()),
                Some(difference) => Err(Error::OtherDevice { device: device.title(), difference }),
            };
        }
        let snapshot = Snapshot { device: device.clone(), values: folder.read_all() };
        self.journal.append(Event::Snapshot(snapshot.clone()))?;
        self.before.insert(device.number, snapshot.clone());
        Ok(snapshot)
    }

    /// What a change moves is no longer expected to be what it was set to.
    fn forget_moved(&mut self, number: DeviceNumber, changed: &Setting) {
        self.expected
            .retain(|(device, setting), _| *device != number || !setting.is_moved_by(changed));
    }

    /// The settings that we set and that are something else now. Empty before and after a trial, or
    /// the trial is void.
    pub fn verify(&self) -> Vec<Drift> {
        let moved = |((number, setting), set_to): (&(DeviceNumber, Setting), &String)| {
            let reads = QueueFolder::of(&self.host, *number)
                .and_then(|folder| folder.read(setting))
                .unwrap_or_else(|error| error.to_string());
            (reads != *set_to).then(|| Drift {
                device: snapshot_title(&self.host, *number),
                setting: setting.clone(),
                set_to: set_to.clone(),
                reads,
            })
        };
        self.expected.iter().filter_map(moved).collect()
    }

    /// Puts all settings of one device back and goes on; what else was made stays.
    pub fn restore(&mut self, number: DeviceNumber) -> Result<Vec<Step>> {
        let number = Identity::read(&self.host, number).map_or(number, |device| device.number);
        let Some(queue) = open_queue(self.journal.entries(), number) else {
            return Ok(Vec::new());
        };
        let journal = &mut self.journal;
        let steps = restore_queue(&self.host, &queue, false, &mut |change| {
            journal.append(Event::Change(change)).map(drop)
        });
        self.expected.retain(|(device, _), _| *device != number);
        if steps.iter().all(|step| step.outcome.is_right()) {
            self.journal.append(Event::Restored { device: number })?;
            self.before.remove(&number);
            self.announced.remove(&number);
        }
        Ok(steps)
    }

    /// Announces something that is about to be made; gives the number for [`Changes::is`] and
    /// [`Changes::unmake`].
    pub(crate) fn announce(&mut self, made: Made) -> Result<u64> {
        self.journal.append(Event::Make(made))
    }

    /// Puts an entry into the journal.
    pub(crate) fn note(&mut self, event: Event) -> Result<()> {
        self.journal.append(event).map(drop)
    }

    /// The number that the next entry will have: unique within this process.
    pub(crate) fn next_entry(&self) -> usize {
        self.journal.entries().len()
    }

    /// Notes which file or folder was made, and holds it.
    pub(crate) fn is(&mut self, n: u64, made: Arc<OwnedFd>, path: &Path) -> Result<()> {
        let id = FileId::of_open(made.as_fd()).map_err(io_error("look at", path))?;
        self.held.insert(n, made);
        self.journal.append(Event::Is { n, id }).map(drop)
    }

    /// Notes that what was announced came to nothing.
    pub(crate) fn gone(&mut self, n: u64) -> Result<()> {
        self.held.remove(&n);
        self.journal.append(Event::Gone { n }).map(drop)
    }

    /// Takes one thing away that was announced as `n`, and notes it.
    pub(crate) fn unmake(&mut self, n: u64) -> Result<()> {
        let found =
            crate::undo::things(self.journal.entries()).into_iter().find_map(|thing| match thing {
                crate::undo::Thing::Made { n: its, made, id } if its == n => Some((made, id)),
                _ => None,
            });
        let Some((made, id)) = found else {
            return Ok(());
        };
        match made.unmake(&self.host, id, self.held.get(&n).map(AsFd::as_fd)) {
            Outcome::Done | Outcome::AlreadyRight => self.gone(n),
            Outcome::Refused { why } | Outcome::Failed { why } => Err(Error::Unsupported {
                what: format!("taking away {}", made.title()),
                why,
                next: "end what uses it, then run: spindle undo".to_owned(),
            }),
        }
    }

    /// Notes a process that must not outlive us, such as a database server that we started.
    pub fn started_process(&mut self, pid: u32, name: &str) -> Result<()> {
        let started_ticks =
            crate::process_identity::process_start(&self.host, pid).unwrap_or_default();
        self.announce(Made::Process { pid, started_ticks, name: name.to_owned() }).map(drop)
    }

    /// A device's settings before our first change to it; none where there was no change.
    pub fn originals(&self, number: DeviceNumber) -> BTreeMap<Setting, String> {
        self.before.get(&number).map(|snapshot| snapshot.values.clone()).unwrap_or_default()
    }

    /// Leaves everything as it is now, until `spindle undo`; gives the journal's file, which is kept.
    ///
    /// Killed before the file has its new name, the changes are those of a program that was cut off,
    /// and `spindle undo` puts them back.
    pub fn keep(mut self, application: Application) -> Result<PathBuf> {
        self.journal.append(Event::Applied(application))?;
        self.journal.keep()?;
        self.finished = true;
        Ok(self.journal.path().to_owned())
    }

    /// Puts everything back, in reverse order, and removes the journal when all is as it was.
    pub fn finish(mut self) -> Result<UndoReport> {
        self.put_back()
    }

    /// Ends without putting anything back: what was changed stays in the journal, for `spindle undo`. For a
    /// device that hangs: the kernel would wait for it at every step.
    pub fn leave_for_undo(mut self) {
        self.finished = true;
    }

    fn put_back(&mut self) -> Result<UndoReport> {
        self.finished = true;
        let mut report =
            UndoReport { journal: self.journal.path().to_owned(), ..UndoReport::default() };
        let reading = Reading { entries: self.journal.entries().to_vec(), damage: Vec::new() };
        undo_entries(&self.host, &reading, &self.held, &mut report);
        self.held.clear();
        let path = self.journal.path();
        if report.is_complete() {
            removed(fs::remove_file(path)).map_err(io_error("delete", path))?;
            sync_folder(path.parent().unwrap_or(Path::new("/")))?;
        } else {
            report.kept = Some(PathBuf::from(path));
        }
        Ok(report)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if !self.finished {
            // A destructor can report nothing: what fails stays in the journal, for the next start.
            let _in_the_journal = self.put_back();
        }
    }
}

pub(crate) fn snapshot_title(host: &Host, number: DeviceNumber) -> String {
    Identity::read(host, number).map_or_else(|_| number.to_string(), |device| device.title())
}
