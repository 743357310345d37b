//! Run files of others, and files that something damaged: what reads them ends in an answer or in an error, and says nothing that moves a cursor or begins a line of its own. A short form of `tools/fuzz`, on any
//! compiler; a failure names the seed that repeats it. `SPINDLE_MUTATIONS` makes it any number.

#[path = "../fuzz/src/run_file.rs"]
mod run_file;

use crate::machine::Place;
use record::{Run, Store};
use run_file::{change, read_through};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// What takes more of a processor hangs: a page and a picture of a run are made within a second by a program that was
/// not optimised.
const HANG: Duration = Duration::from_secs(5);
/// Changes that are tried; `SPINDLE_MUTATIONS=10000` is the long form, of some minutes.
const USUAL: u64 = 1_000;

/// Time that this thread has had of the processor: a busy machine may stop it as long as it likes.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Files that are changed: of each kind of run, and of each version.
fn bases(place: &Place) -> Vec<Vec<u8>> {
    let folder = place.path();
    let short = ["--measure", "1s", "--warmup", "0s", "--rounds", "3", "--quiet"];
    let runs: [&[&str]; 5] = [
        &["--schedulers", "noop,deadline,cfq", "--clients", "1,4"],
        &["--schedulers", "noop,deadline", "--queues", "32,128", "--clients", "2", "--events"],
        &["--workload", "insert", "--variable", "innodb_flush_log_at_trx_commit=1,2"],
        &[
            "--schedulers",
            "noop,deadline,anticipatory,cfq",
            "--queues",
            "16,32,64,128",
            "--bs",
            "4k,64k",
            "--screen",
        ],
        &["--patterns", "randread,read", "--clients", "2", "--rates", "100/s"],
    ];
    let mut all: Vec<Vec<u8>> = Vec::new();
    for (number, words) in runs.iter().enumerate() {
        let path = folder.join(format!("{number}.spindle"));
        let out = ["compare", "simulated:hdd-15k@2.6.18", "--output", path.to_str().unwrap()];
        // A screening has rounds of its own.
        let rounds = if words.contains(&"--screen") { "4" } else { "3" };
        let short = short.map(|it| if it == "3" { rounds } else { it });
        place.run(&[&out[..], words, &short[..]].concat()).expect(0);
        all.push(std::fs::read(&path).unwrap());
    }
    let printed = folder.join("pgbench.txt");
    std::fs::write(&printed, crate::import::TRANSCRIPT).unwrap();
    let path = folder.join("import.spindle");
    let words = ["import", printed.to_str().unwrap(), "--output", path.to_str().unwrap()];
    place.run(&words).expect(0);
    all.push(std::fs::read(&path).unwrap());
    for version in 1..=5 {
        let sample =
            format!("{}/../record/samples/version-{version}.run", env!("CARGO_MANIFEST_DIR"));
        all.push(std::fs::read(sample).unwrap());
    }
    all
}

fn read(path: &Path) -> Run {
    Store::open(path).unwrap().read().unwrap()
}

/// Changes a file by a seed, and reads it.
fn one(seed: u64, bases: &[Vec<u8>], other: &Run, path: &Path) {
    let mut stream = random::Stream::new(seed, "run file");
    let mut choose = |below: u64| stream.below(below.max(1));
    let base = &bases[choose(bases.len() as u64) as usize];
    std::fs::write(path, base).unwrap();
    let said = Mutex::new(String::new());
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *said.lock().unwrap() = change(path, &mut choose);
        let begun = processor_time();
        if let Some(run) = read_through(path, other, &mut choose) {
            apply(&run, &mut choose);
        }
        processor_time() - begun
    }));
    let said = said.lock().unwrap();
    let took = done.unwrap_or_else(|_| panic!("seed {seed}: {said}"));
    assert!(took < HANG, "seed {seed} takes {took:?}: {said}");
}

/// What `apply --dry-run` looks at.
fn apply(run: &Run, choose: &mut run_file::Choice) {
    let host = host::Host::here();
    for cell in 0..run.plan.cells.len().min(3) {
        let device = (choose(40) == 0).then_some(Path::new("/"));
        if let Ok(intended) = runner::Intended::of(&host, run, cell, device) {
            intended.deviations(&host);
        }
    }
}

#[test]
fn changed_run_files_are_read_or_refused_without_a_panic_or_a_hang() {
    let place = Place::new();
    let bases = bases(&place);
    let whole = place.path().join("other.spindle");
    std::fs::write(&whole, &bases[0]).unwrap();
    let other = read(&whole);
    let wanted = std::env::var("SPINDLE_MUTATIONS").ok().and_then(|it| it.parse().ok());
    let (next, count) = (AtomicU64::new(0), wanted.unwrap_or(USUAL));
    let folder = tempfile::tempdir().unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let path: PathBuf = folder.path().join(format!("{thread}.spindle"));
            let (next, bases, other) = (&next, &bases, &other);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    one(seed, bases, other, &path);
                }
            });
        }
    });
}

/// A run of this host's kind whose names hold what no name should.
fn poisoned(place: &Place) -> PathBuf {
    let path = place.path().join("odd.spindle");
    let words =
        ["compare", "simulated:hdd-15k", "--schedulers", "none,mq-deadline", "--rounds", "3"];
    let out = ["--measure", "1s", "--warmup", "0s", "--quiet", "--output", path.to_str().unwrap()];
    place.run(&[&words[..], &out].concat()).expect(0);
    let file = Connection::open(&path).unwrap();
    file.execute("UPDATE run SET name = ?", ["odd\ntouch here\u{1b}[2J"]).unwrap();
    let environment: String =
        file.query_row("SELECT environment FROM run", [], |row| row.get(0)).unwrap();
    let mut environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
    for field in ["hostname", "cpu", "device", "kernel", "spindle_version", "target"] {
        environment[field] = "host\nrm\u{1b}]0;title\u{7}\u{202e}".into();
    }
    file.execute("UPDATE run SET environment = ?", [environment.to_string()]).unwrap();
    path
}

#[test]
fn names_of_a_foreign_file_begin_no_line_and_move_no_cursor() {
    let place = Place::new();
    let path = poisoned(&place);
    let file = path.to_str().unwrap();
    for words in [
        &["report", file][..],
        &["report", file, "--markdown"],
        &["report", file, "--csv"],
        &["report", file, "--json"],
        &["report", file, "--html", "-"],
        &["recommend", file],
        &["diff", file, file],
    ] {
        let said = place.run(words);
        assert!(said.code == Some(0) || said.code == Some(3), "{words:?}: {}", said.err);
        let all = format!("{}{}", said.out, said.err);
        let unfit = all.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(unfit, None, "{words:?}");
        for line in all.lines() {
            assert!(!line.starts_with("touch") && !line.starts_with("rm"), "{words:?}: {line}");
        }
    }
}

#[test]
fn what_is_no_part_of_a_run_file_is_refused_by_name() {
    let place = Place::new();
    for (sql, name) in [
        ("CREATE VIEW again AS SELECT * FROM trial", "view 'again'"),
        (
            "CREATE TRIGGER later AFTER INSERT ON trial BEGIN DELETE FROM run; END",
            "trigger 'later'",
        ),
        ("CREATE TABLE more (a)", "table 'more'"),
        ("ALTER TABLE run ADD COLUMN more TEXT", "column 'more' of table 'run'"),
        ("DROP TABLE counter", "table 'counter'"),
    ] {
        let path = poisoned(&place);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let file = path.to_str().unwrap();
        place.run(&["report", file]).expect(1).complains_of(&[name, "not as Spindle makes"]);
        place.run(&["resume", file]).expect(1).complains_of(&[name]);
        std::fs::remove_file(&path).unwrap();
    }
}
