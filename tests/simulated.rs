//! The simulated world: `spindle compare simulated:PROFILE`. Nothing here needs root, and nothing
//! touches this host's storage.

use crate::machine::{Ended, Place};
use skipped::{Need, skip};

const SHORT: [&str; 6] = ["--rounds", "5", "--measure", "5s", "--warmup", "1s"];

fn compare(place: &Place, words: &[&str]) -> Ended {
    let all: Vec<&str> = ["compare"].iter().chain(words).chain(&SHORT).copied().collect();
    place.run(&all)
}

/// Everything in the run file that is a figure, as the report's CSV has it.
fn figures(place: &Place) -> String {
    place.run(&["report", "last", "--csv"]).expect(0).out
}

#[test]
fn a_simulated_comparison_has_the_same_report() {
    let place = Place::new();
    let words = ["simulated:hdd-15k@2.6.18", "--schedulers", "all", "--queues", "128,100000"];
    let ended = compare(&place, &words).expect(0);
    for word in
        ["(simulated)", "hdd-15k", "Linux 2.6.18", "anticipatory", "queue 100000", "Verdict"]
    {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    let csv = figures(&place);
    for counter in ["device.await", "device.wrqm/s", "sim.seek_sectors", "sim.busy_drives"] {
        assert!(csv.lines().next().unwrap().contains(counter), "no {counter} in:\n{csv}");
    }
    let again = place.run(&["report", "last"]).expect(0);
    assert_eq!(again.out, ended.out);
}

#[test]
fn the_last_run_is_the_newest_also_within_a_second() {
    let place = Place::new();
    for clients in ["1", "2", "3", "4"] {
        let words = ["simulated:hdd-15k", "--schedulers", "none,bfq", "--clients", clients];
        compare(&place, &words).expect(0);
        let run = place.run(&["report", "last", "--json"]).expect(0).out;
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        let of_last = run.pointer("/plan/workload/job/clients").unwrap().to_string();
        assert_eq!(of_last, clients);
    }
}

#[test]
fn the_same_words_give_the_same_figures_and_another_seed_others() {
    let run = |seed: &str| {
        let place = Place::new();
        let words = ["simulated:array-4x15k@3.10", "--schedulers", "all", "--seed", seed];
        compare(&place, &words).expect(0);
        figures(&place)
    };
    let first = run("7");
    assert_eq!(first.lines().count(), 4, "{first}");
    assert_eq!(first, run("7"));
    assert_ne!(first, run("8"));
}

#[test]
fn words_that_fit_no_profile_or_kernel() {
    let place = Place::new();
    let plan = |words: &[&str]| {
        let all: Vec<&str> = ["plan"].iter().chain(words).copied().collect();
        place.run(&all).expect(2)
    };
    plan(&["simulated:hdd15k"]).complains_of(&["hdd15k", "did you mean hdd-15k"]);
    plan(&["simulated:hdd-15k@2.4"]).complains_of(&["'2.4'", "2.6.18", "6.12"]);
    plan(&["simulated:hdd-15k,speed=9"]).complains_of(&["speed=9", "turnaround"]);
    plan(&["simulated:hdd-15k,turnaround=20"]).complains_of(&["unit"]);
    plan(&["simulated:hdd-15k,turnaround=20s"]).complains_of(&["above 1 s", "--rates"]);
    plan(&["simulated:/no/such.toml"]).complains_of(&["/no/such.toml", "cannot be read"]);
    plan(&["simulated:hdd-15k", "--loop"]).complains_of(&["--loop"]);
    plan(&["simulated:hdd-15k", "--size", "9T"]).complains_of(&["does not fit", "hdd-15k has"]);
}

#[test]
fn settings_that_a_kernel_level_does_not_have() {
    let place = Place::new();
    let plan = |target: &str, words: &[&str]| {
        let all: Vec<&str> = ["plan", target].iter().chain(words).copied().collect();
        place.run(&all)
    };
    let (old, new) = ("simulated:hdd-15k@2.6.18", "simulated:hdd-15k");
    // The levels that have it are named.
    plan(new, &["--schedulers", "cfq"]).expect(2).complains_of(&["cfq", "6.12", "2.6.18", "4.19"]);
    plan(old, &["--schedulers", "kyber"]).expect(2).complains_of(&["kyber", "2.6.18", "6.12"]);
    plan(new, &["--schedulers", "mq-daedline"]).expect(2).complains_of(&["did you mean"]);
    let many = ["--schedulers", "deadline", "--queues", "128,100000"];
    assert!(plan(old, &many).expect(0).out.contains("queue 100000"));
    let many = ["--schedulers", "mq-deadline", "--queues", "128,100000"];
    plan(new, &many).expect(2).complains_of(&["100000", "2048", "blk-mq refuses"]);
    let tunable = ["--schedulers", "deadline", "--tunable", "deadline.fifo_batch=1,16"];
    assert!(plan(old, &tunable).expect(0).out.contains("fifo_batch 1"));
    let tunable = ["--schedulers", "deadline", "--tunable", "deadline.quantum=4"];
    plan(old, &tunable).expect(2).complains_of(&["quantum", "fifo_batch"]);
}

#[test]
fn what_is_not_modelled_is_refused_with_the_reason() {
    let place = Place::new();
    let plan = |words: &[&str]| {
        let all: Vec<&str> = ["plan", "simulated:hdd-15k"].iter().chain(words).copied().collect();
        place.run(&all)
    };
    let engines = ["--schedulers", "all", "--engine", "io_uring,sync"];
    plan(&engines).expect(2).complains_of(&["engine", "simulated clients need no engine"]);
    plan(&["--filesystems", "ext4,btrfs"]).expect(2).complains_of(&["btrfs", "ext3, ext4 and xfs"]);
    plan(&["--page-cache", "1M"]).expect(2).complains_of(&["too small", "16 MiB"]);
    plan(&["--without", "gravity"]).expect(2).complains_of(&["gravity", "sorting", "rotation"]);
    let cold = ["--schedulers", "all", "--without", "nothing,cold-drives"];
    plan(&cold).expect(2).complains_of(&["cold-drives", "no mechanism cold-drives"]);
    let workload = ["--workload", "oltp_read_only,server=postgresql"];
    plan(&workload).expect(2).complains_of(&["postgresql", "MariaDB"]);
    let old = ["plan", "simulated:hdd-15k@3.10", "--schedulers", "all", "--wbt", "0,2000"];
    place.run(&old).expect(2).complains_of(&["wbt_lat_usec", "6.12"]);
    let lvm = ["plan", "simulated:hdd-15k,lvm", "--schedulers", "all"];
    place.run(&lvm).expect(2).complains_of(&["lvm", "RAID 0"]);
}

#[test]
fn buffered_clients_on_filesystems_through_a_bounded_page_cache() {
    let place = Place::new();
    let words = [
        "simulated:hdd-15k@2.6.18",
        "--filesystems",
        "ext3,ext4,xfs",
        "--patterns",
        "randwrite",
        "--sync",
        "buffered,fsync",
        "--page-cache",
        "64M",
        "--size",
        "2G",
    ];
    compare(&place, &words).expect(0);
    let csv = figures(&place);
    for counter in ["cache.dirty_mib", "journal.commits/s", "writeback.flusher_pages/s"] {
        assert!(csv.lines().next().unwrap().contains(counter), "no {counter} in:\n{csv}");
    }
    assert_eq!(csv.lines().count(), 7, "{csv}");
}

#[test]
fn a_simulated_database_beside_what_was_published() {
    let place = Place::new();
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/classics/matsunobu-why.toml");
    // A small table, and seconds: that it runs, and what the report has.
    let words = [
        "compare",
        "--plan",
        plan,
        "--workload",
        "insert,engine=myisam,clients=1,prefill=200k",
        "--without",
        "nothing,journal",
        "--measure",
        "20s",
        "--warmup",
        "5s",
    ];
    let ended = place.run(&words).expect(0);
    for word in ["what makes the difference", "all on", "no journal", "queue 100000"] {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    let csv = figures(&place);
    assert!(csv.contains("mariadb.Key_write_requests/s"), "{csv}");
}

#[test]
fn the_classic_of_sorting_before_an_array() {
    let place = Place::new();
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/classics/osma.toml");
    let words = [
        "compare",
        "--plan",
        plan,
        "--rounds",
        "3",
        "--measure",
        "5s",
        "--warmup",
        "2s",
        "--without",
        "nothing,waiting",
    ];
    let ended = place.run(&words).expect(0);
    for word in ["beside what was published", "300–400", "what makes the difference", "no waiting"]
    {
        assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
    }
    let csv = figures(&place);
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let busy = |scheduler: &str, without: &str| {
        let value =
            |row: &[&str], name| row[names.iter().position(|n| *n == name).unwrap()].to_owned();
        let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let one_each = |row: &Vec<&str>| {
            value(row, "clients") == "64"
                && value(row, "depth") == "1"
                && value(row, "without") == without
                && value(row, "scheduler") == scheduler
        };
        let row = rows.into_iter().find(one_each).unwrap();
        value(&row, "sim.busy_drives").parse::<f64>().unwrap()
    };
    // The mechanism, not a figure: cfq serves one process, and so one drive, at a time.
    for scheduler in ["noop", "deadline"] {
        assert!(busy(scheduler, "nothing") > 3.5, "{csv}");
    }
    assert!(busy("cfq", "nothing") < 1.5 && busy("cfq", "waiting") > 3.5, "{csv}");
    let lvm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/classics/osma-lvm.toml");
    place.run(&["plan", "--plan", lvm]).expect(0);
    let all = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/classics/matsunobu.toml");
    place.run(&["plan", "--plan", all]).expect(0);
}

#[test]
fn events_are_the_same_on_one_and_two_threads_and_can_be_drawn() {
    let place = Place::new();
    let hashes = |threads: &str| {
        let words = [
            "simulated:array-4x15k@2.6.18",
            "--schedulers",
            "all",
            "--patterns",
            "randread,randwrite",
            "--events",
            "--threads",
            threads,
        ];
        compare(&place, &words).expect(0);
        let run = place.run(&["report", "last", "--json"]).expect(0).out;
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        run["event_hashes"].as_array().unwrap().clone()
    };
    let one = hashes("1");
    // 2 patterns, 4 schedulers and the baseline twice, 5 rounds.
    assert_eq!(one.len(), 2 * 5 * 5);
    assert_eq!(one, hashes("2"));

    let drawn =
        place.run(&["report", "last", "--events", "deadline", "--window", "300ms"]).expect(0);
    for word in ["Events of", "deadline", "waiting", "at device", "longest"] {
        assert!(drawn.out.contains(word), "no '{word}' in:\n{}", drawn.out);
    }
    assert!(drawn.out.lines().all(|line| line.chars().count() <= 80), "{}", drawn.out);
    let picture = place.path().join("a.svg");
    let name = picture.to_str().unwrap();
    place.run(&["report", "last", "--events", "--svg", name]).expect(0);
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    let wrong = place.run(&["report", "last", "--events", "bfq"]).expect(2);
    wrong.complains_of(&["'bfq'", "deadline"]);
    let place = Place::new();
    compare(&place, &["simulated:hdd-15k", "--schedulers", "all"]).expect(0);
    place.run(&["report", "last", "--events"]).expect(2).complains_of(&["--events"]);
}

/// What fio really recorded, replayed in each mode.
#[test]
fn a_trace_that_fio_recorded_is_replayed() {
    let place = Place::new();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let fio = std::process::Command::new("fio")
        .args(["--name=a", "--size=16m", "--rw=randrw", "--bs=4k", "--number_ios=200"])
        .arg(format!("--filename={}", data.display()))
        .arg(format!("--write_iolog={}", log.display()))
        .output();
    let fio = match fio {
        Ok(fio) if fio.status.success() => fio,
        _ => {
            skip(Need::Fio, "its trace is replayed");
            return;
        }
    };
    drop(fio);
    let log = log.to_str().unwrap();
    for mode in ["open", "closed", "asap"] {
        let words = ["compare", "simulated:hdd-15k", "--schedulers", "all", "--replay", log];
        let all: Vec<&str> = words.iter().chain(&["--replay-mode", mode]).copied().collect();
        let ended = place.run(&all).expect(0);
        for word in ["replay of", "(simulated)", "trace (fio) has 200 requests", "Verdict"] {
            assert!(ended.out.contains(word), "no '{word}' in:\n{}", ended.out);
        }
        assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    }

    let text = std::fs::read_to_string(log).unwrap();
    let broken = place.path().join("broken");
    std::fs::write(&broken, format!("{text}17 nonsense\n")).unwrap();
    let broken = broken.to_str().unwrap();
    let words = ["compare", "simulated:hdd-15k", "--schedulers", "all", "--replay", broken];
    let line = format!("line {}", text.lines().count() + 1);
    place.run(&words).expect(2).complains_of(&[&line, "--skip-bad"]);
    let all: Vec<&str> = words.iter().chain(&["--skip-bad"]).copied().collect();
    let ended = place.run(&all).expect(0);
    assert!(ended.out.contains("1 lines of the trace could not be read"), "{}", ended.out);

    let with = |more: &[&str]| {
        let all: Vec<&str> =
            words[..4].iter().chain(&["--replay", log]).chain(more).copied().collect();
        place.run(&all).expect(2)
    };
    with(&["--patterns", "randread"]).complains_of(&["pattern", "trace"]);
    with(&["--depths", "4"]).complains_of(&["depth", "asap"]);
    with(&["--replay-mode", "sideways"]).complains_of(&["sideways", "closed"]);
    with(&["--replay-format", "csv"]).complains_of(&["'csv'", "blkparse"]);
    with(&["--size", "1M"]).complains_of(&["reaches"]);
    let wrapped = words.iter().copied().chain(["--size", "1M", "--replay-wrap", "--rounds", "1"]);
    let wrapped: Vec<&str> = wrapped.map(|word| if word == broken { log } else { word }).collect();
    let ended = place.run(&wrapped).expect(0);
    assert!(ended.out.contains("lie beyond 1 MiB"), "{}", ended.out);
    let missing = ["compare", "simulated:hdd-15k", "--replay", "/nowhere/log"];
    place.run(&missing).expect(2).complains_of(&["/nowhere/log"]);
}

/// Where nothing is allowed: the simulated world is shown, with the reason.
#[test]
fn without_root_and_without_a_target_the_simulated_world_is_shown() {
    let place = Place::new();
    let (program, state) = (place.path().join("spindle"), place.path().join("own"));
    std::fs::copy(env!("CARGO_BIN_EXE_spindle"), &program).unwrap();
    std::fs::create_dir(&state).unwrap();
    for path in [place.path(), &program, &state] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, open).unwrap();
    }
    let run = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["compare", "--rounds", "5", "--measure", "2s"])
        .env("SPINDLE_STATE", &state)
        .current_dir("/")
        .output();
    let ended = match run {
        Ok(run) if String::from_utf8_lossy(&run.stderr).contains("setpriv:") => {
            skip(Need::Root, "it is given up");
            return;
        }
        Ok(run) => Ended::of(run).expect(0),
        Err(error) => {
            skip(Need::Program, &format!("setpriv: {error}"));
            return;
        }
    };
    assert!(ended.out.contains("(simulated)") && ended.out.contains("Verdict"), "{}", ended.out);
    for word in ["no target", "simulated:hdd-15k", "root"] {
        assert!(ended.err.contains(word), "no '{word}' in:\n{}", ended.err);
    }
}
