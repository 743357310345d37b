//! Devices that must not be written to are refused, with the reason, and stay as they are.

use crate::machine::{Machine, machine, run};
use host::{Guard, Objection, clear, examine};
use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use units::Bytes;

const SIZE: Bytes = Bytes::from_mib(320);

/// A checksum over the parts of the backing file that were ever written, and where they are.
fn sum(path: &Path) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    let file = File::open(path).unwrap();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x0100_0000_01b3);
    let mut at = 0;
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        let end = seek(&file, SeekFrom::Hole(start)).unwrap();
        let mut data = vec![0; (end - start) as usize];
        file.read_exact_at(&mut data, start).unwrap();
        add(start);
        data.chunks_exact(8).for_each(|it| add(u64::from_le_bytes(it.try_into().unwrap())));
        at = end;
    }
    hash
}

/// A mount by somebody else, gone when the test ends, whatever its end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(node: &str, point: &Path) -> Self {
        // Without the background work that would write while the guards look.
        run("mount", &["-o", "ro", node, point.to_str().unwrap()]).unwrap();
        Mounted(point.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]).unwrap();
    }
}

/// Swap in use, gone when the test ends, whatever its end.
struct Swap(String);

impl Drop for Swap {
    fn drop(&mut self) {
        run("swapoff", &[&self.0]).unwrap();
    }
}

/// Must be refused by `guard`, both with and without the right confirmation, with nothing written.
fn refused(machine: &Machine, node: &Path, file: &Path, guard: Guard) -> Vec<Objection> {
    // The kernel itself writes to swap in use, behind its header.
    let sum = |file: &Path| match guard {
        Guard::Swap => {
            let mut header = [0; 4096];
            File::open(file).unwrap().read_exact_at(&mut header, 0).unwrap();
            header.iter().fold(0, |hash: u64, byte| hash.rotate_left(5) ^ u64::from(*byte))
        }
        _ => sum(file),
    };
    // What a tool left in the page cache goes to the file while nobody looks.
    if let Ok(device) = File::open(node) {
        let _best_effort = device.sync_all();
    }
    let before = sum(file);
    let confirmation = examine(&machine.host, node).unwrap().confirmation.value;
    let objections = clear(&machine.host, node, Some(&confirmation)).unwrap().unwrap_err();
    let found = objections.iter().find(|it| it.guard == guard);
    let found = found.unwrap_or_else(|| panic!("{guard:?} is not among {objections:#?}"));
    assert!(!found.what.is_empty() && !found.why.is_empty() && !found.fix.is_empty());
    assert!(clear(&machine.host, node, None).unwrap().is_err());
    assert_eq!(sum(file), before, "something was written");
    objections
}

fn has(objections: &[Objection], text: &str) {
    let found = objections.iter().any(|it| it.what.contains(text));
    assert!(found, "'{text}' is not in {objections:#?}");
}

#[test]
fn an_empty_device_is_cleared_by_its_confirmation_alone() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("empty", Bytes::from_mib(16));
    let file = device.file.to_str().unwrap().to_owned();
    for wrong in [None, Some("yes"), Some("/dev/loop0"), Some("")] {
        let objections = clear(&machine.host, &device.node, wrong).unwrap().unwrap_err();
        assert_eq!(objections.len(), 1, "{objections:#?}");
        assert_eq!(objections[0].guard, Guard::Confirmation);
        assert!(objections[0].fix.contains(&file), "{}", objections[0].fix);
    }
    let cleared = clear(&machine.host, &device.node, Some(&file)).unwrap().unwrap();
    cleared.file().write_all_at(b"ours", 0).unwrap();
    // While we hold it nobody else can, and a second clearing is refused as held.
    let objections = clear(&machine.host, &device.node, Some(&file)).unwrap().unwrap_err();
    assert!(objections.iter().any(|it| it.guard == Guard::Held), "{objections:#?}");
    drop(cleared);
    let examination = examine(&machine.host, &device.node).unwrap();
    assert_eq!(examination.objections, []);
    assert_eq!(examination.begins_empty, Some(false));
}

#[test]
fn every_mark_that_a_tool_here_makes_is_known() {
    let Some(mut machine) = machine() else { return };
    // Each on a file of its own with the tool that makes it, then through a loop device.
    let cases: &[(&str, &[&str])] = &[
        ("ext2", &["mkfs.ext2", "-q", "-F"]),
        ("ext3", &["mkfs.ext3", "-q", "-F"]),
        ("ext4", &["mkfs.ext4", "-q", "-F"]),
        ("xfs", &["mkfs.xfs", "-q", "-f"]),
        ("btrfs", &["mkfs.btrfs", "-q", "-f"]),
        ("fat", &["mkfs.vfat"]),
        ("ntfs", &["mkfs.ntfs", "-q", "-F"]),
        ("exfat", &["mkfs.exfat"]),
        ("f2fs", &["mkfs.f2fs", "-q"]),
        ("bcache", &["make-bcache", "-B"]),
        ("bcache", &["make-bcache", "-C"]),
        ("swap", &["mkswap", "-q"]),
        ("LUKS", &["cryptsetup", "luksFormat", "--type", "luks1", "-q", "--key-file", "KEY"]),
        ("LUKS", &["cryptsetup", "luksFormat", "--type", "luks2", "-q", "--key-file", "KEY"]),
    ];
    let key = machine.folder.path().join("key");
    fs::write(&key, "a key for nothing").unwrap();
    for (index, (name, command)) in cases.iter().enumerate() {
        let file = machine.file(&format!("{index}"), SIZE);
        let mut arguments: Vec<&str> = command[1..].to_vec();
        let fast = ["--pbkdf-force-iterations", "1000"];
        if *name == "LUKS" {
            *arguments.last_mut().unwrap() = key.to_str().unwrap();
            arguments.extend(fast);
            if arguments.contains(&"luks2") {
                arguments.extend(["--pbkdf", "pbkdf2"]);
            }
        }
        arguments.push(file.to_str().unwrap());
        if run(command[0], &arguments).is_none() {
            continue;
        }
        let device = machine.changes.attach(&file, host::LoopOptions::default()).unwrap();
        let objections = refused(&machine, &device.node, &file, Guard::Signature);
        has(&objections, name);
        machine.changes.detach(device).unwrap();
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn partition_tables_are_known() {
    let Some(mut machine) = machine() else { return };
    for (label, name) in [("gpt", "GPT"), ("dos", "MBR")] {
        let file = machine.file(label, Bytes::from_mib(64));
        let script = machine.folder.path().join("script");
        fs::write(&script, format!("label: {label}\nsize=16M\n")).unwrap();
        let command = format!("sfdisk -q {} < {}", file.display(), script.display());
        if run("sh", &["-c", &command]).is_none() {
            continue;
        }
        let device = machine.changes.attach(&file, host::LoopOptions::default()).unwrap();
        has(&refused(&machine, &device.node, &file, Guard::Signature), name);
        machine.changes.detach(device).unwrap();
        // A table whose beginning was wiped is still known by its copy at the end.
        if label == "gpt" {
            OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .write_all_at(&[0; 8192], 0)
                .unwrap();
            let device = machine.changes.attach(&file, host::LoopOptions::default()).unwrap();
            has(&refused(&machine, &device.node, &file, Guard::Signature), "GPT (backup)");
            machine.changes.detach(device).unwrap();
        }
    }
}

#[test]
fn members_of_volumes_are_known() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("pv", SIZE);
    let node = device.node.to_str().unwrap().to_owned();
    // Without the device-mapper driver, udev and lvmetad, and seeing this device alone.
    let filter = format!(
        "devices {{ filter = [ \"a|^{node}$|\", \"r|.*|\" ] scan_lvs = 0 use_devicesfile = 0 }}"
    );
    let made = run("pvcreate", &["-q", "-q", "--config", &filter, "-ff", "-y", &node]);
    if made.is_some() {
        has(&refused(&machine, &device.node, &device.file, Guard::Signature), "LVM2");
    }
}

/// Superblocks of arrays, written as md(4) and the kernel's documentation describe them: there is
/// no md driver in every kernel that these tests run on.
#[test]
fn members_of_arrays_are_known() {
    let Some(mut machine) = machine() else { return };
    let size = Bytes(SIZE.0 + 12 * 1024);
    let sectors = size.0 / 512;
    let magic = 0xa92b_4efc_u32;
    let cases = [
        ("md RAID 1.1", 0, magic.to_le_bytes()),
        ("md RAID 1.2", 4096, magic.to_le_bytes()),
        ("md RAID 1.0", (sectors - 16) / 8 * 8 * 512, magic.to_le_bytes()),
        ("md RAID 0.90", (size.0 / 65536 - 1) * 65536, magic.to_le_bytes()),
        ("md RAID 0.90", (size.0 / 65536 - 1) * 65536, magic.to_be_bytes()),
        ("ZFS pool", 128 * 1024 + 3 * 1024, 0x00ba_b10c_u32.to_le_bytes()),
    ];
    for (index, (name, offset, mark)) in cases.into_iter().enumerate() {
        let device = machine.loop_device(&format!("member-{index}"), size);
        let file = OpenOptions::new().write(true).open(&device.file).unwrap();
        file.write_all_at(&mark, offset).unwrap();
        file.sync_all().unwrap();
        has(&refused(&machine, &device.node, &device.file, Guard::Signature), name);
        machine.changes.detach(device).unwrap();
    }
}

#[test]
fn mounted_devices_and_links_to_them_are_refused() {
    let Some(mut machine) = machine() else { return };
    for (kind, options) in [("ext4", "-qF"), ("xfs", "-qf"), ("btrfs", "-qf")] {
        let device = machine.loop_device(kind, SIZE);
        let node = device.node.to_str().unwrap();
        if run(&format!("mkfs.{kind}"), &[options, node]).is_none() {
            continue;
        }
        let point = machine.folder.path().join(format!("{kind}-point"));
        fs::create_dir(&point).unwrap();
        let mount = Mounted::new(node, &point);
        let link = machine.folder.path().join(format!("{kind}-by-id"));
        std::os::unix::fs::symlink(&device.node, &link).unwrap();
        let objections = refused(&machine, &link, &device.file, Guard::Mounted);
        has(&objections, point.to_str().unwrap());
        assert!(objections.iter().any(|it| it.guard == Guard::Held), "{objections:#?}");
        drop(mount);
    }
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", SIZE);
    let node = device.node.to_str().unwrap().to_owned();
    // addpart tells the kernel of a partition without any table (BLKPG).
    if run("addpart", &[&node, "1", "2048", "524288"]).is_none() {
        return;
    }
    let partition = format!("{node}p1");
    // Without udev nobody makes the node.
    let sysfs = format!("/sys/class/block/{}/dev", partition.trim_start_matches("/dev/"));
    let number = fs::read_to_string(sysfs).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    let made = !Path::new(&partition).exists();
    if made {
        run("mknod", &[&partition, "b", major, minor]).unwrap();
    }
    run("mkfs.ext4", &["-q", "-F", &partition]).unwrap();
    let objections = refused(&machine, &device.node, &device.file, Guard::Partitions);
    assert!(!objections.iter().any(|it| it.guard == Guard::Mounted), "{objections:#?}");
    let point = machine.folder.path().join("point");
    fs::create_dir(&point).unwrap();
    let mount = Mounted::new(&partition, &point);
    let objections = refused(&machine, &device.node, &device.file, Guard::Mounted);
    has(&objections, "a partition of");
    refused(&machine, Path::new(&partition), &device.file, Guard::Mounted);
    drop(mount);
    run("delpart", &[&node, "1"]).unwrap();
    if made {
        let _already_gone = fs::remove_file(&partition);
    }
}

#[test]
fn swap_in_use_is_refused() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("swap", Bytes::from_mib(16));
    let node = device.node.to_str().unwrap();
    run("mkswap", &["-q", node]).unwrap();
    run("swapon", &[node]).unwrap();
    let swap = Swap(node.to_owned());
    let objections = refused(&machine, &device.node, &device.file, Guard::Swap);
    drop(swap);
    assert!(objections.iter().any(|it| it.guard == Guard::Held), "{objections:#?}");
}

#[test]
fn a_device_held_by_another_program_is_refused() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("held", Bytes::from_mib(16));
    let held = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.node).unwrap();
    refused(&machine, &device.node, &device.file, Guard::Held);
    drop(held);
    assert_eq!(examine(&machine.host, &device.node).unwrap().objections, []);
}

#[test]
fn who_only_looks_at_a_device_is_waited_for() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("looked-at", Bytes::from_mib(16));
    let held = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.node).unwrap();
    let looking = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(held);
    });
    assert_eq!(examine(&machine.host, &device.node).unwrap().objections, []);
    looking.join().unwrap();
}

#[test]
fn a_backing_file_in_use_elsewhere_is_refused() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("shared", Bytes::from_mib(16));
    let other = machine.changes.attach(&device.file, host::LoopOptions::default()).unwrap();
    let objections = refused(&machine, &device.node, &device.file, Guard::BackingFile);
    has(&objections, &other.number.to_string());
    machine.changes.detach(other).unwrap();
    // A loop device on a loop device: the one below is not free either.
    let upper = machine.changes.attach(&device.node, host::LoopOptions::default()).unwrap();
    refused(&machine, &device.node, &device.file, Guard::BackingFile);
    machine.changes.detach(upper).unwrap();
    // Another process has the file open.
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .stdin(File::open(&device.file).unwrap())
        .spawn()
        .unwrap();
    let objections = refused(&machine, &device.node, &device.file, Guard::BackingFile);
    has(&objections, "sleep");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_is_no_device() {
    let Some(machine) = machine() else { return };
    let file = machine.file("plain", Bytes::from_mib(1));
    let text = examine(&machine.host, &file).unwrap_err().to_string();
    assert!(text.contains("block device is needed"), "{text}");
}
