//! Writes made durable one at a time: in place and appended, by several writers, stopped, refused.

use crate::place::{directory, laid_out};
use load::{CommitSpec, LoadError, Place, Target, commits, settle};
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};
use units::{Bytes, Nanos};

const FILE: Bytes = Bytes::from_mib(1);

fn spec<'a>(files: &'a [Target], place: Place, sync: &str) -> CommitSpec<'a> {
    CommitSpec {
        files,
        place,
        block: Bytes::from_kib(4),
        sync: sync.parse().unwrap(),
        time: Nanos::from_millis(200),
        writes_max: 300,
        seed: 1,
    }
}

#[test]
fn in_place_nothing_grows_and_every_block_changes() {
    let folder = directory();
    let files = [laid_out(folder.path(), FILE)];
    let file = files[0].path.clone();
    let before = fs::read(&file).unwrap();
    let spec =
        CommitSpec { time: Nanos::from_secs(30), ..spec(&files, Place::InPlace(FILE), "buffered") };
    let done = commits(&spec, &AtomicBool::new(false)).unwrap();
    settle(&spec).unwrap();
    assert_eq!(done.times.len(), 300, "the most that was asked for");
    assert!(done.per_second > 0.0 && done.times.iter().all(|time| *time > Nanos::ZERO));
    let after = fs::read(&file).unwrap();
    assert_eq!(after.len() as u64, FILE.0);
    let same = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0, "300 blocks of 4 KiB pass the end of 1 MiB and begin again");
}

#[test]
fn appended_files_grow_up_to_their_limit_and_are_emptied() {
    let folder = directory();
    let files: Vec<Target> = (0..4)
        .map(|number| Target::new(folder.path().join(format!("log-{number}")), Bytes::ZERO))
        .collect();
    files.iter().for_each(|file| drop(fs::File::create(&file.path).unwrap()));
    let limit = Place::Appended(Bytes::from_kib(64));
    let spec = CommitSpec { time: Nanos::from_secs(60), ..spec(&files, limit, "fdatasync") };
    let done = commits(&spec, &AtomicBool::new(false)).unwrap();
    assert_eq!(done.times.len(), 4 * 16, "four writers, 16 blocks each");
    let lengths = || files.iter().map(|file| fs::metadata(&file.path).unwrap().len());
    assert!(lengths().all(|length| length == 64 << 10));
    settle(&spec).unwrap();
    assert!(lengths().all(|length| length == 0));
}

#[test]
fn one_write_is_made_however_short_the_time() {
    let folder = directory();
    let files = [laid_out(folder.path(), FILE)];
    let spec = CommitSpec { time: Nanos(1), ..spec(&files, Place::InPlace(FILE), "fsync") };
    assert_eq!(commits(&spec, &AtomicBool::new(false)).unwrap().times.len(), 1);
}

#[test]
fn a_stop_and_a_missing_file_end_all_writers() {
    let folder = directory();
    let files = [laid_out(folder.path(), FILE), Target::new(folder.path().join("missing"), FILE)];
    let stop = AtomicBool::new(true);
    let one = spec(&files[..1], Place::InPlace(FILE), "odsync");
    assert!(matches!(commits(&one, &stop), Err(LoadError::Stopped)));
    stop.store(false, Ordering::Relaxed);
    let both = spec(&files, Place::InPlace(FILE), "odsync");
    let error = commits(&both, &stop).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}
