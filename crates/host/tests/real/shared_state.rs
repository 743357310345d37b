//! State folders that are full, or those of several hosts.

use host::{Changes, Host, pending};
use skipped::{Need, skip};
use std::{path::Path, process::Command};
use units::Bytes;

/// A folder in memory that holds so much; unmounted in the end.
struct Small(std::path::PathBuf);

impl Small {
    fn of(point: &Path, size: &str) -> Small {
        std::fs::create_dir(point).unwrap();
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]).arg(point);
        assert!(mount.status().unwrap().success());
        Small(point.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn after_a_disk_was_full_the_next_line_stands_by_itself() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "a filesystem that is full");
    }
    let folder = tempfile::tempdir().unwrap();
    let state = Small::of(&folder.path().join("state"), "16k");
    let mut changes = Changes::begin_in(&Host::here(), &state.0, "fill").unwrap();
    // Beyond the largest process number that Linux gives: there is nothing to end.
    let mut note = || changes.started_process(4_194_305, &"x".repeat(100));
    let filler = state.0.join("filler");
    while std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&filler)
        .is_ok_and(|mut file| std::io::Write::write_all(&mut file, &[0; 4096]).is_ok())
    {}
    let mut lines = 1;
    while note().is_ok() {
        lines += 1;
        assert!(lines < 1000, "the disk never gets full");
    }
    note().unwrap_err();
    std::fs::remove_file(filler).unwrap();
    note().unwrap();
    let reading = host::Reading::of(&std::fs::read(changes.journal()).unwrap());
    assert_eq!((reading.damage, reading.entries.len()), (Vec::new(), lines + 1));
    assert!(changes.finish().unwrap().is_complete());
}

#[test]
fn what_another_host_changed_is_listed_as_its_own_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (root, state) = (folder.path().join("there"), folder.path().join("state"));
    for (file, text) in [
        ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ("proc/sys/kernel/hostname", "db7\n"),
        ("proc/sys/kernel/random/boot_id", "another\n"),
    ] {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let there = Host::at(&root);
    let kept = folder.path().join("kept");
    let mut changes = Changes::begin_in(&there, &state, "spindle compare").unwrap();
    let journal = changes.journal().to_owned();
    std::fs::create_dir(&kept).unwrap();
    changes.scratch_file(&kept, Bytes::from_mib(1), &mut |_| true).unwrap();
    changes.leave_for_undo();
    // Its process would have ended here, and its files are on this host's disk.
    assert!(pending(&state).unwrap().is_empty());
    let reports = host::of_other_hosts(&Host::here(), &state);
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].other_host.as_deref(), Some("db7"));
    assert_eq!((reports[0].kept.as_ref(), reports[0].steps.len()), (Some(&journal), 0));
    assert!(journal.exists() && std::fs::read_dir(&kept).unwrap().count() == 1);
    // There it is one as any other.
    assert!(host::of_other_hosts(&there, &state).is_empty());
}
