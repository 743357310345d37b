//! A trace, and how its requests become one: devices side by side, times of one clock, each request once.

use crate::{
    clock,
    entry::{Entry, Request, TraceOp},
    error::TraceError,
    format::Format,
    formats::Line,
    layout,
};
use std::collections::{BTreeMap, BTreeSet};
use units::{Nanos, Sectors};

/// A trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its format.
    pub format: Format,
    /// Requests in the order in which they were issued.
    pub entries: Vec<Entry>,
    /// Lines that were skipped because they did not fit the format.
    pub bad_lines: u64,
    /// Times the recording clock was set back, or jumped ahead and came back; see [`parse`].
    pub clock_steps: u64,
    /// Requests that are neither reads, writes nor flushes (discards), and were left out.
    pub others: u64,
    /// Requests that were issued to the device again, in a trace without queueing: each counts once.
    pub reissued: u64,
    /// Requests of a device below another whose own requests are in the trace, too: those count.
    pub below: u64,
    /// Requests that are the same as one just before them: the trace may have been taken at two levels.
    pub doubled: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// How many processes there are.
    pub processes: u32,
    /// Sectors that all devices of the trace need.
    pub span: Sectors,
}

/// What has been read so far.
#[derive(Default)]
pub(crate) struct Builder {
    /// Requests as they were queued.
    queued: Requests,
    /// Requests as they went to the device.
    issued: Requests,
    others_queued: u64,
    others_issued: u64,
    passing_through: u64,
    completions: u64,
    lost: u64,
    devices: Vec<String>,
    names: BTreeMap<String, usize>,
    /// Where a request of the device below comes from: the last one at each sector.
    remapped: BTreeMap<(usize, u64), usize>,
}

/// Requests of one kind of event, and what is known of their ends.
#[derive(Default)]
struct Requests {
    all: Vec<(Request, usize)>,
    /// Those that another made of its own, at another device.
    from: BTreeMap<usize, usize>,
    /// Those that were issued while the same had not ended.
    again: BTreeSet<usize>,
    /// The latest request at a device's sector that has not ended; flushes apart.
    open: BTreeMap<(usize, bool, u64), usize>,
    /// The latest flush of each device.
    flush: BTreeMap<usize, usize>,
    /// Writes with FUA whose data have been written: before a device without FUA they end with a flush.
    forced: BTreeMap<(usize, u64), usize>,
}

/// Two requests that are the same within this time may be one, seen twice.
const DOUBLED_WITHIN: Nanos = Nanos::from_micros(10);

impl Requests {
    fn add(&mut self, request: Request, device: usize) {
        let index = self.all.len();
        let flush = request.op == TraceOp::Flush;
        let key = (device, flush, request.start);
        if let Some(open) = self.open.get(&key)
            && self.all[*open].0.count == request.count
            && self.all[*open].0.op == request.op
        {
            self.again.insert(index);
        }
        if request.service.is_none() {
            // One that is issued again is still the first one.
            self.open
                .entry(key)
                .and_modify(|open| {
                    if !self.again.contains(&index) {
                        *open = index;
                    }
                })
                .or_insert(index);
        }
        if flush {
            self.flush.insert(device, index);
        }
        self.all.push((request, device));
    }

    /// All that begin in the sectors of a request that has ended: it may have been merged of several. One that
    /// ends once more without data was a write with FUA, and has waited for a flush.
    fn done(&mut self, device: usize, flush: bool, (start, count): (u64, u64), at: Nanos) {
        if count == 0
            && !flush
            && let Some(index) = self.forced.remove(&(device, start))
        {
            let request = &mut self.all[index].0;
            request.service = Some(at.saturating_sub(request.at));
            return;
        }
        let end = start.saturating_add(count.max(1));
        let ended: Vec<(usize, bool, u64)> = self
            .open
            .range((device, flush, start)..(device, flush, end))
            .map(|(key, _)| *key)
            .collect();
        for key in ended {
            if let Some(index) = self.open.remove(&key) {
                let request = &mut self.all[index].0;
                request.service = Some(at.saturating_sub(request.at));
                if request.fua {
                    self.forced.insert((device, request.start), index);
                }
            }
        }
    }

    /// The flush that was asked for ends when all that belongs to it has.
    fn flush_done(&mut self, device: usize, at: Nanos) {
        self.open.remove(&(device, true, 0));
        if let Some(index) = self.flush.remove(&device) {
            let request = &mut self.all[index].0;
            request.service = Some(at.saturating_sub(request.at));
        }
    }
}

impl Builder {
    fn device(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        self.names.insert(name.to_owned(), self.devices.len());
        self.devices.push(name.to_owned());
        self.devices.len() - 1
    }

    /// Takes what a line says.
    pub fn take(&mut self, line: Line) {
        match line {
            Line::Nothing | Line::Sums => {}
            Line::Other => self.others_queued += 1,
            Line::OtherIssued { passes_through: true } => self.passing_through += 1,
            Line::OtherIssued { passes_through: false } => self.others_issued += 1,
            Line::Lost(events) => self.lost = self.lost.saturating_add(events),
            Line::Request(request) => {
                let device = self.device(&request.device);
                if let Some(from) = self.remapped.remove(&(device, request.start)) {
                    self.queued.from.insert(self.queued.all.len(), from);
                }
                self.queued.add(request, device);
            }
            Line::Issued(request) => {
                let device = self.device(&request.device);
                self.issued.add(request, device);
            }
            Line::Done { device, flush, start, count, at } => {
                self.completions += 1;
                let device = self.device(&device);
                self.queued.done(device, flush, (start, count), at);
                self.issued.done(device, flush, (start, count), at);
            }
            Line::FlushDone { device, at } => {
                let device = self.device(&device);
                self.queued.flush_done(device, at);
                self.issued.flush_done(device, at);
            }
            Line::Remapped { device, start, from } => {
                let (device, from) = (self.device(&device), self.device(&from));
                self.remapped.insert((device, start), from);
            }
        }
    }

    pub fn build(self, format: Format, bad_lines: u64) -> Trace {
        let has_queued = !self.queued.all.is_empty() || self.others_queued > 0;
        let (mut chosen, others) = match has_queued {
            true => (self.queued, self.others_queued),
            false => (self.issued, self.others_issued),
        };
        let others = others + self.passing_through;
        let mut reissued = 0;
        // Without completions nothing says whether the first one had ended.
        if !has_queued && self.completions > 0 {
            reissued = chosen.again.len() as u64;
            let again = std::mem::take(&mut chosen.again);
            remove(&mut chosen.all, |index| again.contains(&index));
        }
        let with_own: BTreeSet<usize> = chosen.all.iter().map(|(_, device)| *device).collect();
        let from = std::mem::take(&mut chosen.from);
        let is_below =
            |index: usize| from.get(&index).is_some_and(|above| with_own.contains(above));
        let below = (0..chosen.all.len()).filter(|index| is_below(*index)).count() as u64;
        remove(&mut chosen.all, is_below);
        let mut requests = chosen.all;
        let clock_steps = clock::straighten(requests.iter_mut().map(|(r, _)| &mut r.at));
        // Lines of several processors may be a little out of order.
        requests.sort_by_key(|(request, _)| request.at);
        let (bases, span) = layout::bases(&self.devices, &requests);
        let mut processes: BTreeMap<&str, u32> = BTreeMap::new();
        let mut entries: Vec<Entry> = Vec::with_capacity(requests.len());
        let mut doubled = 0;
        for (request, device) in &requests {
            let next = processes.len() as u32;
            let process = *processes.entry(&request.process).or_insert(next);
            let entry = Entry {
                at: request.at,
                op: request.op,
                start: Sectors(bases[*device].saturating_add(request.start)),
                count: Sectors(request.count),
                preflush: request.preflush,
                fua: request.fua,
                process,
                service: request.service,
            };
            doubled += u64::from(entries.last().is_some_and(|before| is_same(before, &entry)));
            entries.push(entry);
        }
        Trace {
            format,
            entries,
            bad_lines,
            clock_steps,
            others,
            reissued,
            below,
            doubled,
            lost: self.lost,
            processes: processes.len() as u32,
            // Its bytes are counted, too.
            span: Sectors(span.min(u64::MAX / 512)),
        }
    }
}

impl Trace {
    /// How many of its requests reach beyond a span.
    pub fn beyond(&self, span: Sectors) -> u64 {
        self.entries.iter().filter(|entry| entry.end() > span).count() as u64
    }

    /// The places of each client's entries: a client for a process, `most` at most, which further ones share.
    pub fn dealt(&self, most: u32) -> Vec<Vec<u32>> {
        let clients = self.processes.clamp(1, most.max(1));
        let mut of_client = vec![Vec::new(); clients as usize];
        for (place, entry) in self.entries.iter().enumerate() {
            of_client[(entry.process % clients) as usize].push(place as u32);
        }
        of_client
    }

    /// The sectors of its longest request.
    pub fn longest(&self) -> Sectors {
        self.entries.iter().map(|entry| entry.count).max().unwrap_or_default()
    }

    /// From its first request to its last.
    pub fn length(&self) -> Nanos {
        let (first, last) = (self.entries.first(), self.entries.last());
        first.zip(last).map_or(Nanos::ZERO, |(first, last)| last.at - first.at)
    }

    /// The largest power of two of sectors that all its requests begin at and end at multiples of, up to 4 KiB.
    pub fn multiple(&self) -> Sectors {
        let all = self.entries.iter().fold(8, |all, entry| all | entry.start.0 | entry.count.0);
        Sectors(1 << all.trailing_zeros())
    }

    /// Refuses a trace in which there is nothing to replay.
    pub fn check_replayable(&self, file: &str) -> Result<(), TraceError> {
        match self.entries.iter().any(|entry| entry.op != TraceOp::Flush) {
            true => Ok(()),
            false => {
                Err(TraceError::FlushesAlone { file: file.to_owned(), flushes: self.entries.len() })
            }
        }
    }
}

fn is_same(before: &Entry, entry: &Entry) -> bool {
    before.op != TraceOp::Flush
        && (before.op, before.start, before.count) == (entry.op, entry.start, entry.count)
        && entry.at.saturating_sub(before.at) < DOUBLED_WITHIN
}

fn remove<T>(all: &mut Vec<T>, is_out: impl Fn(usize) -> bool) {
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        !is_out(index - 1)
    });
}
