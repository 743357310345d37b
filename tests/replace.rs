//! One campaign in the place of another: `spindle apply --replace`, and `spindle undo --journal`.

use crate::{
    apply::{FACTORS, ready, run_file, setting, write},
    machine::{Loop, Place},
};
use record::Store;
use serde_json::Value;
use std::path::Path;

/// Two runs on a device: `first` recommends bfq and a queue of 64, `second` a queue of 32.
fn campaigns(place: &Place, device: &Loop) {
    let rename = |name: &str, file: &Path| {
        let run = Store::open(file).unwrap().read().unwrap();
        write(place, name, &run);
        std::fs::remove_file(file).unwrap();
        std::fs::remove_file(place.path().join("measured.spindle")).unwrap();
    };
    rename("first", &run_file(place, device, &FACTORS, "bfq, queue 64"));
    rename("second", &run_file(place, device, &["--queues", "77,32"], "queue 32"));
}

fn applied(place: &Place, words: &[&str]) -> Value {
    let ended = place.run(&[&["apply"], words, &["--json"]].concat()).expect(0);
    serde_json::from_str(&ended.out).unwrap()
}

fn status(place: &Place) -> Vec<Value> {
    let ended = place.run(&["status", "--json"]).expect(0);
    serde_json::from_str(&ended.out).unwrap()
}

fn journal(of: &Value) -> String {
    of["journal"].as_str().unwrap().to_owned()
}

#[test]
fn a_named_journal_alone_is_undone() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    campaigns(&place, &device);
    let first = applied(&place, &["first"]);
    let set = device.settings();
    place.run(&["undo", "--journal", "123-456"]).expect(0);
    assert_eq!(device.settings(), set, "another name is none of ours");
    assert_eq!(status(&place)[0]["name"], first["journal"]);
    let name = journal(&first);
    let undone = place.run(&["undo", "--journal", &name, "--json"]).expect(0);
    assert!(undone.out.contains(&name), "{}", undone.out);
    assert_eq!(device.settings(), before);
    let again = place.run(&["undo", "--journal", &name]).expect(0);
    assert!(again.out.contains("no longer"), "{}", again.out);
    let nothing = place.run(&["apply", "first", "--dry-run", "--json"]).expect(0);
    assert!(nothing.out.contains("\"journal\": null"), "{}", nothing.out);
}

#[test]
fn one_campaign_takes_the_place_of_another_and_undo_goes_all_the_way_back() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    campaigns(&place, &device);
    let first = journal(&applied(&place, &["first"]));
    let of_first = device.settings();
    let refused = place.run(&["apply", "second"]).expect(2);
    refused.complains_of(&["applied already", "--replace"]);
    assert_eq!(device.settings(), of_first, "refused, nothing is changed");

    let second = applied(&place, &["second", "--replace"]);
    assert_eq!(second["replaces"], first.as_str());
    assert_eq!(setting(&device, "nr_requests"), "32");
    assert!(setting(&device, "scheduler").contains("[bfq]"), "what only the first named stays");
    let standing = status(&place);
    assert_eq!(standing.len(), 1, "{standing:?}");
    assert_eq!(standing[0]["name"], second["journal"]);
    assert_eq!(standing[0]["replaces"], first.as_str());
    let text = standing[0]["standings"].to_string();
    assert!(text.contains("bfq") && text.contains("32") && !text.contains("\"64\""), "{text}");
    // What it is in the place of cannot be pulled out from below it.
    let below = place.run(&["undo", "--journal", &first]).expect(2);
    below.complains_of(&["in its place", &journal(&second)]);

    // It alone: the first is in force again.
    place.run(&["undo", "--journal", &journal(&second)]).expect(0);
    assert_eq!(device.settings(), of_first);
    assert_eq!(status(&place)[0]["name"], first.as_str());
    // And again, all the way.
    applied(&place, &["second", "--replace"]);
    place.run(&["undo"]).expect(0);
    assert_eq!(device.settings(), before);
    assert!(status(&place).is_empty());
}

#[test]
fn for_a_time_alone_the_earlier_one_comes_back() {
    let Some((place, device)) = ready() else { return };
    campaigns(&place, &device);
    let first = journal(&applied(&place, &["first"]));
    let of_first = device.settings();
    applied(&place, &["second", "--replace", "--for", "1s"]);
    // What waits to be confirmed makes no place.
    place.run(&["apply", "first", "--replace"]).expect(2).complains_of(&["--confirm"]);
    let begun = std::time::Instant::now();
    while status(&place).iter().any(|it| it["name"] != first.as_str()) {
        assert!(begun.elapsed().as_secs() < 30);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(device.settings(), of_first);
    place.run(&["undo"]).expect(0);
}

#[test]
fn one_that_fails_leaves_the_earlier_one_in_force_with_its_rule() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    campaigns(&place, &device);
    let folder = place.path().join("rules.d");
    let persist = ["--persist", "--watch-time", "0s", "--rules-folder", folder.to_str().unwrap()];
    let first = applied(&place, &[&["first"], &persist[..]].concat());
    let of_first = device.settings();
    let rules = || {
        let all = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
        all.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect::<Vec<_>>()
    };
    let rules_of_first = rules();
    assert_eq!(rules_of_first.len(), 1);

    // After the settings and the earlier rule, at the new one: its folder is a file.
    let file = place.path().join("disk");
    let wrong = ["second", "--replace", "--persist", "--rules-folder", file.to_str().unwrap()];
    place.run(&[&["apply"], &wrong[..]].concat()).expect(1);
    assert_eq!((device.settings(), rules()), (of_first.clone(), rules_of_first.clone()));
    assert_eq!(status(&place)[0]["name"], first["journal"]);
    // Without a rule of its own it would not last as the earlier one does.
    place.run(&["apply", "second", "--replace"]).expect(2).complains_of(&["--persist"]);

    let second = applied(&place, &[&["second", "--replace"], &persist[..]].concat());
    let [(_, rule)] = &rules()[..] else { panic!("{:?}", rules()) };
    assert!(rule.contains("=\"bfq\"") && rule.contains("=\"32\""), "{rule}");
    place.run(&["undo", "--journal", &journal(&second)]).expect(0);
    assert_eq!((device.settings(), rules()), (of_first, rules_of_first));
    applied(&place, &[&["second", "--replace"], &persist[..]].concat());
    place.run(&["undo"]).expect(0);
    assert_eq!((device.settings(), rules()), (before, Vec::new()));
}

/// Random moments at which it is killed.
const KILLS: u32 = 30;

#[test]
fn killed_in_the_middle_the_earlier_one_is_in_force_again_or_the_later_one_is() {
    let Some((place, device)) = ready() else { return };
    campaigns(&place, &device);
    applied(&place, &["first"]);
    let of_first = device.settings();
    let begun = std::time::Instant::now();
    let second = applied(&place, &["second", "--replace"]);
    let whole = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let of_second = device.settings();
    place.run(&["undo", "--journal", &journal(&second)]).expect(0);
    let mut stream = random::Stream::new(1, "moments of killing a replacement");
    let mut done = 0;
    for kill in 0..KILLS {
        let mut child = place.spindle(&["apply", "second", "--replace", "--json"]);
        let mut child = child
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(stream.below(whole)));
        child.kill().unwrap();
        child.wait().unwrap();
        place.run(&["undo", "--interrupted"]).expect(0);
        let standing = status(&place);
        assert_eq!(standing.len(), 1, "kill {kill}");
        match standing[0]["run"] == "second" {
            true => {
                assert_eq!(device.settings(), of_second, "kill {kill}");
                let name = standing[0]["name"].as_str().unwrap();
                place.run(&["undo", "--journal", name]).expect(0);
                done += 1;
            }
            false => assert_eq!(device.settings(), of_first, "kill {kill}"),
        }
    }
    println!("killed {KILLS} times, {done} when it was done");
    place.run(&["undo"]).expect(0);
}
