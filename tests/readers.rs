//! Run files that are read while they are written, and those whose writer was killed.

use crate::machine::Place;
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Begins a comparison that writes a trial every few milliseconds, for longer than any test; gives it with its file.
fn begin(place: &Place) -> (Child, PathBuf) {
    let path = place.path().join("run.spindle");
    let words =
        ["compare", "simulated:hdd-15k", "--schedulers", "none,mq-deadline", "--rounds", "9000"];
    let out =
        ["--measure", "100ms", "--warmup", "0s", "--quiet", "--output", path.to_str().unwrap()];
    let mut command = place.spindle(&[&words[..], &out].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It is there once a trial is.
    while trials(&path).is_none_or(|trials| trials == 0) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (child, path)
}

fn trials(path: &Path) -> Option<i64> {
    // Without the flags SQLite would make the file.
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    file.query_row("SELECT count(*) FROM trial", [], |row| row.get(0)).ok()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

/// The lines that a program says on stderr, as far as one that has a word.
fn until(child: &mut Child, word: &str) -> String {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(word)));
    found.unwrap_or_else(|| panic!("nothing is said of '{word}'")).unwrap()
}

#[test]
fn a_run_waits_for_a_reader_says_so_once_and_goes_on() {
    let place = Place::new();
    let (mut child, path) = begin(&place);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let before: i64 = reader.query_row("SELECT count(*) FROM trial", [], |row| row.get(0)).unwrap();
    let said = until(&mut child, "waiting");
    assert!(said.contains("run.spindle") && said.contains("reader"), "{said}");
    // Whoever comes now waits for the run, which waits for the reader.
    let report =
        place.spindle(&["report", path.to_str().unwrap()]).stdout(Stdio::null()).spawn().unwrap();
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    assert!(report.wait_with_output().unwrap().status.success());
    while trials(&path).is_none_or(|trials| trials < before + 3) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    let rest = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{rest}");
    assert!(!rest.contains("waiting"), "said once: {rest}");
}

#[test]
fn a_run_that_waits_for_a_reader_can_be_interrupted_and_resumed() {
    let place = Place::new();
    let (mut child, path) = begin(&place);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM trial").unwrap();
    until(&mut child, "waiting");
    signal(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    drop(reader);
    let report = place.run(&["report", path.to_str().unwrap(), "--json"]).expect(0);
    assert!(report.out.contains("\"trials\""), "{}", report.out);
}

/// The reader is there before the first trial, and stays: the run's end waits for nobody either.
#[test]
fn a_run_that_could_write_nothing_yet_ends_when_it_is_told_to() {
    let place = Place::new();
    let path = place.path().join("run.spindle");
    let folder = place.scratch();
    let words = ["compare", folder.to_str().unwrap(), "--sync", "direct,buffered", "--size", "1M"];
    let times = ["--engine", "null", "--rounds", "50", "--measure", "2s", "--warmup", "0s"];
    let out = ["--quiet", "--output", path.to_str().unwrap()];
    let mut command = place.spindle(&[&words[..], &times, &out].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while trials(&path).is_none() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN EXCLUSIVE").unwrap();
    until(&mut child, "waiting");
    signal(&child, Signal::TERM);
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it waits for the reader");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(reader);
}

/// A run whose last commit was cut off: half of its pages are written, and the journal to take them back lies beside it.
fn cut_off(from: &Path, to: &Path) {
    let copy = to.with_extension("copy");
    std::fs::copy(from, &copy).unwrap();
    let mut file = Connection::open(&copy).unwrap();
    // Pages go to the file long before the commit.
    file.execute_batch("PRAGMA cache_size = 1; PRAGMA synchronous = OFF").unwrap();
    let writing = file.transaction().unwrap();
    writing.execute("UPDATE run SET state = 'interrupted', name = 'half'", []).unwrap();
    for _ in 0..200 {
        writing
            .execute("INSERT INTO counter VALUES (1, 0.5, hex(randomblob(500)), 1)", [])
            .unwrap();
    }
    let journal = |path: &Path| PathBuf::from(format!("{}-journal", path.display()));
    std::fs::copy(&copy, to).unwrap();
    std::fs::copy(journal(&copy), journal(to)).unwrap();
    assert_ne!(std::fs::read(from).unwrap(), std::fs::read(to).unwrap());
    drop(writing);
    drop(file);
    std::fs::remove_file(copy).unwrap();
}

/// Two runs in the folder of runs, of which the second is cut off within a commit; gives that one's file.
fn two_runs(place: &Place) -> PathBuf {
    let words =
        ["compare", "simulated:hdd-15k", "--rounds", "1", "--measure", "1s", "--warmup", "0s"];
    place.run(&[&words[..], &["--quiet"]].concat()).expect(0);
    let folder = place.state().join("runs");
    let first = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let (newer, killed) = (place.path().join("newer"), folder.join("killed.spindle"));
    std::fs::copy(&first, &newer).unwrap();
    let file = Connection::open(&newer).unwrap();
    file.execute("UPDATE run SET name = 'killed', started_at = started_at + 60", []).unwrap();
    drop(file);
    cut_off(&newer, &killed);
    killed
}

#[test]
fn a_commit_that_was_cut_off_is_rolled_back_and_the_run_is_the_last_one() {
    let place = Place::new();
    let killed = two_runs(&place);
    let listed = place.run(&["runs", "--json"]).expect(0);
    assert!(listed.out.contains("\"killed\"") && listed.out.contains("\"done\""), "{}", listed.out);
    assert!(!listed.out.contains("\"half\""), "{}", listed.out);
    let report = place.run(&["report", "last"]).expect(0);
    assert!(report.out.contains("killed"), "{}", report.out);
    assert!(!PathBuf::from(format!("{}-journal", killed.display())).exists());
}

#[test]
fn a_run_that_may_not_be_written_is_rolled_back_in_a_copy() {
    if !rustix::process::getuid().is_root() {
        return skipped::skip(skipped::Need::Root, "a mount that may not be written");
    }
    let place = Place::new();
    let killed = two_runs(&place);
    let before = std::fs::read(&killed).unwrap();
    let runs = place.state().join("runs");
    let mount = |words: &[&str]| {
        assert!(Command::new("mount").args(words).arg(&runs).status().unwrap().success());
    };
    mount(&["--bind", runs.to_str().unwrap()]);
    let _mounted = crate::machine::Mounted(runs.clone());
    mount(&["-o", "remount,bind,ro"]);
    let report = place.run(&["report", "last"]).expect(0);
    assert!(report.out.contains("killed"), "{}", report.out);
    assert_eq!(std::fs::read(&killed).unwrap(), before);
}

#[test]
fn a_later_run_that_cannot_be_read_is_named_and_no_older_one_is_taken() {
    let place = Place::new();
    let killed = two_runs(&place);
    std::fs::remove_file(format!("{}-journal", killed.display())).unwrap();
    let mut bytes = std::fs::read(&killed).unwrap();
    // The list of its tables, and none of them.
    bytes.truncate(4096);
    std::fs::write(&killed, bytes).unwrap();
    for verb in ["report", "resume", "recommend"] {
        place.run(&[verb, "last"]).expect(1).complains_of(&["killed", "name the run", "latest"]);
    }
    let listed = place.run(&["runs"]).expect(0).complains_of(&["killed"]);
    assert!(listed.out.contains("unreadable"), "{}", listed.out);
    let json = place.run(&["runs", "--json"]).expect(0);
    assert!(json.out.contains("\"reason\""), "{}", json.out);
    // What is no run does not stand for one.
    std::fs::write(&killed, "some notes").unwrap();
    place.run(&["report", "last"]).expect(0).complains_of(&["killed"]);
}

#[test]
fn a_journal_that_names_other_files_is_not_rolled_back() {
    let place = Place::new();
    let killed = two_runs(&place);
    let journal = PathBuf::from(format!("{}-journal", killed.display()));
    let mut bytes = std::fs::read(&journal).unwrap();
    let other = place.path().join("other");
    std::fs::write(&other, "mine").unwrap();
    let name = other.to_str().unwrap().as_bytes();
    let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    bytes.extend(u32::MAX.to_be_bytes());
    bytes.extend(name);
    bytes.extend((name.len() as u32).to_be_bytes());
    bytes.extend(sum.to_be_bytes());
    bytes.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    std::fs::write(&journal, bytes).unwrap();
    let file = killed.to_str().unwrap();
    place.run(&["report", file]).expect(1).complains_of(&["belongs to other files"]);
    place.run(&["resume", file]).expect(1).complains_of(&["belongs to other files"]);
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
}

#[test]
fn killed_at_any_moment_a_run_is_found_again() {
    let place = Place::new();
    let mut stream = random::Stream::new(7, "kills");
    for _ in 0..4 {
        let (mut child, path) = begin(&place);
        std::thread::sleep(std::time::Duration::from_millis(stream.below(60)));
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        let report = place.run(&["report", path.to_str().unwrap(), "--json"]).expect(0);
        assert!(report.out.contains("\"trials\""), "{}", report.out);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn runs_that_begin_together_have_names_of_their_own() {
    let place = Place::new();
    let words =
        ["compare", "simulated:hdd-15k", "--rounds", "1", "--measure", "1s", "--warmup", "0s"];
    let all: Vec<Child> = (0..4)
        .map(|_| {
            place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in all {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let listed = place.run(&["runs", "--json"]).expect(0);
    let runs: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let mut names: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
}
