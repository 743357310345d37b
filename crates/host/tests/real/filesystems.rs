//! Filesystems made, mounted and taken away; what bounds the page cache; a killed maker.

use crate::machine::machine;
use host::{Changes, Error, FilesystemKind, LoopOptions, ScratchDevice, clear, mounts, signatures};
use skipped::{Need, skip};
use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
};
use units::Bytes;

#[test]
fn every_kind_is_made_mounted_and_leaves_nothing() {
    let Some(machine) = machine() else { return };
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    for kind in FilesystemKind::ALL {
        if let Err(error) = kind.check(Bytes::from_mib(320)) {
            skip(Need::Program, &format!("{kind}: {error}"));
            continue;
        }
        let file = changes
            .scratch_file(machine.folder.path(), Bytes::from_mib(320), &mut |_| true)
            .unwrap();
        let device = changes.attach(&file.path, LoopOptions::default()).unwrap();
        let scratch = ScratchDevice::of_loop(&machine.host, &device).unwrap();
        changes.make_filesystem(&scratch, kind, "").unwrap();
        let mark = signatures(&File::open(&device.node).unwrap(), file.size).unwrap();
        assert_eq!(mark[0].name, kind.to_string(), "{mark:?}");
        let mounted = changes.mount(&scratch, kind, "noatime").unwrap();
        assert!(mounted.mount.option("noatime").is_some(), "{:?}", mounted.mount);
        fs::write(mounted.point.join("file"), vec![7; 1 << 20]).unwrap();
        // A second mount or mkfs of the same device is somebody else's business to refuse.
        assert!(changes.make_filesystem(&scratch, kind, "").is_err(), "{kind} made while mounted");
        let point = mounted.point.clone();
        changes.unmount(mounted).unwrap();
        assert!(!point.exists());
        // Neither mkfs nor the mount made holes in the laid-out file.
        let blocks = fs::metadata(&file.path).unwrap().blocks() * 512;
        assert!(blocks >= file.size.0, "{kind}: {blocks} of {} are allocated", file.size.0);
        changes.wipe(&scratch).unwrap();
        let left = signatures(&File::open(&device.node).unwrap(), file.size).unwrap();
        assert_eq!(left, [], "{kind}");
        changes.detach(device).unwrap();
        changes.remove_file(file).unwrap();
    }
    let report = changes.finish().unwrap();
    assert_eq!(report.steps, [], "nothing was left to do");
}

#[test]
fn ending_in_the_middle_unmounts_detaches_and_deletes() {
    let Some(machine) = machine() else { return };
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    let folder = changes.scratch_folder(machine.folder.path()).unwrap();
    let file = changes.scratch_file(&folder.path, Bytes::from_mib(32), &mut |_| true).unwrap();
    let device = changes.attach(&file.path, LoopOptions::default()).unwrap();
    let scratch = ScratchDevice::of_loop(&machine.host, &device).unwrap();
    changes.make_filesystem(&scratch, FilesystemKind::Ext4, "-b 1024").unwrap();
    let mounted = changes.mount(&scratch, FilesystemKind::Ext4, "").unwrap();
    let report = changes.finish().unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.steps.len(), 5, "{report:#?}");
    assert!(!folder.path.exists() && !mounted.point.exists());
    assert!(mounts(&machine.host).unwrap().iter().all(|it| it.point != mounted.point));
}

#[test]
fn a_wrong_option_says_what_the_program_said_and_leaves_nothing() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(32));
    let scratch = ScratchDevice::of_loop(&machine.host, &device).unwrap();
    let ext4 = FilesystemKind::Ext4;
    let error = machine.changes.make_filesystem(&scratch, ext4, "-b 17").unwrap_err().to_string();
    assert!(error.contains("mkfs.ext4") && error.contains("block size"), "{error}");
    machine.changes.make_filesystem(&scratch, ext4, "").unwrap();
    let error = machine.changes.mount(&scratch, ext4, "no_such_option").unwrap_err().to_string();
    assert!(error.contains("mount"), "{error}");
    let error = FilesystemKind::Xfs.check(Bytes::from_mib(32)).unwrap_err().to_string();
    assert!(error.contains("300 MiB"), "{error}");
}

#[test]
fn a_cleared_device_can_be_made_into_a_filesystem() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(32));
    let confirmation = device.file.to_str().unwrap().to_owned();
    let cleared = clear(&machine.host, &device.node, Some(&confirmation)).unwrap().unwrap();
    let scratch = ScratchDevice::of_cleared(cleared);
    machine.changes.make_filesystem(&scratch, FilesystemKind::Ext2, "").unwrap();
    let mounted = machine.changes.mount(&scratch, FilesystemKind::Ext2, "").unwrap();
    machine.changes.unmount(mounted).unwrap();
}

#[test]
fn logical_blocks_are_as_asked() {
    let Some(mut machine) = machine() else { return };
    let file = machine.file("disk", Bytes::from_mib(32));
    let options = LoopOptions { logical_block: Bytes(4096), ..LoopOptions::default() };
    let device = machine.changes.attach(&file, options).unwrap();
    let chain = host::Chain::of(&machine.host, &device.node).unwrap();
    let queue = chain.first_varied_device().unwrap().queue.clone().unwrap();
    assert_eq!(queue.logical_block, Some(Bytes(4096)));
    let options = LoopOptions { logical_block: Bytes(1000), ..LoopOptions::default() };
    let error = machine.changes.attach(&file, options).unwrap_err().to_string();
    assert!(error.contains("take 512 or 4096"), "{error}");
}

#[test]
fn a_file_that_does_not_fit_is_refused_before_a_byte_is_written() {
    let Some(mut machine) = machine() else { return };
    let parent = machine.folder.path().to_owned();
    let error = machine.changes.scratch_file(&parent, Bytes(1 << 60), &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("are free there"), "{error}");
    // Interrupted in the middle, the file is gone again.
    let error = machine
        .changes
        .scratch_file(&parent, Bytes::from_mib(32), &mut |done| done < Bytes::from_mib(16))
        .unwrap_err();
    assert!(
        matches!(error, Error::Io { ref source, .. }
        if source.kind() == std::io::ErrorKind::Interrupted),
        "{error}"
    );
    let left = fs::read_dir(&parent).unwrap().flatten().map(|it| it.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["machine-state"]);
}

#[test]
fn a_bound_keeps_the_page_cache_small() {
    let Some(mut machine) = machine() else { return };
    let limit = Bytes::from_mib(48);
    let bound = match machine.changes.bound_page_cache(limit) {
        Ok(bound) => bound,
        Err(error) => {
            skip(Need::Kernel, &error.to_string());
            return;
        }
    };
    assert_eq!(bound.limit, limit);
    // A child of its own: moving this process would bound the other tests.
    let file = machine.folder.path().join("data");
    let script = format!("read go; dd if=/dev/zero of={} bs=1M count=200 2>&1", file.display());
    let mut child = std::process::Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    bound.join(child.id()).unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    let (cache, all) = bound.usage();
    assert!(cache > Bytes::from_mib(8), "{cache}: nothing was charged to the group");
    assert!(all <= limit, "{all} is over the limit");
    let path = bound.path.clone();
    machine.changes.unbound_page_cache(bound).unwrap();
    assert!(!path.exists());
}
