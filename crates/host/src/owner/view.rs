//! A device as the files of owners name it.

use super::{OwnedSetting, Owner, OwnerKind, glob};
use crate::{DeviceNumber, Host};
use std::path::{Path, PathBuf};

/// A whole disk and where it is in sysfs.
pub(super) struct View<'a> {
    pub host: &'a Host,
    /// As in sysfs.
    pub name: String,
    /// Its folder in sysfs, all links followed.
    pub folder: PathBuf,
    /// `8:0`; a hidden path of NVMe's has none.
    pub number: Option<String>,
}

/// Whether a pattern of paths is this device's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    Yes,
    No,
    /// What it depends on.
    Perhaps(String),
}

impl<'a> View<'a> {
    pub(super) fn read(host: &'a Host, number: DeviceNumber) -> Option<View<'a>> {
        let folder = host.disk_folder(number).ok()?;
        let name = folder.file_name()?.to_str()?.to_owned();
        let number = crate::tree::text(folder.join("dev")).filter(|dev| dev != "0:0");
        Some(View { host, name, folder, number })
    }

    /// A name of a device, or a pattern of names, or of a variable.
    pub(super) fn is_named(&self, pattern: &str) -> Meant {
        match pattern {
            _ if pattern.contains(['$', '`']) => {
                Meant::Perhaps(format!("whether {pattern} is {}", self.name))
            }
            _ if glob::matches(pattern, &self.name) => Meant::Yes,
            _ => Meant::No,
        }
    }

    /// Makes an owner of this device.
    pub(super) fn owner(
        &self,
        by: OwnerKind,
        (file, line): (&Path, usize),
        text: &str,
        settings: Vec<OwnedSetting>,
        active: bool,
    ) -> Owner {
        Owner {
            by,
            file: file.to_owned(),
            line,
            text: text.trim().to_owned(),
            settings,
            devices: vec![self.name.clone()],
            run_by: None,
            events: Vec::new(),
            unknown: Vec::new(),
            active,
        }
    }

    /// The device and the setting of a path in sysfs: `/sys/block/sd*/queue/scheduler`,
    /// `block/sda/bdi/read_ahead_kb`.
    pub(super) fn setting_of_path(path: &str) -> Option<(&str, String)> {
        let (before, setting) = match path.split_once("/queue/") {
            Some((before, setting)) => (before, setting.to_owned()),
            None => (path.strip_suffix("/bdi/read_ahead_kb")?, "read_ahead_kb".to_owned()),
        };
        let device = before.rsplit('/').next()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '/';
        let plain = !setting.is_empty() && setting.chars().all(is_name);
        (plain && !device.is_empty()).then_some((device, setting))
    }
}
