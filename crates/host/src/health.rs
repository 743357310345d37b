//! What a drive says of its own state where no program has to ask it: temperature, and wear.
//!
//! NVMe's temperature is in hwmon since Linux 5.5, SATA's where the module drivetemp is loaded; wear is shown for
//! eMMC and UFS alone. What the kernel does not show is left out: `smartctl` asks the drive itself.

use crate::{
    BlockDevice, Bus, DeviceKind, Host,
    tree::{names, number, words},
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The state of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveHealth {
    /// The kernel's name of the device.
    pub device: String,
    /// How warm each of its controllers is.
    pub temperatures: Vec<Temperature>,
    /// How worn it is.
    pub wear: Option<Wear>,
}

/// A sensor of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// Now, °C.
    pub celsius: f64,
    /// From here on the drive warns, and many slow themselves down, °C; none where it names none.
    pub warning: Option<f64>,
    /// From here on it slows itself down or stops, °C.
    pub critical: Option<f64>,
    /// Whether it warns of its temperature now.
    pub alarm: bool,
    /// The sensor's folder in sysfs.
    pub read_from: PathBuf,
}

/// How much of the life of its cells is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wear {
    /// At most so many percent, of its kinds of cells the most worn; 110 where that is more than its life, none
    /// where the drive does not say.
    pub used_percent_max: Option<u8>,
    /// How much of its spare blocks is used.
    pub spare: Option<Spare>,
    /// The files in sysfs.
    pub read_from: Vec<PathBuf>,
}

/// How much of a drive's spare blocks is used (JEDEC's PRE_EOL_INFO).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spare {
    /// Less than 80 %.
    Normal,
    /// 80 %.
    Warning,
    /// 90 %.
    Urgent,
}

impl Temperature {
    /// Whether it is where the drive warns.
    pub fn is_hot(&self) -> bool {
        self.alarm || self.warning.or(self.critical).is_some_and(|limit| self.celsius >= limit)
    }
}

impl DriveHealth {
    /// Of a whole disk; `None` where the kernel shows nothing.
    pub fn read(host: &Host, device: &BlockDevice) -> Option<DriveHealth> {
        if device.kind != DeviceKind::Disk || device.bus == Bus::Virtual {
            return None;
        }
        let disk = host.disk_folder(device.number).ok()?;
        let temperatures =
            sensors(&disk).iter().filter_map(|folder| temperature(host, folder)).collect();
        let found = DriveHealth {
            device: device.name.clone(),
            temperatures,
            wear: embedded_card(host, &disk).or_else(|| embedded_ufs(host, &disk)),
        };
        (!found.temperatures.is_empty() || found.wear.is_some()).then_some(found)
    }
}

/// Folders of hwmon of the device itself: those of a whole machine are no sensors of its drive.
fn sensors(disk: &Path) -> Vec<PathBuf> {
    let device = disk.join("device");
    // An NVMe device of several controllers has their links in its subsystem's folder.
    let numbered =
        |name: &String| name.strip_prefix("nvme").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let controllers = names(&device).into_iter().filter(numbered).map(|name| device.join(name));
    let of = |folder: PathBuf| {
        // With NVMe the sensor has been below the controller since Linux 5.12, below the PCI device before.
        let places = [folder.clone(), folder.join("hwmon"), folder.join("device/hwmon")];
        let in_folder = |place: PathBuf| {
            let is_sensor = |name: &String| {
                name.strip_prefix("hwmon").is_some_and(|rest| rest.parse::<u32>().is_ok())
            };
            names(&place).into_iter().filter(is_sensor).map(move |name| place.join(name))
        };
        places.into_iter().flat_map(in_folder).collect::<Vec<_>>()
    };
    let mut all: Vec<PathBuf> =
        [device.clone()].into_iter().chain(controllers).flat_map(of).collect();
    // Links lead to one sensor by several ways.
    let place = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    all = all.iter().map(place).collect();
    all.sort();
    all.dedup();
    all.retain(|folder| {
        words(folder.join("name")).is_some_and(|name| name == "nvme" || name == "drivetemp")
    });
    all
}

fn temperature(host: &Host, folder: &Path) -> Option<Temperature> {
    let celsius = |file: &str| number::<f64>(folder.join(file)).map(|it| it / 1000.0);
    Some(Temperature {
        celsius: celsius("temp1_input")?,
        // A drive without such a limit says that it is at absolute zero or beyond what a sensor can say.
        warning: celsius("temp1_max").filter(is_a_limit),
        critical: celsius("temp1_crit").filter(is_a_limit),
        alarm: number::<u8>(folder.join("temp1_alarm")).is_some_and(|it| it != 0),
        read_from: host.inside(folder),
    })
}

fn is_a_limit(celsius: &f64) -> bool {
    (0.0..200.0).contains(celsius) && *celsius > 0.0
}

/// eMMC: `life_time` has two kinds of cells.
fn embedded_card(host: &Host, disk: &Path) -> Option<Wear> {
    let folder = disk.join("device");
    let files = ["life_time", "pre_eol_info"].map(|file| folder.join(file));
    let values: Vec<String> = words(&files[0])?.split_whitespace().map(str::to_owned).collect();
    wear(host, &values, words(&files[1]), &files)
}

/// UFS: the controller's folder, above the SCSI host that it appears as, has the device's descriptor.
fn embedded_ufs(host: &Host, disk: &Path) -> Option<Wear> {
    let folder =
        disk.ancestors().map(|it| it.join("health_descriptor")).find(|folder| folder.is_dir())?;
    let files =
        ["life_time_estimation_a", "life_time_estimation_b", "eol_info"].map(|it| folder.join(it));
    let values: Vec<String> = files[..2].iter().filter_map(words).collect();
    wear(host, &values, words(&files[2]), &files)
}

/// Each life time is in tenths: 1 says up to 10 % used, 11 more than its life; 0 says nothing.
fn wear(host: &Host, tenths: &[String], spare: Option<String>, files: &[PathBuf]) -> Option<Wear> {
    let hex = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let most = tenths.iter().filter_map(|it| hex(it)).filter(|it| (1..=11).contains(it)).max();
    let spare = match spare.as_deref().and_then(hex) {
        Some(1) => Some(Spare::Normal),
        Some(2) => Some(Spare::Warning),
        Some(3) => Some(Spare::Urgent),
        _ => None,
    };
    (most.is_some() || spare.is_some()).then(|| Wear {
        used_percent_max: most.map(|it| it * 10),
        spare,
        read_from: files.iter().filter(|it| it.exists()).map(|it| host.inside(it)).collect(),
    })
}
