//! What inspection finds on real devices: the chain, the medium, the traps.

use crate::machine::{machine, run};
use host::{
    AtomicAnswer, AtomicUnits, AtomicUnsaid, AtomicWrites, FilesystemKind, Host, Inspection,
    LoopOptions, Medium, NotAtomic, OwnerKind, PROBE_SIZE_MIN, ScratchDevice, Setting,
};
use skipped::{Need, skip};
use std::{fs, path::Path};
use units::Bytes;

fn inspect(target: &Path) -> Inspection {
    Inspection::of(&Host::here(), target, false).unwrap()
}

/// The traps of the target: without what another program left on the host, which is told of every
/// target.
fn ids(inspection: &Inspection) -> Vec<&str> {
    inspection.traps.iter().map(|trap| trap.id()).filter(|id| *id != "unfinished-run").collect()
}

#[test]
fn traps_of_a_buffered_loop_device_on_a_sparse_file() {
    let Some(mut machine) = machine() else { return };
    let file = machine.file("sparse", Bytes::from_mib(32));
    let options =
        LoopOptions { direct_io: false, logical_block: Bytes(4096), ..LoopOptions::default() };
    let device = machine.changes.attach(&file, options).unwrap();
    let inspection = inspect(&device.node);
    for expected in [
        "buffered-loop",
        "sparse-file",
        "small-block",
        "loop-settings-stay",
        "queue-ceiling",
        "stacked-devices",
        "small-data",
    ] {
        assert!(
            ids(&inspection).contains(&expected),
            "{expected} is not in {:?}",
            inspection.traps
        );
    }
    assert!(inspection.changeable.contains(&Setting::Scheduler));
    machine.changes.detach(device).unwrap();
    // None of the first three on a laid-out file with direct I/O and 512-byte sectors.
    let parent = machine.folder.path().to_owned();
    let file = machine.changes.scratch_file(&parent, Bytes::from_mib(32), &mut |_| true).unwrap();
    let device = machine.changes.attach(&file.path, LoopOptions::default()).unwrap();
    let inspection = inspect(&device.node);
    for unexpected in ["buffered-loop", "sparse-file", "small-block"] {
        assert!(!ids(&inspection).contains(&unexpected), "{:?}", inspection.traps);
    }
}

#[test]
fn bfq_and_throttling_confound() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(32));
    let mut with = |wbt: &str| {
        if let Err(error) = machine.changes.set(device.number, &Setting::WbtLatUsec, wbt) {
            skip(Need::Kernel, &error.to_string());
            return None;
        }
        Some(inspect(&device.node))
    };
    let Some(on) = with("2000") else { return };
    let found = on.traps.iter().find(|trap| trap.id() == "write-back-throttling").unwrap();
    assert!(found.evidence().contains("wbt_lat_usec=2000"), "{}", found.evidence());
    let Some(off) = with("0") else { return };
    assert!(!ids(&off).contains(&"write-back-throttling"), "{:?}", off.traps);
}

#[test]
fn traps_of_a_mounted_filesystem() {
    let Some(mut machine) = machine() else { return };
    let file = machine.file("disk", Bytes::from_mib(320));
    let device = machine.changes.attach(&file, LoopOptions::default()).unwrap();
    let scratch = host::ScratchDevice::of_loop(&machine.host, &device).unwrap();
    for (kind, options, expected) in [
        (host::FilesystemKind::Ext4, "data=journal", "direct-is-buffered"),
        (host::FilesystemKind::Ext4, "discard", "loop-discard"),
        (host::FilesystemKind::Ext4, "barrier=0", "no-barrier"),
        (host::FilesystemKind::Ext4, "ro", "read-only"),
        (host::FilesystemKind::Btrfs, "", "direct-is-buffered"),
    ] {
        if let Err(error) = kind.check(Bytes::from_mib(320)) {
            skip(Need::Program, &error.to_string());
            continue;
        }
        machine.changes.make_filesystem(&scratch, kind, "").unwrap();
        let mounted = machine.changes.mount(&scratch, kind, options).unwrap();
        assert_eq!(mounted.unsafe_options.is_empty(), options != "barrier=0");
        let inspection = inspect(&mounted.point);
        assert!(ids(&inspection).contains(&expected), "{expected}: {:?}", inspection.traps);
        assert_eq!(inspection.chain.scheduled.first(), Some(&device.number), "{kind}");
        machine.changes.unmount(mounted).unwrap();
    }
}

#[test]
fn a_target_in_memory_is_named() {
    let inspection = inspect(Path::new("/dev/shm"));
    if inspection.chain.no_device.is_none() {
        skip(Need::Kernel, "a tmpfs at /dev/shm");
        return;
    }
    assert_eq!(ids(&inspection)[0], "memory");
    assert!(inspection.chain.scheduled.is_empty());
}

#[test]
fn an_overlay_is_named() {
    let Some(machine) = machine() else { return };
    let folder = machine.folder.path();
    for name in ["lower", "upper", "work", "shown"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let shown = folder.join("shown");
    let options =
        format!("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", folder.display());
    let mount = ["-t", "overlay", "overlay", "-o", &options, shown.to_str().unwrap()];
    if run("mount", &mount).is_none() {
        return;
    }
    let inspection = Inspection::of(&machine.host, &shown, false);
    run("umount", &[shown.to_str().unwrap()]).unwrap();
    let inspection = inspection.unwrap();
    assert_eq!(ids(&inspection)[0], "overlay");
    let reason = inspection.chain.no_device.unwrap().reason;
    assert!(reason.contains("Scheduler, queue"), "factors that drop out are named: {reason}");
}

#[test]
fn holes_are_told_from_a_medium() {
    let Some(mut machine) = machine() else { return };
    // Holes: answered without the device.
    let file = machine.file("holes", PROBE_SIZE_MIN);
    let probe = Inspection::of(&machine.host, &file, true).unwrap().probe.unwrap();
    assert_eq!(probe.medium, Medium::Cache, "{}", probe.evidence);
    // A written file: by the device. Which medium that is depends on the machine.
    let parent = machine.folder.path().to_owned();
    let file = machine.changes.scratch_file(&parent, Bytes::from_mib(64), &mut |_| true).unwrap();
    let inspection = Inspection::of(&machine.host, &file.path, true).unwrap();
    let probe = inspection.probe.as_ref().unwrap();
    assert!(probe.reads >= 20 && probe.p10 <= probe.median && probe.median <= probe.p99);
    if let Some(share) = probe.device_share {
        assert!(share > 0.9, "{}", probe.evidence);
    }
    let bottom = inspection.chain.devices().last().unwrap();
    let claims = bottom.queue.as_ref().and_then(|queue| queue.rotational) == Some(true);
    let trap = ids(&inspection).contains(&"rotational-flag");
    assert_eq!(trap, claims && probe.medium != Medium::Disk, "{probe:?} {:?}", inspection.traps);
}

#[test]
fn what_was_inspected_can_be_recorded_and_read_back() {
    let inspection = inspect(Path::new("/var/tmp"));
    let text = serde_json::to_string(&inspection).unwrap();
    assert_eq!(serde_json::from_str::<Inspection>(&text).unwrap(), inspection);
    assert!(inspection.machine.memory > Bytes::ZERO && inspection.machine.cpus > 0);
    assert!(!inspection.owners.iter().any(|it| it.by == OwnerKind::Udev && it.settings.is_empty()));
}

#[test]
fn no_such_path_is_an_error_that_says_so() {
    let error = Inspection::of(&Host::here(), Path::new("/no/such/place"), false).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/no/such/place") && text.contains("check the spelling"), "{text}");
}

#[test]
fn a_file_a_folder_and_a_device_are_asked_for_atomic_writes() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(32));
    let host = Host::here();
    let page = Bytes::from_kib(16);
    // A loop device has none, and its kernel says so where it knows the question.
    let of_device = AtomicWrites::of(&host, &device.node).unwrap();
    match of_device.devices[0].unit_max {
        Some(unit_max) => {
            assert_eq!(unit_max, Bytes::ZERO);
            assert_eq!(of_device.answer(page), AtomicAnswer::No(NotAtomic::Device));
        }
        None => assert_eq!(of_device.answer(page), AtomicAnswer::Unsaid(AtomicUnsaid::Kernel)),
    }
    // A folder answers for the files in it.
    let file = machine.file("data", Bytes::from_mib(1));
    let of_file = AtomicWrites::of(&host, &file).unwrap();
    let of_folder = AtomicWrites::of(&host, machine.folder.path()).unwrap();
    assert_eq!(of_file, of_folder);
}

#[test]
fn xfs_writes_atomically_by_itself_what_its_device_cannot() {
    let Some(mut machine) = machine() else { return };
    let size = Bytes::from_mib(320);
    if let Err(error) = FilesystemKind::Xfs.check(size) {
        skip(Need::Program, &error.to_string());
        return;
    }
    let device = machine.loop_device("disk", size);
    let scratch = ScratchDevice::of_loop(&Host::here(), &device).unwrap();
    machine.changes.make_filesystem(&scratch, FilesystemKind::Xfs, "").unwrap();
    let mounted = machine.changes.mount(&scratch, FilesystemKind::Xfs, "").unwrap();
    let found = AtomicWrites::of(&Host::here(), &mounted.point).unwrap();
    machine.changes.unmount(mounted).unwrap();
    match found.target {
        // Linux 6.16 and later: a loop device has no atomic writes, so none of them are the device's.
        AtomicUnits::Sizes(_) => {
            assert_eq!(found.answer(Bytes::from_kib(16)), AtomicAnswer::ByFilesystem, "{found:?}");
        }
        AtomicUnits::None | AtomicUnits::Unsaid => {
            skip(Need::Kernel, "atomic writes by XFS itself (Linux 6.16)");
        }
    }
}

#[test]
fn what_is_set_by_hand_against_the_device_is_a_trap() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(32));
    let set = |name: &str, value: &str| {
        fs::write(format!("/sys/dev/block/{}/queue/{name}", device.number), value).unwrap();
    };
    let has = |id: &str| ids(&inspect(&device.node)).contains(&id);
    assert!(!has("write-through-by-hand") && !has("not-counted"));
    set("write_cache", "write through");
    assert!(has("write-through-by-hand"));
    set("write_cache", "write back");
    assert!(!has("write-through-by-hand"));
    let sampled = || {
        let mut sampler = host::Sampler::new(&Host::here(), &[device.number]).unwrap();
        (sampler.not_counted.len(), sampler.sample().device.is_some())
    };
    assert_eq!(sampled(), (0, true));
    set("iostats", "0");
    assert!(has("not-counted"));
    assert_eq!(sampled(), (1, false), "missing, and not 0");
    let probed = host::probe(
        &Host::here(),
        &device.node,
        PROBE_SIZE_MIN,
        Some(device.number),
        std::time::Duration::from_millis(300),
    );
    assert_eq!(probed.unwrap().device_share, None);
    set("iostats", "1");
}
