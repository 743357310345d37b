//! `spindle profiles`: what there is, what a device does, drives described elsewhere.

use crate::machine::Place;
use skipped::{Need, skip};
use std::path::PathBuf;

/// The drives' files, which keep their own licence and so stand beside the project.
fn drives() -> Option<PathBuf> {
    let shared = std::env::var_os("SPINDLE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let drives = shared.join("data/drives");
    if !drives.is_dir() {
        skip(Need::Data, &format!("{}, or SPINDLE_SHARED", drives.display()));
        return None;
    }
    Some(drives)
}

#[test]
fn profiles_are_listed_and_shown() {
    let place = Place::new();
    let list = place.run(&["profiles"]).expect(0);
    for name in ["hdd-15k", "raid10-8x15k-bbu", "ssd-nvme"] {
        assert!(list.out.contains(name), "no '{name}' in:\n{}", list.out);
    }
    let sheet = place.run(&["profiles", "show", "hdd-15k"]).expect(0);
    assert!(sheet.out.lines().all(|line| line.chars().count() <= 80), "{}", sheet.out);
    for word in ["15", "depth", "MB/s"] {
        assert!(sheet.out.contains(word), "no '{word}' in:\n{}", sheet.out);
    }
    let json = place.run(&["profiles", "show", "hdd-15k", "--json"]).expect(0);
    serde_json::from_str::<serde_json::Value>(&json.out).unwrap();
    place.run(&["profiles", "show", "hdd-15"]).expect(2).complains_of(&["hdd-15k"]);
}

#[test]
fn a_profile_of_ones_own_says_where_it_is_wrong() {
    let place = Place::new();
    let file = place.path().join("mine.toml");
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/hdd-15k.toml");
    let text = std::fs::read_to_string(built_in).unwrap();
    std::fs::write(&file, &text).unwrap();
    place.run(&["profiles", "show", file.to_str().unwrap()]).expect(0);
    std::fs::write(&file, text.replacen("15000 rpm", "15000", 1)).unwrap();
    let ended = place.run(&["profiles", "show", file.to_str().unwrap()]).expect(2);
    ended.complains_of(&["mine.toml", "unit"]);
}

#[test]
fn a_drive_described_elsewhere_is_imported_and_replayed() {
    let Some(drives) = drives() else {
        return;
    };
    let place = Place::new();
    let folder = drives.join("cheetah9LP");
    let imported = place.run(&["profiles", "import", folder.to_str().unwrap()]).expect(0);
    let file = place.path().join("cheetah.toml");
    std::fs::write(&file, &imported.out).unwrap();
    place.run(&["profiles", "show", file.to_str().unwrap()]).expect(0);
    let trace = folder.join("cheetah9LP.trace");
    let words = ["profiles", "replay", file.to_str().unwrap(), trace.to_str().unwrap()];
    let replayed = place.run(&words).expect(0);
    assert!(replayed.out.contains("10000") || replayed.out.contains("10,000"), "{}", replayed.out);
    place
        .run(&["profiles", "import", "/no/such/folder"])
        .expect(2)
        .complains_of(&["/no/such/folder"]);
    let empty = place.scratch();
    place.run(&["profiles", "import", empty.to_str().unwrap()]).expect(2);
}
