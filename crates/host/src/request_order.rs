//! In which order requests go to a device: how far each begins from where the one before it ended.
//!
//! The kernel's tracepoint of their issue says it, in an instance of our own. So that the cost has a bound it is looked
//! at in pieces, the shorter the more requests there are: some hundreds of requests a second are seen, however many
//! there are.

use crate::{
    BlockDevice, Changes, DeviceNumber, Result, block_trace, error::io_error,
    trace_instance::TraceInstance,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep},
    time::{Duration, Instant},
};

const EVENT: &str = "events/block/block_rq_issue";

/// So many requests are enough for a second's figure.
const WANTED: u32 = 400;
const PIECE_MIN: Duration = Duration::from_millis(2);
const PIECE_MAX: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);
/// For each processor: an event takes less than 100 bytes.
const BUFFER_KIB: u32 = 256;

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Pairs of requests, one right after the other.
    pub pairs: u64,
    /// Of those, where the second begins where the first ended.
    pub sequential: u64,
    /// Sectors from the ends of the first to the beginnings of the second, forth or back, of all pairs.
    pub distance: u64,
}

/// Looks at the order of requests from now on, until it is dropped.
#[derive(Debug)]
pub struct RequestOrder {
    entry: u64,
    seen: Arc<Mutex<OrderCounts>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Changes {
    /// Begins to look at the order of these devices' requests.
    pub fn watch_order(&mut self, devices: &[DeviceNumber]) -> Result<RequestOrder> {
        let disks: Vec<BlockDevice> = devices
            .iter()
            .map(|number| BlockDevice::read(self.host(), *number))
            .collect::<Result<_>>()?;
        let (instance, entry) = self.trace_instance()?;
        let begun = open(&instance, &disks).and_then(|pipe| {
            let (seen, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
            let looking =
                Looking { instance, pipe, seen: Arc::clone(&seen), stop: Arc::clone(&stop) };
            let thread = std::thread::Builder::new()
                .name("order".to_owned())
                .spawn(move || looking.run())
                .map_err(io_error("start", "a thread that looks at requests"))?;
            Ok(RequestOrder { entry, seen, stop, thread: Some(thread) })
        });
        match begun {
            Ok(begun) => Ok(begun),
            Err(error) => {
                self.unmake(entry)?;
                Err(error)
            }
        }
    }

    /// Looks no more.
    pub fn end_order(&mut self, order: RequestOrder) -> Result<()> {
        let entry = order.entry;
        drop(order);
        self.unmake(entry)
    }
}

impl RequestOrder {
    /// What was seen since the last call.
    pub fn take(&self) -> OrderCounts {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for RequestOrder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within a piece; that it panicked is nobody's concern any more.
            let _ended = thread.join();
        }
    }
}

fn open(instance: &TraceInstance, disks: &[BlockDevice]) -> Result<File> {
    instance.set("tracing_on", "0")?;
    instance.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
    let filters: Vec<String> = disks.iter().map(block_trace::filter).collect();
    instance.set(&format!("{EVENT}/filter"), &filters.join(" || "))?;
    instance.set(&format!("{EVENT}/enable"), "1")?;
    instance.pipe()
}

/// The thread that looks.
struct Looking {
    instance: TraceInstance,
    pipe: File,
    seen: Arc<Mutex<OrderCounts>>,
    stop: Arc<AtomicBool>,
}

impl Looking {
    /// Until it is stopped, or the kernel says no more: nothing depends on it.
    fn run(mut self) {
        let mut piece = PIECE_MIN;
        while !self.stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let Ok(counts) = self.look(piece) else { return };
            let requests = counts.pairs + 1;
            let share = (f64::from(WANTED) * piece.as_secs_f64() / requests as f64)
                .clamp(PIECE_MIN.as_secs_f64(), PIECE_MAX.as_secs_f64());
            // Few requests in a short piece say little of how many there are.
            piece = Duration::from_secs_f64(share).min(piece * 4);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.pairs += counts.pairs;
            seen.sequential += counts.sequential;
            seen.distance += counts.distance;
            drop(seen);
            // Two pieces a second are the longest: then it looks all the time.
            if piece < PIECE_MAX {
                self.wait(SECOND.saturating_sub(begun.elapsed()).min(PIECE_MAX));
            }
        }
    }

    /// One piece.
    fn look(&mut self, piece: Duration) -> Result<OrderCounts> {
        self.instance.set("tracing_on", "1")?;
        self.wait(piece);
        self.instance.set("tracing_on", "0")?;
        let mut text = Vec::new();
        let mut buffer = [0; 64 << 10];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => text.extend_from_slice(&buffer[..length]),
                // All is read, or a signal came: what is left is read the next time, and is not part of a pair then.
                Err(_) => break,
            }
        }
        Ok(count(&String::from_utf8_lossy(&text)))
    }

    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < until {
            sleep((until - Instant::now()).min(Duration::from_millis(100)));
        }
    }
}

/// Of events as the kernel prints them.
fn count(text: &str) -> OrderCounts {
    let mut counts = OrderCounts::default();
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for line in text.lines() {
        let Some((device, start, sectors)) = request(line) else { continue };
        if let Some(end) = ends.insert(device, start + sectors) {
            let distance = start.abs_diff(end);
            counts.pairs += 1;
            counts.sequential += u64::from(distance == 0);
            counts.distance += distance;
        }
    }
    counts
}

/// Device, first sector and length of a read or write:
/// `fio-12 [000] d..1. 5.1: block_rq_issue: 8,0 R 4096 () 1000 + 8 none,0,0 [fio]`.
fn request(line: &str) -> Option<(&str, u64, u64)> {
    let (_, event) = line.split_once(" block_rq_issue: ")?;
    let mut words = event.split_ascii_whitespace();
    let (device, kind) = (words.next()?, words.next()?);
    let (place, _) = event.split_once(" + ").filter(|_| kind.contains(['R', 'W']))?;
    let sectors: u64 = event[place.len() + 3..].split_ascii_whitespace().next()?.parse().ok()?;
    let start = place.rsplit(' ').next()?.parse().ok()?;
    (sectors > 0).then_some((device, start, sectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_for_each_device() {
        let line = |device: &str, kind: &str, start: u64, sectors: u64| {
            format!(
                "  kworker/0:1H-25 [000] d..1. 5121.4: block_rq_issue: {device} {kind} 4096 () {start} + {sectors} \
                 none,0,0 [kworker/0:1H]\n"
            )
        };
        let text = [
            line("8,0", "R", 1000, 8),
            line("8,16", "W", 5, 1),
            line("8,0", "RA", 1008, 8),
            line("8,0", "FF", 0, 0),
            line("8,0", "WS", 16, 8),
            "CPU:1 [LOST 7 EVENTS]\n".to_owned(),
            line("8,16", "WFS", 106, 1),
        ];
        let counts = count(&text.concat());
        assert_eq!(counts, OrderCounts { pairs: 3, sequential: 1, distance: 1000 + 100 });
    }
}
