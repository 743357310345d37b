//! The simulation against itself, against laws, and against formulas.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clients;
mod databases;
mod determinism;
mod memory;
mod oracles;
mod properties;
mod replay;
mod servers;

use blocklayer::{Config, Kernel};
use device::Device;
use record::Measurement;
use simulate::{SimulateError, Simulated, Spec, Stack};
use std::sync::atomic::AtomicBool;
use units::{Nanos, Sectors};
use workload::{Job, Workload};

/// Every kernel level with every scheduler it has.
fn schedulers() -> Vec<(Kernel, &'static str)> {
    let all = Kernel::ALL.into_iter();
    all.flat_map(|kernel| kernel.schedulers().into_iter().map(move |kind| (kernel, kind.name())))
        .collect()
}

/// A trial to be simulated.
struct Trial {
    workload: Workload,
    queue: Config,
    stack: Stack,
    span: Option<Sectors>,
    warmup: Nanos,
    measure: Nanos,
    turnaround: Nanos,
    seed: u64,
}

impl Trial {
    /// Of a job in words, such as `randread,clients=4`, for so many virtual seconds.
    fn of(job: &str, queue: Config, seconds: u64) -> Trial {
        let job: Job = job.parse().unwrap();
        Trial {
            workload: Workload { job, ..Workload::default() },
            queue,
            stack: Stack::default(),
            span: None,
            warmup: Nanos::from_secs(1),
            measure: Nanos::from_secs(seconds),
            turnaround: Nanos::ZERO,
            seed: 1,
        }
    }

    fn run(&self, device: Box<dyn Device>) -> Simulated {
        self.attempt(device).unwrap()
    }

    fn attempt(&self, device: Box<dyn Device>) -> Result<Simulated, SimulateError> {
        let spec = Spec {
            workload: &self.workload,
            queue: &self.queue,
            stack: &self.stack,
            span: self.span.unwrap_or(device.capacity()),
            warmup: self.warmup,
            measure: self.measure,
            turnaround: self.turnaround,
            seed: self.seed,
            replay: None,
            log_requests: 0,
        };
        simulate::run(&spec, device, &AtomicBool::new(false), &mut |_| {})
    }

    fn on_profile(&self, name: &str) -> Simulated {
        self.run(device::profile::find(name).unwrap().build(self.seed).unwrap())
    }
}

/// A counter's mean over the measured seconds.
fn counter(measurement: &Measurement, name: &str) -> f64 {
    let measured: Vec<f64> = measurement
        .counters
        .iter()
        .filter(|sample| sample.at > 0.0)
        .map(|sample| sample.values[name])
        .collect();
    measured.iter().sum::<f64>() / measured.len() as f64
}

#[track_caller]
fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let off = got / expected - 1.0;
    println!("{what}: {got:.5}, expected {expected:.5}: {:+.2} %", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {got} is not {expected} within {tolerance}");
}
