//! This machine as the tests use it: the program, state of its own, loop devices of its own.

use skipped::{Need, skip};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

/// Tests run side by side, but those whose time is looked at run alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test's share of the machine.
#[allow(dead_code, reason = "held for as long as the test runs")]
enum Share {
    Some(RwLockReadGuard<'static, ()>),
    Whole(RwLockWriteGuard<'static, ()>),
}

/// A folder for one test: state, scratch, files; removed in the end. One at a time in each test.
pub struct Place {
    folder: tempfile::TempDir,
    _share: Share,
}

/// What a comparison says when others kept it from the processors.
const TOO_BUSY: &str = "too busy to keep the model's time";
/// Turns that a test whose time is looked at gets on a busy machine.
const TURNS: usize = 3;

impl Place {
    /// On the disk, because O_DIRECT and loop devices want a real filesystem.
    pub fn new() -> Place {
        Place::with(Share::Some(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// With no other test beside it.
    pub fn alone() -> Place {
        assert!(
            std::env::var_os("SPINDLE_TEST_BESIDE_OTHERS").is_none(),
            "tools/test runs this test beside others: it needs a line 'alone' in tests/tiers"
        );
        Place::with(Share::Whole(MACHINE.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn with(share: Share) -> Place {
        let folder = tempfile::Builder::new().prefix("spindle-test-").tempdir_in("/var/tmp");
        Place { folder: folder.unwrap(), _share: share }
    }

    /// Runs the program to its end, and again where somebody else kept the machine too busy for it:
    /// it ends for that, or reports that it can say nothing.
    pub fn run_in_time(&self, words: &[&str]) -> Ended {
        let mut ended = self.run(words);
        for turn in 2..=TURNS {
            // Reports are broken into lines.
            let report = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
            let reason = match report.contains("Nothing can be said") {
                true => format!("{}{report}", ended.err),
                false => ended.err.clone(),
            };
            if !reason.contains(TOO_BUSY) {
                break;
            }
            eprintln!("turn {turn} of {TURNS}, because: {reason}");
            ended = self.run(words);
        }
        ended
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// A folder to measure in.
    pub fn scratch(&self) -> PathBuf {
        let folder = self.path().join("scratch");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The program with this place's state.
    pub fn spindle(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command.args(words).env("SPINDLE_STATE", self.state()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, words: &[&str]) -> Ended {
        Ended::of(self.spindle(words).output().unwrap())
    }

    /// A file of `mib` mebibytes of zeroes behind a loop device.
    pub fn loop_device(&self, name: &str, mib: u64) -> Loop {
        let file = self.path().join(name);
        std::fs::File::create(&file).unwrap().set_len(mib << 20).unwrap();
        Loop::attach(&file, &[])
    }
}

impl Drop for Place {
    /// A test that fails leaves neither devices nor settings behind.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for words in [["emulate", "stop", "all"].as_slice(), &["undo", "--interrupted"]] {
                let _ = self.spindle(words).output();
            }
        }
    }
}

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It ended with this code; else the test shows what it said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Its complaint has all these words.
    #[track_caller]
    pub fn complains_of(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.err.contains(word), "no '{word}' in:\n{}", self.err);
        }
        self
    }
}

/// An attached loop device; detached in the end.
pub struct Loop {
    pub node: PathBuf,
    pub name: String,
    /// Its settings when it was attached: they outlive it.
    before: Vec<(String, String)>,
}

impl Loop {
    pub fn attach(file: &Path, options: &[&str]) -> Loop {
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .args(options)
            .arg(file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let node = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let name = node.file_name().unwrap().to_string_lossy().into_owned();
        let mut device = Loop { node, name, before: Vec::new() };
        device.before = device.settings();
        // As a device is that nobody has used yet.
        let fresh = ["scheduler none", "nr_requests 128", "read_ahead_kb 128", "nomerges 0"];
        for (name, value) in fresh.iter().filter_map(|it| it.split_once(' ')) {
            device.set(name, value);
        }
        device
    }

    fn queue(&self, setting: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/{}/queue/{setting}", self.name))
    }

    pub fn set(&self, setting: &str, value: &str) {
        std::fs::write(self.queue(setting), value)
            .unwrap_or_else(|error| panic!("{setting} {value}: {error}"));
    }

    /// Every setting that a comparison may touch, as the kernel shows it.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut names: Vec<String> = [
            "scheduler",
            "nr_requests",
            "async_depth",
            "wbt_lat_usec",
            "read_ahead_kb",
            "nomerges",
            "rq_affinity",
        ]
        .map(str::to_owned)
        .into();
        if let Ok(entries) = std::fs::read_dir(self.queue("iosched")) {
            let mut tunables: Vec<String> = entries
                .map(|entry| format!("iosched/{}", entry.unwrap().file_name().to_string_lossy()))
                .collect();
            tunables.sort();
            names.extend(tunables);
        }
        names
            .into_iter()
            .map(|name| {
                let value = std::fs::read_to_string(self.queue(&name)).unwrap_or_default();
                (name, value.trim().to_owned())
            })
            .collect()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // The scheduler comes first, which resets others; it reads `none [mq-deadline]`.
        for (name, value) in &self.before {
            let current = value.split_whitespace().find_map(|word| word.strip_prefix('['));
            let value = current.map_or(value.as_str(), |word| word.trim_end_matches(']'));
            let _ = std::fs::write(self.queue(name), value);
        }
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

/// Unmounts. The kernel lets go of a dead program's rings, and of the files in them, a moment after
/// its end: until then the filesystem is busy.
#[track_caller]
pub fn unmount(point: &str) {
    for _ in 0..40 {
        let output = Command::new("umount").arg(point).output().unwrap();
        if output.status.success() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{point} stays busy for two seconds");
}

/// At how many random moments a program is killed: ten, or what SPINDLE_KILLS says (`make nightly`: 200).
pub fn kills() -> u32 {
    std::env::var("SPINDLE_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// The moment of a kill among all: somewhere in its own part of `longest`, so that even ten moments cover all of it.
pub fn moment(kill: u32, longest: Duration, stream: &mut random::Stream) -> Duration {
    let part = longest / kills();
    let within = stream.below(u64::try_from(part.as_micros()).unwrap().max(1));
    part * kill + Duration::from_micros(within)
}

/// A buffer at an address that direct I/O takes.
pub fn aligned(storage: &mut Vec<u8>, length: usize) -> &mut [u8] {
    storage.resize(length + 4096, 0);
    let begin = storage.as_ptr().align_offset(4096);
    &mut storage[begin..begin + length]
}

/// Whether this test can have loop devices.
pub fn has_loop_devices() -> bool {
    if !rustix::process::getuid().is_root() {
        skip(Need::Root, "loop devices");
        return false;
    }
    let has = Path::new("/dev/loop-control").exists();
    if !has {
        skip(Need::Loop, "/dev/loop-control");
    }
    has
}

/// Whether this test can have emulated devices.
pub fn can_emulate() -> bool {
    if !Path::new("/dev/fuse").exists() {
        skip(Need::Fuse, "/dev/fuse");
        return false;
    }
    has_loop_devices()
}

/// The program as a user without privileges, with a folder of that user's own.
pub struct Nobody {
    folder: tempfile::TempDir,
    _place: Place,
}

/// The user and group `nobody`.
pub const NOBODY: u32 = 65534;

impl Nobody {
    /// Root gives itself up; nobody else can.
    pub fn new() -> Option<Nobody> {
        if !rustix::process::getuid().is_root() {
            skip(Need::Root, "it is given up");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("spindle-nobody-").tempdir_in("/var/tmp");
        let folder = folder.unwrap();
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        // The program lies where others may not look: a copy they may.
        std::fs::copy(env!("CARGO_BIN_EXE_spindle"), folder.path().join("spindle")).unwrap();
        Some(Nobody { folder, _place: Place::new() })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Run files that there are.
    pub fn runs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("state/runs"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    pub fn run(&self, words: &[&str]) -> Ended {
        let output = Command::new("setpriv")
            .arg(format!("--reuid={NOBODY}"))
            .arg(format!("--regid={NOBODY}"))
            .arg("--clear-groups")
            .arg(self.folder.path().join("spindle"))
            .args(words)
            .env("SPINDLE_STATE", self.folder.path().join("state"))
            .stdin(Stdio::null())
            .output();
        Ended::of(output.unwrap())
    }
}

/// Unmounted in the end, however the test ends; before its loop device goes.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// The filesystem of a device, on a folder that is made for it.
    pub fn of(device: &Loop, point: PathBuf) -> Mounted {
        std::fs::create_dir(&point).unwrap();
        let mounted = Command::new("mount").arg(&device.node).arg(&point).status().unwrap();
        assert!(mounted.success());
        Mounted(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        } else {
            unmount(self.0.to_str().unwrap());
        }
    }
}
