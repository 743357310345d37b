//! A block device that must not be overwritten is refused by `compare`, with the reason, exit code 2,
//! and not a byte of it written.

use crate::machine::{Loop, Place, has_loop_devices};
use skipped::{Need, skip};
use std::{
    fs::{File, OpenOptions},
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// The file's bytes, holes and all, but for those that another may write meanwhile.
fn bytes(file: &Path, anothers: Range<usize>) -> Vec<u8> {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[anothers].fill(0);
    bytes
}

/// Runs a program of the system's; false, and why, when it is not there.
fn run(program: &str, arguments: &[&str]) -> bool {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        skip(Need::Program, program);
        return false;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    true
}

/// Compares on a device, and must be refused with all `words`, the file unchanged outside `anothers`.
fn refused(disk: &Disk, node: &Path, words: &[&str], anothers: Range<usize>) {
    let Disk { place, file, .. } = disk;
    let before = bytes(file, anothers.clone());
    // Rightly confirmed: it must be refused for what is on it.
    let compare = [
        "compare",
        node.to_str().unwrap(),
        "--schedulers",
        "none,mq-deadline",
        "--size",
        "8M",
        "--budget",
        "30s",
        "--confirm",
        file.to_str().unwrap(),
    ];
    place.run(&compare).expect(2).complains_of(words);
    assert!(bytes(file, anothers) == before, "something was written");
    place.run(&["undo"]).expect(0);
}

struct Disk {
    place: Place,
    device: Loop,
    file: PathBuf,
}

fn disk(mib: u64) -> Option<Disk> {
    if !has_loop_devices() {
        return None;
    }
    let place = Place::new();
    let device = place.loop_device("disk", mib);
    let file = place.path().join("disk");
    Some(Disk { place, device, file })
}

impl Disk {
    fn node(&self) -> &str {
        self.device.node.to_str().unwrap()
    }

    fn refused(&self, words: &[&str]) {
        refused(self, &self.device.node, words, 0..0);
    }
}

/// A mount by somebody else.
struct Mounted(PathBuf);

impl Mounted {
    fn new(node: &str, point: PathBuf) -> Mounted {
        std::fs::create_dir(&point).unwrap();
        // Read-only: nothing but Spindle could then change the file.
        assert!(run("mount", &["-o", "ro", node, point.to_str().unwrap()]));
        Mounted(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]);
    }
}

#[test]
fn without_its_confirmation_no_device_is_touched() {
    let Some(disk) = disk(32) else { return };
    let before = bytes(&disk.file, 0..0);
    for wrong in [&[][..], &["--confirm", "yes"], &["--confirm", disk.node()]] {
        let words = ["compare", disk.node(), "--schedulers", "none,bfq", "--size", "8M"];
        let words = [&words[..], &["--budget", "30s"], wrong].concat();
        let file = disk.file.to_str().unwrap();
        disk.place.run(&words).expect(2).complains_of(&["--confirm", file]);
    }
    assert!(bytes(&disk.file, 0..0) == before, "something was written");
}

#[test]
fn what_bears_a_mark() {
    let Some(disk) = disk(64) else { return };
    let key = disk.place.path().join("key");
    std::fs::write(&key, "a key for nothing").unwrap();
    let key = key.to_str().unwrap();
    let luks = ["-q", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", key];
    let cases: [(&str, &str, &[&str]); 4] = [
        ("mkfs.ext4", "ext4", &["-q", "-F"]),
        ("mkswap", "swap", &["-q"]),
        ("cryptsetup", "LUKS", &[&["luksFormat"], &luks[..]].concat()),
        ("sfdisk", "GPT", &["-q"]),
    ];
    for (program, name, arguments) in cases {
        let file = disk.file.to_str().unwrap();
        let made = if program == "sfdisk" {
            run("sh", &["-c", &format!("printf 'label: gpt\\nsize=16M\\n' | sfdisk -q {file}")])
        } else {
            run(program, &[arguments, &[file]].concat())
        };
        if made {
            disk.refused(&["bears the mark of", name, "wipefs"]);
        }
        run("wipefs", &["-aq", file]);
    }
    // A member of an array, as md(4) describes its superblock of version 1.2.
    let file = OpenOptions::new().write(true).open(&disk.file).unwrap();
    file.write_all_at(&0xa92b_4efc_u32.to_le_bytes(), 4096).unwrap();
    drop(file);
    disk.refused(&["md RAID", "would lose this member"]);
}

#[test]
fn a_member_of_a_volume_group() {
    let Some(disk) = disk(64) else { return };
    let node = disk.node();
    let only = format!(
        "devices {{ filter = [ \"a|^{node}$|\", \"r|.*|\" ] scan_lvs = 0 use_devicesfile = 0 }}"
    );
    if run("pvcreate", &["-q", "-q", "--config", &only, "-ff", "-y", node]) {
        disk.refused(&["LVM2"]);
    }
}

#[test]
fn mounted_by_its_name_and_by_a_link() {
    let Some(disk) = disk(64) else { return };
    if !run("mkfs.ext4", &["-q", "-F", disk.node()]) {
        return;
    }
    let point = disk.place.path().join("point");
    let _mounted = Mounted::new(disk.node(), point.clone());
    disk.refused(&["is mounted on", point.to_str().unwrap()]);
    let link = disk.place.path().join("ata-Disk_Serial");
    symlink(&disk.device.node, &link).unwrap();
    refused(&disk, &link, &["is mounted on"], 0..0);
}

#[test]
fn a_mounted_partition() {
    let Some(disk) = disk(64) else { return };
    // A partition that only the kernel knows of, without any table.
    if !run("addpart", &[disk.node(), "1", "2048", "65536"]) {
        return;
    }
    let name = format!("{}p1", disk.device.name);
    let number = std::fs::read_to_string(format!("/sys/class/block/{name}/dev")).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    // Where udev does not make nodes; its own place, so that nothing of /dev is left changed.
    let node = disk.place.path().join("partition");
    let partition = node.to_str().unwrap();
    assert!(run("mknod", &[partition, "b", major, minor]));
    assert!(run("mkfs.ext4", &["-q", "-F", partition]));
    let mounted = Mounted::new(partition, disk.place.path().join("point"));
    disk.refused(&["a partition of", "is mounted on"]);
    drop(mounted);
    run("delpart", &[disk.node(), "1"]);
}

#[test]
fn swap_in_use() {
    let Some(disk) = disk(32) else { return };
    // As small as can be, and not looked at behind its header: a kernel that reclaims memory nobody
    // asks for (DAMON) writes there whenever it likes.
    let (header, pages) = (4096, 10);
    let area = header * pages;
    let kib = (area / 1024).to_string();
    assert!(run("mkswap", &["-q", disk.node(), &kib]) && run("swapon", &[disk.node()]));
    let ended = std::panic::catch_unwind(|| {
        refused(&disk, &disk.device.node, &["in use as swap"], header..area);
    });
    run("swapoff", &[disk.node()]);
    ended.unwrap();
}

#[test]
fn held_open_by_another() {
    let Some(disk) = disk(32) else { return };
    let mut exclusive = OpenOptions::new();
    let held = exclusive.read(true).custom_flags(rustix::fs::OFlags::EXCL.bits() as i32);
    let held: File = held.open(&disk.device.node).unwrap();
    disk.refused(&["cannot be opened exclusively"]);
    drop(held);
}
