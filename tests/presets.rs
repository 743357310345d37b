//! Presets: what they stand for on the servers of this host, and runs of them.

use crate::{
    database::{has_mariadb, has_postgresql, nothing_is_left},
    machine::{Loop, Mounted, Place, has_loop_devices},
};
use record::{Run, Store, Warning};
use skipped::{Need, skip};
use std::{path::Path, process::Command};

/// The shortest trials: what is looked at is what was set, not how fast it was.
const BRIEF: [&str; 6] = ["--rounds", "1", "--measure", "300ms", "--warmup", "100ms"];

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs a comparison into a file and reads it.
fn run(place: &Place, folder: &Path, words: &[&str]) -> Run {
    let file = place.path().join("run.spindle");
    let _ = std::fs::remove_file(&file);
    let all = ["compare", folder.to_str().unwrap(), "--output", file.to_str().unwrap()];
    place.run(&[&all[..], words, &BRIEF].concat()).expect(0);
    Store::open(&file).unwrap().read().unwrap()
}

fn warnings(run: &Run) -> impl Iterator<Item = &Warning> {
    run.trials.iter().filter_map(|trial| trial.measurement()).flat_map(|it| &it.warnings)
}

/// A variable as the server said that it was in the trials of the cell of this name.
fn in_cell(run: &Run, label: &str, variable: &str) -> Vec<String> {
    let of = |cell: usize| run.plan.cells[cell].label(&run.plan.compared());
    // One that does not count, on a busy machine, is repeated.
    let counts = run.trials.iter().filter(|trial| trial.measurement().is_some());
    let trials = counts.filter(|trial| of(trial.id.cell) == label);
    let value = |applied: &[(String, String)]| {
        applied.iter().find(|(name, _)| name.ends_with(variable)).map(|(_, value)| value.clone())
    };
    trials.filter_map(|trial| value(&trial.applied)).collect()
}

#[test]
fn presets_are_listed_and_an_unknown_one_is_answered_with_all() {
    let place = Place::new();
    let listed = place.run(&["compare", "--preset", "list"]).expect(0);
    assert_eq!(place.run(&["plan", "--preset", "list"]).expect(0).out, listed.out);
    let ended = place.run(&["plan", "/tmp", "--preset", "speed"]).expect(2);
    for name in ["flush", "doublewrite", "aio", "capacity", "durability"] {
        assert!(listed.out.contains(&format!("--preset {name}")), "{}", listed.out);
        assert!(ended.err.contains(&format!("{name}: ")), "{}", ended.err);
    }
}

#[test]
fn a_preset_without_a_server_that_can_be_asked_is_refused() {
    let place = Place::new();
    let refused = |words: &[&str]| {
        let ended = place.run(&[&["plan"], words, &["--preset", "flush"]].concat()).expect(2);
        flat(&ended.err)
    };
    assert!(refused(&["/tmp"]).contains("no database workload is named"));
    let simulated = refused(&["simulated:hdd-15k", "--workload", "oltp_read_write"]);
    assert!(simulated.contains("the simulated world"), "{simulated}");
    let url = "oltp_read_write,server=mysql://u@127.0.0.1:9/d";
    assert!(refused(&["/tmp", "--workload", url]).contains("not one that Spindle started"));
    let two = ["/tmp", "--workload", "tpcc,server=mariadb", "--workload", "tpcc,server=postgresql"];
    assert!(refused(&two).contains("of one server"));
}

#[test]
fn a_plan_shows_the_flags_of_a_preset_and_they_make_the_same_plan() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let plan = |words: &[&str]| {
        let all = ["plan", folder.to_str().unwrap(), "--rounds", "5"];
        place.run(&[&all[..], words].concat())
    };
    let postgresql = "oltp_read_write,server=postgresql";
    let ended = plan(&["--workload", postgresql, "--preset", "durability"]).expect(0);
    assert!(ended.out.contains("--variable synchronous_commit=on,off"), "{}", ended.out);
    assert!(flat(&ended.out).contains("synchronous_commit off can lose about 0.6 s of commits"));
    let flags = ["--workload", postgresql, "--variable", "synchronous_commit=on,off"];
    let by_flags = plan(&[&flags[..], &["--json"]].concat()).expect(0).out;
    let by_preset =
        plan(&["--workload", postgresql, "--preset", "durability", "--json"]).expect(0).out;
    let cells =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["cells"].to_string();
    assert_eq!(cells(&by_flags), cells(&by_preset));

    // A plan file's key, and a flag that takes a variable's place.
    let file = place.path().join("plan.toml");
    std::fs::write(&file, "preset = \"capacity\"\nworkload = \"oltp_read_write\"\n").unwrap();
    let from_file = ["--plan", file.to_str().unwrap()];
    let ended = plan(&[&from_file[..], &["--variable", "innodb_lru_scan_depth=777"]].concat());
    let text = flat(&ended.expect(0).out);
    assert!(text.contains("left to that: innodb_lru_scan_depth"), "{text}");
    assert!(text.contains("--variables 'default: innodb_io_capacity=200"), "{text}");
    assert!(!text.contains("lru_scan_depth 4096"), "{text}");
    let twice = ["--variable", "innodb_io_capacity=1,2", "--variables", "a: innodb_io_capacity=1"];
    let ended = plan(&[&["--workload", "oltp_read_write"], &twice[..]].concat()).expect(2);
    ended.complains_of(&["name it in one place"]);
}

#[test]
fn a_level_that_is_not_proven_safe_is_left_out_with_the_reason() {
    if !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let workload = "oltp_read_write,server=postgresql";
    let words = ["--workload", workload, "--preset", "doublewrite", "--rounds", "5"];
    let plan = |more: &[&str]| {
        let all = [&["plan", folder.to_str().unwrap()][..], &words, more].concat();
        flat(&place.run(&all).expect(0).out)
    };
    // What is made for the run cannot be asked, whatever this host's disk can do.
    let text = plan(&["--loop"]);
    assert!(
        text.contains("Left out: off (full_page_writes=off): a power failure could tear"),
        "{text}"
    );
    let promised = host::AtomicWrites::of(&host::Host::here(), &folder).unwrap();
    let promised = promised.answer(units::Bytes::from_kib(8)) == host::AtomicAnswer::ByDevice;
    let left_out = plan(&[]).contains("Left out: off");
    assert_eq!(left_out, !promised);
}

#[test]
fn what_xfs_writes_whole_only_when_asked_is_no_proof() {
    if !has_postgresql() || !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let file = place.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(4 << 30).unwrap();
    let Ok(made) = Command::new("mkfs.xfs").arg("-q").arg(&file).status() else {
        skip(Need::Program, "mkfs.xfs");
        return;
    };
    assert!(made.success());
    let device = Loop::attach(&file, &[]);
    let mounted = Mounted::of(&device, place.path().join("mounted"));
    let point = mounted.0.clone();
    let workload = "oltp_read_write,tables=1,rows=1000,server=postgresql";
    let words = ["plan", point.to_str().unwrap(), "--workload", workload, "--rounds", "5"];
    let ended = place.run(&[&words[..], &["--preset", "doublewrite"]].concat()).expect(0);
    let text = flat(&ended.out);
    assert!(text.contains("Left out: off (full_page_writes=off)"), "{text}");
    // Since 6.16 XFS does atomic writes itself, for those who ask.
    let answer = host::AtomicWrites::of(&host::Host::here(), &point).unwrap();
    if answer.answer(units::Bytes::from_kib(8)) == host::AtomicAnswer::ByFilesystem {
        assert!(text.contains("only where it is asked for that (RWF_ATOMIC)"), "{text}");
    }
    drop(mounted);
}

#[test]
fn cells_are_switched_inside_one_running_mariadb() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let workload = "oltp_read_write,tables=1,rows=1000,clients=2";
    let words = ["--workload", workload, "--preset", "capacity"];
    let run = run(&place, &folder, &words);
    assert!(run.trials.iter().all(|trial| trial.measurement().is_some()), "{:?}", run.trials);
    for (label, capacity, depth) in [
        ("default", "200", "1536"),
        ("io_capacity 4000", "4000", "1536"),
        ("lru_scan_depth 256", "200", "256"),
    ] {
        let values = in_cell(&run, label, ".innodb_io_capacity");
        assert!(
            !values.is_empty() && values.iter().all(|it| it == capacity),
            "{label}: {values:?}"
        );
        let values = in_cell(&run, label, ".innodb_lru_scan_depth");
        assert!(values.iter().all(|it| it == depth), "{label}: {values:?}");
    }
    // All but the first trial find what others left.
    let go_on = warnings(&run).filter(|it| matches!(it, Warning::DataGoOn { .. })).count();
    assert_eq!(go_on, run.trials.len() - 1);
    nothing_is_left(&place, &folder);
}

#[test]
fn what_cannot_be_switched_gets_a_server_each_and_the_report_says_why() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let small = "oltp_read_write,tables=1,rows=1000,clients=2";
    let method = ["--variable", "innodb_flush_method=O_DIRECT,fsync"];
    let words = ["--workload", small, "--alternate"];
    let of_method = run(&place, &folder, &[&words[..], &method].concat());
    assert_eq!(in_cell(&of_method, "innodb_flush_method fsync", "flush_method"), ["fsync"]);
    let why = |it: &Warning| match it {
        Warning::NotAlternated { variable, .. } => variable == "innodb_flush_method",
        _ => false,
    };
    assert!(warnings(&of_method).filter(|it| why(it)).count() == of_method.trials.len());
    let last = place.path().join("run.spindle");
    let text = flat(&place.run(&["report", last.to_str().unwrap()]).expect(0).out);
    assert!(text.contains("it does not change innodb_flush_method while it runs"), "{text}");

    let postgresql = format!("{small},server=postgresql");
    let words = ["--workload", &postgresql, "--preset", "durability"];
    let durability = run(&place, &folder, &words);
    assert_eq!(in_cell(&durability, "synchronous_commit off", "synchronous_commit"), ["off"]);
    let go_on = warnings(&durability).filter(|it| matches!(it, Warning::DataGoOn { .. })).count();
    let count = durability.trials.iter().filter(|it| it.measurement().is_some()).count();
    let void = durability.trials.len() - count;
    println!("{void} trials did not count");
    // After one that does not, a server is started anew.
    assert!((count - 1 - void..count).contains(&go_on), "{go_on} of {count}");
    let text = flat(&place.run(&["report", last.to_str().unwrap()]).expect(0).out);
    assert!(text.contains("synchronous_commit off can lose about 0.6 s of commits"), "{text}");
    assert!(text.contains("Preset durability on PostgreSQL"), "{text}");
    let foreign = "tpcc,server=mysql://u@h/d";
    let ended = place.run(&["plan", "/tmp", "--workload", foreign, "--alternate"]).expect(2);
    ended.complains_of(&["alternate", "did not start the server"]);
    nothing_is_left(&place, &folder);
}
