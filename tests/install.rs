//! What a package ships beside the program: its version, completions, manual pages.

use crate::machine::{Ended, Place};
use std::process::Command;

#[test]
fn the_version_says_commit_and_target() {
    let place = Place::new();
    let long = place.run(&["--version"]).expect(0).out;
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines.len(), 3, "{long}");
    assert_eq!(lines[0], format!("spindle {}", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("commit "), "{long}");
    assert!(lines[2].starts_with("built for ") && lines[2].contains("-linux-"), "{long}");
    assert_eq!(place.run(&["-V"]).expect(0).out.trim(), lines[0]);
}

/// What bash would offer for the last of these words.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let ask = format!(
        "source {script}; COMP_WORDS=({}); COMP_CWORD={last}; _spindle spindle '{}' '{}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn completions_offer_what_people_use() {
    let place = Place::new();
    let path = place.path().join("spindle.bash");
    std::fs::write(&path, place.run(&["completions", "bash"]).expect(0).out).unwrap();
    let script = path.to_str().unwrap();
    assert_eq!(offered(script, &["spindle", "comp"]), ["compare", "completions"]);
    assert_eq!(offered(script, &["spindle", "compare", "--schedul"]), ["--schedulers"]);
    let verbs = offered(script, &["spindle", "''"]);
    assert!(verbs.contains(&"inspect".to_owned()), "{verbs:?}");
    for hidden in ["emulate-server", "load-client", "reverse", "documents"] {
        assert!(!verbs.contains(&hidden.to_owned()), "{verbs:?}");
    }
    for shell in ["zsh", "fish"] {
        let script = place.run(&["completions", shell]).expect(0).out;
        assert!(script.contains("recommend") && !script.contains("emulate-server"), "{script}");
    }
    place.run(&["completions", "csh"]).expect(2).complains_of(&["csh", "bash"]);
}

#[test]
fn manual_pages_are_written_where_asked() {
    let place = Place::new();
    let folder = place.scratch();
    place.run(&["documents", "--man", folder.to_str().unwrap()]).expect(0);
    let page = std::fs::read_to_string(folder.join("spindle-compare.1")).unwrap();
    assert!(page.contains("schedulers") && page.contains("EXIT STATUS"), "{page}");
    place
        .run(&["documents", "--man", "/no/such/folder"])
        .expect(1)
        .complains_of(&["/no/such/folder"]);
}

#[test]
fn a_run_that_cannot_be_kept_says_where_it_could_be() {
    let place = Place::new();
    let words = ["compare", "simulated:hdd-15k", "--rounds", "2", "--quiet"];
    let nowhere = place.spindle(&words).env("SPINDLE_STATE", "/proc/none").output().unwrap();
    Ended::of(nowhere).expect(1).complains_of(&["/proc/none", "SPINDLE_STATE", "-o FILE"]);
    let words = [&words[..], &["-o", "/proc/none.spindle"]].concat();
    place.run(&words).expect(1).complains_of(&["/proc/none.spindle", "-o FILE"]);
}
