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
        self.number.title(&self.name)
    }

    /// Whether it is a ublk device: it and its queue end with its server, and its number is then free
    /// for any other device.
    pub(crate) fn is_ublk(&self) -> bool {
        self.name.starts_with("ublkb")
    }

    /// Whether its settings end with it: those of real disks come back when the disk does.
    pub(crate) fn leaves_nothing(&self) -> bool {
        self.backing_file.is_some() || self.is_ublk()
    }

    /// Whether another is the same hardware, by what it says of itself; its number, name and attachment
    /// may be others after a reboot.
    pub fn is_same_hardware(&self, other: &Identity) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => Some(a == b),
            _ => None,
        };
        match (same(&self.wwid, &other.wwid), same(&self.serial, &other.serial)) {
            (Some(false), _) | (_, Some(false)) => false,
            (Some(true), _) | (_, Some(true)) => true,
            (None, None) => self.backing_file.is_some() && self.backing_file == other.backing_file,
        }
    }

    /// The device as it is now: under its number, or under another after a reboot.
    pub fn find_again(&self, host: &Host) -> Option<Identity> {
        let under_its_number = Identity::read(host, self.number);
        if let Ok(now) = under_its_number
            && self.difference(&now).is_none()
        {
            return Some(now);
        }
        let all = BlockDevice::all(host).into_iter();
        let whole = all.filter(|device| !matches!(device.kind, DeviceKind::Partition { .. }));
        whole.map(|device| Identity::of(&device)).find(|now| self.is_same_hardware(now))
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
        // Within one attachment a serial number may become known late, when udev has asked for it.
        let attached_since = self.sequence.is_some() && self.sequence == now.sequence;
        let differs = |before: &Option<String>, now: &Option<String>| match (before, now) {
            (Some(before), Some(now)) => before != now,
            (None, None) => false,
            _ => !attached_since,
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let (serial, wwid) = (text(&now.serial), text(&now.wwid));
        if differs(&self.serial, &now.serial) {
            return Some(format!("serial was {}, is {serial}", text(&self.serial)));
        }
        if differs(&self.wwid, &now.wwid) {
            return Some(format!("world-wide name was {}, is {wwid}", text(&self.wwid)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Identity {
        Identity {
            number: DeviceNumber::new(8, 0),
            name: "sda".to_owned(),
            serial: Some("S1".to_owned()),
            wwid: None,
            size: Bytes::from_gib(1),
            sequence: Some(4),
            backing_file: None,
        }
    }

    #[test]
    fn another_serial_size_or_attachment_is_another_device() {
        assert_eq!(disk().difference(&disk()), None);
        let changed = |change: &dyn Fn(&mut Identity)| {
            let mut now = disk();
            change(&mut now);
            disk().difference(&now)
        };
        let serial = changed(&|it| it.serial = Some("S2".to_owned())).unwrap();
        assert!(serial.contains("S1") && serial.contains("S2"), "{serial}");
        assert!(changed(&|it| it.size = Bytes::from_gib(2)).unwrap().contains("size was"));
        assert!(changed(&|it| it.sequence = Some(5)).unwrap().contains("attached again"));
        // Not known yet is no difference within one attachment, and is one across two.
        assert_eq!(changed(&|it| it.serial = None), None);
        assert!(changed(&|it| (it.serial, it.sequence) = (None, None)).is_some());
    }
}
