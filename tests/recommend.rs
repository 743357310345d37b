//! From a run to what to set: `spindle recommend`.

use crate::machine::{Ended, Place};

fn compare(place: &Place, words: &[&str]) -> Ended {
    let fixed = ["--measure", "10s", "--warmup", "1s", "--quiet"];
    let all: Vec<&str> = ["compare"].iter().chain(words).chain(&fixed).copied().collect();
    place.run(&all).expect(0)
}

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn a_recommendation_names_settings_reason_cost_and_reach() {
    let place = Place::new();
    // Elevators of an old disk: sorting helps many random clients.
    let words = [
        "simulated:hdd-15k@2.6.18",
        "--schedulers",
        "noop,deadline,cfq",
        "--patterns",
        "randread",
        "--bs",
        "4k",
        "--sync",
        "direct",
        "--clients",
        "32",
        "--baseline",
        "scheduler=noop",
        "--rounds",
        "6",
    ];
    compare(&place, &words);
    let ended = place.run(&["recommend", "last"]).expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Recommendation from", "Why:", "How far it carries:", "Not tested:", "Models"] {
        assert!(text.contains(part), "no '{part}' in:\n{}", ended.out);
    }
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    let found = json(&place.run(&["recommend", "last", "--json"]).expect(0));
    assert_eq!(found["keep"].as_bool(), Some(!ended.out.contains("Set:")), "{found}");
    assert!(found["recommendation"]["front"].as_array().is_some_and(|it| !it.is_empty()));
    // What the decision says in the report and here is the same, or simpler.
    let report = json(&place.run(&["report", "last", "--json"]).expect(0));
    assert_eq!(report["advice"][0]["keep"], found["keep"]);
}

#[test]
fn keep_says_what_would_have_been_seen() {
    let place = Place::new();
    compare(&place, &["simulated:hdd-15k", "--placebo", "2", "--rounds", "5"]);
    let ended = place.run(&["recommend", "last"]).expect(0);
    assert!(ended.out.contains("Keep what you have"), "{}", ended.out);
    // A limit that is missed is an exit code of its own.
    let missed = place.run(&["recommend", "last", "--slo", "p99<1us"]).expect(3);
    assert!(missed.out.contains("Limit p99<1.00µs"), "{}", missed.out);
    let words = ["recommend", "last", "--objective", "p99", "--slo", "throughput>0.1/s"];
    place.run(&words).expect(0);
}

#[test]
fn bad_words_are_refused_with_those_that_are_right() {
    let place = Place::new();
    let refused = |words: &[&str], parts: &[&str]| {
        let all: Vec<&str> = ["recommend"].iter().chain(words).copied().collect();
        place.run(&all).expect(2).complains_of(parts);
    };
    refused(&["last", "--slo", "p99"], &["p99<20ms"]);
    refused(&["last", "--slo", "p42<1ms"], &["p99.9", "throughput"]);
    refused(&["last", "--risk", "all"], &["torn-pages", "commits"]);
    refused(&["last", "--objective", "iops"], &["throughput", "p99", "fairness"]);
    refused(&["nothing"], &["no run is called 'nothing'"]);
    let words = ["simulated:hdd-15k", "--schedulers", "all", "--clients", "1,8", "--rounds", "5"];
    compare(&place, &words);
    refused(&["last", "--condition", "9 clients"], &["8 clients"]);
    refused(&["last", "--condition", "client"], &["fits several"]);
    place.run(&["recommend", "last", "--condition", "8 clients"]).expect(0);
    let simple = ["simulated:hdd-15k", "--schedulers", "all", "--rounds", "5"];
    compare(&place, &simple);
    refused(&["last", "--condition", "x"], &["one condition alone"]);
}
