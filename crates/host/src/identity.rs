//! Whether a device is still the one that it was: names and numbers are handed out again.

use crate::{BlockDevice, DeviceKind, DeviceNumber, Host, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::Bytes;

/// What tells one device from another that later has its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name, for people.
    pub name: String,
    /// The serial number, where it has one.
    pub serial: Option<String>,
    /// The world-wide name, where it has one.
    pub wwid: Option<String>,
    /// Its size.
    pub size: Bytes,
    /// The count of attachments at which this one was attached.
    pub sequence: Option<u64>,
    /// A loop device's file.
    pub backing_file: Option<PathBuf>,
}

impl Identity {
    /// Of the device that has `number` now; of the whole disk for a partition.
    pub fn read(host: &Host, number: DeviceNumber) -> Result<Identity> {
        let mut device = BlockDevice::read(host, number)?;
        if let DeviceKind::Partition { disk, .. } = device.kind {
            device = BlockDevice::read(host, disk)?;
        }
        Ok(Identity::of(&device))
    }

    /// Of a device that was read.
    pub fn of(device: &BlockDevice) -> Identity {
        Identity {
            number: device.number,
            name: device.name.clone(),
            serial: device.serial.clone(),
            wwid: device.wwid.clone(),
            size: device.size,
            sequence: device.sequence,
            backing_file: device.loop_state().and_then(|state| state.backing_file.clone()),
        }
    }

    /// `loop3 (7:3)`.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.number)
    }

    /// What differs between this and the device that has its number now.
    ///
    /// A loop device from which its file has since been detached is the same queue, in nobody's
    /// use, and keeps the settings that were made on it: it counts as the same.
    pub fn difference(&self, now: &Identity) -> Option<String> {
        let detached = self.backing_file.is_some() && now.backing_file.is_none();
        if detached && now.size == Bytes::ZERO {
            return None;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        if self.serial != now.serial {
            return Some(format!("serial was {}, is {}", text(&self.serial), text(&now.serial)));
        }
        if self.wwid != now.wwid {
            return Some(format!(
                "world-wide name was {}, is {}",
                text(&self.wwid),
                text(&now.wwid)
            ));
        }
        if self.backing_file != now.backing_file {
            let file = |file: &Option<PathBuf>| match file {
                Some(file) => file.display().to_string(),
                None => "none".to_owned(),
            };
            return Some(format!(
                "its backing file was {}, is {}",
                file(&self.backing_file),
                file(&now.backing_file)
            ));
        }
        if self.size != now.size {
            return Some(format!("size was {} bytes, is {} bytes", self.size.0, now.size.0));
        }
        if let (Some(then), Some(now)) = (self.sequence, now.sequence)
            && then != now
        {
            return Some(format!(
                "it was detached and attached again (attachment {then}, now {now})"
            ));
        }
        None
    }
}
