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

#[test]
fn a_device_is_fitted_and_its_profile_is_one() {
    let place = Place::new();
    let file = place.path().join("fitted.toml");
    let file = file.to_str().unwrap();
    let fitted = place.run(&["fit", "simulated:hdd-15k", "-o", file]).expect(0);
    assert!(fitted.out.lines().all(|line| line.chars().count() <= 80), "{}", fitted.out);
    for words in ["a turn", "a seek between random places", "predicted", "Only reads were made"] {
        assert!(fitted.out.contains(words), "no '{words}' in:\n{}", fitted.out);
    }
    let sheet = place.run(&["profiles", "show", file]).expect(0);
    assert!(sheet.out.contains("fit: ") && sheet.out.contains("assumption: "), "{}", sheet.out);
    let what_if = ["compare", &format!("simulated:{file}"), "--schedulers", "none,mq-deadline"];
    place.run(&[&what_if[..], &["--rounds", "5", "--measure", "1s", "--quiet"]].concat()).expect(0);
    let json = place.run(&["fit", "simulated:hdd-7200", "--json"]).expect(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["kind"], "disk");
    assert_eq!(json["predictions"].as_array().unwrap().len(), 10);
}

#[test]
fn what_cannot_be_fitted_is_refused_with_a_reason() {
    let place = Place::new();
    let folder = place.path().to_str().unwrap();
    place.run(&["fit", folder]).expect(2).complains_of(&["directory", "block device"]);
    let no_ending = place.path().join("profile");
    let ended = place.run(&["fit", "simulated:hdd-15k", "-o", no_ending.to_str().unwrap()]);
    ended.expect(2).complains_of(&[".toml"]);
    let sparse = place.path().join("sparse");
    std::fs::File::create(&sparse).unwrap().set_len(2 << 30).unwrap();
    place.run(&["fit", sparse.to_str().unwrap()]).expect(1).complains_of(&["holes", "dd if="]);
    let small = place.path().join("small");
    std::fs::write(&small, vec![1u8; 1 << 20]).unwrap();
    place.run(&["fit", small.to_str().unwrap()]).expect(1).complains_of(&["1 MiB", "1 GiB"]);
}
