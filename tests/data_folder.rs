//! A server's data folder is no place for scratch files.

use crate::{database::has_mariadb, machine::Place, running_server::Foreign};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const SHORT: [&str; 8] = ["--size", "16M", "--rounds", "3", "--measure", "100ms", "--warmup", "0s"];

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_running_server_sees_nothing_of_a_comparison_in_its_data_folder() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let server = Foreign::start(&place);
    let data = server.data();
    let seen = || (server.sql("SHOW DATABASES").unwrap(), names_in(&data));
    let before = seen();
    let beside = data.parent().unwrap().canonicalize().unwrap();
    // Its databases' folders count, too.
    for target in [data.clone(), data.join("mine")] {
        let compare = ["compare", target.to_str().unwrap(), "--sync", "direct,fdatasync"];
        let mut child = place
            .spindle(&[&compare[..], &SHORT].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            assert_eq!(seen(), before, "while it is compared");
        }
        let ended = crate::machine::Ended::of(child.wait_with_output().unwrap()).expect(0);
        let told = words(&ended.err);
        let note = format!("scratch files go into {}", beside.display());
        assert!(told.contains("data folder of MySQL or MariaDB") && told.contains(&note), "{told}");
    }
    let report = words(&place.run(&["report", "last"]).expect(0).out);
    assert!(report.contains("scratch files go into"), "{report}");
    let plan = place.run(&["plan", data.to_str().unwrap(), "--sync", "direct,fdatasync"]).expect(0);
    assert!(words(&plan.out).contains("scratch files go into"), "{}", plan.out);
    assert_eq!(seen(), before);
    assert!(names_in(&beside).iter().all(|name| !name.starts_with("spindle-")), "nothing is left");
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        // A server makes and removes files of its own.
        .filter(|name| fs::metadata(folder.join(name)).is_ok_and(|known| known.is_dir()))
        .collect();
    names.sort();
    names
}

#[test]
fn a_data_folder_that_is_a_whole_filesystem_is_refused() {
    if !crate::machine::has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 64);
    let made = Command::new("mkfs.ext4").arg("-q").arg(&device.node).status();
    assert!(made.unwrap().success());
    let mounted = crate::machine::Mounted::of(&device, place.path().join("data"));
    fs::write(mounted.0.join("ibdata1"), "").unwrap();
    let target = mounted.0.to_str().unwrap();
    for verb in ["plan", "compare"] {
        let ended = place.run(&[&[verb, target, "--sync", "direct,fsync"], &SHORT[..]].concat());
        ended.expect(2).complains_of(&["data folder", "no folder of its filesystem is outside"]);
    }
    let card = place.run(&["inspect", target, "--sync", "--sync-time", "3s"]);
    assert_ne!(card.code, Some(0));
    card.complains_of(&["data folder"]);
    let names = fs::read_dir(&mounted.0).unwrap().count();
    assert_eq!(names, 2, "ibdata1 and lost+found");
}
