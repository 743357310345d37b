//! `spindle record`.

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    say,
};
use anyhow::Context;
use clap::Args;
use host::{BlockDevice, BlockTrace, Chain, Changes, Host};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use trace::{BlockEvent, event_of_line, write_event, write_lost};
use units::{Bytes, Nanos};

/// The flags of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The block device, or a file or directory on it
    target: PathBuf,
    /// How long
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    length: Nanos,
    /// The trace's file, in blktrace's binary form; it must not exist. Best not on the same device
    #[arg(long, short = 'o', value_name = "FILE", default_value = "trace.blktrace")]
    output: PathBuf,
    /// Buffer for each CPU; events that do not fit it are lost and counted
    #[arg(long, value_name = "SIZE", default_value = "4M")]
    buffer: Bytes,
}

/// How long the kernel's buffers fill before they are read: most of the cost is in waking up.
const PATIENCE: Duration = Duration::from_millis(100);

impl RecordArgs {
    /// Records.
    pub fn run(self) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
        let host = Host::here();
        let device = device(&host, &self.target)?;
        let file = File::create_new(&self.output)
            .with_context(|| format!("cannot make {}", self.output.display()))?;
        let recorded = self.record(&host, &device, file, &stop);
        let Ok(recorded) = recorded else {
            // It holds nothing.
            let _ = std::fs::remove_file(&self.output);
            return recorded.map(|_| Exit::Failed);
        };
        self.report(&device, &recorded)?;
        Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Done })
    }

    fn record(
        &self,
        host: &Host,
        device: &BlockDevice,
        file: File,
        stop: &AtomicBool,
    ) -> anyhow::Result<Recorded> {
        let mut changes = Changes::begin(host, "spindle record")?;
        let mut trace = changes.trace_block(device, self.buffer)?;
        let mut recorder = Recorder::new(file, &trace);
        let begun = Instant::now();
        let ended = loop {
            let left = self.length.as_duration().saturating_sub(begun.elapsed());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                break recorder.drain(&mut trace);
            }
            if let Err(error) = recorder.take(&mut trace, PATIENCE.min(left)) {
                break Err(error);
            }
            // What is not read yet stays in the kernel's buffers.
            std::thread::sleep(PATIENCE.min(left));
        };
        let lost = trace.lost();
        let length = begun.elapsed().into();
        trace.end(&mut changes)?;
        let undone = changes.finish()?;
        if !undone.is_complete() {
            say::note("not everything could be put back; `spindle undo` tries again");
        }
        ended?;
        recorder.finish(lost?, length)
    }

    fn report(&self, device: &BlockDevice, recorded: &Recorded) -> anyhow::Result<()> {
        let Recorded { events, requests, lost, length } = recorded;
        let file = self.output.display();
        say::line(&format!(
            "{file}: {requests} requests ({events} events) of {} in {length}, {lost} events lost",
            device.title()
        ))?;
        if *lost > 0 {
            say::note("events were lost: record again with a larger --buffer");
        }
        if *requests == 0 {
            say::note("nothing was asked of the device meanwhile: there is nothing to replay");
        } else {
            say::note(&format!("to replay it: spindle compare simulated:PROFILE --replay {file}"));
        }
        Ok(())
    }
}

/// The block device that a path is, or is on.
fn device(host: &Host, path: &Path) -> anyhow::Result<BlockDevice> {
    let chain = Chain::of(host, path)?;
    chain.first_varied_device().cloned().with_context(|| {
        Usage(format!("{} is on no block device whose requests could be recorded", path.display()))
    })
}

/// What was recorded.
struct Recorded {
    events: u64,
    requests: u64,
    lost: u64,
    length: Nanos,
}

struct Recorder {
    file: BufWriter<File>,
    disk: (u32, u32),
    buffer: Vec<u8>,
    /// The beginning of a line that is not whole yet.
    rest: String,
    bytes: Vec<u8>,
    events: u64,
    /// The events of each CPU: blkparse takes a gap in their numbers for events that were lost.
    of_cpu: BTreeMap<u32, u32>,
    requests: u64,
    last: Nanos,
}

impl Recorder {
    fn new(file: File, trace: &BlockTrace) -> Recorder {
        let disk = match trace.disk {
            host::DeviceNumber::Node { major, minor } => (major, minor),
            host::DeviceNumber::NvmePath { .. } => (0, 0),
        };
        Recorder {
            file: BufWriter::new(file),
            disk,
            buffer: vec![0; 1 << 16],
            rest: String::new(),
            bytes: Vec::new(),
            events: 0,
            of_cpu: BTreeMap::new(),
            requests: 0,
            last: Nanos::ZERO,
        }
    }

    /// Reads what is there until nothing more comes.
    fn take(&mut self, trace: &mut BlockTrace, patience: Duration) -> anyhow::Result<()> {
        let mut patience = patience;
        loop {
            let bytes = trace.read(&mut self.buffer, patience)?;
            if bytes == 0 {
                return Ok(());
            }
            self.lines(bytes)?;
            patience = Duration::ZERO;
        }
    }

    /// Reads what is left in the kernel's buffers once no more events are made.
    fn drain(&mut self, trace: &mut BlockTrace) -> anyhow::Result<()> {
        trace.stop()?;
        self.take(trace, Duration::ZERO)
    }

    fn lines(&mut self, bytes: usize) -> anyhow::Result<()> {
        let mut text = std::mem::take(&mut self.rest);
        text.push_str(&String::from_utf8_lossy(&self.buffer[..bytes]));
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        self.bytes.clear();
        for line in text[..whole].lines() {
            if let Some(event) = event_of_line(line) {
                self.events += 1;
                self.requests += u64::from(event.stage == trace::BlockStage::Queued);
                self.last = event.at;
                // The kernel names a partition where a task does, and the disk elsewhere; sectors are the
                // disk's in both.
                let event = BlockEvent { device: self.disk, ..event };
                let sequence = self.of_cpu.entry(event.cpu).or_default();
                *sequence += 1;
                write_event(&mut self.bytes, *sequence, &event);
            }
        }
        text[whole..].clone_into(&mut self.rest);
        self.file.write_all(&self.bytes).context("cannot write the trace")
    }

    fn finish(mut self, lost: u64, length: Nanos) -> anyhow::Result<Recorded> {
        if lost > 0 {
            self.bytes.clear();
            let sequence = self.of_cpu.get(&0).map_or(1, |last| last + 1);
            write_lost(&mut self.bytes, sequence, self.last, lost);
            self.file.write_all(&self.bytes).context("cannot write the trace")?;
        }
        self.file.flush().context("cannot write the trace")?;
        let Recorder { events, requests, .. } = self;
        Ok(Recorded { events, requests, lost, length })
    }
}
