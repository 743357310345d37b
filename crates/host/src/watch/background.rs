//! The same beside a measurement: notes who writes, and reads no setting itself.

use super::{
    notify::{Notify, settings_below},
    writer::{Writer, Writers},
};
use crate::{DeviceNumber, Host, ProcessRecord, Result, Setting, error::io_error};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep},
    time::{Duration, Instant},
};

/// A write by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWrite {
    /// Of which device.
    pub device: DeviceNumber,
    /// As in sysfs, below `queue/`.
    pub setting: String,
    /// Who.
    pub by: Writer,
}

/// Notes the writes of other processes from now on, until it is dropped.
#[derive(Debug)]
pub struct BackgroundWatch {
    seen: Arc<Mutex<Vec<SeenWrite>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long a write that has just happened may take to be noted.
const LATE: Duration = Duration::from_millis(100);

/// How long the end is waited for, and new files of schedulers are.
const PAUSE: Duration = Duration::from_millis(500);

impl BackgroundWatch {
    /// Begins to watch the queues of these devices.
    pub fn begin(
        host: &Host,
        devices: &[DeviceNumber],
        record: Option<Arc<ProcessRecord>>,
    ) -> Result<BackgroundWatch> {
        let queues: Vec<(DeviceNumber, PathBuf)> = devices
            .iter()
            .filter_map(|number| Some((*number, host.disk_folder(*number).ok()?.join("queue"))))
            .collect();
        let notify = Notify::begin()?;
        for (_, queue) in &queues {
            mark(&notify, queue)?;
        }
        let (seen, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (noted, ended) = (Arc::clone(&seen), Arc::clone(&stop));
        let writers = Writers::new(host, record);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&notify, &queues, writers, &noted, &ended))
            .map_err(io_error("start", "a thread that watches"))?;
        Ok(BackgroundWatch { seen, stop, thread: Some(thread) })
    }

    /// Forgets what was seen.
    pub fn forget(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The last write that gave this setting of the device another value, as far as it was seen.
    pub fn who_moved(&self, device: DeviceNumber, setting: &Setting) -> Option<SeenWrite> {
        let begun = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let name = setting.to_string();
            let of_device = || seen.iter().rev().filter(|it| it.device == device);
            let itself = of_device().find(|it| it.setting == name);
            let moved = || {
                of_device().find(|it| {
                    it.setting.parse::<Setting>().is_ok_and(|other| setting.is_moved_by(&other))
                })
            };
            if let Some(found) = itself.or_else(moved) {
                return Some(found.clone());
            }
            if begun.elapsed() > LATE {
                return None;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for BackgroundWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends by itself; that it panicked is nobody's concern any more.
            let _ended = thread.join();
        }
    }
}

fn watch(
    notify: &Notify,
    queues: &[(DeviceNumber, PathBuf)],
    mut writers: Writers,
    seen: &Mutex<Vec<SeenWrite>>,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(events) = notify.wait(PAUSE) else { return };
        let mut is_other_scheduler = false;
        for event in events {
            writers.note(event.pid);
            is_other_scheduler |= event.wrote && event.file.ends_with("queue/scheduler");
            if !event.wrote || event.pid == std::process::id() {
                continue;
            }
            let place = |(number, queue): &(DeviceNumber, PathBuf)| {
                let name = event.file.strip_prefix(queue).ok()?;
                Some((*number, name.to_string_lossy().into_owned()))
            };
            if let Some((device, setting)) = queues.iter().find_map(place) {
                let write = SeenWrite { device, setting, by: writers.of(event.pid) };
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(write);
            }
        }
        if is_other_scheduler {
            for (_, queue) in queues {
                // A device that is gone is told by who measures on it.
                let _gone = mark(notify, queue);
            }
        }
    }
}

fn mark(notify: &Notify, queue: &Path) -> Result<()> {
    for (file, _) in settings_below(queue) {
        notify.mark(&file)?;
    }
    Ok(())
}
