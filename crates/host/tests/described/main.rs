//! Machines that are not at hand: their `/sys` and `/proc` made up below a folder, as the kernel's
//! documentation describes them. Needs neither root nor devices.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod health;
mod stacks;

use host::{
    AtomicAnswer, AtomicUnsaid, AtomicWrites, BlockDevice, Bus, Chain, DeviceKind, DeviceNumber,
    Host, QueueFolder, Refusal, Setting,
};
use std::{fs, os::unix::fs::symlink, path::Path};
use tempfile::TempDir;
use units::Bytes;

/// A made-up machine.
struct Made(TempDir);

impl Made {
    fn new() -> Made {
        let made = Made(tempfile::tempdir().unwrap());
        made.write("proc/self/mountinfo", "");
        made
    }

    fn host(&self) -> Host {
        Host::at(self.0.path())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device at `place` below `/sys/devices`, with what every device has.
    fn device(&self, number: &str, place: &str, files: &[(&str, &str)]) {
        let folder = format!("sys/devices/{place}");
        self.write(&format!("{folder}/dev"), number);
        self.write(&format!("{folder}/size"), "2097152");
        for (file, text) in files {
            self.write(&format!("{folder}/{file}"), text);
        }
        let link = |from: String| {
            let from = self.0.path().join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            symlink(self.0.path().join(&folder), from).unwrap();
        };
        link(format!("sys/dev/block/{number}"));
        let name = Path::new(place).file_name().unwrap().to_str().unwrap();
        if !files.iter().any(|(file, _)| *file == "partition") {
            link(format!("sys/block/{name}"));
        }
    }

    /// `upper` stands on `lower`.
    fn stands(&self, upper: &str, lower: &str) {
        let folder = |number: &str| {
            fs::canonicalize(self.0.path().join("sys/dev/block").join(number)).unwrap()
        };
        let (upper, lower) = (folder(upper), folder(lower));
        for (at, to, kind) in [(&upper, &lower, "slaves"), (&lower, &upper, "holders")] {
            fs::create_dir_all(at.join(kind)).unwrap();
            symlink(to, at.join(kind).join(to.file_name().unwrap())).unwrap();
        }
    }

    fn chain(&self, number: &str) -> Chain {
        Chain::of_device(&self.host(), number.parse().unwrap()).unwrap()
    }
}

const QUEUE: &[(&str, &str)] = &[
    ("queue/scheduler", "none [mq-deadline] kyber\n"),
    ("queue/nr_requests", "64\n"),
    ("queue/rotational", "1\n"),
    ("mq/0/nr_tags", "32\n"),
];

fn with_queue<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    QUEUE.iter().chain(more).copied().collect()
}

fn names(chain: &Chain) -> Vec<(u32, String)> {
    let depths = chain.layers.iter().map(|layer| layer.depth);
    depths.zip(chain.devices().map(|device| device.name.clone())).collect()
}

#[test]
fn tags_are_those_that_are_ours_and_a_scsi_device_takes_fewer_at_once() {
    let made = Made::new();
    let files = [("mq/0/nr_tags", "193\n"), ("mq/0/nr_reserved_tags", "1\n")];
    let disk = [&QUEUE[..3], &files, &[("device/queue_depth", "8\n")]].concat();
    made.device("8:0", "pci0000:00/0000:00:05.0/host0/target0:0:0/0:0:0:0/block/sda", &disk);
    let chain = made.chain("8:0");
    let queue = chain.devices().next().unwrap().queue.as_ref().unwrap();
    assert_eq!((queue.hardware_tags, queue.device_queue_depth), (Some(192), Some(8)));
}

#[test]
fn a_volume_on_encryption_on_an_array_of_partitions() {
    let made = Made::new();
    let sata = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block";
    for (letter, major) in [("a", 0), ("b", 16)] {
        let disk = format!("{sata}/sd{letter}");
        let drive = [("device/model", "ST4000NM0035"), ("device/vendor", "ATA     ")];
        made.device(&format!("8:{major}"), &disk, &with_queue(&drive));
        let partition = [("partition", "1"), ("start", "2048")];
        made.device(&format!("8:{}", major + 1), &format!("{disk}/sd{letter}1"), &partition);
    }
    let queue = [("queue/rotational", "1")];
    let md = [&queue[..], &[("md/level", "raid1\n")]].concat();
    made.device("9:0", "virtual/block/md0", &md);
    let crypt = [("dm/uuid", "CRYPT-LUKS2-0123-crypt"), ("dm/name", "crypt")];
    made.device("253:0", "virtual/block/dm-0", &crypt);
    let volume = [("dm/uuid", "LVM-abc"), ("dm/name", "vg-data")];
    made.device("253:1", "virtual/block/dm-1", &volume);
    for (upper, lower) in [("253:1", "253:0"), ("253:0", "9:0"), ("9:0", "8:1"), ("9:0", "8:17")] {
        made.stands(upper, lower);
    }
    let chain = made.chain("253:1");
    let expected =
        [(0, "dm-1"), (1, "dm-0"), (2, "md0"), (3, "sda1"), (4, "sda"), (3, "sdb1"), (4, "sdb")];
    assert_eq!(names(&chain), expected.map(|(depth, name)| (depth, name.to_owned())));
    let scheduled: Vec<String> = chain.scheduled.iter().map(ToString::to_string).collect();
    assert_eq!(scheduled, ["8:0", "8:16"], "settings act on the drives");
    let kinds: Vec<&DeviceKind> = chain.devices().map(|device| &device.kind).collect();
    assert!(matches!(kinds[0], DeviceKind::Mapper { flavour, .. } if flavour == "LVM"));
    assert!(matches!(kinds[1], DeviceKind::Mapper { flavour, .. } if flavour == "CRYPT"));
    assert!(matches!(kinds[2], DeviceKind::Md { level } if level == "raid1"));
    let drive = chain.first_varied_device().unwrap();
    assert_eq!((drive.bus, drive.model.as_deref()), (Bus::Sata, Some("ST4000NM0035")));
    let queue = drive.queue.as_ref().unwrap();
    assert_eq!(queue.nr_requests_ceiling.as_ref().unwrap().value, 2048);
}

#[test]
fn async_depth_of_the_queue_and_what_refuses_it() {
    let made = Made::new();
    let place = "pci0000:00/0000:00:02.0/virtio1/block/vda";
    made.device("252:0", place, &with_queue(&[("queue/async_depth", "3\n")]));
    let folder = QueueFolder::of(&made.host(), "252:0".parse().unwrap()).unwrap();
    let check = |value: &str, under| folder.check(&Setting::AsyncDepth, value, under);
    assert_eq!(folder.read_all()[&Setting::AsyncDepth], "3");
    let device = BlockDevice::read(&made.host(), "252:0".parse().unwrap()).unwrap();
    assert_eq!(device.queue.unwrap().async_depth, Some(3));
    assert_eq!(check(" 48 ", None).unwrap(), "48");
    assert!(matches!(check("0", None), Err(Refusal::BadValue { .. })));
    assert!(matches!(check("some", None), Err(Refusal::BadValue { .. })));
    assert!(matches!(check("48", Some("none")), Err(Refusal::NeedsScheduler { .. })));
    // Who asks for it where it was before is told where it is.
    let older = Setting::Tunable("async_depth".to_owned());
    let error = folder.check(&older, "3", Some("mq-deadline")).unwrap_err();
    assert!(error.to_string().contains("--async-depth"), "{error}");
    // An older kernel has none.
    made.device("252:16", "pci0000:00/0000:00:03.0/virtio2/block/vdb", QUEUE);
    let folder = QueueFolder::of(&made.host(), "252:16".parse().unwrap()).unwrap();
    let error = folder.check(&Setting::AsyncDepth, "3", None).unwrap_err();
    assert!(matches!(error, Refusal::NoSuchSetting { .. }), "{error}");
    assert!(error.to_string().contains("mq-deadline.async_depth"), "{error}");
}

#[test]
fn a_scheduler_that_no_table_knows_is_used_by_its_name() {
    let made = Made::new();
    let place = "pci0000:00/0000:00:02.0/virtio1/block/vda";
    let queue = |current: &str| {
        let files = [
            ("queue/scheduler", current),
            ("queue/nr_requests", "64\n"),
            ("mq/0/nr_tags", "32\n"),
            ("queue/iosched/batch_actual", "7\n"),
        ];
        made.device("252:0", place, &files);
        QueueFolder::of(&made.host(), "252:0".parse().unwrap()).unwrap()
    };
    let tunable = |name: &str| Setting::Tunable(name.to_owned());
    let folder = queue("none mq-deadline [adios] ufq\n");
    assert_eq!(folder.read(&Setting::Scheduler).unwrap(), "adios");
    assert_eq!(folder.check(&Setting::Scheduler, "ufq", None).unwrap(), "ufq");
    // In use, its tunables are those that the kernel lists.
    assert_eq!(folder.read_all()[&tunable("batch_actual")], "7");
    assert_eq!(folder.check(&tunable("batch_actual"), "9", Some("adios")).unwrap(), "9");
    let error = folder.check(&tunable("batch_actua"), "9", Some("adios")).unwrap_err();
    assert!(error.to_string().contains("did you mean batch_actual?"), "{error}");
    // Not in use, they show once it is: any name may be right.
    assert_eq!(folder.check(&tunable("read_priority"), "9", Some("ufq")).unwrap(), "9");
    assert!(folder.check(&tunable("read_priority"), "much", Some("ufq")).is_err());
    // Those of a known one are in its table.
    assert_eq!(folder.check(&tunable("fifo_batch"), "9", Some("mq-deadline")).unwrap(), "9");
    assert!(folder.check(&tunable("batch_actual"), "9", Some("mq-deadline")).is_err());
    // What is not offered is refused, with what took its place.
    let gone = folder.check(&Setting::Scheduler, "cfq", None).unwrap_err().to_string();
    assert!(gone.contains("removed in Linux 5.0") && gone.contains("bfq"), "{gone}");
    let gone = folder.check(&Setting::Scheduler, "noop", None).unwrap_err().to_string();
    assert!(gone.contains("the nearest to it is none"), "{gone}");
}

#[test]
fn each_bus_by_its_place() {
    let made = Made::new();
    let cases = [
        ("pci0000:00/0000:00:02.0/virtio1/block/vda", Bus::Virtio),
        ("pci0000:00/0000:01:00.0/nvme/nvme1/nvme1n1", Bus::Nvme),
        ("pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sdc", Bus::Sata),
        ("pci0000:00/0000:03:00.0/host4/target4:2:0/4:2:0:0/block/sdd", Bus::Scsi),
        ("pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sde", Bus::Usb),
        ("pci0000:00/0000:00:1c.0/mmc_host/mmc0/mmc0:0001/block/mmcblk0", Bus::Mmc),
        ("virtual/block/dm-7", Bus::Virtual),
        ("vbd-51712/block/xvda", Bus::Xen),
    ];
    for (index, (place, bus)) in cases.into_iter().enumerate() {
        let number = format!("200:{index}");
        made.device(&number, place, &[]);
        let device = BlockDevice::read(&made.host(), number.parse().unwrap()).unwrap();
        assert_eq!(device.bus, bus, "{place}");
    }
}

#[test]
fn serial_numbers_from_where_each_driver_puts_them() {
    let made = Made::new();
    let scsi = "pci0000:00/0000:03:00.0/host4/target4:2:0/4:2:0:0/block/sdd";
    let page = [("device/vpd_pg80", "\0\u{0}\0\u{8}WX11A234")];
    made.device("8:48", scsi, &page);
    made.device("8:64", &scsi.replace("sdd", "sde"), &[]);
    made.write("run/udev/data/b8:64", "E:ID_MODEL=x\nE:ID_SERIAL=long_S1\nE:ID_SERIAL_SHORT=S1\n");
    made.device("252:0", "pci0000:00/0000:00:02.0/virtio1/block/vda", &[("serial", "disk-1\n")]);
    let serial = |number: &str| {
        let number: DeviceNumber = number.parse().unwrap();
        BlockDevice::read(&made.host(), number).unwrap().serial
    };
    assert_eq!(serial("8:48").as_deref(), Some("WX11A234"));
    assert_eq!(serial("8:64").as_deref(), Some("S1"));
    assert_eq!(serial("252:0").as_deref(), Some("disk-1"));
}

#[test]
fn the_kernel_s_age_is_told_from_a_device_without_atomic_writes() {
    let made = Made::new();
    let place = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block";
    let units = [
        ("queue/atomic_write_unit_min_bytes", "4096\n"),
        ("queue/atomic_write_unit_max_bytes", "65536\n"),
    ];
    made.device("8:0", &format!("{place}/sda"), &with_queue(&units));
    made.device("8:16", &format!("{place}/sdb"), QUEUE);
    let of = |number: &str| {
        let mut chain = made.chain(number);
        // Only the device's own word is made up: a file that surely has nothing to say stands for the rest.
        chain.target = "/proc/self/status".into();
        AtomicWrites::of_chain(&made.host(), &chain).unwrap()
    };
    let new = of("8:0");
    assert_eq!(new.devices[0].unit_max, Some(Bytes::from_kib(64)));
    assert_eq!(new.answer(Bytes::from_kib(16)), AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem));
    let old = of("8:16");
    assert_eq!(old.answer(Bytes::from_kib(16)), AtomicAnswer::Unsaid(AtomicUnsaid::Kernel));
}
