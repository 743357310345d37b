//! Places to put load on: scratch files, and loop devices that are gone when they are dropped.

use load::{ClientProgram, LayOut, LoadError, LoadSpec, Target, lay_out, run};
use record::Measurement;
use skipped::{Need, skip};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
};
use tempfile::TempDir;
use units::{Bytes, Nanos};
use workload::Live;
use workload::{EngineKind, Workload};

pub fn directory() -> TempDir {
    tempfile::Builder::new().prefix("spindle-load-").tempdir_in("/var/tmp").unwrap()
}

/// A file of `size`, laid out.
pub fn laid_out(directory: &Path, size: Bytes) -> Target {
    let target = Target::new(directory.join("file"), size);
    let never = AtomicBool::new(false);
    lay_out(&LayOut { target: &target, seed: 1, reuse: false }, &mut |_| {}, &never).unwrap();
    target
}

/// A short trial without warm-up.
pub struct Trial<'a> {
    pub job: &'a str,
    pub background: Option<&'a str>,
    pub engine: EngineKind,
    pub warmup: Nanos,
    pub measure: Nanos,
}

pub fn trial(job: &str, engine: EngineKind) -> Trial<'_> {
    let measure = Nanos::from_millis(300);
    Trial { job, background: None, engine, warmup: Nanos::ZERO, measure }
}

impl Trial<'_> {
    pub fn run(&self, target: &Target) -> Result<Measurement, LoadError> {
        self.run_with(target, &AtomicBool::new(false), &mut |_| {})
    }

    pub fn run_with(
        &self,
        target: &Target,
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Live),
    ) -> Result<Measurement, LoadError> {
        let workload = Workload {
            job: self.job.parse().unwrap(),
            background: self.background.map(|job| job.parse().unwrap()),
            ..Workload::default()
        };
        let spec = LoadSpec {
            workload: &workload,
            replay: None,
            target,
            engine: self.engine,
            warmup: self.warmup,
            measure: self.measure,
            tick: Nanos::from_secs(1),
            seed: 7,
            client_program: &client_program(),
        };
        run(&spec, stop, each_second)
    }
}

/// This program, started again to run one test alone.
fn client_program() -> ClientProgram {
    let arguments = ["place::client_process", "--exact", "--ignored"];
    ClientProgram {
        program: std::env::current_exe().unwrap(),
        arguments: arguments.map(str::to_owned).into(),
    }
}

/// Not a test of its own: what clients that are processes run.
#[test]
#[ignore = "started by other tests"]
fn client_process() {
    load::serve_client().unwrap();
}

/// Whether this is root; says what is skipped if not.
pub fn root(what: &str) -> bool {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skip(Need::Root, what);
    }
    root
}

/// A loop device with direct I/O on a sparse file.
pub struct Loop {
    pub path: PathBuf,
    pub backing: PathBuf,
}

impl Loop {
    pub fn new(directory: &Path, size: Bytes, sector: u32) -> Self {
        let backing = directory.join("backing");
        File::create(&backing).unwrap().set_len(size.0).unwrap();
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on", "--sector-size", &sector.to_string()])
            .arg(&backing)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        Loop { path, backing }
    }

    /// Makes every operation on the device fail, by taking its size away.
    pub fn vanish(&self) {
        File::options().write(true).open(&self.backing).unwrap().set_len(0).unwrap();
        let resized = Command::new("losetup").arg("-c").arg(&self.path).status();
        assert!(resized.unwrap().success());
    }

    /// The device's own counts of sectors read and written, and flushes (block/stat).
    pub fn counters(&self) -> [u64; 3] {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<u64> =
            text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        [fields[2], fields[6], fields[15]]
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}
