//! `spindle compare`, and what is made of its run file: `report`, `resume`, `runs`.

use crate::machine::{Ended, Place, has_loop_devices};
use skipped::{Need, skip};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

const SHORT: [&str; 8] = ["--size", "16M", "--rounds", "3", "--measure", "200ms", "--warmup", "0s"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&SHORT).copied().collect()
}

/// Files that a comparison leaves in the folder it measures in.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn from_words_to_a_verdict_and_nothing_left_behind() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let target = folder.to_str().unwrap();
    let words = with(&["compare", target, "--loop", "--schedulers", "all", "--queues", "64,128"]);
    let ended = place.run(&words).expect(0);
    for word in ["IOPS", "against *", "mq-deadline, queue 64", "bfq", "Verdict"] {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    assert!(left_in(&folder).is_empty());
    assert!(journals(&place).is_empty());

    // The run file alone gives the same report again, and every other form of it.
    let again = place.run(&["report", "last"]).expect(0);
    assert_eq!(again.out, ended.out);
    let markdown = place.run(&["report", "last", "--markdown"]).expect(0);
    assert!(markdown.out.contains("| aqu-sz |") && markdown.out.contains("%util"));
    let csv = place.run(&["report", "last", "--csv"]).expect(0);
    assert!(csv.out.lines().next().unwrap().contains("device.await"));
    let json: serde_json::Value =
        serde_json::from_str(&place.run(&["report", "--json"]).expect(0).out).unwrap();
    assert_eq!(json["state"], "done");
    let runs = place.run(&["runs"]).expect(0);
    assert!(runs.out.contains("done") && runs.out.contains("scratch"), "{}", runs.out);
    place.run(&["resume", "last"]).expect(2).complains_of(&["complete"]);
}

fn journals(place: &Place) -> Vec<String> {
    let files = left_in(&place.state());
    files.into_iter().filter(|name| name.ends_with(".journal")).collect()
}

#[test]
fn a_block_device_is_used_only_with_its_confirmation() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 32);
    let before = device.settings();
    let node = device.node.to_str().unwrap();
    let words = with(&["compare", node, "--schedulers", "none,mq-deadline"]);
    place.run(&words).expect(2).complains_of(&["would be overwritten", "confirm"]);
    let content = std::fs::read(place.path().join("disk")).unwrap();
    assert!(content.iter().all(|byte| *byte == 0), "nothing may have been written");

    let file = place.path().join("disk");
    let words = with(&[
        "compare",
        node,
        "--schedulers",
        "none,mq-deadline",
        "--confirm",
        file.to_str().unwrap(),
    ]);
    place.run(&words).expect(0);
    assert_eq!(device.settings(), before);
    let content = std::fs::read(&file).unwrap();
    assert!(content[..16 << 20].iter().any(|byte| *byte != 0));
    assert!(content[16 << 20..].iter().all(|byte| *byte == 0), "beyond --size all is as it was");
}

#[test]
fn filesystems_are_a_factor() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = with(&[
        "compare",
        folder.to_str().unwrap(),
        "--filesystems",
        "ext4,xfs,btrfs",
        "--filesystem",
        "ext4;mount=noatime",
        "--sync",
        "direct,fsync",
        "--patterns",
        "randwrite",
    ]);
    let ended = place.run(&words).expect(0);
    for word in ["ext4;mount=noatime, fsync", "xfs, direct", "btrfs, fsync"] {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    assert!(left_in(&folder).is_empty());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.path().to_str().unwrap()), "a mount is left:\n{mounts}");
}

#[test]
fn a_target_without_a_scheduler_is_measured_for_what_can_vary() {
    let place = Place::new();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let words = with(&["compare", folder.path().to_str().unwrap(), "--sync", "buffered,fsync"]);
    let ended = place.run(&words).expect(0);
    assert!(ended.out.contains("fsync"), "{}", ended.out);
    let words = [&words[..], &["--schedulers", "all"]].concat();
    place.run(&words).expect(2).complains_of(&["scheduler cannot be set here", "tmpfs"]);
}

#[test]
fn an_overlay_like_a_containers_root_is_measured_for_what_can_vary() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folders = ["lower", "upper", "work", "merged"].map(|name| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder.display().to_string()
    });
    let [lower, upper, work, merged] = &folders;
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let mount = ["-t", "overlay", "-o", &options, "overlay", merged];
    if !Command::new("mount").args(mount).status().unwrap().success() {
        skip(Need::Kernel, "overlay mounts");
        return;
    }
    let words = with(&["compare", merged, "--clients", "1,4"]);
    let ended = place.run(&words);
    let refused = place.run(&[&words[..], &["--schedulers", "all"]].concat());
    crate::machine::unmount(merged);
    refused.expect(2).complains_of(&["scheduler cannot be set here", "overlay"]);
    let ended = ended.expect(0);
    assert!(ended.out.contains("4 clients"), "{}", ended.out);
}

#[test]
fn a_network_filesystem_is_measured_for_what_can_vary_and_left_clean() {
    let server = "/usr/lib/openssh/sftp-server";
    let has = |path: &str| Path::new(path).exists();
    if !(has(server) && has("/usr/bin/sshfs") && has("/dev/fuse")) {
        skip(Need::Program, &format!("sshfs, {server} and /dev/fuse"));
        return;
    }
    let place = Place::new();
    let [far, near] = ["far", "near"].map(|name| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder.display().to_string()
    });
    // The server over a pipe: no network is needed for files that are somebody else's.
    let script = place.path().join("ssh");
    let text = "#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n";
    std::fs::write(&script, text).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, open).unwrap();
    let command = format!("ssh_command={}", script.display());
    let mount = Command::new("sshfs").args(["-o", &command, &format!("x:{far}"), &near]).status();
    if !mount.unwrap().success() {
        skip(Need::Kernel, "sshfs mounts");
        return;
    }
    let words = with(&["compare", &near, "--sync", "buffered,fsync"]);
    let ended = place.run(&words);
    let refused = place.run(&[&words[..], &["--schedulers", "all"]].concat());
    let left = left_in(Path::new(&far));
    crate::machine::unmount(&near);
    refused.expect(2).complains_of(&["scheduler cannot be set here", "sshfs"]);
    let ended = ended.expect(0);
    assert!(ended.out.contains("fsync"), "{}", ended.out);
    assert!(left.is_empty(), "left on the server: {left:?}");
}

#[test]
fn a_background_job_a_rate_processes_and_other_engines() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = with(&[
        "compare",
        folder.to_str().unwrap(),
        "--engine",
        "io_uring,sync,fio",
        "--processes",
        "--clients",
        "2",
        "--rates",
        "500/s",
        "--background",
        "read,block_size=64k,io_priority=idle",
    ]);
    let ended = place.run(&words);
    // fio cannot do all of this; a cell that it cannot do fails by itself, with the reason.
    let ended = ended.expect(0);
    assert!(ended.out.contains("sync"), "{}\n{}", ended.out, ended.err);
    let path =
        std::fs::read_dir(place.state().join("runs")).unwrap().next().unwrap().unwrap().path();
    let file = rusqlite::Connection::open(path).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(
        count("SELECT count(*) FROM operation WHERE job = 'background' AND operations > 0") > 0
    );
    assert!(count("SELECT count(*) FROM operation WHERE response IS NOT NULL") > 0);
    assert_eq!(count("SELECT max(client) FROM client WHERE job = 'job'"), 1);
}

/// Interrupts a comparison of `levels` in a folder named relatively, and resumes it from elsewhere.
fn interrupt_and_resume(levels: &[&str], slots: i64) {
    let place = Place::new();
    let folder = place.scratch();
    let mut words = vec!["compare", "scratch", "--size", "16M", "--rounds", "4"];
    words.extend(["--measure", "400ms", "--warmup", "0s"].iter().chain(levels));
    let mut child = place.spindle(&words).current_dir(place.path()).spawn().unwrap();
    // Until two trials are recorded.
    let runs = place.state().join("runs");
    let trials = || {
        let path = std::fs::read_dir(&runs).ok()?.next()?.ok()?.path();
        let file = rusqlite::Connection::open(path).ok()?;
        file.query_row("SELECT count(*) FROM trial", [], |row| row.get::<_, i64>(0)).ok()
    };
    for _ in 0..600 {
        if trials().is_some_and(|count| count >= 2) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(journals(&place).is_empty(), "everything was put back");
    assert!(left_in(&folder).is_empty());
    let report = place.run(&["report", "last"]).expect(0);
    assert!(report.out.contains("not complete"), "{}", report.out);
    let resumed = place.run(&["resume", "last"]).expect(0);
    assert!(resumed.out.contains("Verdict"));
    assert_eq!(trials(), Some(4 * slots));
}

#[test]
fn ctrl_c_keeps_what_there_is_and_resume_goes_on() {
    if has_loop_devices() {
        interrupt_and_resume(&["--loop", "--schedulers", "none,bfq"], 3);
    }
}

#[test]
fn a_comparison_of_filesystems_goes_on_too() {
    if has_loop_devices() {
        interrupt_and_resume(&["--filesystems", "ext4,ext2"], 3);
    }
}

#[test]
fn the_threshold_that_the_user_sets_is_an_exit_code() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    // Two rounds settle nothing.
    let words = [
        "compare",
        folder.to_str().unwrap(),
        "--loop",
        "--schedulers",
        "none,bfq",
        "--size",
        "16M",
        "--rounds",
        "2",
        "--measure",
        "200ms",
        "--warmup",
        "0s",
        "--settled",
        "--quiet",
    ];
    let ended = place.run(&words).expect(3);
    assert!(ended.err.is_empty(), "{}", ended.err);
}

#[test]
fn a_page_cache_bound_holds() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = [
        "compare",
        folder.to_str().unwrap(),
        "--loop",
        "--filesystems",
        "ext4",
        "--sync",
        "buffered",
        "--patterns",
        "randread",
        "--clients",
        "1,2",
        "--page-cache",
        "24M",
        "--size",
        "96M",
        "--rounds",
        "3",
        "--measure",
        "500ms",
        "--warmup",
        "0s",
    ];
    let ended = place.run(&words).expect(0);
    assert!(ended.out.contains("limited to 24"), "{}", ended.out);
    let path =
        std::fs::read_dir(place.state().join("runs")).unwrap().next().unwrap().unwrap().path();
    let file = rusqlite::Connection::open(path).unwrap();
    // With a cache of a quarter of the file at most, most reads must have gone to the device.
    let (asked, moved): (f64, f64) = file
        .query_row(
            "SELECT (SELECT sum(bytes) FROM operation WHERE job = 'job'),
                    (SELECT sum(value) * 1048576 FROM counter WHERE name = 'device.rMB/s' AND at > 0)",
            [],
            |row| Ok((row.get(0)?, row.get::<_, Option<f64>>(1)?.unwrap_or(0.0))),
        )
        .unwrap();
    assert!(moved > 0.3 * asked, "the device moved {moved} of {asked}");
}

#[test]
fn a_device_that_fails_ends_the_run_with_the_reason() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 320);
    let node = device.node.to_str().unwrap();
    let point = place.path().join("point");
    std::fs::create_dir(&point).unwrap();
    let command = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
        assert!(status.success(), "{words:?}");
    };
    let mounted = point.to_str().unwrap();
    command(&["mkfs.xfs", "-q", node]);
    command(&["mount", node, mounted]);
    let words = [
        "compare",
        mounted,
        "--sync",
        "direct,fdatasync",
        "--size",
        "16M",
        "--rounds",
        "30",
        "--measure",
        "500ms",
        "--warmup",
        "0s",
    ];
    let child =
        place.spindle(&words).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    // What a filesystem does when its disk is gone: from now on every access fails.
    let shut = Command::new("xfs_io").args(["-x", "-c", "shutdown", mounted]).status();
    let ended = crate::machine::Ended::of(child.wait_with_output().unwrap());
    crate::machine::unmount(mounted);
    command(&["mount", node, mounted]);
    let undone = place.run(&["undo"]);
    let left = left_in(&point);
    crate::machine::unmount(mounted);
    assert!(shut.unwrap().success());
    ended.expect(1).complains_of(&["nput/output error"]);
    undone.expect(0);
    assert!(left.is_empty(), "once the disk is back, what could not be removed is: {left:?}");
}

#[test]
fn a_terminal_or_a_reader_that_goes_away_breaks_no_run() {
    let place = Place::new();
    let folder = place.scratch();
    let mut words = vec!["compare", folder.to_str().unwrap()];
    words.extend(["--placebo", "1", "--size", "8M", "--measure", "100ms", "--warmup", "0s"]);
    words.extend(["--rounds", "3"]);
    for gone in ["stdout", "stderr"] {
        let mut command = place.spindle(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        match gone {
            "stdout" => drop(child.stdout.take()),
            _ => drop(child.stderr.take()),
        }
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{gone}: {}", ended.err);
        assert!(left_in(&folder).is_empty() && journals(&place).is_empty(), "{gone}");
    }
    let runs = place.run(&["runs"]).expect(0).out;
    assert_eq!(runs.matches(" done ").count(), 2, "{runs}");
}

#[test]
fn dirty_pages_that_a_trial_may_leave_are_told_before_it_begins() {
    let place = Place::new();
    let folder = place.scratch();
    let told = |sync: &str, pattern: &str| {
        let words = [
            "plan",
            folder.to_str().unwrap(),
            "--size",
            "64M",
            "--sync",
            sync,
            "--patterns",
            pattern,
        ];
        place.run(&words).expect(0).out.replace('\n', " ").contains("dirty pages")
    };
    assert!(told("buffered", "randwrite"));
    assert!(!told("buffered", "randread"), "reads leave none");
    assert!(!told("direct", "randwrite"), "nor writes past the page cache");
    assert!(!told("fdatasync", "randwrite"), "nor what is flushed");
}
