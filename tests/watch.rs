//! Who writes a setting: `inspect --watch`, and a comparison during which one moves.

use crate::machine::{Ended, Loop, Place, has_loop_devices};
use skipped::{Need, skip};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// `inspect --watch` on a device, once it watches; none where this machine does not let it.
fn watching(place: &Place, device: &Loop, time: &str) -> Option<Child> {
    let words =
        ["inspect", device.node.to_str().unwrap(), "--watch", "--watch-time", time, "--json"];
    let mut child =
        place.spindle(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    for line in BufReader::new(child.stderr.as_mut().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains("watching") {
            assert!(line.contains(&device.name), "{line}");
            return Some(child);
        }
        told += &line;
    }
    assert!(told.contains("fanotify"), "{told}");
    child.wait().unwrap();
    skip(Need::Kernel, "fanotify on files of /sys");
    None
}

fn shell(command: &str) {
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success());
}

#[test]
fn the_process_that_writes_is_named_with_old_and_new_value() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 16);
    device.set("scheduler", "mq-deadline");
    let Some(mut child) = watching(&place, &device, "6s") else { return };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let queue = format!("/sys/block/{}/queue", device.name);
    // The shell ends at once; the other writes what is there already.
    shell(&format!("echo kyber > {queue}/scheduler"));
    shell(&format!("cat {queue}/nomerges > /dev/null; echo 0 | tee {queue}/nomerges > /dev/null"));
    // A tunable of the scheduler that was just chosen, which is watched once that is told.
    let first = lines.next().unwrap();
    shell(&format!("echo 12345 > {queue}/iosched/read_lat_nsec"));
    let lines: Vec<String> = std::iter::once(first).chain(lines).collect();
    Ended::of(child.wait_with_output().unwrap()).expect(0);
    let writes: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let short: Vec<String> = writes
        .iter()
        .map(|it| {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
            let name = text(&it["by"]["name"]);
            format!(
                "{} {} {} {name}",
                text(&it["setting"]),
                text(&it["before"]),
                text(&it["after"])
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            "scheduler mq-deadline kyber sh",
            "nomerges 0 0 tee",
            "iosched/read_lat_nsec 2000000 12345 sh"
        ],
        "{lines:#?}"
    );
    for write in &writes {
        assert!(write["by"]["parents"].as_array().unwrap().len() > 1, "{write}");
    }
}

#[test]
fn a_killed_watch_leaves_nothing_once_undone() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 16);
    let Some(mut child) = watching(&place, &device, "1m") else { return };
    child.kill().unwrap();
    child.wait().unwrap();
    let undone = place.run(&["undo"]).expect(0);
    assert!(undone.out.contains("tracing instance spindle-"), "{}", undone.out);
    let nothing = place.run(&["undo"]).expect(0);
    assert!(nothing.out.contains("nothing"), "{}", nothing.out);
}

#[test]
fn who_moved_a_setting_during_a_trial_is_in_the_report() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 64);
    let file = format!("/sys/block/{}/queue/nomerges", device.name);
    // It ends with this process, whatever ends that.
    let own = std::process::id();
    let moving = format!(
        "while sleep 0.9 && kill -0 {own}; do echo 1 > {file}; sleep 0.9; echo 0 > {file}; done"
    );
    let mut mover = Command::new("sh").args(["-c", &moving]).spawn().unwrap();
    let confirm = place.path().join("disk");
    let words = [
        "compare",
        device.node.to_str().unwrap(),
        "--confirm",
        confirm.to_str().unwrap(),
        "--schedulers",
        "none,mq-deadline",
        "--size",
        "16M",
        "--rounds",
        "6",
        "--measure",
        "250ms",
        "--warmup",
        "0s",
        "--quiet",
    ];
    let ended = place.run(&words);
    mover.kill().unwrap();
    mover.wait().unwrap();
    let report = place.run(&["report"]);
    let all = format!("{} {}", ended.err, report.out);
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains("a setting moved during the trial: nomerges"), "{all}");
    let seen = format!("by sh ({}", mover.id());
    let unseen = all.contains("could not be watched");
    if unseen {
        skip(Need::Kernel, "fanotify on files of /sys");
        return;
    }
    assert!(all.contains(&seen), "{all}");
    assert!(place.run(&["undo"]).expect(0).out.contains("nothing"));
}
