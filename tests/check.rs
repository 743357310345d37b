//! `spindle check`: the trials that could prove a finding wrong.

use crate::machine::Place;

/// cfq gives a disk of Linux 2.6.18 one reader at a time: more clients bring no more, in the scheduler.
const SERIALISED: [&str; 14] = [
    "compare",
    "simulated:hdd-15k@2.6.18",
    "--schedulers",
    "cfq,noop",
    "--clients",
    "1,16",
    "--patterns",
    "randread",
    "--rounds",
    "5",
    "--measure",
    "3s",
    "--quiet",
    "--output",
];

/// The outcome of each finding, by its id.
fn outcomes(place: &Place, words: &[&str]) -> Vec<(String, String)> {
    let ended = place.run(words).expect(0);
    let all: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let one = |it: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (text(&it["finding"]), text(&it["checked"]["outcome"]))
    };
    all.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_right_finding_is_confirmed() {
    let place = Place::new();
    let run = place.path().join("serialised.spindle");
    let run = run.to_str().unwrap();
    place.run(&[&SERIALISED[..], &[run]].concat()).expect(0);
    let report = place.run(&["report", run]).expect(0).out;
    // Lines are broken at 80 columns.
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("in the scheduler") && report.contains("spindle check"), "{report}");
    let planned = outcomes(&place, &["check", run, "--dry-run", "--json"]);
    assert!(planned.iter().all(|(_, outcome)| outcome == "planned"), "{planned:?}");
    let checked = outcomes(&place, &["check", run, "--finding", "serialised", "--json"]);
    let confirmed = ("serialised".to_owned(), "confirmed".to_owned());
    assert!(checked.contains(&confirmed), "{checked:?}");
    // What was measured is a run of its own.
    let kept = place.run(&["runs"]).expect(0).out;
    assert!(kept.contains("serialised-check-serialised"), "{kept}");
}

/// Runs a simulated comparison and one check of it.
fn checked(place: &Place, words: &str, finding: &str) -> String {
    let run = place.path().join("run.spindle");
    let _ = std::fs::remove_file(&run);
    let run = run.to_str().unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let times: &[&str] = match words.contains(&"--measure") {
        true => &["--rounds", "5"],
        false => &["--rounds", "5", "--measure", "4s", "--warmup", "1s"],
    };
    let rest = ["--quiet", "--output", run];
    place.run(&[&["compare"][..], &words, times, &rest].concat()).expect(0);
    let all = outcomes(place, &["check", run, "--finding", finding, "--quiet", "--json"]);
    all.into_iter().find(|(id, _)| id == finding).unwrap().1
}

#[test]
fn a_cause_is_confirmed_where_most_of_its_effect_goes_with_it() {
    let place = Place::new();
    // Without merging, a queue of 4 is a fifth slower; with it, it is seven times slower.
    let merging = "simulated:hdd-15k --queues 4,256 --patterns write --bs 4k --sync direct --depths 64 \
                   --schedulers mq-deadline";
    assert_eq!(checked(&place, merging, "merging"), "confirmed");
    let dirty = "simulated:hdd-15k --schedulers none --filesystems ext4 --patterns randwrite --sync buffered \
                 --page-cache 256m --size 8g --wbt 0,2000";
    assert_eq!(checked(&place, dirty, "writeback-throttled"), "confirmed");
    let tail = "simulated:hdd-15k --schedulers none,bfq --patterns read --bs 256k --sync direct --clients 8 \
                --baseline scheduler=none --measure 10s --warmup 2s";
    assert_eq!(checked(&place, tail, "latency-trade"), "confirmed");
}

/// Without the flush, buffered writes would measure memory.
#[test]
fn writes_without_their_flush_go_past_the_page_cache() {
    let place = Place::new();
    let words = "simulated:hdd-7200 --schedulers none,mq-deadline --patterns randwrite --sync fdatasync --clients 2";
    assert_eq!(checked(&place, words, "flush-bound"), "confirmed");
    let run = place.path().join("run.spindle");
    let words = ["check", run.to_str().unwrap(), "--finding", "flush-bound", "--dry-run"];
    let planned = place.run(&words).expect(0).out;
    assert!(planned.contains("direct") && !planned.contains("buffered"), "{planned}");
}

/// Up to the disk's 32 commands a longer queue gives it more to choose from; beyond, under a scheduler that does
/// not sort, requests only wait elsewhere.
#[test]
fn a_longer_queue_helps_or_only_moves_the_wait() {
    let place = Place::new();
    let of = |scheduler: &str, queues: &str| {
        let words = format!(
            "simulated:hdd-7200 --schedulers {scheduler} --queues {queues} --depths 64 \
             --patterns randread --sync direct"
        );
        checked(&place, &words, "no-free-request")
    };
    assert_eq!(of("none", "8,16"), "confirmed");
    assert_ne!(of("kyber", "64,128"), "confirmed");
}

#[test]
fn what_cannot_be_checked_is_told() {
    let place = Place::new();
    let run = place.path().join("quiet.spindle");
    let run = run.to_str().unwrap();
    let words = ["compare", "simulated:hdd-15k", "--schedulers", "none", "--measure", "2s"];
    place.run(&[&words[..], &["--rounds", "3", "--quiet", "--output", run]].concat()).expect(0);
    place.run(&["check", run, "--finding", "sorted"]).expect(2).complains_of(&["sorting", "drift"]);
    place.run(&["check", run, "--finding", "drift"]).expect(2).complains_of(&["does not show"]);
    place.run(&["check", "nowhere"]).expect(2).complains_of(&["nowhere"]);
}
