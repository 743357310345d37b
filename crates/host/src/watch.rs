//! Who writes the settings of a device, as it happens.
//!
//! The kernel tells of writes to files of sysfs through fanotify: at once, with the process, and with
//! nothing to take back should this program be killed. What it does not tell is a write through the
//! `/sys` of another network namespace; then the value has moved and no process is named.

mod background;
mod notify;
mod writer;

use crate::{
    DeviceNumber, Error, Host, Owner, OwnerKind, Place, ProcessRecord, Result, SchedulerChoice,
    Setting, owners,
};
pub use background::{BackgroundWatch, SeenWrite};
use notify::Notify;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
pub use writer::Writer;
use writer::Writers;

/// A setting that was written, or that moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingWrite {
    /// When, in ms since 1970.
    pub at_unix_ms: u64,
    /// The device's name.
    pub device: String,
    /// The setting as in sysfs, below `queue/`: "scheduler", "iosched/fifo_batch".
    pub setting: String,
    /// Its value before; none where it was not there.
    pub before: Option<String>,
    /// Its value after.
    pub after: Option<String>,
    /// Who wrote it; none where nobody was seen.
    pub by: Option<Writer>,
    /// Where it is written that this program does so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said_in: Option<Place>,
}

/// A file whose value is watched. It stays open: opening it is an event, too.
#[derive(Clone, Debug)]
struct Watched {
    device: String,
    setting: String,
    file: Arc<File>,
    value: Option<String>,
}

/// From a shell's opening of a file, which cuts it and thus is a write already, to its write.
const TOGETHER: Duration = Duration::from_millis(20);

/// How long a value may be another before the write that made it so is told of.
const UNTOLD: Duration = Duration::from_millis(300);

/// Watches the settings of devices.
#[derive(Debug)]
pub struct Watch {
    host: Host,
    devices: Vec<DeviceNumber>,
    queues: Vec<(String, PathBuf)>,
    notify: Notify,
    files: BTreeMap<PathBuf, Watched>,
    /// Settings that have moved, since when, without a write that is known yet.
    unexplained: BTreeMap<PathBuf, Instant>,
    writers: Writers,
    /// As they were at the last write: a profile may be another by then than when it all began.
    owners: Vec<Owner>,
}

impl Watch {
    /// Begins to watch the queues of these devices; `record` names processes that end at once.
    pub fn begin(
        host: &Host,
        devices: &[DeviceNumber],
        record: Option<Arc<ProcessRecord>>,
    ) -> Result<Watch> {
        let mut queues: Vec<(String, PathBuf)> = Vec::new();
        for number in devices {
            let disk = host.disk_folder(*number)?;
            let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let queue = disk.join("queue");
            if queue.is_dir() && !queues.iter().any(|(it, _)| *it == name) {
                queues.push((name, queue));
            }
        }
        if queues.is_empty() {
            return Err(Error::Unsupported {
                what: "watching settings".to_owned(),
                why: "no device below the target has a queue".to_owned(),
                next: "name a block device: spindle inspect lists them".to_owned(),
            });
        }
        let mut watch = Watch {
            host: host.clone(),
            devices: devices.to_vec(),
            queues,
            notify: Notify::begin()?,
            files: BTreeMap::new(),
            unexplained: BTreeMap::new(),
            writers: Writers::new(host, record),
            owners: Vec::new(),
        };
        watch.look_for_files()?;
        Ok(watch)
    }

    /// Names of the devices that are watched, and of how many settings.
    pub fn what(&self) -> (Vec<&str>, usize) {
        (self.queues.iter().map(|(name, _)| name.as_str()).collect(), self.files.len())
    }

    /// Waits until something is written, at most so long; what has been written since the last call.
    pub fn wait(&mut self, most: Duration) -> Result<Vec<SettingWrite>> {
        let mut found: Vec<SettingWrite> = Vec::new();
        let mut written: Vec<(PathBuf, u32, Watched)> = Vec::new();
        let mut time = most;
        loop {
            let events = self.notify.wait(time)?;
            let more = events.iter().any(|event| event.wrote) && time != TOGETHER;
            for event in events {
                self.writers.note(event.pid);
                let is_known = written.iter().any(|it| (&it.0, it.1) == (&event.file, event.pid));
                if !event.wrote || event.pid == std::process::id() || is_known {
                    continue;
                }
                let Some(before) = self.files.get(&event.file).cloned() else { continue };
                // Another scheduler has tunables of its own, also where they have the same names. They are watched
                // before anything else is looked at: who chose it may set one of them next.
                if before.setting == "scheduler" {
                    self.files.retain(|_, it| {
                        it.device != before.device || !it.setting.starts_with("iosched/")
                    });
                    self.look_for_files()?;
                }
                written.push((event.file, event.pid, before));
            }
            if !more {
                break;
            }
            std::thread::sleep(TOGETHER);
            time = TOGETHER;
        }
        if !written.is_empty() {
            self.owners = owners(&self.host, &self.devices);
        }
        for (_, pid, before) in &written {
            let after = value(&before.file, &before.setting);
            let by = Some(self.writers.of(*pid));
            found.push(self.write(before, after, by));
        }
        self.look_for_files()?;
        found.extend(self.moved_unseen(&found));
        Ok(found)
    }

    /// Settings that are something else than when they were last looked at, without a write that was
    /// seen and that explains it. Their values are noted.
    fn moved_unseen(&mut self, seen: &[SettingWrite]) -> Vec<SettingWrite> {
        let now: BTreeMap<PathBuf, Option<String>> = self
            .files
            .iter()
            .map(|(file, it)| (file.clone(), value(&it.file, &it.setting)))
            .collect();
        let mut found = Vec::new();
        for (file, after) in now {
            let Some(known) = self.files.get(&file).cloned() else { continue };
            if known.value == after {
                self.unexplained.remove(&file);
                continue;
            }
            let explains = |write: &SettingWrite| {
                write.device == known.device && moves(&write.setting, &known.setting)
            };
            if !seen.iter().any(explains) {
                let since = self.unexplained.entry(file.clone()).or_insert_with(Instant::now);
                if since.elapsed() < UNTOLD {
                    continue;
                }
                found.push(self.write(&known, after.clone(), None));
            }
            self.unexplained.remove(&file);
            self.files.insert(file, Watched { value: after, ..known });
        }
        found
    }

    fn write(&self, known: &Watched, after: Option<String>, by: Option<Writer>) -> SettingWrite {
        let said_in = by.as_ref().and_then(|by| {
            let kind = by.owner_kind();
            let says = |owner: &&Owner| {
                let same_program = Some(owner.by) == kind
                    || (owner.by == OwnerKind::Systemd && by.is_unit_of(owner));
                same_program
                    && owner.devices.contains(&known.device)
                    && owner.settings.iter().any(|it| {
                        it.name == known.setting
                            && it.value.as_ref().is_none_or(|value| Some(value) == after.as_ref())
                    })
            };
            let owner = self.owners.iter().rev().find(says)?;
            Some(Place { file: owner.file.clone(), line: owner.line })
        });
        SettingWrite {
            at_unix_ms: unix_ms(),
            device: known.device.clone(),
            setting: known.setting.clone(),
            before: known.value.clone(),
            after,
            by,
            said_in,
        }
    }

    /// Marks the files that are there and not yet marked; forgets those that are gone.
    fn look_for_files(&mut self) -> Result<()> {
        self.files.retain(|file, _| file.exists());
        for (device, queue) in &self.queues {
            for (path, setting) in notify::settings_below(queue) {
                if self.files.contains_key(&path) {
                    continue;
                }
                // It may go meanwhile, and some can only be written.
                let Ok(file) = File::open(&path) else { continue };
                if self.notify.mark(&path)? {
                    let (file, device) = (Arc::new(file), device.clone());
                    let value = value(&file, &setting);
                    self.files.insert(path, Watched { device, setting, file, value });
                }
            }
        }
        Ok(())
    }
}

/// A setting's value, of a scheduler only the current one's name; none where it cannot be read.
fn value(file: &File, setting: &str) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(&bytes[..length]).trim().to_owned();
    match setting {
        "scheduler" => SchedulerChoice::parse(&text).map(|choice| choice.current),
        _ => Some(text),
    }
}

/// Whether a write of `written` may have given `other` another value.
fn moves(written: &str, other: &str) -> bool {
    match (written.parse::<Setting>(), other.parse::<Setting>()) {
        _ if written == other => true,
        (Ok(written), Ok(other)) => other.is_moved_by(&written),
        _ => false,
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
