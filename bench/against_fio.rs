//! Our io_uring engine against fio's, on the same file, in turns.
//!
//!     cargo bench -p load --bench against_fio -- [--dir DIR] [--turns N] [--seconds S]
//!         [--case WORD] [--check]
//!
//! Each turn runs both, in alternating order; a case's figure is the median of the turns' ratios, with
//! the 95 % interval of that median (from order statistics, so that no distribution is assumed), so
//! that what disturbs the machine for a while disturbs both. Many short turns settle more than a few
//! long ones.
//!
//! fio gets the settings that are equivalent to ours: registered file and buffers, submission and
//! completion in batches, no map of blocks already visited, nothing dropped from the page cache,
//! threads. CPU time is that of the client thread over the measured span, by getrusage, for both.
//! `--check` makes a missed promise exit code 1.

use load::{ClientProgram, LayOut, LoadSpec, Target, lay_out, run};
use std::{
    io::{Read, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
};
use units::{Bytes, Nanos};
use workload::{EngineKind, Job, Workload};

type Error = Box<dyn std::error::Error>;

const SIZE: Bytes = Bytes::from_mib(512);
/// What cached cases read: small, so that nothing evicts it between turns.
const CACHED: Bytes = Bytes::from_mib(32);
const WARMUP: Nanos = Nanos::from_millis(100);

/// What is compared, and what is promised of it: at least this ratio of operations a second.
const CASES: [(&str, f64); 6] = [
    ("randread", 0.97),
    ("randread,depth=32", 0.97),
    ("randwrite", 0.97),
    ("randwrite,depth=32", 0.97),
    ("randread,sync=buffered", 1.0),
    ("randread,sync=buffered,depth=32", 1.0),
];

/// What one tool did in one turn.
#[derive(Clone, Copy)]
struct Turn {
    /// Operations a second.
    speed: f64,
    /// CPU time for each.
    cpu_ns: f64,
}

struct Options {
    directory: PathBuf,
    turns: usize,
    measure: Nanos,
    check: bool,
    /// Only cases that contain this.
    case: String,
}

fn main() -> Result<(), Error> {
    let options = options()?;
    let file = ScratchFile(options.directory.join(format!("spindle-bench-{}", std::process::id())));
    let target = Target::new(&file.0, SIZE);
    let never = AtomicBool::new(false);
    lay_out(&LayOut { target: &target, seed: 1, reuse: false }, &mut |_| {}, &never)?;
    println!(
        "{} turns of {} each; ratios are ours to fio's, median (95 % interval)",
        options.turns, options.measure
    );
    println!(
        "{:<32} {:>9} {:>9}  {:<22} {:>8} {:>8}  {:<22}",
        "", "ops/s", "fio", "ratio", "ns/op", "fio", "ratio of CPU"
    );
    let mut kept = true;
    for (job, promise) in CASES.into_iter().filter(|(job, _)| job.contains(&options.case)) {
        kept &= case(job, promise, &target, &options)?;
    }
    match kept || !options.check {
        true => Ok(()),
        false => Err("a promise was missed".into()),
    }
}

fn options() -> Result<Options, Error> {
    let mut options = Options {
        directory: PathBuf::from("/var/tmp"),
        turns: 61,
        measure: Nanos::from_millis(250),
        check: false,
        case: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--dir" => options.directory = value()?.into(),
            "--turns" => options.turns = value()?.parse::<usize>()?.max(1),
            "--seconds" => options.measure = Nanos::from_secs_f64(value()?.parse()?),
            "--case" => options.case = value()?,
            "--check" => options.check = true,
            // cargo bench passes it.
            "--bench" => {}
            other => return Err(format!("'{other}' is not known").into()),
        }
    }
    Ok(options)
}

/// Compares the two in one case and prints a line; whether the promise was kept.
fn case(job: &str, promise: f64, target: &Target, options: &Options) -> Result<bool, Error> {
    let job: Job = job.parse()?;
    let target = &match job.sync.direct {
        true => Target::new(&target.path, target.size),
        false => Target::new(&target.path, CACHED),
    };
    let mut pairs = Vec::new();
    for turn in 0..options.turns {
        if !job.sync.direct {
            // Into the page cache, where these cases are at home.
            let file = std::fs::File::open(&target.path)?;
            std::io::copy(&mut file.take(CACHED.0), &mut std::io::sink())?;
        }
        pairs.push(if turn % 2 == 0 {
            let ours = ours(&job, target, options.measure)?;
            (ours, fios(&job, target, options.measure)?)
        } else {
            let fios = fios(&job, target, options.measure)?;
            (ours(&job, target, options.measure)?, fios)
        });
    }
    let speed = Median::of(pairs.iter().map(|(a, b)| a.speed / b.speed));
    let cpu = Median::of(pairs.iter().map(|(a, b)| a.cpu_ns / b.cpu_ns));
    let outcome = if speed.high < promise || cpu.low > 1.0 {
        "MISSED"
    } else if speed.median >= promise && cpu.median <= 1.0 {
        "kept"
    } else {
        "not settled: more turns"
    };
    let median = |of: fn(&(Turn, Turn)) -> f64| Median::of(pairs.iter().map(of)).median;
    println!(
        "{:<32} {:>9.0} {:>9.0}  {:<22} {:>8.0} {:>8.0}  {:<22} {outcome}",
        job.to_string(),
        median(|(a, _)| a.speed),
        median(|(_, b)| b.speed),
        speed.to_string(),
        median(|(a, _)| a.cpu_ns),
        median(|(_, b)| b.cpu_ns),
        cpu.to_string(),
    );
    Ok(outcome != "MISSED")
}

/// A median with its 95 % interval.
struct Median {
    median: f64,
    low: f64,
    high: f64,
}

impl Median {
    /// The interval's ends are the values whose ranks lie 0.98 √n from the middle: the number of
    /// values below the true median is binomial with p = ½, of standard deviation √n / 2.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = values.collect();
        all.sort_by(f64::total_cmp);
        let last = all.len() - 1;
        let (middle, reach) = (last as f64 / 2.0, 0.98 * (all.len() as f64).sqrt());
        Median {
            median: all[all.len() / 2],
            low: all[(middle - reach).floor().max(0.0) as usize],
            high: all[((middle + reach).ceil() as usize).min(last)],
        }
    }
}

impl std::fmt::Display for Median {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.3} ({:.3} to {:.3})", self.median, self.low, self.high))
    }
}

fn ours(job: &Job, target: &Target, measure: Nanos) -> Result<Turn, Error> {
    let workload = Workload { job: job.clone(), ..Workload::default() };
    let spec = LoadSpec {
        workload: &workload,
        replay: None,
        target,
        engine: EngineKind::IoUring,
        warmup: WARMUP,
        measure,
        tick: Nanos::from_secs(1),
        seed: 1,
        client_program: &ClientProgram::own()?,
    };
    let measurement = run(&spec, &AtomicBool::new(false), &mut |_| {})?;
    let operations = measurement.job.operations() as f64;
    let cpu = measurement.generator.user + measurement.generator.system;
    Ok(Turn {
        speed: operations / measurement.span.as_secs_f64(),
        cpu_ns: cpu.0 as f64 / operations,
    })
}

fn fios(job: &Job, target: &Target, measure: Nanos) -> Result<Turn, Error> {
    let file = format!(
        "[global]\nioengine=io_uring\nregisterfiles=1\nfixedbufs=1\nthread=1\n\
         filename={}\nsize={}\nallow_file_create=0\ntime_based=1\ninvalidate=0\nramp_time={}ms\nruntime={}ms\n\
         norandommap=1\n[job]\nrw={}\nbs={}\ndirect={}\niodepth={depth}\n\
         iodepth_batch_submit={depth}\niodepth_batch_complete_min=1\n\
         iodepth_batch_complete_max={depth}\n",
        target.path.display(),
        target.size.0,
        WARMUP.0 / 1_000_000,
        measure.0 / 1_000_000,
        job.pattern,
        job.block_size.0,
        u8::from(job.sync.direct),
        depth = job.depth,
    );
    let mut child = Command::new("fio")
        .args(["--output-format=json", "--eta=never", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run fio ({error}): apt install fio"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(file.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8(output.stdout)?;
    let start = text.find('{').ok_or("fio printed no results")?;
    let results: serde_json::Value = serde_json::from_str(&text[start..])?;
    let job = &results["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().ok_or("fio's results lack a number");
    let operations = number(&job["read"]["total_ios"])? + number(&job["write"]["total_ios"])?;
    let runtime_ns = number(&job["job_runtime"])? * 1e6;
    let cpu_share = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0;
    Ok(Turn { speed: operations / runtime_ns * 1e9, cpu_ns: runtime_ns * cpu_share / operations })
}

/// Removed at the end, however that comes.
struct ScratchFile(PathBuf);

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
