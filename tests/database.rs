//! Databases: `--workload` in plan and compare, on private servers.

use crate::machine::{Ended, Loop, Mounted, Place, has_loop_devices};
use skipped::{Need, skip};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const SMALL: &str = "oltp_read_write,tables=2,rows=2000";
pub const SHORT: [&str; 6] = ["--rounds", "2", "--measure", "1s", "--warmup", "200ms"];

/// Whether this test can have a MariaDB.
pub fn has_mariadb() -> bool {
    let has = Path::new("/usr/sbin/mariadbd").is_file();
    if !has {
        skip(Need::MariaDb, "the package mariadb-server");
    }
    has
}

/// Whether this test can have a PostgreSQL.
pub fn has_postgresql() -> bool {
    let has = std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut all| all.next().is_some());
    if !has {
        skip(Need::PostgreSql, "the package postgresql");
    }
    has
}

pub fn compare(place: &Place, target: &Path, words: &[&str]) -> Ended {
    let all: Vec<&str> =
        ["compare", target.to_str().unwrap()].iter().chain(words).chain(&SHORT).copied().collect();
    place.run(&all)
}

/// Servers whose data are in a folder of this test's: each works in its data directory.
pub fn servers_of(folder: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if cwd.starts_with(folder) {
            found.push(pid);
        }
    }
    found
}

fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

pub fn nothing_is_left(place: &Place, folder: &Path) {
    assert!(left_in(folder).is_empty(), "{:?}", left_in(folder));
    assert!(servers_of(place.path()).is_empty(), "a server runs on");
    let journals: Vec<String> =
        left_in(&place.state()).into_iter().filter(|name| name.ends_with(".journal")).collect();
    assert!(journals.is_empty(), "{journals:?}");
}

pub fn json(place: &Place) -> serde_json::Value {
    serde_json::from_str(&place.run(&["report", "last", "--json"]).expect(0).out).unwrap()
}

#[test]
fn from_a_workload_to_a_verdict_on_each_server() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    for server in ["mariadb", "postgresql"] {
        let workload = format!("{SMALL},server={server}");
        let words = ["--workload", &workload, "--clients", "2", "--placebo", "1"];
        let ended = compare(&place, &folder, &words).expect(0);
        for word in ["trans/s", "queries/s", "Verdict", "uniform keys"] {
            assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
        }
        assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
        assert!(
            ended.err.contains("configure"),
            "the server's configuration is shown:\n{}",
            ended.err
        );
        let summary = &json(&place)["analysis"]["groups"][0]["baseline"];
        let per_second = summary["throughput"]["mean"].as_f64().unwrap();
        let queries = summary["transactions"]["queries_per_second"].as_f64().unwrap();
        let each = queries / per_second;
        assert!((18.0..22.0).contains(&each), "20 statements a transaction: {each}");
        let counters = summary["counters"].as_object().unwrap();
        for name in [format!("{server}.fsyncs/s"), "server.cpus".to_owned()] {
            assert!(counters[&name].as_f64().unwrap() > 0.0, "{name}");
        }
        let settings = json(&place)["environment"]["settings"].to_string();
        assert!(settings.contains(&format!("{server}.max_connections")), "{settings}");
        nothing_is_left(&place, &folder);
    }
    let csv = place.run(&["report", "last", "--csv"]).expect(0).out;
    assert!(csv.lines().next().unwrap().contains(",transactions_per_second,"), "{csv}");
}

#[test]
fn filesystems_schedulers_and_variables_are_factors() {
    if !has_mariadb() || !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = [
        "--workload",
        "insert,engine=myisam",
        "--loop",
        "--schedulers",
        "none,mq-deadline",
        "--variable",
        "key_buffer_size=1048576,8388608",
    ];
    let ended = compare(&place, &folder, &words).expect(0);
    for word in ["mq-deadline, key_buffer_size 8388608", "1 client"] {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.path().to_str().unwrap()), "a mount is left:\n{mounts}");
    nothing_is_left(&place, &folder);
}

#[test]
fn a_job_beside_a_database_has_a_file_of_its_own_and_is_reported() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let beside = ["--background", "none", "--background", "read,block_size=64k,rate=50/s"];
    let words = [&["--workload", SMALL, "--placebo", "1", "--quiet"][..], &beside].concat();
    compare(&place, &folder, &words).expect(0);
    let groups = &json(&place)["analysis"]["groups"];
    let job = |at: usize| &groups[at]["baseline"]["background"];
    assert!(job(0).is_null(), "{}", job(0));
    let rate = job(1)["operations_per_second"].as_f64().unwrap();
    // A busy machine may be late, not early.
    assert!((25.0..=51.0).contains(&rate), "{rate}/s of the 50/s asked for");
    // The device counts the job's requests, too: they are not the transactions'.
    let costs = |at: usize| {
        groups[at]["baseline"]["transactions"]["per_transaction"].as_object().unwrap().clone()
    };
    assert!(!costs(1).keys().any(|name| name.starts_with("device")), "{:?}", costs(1));
    nothing_is_left(&place, &folder);
}

#[test]
fn the_ready_plans_of_databases_fit_a_directory_and_an_emulated_disk() {
    if !has_mariadb() || !has_postgresql() || !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    for server in ["mariadb", "postgresql"] {
        the_ready_plans_fit(&place, &folder, server, &[]);
    }
    if Path::new("/dev/fuse").exists() {
        let today = Path::new(PLANS).join("classics/matsunobu-today.toml");
        place.run(&["plan", "--plan", today.to_str().unwrap()]).expect(0);
    }
    assert!(left_in(&folder).is_empty(), "{:?}", left_in(&folder));
}

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");

/// The plans of this server, with these words more.
pub fn the_ready_plans_fit(place: &Place, folder: &Path, server: &str, more: &[&str]) {
    let plan = |words: &[&str]| place.run(&[&["plan"], words, more].concat()).expect(0);
    let mut ready = 0;
    for entry in std::fs::read_dir(Path::new(PLANS).join("databases")).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(server) {
            continue;
        }
        let file = entry.path();
        let file = file.to_str().unwrap();
        plan(&[folder.to_str().unwrap(), "--loop", "--plan", file]);
        if Path::new("/dev/fuse").exists() {
            plan(&["emulated:hdd-15k", "--plan", file]);
        }
        ready += 1;
    }
    assert!(ready > 0);
}

#[test]
fn words_that_fit_no_server_are_refused_before_anything_is_made() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let plan = |words: &[&str]| {
        let all: Vec<&str> =
            ["plan", folder.to_str().unwrap(), "--workload"].iter().chain(words).copied().collect();
        place.run(&all)
    };
    plan(&["oltp_readwrite"]).expect(2).complains_of(&["oltp_readwrite", "oltp_read_write"]);
    let refused = |words: &[&str], complaint: &[&str]| {
        plan(words).expect(2).complains_of(complaint);
    };
    refused(&[SMALL, "--variable", "innodb_io_capcity=5"], &["did you mean innodb_io_capacity"]);
    refused(&[SMALL, "--variable", "innodb_flush_method=sometimes"], &["would not take"]);
    refused(&[SMALL, "--variable", "socket=/tmp/x"], &["is set by Spindle"]);
    let of_postgresql = "tpcc,server=postgresql,warehouses=1";
    refused(&[of_postgresql, "--variable", "shared_bufers=1MB"], &["did you mean shared_buffers"]);
    let wrong = "wal_sync_method=never";
    refused(&[of_postgresql, "--variable", wrong], &["would not take", "fdatasync"]);
    refused(&["tpcc,warehouses=90000"], &["does not fit", "free"]);
    refused(&[SMALL, "--page-cache", "64M"], &["buffer pool"]);
    refused(&["oltp_insert,server=mysql://u:secret@h/d"], &["SPINDLE_DATABASE_PASSWORD"]);
    for url in ["mysql://root@127.0.0.1:9/d", "postgresql://me@127.0.0.1:9/d"] {
        refused(&[&format!("oltp_insert,server={url}")], &["refused", "does the server run there"]);
    }
    let all = ["oltp_insert", "--variable", "innodb_flush_method=fsync,O_DIRECT"];
    let ended = plan(&all).expect(0);
    assert!(ended.out.contains("innodb_flush_method fsync"), "{}", ended.out);
    assert!(left_in(&folder).is_empty());
}

#[test]
fn a_trial_begins_cold_or_warm() {
    if !has_mariadb() || !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let plan = place.path().join("plan.toml");
    let text = "rounds = 1\nmeasure = \"2s\"\nwarmup = \"0s\"\npage_cache = \"320M\"\n[factors]\n\
                workload = [\"insert,engine=myisam,clients=1,prefill=200k,buffer_pool=1M\", \
                \"insert,engine=myisam,clients=1,prefill=200k,buffer_pool=1M,start=warm\"]\n";
    std::fs::write(&plan, text).unwrap();
    let words = ["compare", folder.to_str().unwrap(), "--loop", "--plan", plan.to_str().unwrap()];
    place.run(&words).expect(0);
    let group = &json(&place)["analysis"]["groups"][0];
    let reads = |summary: &serde_json::Value| summary["counters"]["device.r/s"].as_f64().unwrap();
    let (cold, warm) = (reads(&group["baseline"]), reads(&group["cells"][0]["summary"]));
    // The three trees have two thousand pages, which soon are there.
    assert!(cold > 20.0 && warm < cold / 5.0, "reads a second: cold {cold}, warm {warm}");
    nothing_is_left(&place, &folder);
    let foreign = "insert,start=warm,server=mysql://u@h/d";
    place.run(&["plan", "/tmp", "--workload", foreign]).expect(2).complains_of(&["start=warm"]);
}

#[test]
fn a_missing_package_is_named_before_anything_is_made() {
    if !has_mariadb() || !has_postgresql() || !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    for (server, hide, complaint) in [
        ("mariadb", "mount --bind /dev/null /usr/sbin/mariadbd", ["mariadbd", "mariadb-server"]),
        (
            "mariadb",
            "mount --bind /dev/null /usr/bin/mariadb-install-db",
            ["mariadb-install-db", "mariadb-server"],
        ),
        ("postgresql", "mount -t tmpfs none /usr/lib/postgresql", ["postgres", "postgresql"]),
    ] {
        // In a mount namespace of its own: for all others the server is where it was.
        let script = format!("{hide} && exec \"$0\" \"$@\"");
        let workload = format!("{SMALL},server={server}");
        let words = ["compare", folder.to_str().unwrap(), "--workload", &workload];
        let plain = place.spindle(&words);
        let mut hidden = Command::new("unshare");
        hidden.args(["--mount", "sh", "-c", &script]).arg(plain.get_program());
        hidden.args(plain.get_args()).env("SPINDLE_STATE", place.state());
        let ended = Ended::of(hidden.output().unwrap()).expect(2);
        let [program, package] = complaint;
        let told = [format!("{program} was not found"), format!("install the package {package}")];
        ended.complains_of(&[&told[0], &told[1], "choose another server"]);
        assert!(left_in(&folder).is_empty(), "{:?}", left_in(&folder));
        assert!(!place.state().exists() || left_in(&place.state()).is_empty());
    }
}

#[test]
fn a_server_that_refuses_clients_voids_trials_and_deadlocks_do_not() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    for (server, refusal, deadlock, soon) in [
        ("mariadb", "Too many connections (1040)", "Deadlock found", "innodb_deadlock_detect=ON"),
        (
            "postgresql",
            "too many clients already (53300)",
            "deadlock detected (40P01)",
            // It looks for deadlocks once a second: then hardly anything comes through in a few.
            "deadlock_timeout=20ms",
        ),
    ] {
        let workload = format!("oltp_write_only,tables=1,rows=8,clients=20,server={server}");
        let words = ["--workload", &workload, "--variable", "max_connections=100,10"];
        let times = ["--variable", soon, "--rounds", "1", "--measure", "3s", "--warmup", "200ms"];
        let all = [&["compare", folder.to_str().unwrap()][..], &words, &times].concat();
        let ended = place.run(&all).expect(0);
        let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("2 trials not counted; void: a client could not begin: "), "{text}");
        assert!(text.contains(refusal), "the server's own words: {text}");
        assert!(text.contains("Begun anew under"), "{text}");
        assert!(text.contains(deadlock), "{text}");
        let baseline = &json(&place)["analysis"]["groups"][0]["baseline"];
        assert_eq!(baseline["valid"], 2, "{baseline}");
        assert!(baseline["throughput"]["mean"].as_f64().unwrap() > 0.0);
        nothing_is_left(&place, &folder);
    }
}

#[test]
fn a_database_on_an_emulated_disk_is_compared_and_leaves_nothing() {
    if !has_postgresql() || !has_loop_devices() || !Path::new("/dev/fuse").exists() {
        return;
    }
    let place = Place::alone();
    let workload = format!("{SMALL},server=postgresql");
    let words = ["--workload", &workload, "--schedulers", "none,mq-deadline"];
    let times = ["--rounds", "1", "--measure", "2s", "--warmup", "500ms"];
    let ended = place.run_in_time(&[&["compare", "emulated:hdd-15k"][..], &words, &times].concat());
    let ended = ended.expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["trans/s", "hdd-15k", "none", "mq-deadline"] {
        assert!(text.contains(word), "no '{word}' in: {text}");
    }
    let summary = &json(&place)["analysis"]["groups"][0]["baseline"];
    let counters = summary["counters"].as_object().unwrap();
    // A commit waits for a disk of 15,000 turns a minute: none is done in less than some of them.
    let fsyncs = counters["postgresql.fsyncs/s"].as_f64().unwrap();
    assert!((1.0..1000.0).contains(&fsyncs), "{fsyncs} a second");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.path().to_str().unwrap()), "a mount is left:\n{mounts}");
    assert!(servers_of(place.path()).is_empty(), "a server runs on");
    let left = left_in(&place.state());
    assert!(!left.iter().any(|name| name.ends_with(".journal")), "{left:?}");
}

/// A comparison that goes on while the test does something.
pub struct Under<'a> {
    child: Child,
    place: &'a Place,
}

impl Under<'_> {
    pub fn begin<'a>(place: &'a Place, target: &Path, words: &[&str]) -> Under<'a> {
        let all: Vec<&str> =
            ["compare", target.to_str().unwrap()].iter().chain(words).copied().collect();
        let mut command = place.spindle(&all);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Under { child, place }
    }

    /// The server of a trial: it works in a folder called `database`.
    pub fn server(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            let trial = servers_of(self.place.path()).into_iter().find(|pid| {
                let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
                cwd.file_name().is_some_and(|name| name == "database")
            });
            if let Some(pid) = trial {
                return pid;
            }
            if self.child.try_wait().unwrap().is_some() {
                let mut said = String::new();
                let err = self.child.stderr.take().unwrap();
                std::io::Read::read_to_string(&mut { err }, &mut said).unwrap();
                panic!("it ended before its first trial: {said}");
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "no trial begins");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it, so that it cannot put anything back.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn end(self) -> Ended {
        Ended::of(self.child.wait_with_output().unwrap())
    }
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

const PLACEBO: [&str; 8] =
    ["--placebo", "1", "--rounds", "1", "--measure", "2s", "--warmup", "200ms"];

#[test]
fn a_server_that_is_killed_voids_its_trial_and_the_rest_goes_on() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = [&["--workload", SMALL][..], &PLACEBO].concat();
    let mut under = Under::begin(&place, &folder, &words);
    let pid = under.server();
    // Once it answers and clients are at work.
    std::thread::sleep(Duration::from_millis(1500));
    signal(pid, rustix::process::Signal::KILL);
    let ended = under.end().expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 trial not counted; void: the server ended (signal: 9"), "{text}");
    assert!(ended.err.contains("does not count"), "{}", ended.err);
    nothing_is_left(&place, &folder);
}

#[test]
fn neither_an_interrupt_nor_a_kill_leaves_a_server() {
    if !has_mariadb() || !has_postgresql() {
        return;
    }
    for (server, how) in [("mariadb", "kill"), ("postgresql", "kill"), ("mariadb", "interrupt")] {
        let place = Place::new();
        let folder = place.scratch();
        let workload = format!("{SMALL},server={server}");
        let words = [&["--workload", &workload][..], &PLACEBO].concat();
        let mut under = Under::begin(&place, &folder, &words);
        under.server();
        std::thread::sleep(Duration::from_millis(300));
        if how == "interrupt" {
            signal(under.child.id(), rustix::process::Signal::INT);
            under.end().expect(130);
        } else {
            under.child.kill().unwrap();
            under.end();
            let begun = Instant::now();
            while !servers_of(place.path()).is_empty() {
                assert!(begun.elapsed() < Duration::from_secs(10), "{server} outlives its maker");
                std::thread::sleep(Duration::from_millis(20));
            }
            place.run(&["undo"]).expect(0);
        }
        nothing_is_left(&place, &folder);
    }
}

#[test]
fn a_full_disk_voids_a_trial_in_the_servers_own_words() {
    if has_mariadb() && has_loop_devices() {
        a_full_disk_voids_a_trial("mariadb", &[]);
    }
}

/// On this kind of server, with these words more.
pub fn a_full_disk_voids_a_trial(server: &str, more: &[&str]) {
    let place = Place::new();
    let file = place.path().join("disk");
    // PostgreSQL's log may take a gigabyte (max_wal_size) before anything is in its tables.
    let mib = if server == "postgresql" { 2040 } else { 1500 };
    std::fs::File::create(&file).unwrap().set_len(mib << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&file).status().unwrap();
    assert!(made.success());
    let device = Loop::attach(&file, &[]);
    let mounted = Mounted::of(&device, place.path().join("mounted"));
    let point = mounted.0.clone();
    let inner = point.join("inner");
    std::fs::create_dir(&inner).unwrap();
    let long = ["--placebo", "1", "--rounds", "1", "--measure", "5s", "--warmup", "200ms"];
    // Data that a trial's copy has room for, but not beside what is kept of them.
    let large = format!("oltp_read_write,tables=10,rows=120000,server={server}");
    let large = [&["--workload", &large], more].concat();
    compare(&place, &inner, &large).expect(2).complains_of(&["take about", "free"]);
    assert!(left_in(&inner).is_empty(), "{:?}", left_in(&inner));
    // Nothing waits for the disk, so that rows come fast enough to fill it.
    let lazy = match server {
        "postgresql" => "synchronous_commit=off",
        _ => "innodb_flush_log_at_trx_commit=0",
    };
    let workload = format!("insert,server={server}");
    let words = [&["--workload", &workload, "--variable", lazy], more, &long[..]].concat();
    let mut under = Under::begin(&place, &inner, &words);
    under.server();
    std::thread::sleep(Duration::from_millis(1500));
    // Somebody else takes all that is free.
    let filler = point.join("filler");
    let room = rustix::fs::statvfs(&point).unwrap();
    let full = std::fs::File::create(&filler).unwrap();
    let all = room.f_bavail * room.f_frsize - (256 << 10);
    rustix::fs::fallocate(&full, rustix::fs::FallocateFlags::empty(), 0, all).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    drop(full);
    std::fs::remove_file(&filler).unwrap();
    let ended = under.end();
    let text = (ended.out.clone() + &ended.err).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a trial does not count"), "{text}");
    // To the client that was refused a row, or in its log (28 is ENOSPC) if it found room in time.
    let full = text.contains("full") || text.contains("No space left on device");
    let said = full && text.contains("the server says: ");
    let logged =
        (full || text.contains("error 28")) && text.contains("the server's log tells of trouble: ");
    assert!(said || logged, "{text}");
    assert!(text.contains("Verdict"), "the rest goes on: {text}");
    assert!(left_in(&inner).is_empty(), "{:?}", left_in(&inner));
    drop(mounted);
}

#[test]
fn corrupt_data_void_trials_in_the_servers_own_words() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words = [&["--workload", SMALL][..], &PLACEBO].concat();
    let mut under = Under::begin(&place, &folder, &words);
    under.server();
    // The first trial runs on its copy; those that follow get what a bad disk made of the data.
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let table = entry.path().join("loaded-0/sbtest/sbtest1.ibd");
        if let Ok(mut bytes) = std::fs::read(&table) {
            let from = 5 * 16384;
            bytes[from..].iter_mut().step_by(64).for_each(|byte| *byte ^= 0x55);
            std::fs::write(&table, bytes).unwrap();
        }
    }
    let ended = under.end().expect(0);
    let text = (ended.out + &ended.err).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a trial does not count") && text.contains("orrupt"), "{text}");
    assert!(text.contains("Verdict"), "the rest goes on: {text}");
    nothing_is_left(&place, &folder);
}
