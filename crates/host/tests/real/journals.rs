//! Undoing what a process that was killed had changed, whatever became of its journal.

use crate::machine::{Machine, async_depth, machine};
use host::{
    Changes, DeviceNumber, FilesystemKind, Host, LoopOptions, Outcome, PendingJournal, QueueFolder,
    ScratchDevice, Setting, pending, undo,
};
use random::Stream;
use skipped::{Need, skip};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use units::Bytes;

fn all(device: DeviceNumber) -> BTreeMap<Setting, String> {
    QueueFolder::of(&Host::here(), device).unwrap().read_all()
}

/// Switches settings on a device for ever: what is killed below.
fn switch_for_ever(state: &Path, device: DeviceNumber, seed: u64) {
    let mut changes = Changes::begin_in(&Host::here(), state, "switch").unwrap();
    let mut stream = Stream::new(seed, "switch");
    println!("begun");
    loop {
        let scheduler = ["none", "mq-deadline", "kyber", "bfq"][stream.below(4) as usize];
        let mut set = |setting: Setting, value: String| {
            changes.set(device, &setting, &value).unwrap();
        };
        set(Setting::Scheduler, scheduler.into());
        set(Setting::NrRequests, (4 + stream.below(120)).to_string());
        if scheduler != "none" && all(device).contains_key(&Setting::AsyncDepth) {
            set(Setting::AsyncDepth, (1 + stream.below(4)).to_string());
        }
        let tunable = match scheduler {
            "mq-deadline" => Some("fifo_batch"),
            "kyber" => Some("read_lat_nsec"),
            "bfq" => Some("slice_idle"),
            _ => None,
        };
        if let Some(tunable) = tunable {
            set(Setting::Tunable(tunable.into()), (1 + stream.below(60)).to_string());
        }
        if scheduler != "bfq" {
            set(Setting::WbtLatUsec, (stream.below(3) * 1000).to_string());
        }
        set(Setting::ReadAheadKb, (4 * (1 + stream.below(64))).to_string());
    }
}

/// Makes a file, a loop device, a filesystem and a mount, and takes them away, for ever.
fn make_for_ever(state: &Path, parent: &Path) {
    let mut changes = Changes::begin_in(&Host::here(), state, "make").unwrap();
    println!("begun");
    loop {
        let folder = changes.scratch_folder(parent).unwrap();
        let file = changes.scratch_file(&folder.path, Bytes::from_mib(8), &mut |_| true).unwrap();
        let device = changes.attach(&file.path, LoopOptions::default()).unwrap();
        changes.set(device.number, &Setting::Scheduler, "bfq").unwrap();
        let scratch = ScratchDevice::of_loop(&Host::here(), &device).unwrap();
        changes.make_filesystem(&scratch, FilesystemKind::Ext2, "").unwrap();
        let mounted = changes.mount(&scratch, FilesystemKind::Ext2, "").unwrap();
        std::fs::write(mounted.point.join("x"), [1; 4096]).unwrap();
        let bound = changes.bound_page_cache(Bytes::from_mib(64)).ok();
        if let Some(bound) = bound {
            changes.unbound_page_cache(bound).unwrap();
        }
        changes.unmount(mounted).unwrap();
        changes.detach(device).unwrap();
        changes.remove_file(file).unwrap();
        changes.remove_folder(folder).unwrap();
    }
}

/// Has a child, without a program of its own, that outlives it by a moment.
fn live_with_a_child(state: &Path) {
    let changes = Changes::begin_in(&Host::here(), state, "fork").unwrap();
    // SAFETY: the child only sleeps and ends.
    if unsafe { libc::fork() } == 0 {
        std::thread::sleep(Duration::from_millis(500));
        // SAFETY: ends the child at once, without what the parent would do at its end.
        unsafe { libc::_exit(0) };
    }
    println!("begun");
    std::thread::sleep(Duration::from_secs(60));
    drop(changes);
}

/// Not a test of its own: what the tests below start and kill.
#[test]
#[ignore = "started by other tests"]
fn victim() {
    let Ok(task) = std::env::var("VICTIM") else { return };
    let words: Vec<&str> = task.split('|').collect();
    match words[..] {
        ["switch", state, device, seed] => {
            switch_for_ever(state.as_ref(), device.parse().unwrap(), seed.parse().unwrap());
        }
        ["fork", state] => live_with_a_child(state.as_ref()),
        ["make", state, parent] => make_for_ever(state.as_ref(), parent.as_ref()),
        _ => panic!("unknown task {task}"),
    }
}

/// Starts a victim and kills it `after` it has begun.
fn kill(task: &str, after: Duration) {
    kill_with(task, after, &std::env::var("PATH").unwrap());
}

fn kill_with(task: &str, after: Duration, path: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["journals::victim", "--exact", "--ignored", "--nocapture"])
        .env("VICTIM", task)
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("begun")), "the victim did not begin");
    std::thread::sleep(after);
    assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn only(state: &Path) -> PendingJournal {
    let mut found = pending(state).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn killed_at_random_moments_everything_is_put_back() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    machine.changes.set(device, &Setting::Scheduler, "mq-deadline").unwrap();
    machine.changes.set(device, &Setting::Tunable("fifo_batch".into()), "7").unwrap();
    machine.changes.set(device, &Setting::NrRequests, "99").unwrap();
    let depth = async_depth(&machine.host, device);
    machine.changes.set(device, &depth, "3").unwrap();
    let before = all(device);
    let mut stream = Stream::new(1, "moments");
    let state = machine.state();
    for seed in 0..40 {
        let after = Duration::from_micros(stream.below(60_000));
        kill(&format!("switch|{}|{device}|{seed}", state.display()), after);
        let report = undo(&machine.host, only(&state)).unwrap();
        assert!(report.is_complete(), "seed {seed}, killed after {after:?}: {report:#?}");
        assert_eq!(all(device), before, "seed {seed}, killed after {after:?}");
        assert!(pending(&state).unwrap().is_empty());
    }
}

#[test]
fn killed_while_making_nothing_stays() {
    let path = std::env::var("PATH").unwrap();
    kill_while_making(25, Duration::from_millis(250), &path);
}

/// A mount(8) that takes its time, and would mount after the undo unless that ends it.
#[test]
fn a_mount_that_outlives_who_asked_for_it_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("mount");
    std::fs::write(&program, "#!/bin/sh\nsleep 2\nexec /bin/mount \"$@\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    kill_while_making(6, Duration::from_millis(500), &path);
    let program = program.as_os_str().as_bytes();
    let runs = |process: &std::fs::DirEntry| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == program)
    };
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(runs).count();
    assert_eq!(left, 0, "processes that still mount");
}

/// Kills who makes and takes away again at moments up to `most` after it has begun.
fn kill_while_making(rounds: usize, most: Duration, path: &str) {
    let Some(machine) = machine() else { return };
    let parent = machine.folder.path().join("parent");
    std::fs::create_dir(&parent).unwrap();
    let state = machine.state();
    let mut stream = Stream::new(2, "moments");
    for round in 0..rounds {
        let after = Duration::from_micros(stream.below(most.as_micros() as u64));
        kill_with(&format!("make|{}|{}", state.display(), parent.display()), after, path);
        let report = undo(&machine.host, only(&state)).unwrap();
        assert!(report.is_complete(), "round {round}, killed after {after:?}: {report:#?}");
        let left: Vec<_> = std::fs::read_dir(&parent).unwrap().collect();
        assert!(left.is_empty(), "round {round}: {left:?}");
        let loops = std::fs::read_dir("/sys/block").unwrap().flatten().filter(|entry| {
            std::fs::read_to_string(entry.path().join("loop/backing_file"))
                .is_ok_and(|file| Path::new(file.trim()).starts_with(&parent))
        });
        assert_eq!(loops.count(), 0, "round {round}: a loop device stays");
        let mounts = host::mounts(&machine.host).unwrap();
        let left = mounts.iter().find(|mount| mount.point.starts_with(machine.folder.path()));
        assert_eq!(left, None, "round {round}");
        let mut left = std::fs::read_dir(&state).unwrap().flatten().map(|it| it.file_name());
        assert_eq!(left.next(), None, "round {round}: a mount point or a journal stays");
    }
}

#[test]
fn a_living_process_is_left_alone() {
    let Some(machine) = machine() else { return };
    let changes = Changes::begin_in(&machine.host, &machine.state(), "lives").unwrap();
    assert!(pending(&machine.state()).unwrap().is_empty());
    changes.finish().unwrap();
}

#[test]
fn children_that_outlive_a_killed_process_do_not_hide_its_journal() {
    let Some(machine) = machine() else { return };
    kill(&format!("fork|{}", machine.state().display()), Duration::ZERO);
    let report = undo(&machine.host, only(&machine.state())).unwrap();
    assert!(report.is_complete(), "{report:#?}");
}

/// A device with settings changed by a killed process: the journal's bytes, and how things were.
fn killed(machine: &mut Machine) -> (DeviceNumber, BTreeMap<Setting, String>, Vec<u8>) {
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let before = all(device);
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "killed").unwrap();
    changes.set(device, &Setting::ReadAheadKb, "64").unwrap();
    changes.set(device, &Setting::Scheduler, "bfq").unwrap();
    changes.set(device, &Setting::NrRequests, "32").unwrap();
    changes.set(device, &Setting::Tunable("slice_idle".into()), "1").unwrap();
    let bytes = std::fs::read(changes.journal()).unwrap();
    // Finishing restores; the test puts the changed state back itself from `again`.
    changes.finish().unwrap();
    (device, before, bytes)
}

/// The state in which the killed process left the device.
fn again(device: DeviceNumber) {
    let queue = format!("/sys/dev/block/{device}/queue");
    for (file, value) in [
        ("read_ahead_kb", "64"),
        ("scheduler", "bfq"),
        ("nr_requests", "32"),
        ("iosched/slice_idle", "1"),
    ] {
        std::fs::write(format!("{queue}/{file}"), value).unwrap();
    }
}

fn undo_bytes(machine: &Machine, bytes: &[u8]) -> host::UndoReport {
    let state = machine.state();
    let _ = std::fs::remove_dir_all(&state);
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("1-1.journal"), bytes).unwrap();
    undo(&machine.host, only(&state)).unwrap()
}

#[test]
fn a_journal_cut_anywhere_restores_what_it_proves() {
    let Some(mut machine) = machine() else { return };
    let (device, before, bytes) = killed(&mut machine);
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 6, "a start, a snapshot and four changes");
    for (whole, cut) in
        ends.iter().enumerate().flat_map(|(line, end)| [(line, end - 9), (line + 1, *end)])
    {
        again(device);
        let left = all(device);
        let report = undo_bytes(&machine, &bytes[..cut]);
        let now = all(device);
        if cut != ends[whole.saturating_sub(1)] || whole == 0 {
            assert!(!report.unknown.is_empty(), "cut at {cut}: a torn line is told");
        }
        // Line 3 is read-ahead, line 4 the scheduler with all that hangs on it.
        let expected = match whole {
            0..3 => left.clone(),
            3 => {
                let mut expected = left.clone();
                let read_ahead = before[&Setting::ReadAheadKb].clone();
                expected.insert(Setting::ReadAheadKb, read_ahead);
                expected
            }
            _ => before.clone(),
        };
        assert_eq!(now, expected, "cut at {cut}: {report:#?}");
        if whole == 2 && cut != ends[1] {
            let told = report.unknown.iter().any(|it| it.contains("scheduler reads bfq"));
            assert!(told, "what differs and is not accounted for is told: {report:#?}");
        }
    }
    undo_bytes(&machine, &bytes);
}

#[test]
fn a_garbled_line_is_told_and_only_what_is_proven_is_restored() {
    let Some(mut machine) = machine() else { return };
    let (device, before, bytes) = killed(&mut machine);
    let lines: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let garbled = |which: &[usize]| {
        let mut lines = lines.clone();
        for line in which {
            let middle = lines[*line].len() / 2;
            lines[*line][middle] ^= 0x5a;
        }
        lines.concat()
    };
    // The snapshot is lost: each change still carries its own original. What the change of the
    // scheduler reset besides is not known, and told.
    again(device);
    let report = undo_bytes(&machine, &garbled(&[1]));
    for setting in [Setting::Scheduler, Setting::NrRequests, Setting::ReadAheadKb] {
        assert_eq!(all(device)[&setting], before[&setting], "{setting}: {report:#?}");
    }
    assert!(report.unknown.iter().any(|it| it.contains("line 2 is garbled")), "{report:#?}");
    assert!(report.unknown.iter().any(|it| it.contains("line with all its settings")));
    assert!(report.kept.is_some_and(|path| path.to_string_lossy().ends_with(".kept")));
    // The scheduler's line is lost: no entry proves that we changed it, so it is left and told.
    again(device);
    let report = undo_bytes(&machine, &garbled(&[3]));
    assert_eq!(all(device)[&Setting::Scheduler], "bfq", "{report:#?}");
    assert!(report.unknown.iter().any(|it| it.contains("scheduler reads bfq")), "{report:#?}");
    // Somebody has set a third value since, and a later line is lost: it may be theirs or ours.
    again(device);
    std::fs::write(format!("/sys/dev/block/{device}/queue/read_ahead_kb"), "32").unwrap();
    let report = undo_bytes(&machine, &garbled(&[5]));
    assert_eq!(all(device)[&Setting::ReadAheadKb], "32", "{report:#?}");
    let refused = report.steps.iter().any(|step| {
        step.what.ends_with("read_ahead_kb") && matches!(step.outcome, Outcome::Refused { .. })
    });
    assert!(refused, "{report:#?}");
    // No first line, or not a journal at all: nothing is touched.
    again(device);
    let left = all(device);
    let report = undo_bytes(&machine, b"not a journal\nat all\n");
    assert_eq!(all(device), left);
    assert!(!report.is_complete() && report.steps.is_empty(), "{report:#?}");
    undo_bytes(&machine, &bytes);
    assert_eq!(all(device), before);
}

#[test]
fn another_file_on_the_device_means_another_device() {
    let Some(mut machine) = machine() else { return };
    let (device, before, bytes) = killed(&mut machine);
    again(device);
    // What the journal knows as this device's file is another now.
    let other = reworded(&bytes, "/disk\"", "/another\"");
    let left = all(device);
    let report = undo_bytes(&machine, other.as_bytes());
    assert_eq!(all(device), left, "nothing was written");
    for step in &report.steps {
        let Outcome::Refused { why } = &step.outcome else { panic!("{step:?}") };
        assert!(why.contains("backing file was"), "{why}");
    }
    assert!(!report.steps.is_empty());
    undo_bytes(&machine, &bytes);
    assert_eq!(all(device), before);
}

/// The same entries with other words.
fn reworded(bytes: &[u8], from: &str, to: &str) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let reword = |line: &str| {
        let json = line[9..].replace(from, to);
        format!("{:08x} {json}\n", crc32(json.as_bytes()))
    };
    text.lines().map(reword).collect()
}

/// A rule is proven with the original values: written by us, and followed by what udev sets. After a reboot,
/// or when the disk has come back, that is no reason to take the rule's values for somebody else's.
#[test]
fn what_a_proven_rule_has_set_again_is_put_back() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let queue = format!("/sys/dev/block/{device}/queue");
    let by_udev = || {
        for (file, value) in [("scheduler", "bfq"), ("nr_requests", "32")] {
            std::fs::write(format!("{queue}/{file}"), value).unwrap();
        }
    };
    let before = all(device);
    let rule = machine.state().join("99-test.rules");
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "apply").unwrap();
    changes.lasting_file(&rule, "# a rule\n").unwrap();
    for (setting, value) in [(Setting::Scheduler, "bfq"), (Setting::NrRequests, "32")] {
        changes.set(device, &setting, value).unwrap();
    }
    for setting in [Setting::Scheduler, Setting::NrRequests] {
        changes.set(device, &setting, &before[&setting].clone()).unwrap();
    }
    let bytes = std::fs::read(changes.journal()).unwrap();
    changes.finish().unwrap();
    assert_eq!(all(device), before);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let rebooted = reworded(&bytes, boot.trim(), "another");
    let sequence = std::fs::read_to_string(format!("/sys/dev/block/{device}/diskseq")).unwrap();
    let attached = |number: &str| format!("\"sequence\":{number}");
    let came_back = reworded(&bytes, &attached(sequence.trim()), &attached("1"));
    for journal in [rebooted, came_back] {
        by_udev();
        let report = undo_bytes(&machine, journal.as_bytes());
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(all(device), before, "{report:#?}");
        // Somebody else's values are left alone.
        std::fs::write(format!("{queue}/scheduler"), "kyber").unwrap();
        let left = all(device);
        undo_bytes(&machine, journal.as_bytes());
        assert_eq!(all(device), left);
        std::fs::write(format!("{queue}/scheduler"), "bfq").unwrap();
        std::fs::write(format!("{queue}/nr_requests"), "32").unwrap();
        undo_bytes(&machine, journal.as_bytes());
    }
}

/// The journal's checksum, by another way than the journal's own: bit by bit from the message's
/// polynomial division.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        for bit in 0..8 {
            let out = (crc ^ u32::from(byte >> bit)) & 1;
            crc = (crc >> 1) ^ (0xedb8_8320 * out);
        }
    }
    !crc
}

#[test]
fn of_two_journals_the_later_is_undone_first() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let before = all(device);
    let state = machine.state();
    for seed in [3, 4] {
        let task = format!("switch|{}|{device}|{seed}", state.display());
        kill(&task, Duration::from_millis(30));
    }
    for journal in pending(&state).unwrap() {
        let report = undo(&machine.host, journal).unwrap();
        assert!(report.is_complete(), "{report:#?}");
    }
    assert_eq!(all(device), before);
}

#[test]
fn a_loop_device_that_was_detached_meanwhile_gets_its_settings_back() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16));
    let before = all(device.number);
    let state = machine.state();
    let task = format!("switch|{}|{}|5", state.display(), device.number);
    kill(&task, Duration::from_millis(40));
    crate::machine::run("losetup", &["-d", device.node.to_str().unwrap()]).unwrap();
    let name = format!("/sys/block/{}", device.node.file_name().unwrap().to_str().unwrap());
    if Path::new(&name).join("loop").exists() {
        skip(Need::Kernel, "a device number that no other test has taken meanwhile");
        return;
    }
    let report = undo(&machine.host, only(&state)).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    let after = all(device.number);
    for (setting, value) in &before {
        // Attaching and detaching set these themselves.
        if !matches!(setting, Setting::ReadAheadKb | Setting::MaxSectorsKb) {
            assert_eq!(after.get(setting), Some(value), "{setting}: {report:#?}");
        }
    }
}
