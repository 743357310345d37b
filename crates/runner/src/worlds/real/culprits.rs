//! Who else writes the settings that a run compares.

use super::settings;
use host::{BackgroundWatch, Changes, DeviceNumber, Host, ProcessRecord, SeenWrite, Setting};
use record::Mover;
use std::sync::Arc;

/// Watches the devices of the current trial, as far as this host lets us.
pub struct Culprits {
    /// Names of processes that end at once; without it they have only their numbers.
    record: Option<Arc<ProcessRecord>>,
    watch: Option<(Vec<DeviceNumber>, Result<BackgroundWatch, host::Error>)>,
}

impl Culprits {
    pub fn begin(changes: &mut Changes) -> Culprits {
        Culprits { record: changes.record_processes().ok().map(Arc::new), watch: None }
    }

    /// Forgets what was seen, and watches these devices from now on.
    pub fn watch(&mut self, host: &Host, devices: &[DeviceNumber]) {
        match &self.watch {
            Some((watched, Ok(watch))) if watched == devices => watch.forget(),
            _ => {
                // What is watched now ends first.
                self.watch = None;
                let watch = BackgroundWatch::begin(host, devices, self.record.clone());
                self.watch = Some((devices.to_vec(), watch));
            }
        }
    }

    /// Who gave a setting another value; none of a name that is no setting of these devices.
    pub fn who_moved(&self, devices: &[DeviceNumber], name: &str) -> Option<Mover> {
        let (device, setting) = devices.iter().enumerate().rev().find_map(|(place, number)| {
            let rest = name.strip_prefix(&settings::prefix(place, *number))?;
            Some((*number, rest.parse::<Setting>().ok()?))
        })?;
        let (_, watch) = self.watch.as_ref()?;
        Some(match watch {
            Ok(watch) => watch.who_moved(device, &setting).map_or(Mover::NotSeen, mover),
            Err(error) => Mover::NotWatched { why: error.to_string() },
        })
    }
}

fn mover(seen: SeenWrite) -> Mover {
    let by = seen.by;
    Mover::Process {
        pid: by.pid,
        name: by.name,
        command: by.command,
        unit: by.unit,
        parents: by.parents.iter().map(ToString::to_string).collect(),
    }
}
