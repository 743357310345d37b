//! What a target stands on: which devices, in which role, and whose settings are varied.

use crate::{Made, QUEUE, names, with_queue};
use host::{BlockDevice, Bus, Chain, DeviceNumber, Host, Inspection, QueueFolder, Role, Setting};
use skipped::{Need, skip};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

fn roles(chain: &Chain) -> Vec<(String, Option<Role>)> {
    let roles = chain.layers.iter().map(|layer| layer.role);
    chain.devices().map(|device| device.name.clone()).zip(roles).collect()
}

fn varied(chain: &Chain) -> Vec<&str> {
    chain.varied_devices().map(|device| device.name.as_str()).collect()
}

impl Made {
    /// A hidden disk: it has no number.
    fn hidden(&self, place: &str, files: &[(&str, &str)]) {
        let folder = format!("sys/devices/{place}");
        self.write(&format!("{folder}/size"), "2097152");
        self.write(&format!("{folder}/hidden"), "1");
        for (file, text) in files {
            self.write(&format!("{folder}/{file}"), text);
        }
        let name = Path::new(place).file_name().unwrap();
        let link = self.host().path("/sys/block").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.host().path("/").join(&folder), link).unwrap();
    }
}

#[test]
fn an_nvme_device_of_several_controllers_stands_on_its_hidden_paths() {
    let made = Made::new();
    let head = [("wwid", "eui.0025"), ("queue/rotational", "0"), ("queue/scheduler", "none")];
    made.device("259:0", "virtual/nvme-subsystem/nvme-subsys0/nvme0n1", &head);
    let place = |name: &str| format!("pci0000:00/0000:01:00.0/nvme/nvme0/{name}");
    made.hidden(&place("nvme0c0n1"), &with_queue(&[("stat", "1 2 3 4 5 6 7 8 9 10 11")]));
    // Some kernels say that a hidden one has the number of no device.
    made.hidden(&place("nvme0c1n1"), &with_queue(&[("dev", "0:0")]));
    made.hidden(&place("nvme0c0n2"), QUEUE);
    let chain = made.chain("259:0");
    let expected = [(0, "nvme0n1"), (1, "nvme0c0n1"), (1, "nvme0c1n1")];
    assert_eq!(names(&chain), expected.map(|(depth, name)| (depth, name.to_owned())));
    assert_eq!(chain.devices().next().unwrap().bus, Bus::Nvme);
    assert!(chain.layers[1..].iter().all(|layer| layer.role == Some(Role::Path)));
    assert_eq!(varied(&chain), ["nvme0c0n1", "nvme0c1n1"]);
    // They are found by what identifies them, also after it was written down.
    let text = chain.varied[1].to_string();
    let number: DeviceNumber = text.parse().unwrap();
    assert_eq!(BlockDevice::read(&made.host(), number).unwrap().name, "nvme0c1n1");
    let folder = QueueFolder::of(&made.host(), number).unwrap();
    assert_eq!(folder.read(&Setting::Scheduler).unwrap(), "mq-deadline");
    let mut all: Vec<String> =
        BlockDevice::all(&made.host()).into_iter().map(|it| it.name).collect();
    all.sort();
    assert_eq!(all, ["nvme0c0n1", "nvme0c0n2", "nvme0c1n1", "nvme0n1"]);
}

#[test]
fn a_cache_and_what_it_stands_before_are_told_apart() {
    let made = Made::new();
    let flash = [("queue/rotational", "0")];
    made.device("8:0", "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", QUEUE);
    made.write("sys/block/sda/bcache/cache_mode", "writethrough [writeback] writearound none");
    let nvme = "pci0000:80/0000:81:00.0/nvme/nvme4/nvme4n1";
    made.device("259:2", nvme, &[&QUEUE[..2], &QUEUE[3..], &flash].concat());
    made.write("sys/block/nvme4n1/bcache/cache_replacement_policy", "[lru] fifo random");
    made.device("251:0", "virtual/block/bcache0", &[("queue/rotational", "1")]);
    made.stands("251:0", "8:0");
    made.stands("251:0", "259:2");
    let chain = made.chain("251:0");
    let role = |name: &str, role| (name.to_owned(), Some(role));
    let expected = [role("nvme4n1", Role::Cache), role("sda", Role::Backing)];
    assert_eq!(roles(&chain)[1..], expected);
    assert_eq!(varied(&chain), ["sda"], "a cache may serve others");
    assert_eq!(chain.scheduled.len(), 2, "both are recorded");
}

#[test]
fn every_member_of_an_array_is_varied_and_nothing_below_a_scheduler() {
    let made = Made::new();
    for (letter, minor) in [("a", 0), ("b", 16)] {
        let place = format!("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/block/sd{letter}");
        made.device(&format!("8:{minor}"), &place, QUEUE);
    }
    made.device("9:0", "virtual/block/md0", &[("md/level", "raid10\n")]);
    made.stands("9:0", "8:0");
    made.stands("9:0", "8:16");
    let chain = made.chain("9:0");
    assert_eq!(varied(&chain), ["sda", "sdb"]);
    assert!(chain.layers[1..].iter().all(|layer| layer.role == Some(Role::Member)));
    // Request-based multipath has a scheduler itself, which decides what its paths see.
    let mpath = with_queue(&[("dm/uuid", "mpath-3600"), ("dm/name", "mpatha")]);
    made.device("253:0", "virtual/block/dm-0", &mpath);
    made.stands("253:0", "8:0");
    made.stands("253:0", "8:16");
    let chain = made.chain("253:0");
    assert_eq!(varied(&chain), ["dm-0"]);
    assert_eq!(chain.scheduled.len(), 3);
    assert!(chain.layers[1..].iter().all(|layer| layer.role == Some(Role::Path)));
}

#[test]
fn a_kernel_before_5_0_has_schedulers_without_hardware_queues() {
    let made = Made::new();
    let files = [
        ("queue/scheduler", "noop deadline [cfq] \n"),
        ("queue/nr_requests", "128\n"),
        ("queue/rotational", "1\n"),
        ("queue/iosched/slice_idle", "8\n"),
    ];
    let place = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    made.device("8:0", place, &files);
    made.device("253:0", "virtual/block/dm-0", &[("queue/scheduler", "none\n")]);
    made.stands("253:0", "8:0");
    let chain = made.chain("253:0");
    assert_eq!(varied(&chain), ["sda"]);
    let folder = QueueFolder::of(&made.host(), chain.varied[0]).unwrap();
    assert_eq!(folder.read(&Setting::Scheduler).unwrap(), "cfq");
    assert_eq!(folder.check(&Setting::Scheduler, "deadline", None).unwrap(), "deadline");
    assert_eq!(folder.check(&Setting::Scheduler, "noop", None).unwrap(), "noop");
    assert_eq!(folder.check(&Setting::NrRequests, "100000", None).unwrap(), "100000");
    let tunable = Setting::Tunable("slice_idle".to_owned());
    assert_eq!(folder.check(&tunable, "0", Some("cfq")).unwrap(), "0");
    let refused = folder.check(&Setting::Scheduler, "mq-deadline", None).unwrap_err().to_string();
    assert!(refused.contains("noop, deadline, cfq"), "{refused}");
}

#[test]
fn a_filesystem_that_names_several_devices_stands_on_all_of_them() {
    let made = Made::new();
    for (letter, minor) in [("b", 16), ("c", 32)] {
        let disk = format!("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/block/sd{letter}");
        made.device(&format!("8:{minor}"), &disk, QUEUE);
        let partition = [("partition", "1"), ("start", "2048")];
        let name = format!("sd{letter}1");
        made.device(&format!("8:{}", minor + 1), &format!("{disk}/{name}"), &partition);
        made.write(&format!("sys/class/block/{name}/dev"), &format!("8:{}", minor + 1));
    }
    made.write(
        "proc/self/mountinfo",
        "23 22 8:33 / /mnt/test rw,relatime - bcachefs /dev/sdc1:/dev/sdb1 rw,foreground_target=x\n",
    );
    made.write("mnt/test/file", "");
    let host = Host::at(fs::canonicalize(made.host().path("/")).unwrap());
    let chain = Chain::of(&host, &host.path("/mnt/test")).unwrap();
    let names: Vec<&str> = chain.devices().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sdc1", "sdc", "sdb1", "sdb"]);
    assert_eq!(varied(&chain), ["sdc", "sdb"]);
    // The guards ask the same of each mount.
    let sources = host::mounts(&host).unwrap()[0].sources(&host);
    assert_eq!(sources, ["8:33", "8:17"].map(|text| text.parse().unwrap()));
}

/// A host that was captured: its script makes the tree.
fn captured(case: &str) -> Option<(tempfile::TempDir, Host)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/field")
        .join(case)
        .join("mkhost.sh");
    if !script.exists() {
        skip(Need::Data, &format!("{} is not here", script.display()));
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("bash").arg(&script).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let host = Host::at(fs::canonicalize(folder.path()).unwrap());
    Some((folder, host))
}

fn inspected(host: &Host, path: &str) -> Inspection {
    let target: PathBuf = host.path(path);
    Inspection::of(host, &target, false).unwrap()
}

#[test]
fn a_captured_host_with_nvme_of_two_ports() {
    let Some((_folder, host)) = captured("30-host-nvme-native-multipath") else { return };
    let inspection = inspected(&host, "/");
    let chain = &inspection.chain;
    assert_eq!(varied(chain), ["nvme0c0n1"]);
    let queue = chain.first_varied_device().unwrap().queue.as_ref().unwrap();
    let choice = queue.scheduler.as_ref().unwrap();
    assert_eq!(
        (&*choice.current, &choice.available[..]),
        ("none", &["none", "mq-deadline"].map(String::from)[..])
    );
    assert_eq!((queue.nr_requests, queue.hardware_queues), (Some(1023), 32));
    // The head counts nothing; what is counted is the path's.
    let mut sampler = host::Sampler::new(&here_with_stat_of(&host), &chain.varied).unwrap();
    let counted = sampler.sample().device.unwrap();
    assert_eq!(counted.reads.completed, 34_706_049);
}

/// The captured host has no /proc of its own: this machine's stands in.
fn here_with_stat_of(host: &Host) -> Host {
    for file in ["stat", "meminfo"] {
        fs::copy(Path::new("/proc").join(file), host.path("/proc").join(file)).unwrap();
    }
    host.clone()
}

#[test]
fn a_captured_host_with_bcache() {
    let Some((_folder, host)) = captured("33-host-bcache-writeback") else { return };
    let inspection = inspected(&host, "/srv/db");
    let chain = &inspection.chain;
    assert_eq!(varied(chain), ["sda"]);
    let ids: Vec<&str> = inspection.traps.iter().map(host::Trap::id).collect();
    assert!(!ids.contains(&"rotational-flag"), "a real disk stands behind it: {ids:?}");
    let roles: Vec<(&str, Option<Role>)> = chain
        .layers
        .iter()
        .filter_map(|layer| match &layer.what {
            host::LayerKind::Device(device) => Some((device.name.as_str(), layer.role)),
            host::LayerKind::Filesystem(_) => None,
        })
        .collect();
    let wanted = [("bcache0", None), ("sda", Some(Role::Backing)), ("nvme4n1", Some(Role::Cache))];
    assert!(wanted.iter().all(|layer| roles.contains(layer)), "{roles:?}");
}

#[test]
fn a_loop_device_whose_file_is_elsewhere_says_so() {
    for (kind, source, trap) in [
        ("nfs4", "filer:/export", "network"),
        ("fuse.sshfs", "user@filer:", "file-server"),
        ("ext4", "none", ""),
    ] {
        let made = Made::new();
        // A folder that is there: who asks for a filesystem's size asks this machine's kernel.
        made.write("mnt/filer/image", "");
        let file = made.host().path("/mnt/filer/image");
        let number = std::os::unix::fs::MetadataExt::dev(&fs::metadata(&file).unwrap());
        let number = DeviceNumber::from_raw(number);
        made.write(
            "proc/self/mountinfo",
            &format!("23 22 {number} / /mnt/filer rw,relatime - {kind} {source} rw\n"),
        );
        let files = [("loop/backing_file", "/mnt/filer/image\n"), ("loop/dio", "1\n")];
        made.device("7:0", "virtual/block/loop0", &with_queue(&files));
        if trap.is_empty() {
            // Here it stands on a device.
            made.device(&number.to_string(), "pci0000:00/0000:00:02.0/virtio1/block/vda", QUEUE);
        }
        let chain = made.chain("7:0");
        assert_eq!(varied(&chain), ["loop0"]);
        assert_eq!(chain.files_elsewhere().count(), usize::from(!trap.is_empty()), "{kind}");
        let Some((device, filesystem)) = chain.files_elsewhere().next() else { continue };
        assert_eq!((&*device.name, &*filesystem.mount.kind), ("loop0", kind));
        let mut inspection = Inspection::of(&made.host(), &file, false).unwrap();
        inspection.chain = chain;
        let traps = host::traps(&inspection);
        let found = traps.iter().find(|it| it.id() == trap).map(host::Trap::evidence);
        let said = found.unwrap_or_else(|| panic!("{traps:?}"));
        assert!(said.contains(kind), "{said}");
    }
}

/// A small read-ahead does not outlive a write that renews the queue's limits, whoever writes it.
#[test]
fn a_rule_that_sets_read_ahead_too_early_is_named() {
    let lost = |rules: &str| {
        let made = Made::new();
        made.device("254:0", "pci0000:00/0000:00:02.0/virtio1/block/vda", QUEUE);
        let mounts = "23 22 254:0 / /mnt/db rw,relatime - ext4 /dev/vda rw\n";
        made.write("proc/self/mountinfo", mounts);
        made.write("mnt/db/file", "");
        made.write("etc/udev/rules.d/60-io.rules", rules);
        made.write("run/udev/control", "");
        let host = Host::at(fs::canonicalize(made.host().path("/")).unwrap());
        let inspection = inspected(&host, "/mnt/db/file");
        let found = inspection.traps.iter().find(|it| it.id() == "read-ahead-lost");
        found.map(host::Trap::evidence)
    };
    let early = "KERNEL==\"vda\", ATTR{queue/read_ahead_kb}=\"8\"\n\
                 KERNEL==\"vda\", ATTR{queue/iostats}=\"0\"\n";
    let said = lost(early).unwrap();
    assert!(
        said.contains("60-io.rules:1") && said.contains("60-io.rules:2 writes iostats"),
        "{said}"
    );
    assert_eq!(lost("KERNEL==\"vda\", ATTR{queue/read_ahead_kb}=\"8\"\n"), None);
    let late = "KERNEL==\"vda\", ATTR{queue/iostats}=\"0\", ATTR{queue/read_ahead_kb}=\"8\"\n";
    assert_eq!(lost(late), None);
    let other = "KERNEL==\"vda\", ATTR{queue/read_ahead_kb}=\"8\", ATTR{queue/nomerges}=\"2\"\n";
    assert_eq!(lost(other), None);
}
