//! The runs there are, and how they are pruned: `spindle runs`.

use crate::machine::Place;
use rusqlite::Connection;

fn names(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.state().join("runs")).unwrap();
    let mut names: Vec<String> = files
        .map(|it| it.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Five runs of one figure each, a minute apart, of which the second is not complete.
fn five(place: &Place) {
    let folder = place.state().join("runs");
    std::fs::create_dir_all(&folder).unwrap();
    let first = folder.join("run-0.spindle");
    let words =
        ["compare", "simulated:hdd-15k", "--rounds", "1", "--measure", "1s", "--warmup", "0s"];
    let out = ["--quiet", "--output", first.to_str().unwrap()];
    place.run(&[&words[..], &out].concat()).expect(0);
    for at in 1..5 {
        let path = folder.join(format!("run-{at}.spindle"));
        std::fs::copy(&first, &path).unwrap();
        let file = Connection::open(&path).unwrap();
        let later =
            format!("UPDATE run SET name = 'run-{at}', started_at = started_at + {}", at * 60);
        file.execute(&later, []).unwrap();
        if at == 1 {
            file.execute("UPDATE run SET state = 'interrupted'", []).unwrap();
        }
    }
}

#[test]
fn all_but_the_latest_are_deleted_and_what_can_be_resumed_is_kept() {
    let place = Place::new();
    five(&place);
    let would = place.run(&["runs", "--keep", "2", "--dry-run"]).expect(0);
    assert!(would.out.contains("Would delete run-0, run-2"), "{}", would.out);
    assert_eq!(names(&place).len(), 5);
    let deleted = place.run(&["runs", "--keep", "2"]).expect(0);
    assert!(deleted.out.contains("Deleted run-0, run-2"), "{}", deleted.out);
    assert!(deleted.err.contains("run-1 is kept"), "{}", deleted.err);
    assert_eq!(names(&place), ["run-1", "run-3", "run-4"]);
    let again = place.run(&["runs", "--keep", "2"]).expect(0);
    assert!(again.out.contains("nothing to delete"), "{}", again.out);
}

#[test]
fn what_cannot_be_read_is_kept_and_words_that_make_no_sense_are_refused() {
    let place = Place::new();
    five(&place);
    let folder = place.state().join("runs");
    std::fs::write(folder.join("odd.spindle"), "no run").unwrap();
    place.run(&["runs", "--keep", "0"]).expect(0);
    assert_eq!(names(&place), ["odd", "run-1"]);
    place.run(&["runs", "--dry-run"]).expect(2);
    place.run(&["runs", "--keep", "-1"]).expect(2);
}
