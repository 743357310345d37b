//! Runs of many hosts as one: `spindle merge`, and `spindle report` of what it writes.

use crate::machine::{Ended, Place};
use rusqlite::Connection;

const RUN: [&str; 7] =
    ["simulated:hdd-15k", "--schedulers", "mq-deadline,none", "--rounds", "5", "--clients", "8"];

fn compare(place: &Place, file: &str, words: &[&str]) {
    let path = place.path().join(file);
    let fixed =
        ["--measure", "5s", "--warmup", "1s", "--quiet", "--output", path.to_str().unwrap()];
    let all: Vec<&str> = ["compare"].iter().chain(words).chain(&fixed).copied().collect();
    place.run(&all).expect(0);
}

/// A run as another host would have made it: `gain` is the factor on the second cell's operations.
fn on_host(place: &Place, from: &str, host: &str, gain: f64) -> String {
    let to = format!("{host}.spindle");
    std::fs::copy(place.path().join(from), place.path().join(&to)).unwrap();
    let file = Connection::open(place.path().join(&to)).unwrap();
    file.execute(
        "UPDATE run SET name = ?1, environment = json_set(environment, '$.hostname', ?1)",
        [host],
    )
    .unwrap();
    file.execute(
        "UPDATE operation SET operations = CAST(operations * ?1 AS INTEGER) WHERE trial IN \
         (SELECT trial FROM trial WHERE cell = 1)",
        [gain],
    )
    .unwrap();
    to
}

fn set(place: &Place, file: &str, column: &str, path: &str, value: &str) {
    let file = Connection::open(place.path().join(file)).unwrap();
    let sql = format!("UPDATE run SET {column} = json_set({column}, ?1, ?2)");
    file.execute(&sql, [path, value]).unwrap();
}

fn merge(place: &Place, files: &[String], words: &[&str]) -> Ended {
    let out = place.path().join("fleet.json");
    let paths: Vec<String> =
        files.iter().map(|file| place.path().join(file).to_str().unwrap().to_owned()).collect();
    let mut all = vec!["merge", "-o", out.to_str().unwrap()];
    all.extend(words);
    all.extend(paths.iter().map(String::as_str));
    place.run(&all)
}

fn fleet(place: &Place, gains: &[f64]) -> Vec<String> {
    compare(place, "first.spindle", &RUN);
    set(place, "first.spindle", "environment", "$.world", "real");
    let host =
        |(at, gain): (usize, &f64)| on_host(place, "first.spindle", &format!("db{at}"), *gain);
    gains.iter().enumerate().map(host).collect()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_fleet_that_gains_is_better_with_a_row_for_each_host_in_every_form() {
    let place = Place::new();
    let gains = [1.50, 1.52, 1.48, 1.51, 1.49, 1.50];
    let files = fleet(&place, &gains);
    let first = merge(&place, &files, &[]).expect(0);
    assert!(first.out.contains("better"), "{}", first.out);
    assert!(first.out.lines().all(|line| line.chars().count() <= 80), "{}", first.out);
    let out = place.path().join("fleet.json");
    let out = out.to_str().unwrap();
    let again = place.run(&["report", out]).expect(0);
    assert_eq!(again.out, first.out);
    let html = place.run(&["report", out, "--html", "-"]).expect(0).out;
    let markdown = place.run(&["report", out, "--markdown"]).expect(0).out;
    let json = place.run(&["report", out, "--json"]).expect(0).out;
    for at in 0..gains.len() {
        assert!(html.contains(&format!("<td>  db{at}</td>")), "{html}");
        assert!(markdown.contains(&format!("|   db{at} |")), "{markdown}");
        assert!(json.contains(&format!("\"db{at}\"")), "{json}");
    }
    assert!(!html.contains("<script"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let figure = &json["fleet"]["groups"][0]["cells"][0]["figures"][0];
    assert_eq!(figure["verdict"], "better", "{figure}");
    place.run(&["report", out, "--csv"]).expect(2);
    // Merged again, it may be overwritten; a run file may not.
    merge(&place, &files, &[]).expect(0);
    let run = place.path().join(&files[0]);
    let run = run.to_str().unwrap();
    let ended = place.run(&["merge", "-o", run, run, out]);
    assert_ne!(ended.code, Some(0));
}

#[test]
fn a_fleet_of_which_half_gains_and_half_loses_is_told_so() {
    let place = Place::new();
    let files = fleet(&place, &[1.5, 1.5, 1.45, 1.55, 1.5, 1.5, 0.5, 0.5, 0.45, 0.55, 0.5]);
    let ended = merge(&place, &files, &[]).expect(0);
    let text = flat(&ended.out);
    for part in ["BY HOST", "decide by host", "gains on 6 hosts, loses on 5 hosts"] {
        assert!(text.contains(part), "no '{part}' in:\n{}", ended.out);
    }
    assert!(!text.contains("throughput is the same"), "{}", ended.out);
}

#[test]
fn an_outlier_is_named_and_other_kinds_are_not_pooled() {
    let place = Place::new();
    let mut files = fleet(&place, &[1.5, 1.51, 1.49, 1.5, 1.52, 1.48, 1.5, 0.7, 1.5, 1.5, 1.5]);
    set(&place, &files[9], "environment", "$.kernel", "6.99.0");
    set(&place, &files[10], "plan", "$.workload.job.pattern", "read");
    let again = on_host(&place, "first.spindle", "db0-later", 1.5);
    set(&place, &again, "environment", "$.hostname", "db0");
    let file = Connection::open(place.path().join(&again)).unwrap();
    file.execute("UPDATE run SET started_at = started_at + 60", []).unwrap();
    drop(file);
    files.push(again);
    let ended = merge(&place, &files, &[]).expect(0);
    let text = flat(&ended.out);
    for part in [
        "OUTLIER: db7 has",
        "Without 1 host the mean is",
        "Not pooled with group 1: db9 (kernel 6.99.0 instead of",
        "Not pooled with group 1: db10 (workload",
        "Not pooled: run db0 of db0, because db0-later of the same host is later.",
        "One host says nothing of others",
    ] {
        assert!(text.contains(part), "no '{part}' in:\n{}", ended.out);
    }
}

#[test]
fn what_is_no_fleet_is_refused_with_the_reason() {
    let place = Place::new();
    let files = fleet(&place, &[1.5, 1.5, 1.5]);
    let refused = |files: &[String], code: i32, part: &str| {
        let ended = merge(&place, files, &[]).expect(code);
        assert!(flat(&ended.err).contains(part), "no '{part}' in:\n{}", ended.err);
        assert!(!place.path().join("fleet.json").exists());
    };
    refused(&files[..1], 2, "two hosts at least");
    let twice = [files[0].clone(), files[1].clone(), files[0].clone()];
    refused(&twice, 1, "is named twice");
    std::fs::copy(place.path().join(&files[0]), place.path().join("copy.spindle")).unwrap();
    refused(&[files[0].clone(), files[1].clone(), "copy.spindle".to_owned()], 1, "named twice");
    std::fs::write(place.path().join("text.spindle"), "no run at all").unwrap();
    refused(&[files[0].clone(), "text.spindle".to_owned()], 1, "is not a run file");
    refused(&[files[0].clone(), "missing.spindle".to_owned()], 1, "does not exist");
    compare(&place, "one-cell.spindle", &["simulated:hdd-15k", "--rounds", "3"]);
    let file = Connection::open(place.path().join("one-cell.spindle")).unwrap();
    file.execute("UPDATE trial SET outcome = 'failed', reason = 'EIO'", []).unwrap();
    drop(file);
    refused(&[files[0].clone(), "one-cell.spindle".to_owned()], 1, "has no verdict");
    for world in ["simulated", "imported", "emulated"] {
        set(&place, &files[2], "environment", "$.world", world);
        refused(&files, 1, "a fleet is of one world");
    }
    compare(&place, "seed-1.spindle", &RUN);
    compare(&place, "again-1.spindle", &RUN);
    compare(&place, "seed-2.spindle", &[&RUN[..], &["--seed", "2"]].concat());
    let [one, again, two] = ["seed-1", "again-1", "seed-2"].map(|it| format!("{it}.spindle"));
    refused(&[one.clone(), again], 1, "simulated runs of one seed");
    merge(&place, &[one, two], &[]).expect(0);
    for (name, text, part) in [
        ("other.json", "{}", "not a file that `spindle merge` wrote"),
        ("cut.json", "{\"format\": \"spindle", "neither a run file nor"),
        ("new.json", "{\"format\": \"spindle fleet\", \"version\": 9, \"runs\": []}", "version 9"),
        (
            "bad.json",
            "{\"format\": \"spindle fleet\", \"version\": 1, \"runs\": [1]}",
            "is damaged",
        ),
    ] {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        let ended = place.run(&["report", path.to_str().unwrap()]).expect(1);
        assert!(flat(&ended.err).contains(part), "no '{part}' in:\n{}", ended.err);
    }
}

/// The processors are shared with other tests: ten seconds of the program alone are thirty here.
#[test]
fn a_thousand_runs_merge_in_seconds_within_a_gibibyte() {
    let place = Place::new();
    compare(&place, "first.spindle", &RUN);
    set(&place, "first.spindle", "environment", "$.world", "real");
    let files: Vec<String> = (0..1000)
        .map(|at| on_host(&place, "first.spindle", &format!("h{at}"), 1.4 + 0.0001 * f64::from(at)))
        .collect();
    let program = place.spindle(&[]).get_program().to_owned();
    let begun = std::time::Instant::now();
    let ended = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 1048576; exec \"$@\"", "sh"])
        .arg(program)
        .args(["merge", "-o", "fleet.json"])
        .args(&files)
        .env("SPINDLE_STATE", place.state())
        .current_dir(place.path())
        .output()
        .unwrap();
    let took = begun.elapsed();
    let text = Ended::of(ended).expect(0).out;
    println!("1,000 runs: {took:?}");
    assert!(text.contains("1000 hosts"), "{text}");
    assert!(took.as_secs() < 30, "{took:?}");
}

#[test]
fn dashboard_and_alerts_ask_for_figures_that_the_status_has() {
    let place = Place::new();
    let printed = place.run(&["status", "--prometheus"]).expect(0).out;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |file: &str| std::fs::read_to_string(format!("{root}/fleet/{file}")).unwrap();
    let board = read("grafana/spindle.json");
    serde_json::from_str::<serde_json::Value>(&board).unwrap();
    for (file, text) in [("board", board), ("rules", read("prometheus/spindle.rules.yml"))] {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let names: std::collections::BTreeSet<&str> =
            text.split(word).filter(|it| it.starts_with("spindle_")).collect();
        assert!(names.len() >= 3, "{file}: {names:?}");
        for name in names {
            assert!(printed.contains(&format!("# TYPE {name} gauge")), "{file}: {name}");
        }
    }
}

#[test]
fn a_kept_file_of_merged_runs_is_read() {
    let place = Place::new();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/samples/fleet-version-1.json");
    let out = place.run(&["report", kept]).expect(0).out;
    for part in ["2 hosts (simulated)", "sample-1", "sample-2"] {
        assert!(out.contains(part), "{out}");
    }
}
