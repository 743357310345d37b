//! What a test needs of the machine: a folder, a state folder, loop devices that go away again.

use host::{
    ASYNC_DEPTH, Changes, DeviceNumber, Host, LoopDevice, LoopOptions, QueueFolder, Setting,
};
use skipped::{Need, skip};
use std::{path::PathBuf, process::Command};
use tempfile::TempDir;
use units::Bytes;

/// A test's own place, and the changes that it makes; all is put back when it ends.
pub struct Machine {
    // Dropped in this order: first what was made, then the folder that it was made in.
    pub changes: Changes,
    pub host: Host,
    pub folder: TempDir,
}

/// `None`, and why on stderr, where tests on real devices cannot run.
pub fn machine() -> Option<Machine> {
    if !rustix::process::geteuid().is_root() {
        skip(Need::Root, "loop devices and queue settings");
        return None;
    }
    if !PathBuf::from("/dev/loop-control").exists() {
        skip(Need::Loop, "/dev/loop-control (modprobe loop)");
        return None;
    }
    // Not /tmp, which may be memory.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let host = Host::here();
    let changes = Changes::begin_in(&host, &folder.path().join("machine-state"), "test").unwrap();
    Some(Machine { changes, host, folder })
}

impl Machine {
    /// An empty (sparse) file of its own.
    pub fn file(&self, name: &str, size: Bytes) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(size.0).unwrap();
        path
    }

    /// A loop device on an empty file of its own.
    pub fn loop_device(&mut self, name: &str, size: Bytes) -> LoopDevice {
        let file = self.file(name, size);
        let fresh = LoopOptions { added: true, ..LoopOptions::default() };
        self.changes.attach(&file, fresh).unwrap()
    }

    /// A state folder of its own.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}

/// Where this kernel has mq-deadline's async_depth: since 7.0 in the queue.
pub fn async_depth(host: &Host, number: DeviceNumber) -> Setting {
    let queues = QueueFolder::of(host, number).unwrap().read(&Setting::AsyncDepth).is_ok();
    if queues { Setting::AsyncDepth } else { Setting::Tunable(ASYNC_DEPTH.to_owned()) }
}

/// Runs a program and returns what it printed; says so and returns `None` when it is not there.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            skip(Need::Program, &format!("{program}: {error}"));
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
