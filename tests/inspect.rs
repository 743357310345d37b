//! `spindle inspect`: what it shows, and what it shows without root.

use crate::machine::{Loop, Place, has_loop_devices};
use host::{Inspection, Setting};
use skipped::{Need, skip};
use std::process::Command;

#[test]
fn the_chain_and_the_traps_of_a_loop_device() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let file = place.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let device = Loop::attach(&file, &["--sector-size=4096"]);
    let node = device.node.to_str().unwrap();
    let buffered = Command::new("losetup").args(["--direct-io=off", node]).status().unwrap();
    assert!(buffered.success());
    device.set("scheduler", "kyber");
    let ended = place.run(&["inspect", node, "--json", "--no-probe"]).expect(0);
    let inspection: Inspection = serde_json::from_str(&ended.out).unwrap();
    let queue = inspection.chain.first_varied_device().unwrap().queue.clone().unwrap();
    assert_eq!(queue.scheduler.unwrap().current, "kyber");
    assert!(queue.tunables.contains_key("read_lat_nsec"));
    assert!(inspection.changeable.contains(&Setting::Scheduler));
    for id in ["buffered-loop", "sparse-file", "small-block", "loop-settings-stay"] {
        assert!(
            inspection.traps.iter().any(|trap| trap.id() == id),
            "{id}: {:?}",
            inspection.traps
        );
    }
    // The same for people, within 80 columns but for what cannot be broken.
    let text = place.run(&["inspect", node, "--no-probe"]).expect(0).out;
    for words in ["[kyber]", "buffered I/O", "losetup --direct-io=on", "up to 2048", "4 KiB"] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    for line in text.lines().filter(|line| line.chars().count() > 80) {
        assert!(line.trim().split(' ').count() == 1, "too long: {line}");
    }
}

#[test]
fn the_probe_names_the_medium() {
    let place = Place::new();
    let file = place.path().join("data");
    std::fs::write(&file, vec![7; 32 << 20]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let ended = place.run(&["inspect", file.to_str().unwrap(), "--json"]).expect(0);
    let inspection: Inspection = serde_json::from_str(&ended.out).unwrap();
    if inspection.chain.no_device.is_some() {
        skip(Need::Kernel, "a device below /var/tmp");
        return;
    }
    let probe = inspection.probe.unwrap_or_else(|| panic!("{:?}", inspection.missing));
    assert!(probe.reads > 20 && probe.evidence.contains("median"), "{}", probe.evidence);
}

#[test]
fn memory_has_no_scheduler_and_says_what_drops_out() {
    let place = Place::new();
    let ended = place.run(&["inspect", "/dev/shm"]).expect(0);
    if !ended.out.contains("tmpfs on") {
        skip(Need::Kernel, "a tmpfs at /dev/shm");
        return;
    }
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = "Scheduler, queue, write-back throttling and read-ahead drop out here";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn without_root_it_shows_what_it_may() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    // A copy where everybody may run it.
    let program = place.path().join("spindle");
    std::fs::copy(env!("CARGO_BIN_EXE_spindle"), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["inspect", "/var/tmp", "--json"])
        .env("SPINDLE_STATE", place.path().join("nobody"))
        .output();
    let Ok(output) = output else {
        skip(Need::Program, "setpriv");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let inspection: Inspection = serde_json::from_slice(&output.stdout).unwrap();
    assert!(inspection.changeable.is_empty());
    if inspection.chain.first_varied_device().is_some() {
        let told = inspection.missing.iter().any(|line| line.contains("sudo"));
        assert!(told, "{:?}", inspection.missing);
    }
}

#[test]
fn a_target_that_is_not_there() {
    let place = Place::new();
    place.run(&["inspect", "/no/such/place"]).expect(1).complains_of(&["/no/such/place"]);
    let all = place.run(&["inspect"]).expect(0).out;
    assert!(all.contains("scheduler"), "{all}");
}
