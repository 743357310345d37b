//! The simulated world beside the emulated one.

use crate::machine::{Place, can_emulate};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

/// Two cells (reads and writes under mq-deadline) and short trials.
const SHORT: [&str; 9] = [
    "validate",
    "hdd-15k",
    "--schedulers",
    "mq-deadline",
    "--rounds=2",
    "--measure=300ms",
    "--transport-measure=300ms",
    "--cells=short",
    "--transport=fuse",
];

fn words<'a>(more: &'a [&'a str]) -> Vec<&'a str> {
    [&SHORT, more].concat()
}

fn nothing_is_left(place: &Place) {
    let state = place.state().to_string_lossy().into_owned();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&state), "mounted:\n{mounts}");
    let left: Vec<PathBuf> = std::fs::read_dir(place.state())
        .map(|it| it.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    assert!(
        !left.iter().any(|path| path.extension().is_some_and(|it| it == "journal")),
        "{left:?}"
    );
}

#[test]
fn cells_are_measured_in_both_worlds_and_written_with_where_they_come_from() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    let keep = place.path().join("keep").to_string_lossy().into_owned();
    let output = place.path().join("figures").to_string_lossy().into_owned();
    let ended = place.run(&words(&["--keep", &keep, "--output", &output])).expect(0);
    nothing_is_left(&place);
    assert!(ended.out.contains("hdd-15k: simulated against emulated"), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);

    let mut reader = csv::Reader::from_path(Path::new(&output).join("cells.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cells: Vec<&str> = rows.iter().map(|row| &row[1]).collect();
    assert_eq!(cells, ["short: mq-deadline, randread", "short: mq-deadline, randwrite"]);
    for row in &rows {
        // Both worlds have the same disk. How near they are, such short trials do not tell.
        let ratio: f64 = row[5].parse().unwrap();
        assert!((0.5..2.0).contains(&ratio), "{row:?}");
    }
    let manifest = std::fs::read_to_string(Path::new(&output).join("manifest.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let table = &manifest["table"].as_array().unwrap()[1];
    assert_eq!(table["file"].as_str(), Some("cells.csv"));
    assert!(table["command"].as_str().unwrap().starts_with("spindle validate hdd-15k"));
    assert!(!table["kernel"].as_str().unwrap().is_empty());

    // What is there is not written over.
    place.run(&words(&["--output", &output])).expect(2);

    // Emulated runs that are kept are not made again, and give the same figures.
    let again = place.run(&words(&["--keep", &keep, "--json"])).expect(0);
    assert!(!again.err.contains("about"), "{}", again.err);
    let json: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    let found = json["validation"]["cells"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["cell"], rows[0][1]);
    let emulated = found[0]["emulated"]["throughput"].as_f64().unwrap();
    assert_eq!(format!("{emulated:.0}"), rows[0][2]);
    assert_eq!(json["agreement"][0]["figures"][0]["cells"], 2);
}

#[test]
fn an_interruption_takes_everything_down() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let mut child = place
        .spindle(&["validate", "hdd-15k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mounted = || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(&*place.state().to_string_lossy())
    };
    while !mounted() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no device comes up");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(130));
    nothing_is_left(&place);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let ended = place.run(&["validate", "hdd-15"]).expect(2);
    assert!(ended.err.contains("hdd-15k"), "{}", ended.err);
    let ended = place.run(&["validate", "--cells", "some"]).expect(2);
    assert!(ended.err.contains("four-streams"), "{}", ended.err);
    nothing_is_left(&place);
}
