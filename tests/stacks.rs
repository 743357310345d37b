//! Targets that stand on several devices: all that matter are varied, counted apart and put back.

use crate::machine::{Loop, Mounted, Place, has_loop_devices};
use skipped::{Need, skip};
use std::{path::PathBuf, process::Command};

/// A btrfs over two loop devices, which it is mounted from.
struct Pair {
    // Unmounted first.
    mounted: Mounted,
    devices: [Loop; 2],
    place: Place,
}

impl Pair {
    fn new() -> Option<Pair> {
        if !has_loop_devices() {
            return None;
        }
        let place = Place::new();
        let devices = ["first", "second"].map(|name| place.loop_device(name, 256));
        let nodes = devices.each_ref().map(|device| device.node.to_str().unwrap());
        let made =
            Command::new("mkfs.btrfs").args(["-q", "-f", "-d", "raid0"]).args(nodes).output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip(Need::Program, "mkfs.btrfs: install btrfs-progs");
            return None;
        }
        let point = place.path().join("mounted");
        std::fs::create_dir(&point).unwrap();
        let both = format!("device={},device={}", nodes[0], nodes[1]);
        let mount = ["-t", "btrfs", "-o", &both, nodes[0], point.to_str().unwrap()];
        let mounted = Command::new("mount").args(mount).output().unwrap();
        if !mounted.status.success() {
            skip(Need::Kernel, &format!("btrfs: {}", String::from_utf8_lossy(&mounted.stderr)));
            return None;
        }
        Some(Pair { mounted: Mounted(point), devices, place })
    }

    fn folder(&self) -> &PathBuf {
        &self.mounted.0
    }

    fn names(&self) -> [&str; 2] {
        self.devices.each_ref().map(|device| device.name.as_str())
    }
}

#[test]
fn both_devices_of_a_filesystem_are_varied_counted_apart_and_put_back() {
    let Some(pair) = Pair::new() else { return };
    let target = pair.folder().to_str().unwrap();
    let [first, second] = pair.names();
    let seen = pair.place.run(&["inspect", "--no-probe", target]).expect(0).out;
    for part in [format!("member: {first}"), format!("member: {second}")] {
        assert!(seen.contains(&part), "no '{part}' in:\n{seen}");
    }
    let words = ["--schedulers", "none,mq-deadline", "--patterns", "randwrite", "--size", "32M"];
    let plan = pair.place.run(&[&["plan", target], &words[..]].concat()).expect(0).out;
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    let either = [format!("of {first} and {second}"), format!("of {second} and {first}")];
    assert!(either.iter().any(|named| plan.contains(named)), "{plan}");

    let before = pair.devices.each_ref().map(Loop::settings);
    let times = ["--rounds", "2", "--measure", "1500ms", "--warmup", "0s"];
    pair.place.run(&[&["compare", target], &words[..], &times].concat()).expect(0);
    assert_eq!(pair.devices.each_ref().map(Loop::settings), before);
    let json = pair.place.run(&["report", "--json"]).expect(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let counters = &json["analysis"]["groups"][0]["baseline"]["counters"];
    let per_second = |name: &str| {
        let value = counters[name].as_f64();
        value.unwrap_or_else(|| panic!("no {name} in {counters}"))
    };
    let [one, other] = [first, second].map(|name| per_second(&format!("device.{name}.w/s")));
    let both = per_second("device.w/s");
    assert!(one > 0.0 && other > 0.0, "striped over both: {one} and {other}");
    assert!((both - one - other).abs() < 0.02 * both, "{one} + {other} is not {both}");
}

#[test]
fn devices_that_are_not_set_alike_have_no_common_baseline() {
    let Some(pair) = Pair::new() else { return };
    pair.devices[0].set("scheduler", "none");
    pair.devices[1].set("scheduler", "mq-deadline");
    let target = pair.folder().to_str().unwrap();
    let words = ["plan", target, "--schedulers", "all", "--sync", "direct,fsync", "--size", "32M"];
    let plan = pair.place.run(&words).expect(2);
    let said = plan.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["scheduler cannot be set here", "not set alike", "mq-deadline", "give one of them"]
    {
        assert!(said.contains(part), "no '{part}' in: {said}");
    }
}
