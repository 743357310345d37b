//! Laying files out.

use crate::place::{Loop, directory, root};
use load::{LaidOut, LayOut, LoadError, Target, lay_out};
use std::{
    collections::HashSet,
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use units::Bytes;

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn a_file_is_written_whole_with_data_that_does_not_compress() {
    let directory = directory();
    // Not a multiple of a mebibyte, nor of a sector.
    let target = Target::new(directory.path().join("file"), Bytes((3 << 20) + 1000));
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    let mut told = Vec::new();
    let done = lay_out(&plan, &mut |bytes| told.push(bytes), &NEVER).unwrap();
    assert_eq!(done, LaidOut::Written);
    assert_eq!(told.last(), Some(&target.size));
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]));
    let data = fs::read(&target.path).unwrap();
    assert_eq!(data.len() as u64, target.size.0);
    let sectors: HashSet<&[u8]> = data.chunks(512).collect();
    assert_eq!(sectors.len(), data.len().div_ceil(512));
    assert!(fs::metadata(&target.path).unwrap().blocks() * 512 >= target.size.0, "no holes");

    let refused = lay_out(&plan, &mut |_| {}, &NEVER).unwrap_err().to_string();
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(fs::read(&target.path).unwrap(), data, "and is untouched");
    let again = LayOut { reuse: true, ..plan };
    assert_eq!(lay_out(&again, &mut |_| {}, &NEVER).unwrap(), LaidOut::Reused);
    // A hole, as an interrupted earlier attempt leaves one.
    File::create(&target.path).unwrap().set_len(target.size.0).unwrap();
    assert_eq!(lay_out(&again, &mut |_| {}, &NEVER).unwrap(), LaidOut::Written);
    assert_eq!(fs::read(&target.path).unwrap(), data, "the same seed gives the same data");
}

#[test]
fn a_device_is_laid_out_in_its_span_alone() {
    if !root("a loop device") {
        return;
    }
    let directory = directory();
    let device = Loop::new(directory.path(), Bytes::from_mib(8), 512);
    let target = Target::new(&device.path, Bytes::from_mib(3));
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    assert_eq!(lay_out(&plan, &mut |_| {}, &NEVER).unwrap(), LaidOut::Written);
    let data = fs::read(&device.path).unwrap();
    let (inside, beyond) = data.split_at(3 << 20);
    let sectors: HashSet<&[u8]> = inside.chunks(512).collect();
    assert_eq!(sectors.len(), inside.len() / 512);
    assert!(beyond.len() == 5 << 20 && beyond.iter().all(|byte| *byte == 0));
    let again = LayOut { reuse: true, ..plan };
    assert_eq!(lay_out(&again, &mut |_| panic!("wrote"), &NEVER).unwrap(), LaidOut::Reused);
    let larger = Target::new(&device.path, Bytes::from_mib(9));
    let message = lay_out(&LayOut { target: &larger, ..plan }, &mut |_| {}, &NEVER).unwrap_err();
    assert!(message.to_string().contains("has only 8 MiB"), "{message}");
}

#[test]
fn stopping_leaves_nothing() {
    let directory = directory();
    let target = Target::new(directory.path().join("file"), Bytes::from_mib(64));
    let stop = AtomicBool::new(false);
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    let outcome = lay_out(&plan, &mut |_| stop.store(true, Relaxed), &stop);
    assert!(matches!(outcome, Err(LoadError::Stopped)));
    assert!(!target.path.exists());
}

#[test]
fn too_little_space_is_found_before_anything_is_written() {
    let directory = directory();
    let target = Target::new(directory.path().join("file"), Bytes::from_gib(1 << 20));
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    let outcome = lay_out(&plan, &mut |_| panic!("wrote"), &NEVER);
    assert!(matches!(outcome, Err(LoadError::NoSpace { .. })), "{outcome:?}");
    assert!(!target.path.exists());
}

#[test]
fn a_disk_that_becomes_full_in_the_middle_is_survived() {
    if !root("a filesystem of its own") {
        return;
    }
    let directory = directory();
    let small = Mounted::new(directory.path(), Bytes::from_mib(200));
    let target = Target::new(small.0.join("file"), Bytes::from_mib(80));
    let plan = LayOut { target: &target, seed: 1, reuse: false };
    let filler = small.0.join("filler");
    let outcome = lay_out(
        &plan,
        &mut |written| {
            if written == Bytes::from_mib(40) {
                // Somebody else takes all the rest.
                let mut file = File::create(&filler).unwrap();
                let _ = std::io::copy(&mut std::io::repeat(1), &mut file);
            }
        },
        &NEVER,
    );
    match outcome {
        Err(LoadError::Full { written, removed, .. }) => {
            assert!((Bytes::from_mib(40)..Bytes::from_mib(80)).contains(&written), "{written}");
            assert!(removed);
        }
        other => panic!("{other:?}"),
    }
    assert!(!target.path.exists(), "the unfinished file is gone");
    assert!(filler.exists(), "nobody else's is");
}

/// An ext4 filesystem in a file, unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(directory: &Path, size: Bytes) -> Self {
        let image = directory.join("image");
        File::create(&image).unwrap().set_len(size.0).unwrap();
        let point = directory.join("mounted");
        fs::create_dir(&point).unwrap();
        let run = |command: &mut Command| assert!(command.status().unwrap().success());
        run(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point));
        Mounted(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = || Command::new("umount").arg(&self.0).status().is_ok_and(|s| s.success());
        // A process that another test forked may hold a file open until it has closed it.
        if !(0..50).any(|_| {
            unmounted() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        }) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}
