//! Two runs side by side: `spindle diff`.

use crate::machine::{Ended, Place};

fn compare(place: &Place, file: &str, words: &[&str]) {
    let path = place.path().join(file);
    let fixed =
        ["--measure", "5s", "--warmup", "1s", "--quiet", "--output", path.to_str().unwrap()];
    let all: Vec<&str> = ["compare"].iter().chain(words).chain(&fixed).copied().collect();
    place.run(&all).expect(0);
}

fn diff(place: &Place, first: &str, second: &str, words: &[&str]) -> Ended {
    let path = |file: &str| place.path().join(file).to_str().unwrap().to_owned();
    let (first, second) = (path(first), path(second));
    place.run(&[&["diff", &first, &second], words].concat())
}

const RUN: [&str; 5] = ["simulated:hdd-15k", "--schedulers", "mq-deadline,none", "--rounds", "5"];

#[test]
fn the_same_plan_twice_agrees_and_another_disk_differs() {
    let place = Place::new();
    compare(&place, "a.spindle", &[&RUN[..], &["--clients", "8"]].concat());
    compare(&place, "b.spindle", &[&RUN[..], &["--clients", "8", "--seed", "2"]].concat());
    let other = ["simulated:hdd-7200", "--schedulers", "mq-deadline,none,kyber", "--rounds", "5"];
    compare(&place, "c.spindle", &[&other[..], &["--clients", "8"]].concat());
    let same = diff(&place, "a.spindle", "b.spindle", &[]).expect(0);
    let text = same.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["seed: 1 → 2", "Cross-run noise floor", "not why"] {
        assert!(text.contains(part), "no '{part}' in:\n{}", same.out);
    }
    assert!(!same.out.contains("CONTRADICT"), "{}", same.out);
    assert!(same.out.lines().all(|line| line.chars().count() <= 80), "{}", same.out);
    let found: serde_json::Value =
        serde_json::from_str(&diff(&place, "a.spindle", "c.spindle", &["--json"]).expect(0).out)
            .unwrap();
    let parts: Vec<&str> = found["diff"]["plan"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["part"].as_str())
        .collect();
    assert!(parts.contains(&"target"), "{parts:?}");
    assert_eq!(found["diff"]["only_second"].as_array().unwrap().len(), 1, "kyber");
    // Two disks of another speed do not do the same.
    let cell = &found["diff"]["groups"][0]["cells"][0]["figures"][0];
    assert_eq!(cell["shift"]["standing"], "differs", "{cell}");
}

#[test]
fn runs_with_nothing_in_common_say_so() {
    let place = Place::new();
    compare(&place, "a.spindle", &[&RUN[..], &["--clients", "1"]].concat());
    compare(&place, "b.spindle", &[&RUN[..], &["--clients", "8"]].concat());
    let ended = diff(&place, "a.spindle", "b.spindle", &[]).expect(0);
    assert!(ended.out.contains("no cell in common"), "{}", ended.out);
    diff(&place, "a.spindle", "no-such.spindle", &[]).expect(1);
    place.run(&["diff", "last"]).expect(2);
}
