//! RWF_DONTCACHE: what is read with it does not stay in the page cache, and on XFS nor does what is written.

use crate::place::{directory, laid_out, trial};
use load::{Target, takes_dont_cache};
use skipped::{Need, skip};
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use units::{Bytes, Nanos};
use workload::EngineKind;

const FILE: Bytes = Bytes::from_mib(16);

/// Bytes of a file that are in the page cache.
fn cached(file: &Path) -> Option<u64> {
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--raw", "--output", "RES"])
        .arg(file)
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Which part of the file is in the page cache after a trial.
fn share_cached(target: &Target, engine: EngineKind, pattern: &str, sync: &str) -> f64 {
    load::forget_cached(target).unwrap();
    let job = format!("{pattern},block_size=16k,sync={sync}");
    let measurement = trial(&job, engine).run(target).unwrap();
    assert!(measurement.job.reads.operations + measurement.job.writes.operations > 100);
    // Pages go when write-back has ended: that may be a moment later.
    let left = (0..20).map(|_| {
        std::thread::sleep(Nanos::from_millis(50).as_duration());
        cached(&target.path).unwrap()
    });
    left.min().unwrap() as f64 / FILE.0 as f64
}

#[track_caller]
fn leaves_nothing(target: &Target, pattern: &str) {
    for engine in [EngineKind::Sync, EngineKind::IoUring] {
        let share = |sync: &str| share_cached(target, engine, pattern, sync);
        let (buffered, dropped) = (share("buffered"), share("dontcache"));
        assert!(dropped < buffered / 4.0, "{engine} {pattern}: {dropped} and {buffered}");
    }
}

/// Whether a folder can be used for these tests.
fn can_be_seen(folder: &Path) -> bool {
    if !takes_dont_cache(folder).unwrap() {
        skip(Need::Kernel, "RWF_DONTCACHE (Linux 6.14) on the filesystem of /var/tmp");
        return false;
    }
    let file = folder.join("seen");
    std::fs::write(&file, [0; 4096]).unwrap();
    let seen = cached(&file).is_some();
    std::fs::remove_file(file).unwrap();
    if !seen {
        skip(Need::Program, "fincore");
    }
    seen
}

#[test]
fn reads_leave_nothing_in_the_page_cache() {
    let folder = directory();
    if can_be_seen(folder.path()) {
        // Some thousand reads of so small a file look sequential by chance, and what is then read ahead stays
        // until somebody reads it.
        leaves_nothing(&laid_out(folder.path(), FILE), "randread,rate=fixed:1000/s");
    }
}

/// On XFS: ext4 of Linux 6.18 keeps what is written.
#[test]
fn writes_leave_nothing_in_the_page_cache_of_xfs() {
    let folder = directory();
    let Some(xfs) = Xfs::mount(folder.path()) else {
        skip(Need::Program, "mkfs.xfs, and root to mount it");
        return;
    };
    if can_be_seen(&xfs.0) {
        leaves_nothing(&laid_out(&xfs.0, FILE), "randwrite");
    }
}

/// A mounted filesystem of our own, on a file.
struct Xfs(PathBuf);

impl Xfs {
    fn mount(folder: &Path) -> Option<Xfs> {
        let (image, point) = (folder.join("image"), folder.join("mounted"));
        std::fs::File::create(&image).unwrap().set_len(320 << 20).unwrap();
        std::fs::create_dir(&point).unwrap();
        let made = Command::new("mkfs.xfs").arg("-q").arg(&image).output();
        made.ok().filter(|output| output.status.success())?;
        let mounted =
            Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point).output().unwrap();
        mounted.status.success().then_some(Xfs(point))
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        // The kernel lets go of a ring's file a moment after its end.
        for _ in 0..40 {
            let ended = Command::new("umount").arg(&self.0).output();
            if ended.is_ok_and(|output| output.status.success()) {
                return;
            }
            std::thread::sleep(Nanos::from_millis(50).as_duration());
        }
    }
}

#[test]
fn memory_does_not_take_it() {
    let Ok(takes) = takes_dont_cache(Path::new("/dev/shm")) else {
        skip(Need::Kernel, "a tmpfs at /dev/shm");
        return;
    };
    assert!(!takes, "tmpfs has no RWF_DONTCACHE");
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let target = laid_out(folder.path(), Bytes::from_mib(1));
    let job = "randwrite,sync=dontcache";
    let error = trial(job, EngineKind::Sync).run(&target).unwrap_err().to_string();
    assert!(error.contains("RWF_DONTCACHE") && error.contains("6.14"), "{error}");
}
