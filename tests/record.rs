//! `spindle record`: what a device is asked to do, and everything put back.

use crate::machine::{Loop, Place, aligned, has_loop_devices};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use skipped::{Need, skip};
use std::{
    fs::File,
    io::Write,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

/// Whether this kernel has tracepoints of block I/O, and the test may use them.
fn has_tracing() -> bool {
    let has_tracefs = std::fs::read_to_string("/proc/filesystems")
        .is_ok_and(|text| text.lines().any(|line| line.ends_with("tracefs")));
    if !has_tracefs {
        skip(Need::Kernel, "tracefs");
    }
    has_tracefs && has_loop_devices()
}

/// Instances of a process of ours in tracefs, which need not be mounted anywhere: others may record, too.
fn instances(process: u32) -> Vec<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&context).unwrap();
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = fsmount(&context, flags, MountAttrFlags::empty()).unwrap();
    let folder = format!("/proc/self/fd/{}/instances", mount.as_raw_fd());
    std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("spindle-{process}-")))
        .collect()
}

/// Starts to record a device, and waits until it has begun.
fn recording(place: &Place, device: &Loop, file: &Path, more: &[&str]) -> Child {
    let node = device.node.to_str().unwrap();
    let words = ["record", node, "--for", "30s", "--output", file.to_str().unwrap()];
    let mut command = place.spindle(&[&words[..], more].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while instances(child.id()).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn the_same_requests_in_the_same_order_as_they_were_made() {
    if !has_tracing() {
        return;
    }
    let place = Place::alone();
    let device = place.loop_device("disk", 16);
    let file = place.path().join("t.blktrace");
    let child = recording(&place, &device, &file, &[]);
    // The events are switched on last.
    std::thread::sleep(Duration::from_millis(500));
    let direct = File::options()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&device.node)
        .unwrap();
    let mut storage = Vec::new();
    let mut made = Vec::new();
    let mut stream = random::Stream::new(1, "record");
    for _ in 0..200 {
        let (block, blocks) = (stream.below(1024), 1 + stream.below(4));
        let buffer = aligned(&mut storage, blocks as usize * 4096);
        let write = stream.below(2) == 0;
        match write {
            true => direct.write_all_at(buffer, block * 4096).unwrap(),
            false => direct.read_exact_at(buffer, block * 4096).unwrap(),
        }
        made.push((write, block * 8, blocks * 8));
    }
    drop(direct);
    let signalled =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signalled.unwrap().success());
    let recorder = child.id();
    let ended = crate::machine::Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(ended.out.contains(" 0 events lost"), "{}", ended.out);
    assert!(instances(recorder).is_empty());

    let bytes = std::fs::read(&file).unwrap();
    let trace = trace::read("t", &bytes, &trace::How::default()).unwrap();
    // What looks at new devices may read it, too, before and after: the load is what is left, in its order.
    let mut wanted = made.iter().peekable();
    for entry in trace.entries.iter().filter(|entry| entry.op != trace::TraceOp::Flush) {
        let found = (entry.op == trace::TraceOp::Write, entry.start.0, entry.count.0);
        if wanted.next_if(|made| **made == found).is_some() {
            assert!(entry.service.is_some(), "{entry:?} has no end");
        }
    }
    assert_eq!(wanted.next(), None, "of {} requests", trace.entries.len());
    // And it is replayed.
    let size = place.run(&[
        "compare",
        "simulated:hdd-15k",
        "--replay",
        file.to_str().unwrap(),
        "--rounds",
        "1",
        "--quiet",
    ]);
    size.expect(0);
}

#[test]
fn what_does_not_fit_the_buffers_is_counted() {
    if !has_tracing() {
        return;
    }
    let place = Place::alone();
    let device = place.loop_device("disk", 16);
    let file = place.path().join("t.blktrace");
    let child = recording(&place, &device, &file, &["--buffer", "64K"]);
    std::thread::sleep(Duration::from_millis(500));
    // A program that is stopped reads nothing: the buffers run over.
    let signal = |name: &str, pid: u32| {
        let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP", child.id());
    let mut direct = File::options()
        .write(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&device.node)
        .unwrap();
    let mut storage = Vec::new();
    let buffer = aligned(&mut storage, 4096);
    for _ in 0..3000 {
        direct.write_all(buffer).unwrap();
        if std::io::Seek::stream_position(&mut direct).unwrap() >= 15 << 20 {
            std::io::Seek::rewind(&mut direct).unwrap();
        }
    }
    signal("-CONT", child.id());
    signal("-INT", child.id());
    let ended = crate::machine::Ended::of(child.wait_with_output().unwrap());
    assert!(ended.err.contains("a larger --buffer"), "{}{}", ended.out, ended.err);
    let bytes = std::fs::read(&file).unwrap();
    let trace = trace::read("t", &bytes, &trace::How::default()).unwrap();
    // Each request has three events.
    let recorded = trace.entries.len() as u64;
    assert!(trace.lost > 0 && recorded < 3000, "{} lost, {recorded} recorded", trace.lost);
    assert!(trace.lost + 3 * recorded >= 8000, "{} lost, {recorded} recorded", trace.lost);
}

#[test]
fn killed_it_leaves_an_instance_that_undo_removes() {
    if !has_tracing() {
        return;
    }
    let place = Place::alone();
    let device = place.loop_device("disk", 16);
    let file = place.path().join("t.blktrace");
    let mut child = recording(&place, &device, &file, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(instances(child.id()).len(), 1);
    place.run(&["undo"]).expect(0);
    assert!(instances(child.id()).is_empty());
}

/// Operations a second of the baseline's row.
fn rate(out: &str) -> f64 {
    let row =
        out.lines().find_map(|line| line.strip_prefix("* ")).unwrap_or_else(|| panic!("{out}"));
    row.split_whitespace().nth(1).and_then(|word| word.replace(',', "").parse().ok()).unwrap()
}

#[test]
fn a_trace_is_replayed_on_scratch_files_and_on_emulated_devices() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::alone();
    let file = place.path().join("log");
    let mut stream = random::Stream::new(1, "replay");
    let mut text = "fio version 3 iolog\n".to_owned();
    for at in 0..300 {
        let (kind, block) = (["read", "write"][stream.below(2) as usize], stream.below(4096));
        text.push_str(&format!("{} /a {kind} {} 4096\n", at * 2000, block * 4096));
    }
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let folder = place.path().to_str().unwrap();
    let replay = |target: &str, more: &[&str]| {
        let words = ["compare", target, "--replay", file, "--rounds", "2", "--quiet"];
        let ended = place.run(&[&words[..], more].concat());
        ended.expect(0).out
    };
    // At the recorded times, on a file of its own behind a loop device: a request each 2 ms.
    let open = replay(folder, &["--loop", "--schedulers", "none"]);
    assert!((450.0..510.0).contains(&rate(&open)), "{open}");
    let small = ["--loop", "--schedulers", "none", "--size", "1M"];
    let words = ["compare", folder, "--replay", file, "--rounds", "2", "--quiet"];
    place.run(&[&words[..], &small].concat()).expect(2).complains_of(&["--replay-wrap"]);
    assert!(
        replay(folder, &[&small[..], &["--replay-wrap"]].concat()).contains("lie beyond 1 MiB")
    );
    // A block device is overwritten by a trace as by any job: with consent alone.
    let device = place.loop_device("disk", 32);
    let words = ["compare", device.node.to_str().unwrap(), "--replay", file, "--rounds", "1"];
    place.run(&words).expect(2).complains_of(&["--confirm"]);
    let disk = place.path().join("disk");
    assert!(std::fs::read(&disk).unwrap().iter().all(|byte| *byte == 0), "it was written to");
    // With it, on the device itself; a request after the one before it has ended, and 2 ms to think.
    let before = device.settings();
    let confirmed = ["--confirm", disk.to_str().unwrap(), "--schedulers", "none,mq-deadline"];
    let node = device.node.to_str().unwrap();
    let closed = replay(node, &[&confirmed[..], &["--replay-mode", "closed"]].concat());
    assert!((50.0..500.0).contains(&rate(&closed)), "{closed}");
    assert!(std::fs::read(&disk).unwrap().iter().any(|byte| *byte != 0), "nothing was written");
    assert_eq!(device.settings(), before);
    // One that was told it may be overwritten is still no device to overwrite while somebody uses it.
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let held = File::options().read(true).custom_flags(exclusive).open(&device.node).unwrap();
    let words = ["compare", node, "--replay", file, "--rounds", "1", "--quiet"];
    let refused = place.run(&[&words[..], &confirmed].concat()).expect(2);
    drop(held);
    refused.complains_of(&["cannot be opened exclusively"]);

    // As fast as possible on an emulated disk: the rates of two runs agree, unless the machine is busy.
    if !Path::new("/dev/fuse").exists() {
        skip(Need::Fuse, "a trace on an emulated device");
        return;
    }
    let asap = ["--replay-mode", "asap", "--clients", "1", "--depths", "4", "--schedulers", "none"];
    let rates = || rate(&replay("emulated:hdd-15k", &asap));
    let mut seen = Vec::new();
    for _ in 0..4 {
        let pair = [rates(), rates()];
        seen.push(pair);
        if (pair[0] / pair[1] - 1.0).abs() <= 0.03 {
            return;
        }
    }
    panic!("{seen:?}");
}
