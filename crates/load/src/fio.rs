//! The program fio as an engine, for those who trust only fio: a child with a job file made from our
//! job ([`job_file`]), whose JSON ([`output`]) becomes a measurement.
//!
//! What differs from our own engines, because fio measures it so: fsync and fdatasync are not part of
//! the write's latency, buckets are 1.6 % wide (so that the error stays under 1 %), the warm-up ends
//! by fio's clock, and several sequential clients each keep to their share of the target.

mod job_file;
mod output;

use crate::clock::{Clock, Monotonic};
use crate::error::{FioProblem, LoadError};
use crate::spec::LoadSpec;
use output::{Document, Reader};
use record::{Measurement, Second, Warning};
use std::{
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, channel},
    },
    thread::JoinHandle,
};
use units::Nanos;
use workload::{AfterWrite, Live, Phase};

const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// fio starts its jobs, ends them and prints; beyond this much more than the time asked, it hangs.
const PATIENCE: Nanos = Nanos::from_secs(60);
/// Between the request to stop and killing.
const GRACE: Nanos = Nanos::from_secs(10);
/// fio's start-up and our noticing of a report may differ by this much.
const MAX_DOUBT: Nanos = Nanos::from_millis(250);
/// Above so many clients, a report a second costs more than the load itself.
const CLIENTS_REPORTED_EACH_SECOND: u32 = 64;

/// Runs fio with the job and reads what it measured.
pub(crate) fn run(
    spec: &LoadSpec,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Live),
) -> Result<Measurement, LoadError> {
    let job = job_file::write(spec)?;
    let clients: u32 = spec.jobs().map(|(_, job)| job.clients).sum();
    let each = clients <= CLIENTS_REPORTED_EACH_SECOND;
    let mut fio = Fio::start(&job, each)?;
    let mut progress = Progress::new(spec);
    let stopped = fio.attend(spec, stop, &mut progress, each_second)?;
    let (status, complaint) = fio.end();
    if stopped && Monotonic.now() <= progress.began + spec.warmup {
        return Err(LoadError::Stopped);
    }
    let failed = |problem| LoadError::Fio { problem, output: tail(&complaint) };
    if !status.success() && !stopped {
        let why = progress.last.as_ref().and_then(Document::failure);
        return Err(failed(why.unwrap_or(FioProblem::Ended(status))));
    }
    let last = progress.last.ok_or_else(|| failed(FioProblem::NoResults))?;
    let mut measurement = last.measurement(spec).map_err(failed)?;
    measurement.seconds = progress.seconds;
    let span = measurement.span;
    if stopped {
        measurement.warnings.push(Warning::StoppedEarly { measured: span, planned: spec.measure });
    }
    crate::result::warn_of_saturation(&measurement.generator, span, &mut measurement.warnings);
    if spec.jobs().any(|(_, job)| job.sync.after != AfterWrite::None && job.pattern.writes()) {
        measurement.warnings.push(Warning::SyncsReportedApart);
    }
    if !each {
        measurement.warnings.push(Warning::NoFiguresPerSecond { clients });
    }
    Ok(measurement)
}

/// Whether the installed fio has an option.
///
/// # Errors
///
/// fio is not installed, or cannot be run.
pub fn fio_takes(option: &str) -> Result<bool, LoadError> {
    let output = Command::new("fio").arg(format!("--cmdhelp={option}")).process_group(0).output();
    let output = output.map_err(Fio::not_run)?;
    // Versions differ in their exit code for what they do not know: 3.33 complains and ends with 0.
    let said = [output.stdout, output.stderr].concat();
    Ok(!String::from_utf8_lossy(&said).contains("No such command"))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// A running fio.
struct Fio {
    child: Child,
    documents: Receiver<Document>,
    reading: JoinHandle<()>,
    complaining: JoinHandle<String>,
}

impl Fio {
    fn not_run(error: std::io::Error) -> LoadError {
        match error.kind() {
            std::io::ErrorKind::NotFound => LoadError::NoFio,
            _ => LoadError::Fio {
                problem: FioProblem::NotRun(error.to_string()),
                output: String::new(),
            },
        }
    }

    fn start(job: &str, each_second: bool) -> Result<Self, LoadError> {
        let failed = Fio::not_run;
        let mut command = Command::new("fio");
        command.args(["--output-format=json+", "--eta=never"]);
        if each_second {
            command.arg("--status-interval=1");
        }
        command
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that Ctrl-C reaches us alone and fio is stopped in good order.
            .process_group(0);
        // SAFETY: one system call between fork and exec. It dies with the thread that runs it.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // Should fio have ended already, its own words say why.
            let _ = stdin.write_all(job.as_bytes());
        }
        let (sender, documents) = channel();
        let stdout = child.stdout.take();
        let reading = std::thread::spawn(move || {
            if let Some(stdout) = stdout {
                Reader::new(stdout).for_each(|document| {
                    let _ = sender.send(document);
                });
            }
        });
        let stderr = child.stderr.take();
        let complaining = std::thread::spawn(move || read_all(stderr));
        Ok(Fio { child, documents, reading, complaining })
    }

    /// Watches it until it has ended; returns whether it was stopped.
    fn attend(
        &mut self,
        spec: &LoadSpec,
        stop: &AtomicBool,
        progress: &mut Progress,
        each_second: &mut dyn FnMut(&Live),
    ) -> Result<bool, LoadError> {
        let deadline = progress.began + spec.warmup + spec.measure + PATIENCE;
        let mut stopped: Option<Nanos> = None;
        loop {
            while let Ok(document) = self.documents.try_recv() {
                progress.take(document);
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                // What it printed at the end may not have been read yet.
                while let Ok(document) = self.documents.recv_timeout(GRACE.as_duration()) {
                    progress.take(document);
                }
                return Ok(stopped.is_some());
            }
            let now = Monotonic.now();
            progress.tick(now, each_second);
            match stopped {
                None if stop.load(Relaxed) => {
                    self.signal(libc::SIGINT);
                    stopped = Some(now);
                }
                Some(since) if now > since + GRACE => self.signal(libc::SIGKILL),
                None if now > deadline => {
                    self.signal(libc::SIGKILL);
                    return Err(LoadError::Hung {
                        path: spec.target.path.clone(),
                        waited: PATIENCE,
                    });
                }
                _ => {}
            }
            std::thread::sleep(LOOK_EVERY.as_duration());
        }
    }

    /// To fio and, with SIGKILL, the processes it made.
    fn signal(&self, signal: i32) {
        let pid = self.child.id() as i32;
        let target = if signal == libc::SIGKILL { -pid } else { pid };
        // SAFETY: integers only; the child was not waited for, so the id is still its own.
        unsafe { libc::kill(target, signal) };
    }

    fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap_or_default();
        let _ = self.reading.join();
        (status, self.complaining.join().unwrap_or_default())
    }
}

fn read_all(stderr: Option<ChildStderr>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stderr) = stderr {
        let _ = stderr.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What fio has reported so far.
struct Progress {
    began: Nanos,
    warmup: Nanos,
    measuring: bool,
    last: Option<Document>,
    seconds: Vec<Second>,
    next_tick: Nanos,
    live: Option<Second>,
}

impl Progress {
    fn new(spec: &LoadSpec) -> Self {
        let began = Monotonic.now();
        Progress {
            began,
            warmup: spec.warmup,
            measuring: spec.warmup == Nanos::ZERO,
            last: None,
            seconds: Vec::new(),
            next_tick: began + Nanos::from_secs(1),
            live: None,
        }
    }

    /// fio resets its counts when the warm-up ends: a report is of the warm-up as long as it
    /// speaks of more time than has passed since then.
    fn take(&mut self, document: Document) {
        let since_warmup = Monotonic.now().saturating_sub(self.began + self.warmup);
        let doubt = MAX_DOUBT.min(self.warmup / 2);
        let measuring = self.measuring || document.runtime() <= since_warmup + doubt;
        let reset = measuring != self.measuring;
        self.measuring = measuring;
        let before = self.last.as_ref().filter(|_| !reset);
        if let Some(mut second) = document.second_since(before) {
            if !self.measuring {
                second.at = (second.at - self.warmup.as_secs_f64()).min(0.0);
            }
            self.live = Some(second);
            self.seconds.push(second);
        }
        self.last = Some(document);
    }

    /// Calls the caller once a second, whatever fio does, with fio's latest figures.
    fn tick(&mut self, now: Nanos, each_second: &mut dyn FnMut(&Live)) {
        if now < self.next_tick {
            return;
        }
        self.next_tick += Nanos::from_secs(1);
        let at = (now - self.began).as_secs_f64() - self.warmup.as_secs_f64();
        let live = self.live.unwrap_or_default();
        each_second(&Live {
            at,
            phase: if at < 0.5 { Phase::WarmUp } else { Phase::Measuring },
            operations_per_second: (live.reads + live.writes) as f64,
            bytes_per_second: live.bytes.0 as f64,
            p99: live.p99,
        });
    }
}
