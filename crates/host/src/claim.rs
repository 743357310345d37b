//! Two runs on one device at once would measure each other's load: who measures a device claims it. The
//! claim stands in the change journal, so it ends with its process, however that ends. Processes with
//! state folders of their own (other users, other containers) do not see each other's claims.

use crate::{
    Changes, DeviceNumber, Error, Event, Result,
    changes::snapshot_title,
    error::io_error,
    journal::{Reading, living},
};
use rustix::fs::{FlockOperation, flock};
use std::{fs::File, path::Path};

impl Changes {
    /// Claims whole devices for the trials of this process. Refused when a process that lives has claimed
    /// one of them.
    pub fn claim(&mut self, devices: &[DeviceNumber]) -> Result<()> {
        let own = self.journal().to_owned();
        let folder = own.parent().unwrap_or(Path::new("/"));
        // One at a time, or two that begin at once would each find the other.
        let one_at_a_time = File::open(folder).map_err(io_error("open", folder))?;
        flock(&one_at_a_time, FlockOperation::LockExclusive)
            .map_err(|error| io_error("lock", folder)(error.into()))?;
        let others = living(self.host(), folder, &own);
        let taken = others.iter().find_map(|other| {
            let claimed = claimed(other);
            let device = devices.iter().find(|device| claimed.contains(device))?;
            let (_, _, pid, command) = other.started()?;
            Some((*device, pid, command.to_owned()))
        });
        if let Some((device, pid, command)) = taken {
            return Err(Error::Measured {
                device: snapshot_title(self.host(), device),
                pid,
                command,
            });
        }
        self.note(Event::Measures { devices: devices.to_vec() })
    }
}

/// The devices that a journal's process has claimed.
fn claimed(reading: &Reading) -> Vec<DeviceNumber> {
    let of = |event: &Event| match event {
        Event::Measures { devices } => devices.clone(),
        _ => Vec::new(),
    };
    reading.entries.iter().flat_map(|entry| of(&entry.event)).collect()
}
