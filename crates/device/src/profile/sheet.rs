//! What a device does: measured on its model, as a small table and plot.

use super::Profile;
use crate::{Completion, Device, Request, SpecError};
use random::Stream;
use serde::Serialize;
use std::fmt;
use units::{Bytes, Nanos};

/// Sequential reading at one place of the device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Zone {
    /// Where, as a share of the capacity.
    pub position: f64,
    /// Megabytes (10⁶) a second.
    pub read_mb_s: f64,
}

/// Random 4 KiB requests at one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Depth {
    /// Outstanding requests.
    pub depth: u32,
    /// Reads a second.
    pub read_iops: f64,
    /// Mean time of a read.
    pub read_mean: Nanos,
    /// Writes a second.
    pub write_iops: f64,
}

/// A device's sheet. Every number is the model's: simulated, not measured on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sheet {
    /// Profile.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Kind.
    pub kind: String,
    /// Capacity.
    pub capacity: Bytes,
    /// Requests it takes at once.
    pub queue_depth: u32,
    /// Sequential reads, from the first to the last sector.
    pub sequential: Vec<Zone>,
    /// Random requests by depth.
    pub random: Vec<Depth>,
}

/// Measures `profile` on its model.
pub fn measure(profile: &Profile, seed: u64) -> Result<Sheet, SpecError> {
    let fresh = || profile.build(seed);
    let device = fresh()?;
    let mut sheet = Sheet {
        name: profile.name.clone(),
        title: profile.title.clone(),
        kind: profile.kind_name(),
        capacity: device.capacity().bytes(),
        queue_depth: device.queue_depth(),
        sequential: Vec::new(),
        random: Vec::new(),
    };
    for step in 0..=4 {
        let position = f64::from(step) / 4.0;
        sheet.sequential.push(Zone { position, read_mb_s: sequential(&mut *fresh()?, position) });
    }
    let (mut reads, mut writes) =
        (Walk::new(fresh()?, seed, false), Walk::new(fresh()?, seed, true));
    writes.fill();
    for depth in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        let (read_iops, read_mean) = reads.measure(depth);
        let (write_iops, _) = writes.measure(depth);
        sheet.random.push(Depth { depth, read_iops, read_mean, write_iops });
    }
    Ok(sheet)
}

/// MB/s of 128 KiB reads, four outstanding, over 64 MiB.
fn sequential(device: &mut dyn Device, position: f64) -> f64 {
    const COUNT: u64 = 256;
    const SPAN: u64 = (64 << 20) / 512;
    let capacity = device.capacity().0;
    let from = (capacity.saturating_sub(SPAN) as f64 * position) as u64 / COUNT * COUNT;
    let requests = (SPAN.min(capacity) / COUNT).max(1);
    let mut done: Vec<Completion> = Vec::new();
    let (mut issued, mut seen, mut end) = (0, 0, Nanos::ZERO);
    while seen < requests {
        while issued < requests && issued - seen < 4 {
            let start = from + issued * COUNT;
            device.submit(Request::read(issued, start, COUNT.min(capacity - start)), end);
            issued += 1;
        }
        let Some(now) = device.next_event() else { break };
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            (seen, end) = (seen + 1, completion.at);
        }
    }
    (seen * COUNT * 512) as f64 / end.as_secs_f64().max(1e-9) / 1e6
}

/// Uniform random 4 KiB requests on one device, in a closed loop whose depth can change.
struct Walk {
    device: Box<dyn Device>,
    stream: Stream,
    write: bool,
    outstanding: u32,
    issued: u64,
    now: Nanos,
    done: Vec<Completion>,
}

impl Walk {
    fn new(device: Box<dyn Device>, seed: u64, write: bool) -> Self {
        let stream = Stream::new(seed, "sheet");
        let done = Vec::new();
        Walk { device, stream, write, outstanding: 0, issued: 0, now: Nanos::ZERO, done }
    }

    /// Runs `count` completions at `depth`; returns their mean time.
    fn run(&mut self, depth: u32, count: u64) -> Nanos {
        let blocks = (self.device.capacity().0 / 8).max(1);
        let (mut seen, mut total) = (0, 0);
        while seen < count {
            while self.outstanding < depth {
                let start = self.stream.below(blocks) * 8;
                let request = match self.write {
                    true => Request::write(self.issued, start, 8),
                    false => Request::read(self.issued, start, 8),
                };
                self.device.submit(request, self.now);
                self.issued += 1;
                self.outstanding += 1;
            }
            let Some(next) = self.device.next_event() else { break };
            self.now = self.now.max(next);
            self.device.advance(self.now, &mut self.done);
            for completion in self.done.drain(..) {
                self.outstanding -= 1;
                seen += 1;
                total += (completion.at - completion.submitted).0;
            }
        }
        Nanos(total / seen.max(1))
    }

    /// Writes until the caches hold no more than before (or are too large to wait for).
    fn fill(&mut self) {
        const ROUND: u64 = 10_000;
        let mut dirty = 0;
        for _ in 0..200 {
            self.run(64, ROUND);
            let now = self.device.view().dirty.0;
            // Less than a tenth of what was written stayed: it leaves as fast as it comes.
            if now < dirty + ROUND * 8 / 10 {
                return;
            }
            dirty = now;
        }
    }

    /// Operations a second and their mean time at `depth`.
    fn measure(&mut self, depth: u32) -> (f64, Nanos) {
        const COUNTED: u64 = 3000;
        self.run(depth, 500 + 2 * u64::from(depth));
        let from = self.now;
        let mean = self.run(depth, COUNTED);
        (COUNTED as f64 / (self.now - from).as_secs_f64().max(1e-9), mean)
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title)?;
        writeln!(
            f,
            "{}, {} ({:.0} GB), takes {} requests at once",
            self.kind,
            self.capacity,
            self.capacity.0 as f64 / 1e9,
            self.queue_depth
        )?;
        writeln!(f, "\nSequential reads, 128 KiB (simulated)")?;
        for zone in &self.sequential {
            writeln!(f, "  at {:>3.0} %  {:>8.1} MB/s", zone.position * 100.0, zone.read_mb_s)?;
        }
        writeln!(f, "\nRandom 4 KiB (simulated)")?;
        writeln!(f, "  depth   reads/s      mean   writes/s   reads")?;
        let most = self.random.iter().map(|row| row.read_iops).fold(1.0, f64::max);
        for row in &self.random {
            let bar = "▇".repeat((row.read_iops / most * 30.0).round() as usize);
            writeln!(
                f,
                "  {:>5} {:>9.0} {:>9} {:>10.0}   {bar}",
                row.depth,
                row.read_iops,
                row.read_mean.to_string(),
                row.write_iops
            )?;
        }
        Ok(())
    }
}
