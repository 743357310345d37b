//! What drives say of their own state, in the places where kernels show it.

use crate::{Made, QUEUE, with_queue};
use host::{BlockDevice, DriveHealth, Spare, Temperature, Trap};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

impl Made {
    fn sensor(&self, folder: &str, name: &str, files: &[(&str, &str)]) {
        self.write(&format!("{folder}/name"), name);
        for (file, text) in files {
            self.write(&format!("{folder}/{file}"), text);
        }
    }

    fn link(&self, from: &str, to: &str) {
        let from = self.host().path(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(self.host().path(to), from).unwrap();
    }

    fn health(&self, number: &str) -> Option<DriveHealth> {
        let host = self.host();
        let device = BlockDevice::read(&host, number.parse().unwrap()).unwrap();
        DriveHealth::read(&host, &device)
    }
}

const WARM: &[(&str, &str)] = &[
    ("temp1_input", "41850\n"),
    ("temp1_max", "81850\n"),
    ("temp1_crit", "84850\n"),
    ("temp1_alarm", "0\n"),
];

#[test]
fn nvme_says_how_warm_it_is() {
    let made = Made::new();
    let controller = "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0";
    let place = "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";
    made.device("259:0", place, QUEUE);
    made.link(&format!("{controller}/nvme0n1/device"), controller);
    // Nothing of the machine's own sensors.
    made.sensor("sys/devices/platform/coretemp.0/hwmon/hwmon0", "coretemp", WARM);
    assert_eq!(made.health("259:0"), None);
    made.sensor(&format!("{controller}/hwmon1"), "nvme", WARM);
    let health = made.health("259:0").unwrap();
    let expected = Temperature {
        celsius: 41.85,
        warning: Some(81.85),
        critical: Some(84.85),
        alarm: false,
        read_from: PathBuf::from("/").join(controller).join("hwmon1"),
    };
    assert_eq!(health.temperatures, [expected]);
    assert!(!health.temperatures[0].is_hot());
    assert_eq!(health.wear, None, "the kernel shows none of NVMe");
    // Warmer than it may be; another without limits, whose kernel says -273.15 °C for them.
    made.write(&format!("{controller}/hwmon1/temp1_input"), "81850\n");
    assert!(made.health("259:0").unwrap().temperatures[0].is_hot());
    made.write(&format!("{controller}/hwmon1/temp1_max"), "-273150\n");
    made.write(&format!("{controller}/hwmon1/temp1_crit"), "65261850\n");
    let unlimited = &made.health("259:0").unwrap().temperatures[0];
    assert_eq!((unlimited.warning, unlimited.critical), (None, None));
    assert!(!unlimited.is_hot());
    made.write(&format!("{controller}/hwmon1/temp1_alarm"), "1\n");
    assert!(made.health("259:0").unwrap().temperatures[0].is_hot());
}

#[test]
fn each_controller_of_a_subsystem_has_its_sensor() {
    let made = Made::new();
    let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    made.device("259:0", "virtual/nvme-subsystem/nvme-subsys0/nvme0n1", &[]);
    made.link(&format!("{subsystem}/nvme0n1/device"), subsystem);
    for (number, place) in [(0, "0000:01:00.0"), (1, "0000:02:00.0")] {
        let device = format!("sys/devices/pci0000:00/{place}");
        let controller = format!("{device}/nvme/nvme{number}");
        made.write(&format!("{controller}/state"), "live\n");
        made.link(&format!("{subsystem}/nvme{number}"), &controller);
        made.link(&format!("{controller}/device"), &device);
        // Where Linux 5.5 to 5.11 have it.
        made.sensor(&format!("{device}/hwmon/hwmon{number}"), "nvme", WARM);
    }
    let health = made.health("259:0").unwrap();
    let places: Vec<&Path> = health.temperatures.iter().map(|it| it.read_from.as_path()).collect();
    let expected = [(1, 0), (2, 1)].map(|(slot, number)| {
        PathBuf::from(format!("/sys/devices/pci0000:00/0000:0{slot}:00.0/hwmon/hwmon{number}"))
    });
    assert_eq!(places, expected);
}

#[test]
fn drives_of_other_kinds_say_what_their_drivers_show() {
    let made = Made::new();
    let sata = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0";
    made.device("8:0", &format!("{sata}/block/sda"), QUEUE);
    made.link(&format!("sys/devices/{sata}/block/sda/device"), &format!("sys/devices/{sata}"));
    assert_eq!(made.health("8:0"), None);
    made.sensor(
        &format!("sys/devices/{sata}/hwmon/hwmon2"),
        "drivetemp",
        &[("temp1_input", "58000\n"), ("temp1_max", "55000\n")],
    );
    assert!(made.health("8:0").unwrap().temperatures[0].is_hot());

    let card = "platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:0001";
    let files = [("device/life_time", "0x02 0x03\n"), ("device/pre_eol_info", "0x01\n")];
    made.device("179:0", &format!("{card}/block/mmcblk0"), &with_queue(&files));
    let wear = made.health("179:0").unwrap().wear.unwrap();
    assert_eq!((wear.used_percent_max, wear.spare), (Some(30), Some(Spare::Normal)));
    assert!(wear.read_from[0].ends_with("mmc0:0001/block/mmcblk0/device/life_time"));
    // One that does not say.
    let files = [("device/life_time", "0x00 0x00\n"), ("device/pre_eol_info", "0x00\n")];
    made.device("179:8", &format!("{card}/block/mmcblk1"), &with_queue(&files));
    assert_eq!(made.health("179:8"), None);

    let ufs = "platform/soc/1d84000.ufshc";
    made.device("8:16", &format!("{ufs}/host0/target0:0:0/0:0:0:0/block/sdb"), QUEUE);
    for (file, text) in [
        ("life_time_estimation_a", "0x0b\n"),
        ("life_time_estimation_b", "0x01\n"),
        ("eol_info", "0x02\n"),
    ] {
        made.write(&format!("sys/devices/{ufs}/health_descriptor/{file}"), text);
    }
    let wear = made.health("8:16").unwrap().wear.unwrap();
    assert_eq!((wear.used_percent_max, wear.spare), (Some(110), Some(Spare::Warning)));
    assert_eq!(wear.read_from.len(), 3);
}

#[test]
fn what_is_said_of_a_device_has_the_place_where_it_was_read() {
    let made = Made::new();
    let place = "pci0000:00/0000:00:05.0/virtio2/block/vda";
    made.device("254:0", place, &with_queue(&[("queue/logical_block_size", "4096")]));
    made.device("254:1", &format!("{place}/vda1"), &[("partition", "1"), ("start", "2048")]);
    let device = BlockDevice::read(&made.host(), "254:1".parse().unwrap()).unwrap();
    let folder = PathBuf::from("/sys/devices").join(place);
    assert_eq!(device.read_from, folder.join("vda1"));
    assert_eq!(device.queue.as_ref().unwrap().read_from, folder.join("queue"));
    let trap = Trap::SmallBlock { device: (&device).into(), sector: units::Bytes(4096) };
    let json = serde_json::to_value(&trap).unwrap();
    assert_eq!(json["device"]["read_from"][1], folder.join("queue").to_str().unwrap());
}
