//! A run file that somebody changed: a whole file where the input begins like one, else choices of what to change in
//! files that older versions of the program wrote.

#![no_main]

use fuzz::run_file::{change, read_through};
use libfuzzer_sys::fuzz_target;
use record::{Run, Store};
use std::{path::Path, sync::OnceLock};

const FILES: [&[u8]; 5] = [
    include_bytes!("../../crates/record/samples/version-1.run"),
    include_bytes!("../../crates/record/samples/version-2.run"),
    include_bytes!("../../crates/record/samples/version-3.run"),
    include_bytes!("../../crates/record/samples/version-4.run"),
    include_bytes!("../../crates/record/samples/version-5.run"),
];

static OTHER: OnceLock<Run> = OnceLock::new();

fn other(path: &Path) -> Run {
    std::fs::write(path, FILES[4]).expect("a place for files");
    Store::open(path).and_then(|store| store.read()).expect("a file of this version")
}

fuzz_target!(|input: &[u8]| {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("run.spindle");
    let other = OTHER.get_or_init(|| other(&path));
    let mut bytes = input.iter();
    let mut choose = |below: u64| {
        let number = bytes.by_ref().take(2).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        number % below.max(1)
    };
    let is_file = input.starts_with(b"SQLite format 3");
    let base = if is_file { input } else { FILES[choose(5) as usize] };
    std::fs::write(&path, base).expect("a place for files");
    if !is_file {
        change(&path, &mut choose);
    }
    fuzz::bounded(input, || {
        read_through(&path, other, &mut |_| 0);
    });
});
