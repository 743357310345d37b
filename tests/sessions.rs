//! `spindle resume --as`: the plan of a run once more, under another kernel or server. Two kernels need two
//! boots: tools/test-kernel has those.

use crate::{
    database::{SHORT, has_mariadb},
    machine::{Ended, Place},
};
use std::path::Path;

const QUICK: [&str; 10] =
    ["--placebo", "1", "--size", "4M", "--rounds", "3", "--measure", "100ms", "--warmup", "0s"];

fn compare(place: &Place, target: &Path, words: &[&str]) -> Ended {
    place.run(&[&["compare", target.to_str().unwrap()], words].concat())
}

/// The bytes of the only run file.
fn file(place: &Place) -> Vec<u8> {
    let mut files = std::fs::read_dir(place.state().join("runs")).unwrap();
    std::fs::read(files.next().unwrap().unwrap().path()).unwrap()
}

fn report(place: &Place) -> serde_json::Value {
    serde_json::from_str(&place.run(&["report", "last", "--json"]).expect(0).out).unwrap()
}

#[test]
fn a_session_of_a_kernel_needs_a_boot_of_its_own() {
    let place = Place::new();
    compare(&place, &place.scratch(), &QUICK).expect(0);
    let before = file(&place);
    let refused = |words: &[&str], reason: &str| {
        let ended = place.run(&[&["resume", "last"], words].concat()).expect(2);
        assert!(ended.err.contains(reason), "{words:?}: {}", ended.err);
    };
    refused(&["--as", "kernel"], "was made in this boot of Linux");
    refused(&["--as", "server"], "needs no database server");
    refused(&["--as", "weather"], "kernel and server can");
    refused(&["--server-program", "/usr/sbin/mariadbd"], "--as");
    refused(&["--as", "kernel", "--server-program", "/x"], "--as server");
    refused(&[], "is complete");
    assert_eq!(file(&place), before, "a refusal leaves the run as it was");
    assert!(report(&place)["sessions"].is_null());
}

#[test]
fn what_is_simulated_has_no_sessions() {
    let place = Place::new();
    let words = ["simulated:hdd-15k", "--rounds", "3", "--measure", "1s", "--schedulers", "none"];
    place.run(&[&["compare"][..], &words].concat()).expect(0);
    let ended = place.run(&["resume", "last", "--as", "kernel"]).expect(2);
    assert!(ended.err.contains("is simulated"), "{}", ended.err);
}

/// Another session of the same server: no other level, and the noise floor of sessions.
#[test]
fn a_server_again_shows_what_sessions_make() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let workload = "oltp_point_select,tables=1,rows=1000";
    let words = [&["--workload", workload, "--placebo", "1"][..], &SHORT].concat();
    compare(&place, &place.scratch(), &words).expect(0);
    let ended = place
        .run(&["resume", "last", "--as", "server", "--server-program", "/nowhere/mariadbd"])
        .expect(2);
    assert!(ended.err.contains("/nowhere/mariadbd"), "{}", ended.err);
    let ended = place.run(&["resume", "last", "--as", "server"]).expect(0);
    assert!(ended.out.contains("Cross-session noise floor"), "{}", ended.out);
    assert!(ended.out.contains("there is one server alone"), "{}", ended.out);
    let value = report(&place);
    let together = &value["together"];
    assert_eq!(together["levels"][0]["sessions"], 2, "{together}");
    let level = together["levels"][0]["name"].as_str().unwrap();
    assert!(level.starts_with("MariaDB"), "{level}");
    assert_eq!(together["groups"][0]["floor"][0][1]["freedom"], 1);
    // One factor a run.
    let ended = place.run(&["resume", "last", "--as", "kernel"]).expect(2);
    assert!(ended.err.contains("differ in the server already"), "{}", ended.err);
    let runs = place.run(&["runs", "--json"]).expect(0);
    let runs: serde_json::Value = serde_json::from_str(&runs.out).unwrap();
    assert_eq!(runs[0]["sessions"], 2);
}
