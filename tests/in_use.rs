//! A device that another run measures, and a device that answers no more.

use crate::{
    emulate::Device,
    machine::{Ended, Loop, Place, can_emulate, has_loop_devices},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Read,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// What tells in a comparison's journal that it has claimed its device.
const CLAIMED: &str = "\"measures\"";
/// The same of the first trial's settings, where they are not what they were: the guards have passed,
/// and the device is written full.
const SET: &str = "\"change\"";

/// Starts the program and waits until its journal says so.
fn begun(place: &Place, words: &[&str], so: &str) -> Child {
    let mut command = place.spindle(words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let journals = || std::fs::read_dir(place.state()).into_iter().flatten().flatten();
    let has_begun = || {
        journals().any(|journal| {
            let text = std::fs::read_to_string(journal.path()).unwrap_or_default();
            // An emulated device's journal is here, too: it has changes, but measures nothing.
            text.contains(CLAIMED) && text.contains(so)
        })
    };
    let began = Instant::now();
    while !has_begun() {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("it ended by itself, {status}: {said}");
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// An emulated disk, and its server.
fn disk(place: &Place) -> (Device, Pid) {
    let device = Device::up(place, &["hdd-15k", "--size", "64M", "--transport", "fuse"]);
    let server = Pid::from_raw(device.number(place, "server")).unwrap();
    (device, server)
}

/// What confirms that a loop device may be overwritten.
fn backing_file(device: &Device) -> String {
    let folder = Path::new("/sys/block").join(device.node.file_name().unwrap());
    std::fs::read_to_string(folder.join("loop/backing_file")).unwrap().trim().to_owned()
}

/// Waits until a trial runs on a device: its random reads and writes end all the time. Between trials a scheduler is
/// chosen and the device flushed, and nothing ends a process while such a call waits for the device.
fn in_a_trial(device: &Device) {
    let stat = Path::new("/sys/block").join(device.node.file_name().unwrap()).join("stat");
    let done = || {
        let text = std::fs::read_to_string(&stat).unwrap();
        let fields: Vec<u64> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
        fields[0] + fields[4]
    };
    let (began, mut busy, mut last) = (Instant::now(), 0, done());
    while busy < 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "no trial runs");
        std::thread::sleep(Duration::from_millis(50));
        let now = done();
        busy = if now > last + 1 { busy + 1 } else { 0 };
        last = now;
    }
}

#[test]
fn a_second_comparison_on_a_device_is_refused_with_the_firsts_name() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let scratch = place.scratch();
    let folder = scratch.to_str().unwrap();
    // Beside each other on one disk, one of them behind a loop device of its own.
    let long = ["compare", folder, "--loop", "--schedulers", "none", "--size", "8M"];
    let long = [&long[..], &["--rounds", "500", "--measure", "100ms", "--quiet"]].concat();
    let short = ["compare", folder, "--clients", "1,2", "--size", "8M", "--rounds", "3"];
    let short = [&short[..], &["--measure", "100ms", "--warmup", "0s", "--quiet"]].concat();
    let mut first = begun(&place, &long, CLAIMED);
    let refused = place.run(&short).expect(1);
    let pid = format!("process {}", first.id());
    refused.complains_of(&["being measured by another run", &pid, "--rounds 500"]);
    place.run(&["inspect", folder, "--sync", "--sync-time", "3s"]).expect(1).complains_of(&[&pid]);
    // A world without a device is free.
    let simulated = ["compare", "simulated:hdd-15k", "--rounds", "2", "--measure", "1s", "--quiet"];
    place.run(&simulated).expect(0);
    first.kill().unwrap();
    first.wait().unwrap();
    place.run(&["undo"]).expect(0);
    place.run(&short).expect(0);
}

#[test]
fn a_device_that_hangs_ends_the_run_and_undo_waits_for_it() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let (device, server) = disk(&place);
    let file = backing_file(&device);
    let words = ["compare", device.node.to_str().unwrap(), "--confirm", &file];
    let words = [&words[..], &["--schedulers", "none,kyber", "--size", "16M"]].concat();
    let words = [&words[..], &["--rounds", "500", "--measure", "500ms", "--quiet"]].concat();
    let child = begun(&place, &words, SET);
    std::thread::sleep(Duration::from_secs(3));
    in_a_trial(&device);
    kill_process(server, Signal::STOP).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    let kept = place.run(&["report", "last"]);
    kill_process(server, Signal::CONT).unwrap();
    ended.expect(1).complains_of(&[
        "the device hangs",
        "kernel's log",
        "nothing was put back",
        "undo",
    ]);
    // What was measured before it hung counts.
    assert!(kept.expect(0).out.contains("kyber"));
    place.run(&["undo"]).expect(0);
    assert_eq!(device.setting("scheduler").matches('[').count(), 1);
}

/// Guards look at who else has the device's file, and ask no other filesystem, which may hang.
#[test]
fn a_device_that_hangs_holds_up_no_comparison_of_another() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let (_hanging, server) = disk(&place);
    let file = place.scratch().join("other");
    std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let other = Loop::attach(&file, &[]);
    let words = ["compare", other.node.to_str().unwrap(), "--confirm", file.to_str().unwrap()];
    let words = [&words[..], &["--schedulers", "none", "--size", "8M", "--rounds", "2"]].concat();
    let words = [&words[..], &["--measure", "100ms", "--warmup", "0s", "--quiet"]].concat();
    kill_process(server, Signal::STOP).unwrap();
    let mut command = place.spindle(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that waits for the server does so for ever: a minute is much for what takes a second.
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended_by_itself = child.try_wait().unwrap().is_some();
    kill_process(server, Signal::CONT).unwrap();
    Ended::of(child.wait_with_output().unwrap()).expect(0);
    assert!(ended_by_itself, "it waited for the server of another device");
}

/// A trace is judged while it goes on, a job when its time is over.
#[test]
fn a_device_that_hangs_ends_the_replay_of_a_trace() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let trace = place.path().join("log");
    // Ten minutes, a request each 20 ms.
    let mut text = "fio version 3 iolog\n".to_owned();
    for at in 0..30_000 {
        text.push_str(&format!("{} /a write {} 4096\n", at * 20_000, at % 1000 * 4096));
    }
    std::fs::write(&trace, text).unwrap();
    let (device, server) = disk(&place);
    let file = backing_file(&device);
    let words = ["compare", device.node.to_str().unwrap(), "--confirm", &file];
    let words = [&words[..], &["--replay", trace.to_str().unwrap()]].concat();
    let words = [&words[..], &["--schedulers", "none,mq-deadline", "--quiet"]].concat();
    let child = begun(&place, &words, CLAIMED);
    // The replay has begun where writes come at its rate, 50 a second and 4 KiB each: before it the device is filled.
    let stat = Path::new("/sys/block").join(device.node.file_name().unwrap()).join("stat");
    let written = || {
        let text = std::fs::read_to_string(&stat).unwrap();
        let fields: Vec<u64> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
        (fields[4], fields[6])
    };
    let began = Instant::now();
    let mut last = written();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "the replay does not begin");
        std::thread::sleep(Duration::from_millis(500));
        let now = written();
        let (writes, sectors) = (now.0 - last.0, now.1 - last.1);
        if (10..=40).contains(&writes) && sectors == 8 * writes {
            break;
        }
        last = now;
    }
    kill_process(server, Signal::STOP).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    kill_process(server, Signal::CONT).unwrap();
    ended.expect(1).complains_of(&["the device hangs", "kernel's log", "nothing was put back"]);
    place.run(&["undo"]).expect(0);
    assert_eq!(device.setting("scheduler").matches('[').count(), 1);
}
